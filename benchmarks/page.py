"""`python -m benchmarks.page`: the last run as a page of the documentation.

Everything that the page says about the outcome is read from the JSON of the run, what we lose
too, so that a new run cannot leave an old boast standing.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .__main__ import GROUPS, OUTPUT, ROOT
from .measure import Spread
from .report import Row, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PAGE = ROOT / "docs" / "benchmarks.md"
TIE = 0.05
# Whose baseline is ours, and whose is the code that a program would write itself.
PEERS = ("peers", "making", "retry-after", "durations", "delivery")
BARE = ("delay", "questions")
# Where ours and the peers are all set against a loop written out by hand.
LOOP = ("retry",)

_INTRODUCTION = """\
# Benchmarks

What a schedule costs, next to the code that a program would write in its place and next to other
packages, measured in turns in one run.

{taken}

## How to run it

```shell
make bench
.venv/bin/python -m benchmarks.page
```

The first installs the peers, measures for some twenty minutes and prints the tables; the
second writes this page from that run. `python -m benchmarks --quick making memory` measures some
groups roughly, in seconds.

## How to read it

- **Compare ratios, not times.** Contenders take turns, a millisecond each, hundreds of times.
  A slow spell of the machine hits all of them, so the ratio within a round hardly moves, and the
  median over the rounds drops what does. Half of the rounds lie between the quartiles.
- **Each table names its baseline.** Against plain code, a ratio above 1 is what the schedule
  costs more. Against other packages the ratio is theirs over ours: above 1 they take longer,
  below 1 they are quicker. Calling again is the exception: there everybody, ours too, is set
  against a loop written out by hand.
- **A limit is a promise of ours.** The run says whether it was met. No test fails over it:
  machines are noisy.
- **Nanoseconds rarely matter here.** A delay is asked for once per failure, and then something
  waits for a second or more. These numbers show that nothing is slow enough to think about; they
  are no reason to choose a package. [How it compares](comparison.md) has those.
"""


def page(document: Mapping[str, Any]) -> str:
    """The Markdown of a run's JSON document."""
    sections = document["sections"]
    parts = [_INTRODUCTION.format(taken=_taken(document["machine"]))]
    parts.append("## What we lose, and what is a tie\n")
    parts.append("\n".join(_losses(sections)) + "\n")
    for group in dict.fromkeys(section["name"] for section in sections):
        parts.append(f"## {_capital(_GROUPS.get(group, group))}\n")
        parts += [_section(section) for section in sections if section["name"] == group]
    return "\n".join(parts).rstrip() + "\n"


_GROUPS = {
    "delay": "One delay, against plain code",
    "questions": "The other questions, against plain code",
    "peers": "One delay, against other packages",
    "making": "Making a schedule",
    "retry-after": "Reading Retry-After",
    "durations": "Reading a duration",
    "retry": "Calling again, against a loop written out by hand",
    "delivery": "Delivery, against a bare SQL loop and job queues",
    "memory": "Memory",
    "import": "Import",
}


def _taken(machine: Mapping[str, Any]) -> str:
    date = datetime.fromisoformat(machine["date"])
    system = machine["platform"].partition("-")[0]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    model = machine["cpu"].partition(" @ ")[0]
    cores = f"{machine['cpus']} cores of {_article(model)} {model}"
    return (
        f"Measured on {date.day} {date:%B %Y}: {cores}, {system}, {machine['python']}.\n"
        f"Packages: {packages}."
    )


def _losses(sections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for section in sections:
        lost: list[str] = []
        tied: list[str] = []
        for row in section["rows"]:
            value = _disadvantage(section, row)
            if value is None or value < 1.0 - TIE:
                continue
            said = f"{row['what']} {row['ratio']['median']:.2f}x"
            (lost if value > 1.0 + TIE else tied).append(said)
        yield from _said(section, "we lose", lost)
        yield from _said(section, "a tie", tied)
        yield from _said(section, "a limit missed", _missed(section["rows"]))
        yield from _said(section, "quicker than our default source", _before_default(section))
        yield from _said(section, "smaller than ours", _smaller(section))
        yield from _said(section, "ours leaves garbage", _littering(section["rows"]))


def _said(section: Mapping[str, Any], words: str, found: Sequence[str]) -> Iterator[str]:
    if found:
        yield f"- {_escaped(_capital(section['title']))}; {words}: {_escaped('; '.join(found))}."


def _disadvantage(section: Mapping[str, Any], row: Mapping[str, Any]) -> float | None:
    """How many times as long ours takes; None where that is not what the ratio says."""
    if section["name"] in LOOP:
        return _against_the_loop(section, row)
    if row["ratio"] is None or row["what"].startswith("ours"):
        return None
    median: float = row["ratio"]["median"]
    if section["name"] in PEERS:
        return 1.0 / median
    return median if section["name"] in BARE else None


def _against_the_loop(section: Mapping[str, Any], row: Mapping[str, Any]) -> float | None:
    """Ours over the loop for each of ours, and ours over theirs for each peer."""
    if row["ratio"] is None:
        return None
    ours = [each["ratio"]["median"] for each in section["rows"] if each["what"] == "ours"]
    # Kinds of `on` are set against one type: what they cost more is ours against ours.
    if not ours:
        return None
    median: float = row["ratio"]["median"]
    return median if row["what"].startswith("ours") else ours[0] / median


def _missed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['what']} {row['ratio']['median']:.2f}x instead of {_row(row).promise}"
        for row in rows
        if row["within"] is False
    ]


