from __future__ import annotations

import calendar
import email.message
import http
import math
import os
import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backoff_schedule import (
    classify_status,
    create_backoff,
    parse_retry_after,
    retry_after_from,
    wait_after,
)
from backoff_schedule.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOON = 1784894400.0  # Fri, 24 Jul 2026 12:00:00 GMT
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def is_usable(seconds: float) -> bool:
    return math.isfinite(seconds) and seconds >= 0.0 and math.copysign(1.0, seconds) == 1.0


def test_every_header_means_its_seconds(
    vectors: Callable[[str], list[dict[str, Any]]],
) -> None:
    cases = vectors("retry_after")
    assert len(cases) == 79
    for case in cases:
        answer = parse_retry_after(case["value"], case["now"])
        assert answer == case["expected"], case["id"]
        assert answer is None or (type(answer) is float and is_usable(answer)), case["id"]


def test_a_header_of_a_megabyte_means_its_seconds(
    vectors: Callable[[str], list[dict[str, Any]]],
) -> None:
    cases = vectors("retry_after_stress")
    assert len(cases) == 19
    for case in cases:
        value = "".join(text * repeat for text, repeat in case["parts"])
        assert len(value) > 900_000
        assert parse_retry_after(value, case["now"]) == case["expected"], case["id"]


# B-01: a date read in the machine's local zone.


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Tokyo"])
def process_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("process_zone")
@pytest.mark.parametrize("value", ["Fri, 26 Jun 2020 04:30:20 GMT", "120"])
def test_no_answer_depends_on_the_zone_of_the_process(value: str) -> None:
    now = datetime(2020, 6, 26, 4, 28, 20, tzinfo=UTC)
    assert parse_retry_after(value, now) == 120.0
    assert parse_retry_after(value, now.timestamp()) == 120.0


# B-02: a date that parses to a time without a zone.


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", 60.0),
        ("Wednesday, 21-Oct-15 07:28:00 GMT", 60.0),
        ("Wed Oct 21 07:28:00 2015", 60.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 60.0),
        ("Wed, 21 Oct 2015 09:28:00 +0200", None),
        ("1 Jan 2099 00:00:00", None),
        ("Wed, 21 Oct 2015 07:28:00 XYZ", None),
    ],
)
def test_the_three_forms_of_a_date_mean_utc_and_no_other_form_is_read(
    value: str, seconds: float | None
) -> None:
    now = datetime(2015, 10, 21, 7, 27, tzinfo=UTC)
    assert parse_retry_after(value, now) == seconds
    assert parse_retry_after(value, now.astimezone(ZoneInfo("Asia/Tokyo"))) == seconds


# B-03 and B-04: inf, nan, negatives, blanks, past dates; almost a number.


@pytest.mark.parametrize(
    "value",
    [
        *["inf", "Infinity", "1e400", "nan", "-1", "-5", "-0", "", "   "],
        *[
            "1m0s",
            "120junk",
            "X120",
            "+3",
            "1_000",
            "0x10",
            "\u0665",
            "\u00b2",
            "1,5",
            "120, 120",
            "1 2",
            "1.2.3",
        ],
        *[b"7", 7, 7.0, True, None, ["7"], object()],
    ],
)
def test_what_is_no_usable_header_is_none_and_the_schedule_decides(value: Any) -> None:
    answer = parse_retry_after(value, NOON)
    assert answer is None
    assert wait_after(create_backoff(base=2), 1, answer) == 2.0


@pytest.mark.parametrize("value", ["0", "00", "0.0", "Fri, 24 Jul 2026 11:00:00 GMT"])
def test_retry_now_is_zero_and_not_none_and_the_schedule_stays_the_floor(value: str) -> None:
    answer = parse_retry_after(value, NOON)
    assert answer == 0.0
    assert answer is not None
    assert wait_after(create_backoff(base=2), 1, answer) == 2.0


@pytest.mark.parametrize(
    ("value", "seconds"), [("0.503", 0.503), ("292.052427053", 292.052427053), (" 7 ", 7.0)]
)
def test_a_fraction_is_kept(value: str, seconds: float) -> None:
    assert parse_retry_after(value) == seconds


# B-05: a number that cannot be a pause.


