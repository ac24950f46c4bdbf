"""The diagram shows the table, and the table shows the code."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backoff_schedule import CircuitBreaker, CircuitState
from backoff_schedule.breaker import Permit
from backoff_schedule.plotting.looks import DARK, LIGHT
from pictures import circuit
from pictures.circuit import HALF_HEIGHT, HALF_WIDTH, PLACES, alt_text, drawing, transitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from backoff_schedule.plotting.looks import Theme
    from pictures.circuit import Transition

    Outcome = tuple[CircuitState, CircuitState, Permit | None]

SVG = "{http://www.w3.org/2000/svg}"
PAGE = Path(__file__).parents[2] / "docs/guides/stop-calling-what-is-down.md"
ROWS = transitions()


def row(source: str, event: str, target: str, besides: str = "") -> str:
    heading = "| from | event | to | generation | besides |\n|---|---|---|---|---|"
    return f"{heading}\n| {source} | {event} | {target} | rises | {besides} |\n"


def drawn(theme: Theme = LIGHT, rows: list[Transition] = ROWS) -> list[ET.Element]:
    return [g for g in groups(theme, rows) if g.get("class") == "arrow"]


def groups(theme: Theme, rows: list[Transition]) -> list[ET.Element]:
    return list(ET.fromstring(drawing(rows, theme)).iter(f"{SVG}g"))


def said(group: ET.Element) -> str:
    text = group.find(f"{SVG}text")
    assert text is not None
    return text.text or ""


def moves(arrows: list[ET.Element]) -> list[tuple[str | None, str, str | None]]:
    return sorted((g.get("data-from"), said(g), g.get("data-to")) for g in arrows)


# The drawing and the table.


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_row_that_changes_the_state_is_an_arrow_and_every_arrow_is_a_row(
    theme: Theme,
) -> None:
    shown = moves(drawn(theme))
    words = {each: each.event.replace("`", "") for each in ROWS}
    changing = [
        (each.source, words[each], each.target)
        for each in ROWS
        if each.target not in {each.source, "the same"}
    ]
    assert len(changing) == 6
    assert set(changing) <= set(shown)
    assert shown == sorted((r.source, words[r], r.target) for r in ROWS if r.rises)


def test_each_arrow_runs_from_the_box_of_its_state_to_the_box_of_the_next() -> None:
    for group in drawn():
        path = group.find(f"{SVG}path")
        assert path is not None
        points = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]
        for name, (x, y) in (("data-from", points[:2]), ("data-to", points[-2:])):
            place = PLACES[group.get(name, "")]
            across, down = abs(x - place.x), abs(y - place.y)
            assert across <= HALF_WIDTH + 4
            assert down <= HALF_HEIGHT + 4
            assert across >= HALF_WIDTH or down >= HALF_HEIGHT


def test_the_boxes_are_the_four_states() -> None:
    boxes = [said(g) for g in groups(LIGHT, ROWS) if g.get("class") == "state"]
    assert sorted(boxes) == ["closed", "half-open", "open", "vacant"]


def test_a_row_more_in_the_table_is_an_arrow_more() -> None:
    rows = [*ROWS, *transitions(row("vacant", "a < b", "closed"))]
    assert ("vacant", "a < b", "closed") in moves(drawn(rows=rows))
    assert len(drawn(rows=rows)) == len(drawn()) + 1


def test_no_label_lies_on_another_or_on_a_box_or_leaves_the_drawing() -> None:
    boxes = [
        (p.x - HALF_WIDTH, p.y - HALF_HEIGHT, p.x + HALF_WIDTH, p.y + HALF_HEIGHT)
        for p in PLACES.values()
    ]
    for group in drawn():
        text = group.find(f"{SVG}text")
        assert text is not None
        # Nine pixels a character are more than any font of this size takes on average.
        wide = 9 * len(said(group))
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[text.get("text-anchor", "")]
        assert left >= 0
        assert left + wide <= circuit.WIDTH
        assert 15 <= y <= circuit.HEIGHT - 5
        boxes.append((left, y - 12, left + wide, y + 4))
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)


@pytest.mark.parametrize("text", [None, "", "no table", "| from | to |\n|---|---|\n"])
def test_a_text_without_the_table_is_refused(text: str | None) -> None:
    with pytest.raises(ValueError, match="columns from, event, to, generation, besides"):
        transitions(text)


def test_both_themes_are_written_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["circuit", str(tmp_path)])
    circuit.main()
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {
        "circuit.svg": drawing(ROWS, LIGHT),
        "circuit--dark.svg": drawing(ROWS, DARK),
    }


def test_the_page_shows_the_drawing_in_both_themes_with_its_words() -> None:
    text = PAGE.read_text()
    for name in ("circuit.svg#only-light", "circuit--dark.svg#only-dark"):
        assert f"![{alt_text(ROWS)}](../pictures/{name})" in text


# The table and the code: every row is driven, and nothing else happens.

BREAKER = CircuitBreaker(min_attempts=2, cooldown="30s", probe_timeout="10s")
CLOSED = CircuitState(generation=4)
FAILED_ONCE = BREAKER.after_failure(CLOSED, Permit(4), 0.0)
OPEN = BREAKER.after_failure(FAILED_ONCE, Permit(4), 0.0)
HALF_OPEN = BREAKER.ask(OPEN, 30.0)[0]
VACANT = BREAKER.after_cancel(HALF_OPEN, Permit(6), 31.0)
SETTLES = (BREAKER.after_success, BREAKER.after_failure, BREAKER.after_cancel)
STATES = (FAILED_ONCE, OPEN, HALF_OPEN, VACANT)


def asks(state: CircuitState, now: float) -> Callable[[], list[Outcome]]:
    return lambda: [(state, *BREAKER.ask(state, now))]


def settles(
    state: CircuitState, *ways: Callable[[CircuitState, Permit, float], CircuitState]
) -> Callable[[], list[Outcome]]:
    return lambda: [(state, way(state, Permit(state.generation), 31.0), None) for way in ways]


def late_results() -> list[Outcome]:
    return [
        (state, settle(state, Permit(old), 31.0), None)
        for state in STATES
        for settle in SETTLES
        for old in (state.generation - 1, state.generation + 1)
    ]


HAPPENINGS: dict[tuple[str, str], Callable[[], list[Outcome]]] = {
    ("closed", "ask"): asks(CLOSED, 5.0),
    ("closed", "success, failure"): settles(CLOSED, *SETTLES[:2]),
    ("closed", "cancel"): settles(CLOSED, BREAKER.after_cancel),
    ("closed", "failure that fills the threshold"): settles(FAILED_ONCE, BREAKER.after_failure),
    ("open", "ask before the cool-down is over"): asks(OPEN, 29.9),
    ("open", "ask after the cool-down"): asks(OPEN, 30.0),
    ("half-open", "ask while the probe is out"): asks(HALF_OPEN, 39.9),
    ("half-open", "ask after `probe_timeout`"): asks(HALF_OPEN, 40.0),
    ("half-open", "success of the probe"): settles(HALF_OPEN, BREAKER.after_success),
    ("half-open", "failure of the probe"): settles(HALF_OPEN, BREAKER.after_failure),
    ("half-open", "cancel of the probe"): settles(HALF_OPEN, BREAKER.after_cancel),
    ("vacant", "ask"): asks(VACANT, 31.0),
    ("any", "a result of another generation"): late_results,
}
# What each word in the last column says of the state before, the state after and the permit.
BESIDES: dict[str, Callable[[CircuitState, CircuitState, Permit | None], bool]] = {
    "": lambda before, after, permit: permit is None,
    "nothing": lambda before, after, permit: before == after and permit is None,
    "a permit": lambda before, after, permit: permit == Permit(after.generation),
    "a permit: the probe": lambda before, after, permit: permit == Permit(after.generation),
    "a permit: another probe": lambda before, after, permit: permit == Permit(after.generation),
    "no permit": lambda before, after, permit: before == after and permit is None,
    "the result is counted": lambda before, after, permit: after.window[-1][1] == 1,
    "no results": lambda before, after, permit: after.window == (),
    "one opening more": lambda before, after, permit: after.openings == before.openings + 1,
    "the place is free at once": (
        lambda before, after, permit: BREAKER.ask(after, 31.0)[1] is not None
    ),
}


def phase(name: str) -> str:
    return name.replace("-", "_")


@pytest.mark.parametrize("each", ROWS, ids=lambda each: f"{each.source}, {each.event}")
def test_the_breaker_does_what_the_row_says(each: Transition) -> None:
    outcomes = HAPPENINGS[each.source, each.event]()
    assert outcomes
    for before, after, permit in outcomes:
        assert each.source in {"any", before.phase.replace("_", "-")}
        assert after.phase == (before.phase if each.target == "the same" else phase(each.target))
        assert after.generation == before.generation + each.rises
        for word in each.besides.split(", "):
            assert BESIDES[word](before, after, permit), word


def test_every_way_that_is_driven_is_a_row() -> None:
    assert HAPPENINGS.keys() == {(each.source, each.event) for each in ROWS}
    assert {state.phase for state in STATES} == {phase(name) for name in PLACES}


def test_the_breaker_makes_every_move_of_the_table_and_no_other() -> None:
    made: set[tuple[str, str]] = set()
    edge = {(CircuitState(), frozenset[Permit](), 0.0)}
    seen = set(edge)
    for _ in range(7):
        reached = set()
        for before, given, now in edge:
            asked, permit = BREAKER.ask(before, now)
            after = [(asked, given | {permit} if permit else given)]
            # Every permit that was ever given comes back, in time, late or again.
            after += [(settle(before, old, now), given) for settle in SETTLES for old in given]
            made |= {(before.phase, a.phase) for a, _ in after if a.generation > before.generation}
            reached |= {(*pair, later) for pair in after for later in (now, now + 30.0)}
        edge = reached - seen
        seen |= reached
    assert made == {(phase(each.source), phase(each.target)) for each in ROWS if each.rises}