def _before_default(section: Mapping[str, Any]) -> list[str]:
    """Peers, drawing as they do by default, against ours drawing as it does by default."""
    default = [row["seconds"] for row in section["rows"] if row["what"].endswith(", default")]
    return [
        f"{row['what']} {duration(row['seconds'])} for our {duration(default[0])}"
        for row in section["rows"]
        if default and row["seconds"] is not None and row["seconds"] < default[0]
        if not row["what"].startswith("ours")
    ]


def _smaller(section: Mapping[str, Any]) -> list[str]:
    sizes = {row["what"]: row["facts"].get("bytes") for row in section["rows"]}
    ours = next((size for what, size in sizes.items() if what.startswith("ours")), None)
    if ours is None:
        return []
    return [
        f"{what} {size:,} for our {ours:,}"
        for what, size in sizes.items()
        if size is not None and size < ours and not what.startswith("ours")
    ]


def _littering(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['what']} {row['facts']['garbage']:,}"
        for row in rows
        if row["what"].startswith("ours") and row["facts"].get("garbage")
    ]


def _section(section: Mapping[str, Any]) -> str:
    rows = [_cells(row) for row in section["rows"]]
    shown = [index for index in range(len(_COLUMNS)) if any(cells[index] for cells in rows)]
    lines = [f"### {_escaped(_capital(section['title']))}\n"]
    if section["notes"]:
        lines.append(_capital(" ".join(section["notes"])) + "\n")
    lines.append(_line([_COLUMNS[index][0] for index in shown]))
    lines.append(_line([_COLUMNS[index][1] for index in shown]))
    lines += [_line([cells[index] for index in shown]) for cells in rows]
    return "\n".join(lines) + "\n"


_COLUMNS = (
    ("what", "---"),
    ("time", "--:"),
    ("baseline", "--:"),
    ("ratio", "--:"),
    ("quartiles", "--:"),
    ("limit", "---"),
    ("remark", "---"),
)


def _cells(written: Mapping[str, Any]) -> list[str]:
    row = _row(written)
    spread = None if written["ratio"] is None else Spread(**written["ratio"])
    met = "met" if written["within"] else "missed"
    return [
        _escaped(row.what),
        "" if row.seconds is None else duration(row.seconds),
        "" if row.baseline_seconds is None else duration(row.baseline_seconds),
        "" if spread is None else f"{spread.median:.2f}x",
        "" if spread is None else f"{spread.low:.2f} to {spread.high:.2f}",
        f"{row.promise}, {met}" if row.promise else "",
        _escaped(row.remark),
    ]


def _row(written: Mapping[str, Any]) -> Row:
    return Row(**{name: value for name, value in written.items() if name != "within"})


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text in which Markdown finds nothing: names have underscores, expressions stars."""
    if "`" in text:
        return text
    for character in "\\*_|<":
        text = text.replace(character, f"\\{character}")
    return text


def _capital(text: str) -> str:
    # A title that begins with code keeps it.
    return text if "(" in text.partition(" ")[0] else text[:1].upper() + text[1:]


def _article(word: str) -> str:
    return "an" if word[:1] in "AEIO" else "a"


def main() -> None:
    document = json.loads(OUTPUT.read_text(encoding="utf-8"))
    measured = {section["name"] for section in document["sections"]}
    if document["machine"]["effort"] != "full" or measured != GROUPS.keys():
        raise SystemExit("the last run was quick or of some groups only: run `make bench` first")
    PAGE.write_text(page(document), encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