@pytest.mark.parametrize(
    ("value", "wait"),
    [("1771404540", 300.0), ("9999999999", 300.0), ("86400", 300.0), ("60", 60.0)],
)
def test_a_limit_caps_what_a_server_asks_for(value: str, wait: float) -> None:
    asked = parse_retry_after(value)
    assert asked == float(value)
    assert wait_after(create_backoff(base=1), 1, asked, limit=300) == wait
    assert wait_after(create_backoff(base=1), 1, asked) == float(value)


# Dates against an independent reading of the grammar.


@st.composite
def http_dates(draw: st.DrawFn) -> tuple[str, int]:
    """A legal date in the first or the asctime form, and its epoch seconds."""
    moment = draw(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)))
    weekday = draw(st.sampled_from(WEEKDAYS))[:3]
    month, clock = MONTHS[moment.month - 1], f"{moment:%H:%M:%S}"
    zone = draw(st.sampled_from(["GMT", "UTC", "+0000", "-0000"]))
    padded_day = draw(st.sampled_from([f"{moment.day:02d}", str(moment.day)]))
    text = draw(
        st.sampled_from(
            [
                f"{weekday}, {padded_day} {month} {moment.year:04d} {clock} {zone}",
                f"{weekday} {month} {moment.day:2d} {clock} {moment.year:04d}",
            ]
        )
    )
    return text, calendar.timegm(moment.timetuple())


@given(http_dates(), st.floats(-1e11, 1e12))
def test_a_date_is_as_far_as_the_calendar_says(case: tuple[str, int], now: float) -> None:
    text, epoch = case
    assert parse_retry_after(text, now) == max(0.0, epoch - now)


@given(
    st.datetimes(datetime(1950, 1, 1), datetime(9949, 1, 1)),
    st.integers(-49 * 365 * 86400, 50 * 365 * 86400),
)
def test_a_two_digit_year_is_the_one_within_fifty_years(now: datetime, seconds: int) -> None:
    now = now.replace(microsecond=0, tzinfo=UTC)
    date = now + timedelta(seconds=seconds)
    day = f"{date.day:02d}-{MONTHS[date.month - 1]}-{date.year % 100:02d}"
    text = f"{WEEKDAYS[date.weekday()]}, {day} {date:%H:%M:%S} GMT"
    assert parse_retry_after(text, now) == max(0, seconds)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Friday, 24-Jul-76 12:00:00 GMT", 1577923200.0),
        ("Friday, 24-Jul-76 12:00:01 GMT", 0.0),
        ("Friday, 24-Jul-77 12:00:00 GMT", 0.0),
        ("Friday, 24-Jul-26 12:00:00 GMT", 0.0),
        ("Friday, 24-Jul-27 12:00:00 GMT", 31536000.0),
    ],
)
def test_fifty_years_ahead_to_the_second_is_still_ahead(value: str, seconds: float) -> None:
    assert parse_retry_after(value, NOON) == seconds


@pytest.mark.parametrize("now", [-1e300, -62135596800.0, 253402300799.0, 1e300])
def test_a_clock_outside_the_calendar_reads_every_date(now: float) -> None:
    for value in ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"):
        answer = parse_retry_after(value, now)
        assert answer is None or is_usable(answer)


def test_a_leap_day_that_a_century_lacks_is_no_date() -> None:
    now = datetime(2060, 1, 1, tzinfo=UTC)
    assert parse_retry_after("Saturday, 29-Feb-00 00:00:00 GMT", now) is None


def test_a_leap_day_more_than_fifty_years_ahead_is_the_one_a_century_before() -> None:
    assert parse_retry_after("Sunday, 29-Feb-76 00:00:00 GMT", 0.0) == 194400000.0
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_retry_after("Sunday, 29-Feb-76 00:00:00 GMT", now) == 0.0


def test_the_longest_date_that_there_is_is_a_date() -> None:
    assert parse_retry_after("Wednesday, 07-Jan-70 00:00:00 +0000", 0.0) == 518400.0


@pytest.mark.parametrize(
    "value",
    [
        *["Thu, 31 Dec 2026 23:59:60 GMT", "Thursday, 31-Dec-26 23:59:60 GMT"],
        "Thu Dec 31 23:59:60 2026",
    ],
)
def test_a_leap_second_is_the_instant_after_it(value: str) -> None:
    assert parse_retry_after(value, NOON) == 13867200.0


