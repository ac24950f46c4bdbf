"""What a database and one of its transactions can do, whichever database it is."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")


class Transaction(Protocol):
    """One transaction. It ends with the function that it was handed to.

    Attributes:
        notes: What the database tells its listener once the transaction has committed.
    """

    notes: list[object]

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer."""
        ...

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows the statement changed."""
        ...

    def change_each(
        self, statement: str, rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    ) -> None:
        """The statement once for each row of values."""
        ...

    def now(self) -> int:
        """Microseconds since the epoch, read now."""
        ...

    def began(self) -> int:
        """Microseconds since the epoch at the transaction's beginning, which costs nothing."""
        ...

    def numbers(self, values: Sequence[int]) -> object:
        """A list as the value of `{among}`."""
        ...


class Database(Protocol):
    """A database that any number of processes and threads write."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` answers, in one transaction that is kept whole or not at all."""
        ...

    def read(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        """What `work` reads. `patience` is in seconds; None for the database's own."""
        ...

    def migrate(self, component: str, steps: Sequence[Sequence[str]]) -> None:
        """Bring the component's tables to the newest version."""
        ...

    def is_away(self, error: Exception) -> bool:
        """Whether an error says that the database is away or full, and not that we are wrong."""
        ...

    def close(self) -> None:
        """Close our own connections."""
        ...
