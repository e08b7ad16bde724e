"""Free the memory of ended sessions in time.

Streamlit 1.67 removes an expired session from its store only when it stores the next one. What it then lets go of
stands in reference cycles, of its own and of Plotly, until Python collects garbage. That can take hours: so much is
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
        seen: When a browser was last connected, in seconds of the monotonic clock.
    """

    session: weakref.ref[Any] | None
    seen: float = field(default_factory=time.monotonic)

    @property
    def is_alive(self) -> bool:
        """Return True if the session is still in memory."""
        return self.session is not None and self.session() is not None


_lock = threading.Lock()
_watched: dict[str, WatchedSession] = {}
_frozen: set[str] = set()
"""Names of sessions that were in memory when it was frozen; a collection cannot see what they held then."""
_ended: dict[str, WatchedSession] = {}
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
    """Leave out of later collections what is in memory now: they then take about 10 ms instead of 150 or more."""
    gc.collect()
    with _lock:
        _frozen.clear()
        _frozen.update(
            name for watched in (_watched, _ended) for name, one in watched.items() if one.is_alive
        )
        gc.freeze()


async def sweep() -> None:
    """Close sessions that nobody comes back to, and collect what they leave, until cancelled."""
    collected = time.monotonic()
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        runtime = streamlit_internals.find_runtime()
        if runtime is None:
            continue
        limit = st.get_option("server.disconnectedSessionTTL")
        with contextlib.suppress(AttributeError, TypeError):  # Not as in Streamlit 1.67.
            if close_expired(runtime, time.monotonic(), limit):
                await pass_on(runtime)
        wait = COLLECT_SECONDS if _ended else REGULAR_SECONDS
        if time.monotonic() - collected >= wait:
            collect()
            collected = time.monotonic()


def close_expired(runtime: Any, now: float, seconds: float) -> bool:
    """Close sessions whose browser left so many seconds ago, or a little less; on the server's event loop.

    Returns:
        Whether any was closed.
    """
    kept, before = seconds - min(EARLY_SECONDS, seconds / 2), len(_ended)
    with _lock:
        watched = list(_watched.items())
    for name, one in watched:
        if runtime.is_active_session(name):
            one.seen = now
        elif now - one.seen >= kept:
            del _watched[name]
            _ended[name] = one
            # Whatever goes wrong with one session, the others are closed, and a collection frees this one.
            with contextlib.suppress(Exception):
                _close(runtime, name, one)
    return len(_ended) > before


def _close(runtime: Any, name: str, watched: WatchedSession) -> None:
    runtime.close_session(name)
    session = watched.session() if watched.session is not None else None
    if session is not None:
        session.shutdown()  # Once more, in case Streamlit had no session of this name any more.
        # What the person entered and loaded goes now, also where the session itself stands in a cycle.
        session.session_state.clear()


class _NoBrowser:
    """The client of a session without a browser."""

    client_context = None

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def write_forward_msg(self, _message: object) -> None:
        self.told.set()


async def pass_on(runtime: Any) -> None:
    """Let the server's loop forget the last session that it sent a message, and the message.

    Local variables of the loop hold both until it sends a message to another session, which may be hours later.
    """
    client = _NoBrowser()
    with contextlib.suppress(Exception):  # The server has stopped, or nothing came.
        name = runtime.connect_session(client, {})
        try:
            runtime.handle_backmsg(name, streamlit_internals.build_heartbeat())
            await asyncio.wait_for(client.told.wait(), COLLECT_SECONDS)
        finally:
            runtime.close_session(name)


def collect() -> None:
    """Collect garbage, also what was frozen of sessions that have ended."""
    if _frozen.isdisjoint(_ended):
        gc.collect()
    else:
        gc.unfreeze()
        freeze()
    with _lock:
        for name in [name for name, one in _ended.items() if not one.is_alive]:
            del _ended[name]