@pytest.mark.parametrize(
    "value",
    [
        *["Thu, 31 Dec 2026 23:58:60 GMT", "Thu, 31 Dec 2026 22:59:60 GMT"],
        *["Fri, 24 Jul 2026 12:60:00 GMT", "Fri, 24 Jul 2026 12.02.00 GMT"],
        *["Fri, 24 Jul 2026 12.02:00 GMT", "Fri, 24 Jul 2026 12:02.00 GMT"],
        *["Fri, 24 Jul 2026 12:02:0 GMT", "Fri, 24 Jul 2026 1202:000 GMT"],
        *["Fri, 24 Jul 2026 12:02:000 GMT", "Fri, 24 Jul 02026 12:02:00 GMT"],
        *["Fri, 024 Jul 2026 12:02:00 GMT", "Fri,  Jul 2026 12:02:00 GMT"],
        *["Fri, 0 Jul 2026 12:02:00 GMT", "Fri, 32 Jul 2026 12:02:00 GMT"],
        *["Xyz, 24 Jul 2026 12:02:00 GMT", ", 24 Jul 2026 12:02:00 GMT"],
        *["Fri 24 Jul 2026 12:02:00 GMT", "Fri, 24 Xyz 2026 12:02:00 GMT"],
        *["Fri, 24 Jul 0000 12:02:00 GMT", "Fri, -4 Jul 2026 12:02:00 GMT"],
        *["Friday 24-Jul-26 12:02:00 GMT", "Friday, 24/Jul/26 12:02:00 GMT"],
        *["Friday, 24-Jul/26 12:02:00 GMT", "Friday, 4-Jul-026 12:02:00 GMT"],
        *["Friday, 24-Jul-26 12:02:00", "Friday, 24-Jul-26 12:02:00 EST"],
        *["Fri, Jul 24 12:02:00 2026", "Friday Jul 24 12:02:00 2026"],
        *["Fri Jul 4 12:02:00 2026", "Fri Jul  24 12:02:00 2026"],
        *["Fri Jul 24 12:02:00 02026", "Fri Jul  4 12:02:00 02026", "Friday Jul  4 12:02:00 2026"],
    ],
)
def test_a_text_near_a_date_is_no_date(value: str) -> None:
    assert parse_retry_after(value, NOON) is None


NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
SHORT_DAY = "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
LONG_DAY = "(Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
MONTH = "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
ZONE = "(GMT|UTC|[+-]0000)"
DATE = re.compile(
    f"{SHORT_DAY}, [0-9]{{1,2}} {MONTH} [0-9]{{4}} {CLOCK} {ZONE}"
    f"|{LONG_DAY}, [0-9]{{2}}-{MONTH}-[0-9]{{2}} {CLOCK} {ZONE}"
    f"|{SHORT_DAY} {MONTH} ([0-9]{{2}}| [0-9]) {CLOCK} [0-9]{{4}}"
)
near_dates = st.builds(
    lambda text, place, change: text[:place] + change + text[place + 1 :],
    st.sampled_from(
        [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 16 08:49:37 1994",
            "Sun, 6 Nov 1994 08:49:37 +0000",
        ]
    ),
    st.integers(0, 32),
    st.text(" ,-:.0123456789aGMTUC+\u0661\u00b2\x00", max_size=2),
)


@given(st.one_of(st.text(), near_dates, st.text("0123456789. ", max_size=8)))
@example("1" * 400)
def test_any_text_is_read_by_the_grammar_or_not_at_all(value: str) -> None:
    answer = parse_retry_after(value, NOON)
    text = value.strip(" \t")
    if answer is None:
        assert not NUMBER.fullmatch(text) or math.isinf(float(text))
    else:
        assert is_usable(answer)
        assert NUMBER.fullmatch(text) or DATE.fullmatch(text)


# What now may be.


def test_without_now_the_system_clock_counts() -> None:
    date = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    text = f"{date:%a, %d} {MONTHS[date.month - 1]} {date:%Y %H:%M:%S} GMT"
    answer = parse_retry_after(text)
    assert answer is not None
    assert 3500.0 < answer <= 3600.0


@pytest.mark.parametrize("now", [datetime(2026, 1, 1), math.nan, math.inf, 10**400])
def test_a_now_without_a_place_on_the_clock_is_refused(now: Any) -> None:
    with pytest.raises(ValueError, match=r"^now \(.*\) needs to be "):
        parse_retry_after("120", now)


