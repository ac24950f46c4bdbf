"""`backoff-schedule retry-after`: what the Retry-After field of an HTTP answer means."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta

from ..http_retry import parse_retry_after
from ..instants import moved
from ..refusals import refusal, shown
from .parser import Parser
from .readable import aware_instant, readable_duration, readable_instant

_DESCRIPTION = """\
Print what the Retry-After field of an HTTP answer means: how many seconds, how long that is,
and the instant when it is over. A date in the past and 0 mean now.

Exits with 1, and the reason on stderr, if the value says nothing usable.
"""

_EXAMPLES = """\
examples:
  backoff-schedule retry-after 120
  backoff-schedule retry-after 'Sun, 06 Nov 1994 08:49:37 GMT' --now 784111717
  backoff-schedule retry-after 120 --now 2026-01-01T09:00Z --json
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
_ZONES = ("GMT", "UTC", "+0000", "-0000")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def run(arguments: list[str]) -> int:
    parser = Parser("retry-after", "VALUE [options]", _DESCRIPTION, _EXAMPLES)
    parser.hint = "see --help; a VALUE that starts with a dash goes last, after --"
    # Not required, so that an option that does not exist is refused before a missing value.
    parser.add_argument("value", nargs="?", metavar="VALUE", help="the text of the field")
    parser.add_argument(
        "--now",
        metavar="INSTANT",
        help="the instant to count from, as ISO text with a zone or epoch seconds; the system "
        "clock by default",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.read(arguments)
    if options.value is None:
        parser.error("it needs the VALUE of a Retry-After field, such as 120")
    try:
        now = datetime.now(UTC) if options.now is None else _instant(options.now)
    except ValueError as refused:
        parser.error(str(refused))
    seconds = parse_retry_after(options.value, now)
    if seconds is None:
        came, reason = shown(options.value), why_unusable(options.value)
        parser.exit(1, f"{parser.prog}: {came} is not usable: {reason}\n")
    duration = readable_duration(seconds)
    if options.json:
        until = moved(now, seconds).isoformat()
        print(json.dumps({"seconds": seconds, "duration": duration, "until": until}, indent=2))
    else:
        print("seconds ", repr(seconds).removesuffix(".0"))
        print("duration", duration)
        print("until   ", readable_instant(now, seconds) if seconds else "now")
    return 0


def why_unusable(value: str) -> str:
    """Why `parse_retry_after` makes nothing of a text, as far as its shape tells."""
    text = value.strip()
    if not text:
        return "it is blank"
    number = _number(text)
    if number is not None and not math.isfinite(number):
        return "it is not finite"
    if number is not None and text.startswith("-"):
        return "it is negative"
    if number is not None:
        return "seconds are written in plain digits, such as 120 or 0.5"
    first, *others = text.split()
    is_date = first.lower().startswith(_WEEKDAYS)
    if text.count(",") > is_date:
        return "it holds several values"
    if is_date and others and others[-1] not in _ZONES and not others[-1].isdigit():
        return f"its date does not end in GMT, as in {_DATE}"
    if is_date:
        return f"its date is none, or has another shape than {_DATE}"
    return f"it is neither seconds, such as 120, nor a date, such as {_DATE}"


def _instant(text: str) -> datetime:
    seconds = _number(text)
    try:
        if seconds is None or math.isnan(seconds):
            return aware_instant(text, "now").astimezone(UTC)
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        # A timedelta has no room for infinity and a datetime none for a year above 9999.
        rule = "an instant of the years 1 to 9999, in UTC"
        raise ValueError(refusal("now", text, rule)) from None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
