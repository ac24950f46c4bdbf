"""Named schedules that people already run, each with its timetable and its source.

They are ordinary schedules: immutable, and a start for `replace`.

Examples:
    >>> SVIX.replace(jitter=0.1).longest
    39600.0
"""

from __future__ import annotations

from types import MappingProxyType

from .schedule import create_backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .backoff import Backoff

STANDARD_WEBHOOKS = create_backoff(
    steps=["5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h"]
)
"""Webhook delivery, the example table of the Standard Webhooks specification.

| after failure | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 and on |
|---|---|---|---|---|---|---|---|---|---|
| wait | 5 s | 5 min | 30 min | 2 h | 5 h | 10 h | 14 h | 20 h | 24 h |

Ten tries take 75 h 35 min 5 s. Source: Standard Webhooks specification, "Deliverability and
reliability".
"""

POSTEL = create_backoff(steps=["5s", "5m", "30m", "2h", "5h", "10h", "1d", "2d", "3d"], jitter=0.2)
"""Webhook delivery as Postel does it by default, each wait spread by 20 % both ways.

| after failure | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 and on |
|---|---|---|---|---|---|---|---|---|---|
| wait | 5 s | 5 min | 30 min | 2 h | 5 h | 10 h | 1 day | 2 days | 3 days |

Source: Postel's documentation, "Retries & backoff".
"""

POSTFLEET = create_backoff(steps=["1m", "5m", "30m", "2h", "12h"], jitter=0.2)
"""Webhook delivery as Postfleet does it: six tries in about 15 hours, spread by 20 %.

| after failure | 1 | 2 | 3 | 4 | 5 and on |
|---|---|---|---|---|---|
| wait | 1 min | 5 min | 30 min | 2 h | 12 h |

Source: Postfleet's article "Webhook retries and dead-letter queues for agent email".
"""

SVIX = create_backoff(steps=["5s", "5m", "30m", "2h", "5h", "10h", "10h"])
"""Webhook delivery as Svix does it: eight tries in 27 h 35 min 5 s.

| after failure | 1 | 2 | 3 | 4 | 5 | 6 | 7 and on |
|---|---|---|---|---|---|---|---|
| wait | 5 s | 5 min | 30 min | 2 h | 5 h | 10 h | 10 h |

Source: Svix's documentation, "Retry schedule".
"""

FEED_POLL = create_backoff(base="15 minutes", max="1 day", jitter=0.1)
"""Polling a feed or another resource that fails: 15 minutes, doubling to a day, +-10 %.

| after failure | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 and on |
|---|---|---|---|---|---|---|---|---|
| wait | 15 min | 30 min | 1 h | 2 h | 4 h | 8 h | 16 h | 1 day |

Source: the polling guide of @sdxc/backoff.
"""

QUICK = create_backoff(base="200ms", max="2 seconds", jitter="full")
"""Retries inside one request, while somebody waits: 200 ms doubling to 2 s, full jitter.

| after failure | 1 | 2 | 3 | 4 | 5 and on |
|---|---|---|---|---|---|
| at most | 0.2 s | 0.4 s | 0.8 s | 1.6 s | 2 s |

Four tries wait 1.4 s at most. Source: the in-request guide of @sdxc/backoff.
"""

SIGN_IN_LOCKOUT = create_backoff(free=4, base="1 second", max="15 minutes")
"""Waits for somebody who guesses passwords: four mistakes free, then 1 s doubling to 15 min.

| after failure | 1 to 4 | 5 | 6 | 7 | 8 | ... | 14 | 15 and on |
|---|---|---|---|---|---|---|---|---|
| wait | none | 1 s | 2 s | 4 s | 8 s | ... | 8 min 32 s | 15 min |

No jitter, since a person sees the wait. Source: the lockout guide of @sdxc/backoff.
"""

GRPC_CONNECT = create_backoff(base="1 second", factor=1.6, max="120 seconds", jitter=0.2)
"""Reconnecting as gRPC clients do: 1 s, growing by 1.6 to 120 s, +-20 %.

| after failure | 1 | 2 | 3 | 4 | 5 | ... | 11 | 12 and on |
|---|---|---|---|---|---|---|---|---|
| wait | 1 s | 1.6 s | 2.56 s | 4.1 s | 6.55 s | ... | 110 s | 120 s |

Source: gRPC, "GRPC Connection Backoff Protocol" (doc/connection-backoff.md).
"""

PRESETS: Mapping[str, Backoff] = MappingProxyType(
    {
        "standard-webhooks": STANDARD_WEBHOOKS,
        "postel": POSTEL,
        "postfleet": POSTFLEET,
        "svix": SVIX,
        "feed-poll": FEED_POLL,
        "quick": QUICK,
        "sign-in-lockout": SIGN_IN_LOCKOUT,
        "grpc-connect": GRPC_CONNECT,
    }
)
"""Every preset by the name that the command line calls it."""