@pytest.mark.parametrize("now", ["2026-01-01", True, [1]])
def test_a_now_of_another_type_is_refused(now: Any) -> None:
    with pytest.raises(TypeError, match=r"^now \(.*\) needs to be epoch seconds or a datetime"):
        parse_retry_after("120", now)


# Whole headers.


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "7"}, 7.0),
        ({"RETRY-AFTER": "Fri, 24 Jul 2026 12:02:00 GMT"}, 120.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After-Ms": "1500", "Retry-After": "2"}, 1.5),
        ({"retry-after-ms": "0", "retry-after": "2"}, 0.0),
        ({"retry-after-ms": "12.5"}, 0.0125),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "Fri, 24 Jul 2026 12:02:00 GMT"}, None),
        ({"retry-after-ms": "9" * 309, "retry-after": "2"}, 2.0),
        ({"Retry-After": "7", "retry-after": "9"}, None),
        ({b"retry-after": b"7", 5: "7", None: "8"}, None),
        ({"Retry-After": b"7"}, None),
        ({"Retry-After": None}, None),
    ],
)
def test_headers_of_any_case_say_how_long(headers: Any, seconds: float | None) -> None:
    assert retry_after_from(headers, NOON) == seconds


def test_a_message_of_http_client_is_a_mapping_of_headers() -> None:
    message = email.message.Message()
    message["Retry-After"] = "7"
    assert retry_after_from(message) == 7.0  # type: ignore[arg-type]
    message["Retry-After"] = "9"
    assert retry_after_from(message) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("headers", [None, "Retry-After: 7", [("Retry-After", "7")]])
def test_headers_that_are_no_mapping_are_refused(headers: Any) -> None:
    message = refusal("headers", headers, "a mapping of field names to values")
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        retry_after_from(headers)


# The wait after both have spoken.


@pytest.mark.parametrize(
    ("retry_after", "limit", "wait"),
    [
        (None, None, 4.0),
        (0, None, 4.0),
        (3.9, None, 4.0),
        (10, None, 10.0),
        (10, "8s", 8.0),
        (None, 3, 3.0),
        (-5.0, None, 4.0),
        (math.nan, None, 4.0),
        (math.inf, "1h", 3600.0),
        (10, 0, 0.0),
    ],
)
def test_the_header_is_the_floor_and_the_limit_caps_the_whole(
    retry_after: float | None, limit: str | float | None, wait: float
) -> None:
    answer = wait_after(create_backoff(base=2), 2, retry_after, limit=limit)
    assert answer == wait
    assert type(answer) is float


def test_a_server_that_asks_for_nothing_makes_nobody_wait() -> None:
    assert wait_after(create_backoff(base=2, free=1), 1, None) == 0.0


def test_any_object_with_a_delay_is_a_schedule_and_is_asked_once() -> None:
    class Recorded:
        asked: list[int] = []  # noqa: RUF012  (one instance, one test)

        def delay(self, attempt: int) -> float:
            self.asked.append(attempt)
            return 5.0

    assert wait_after(Recorded(), 3, 1.0) == 5.0
    assert Recorded.asked == [3]


@pytest.mark.parametrize("retry_after", ["10", True, [10]])
def test_a_retry_after_of_another_type_is_refused(retry_after: Any) -> None:
    rule = "seconds as parse_retry_after answers them, or None"
    message = f"{refusal('retry_after', retry_after, rule)}, not {type(retry_after).__name__}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        wait_after(create_backoff(base=1), 1, retry_after)


def test_a_limit_that_is_no_duration_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^limit \(-1\) needs to be 0 or more"):
        wait_after(create_backoff(base=1), 1, None, limit=-1)


# Status codes.


def test_every_status_has_its_class() -> None:
    retried = {408, 425, 429, *range(500, 600)}
    for status in range(-1, 1000):
        expected = "success" if 200 <= status < 300 else "retry" if status in retried else "reject"
        assert classify_status(status) == expected


def test_an_http_status_of_the_standard_library_is_a_status() -> None:
    assert classify_status(http.HTTPStatus.TOO_MANY_REQUESTS) == "retry"


@pytest.mark.parametrize("status", ["200", 200.0, True, None])
def test_a_status_of_another_type_is_refused(status: Any) -> None:
    message = f"{refusal('status', status, 'an int')}, not {type(status).__name__}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        classify_status(status)
