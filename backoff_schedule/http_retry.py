"""What an HTTP answer says about trying again.

A server that answers 429 or 503 may name a pause in its Retry-After field (RFC 9110, section
10.2.3): a number of seconds or a date. What it says is a floor under the schedule's own delay.
Every function here takes the network's words as they come and never raises for them.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from .durations import to_seconds
from .instants import epoch_seconds
from .refusals import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, Protocol

    from .durations import DurationLike

    class _Schedule(Protocol):
        def delay(self, attempt: int, /) -> float: ...


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SHORT_WEEKDAYS = ("Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,")
_WEEKDAYS = (
    "Monday,",
    "Tuesday,",
    "Wednesday,",
    "Thursday,",
    "Friday,",
    "Saturday,",
    "Sunday,",
)
_ZONES = ("GMT", "UTC", "+0000", "-0000")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND = -62135596800.0  # 0001-01-01T00:00:00Z
_LAST_SECOND = 253402300799.0  # 9999-12-31T23:59:59Z
# No HTTP-date is longer, so a longer text is not taken apart.
_LONGEST_DATE = len("Wednesday, 01-Jan-70 00:00:00 +0000")


def parse_retry_after(value: str | None, now: float | datetime | None = None) -> float | None:
    """The seconds that a Retry-After field asks for, or None where it says nothing usable.

    `value` is the field's text. `now`, against which a date is read, is epoch seconds or an
    aware datetime; the system clock if None.

    Accepted are a number of seconds, `120` or `0.5` (servers send fractions, and the fraction
    is kept), and the three forms of an HTTP-date (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994
    08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. A two-digit
    year more than 50 years ahead is the past one. Leniencies: the zones `UTC`, `+0000` and
    `-0000`, a one-digit day of the month in the first form, and a weekday that does not match.

    Returns seconds, finite and 0.0 or more; a date in the past is 0.0, "now". None for anything
    else: a blank, a negative number, `inf`, a list, another type. Never raises for what the
    network sent, does not depend on locale or time zone, and takes time linear in the length.
    There is no upper limit: `wait_after` takes one.

    Raises `ValueError` for a naive or infinite `now`, `TypeError` for one of another type.

    Examples:
        >>> parse_retry_after("120")
        120.0
        >>> parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now=784111717)
        60.0
        >>> parse_retry_after("soon") is None
        True
    """
    reference = None if now is None else epoch_seconds(now)
    text = _field_text(value)
    seconds = _number(text)
    if seconds is not None:
        return seconds
    if reference is None:
        reference = time.time()
    date = _http_date(text, reference)
    return None if date is None else max(0.0, date - reference)


def retry_after_from(
    headers: Mapping[str, str], now: float | datetime | None = None
) -> float | None:
    """The seconds that an answer's headers ask for, or None.

    `headers` is any mapping of field names to values, in any case: a dict, or what httpx,
    requests, aiohttp, urllib3 and `http.client` hand out. `retry-after-ms`, which some APIs
    send (milliseconds), wins where it is a number. A field that stands there twice says
    nothing. `now` is as in `parse_retry_after`.

    Raises `TypeError` for headers that are no mapping, and for `now` as `parse_retry_after`.

    Examples:
        >>> retry_after_from({"Retry-After": "7"})
        7.0
        >>> retry_after_from({"retry-after-ms": "1500", "retry-after": "2"})
        1.5
    """
    if not callable(getattr(headers, "items", None)):
        raise TypeError(refusal("headers", headers, "a mapping of field names to values"))
    fields: dict[str, list[str]] = {"retry-after-ms": [], "retry-after": []}
    for name, value in headers.items():
        if isinstance(name, str) and name.lower() in fields:
            fields[name.lower()].append(value)
    only = {name: values[0] if len(values) == 1 else None for name, values in fields.items()}
    milliseconds = _number(_field_text(only["retry-after-ms"]))
    if milliseconds is not None:
        return milliseconds / 1000.0
    return parse_retry_after(only["retry-after"], now)


def wait_after(
    schedule: _Schedule,
    attempt: int,
    retry_after: float | None,
    *,
    limit: DurationLike | None = None,
) -> float:
    """The seconds to wait after `attempt` failures when the other side asked for a pause.

    `min(max(schedule.delay(attempt), retry_after or 0), limit)`: what it asked for is the floor
    and the schedule still applies, so a server that says "1 second" each time gets the growing
    delay all the same. `limit`, a duration, caps the whole: for a queue that cannot hold a
    message longer, or a server that asks for a year.

    Raises `TypeError` for a `retry_after` that is no number and, with `ValueError`, for a
    `limit` that is no duration.

    Examples:
        >>> from backoff_schedule import create_backoff
        >>> schedule = create_backoff(base="1m", max="6h")
        >>> [wait_after(schedule, attempt, 90.0) for attempt in (1, 2)]
        [90.0, 120.0]
        >>> wait_after(schedule, 1, 31_536_000.0, limit="12h")
        43200.0
    """
    if retry_after is None:
        retry_after = 0.0
    elif not isinstance(retry_after, (int, float)) or isinstance(retry_after, bool):
        rule = "seconds as parse_retry_after answers them, or None"
        message = f"{refusal('retry_after', retry_after, rule)}, not {type(retry_after).__name__}"
        raise TypeError(message)
    wait = max(schedule.delay(attempt), retry_after)
    return float(wait if limit is None else min(wait, to_seconds(limit, "limit")))


def classify_status(status: int) -> Literal["success", "retry", "reject"]:
    """What an HTTP status says about trying again.

    2xx is `"success"`. 408, 425, 429 and 5xx are `"retry"`: the same request may succeed later.
    The rest is `"reject"`: it would be refused again. (RFC 9110, section 15; RFC 8470 for 425,
    RFC 6585 for 429.)

    Raises `TypeError` for a status that is not an int.

    Examples:
        >>> [classify_status(status) for status in (204, 429, 503, 404)]
        ['success', 'retry', 'retry', 'reject']
    """
    if not isinstance(status, int) or isinstance(status, bool):
        raise TypeError(f"{refusal('status', status, 'an int')}, not {type(status).__name__}")
    if 200 <= status <= 299:
        return "success"
    if status in (408, 425, 429) or 500 <= status <= 599:
        return "retry"
    return "reject"


def _field_text(value: object) -> str:
    """A field's text without the white space around it; empty for what is no ASCII text."""
    return value.strip(" \t") if isinstance(value, str) and value.isascii() else ""


