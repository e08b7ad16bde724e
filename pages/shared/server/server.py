"""The app's additions to Streamlit's server, and the memory of ended sessions.

Free the memory of ended sessions in time.

Streamlit 1.67 removes an expired session from its store only when it stores the next one. The removed session still
stands in reference cycles, its own and Plotly's, until Python collects garbage. This can take hours: so much is
imported that full collections are rare, and `freeze_objects` hides all objects that exist when it is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.formparsers import MultiPartParser
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from dpcore.common import workspace
from pages.shared import figure, speed, streamlit_internals
from pages.shared.server import access

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
        session_ref: Streamlit's object; None for a check of the server's health, which belongs to no browser.
        last_seen: When a browser was last connected, in seconds of the monotonic clock.
    """

    session_ref: weakref.ref[Any] | None
    last_seen: float = field(default_factory=time.monotonic)

    @property
    def is_alive(self) -> bool:
        """Return True if the session is still in memory."""
        return self.session_ref is not None and self.session_ref() is not None


_lock = threading.Lock()
_watched_sessions: dict[str, WatchedSession] = {}
_frozen_ids: set[str] = set()
"""Names of sessions that were in memory when it was frozen; a collection cannot see what they held then."""
_ended_sessions: dict[str, WatchedSession] = {}
"""Sessions that ended since the last collection, or that something held until then."""


def watch_session() -> None:
    """Watch the session whose page runs in this thread, if there is one and it is not watched yet."""
    session_id = streamlit_internals.get_session_id()
    if not session_id or streamlit_internals.find_runtime() is None or session_id in _watched_sessions:
        return
    session = streamlit_internals.find_session(session_id)
    with _lock:
        _watched_sessions[session_id] = WatchedSession(None if session is None else weakref.ref(session))


def freeze_objects() -> None:
    """Exclude from later collections what is in memory now: they then take about 10 ms instead of 150 or more."""
    gc.collect()
    with _lock:
        _frozen_ids.clear()
        session_by_id = _ended_sessions | _watched_sessions
        _frozen_ids.update(
            session_id for session_id, watched_session in session_by_id.items() if watched_session.is_alive
        )
        gc.freeze()


async def sweep_sessions() -> None:
    """Close sessions that nobody comes back to and collect their garbage, again and again until cancelled."""
    last_collected_at = time.monotonic()
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        runtime = streamlit_internals.find_runtime()
        if runtime is None:
            continue
        limit_seconds = st.get_option("server.disconnectedSessionTTL")
        with contextlib.suppress(AttributeError, TypeError):  # Not as in Streamlit 1.67.
            if close_expired_sessions(runtime, time.monotonic(), limit_seconds):
                await release_last_message(runtime)
        wait_seconds = COLLECT_SECONDS if _ended_sessions else REGULAR_SECONDS
        if time.monotonic() - last_collected_at >= wait_seconds:
            collect_garbage()
            last_collected_at = time.monotonic()


def close_expired_sessions(runtime: Any, current_time: float, limit_seconds: float) -> bool:
    """Close sessions whose browser left ``limit_seconds`` ago, or a little less; return True if any was closed.

    It is to be called on the server's event loop.
    """
    max_idle_seconds, num_ended = limit_seconds - min(EARLY_SECONDS, limit_seconds / 2), len(_ended_sessions)
    with _lock:
        watched_sessions = list(_watched_sessions.items())
    for session_id, watched_session in watched_sessions:
        if runtime.is_active_session(session_id):
            watched_session.last_seen = current_time
        elif current_time - watched_session.last_seen >= max_idle_seconds:
            del _watched_sessions[session_id]
            _ended_sessions[session_id] = watched_session
            # Whatever goes wrong with one session, the others are closed, and a collection frees this one.
            with contextlib.suppress(Exception):
                runtime.close_session(session_id)
                session_ref = watched_session.session_ref
                if session_ref is not None and (streamlit_session := session_ref()) is not None:
                    streamlit_session.shutdown()  # Once more, in case Streamlit had no session of this name any more.
                    # What the person entered and loaded goes now, also where the session itself stands in a cycle.
                    streamlit_session.session_state.clear()
    return len(_ended_sessions) > num_ended


class _NoBrowser:
    """A client for a session without a browser."""

    client_context = None

    def __init__(self) -> None:
        self.was_sent = asyncio.Event()

    def write_forward_msg(self, _message: object) -> None:
        """Note that the server has sent a message."""
        self.was_sent.set()


async def release_last_message(runtime: Any) -> None:
    """Make the server's loop forget its last message and the session that got the message.

    Local variables of the loop hold both until it sends a message to another session, which may be hours later.
    """
    client = _NoBrowser()
    with contextlib.suppress(Exception):  # The server has stopped, or nothing came.
        session_id = runtime.connect_session(client, {})
        try:
            runtime.handle_backmsg(session_id, streamlit_internals.build_heartbeat())
            await asyncio.wait_for(client.was_sent.wait(), COLLECT_SECONDS)
        finally:
            runtime.close_session(session_id)


