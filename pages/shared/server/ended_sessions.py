"""Free the memory of ended sessions in time.

Streamlit 1.67 removes an expired session from its store only when it stores the next one. The removed session still
stands in reference cycles, its own and Plotly's, until Python collects garbage. This can take hours: so much is
imported that full collections are rare, and `freeze` hides all objects that exist when it is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.shared import streamlit_internals

SWEEP_SECONDS = 0.5
EARLY_SECONDS = 5.0
"""How long before Streamlit's own limit a session is closed: after it, Streamlit finds the session no more."""
COLLECT_SECONDS = 5.0
"""Shortest time between two collections. One takes about 10 ms, in which nobody is answered."""
REGULAR_SECONDS = 120.0
"""Longest time between two collections: sessions that go on leave garbage, too, such as data they replaced."""


@dataclass(eq=False)
class WatchedSession:
    """A session that ran a page.

    Attributes:
        session: Streamlit's object; None for a check of the server's health, which belongs to no browser.
        last_seen: When a browser was last connected, in seconds of the monotonic clock.
    """

    session: weakref.ref[Any] | None
    last_seen: float = field(default_factory=time.monotonic)

    @property
    def is_alive(self) -> bool:
        """Return True if the session is still in memory."""
        return self.session is not None and self.session() is not None


_lock = threading.Lock()
_watched: dict[str, WatchedSession] = {}
_frozen_names: set[str] = set()
"""Names of sessions that were in memory when it was frozen; a collection cannot see what they held then."""
_ended_sessions: dict[str, WatchedSession] = {}
"""Sessions that ended since the last collection, or that something held until then."""


def watch() -> None:
    """Watch the session whose page runs in this thread."""
    name = streamlit_internals.session_id()
    if not name or streamlit_internals.find_runtime() is None or name in _watched:
        return
    session = streamlit_internals.find_session(name)
    with _lock:
        _watched[name] = WatchedSession(weakref.ref(session) if session is not None else None)


def freeze() -> None:
    """Exclude from later collections what is in memory now: they then take about 10 ms instead of 150 or more."""
    gc.collect()
    with _lock:
        _frozen_names.clear()
        sessions = _ended_sessions | _watched
        _frozen_names.update(name for name, session in sessions.items() if session.is_alive)
        gc.freeze()


async def sweep() -> None:
    """Close sessions that nobody comes back to, and collect what they leave, until cancelled."""
    last_collection = time.monotonic()
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        runtime = streamlit_internals.find_runtime()
        if runtime is None:
            continue
        limit = st.get_option("server.disconnectedSessionTTL")
        with contextlib.suppress(AttributeError, TypeError):  # Not as in Streamlit 1.67.
            if close_expired(runtime, time.monotonic(), limit):
                await release_last_message(runtime)
        wait = COLLECT_SECONDS if _ended_sessions else REGULAR_SECONDS
        if time.monotonic() - last_collection >= wait:
            collect()
            last_collection = time.monotonic()


def close_expired(runtime: Any, current_time: float, seconds: float) -> bool:
    """Close sessions whose browser left this many seconds ago or a little less; call it on the server's event loop.

    Returns:
        True if any was closed.
    """
    time_to_live, num_ended = seconds - min(EARLY_SECONDS, seconds / 2), len(_ended_sessions)
    with _lock:
        watched = list(_watched.items())
    for name, session in watched:
        if runtime.is_active_session(name):
            session.last_seen = current_time
        elif current_time - session.last_seen >= time_to_live:
            del _watched[name]
            _ended_sessions[name] = session
            # Whatever goes wrong with one session, the others are closed, and a collection frees this one.
            with contextlib.suppress(Exception):
                _close(runtime, name, session)
    return len(_ended_sessions) > num_ended


def _close(runtime: Any, name: str, watched: WatchedSession) -> None:
    runtime.close_session(name)
    session = watched.session() if watched.session is not None else None
    if session is not None:
        session.shutdown()  # Once more, in case Streamlit had no session of this name any more.
        # What the person entered and loaded goes now, also where the session itself stands in a cycle.
        session.session_state.clear()


class _NoBrowser:
    """A client for a session without a browser."""

    client_context = None

    def __init__(self) -> None:
        self.was_sent = asyncio.Event()

    def write_forward_msg(self, _message: object) -> None:
        self.was_sent.set()


async def release_last_message(runtime: Any) -> None:
    """Make the server's loop forget the last session that it sent a message, and the message.

    Local variables of the loop hold both until it sends a message to another session, which may be hours later.
    """
    client = _NoBrowser()
    with contextlib.suppress(Exception):  # The server has stopped, or nothing came.
        name = runtime.connect_session(client, {})
        try:
            runtime.handle_backmsg(name, streamlit_internals.build_heartbeat())
            await asyncio.wait_for(client.was_sent.wait(), COLLECT_SECONDS)
        finally:
            runtime.close_session(name)


def collect() -> None:
    """Collect garbage, including frozen memory of sessions that have ended."""
    if _frozen_names.isdisjoint(_ended_sessions):
        gc.collect()
    else:
        gc.unfreeze()
        freeze()
    with _lock:
        for name in [name for name, session in _ended_sessions.items() if not session.is_alive]:
            del _ended_sessions[name]