def _number(text: str) -> float | None:
    whole, point, fraction = text.partition(".")
    if not whole.isdigit() or (point and not fraction.isdigit()):
        return None
    number = float(text)
    return number if number < float("inf") else None


def _http_date(text: str, now: float) -> float | None:
    """The epoch seconds of an HTTP-date, None for any other text."""
    if len(text) > _LONGEST_DATE:
        return None
    match text.split(" "):
        case [weekday, day, month, year, clock, zone] if (
            weekday in _SHORT_WEEKDAYS and zone in _ZONES and len(day) <= 2 and len(year) == 4
        ):
            return _instant(year, month, day, clock)
        case [weekday, date, clock, zone] if (
            weekday in _WEEKDAYS and zone in _ZONES and len(date) == len("06-Nov-94")
        ):
            day, month, year = date[:2], date[3:6], date[7:]
            dashes = date[2] + date[6]
            return _instant(year, month, day, clock, now) if dashes == "--" else None
        # The asctime form pads a one-digit day with a second space.
        case [weekday, month, "", day, clock, year] if (
            f"{weekday}," in _SHORT_WEEKDAYS and len(day) == 1 and len(year) == 4
        ):
            return _instant(year, month, day, clock)
        case [weekday, month, day, clock, year] if (
            f"{weekday}," in _SHORT_WEEKDAYS and len(day) == 2 and len(year) == 4
        ):
            return _instant(year, month, day, clock)
    return None


def _instant(
    year: str, month: str, day: str, clock: str, century_from: float | None = None
) -> float | None:
    hour, minute, second = clock[:2], clock[3:5], clock[6:]
    if len(clock) != 8 or clock[2] != ":" or clock[5] != ":" or month not in _MONTHS:
        return None
    if not all(digits.isdigit() for digits in (year, day, hour, minute, second)):
        return None
    date = (_MONTHS.index(month) + 1, int(day))
    time_of_day = (int(hour), int(minute), int(second))
    full_year = int(year)
    if century_from is not None:
        full_year = _full_year(full_year, date + time_of_day, century_from)
    # A leap second is the instant of the second after it, as POSIX counts.
    leap = time_of_day == (23, 59, 60)
    if leap:
        time_of_day = (23, 59, 59)
    try:
        instant = datetime(full_year, *date, *time_of_day, tzinfo=UTC)
    except ValueError:
        return None
    return (instant - _EPOCH).total_seconds() + leap


def _full_year(two_digits: int, rest_of_date: tuple[int, ...], now: float) -> int:
    """The last year with these two digits in which the date is at most 50 years ahead."""
    today = _EPOCH + timedelta(seconds=min(max(now, _FIRST_SECOND), _LAST_SECOND))
    horizon = today.year + 50
    year = horizon - (horizon - two_digits) % 100
    rest_of_horizon = (today.month, today.day, today.hour, today.minute, today.second)
    return year - 100 if year == horizon and rest_of_date > rest_of_horizon else year
