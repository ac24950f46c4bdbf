"""Text that both databases hold: what callers name is checked, what others say is cleaned."""

from __future__ import annotations

from ..refusals import refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_STORED = 2048


def checked_name(name: str, argument: str = "endpoint", longest: int = 255) -> str:
    """A name that both databases hold.

    Raises `TypeError` if it is no text, `ValueError` if it is empty, too long, or has a NUL or half
    a surrogate pair.
    """
    rule = f"text of 1 to {longest} characters, without NUL and lone surrogates"
    if not isinstance(name, str):
        raise TypeError(f"{refusal(argument, name, rule)}, not {type(name).__name__}")
    if not 1 <= len(name) <= longest or stored_text(name) != name[:_LONGEST_STORED]:
        raise ValueError(refusal(argument, name, rule))
    return name


def checked_event_id(event_id: str) -> str:
    """An id that a header holds and a signature covers without doubt (Standard Webhooks).

    Raises `TypeError` if it is no text, `ValueError` for other characters.
    """
    rule = "1 to 255 printable ASCII characters without a full stop, no space at either end"
    if not isinstance(event_id, str):
        raise TypeError(f"{refusal('event_id', event_id, rule)}, not {type(event_id).__name__}")
    plain = event_id.isascii() and event_id.isprintable() and event_id.strip() == event_id
    if not plain or not 1 <= len(event_id) <= 255 or "." in event_id:
        raise ValueError(refusal("event_id", event_id, rule))
    return event_id


def checked_secrets(secrets: Sequence[str]) -> list[str]:
    """Secrets, which no message shows.

    Raises `TypeError` for what is no list of text.
    """
    if isinstance(secrets, (str, bytes)):
        raise TypeError("secrets needs to be a list of text, not one text")
    kept = list(secrets)
    for secret in kept:
        if not isinstance(secret, str):
            raise TypeError(f"secrets needs to be a list of text, not of {type(secret).__name__}")
        if not secret or stored_text(secret) != secret:
            raise ValueError("a secret needs to be text that is not empty, without NUL")
    return kept


def stored_text(said: object, longest: int = _LONGEST_STORED) -> str:
    """What somebody said, as both databases hold it: shortened, and with `?` for what they refuse.

    Examples:
        >>> stored_text("a\\0b\\ud800")
        'a?b?'
    """
    text = said if isinstance(said, str) else shown(said)
    return text[:longest].replace("\0", "?").encode("utf-8", "replace").decode()