def collect_garbage() -> None:
    """Collect garbage, including frozen memory of sessions that have ended."""
    if _frozen_ids.isdisjoint(_ended_sessions):
        gc.collect()
    else:
        gc.unfreeze()
        freeze_objects()
    with _lock:
        for session_id in [
            session_id
            for session_id, watched_session in _ended_sessions.items()
            if not watched_session.is_alive
        ]:
            del _ended_sessions[session_id]


# Of OpenBLAS, which reads it when NumPy is loaded, and that is later. The optimisers multiply tall, thin matrices
# thousands of times; with more threads these spin while they wait for each other. Measured on two cores: the best
# weights of a regression of 3,000 x 10 took 177 ms of processor time instead of 270, of 20,000 x 20 1.5 s instead of
# 6.0, of 100,000 x 10 0.95 s instead of 5.3, and the clock agreed. And every session has a core, not all of them all.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# While modules come, Python would look through all of them again and again: 0.08 s of 0.55 s of the first run. Once
# they are there, `pages.shared.shell.freeze_memory` looks once and never at them again.
gc.set_threshold(50_000, 20, 100)

# Not beside a folder named `pages`: Streamlit would take that for automatic pages.
MAIN_SCRIPT = Path(__file__).resolve().parents[1] / "shell" / "main.py"
# Streamlit 1.67 puts this folder into sys.path when a run begins and takes it out when that ends, unless it stands
# there already. Work beside the page that imported a module in that moment walked over a list that moved, left out an
# entry, and failed with ModuleNotFoundError. Last, so that nothing there takes the place of a library.
if str(MAIN_SCRIPT.parent) not in sys.path:
    sys.path.append(str(MAIN_SCRIPT.parent))

# Starlette would write uploads of more than 1 MB to the temporary folder, as a file without a name, before Streamlit
# takes them into memory as a whole. 0 is no limit: how large an upload may be, Streamlit judges before (maxUploadSize).
MultiPartParser.spool_max_size = 0

ENDS_WITH_INPUT = "SWEETSPOT_ENDS_WITH_INPUT"
"""Environment variable of the launcher: the server ends when its standard input is closed."""
SHUTDOWN_SECONDS = 5.0

# Answered before Streamlit's own; none may begin with /_stcore, /media, /component or /static.
ROUTES: list[BaseRoute] = [*figure.ROUTES, speed.SESSION_CHECK, *speed.ROUTES]


def build_middleware() -> list[Middleware]:
    """Return the app's middleware, the outermost first; all of it is outside Streamlit's own.

    Ends the process with a sentence if the settings of a public demo are wrong.
    """
    try:
        public_origins = access.read_public_origins()
        token = access.choose_start_token()
    except access.SettingsError as error:
        sys.exit(f"Sweet Spot does not start: {error}")
    if token and access.TOKEN_VARIABLE not in os.environ:
        # Started without the launcher, which would have chosen the token and opened the link.
        start_link = f"http://127.0.0.1:{st.get_option('server.port')}/?token={token}"
        print(f"Sweet Spot opens with this link only: {start_link}", flush=True)
    content_policy = access.FRAME_POLICY
    if (static_folder := streamlit_internals.find_static_folder()) is not None:
        page_text = (static_folder / "index.html").read_text(encoding="utf-8")
        content_policy = access.build_content_policy([page_text, access.SIGN_IN_PAGE])
    return [
        Middleware(access.Guard, public_origins, access.is_served(), content_policy),
        Middleware(access.StartToken, token=token),
        *speed.MIDDLEWARE,
        *figure.MIDDLEWARE,
    ]


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """Load modules while the browser starts, free ended sessions, and at the end stop all work.

    Folders of work are removed, too: a server that SIGTERM ends never reaches Python's own end, which would do it.
    """
    # A shorter switch interval meanwhile, for the browser's 60 requests, did not bring the first figure sooner.
    catalogue = "pages.shared.base.catalogue"
    threading.Thread(target=importlib.import_module, args=[catalogue], name="load pages", daemon=True).start()
    if ENDS_WITH_INPUT in os.environ:
        threading.Thread(target=_end_with_input, name="end with the launcher", daemon=True).start()
    sweep_task = asyncio.create_task(sweep_sessions())
    try:
        yield
    finally:
        sweep_task.cancel()
        # Imported here, as NumPy must come after the settings above.
        importlib.import_module("pages.shared.fields.jobs").drop_all_jobs()
        workspace.close_all()


def _end_with_input() -> None:
    """End this process when its standard input is closed, as happens when its launcher is killed.

    It gets SIGTERM, and is ended by force if it is still there after `SHUTDOWN_SECONDS`.
    """
    # Not `sys.stdin`: Python aborts at its end if a thread waits there.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SHUTDOWN_SECONDS)
    os._exit(1)
