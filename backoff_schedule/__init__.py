"""One schedule answers one question: how long after the Nth failure?"""

from .backoff import Backoff
from .durations import DurationLike, format_duration, parse_duration, to_seconds
from .jitter import RandomSource
from .schedule import create_backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import presets
    from .breaker import CircuitBreaker, CircuitState
    from .budget import RetryBudget
    from .circuit import Circuit, CircuitOpen
    from .failure_window import FailureWindow
    from .http_errors import http_retry_after, transient_http
    from .http_retry import classify_status, parse_retry_after, retry_after_from, wait_after
    from .lockout import Lockout, LockoutState
    from .lockout_store import PostgresLockouts, SQLiteLockouts
    from .retry_loop import Attempt
    from .retry_run import RetryEvent
    from .retrying import Retry, retry
    from .seeded import SeededRandom
else:
    # Loaded on first use, so that who needs a schedule alone pays for nothing else.
    _LATER = {
        "Attempt": "retry_loop",
        "Circuit": "circuit",
        "CircuitBreaker": "breaker",
        "CircuitOpen": "circuit",
        "CircuitState": "breaker",
        "FailureWindow": "failure_window",
        "Lockout": "lockout",
        "LockoutState": "lockout",
        "PostgresLockouts": "lockout_store",
        "Retry": "retrying",
        "RetryBudget": "budget",
        "RetryEvent": "retry_run",
        "SQLiteLockouts": "lockout_store",
        "SeededRandom": "seeded",
        "classify_status": "http_retry",
        "http_retry_after": "http_errors",
        "parse_retry_after": "http_retry",
        "presets": "presets",
        "retry": "retrying",
        "retry_after_from": "http_retry",
        "transient_http": "http_errors",
        "wait_after": "http_retry",
    }

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f".{_LATER[name]}", __name__)
        value = module if name == _LATER[name] else getattr(module, name)
        globals()[name] = value
        return value


__all__ = [
    "Attempt",
    "Backoff",
    "Circuit",
    "CircuitBreaker",
    "CircuitOpen",
    "CircuitState",
    "DurationLike",
    "FailureWindow",
    "Lockout",
    "LockoutState",
    "PostgresLockouts",
    "RandomSource",
    "Retry",
    "RetryBudget",
    "RetryEvent",
    "SQLiteLockouts",
    "SeededRandom",
    "classify_status",
    "create_backoff",
    "format_duration",
    "http_retry_after",
    "parse_duration",
    "parse_retry_after",
    "presets",
    "retry",
    "retry_after_from",
    "to_seconds",
    "transient_http",
    "wait_after",
]
