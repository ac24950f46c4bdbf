"""How every refusal reads: which argument, what came, what would be right."""

_LONGEST_SHOWN = 80


def shown(value: object) -> str:
    """`repr(value)`, kept short and safe to put into an error message."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (whatever the caller's repr raises)
        # An int beyond Python's digit limit, or an object whose own repr fails.
        return f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def refusal(name: str, value: object, rule: str) -> str:
    """The sentence for a refused argument: `base (-1) needs to be 0 or more`."""
    return f"{name} ({shown(value)}) needs to be {rule}"


def decimal_digits(number: int) -> str:
    """`number` in decimal, whatever its length.

    `str` refuses an int of more than 4300 digits; an attempt or a seed that long is
    still a legal one.
    """
    try:
        # Not str(), which an enum that is an int answers with its name.
        return int.__repr__(number)
    except ValueError:
        from decimal import Decimal

        return str(Decimal(number))
