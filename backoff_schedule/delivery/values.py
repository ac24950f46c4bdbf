"""What makes a policy a value: equal by its arguments, and never changed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Value:
    """Equal, hashed, shown, copied and pickled by the checked arguments that made it.

    Each argument is an attribute of the same name, but for what `more` says otherwise.
    """

    __slots__ = ("_arguments",)

    _arguments: dict[str, Any]

    def _keep(self, arguments: dict[str, Any], **more: Any) -> None:
        for name, value in (arguments | more | {"_arguments": arguments}).items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._arguments == other._arguments

    def __hash__(self) -> int:
        return hash(tuple(self._arguments.values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self._arguments)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(f"{kind} is an immutable value: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(f"{kind} is an immutable value: {name} cannot be deleted")


def _made(kind: type[Value], arguments: dict[str, Any]) -> Value:
    return kind(**arguments)
