"""The demo, with a real server and without the waiting."""

import pytest

from backoff_schedule.cli import demo


def told(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[float]]:
    waits: list[float] = []
    assert demo.run([], sleep=waits.append) == 0
    return capsys.readouterr().out.splitlines(), waits


def test_the_demo_waits_as_the_server_and_the_schedule_ask(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, waits = told(capsys)
    calls = [line.strip() for line in lines if line.strip().startswith("call ")]
    assert calls[0] == "call 1: 503, try again; Retry-After says 1"
    assert calls[1].startswith("call 2: 503, try again; Retry-After says ")
    assert calls[1].endswith(" GMT")
    assert calls[2] == "call 3: 503, try again; Retry-After says nothing"
    assert calls[3] == "call 4: 200, success"
    assert (waits[0], waits[2]) == (1.0, 2.0)
    # The date is ahead by three seconds at most; the schedule's own second is the floor.
    assert 1.0 <= waits[1] <= 3.0


def test_the_policy_of_the_demo_waits_as_the_server_and_the_schedule_ask(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, waits = told(capsys)
    attempts = [line.strip() for line in lines if line.strip().startswith("attempt ")][-2:]
    assert attempts == [
        "attempt 1: HTTP Error 503: Service Unavailable; wait 1s",
        "attempt 2: HTTP Error 429: Too Many Requests; wait 400ms",
    ]
    assert waits[3:] == [1.0, 0.4]
    assert "   returned 200" in lines


def test_the_demo_shows_the_delays_that_a_seed_and_a_key_pin(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, _ = told(capsys)
    pinned = [line.split("  ")[-1].strip() for line in lines if ", " in line][-3:]
    assert pinned[0] == "951.542, 1655.825, 3624.786, 7326.701"
    assert pinned[1] == pinned[2]


def test_the_demo_passes_by_the_proxies_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    lines, _ = told(capsys)
    assert any("200, success" in line for line in lines)


def test_the_scenes_are_numbered_under_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = told(capsys)
    titles = [line for line in lines if line[:1].isdigit()]
    assert titles == [f"{n}. {title}" for n, (title, _) in enumerate(demo.SCENES, 1)]
