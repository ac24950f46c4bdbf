from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.peers import comparison

_PEERS = ("backoff", "backoffs", "httpx_retries", "redress", "stamina", "tenacity", "urllib3")
_MISSING = [name for name in _PEERS if find_spec(name) is None]

collect_ignore_glob = ["test_claims_*.py", "asking.py"] if _MISSING else []


def pytest_report_collectionfinish() -> list[str]:
    if not _MISSING:
        return []
    return [f"claims about other packages: not run without {_MISSING[0]}; `make claims` runs them"]


@pytest.fixture
def row(request: pytest.FixtureRequest) -> dict[str, str]:
    """The cells of the page's row that is named like the test, by the table's headings."""
    name: str = request.node.name
    return comparison.row(name.removeprefix("test_"))
