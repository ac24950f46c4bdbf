"""What a receiver's answer means for a delivery."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2

from ..http_retry import classify_status, retry_after_from
from .model import Delivered, Permanent, Transient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Outcome

# How much of an answer is read, and how much of that is kept for people.
_MOST_READ = 64 * 1024
_MOST_KEPT = 2 * 1024
_LONGEST_PHRASE = 80
_GONE = 410
# Chains of exceptions are short, and a circular one has no end.
_DEEPEST = 20


async def outcome_of(response: httpx2.Response, now: datetime) -> Outcome:
    """Read an answer, as far as it matters, and say what it means.

    `now`, which a Retry-After date is read against, counts where the answer has no date itself.
    """
    status = response.status_code
    kind = classify_status(status)
    body, broken = await _read(response)
    if kind == "success":
        # Half an answer may be that of a receiver that died before it had kept anything.
        if broken is not None:
            return Transient(f"{status}, but the answer broke off: {root_of(broken)}")
        return Delivered(status=status)
    reason = _reason(response, body)
    if kind == "retry":
        asked = retry_after_from(response.headers, _date_of(response) or now)
        return Transient(reason, status=status, retry_after=asked)
    return Permanent(reason, status=status, disable_endpoint=status == _GONE)


def root_of(error: BaseException) -> str:
    """What went wrong, in the words of the error at the bottom that has any."""
    words = type(error).__name__
    link: BaseException | None = error
    for _ in range(_DEEPEST):
        if link is None:
            break
        words = str(link) or words
        # The client drops causes on the way, but not what was being handled.
        link = link.__cause__ or link.__context__
    return words


async def _read(response: httpx2.Response) -> tuple[bytes, httpx2.HTTPError | None]:
    """The beginning of a body, and what it broke off with, if it did."""
    kept, read = b"", 0
    try:
        async with aclosing(response.aiter_raw()) as chunks:
            async for chunk in chunks:
                kept += chunk[: _MOST_KEPT - len(kept)]
                read += len(chunk)
                if read >= _MOST_READ:
                    break
    except httpx2.HTTPError as error:
        return kept, error
    return kept, None


def _reason(response: httpx2.Response, body: bytes) -> str:
    phrase = response.extensions.get("reason_phrase", b"")[:_LONGEST_PHRASE]
    words = f"{response.status_code} {phrase.decode('utf-8', 'replace')}".rstrip()
    said = body.decode("utf-8", "replace").strip()
    return f"{words}: {said}" if said else words


def _date_of(response: httpx2.Response) -> datetime | None:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
