"""Durations: what a caller may write, as seconds, and seconds as text.

Everything in this package counts in seconds. A duration may be written as a number of
seconds, a `timedelta`, or text such as `"15 minutes"` or `"1h 30m"`.
"""

from __future__ import annotations

from datetime import timedelta

from .refusals import refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    DurationLike: TypeAlias = int | float | timedelta | str
else:
    DurationLike = int | float | timedelta | str

_MICROSECONDS = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_LONG_SPELLINGS = {
    singular + plural: _MICROSECONDS[unit]
    for singular, unit in {
        "millisecond": "ms",
        "second": "s",
        "minute": "m",
        "hour": "h",
        "day": "d",
        "week": "w",
    }.items()
    for plural in ("", "s")
}
_CALENDAR_WORDS = {"mo", "month", "months", "y", "yr", "year", "years"}
_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Long enough for every float that format_duration can be given, short enough to stay quick.
_LONGEST_TEXT = 1_000

_TEXT_RULE = "a number and a unit, such as '15 minutes', '30s' or '1h 30m'"
_UNIT_RULE = (
    "in the units ms, s, m, h, d, w (lower case) or millisecond to week, singular or plural"
)


def to_seconds(value: DurationLike, name: str = "duration") -> float:
    """A duration in seconds, whichever way it is written.

    `value` is a number of seconds (taken as it is), a `timedelta`, or text that
    `parse_duration` reads. `name` is what an error calls the argument.

    Returns a finite float, 0.0 or more.

    Raises `ValueError` for text that is no duration and for a negative, NaN or infinite
    value; `TypeError` for another type, `bool` included.

    Examples:
        >>> to_seconds("1h 30m")
        5400.0
        >>> to_seconds(timedelta(milliseconds=250))
        0.25
    """
    if isinstance(value, str):
        return _read(value, name)
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = float("inf")  # refused below, and so is what was negative
    else:
        rule = "a number of seconds, a timedelta, or text such as '15 minutes'"
        raise TypeError(f"{refusal(name, value, rule)}, not {type(value).__name__}")
    if not 0.0 <= seconds < float("inf"):
        raise ValueError(refusal(name, value, "0 or more and finite"))
    return seconds + 0.0  # -0.0 becomes 0.0


def parse_duration(text: str) -> float:
    """The seconds that a text such as `"15 minutes"` or `"1h 30m"` stands for.

    A text is one or more pairs of a number (`15`, `1.5`) and a unit: `ms`, `s`, `m`, `h`,
    `d`, `w` in lower case, or `millisecond` to `week`, singular or plural, in any case.
    Units descend and none repeats. White space around the text and between its parts does
    not matter. The resolution is a microsecond, halves rounded up.

    Returns a finite float, 0.0 or more.

    Raises `ValueError` for any other text: a number without a unit, a month or a year
    (neither has a fixed length), a negative number; `TypeError` for what is not text.

    Examples:
        >>> parse_duration("1 hour 30 minutes")
        5400.0
        >>> parse_duration("250ms")
        0.25
    """
    if not isinstance(text, str):
        raise TypeError(f"{refusal('duration', text, 'text')}, not {type(text).__name__}")
    return _read(text, "duration")


def format_duration(seconds: DurationLike) -> str:
    """A duration as short text that `parse_duration` reads back.

    `seconds` is any duration. It is shown in days, hours, minutes and seconds, below one
    second in milliseconds, to the microsecond. A duration of whole microseconds reads back
    equal.

    Raises as `to_seconds` does.

    Examples:
        >>> format_duration(5400)
        '1h 30m'
        >>> format_duration(951.542)
        '15m 51.542s'
    """
    numerator, denominator = to_seconds(seconds, "seconds").as_integer_ratio()
    microseconds = _rounded_half_up(numerator * 1_000_000, denominator)
    if microseconds == 0:
        return "0s"
    if microseconds < 1_000_000:
        return f"{_decimal(microseconds, 3)}ms"
    parts = []
    for unit in ("d", "h", "m"):
        count, microseconds = divmod(microseconds, _MICROSECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    if microseconds:
        parts.append(f"{_decimal(microseconds, 6)}s")
    return " ".join(parts)


def to_milliseconds(seconds: float) -> float:
    """Seconds as milliseconds; whole microseconds convert without dust.

    `1.001 * 1000` is 1000.9999999999999; this is 1001.0.
    """
    if seconds < 2.0**33:  # from there on a float of seconds holds no microseconds
        numerator, denominator = seconds.as_integer_ratio()
        microseconds = _rounded_half_up(numerator * 1_000_000, denominator)
        if microseconds / 1_000_000 == seconds:
            return microseconds / 1_000
    return seconds * 1_000.0


def _read(text: str, name: str) -> float:
    if len(text) > _LONGEST_TEXT:
        raise ValueError(refusal(name, text, f"at most {_LONGEST_TEXT} characters long"))
    rest = text.strip()
    if not rest:
        raise ValueError(refusal(name, text, _TEXT_RULE))
    total = 0
    largest_allowed = float("inf")
    while rest:
        number, rest = _leading(rest, _DIGITS + ".")
        whole, point, fraction = number.partition(".")
        if not whole or (point and not fraction) or "." in fraction:
            raise ValueError(refusal(name, text, _TEXT_RULE))
        word, rest = _leading(rest.lstrip(), _LETTERS)
        rest = rest.lstrip()
        unit = _unit_size(word, rest, text, name)
        if unit >= largest_allowed:
            raise ValueError(refusal(name, text, "in descending units, each at most once"))
        largest_allowed = unit
        total += _rounded_half_up(int(whole + fraction) * unit, 10 ** len(fraction))
    try:
        return total / 1_000_000
    except OverflowError:
        raise ValueError(refusal(name, text, "short enough for a float of seconds")) from None


def _unit_size(word: str, rest: str, text: str, name: str) -> int:
    if not word:
        if rest:
            raise ValueError(refusal(name, text, _TEXT_RULE))
        raise ValueError(f"{refusal(name, text, _TEXT_RULE)}: a number needs its unit")
    size = _MICROSECONDS.get(word) or _LONG_SPELLINGS.get(word.lower())
    if size is not None:
        return size
    if word.lower() in _CALENDAR_WORDS:
        rule = f"{_UNIT_RULE}: {shown(word)} has no fixed length"
        raise ValueError(refusal(name, text, rule))
    raise ValueError(f"{refusal(name, text, _UNIT_RULE)}, not {shown(word)}")


def _leading(text: str, alphabet: str) -> tuple[str, str]:
    rest = text.lstrip(alphabet)
    return text[: len(text) - len(rest)], rest


def _rounded_half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _decimal(number: int, places: int) -> str:
    whole, fraction = divmod(number, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0").rstrip(".")
