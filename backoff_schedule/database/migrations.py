"""Numbered migrations: one version for each component, in one table."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .transaction import Transaction

VERSIONS = """
CREATE TABLE IF NOT EXISTS {prefix}schema_versions (
    component TEXT PRIMARY KEY,
    version INTEGER NOT NULL
)
"""
_RECORD = """
INSERT INTO {prefix}schema_versions (component, version) VALUES ('COMPONENT', VERSION)
"""
_SET = """
INSERT INTO {prefix}schema_versions (component, version) VALUES (?, ?)
ON CONFLICT (component) DO UPDATE SET version = excluded.version
"""


def apply(transaction: Transaction, component: str, steps: Sequence[Sequence[str]]) -> None:
    """Bring a component from the version it has to the newest, `len(steps)`.

    Each step is the statements that lead from one version to the next. Whoever calls holds a lock
    that lets one migration in at a time. Raises `RuntimeError` for a version that these steps do
    not know: a newer release made it, and an older one must not write into it.
    """
    transaction.change(VERSIONS)
    rows = transaction.rows(
        "SELECT version FROM {prefix}schema_versions WHERE component = ?", (component,)
    )
    version = rows[0][0] if rows else 0
    if version > len(steps):
        raise RuntimeError(
            f"the tables of {component} have version {version}, and this release knows "
            f"{len(steps)}: a newer release of backoff-schedule made them"
        )
    for step in steps[version:]:
        for statement in step:
            transaction.change(statement)
    if version < len(steps):
        transaction.change(_SET, (component, len(steps)))


def script(component: str, steps: Sequence[Sequence[str]]) -> list[str]:
    """Every statement that `apply` runs in an empty database, for another migration tool."""
    made = [VERSIONS, *(statement for step in steps for statement in step)]
    return [*made, _RECORD.replace("COMPONENT", component).replace("VERSION", str(len(steps)))]
