"""What is left of sessions that have ended: nothing."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tomllib
import weakref
from pathlib import Path
from typing import Any

import pytest

from pages.shared.server import server as server_server
from tests.browser import browser as helpers

ROOT = Path(__file__).resolve().parent.parent
KEPT = 120.0


class Session:
    """A session as far as it is closed and collected; it stands in a cycle, as Streamlit's do."""

    def __init__(self) -> None:
        self.session_state = {"data": "planted-1"}
        self.itself = self

    def shutdown(self) -> None:
        """Do nothing."""


class Server:
    """A server that says who is connected, and that knows a session for two minutes after."""

    def __init__(self) -> None:
        self.connected: set[str] = set()
        self.closed: list[str] = []

    def is_active_session(self, name: str) -> bool:
        """Return True if a browser is connected."""
        return name in self.connected

    def close_session(self, name: str) -> None:
        """Note that it was closed."""
        self.closed.append(name)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("_watched_sessions", "_ended_sessions"):
        monkeypatch.setattr(server_server, name, {})
    monkeypatch.setattr(server_server, "_frozen_ids", set())
    return Server()


def watch(name: str, session: Session, now: float) -> None:
    server_server._watched_sessions[name] = server_server.WatchedSession(weakref.ref(session), now)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("num_visitors", [4, pytest.param(100, marks=pytest.mark.long)])
def test_nothing_is_left_of_visitors(num_visitors: int) -> None:
    port = str(helpers.launcher.choose_port(45000))
    command = [sys.executable, "-m", "tests.visitors", port, str(num_visitors)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    content = json.loads(ran.stdout.splitlines()[-1])
    assert content["visitors"] == 2 * num_visitors
    # The search finds what is there.
    assert content["found while open"] > 0
    assert content["remains"] == content["planted"] == []
    first, second = content["megabytes"]
    assert second <= first + 30.0


def test_a_session_is_closed_before_streamlit_forgets_it_and_not_while_its_browser_may_come_back(server):
    session = Session()
    watch("a", session, 0.0)
    server.connected = {"a"}
    assert not server_server.close_expired_sessions(server, 1_000.0, KEPT)
    server.connected = set()
    for item in (1_000.5, 1_060.0, 1_000.0 + KEPT - server_server.EARLY_SECONDS - 0.1):
        assert not server_server.close_expired_sessions(server, item, KEPT)
    # It comes back, and leaves again.
    server.connected = {"a"}
    assert not server_server.close_expired_sessions(server, 1_114.9, KEPT)
    server.connected = set()
    assert not server_server.close_expired_sessions(server, 1_229.8, KEPT)
    assert not server.closed
    assert session.session_state
    assert server_server.close_expired_sessions(server, 1_229.9 + server_server.SWEEP_SECONDS, KEPT)
    assert server.closed == ["a"]
    assert not session.session_state


@pytest.mark.long
def test_what_was_frozen_of_a_session_is_collected_when_it_ends(server):
    session = Session()
    watch("a", session, 0.0)
    gone = weakref.ref(session)
    try:
        server_server.freeze_objects()
        del session
        gc.collect()
        assert gone() is not None  # Frozen: a plain collection does not see the cycle.
        assert server_server.close_expired_sessions(server, 1_000.0, KEPT)
        server_server.collect_garbage()
        assert gone() is None
        assert not server_server._ended_sessions
    finally:
        gc.freeze()  # As `tests/conftest.py` leaves it.


def test_what_work_still_holds_of_an_ended_session_is_collected_later(server):
    session = Session()
    watch("a", session, 0.0)
    gone = weakref.ref(session)
    assert server_server.close_expired_sessions(server, 1_000.0, KEPT)
    server_server.collect_garbage()
    assert list(server_server._ended_sessions) == [
        "a"
    ]  # So another collection follows after `COLLECT_SECONDS`.
    del session
    server_server.collect_garbage()
    assert gone() is None
    assert not server_server._ended_sessions


def test_one_session_that_cannot_be_closed_does_not_keep_the_others(server, monkeypatch):
    def fail(name: str) -> None:
        server.closed.append(name)
        if name == "a":
            raise RuntimeError

    monkeypatch.setattr(server, "close_session", fail)
    sessions = [Session(), Session()]
    for name, session in zip("ab", sessions, strict=True):
        watch(name, session, 0.0)
    assert server_server.close_expired_sessions(server, 1_000.0, KEPT)
    assert server.closed == ["a", "b"]
    assert not sessions[1].session_state


def test_the_limit_is_at_most_two_minutes_and_stands_in_the_documentation():
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["server"]["disconnectedSessionTTL"] == KEPT
    text = " ".join((ROOT / "docs" / "privacy.md").read_text(encoding="utf-8").split())
    # Streamlit waits for five seconds before it counts, and looks every ten.
    assert f"at most {KEPT + 15:g} seconds" in text
    assert "disconnectedSessionTTL" in text
