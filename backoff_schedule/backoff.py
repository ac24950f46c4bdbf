"""The schedule itself: how long after the Nth failure?

A `Backoff` is an immutable value over checked options. The growth rules are in `curves.py`, the
band and the draw in `jitter.py`.
"""

from __future__ import annotations

from itertools import count

from .curves import curve_of
from .durations import to_milliseconds
from .instants import moved
from .jitter import (
    LARGEST_DRAW,
    SYSTEM,
    key_bytes,
    keyed_draw,
    multipliers,
    picklable_source,
    spread,
)
from .options import DEFAULTS, checked_attempt, checked_options, checked_source, replaced_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

    from .instants import Instant
    from .jitter import RandomSource
    from .options import Options

# Past what keeps a schedule from being changed; looked up once, for keyed() is called per row.
_put = object.__setattr__
# With more free attempts than this the curve is computed when asked for.
_MOST_FREE_TABULATED = 64


class Backoff:
    """How long to wait after each failure. Made by `create_backoff`; see there for options.

    An immutable value: hashable, comparable, picklable, safe to share between threads and
    tasks (as far as a `random` of the caller's own is), without any counter inside. Two
    schedules are equal when their options and key are; where they draw from does not count.

    Examples:
        >>> from backoff_schedule import create_backoff
        >>> schedule = create_backoff(steps=["15s", "1m", "5m"], free=1)
        >>> [schedule.delay(attempt) for attempt in range(6)]
        [0.0, 0.0, 15.0, 60.0, 300.0, 300.0]
    """

    __slots__ = (
        "_free",
        "_jittered",
        "_key",
        "_last",
        "_longest",
        "_low",
        "_options",
        "_plateau",
        "_random",
        "_reach",
        "_settled",
        "_source",
        "_table",
        "_undrawn",
        "_value_at",
        "_width",
    )

    _options: Options
    _source: RandomSource | None
    _key: bytes | None
    _free: int
    _jittered: bool
    _low: float
    _width: float
    _longest: float
    _value_at: Callable[[int], float]
    _random: Callable[[], float]
    _table: list[float]
    _undrawn: int
    _settled: float | None
    _reach: int
    _plateau: float | None
    _last: float | None

    def __init__(self, options: Options, source: RandomSource | None) -> None:
        curve = curve_of(options)
        low, high = multipliers(options["jitter"])
        width = high - low
        jittered = (low, high) != (1.0, 1.0)
        longest = curve.longest
        if jittered:
            longest = spread(to_milliseconds(longest), low, width, LARGEST_DRAW)
        # The curve by counted failure, in milliseconds if there is jitter to come.
        value_at = curve.milliseconds if jittered else curve.seconds
        free = options["free"]
        table: list[float] = []
        if free <= _MOST_FREE_TABULATED:
            table = [0.0] * (free + 1)
            table += [value_at(n) for n in range(1, curve.tabulated + 1)]
        plateau = table[-1] if table and curve.settles else None
        self._set(
            _options=options,
            _free=free,
            _jittered=jittered,
            _low=low,
            _width=width,
            _longest=longest,
            _value_at=value_at,
            _table=table,
            # Attempts below this one draw nothing, and are free or in the table.
            _undrawn=free + 1 if jittered or not table else len(table),
            # What every attempt from there on answers, if nothing has to be drawn.
            _settled=None if jittered else plateau,
            _last=plateau,
        )
        self._draw_from(source, None)

    def _draw_from(self, source: RandomSource | None, key: bytes | None) -> None:
        self._set(
            _source=source,
            _key=key,
            _random=SYSTEM.random if source is None else source.random,
            # Attempts below this one, then the plateau, are spread by a draw from the source.
            _reach=len(self._table) if key is None else 0,
            _plateau=self._last if key is None else None,
        )

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            _put(self, name, value)

    def delay(self, attempt: int) -> float:
        """The wait in seconds after `attempt` failures, counted from 1.

        0.0 for a free attempt and for one below 1. With jitter each call draws anew: once,
        but for a free attempt. It takes the same short time for every attempt, however large,
        and never raises for an int; without `max` a growing curve ends in `inf`.

        Raises `TypeError` for an attempt that is not an int.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> create_backoff(base="1s", max="1m").delay(10**9)
            60.0
        """
        if type(attempt) is not int:
            attempt = checked_attempt(attempt)
        if attempt < self._undrawn:
            return self._table[attempt] if attempt > self._free else 0.0
        if self._settled is not None:
            return self._settled
        if attempt < self._reach:
            milliseconds = self._table[attempt]
        elif self._plateau is not None:
            milliseconds = self._plateau
        else:
            return self._computed(attempt)
        # jitter.spread, written out: calling it would cost as much as all of this.
        milliseconds *= self._low + self._random() * self._width
        if milliseconds < 2.0**52:
            whole = milliseconds + 2.0**52 - 2.0**52
            if milliseconds - whole == 0.5:
                whole += 1.0
            return whole / 1000.0
        return milliseconds / 1000.0 if milliseconds == milliseconds else 0.0

    def _computed(self, attempt: int) -> float:
        """What `delay` answers for an attempt past the table, and for each one of a key."""
        value = self._value_at(attempt - self._free)
        if not self._jittered:
            return value
        draw = self._random() if self._key is None else keyed_draw(self._key, attempt)
        return spread(value, self._low, self._width, draw)

    def at(self, attempt: int, now: Instant) -> Instant:
        """When to try again: `now` plus `delay(attempt)`, in the kind that `now` has.

        `now` is epoch seconds (a float comes back) or a datetime. An aware datetime moves by
        elapsed time, through UTC, and comes back in its own zone, so a clock change in between
        neither shortens nor stretches the wait. A naive one moves by its own clock and stays
        naive. What lies past the last instant that a datetime can hold saturates there:
        `datetime.max`, or for a zone west of Greenwich the last instant of UTC's year 9999.
        A float goes to `inf` with the delay.

        Raises `TypeError` for another type and `ValueError` for a `now` that is NaN or infinite.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> from datetime import datetime, timezone
            >>> failed = datetime(2026, 1, 1, 9, 0, tzinfo=timezone.utc)
            >>> create_backoff(base="15 minutes").at(2, failed).isoformat()
            '2026-01-01T09:30:00+00:00'
        """
        return moved(now, self.delay(attempt))

    def delays(self, start: int = 1) -> Iterator[float]:
        """`delay(start)`, `delay(start + 1)` ... in seconds, without end.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> from itertools import islice
            >>> list(islice(create_backoff(base=1, max=5).delays(), 5))
            [1.0, 2.0, 4.0, 5.0, 5.0]
        """
        return map(self.delay, count(checked_attempt(start)))

    def bounds(self, attempt: int) -> tuple[float, float]:
        """The lowest and the highest wait in seconds that any draw makes of `attempt`.

        They are what the draws 0 and 1 - 2**-53 answer. Takes no draw itself.

        Raises `TypeError` for an attempt that is not an int.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> create_backoff(base="1m", max="6h", jitter=0.2).bounds(100)
            (17280.0, 25920.0)
        """
        n = checked_attempt(attempt) - self._free
        if n < 1:
            return 0.0, 0.0
        value = self._value_at(n)
        if not self._jittered:
            return value, value
        return (
            spread(value, self._low, self._width, 0.0),
            spread(value, self._low, self._width, LARGEST_DRAW),
        )

    @property
    def longest(self) -> float:
        """The largest wait in seconds that any attempt can answer, jitter included.

        `inf` if there is none: a growing curve without `max`, or a computed one without it.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> create_backoff(base="1m", max="6h", jitter=0.2).longest
            25920.0
        """
        return self._longest

    @property
    def options(self) -> dict[str, Any]:
        """The options in a fresh dict that JSON holds; durations are seconds.

        `create_backoff(**schedule.options) == schedule`, but for a key, which is not among
        them: `keyed` gives it again.

        Raises `TypeError` for a computed schedule: JSON holds no function.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> schedule = create_backoff(steps=["15s", "1m"], jitter=0.1)
            >>> schedule.options
            {'steps': [15.0, 60.0], 'free': 0, 'jitter': 0.1}
        """
        if "compute" in self._options:
            raise TypeError("a schedule made with compute has no options that JSON could hold")
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._options.items()
        }

    def replace(self, **changes: Any) -> Backoff:
        """A schedule like this one with some options changed, as `create_backoff` takes them.

        An option of another shape or growth drops what goes only with the old one. The key and
        the random source stay; a new `random` replaces a key.

        Raises as `create_backoff` does.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> create_backoff(base="1m", max="6h").replace(jitter=0.2).bounds(1)
            (48.0, 72.0)
        """
        source, key = self._source, self._key
        if "random" in changes:
            source, key = checked_source(changes.pop("random")), None
        options = replaced_options(self._options, changes)
        return _made(options, source, key)

    __replace__ = replace

    def keyed(self, key: str | bytes | int) -> Backoff:
        """This schedule with jitter that depends on (key, attempt) alone.

        The draw for attempt n is the first 53 bits, big-endian, of an 8-byte BLAKE2b digest
        over the key, a zero byte and n in decimal; text stands for its UTF-8, an int for its
        decimal text. There is no state: every process and machine answers the same, in any
        order and from any thread, so a stored retry can be computed again and a test can pin
        one delay. The key replaces a random source.

        Raises `TypeError` for a key of another type.

        Examples:
            >>> from backoff_schedule import create_backoff
            >>> create_backoff(base="1m", max="6h", jitter=0.2).keyed("dlv_1").delay(3)
            251.212
        """
        # The curve stays, so only what draws is set anew.
        schedule = object.__new__(Backoff)
        for name in self.__slots__:
            _put(schedule, name, getattr(self, name))
        schedule._draw_from(None, key_bytes(key))
        return schedule

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Backoff):
            return NotImplemented
        return self._options == other._options and self._key == other._key

    def __hash__(self) -> int:
        return hash((frozenset(self._options.items()), self._key))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={list(value) if name == 'steps' else value!r}"
            for name, value in self._options.items()
            if name not in DEFAULTS or value != DEFAULTS[name]
        )
        keyed = "" if self._key is None else f".keyed({self._key!r})"
        return f"create_backoff({shown}){keyed}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._options, picklable_source(self._source), self._key)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a schedule is immutable: {name} cannot be set; see replace()")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a schedule is immutable: {name} cannot be deleted")


def _made(options: Options, source: RandomSource | None, key: bytes | None) -> Backoff:
    schedule = Backoff(checked_options(options), checked_source(source))
    return schedule if key is None else schedule.keyed(key)
