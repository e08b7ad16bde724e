"""The app's additions to Streamlit's server: routes, and checks that every request passes first."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.formparsers import MultiPartParser
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from dpcore.common import workspace
from pages.shared import speed, streamlit_internals
from pages.shared.base import demo
from pages.shared.figure import serving
from pages.shared.server import ended_sessions
from pages.shared.server.guard import FRAME_POLICY, Guard, content_policy
from pages.shared.server.start_token import SIGN_IN, TOKEN, StartToken, start_token
from pages.shared.speed import figure_socket

# Of OpenBLAS, which reads it when NumPy is loaded, and that is later. The optimisers multiply tall, thin matrices
# thousands of times; with more threads these spin while they wait for each other. Measured on two cores: the best
# weights of a regression of 3,000 x 10 took 177 ms of processor time instead of 270, of 20,000 x 20 1.5 s instead of
# 6.0, of 100,000 x 10 0.95 s instead of 5.3, and the clock agreed. And every session has a core, not all of them all.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# While modules come, Python would look through all of them again and again: 0.08 s of 0.55 s of the first run. Once
# they are there, `pages.shared.shell.freeze_memory` looks once and never at them again.
gc.set_threshold(50_000, 20, 100)

# Not beside a folder named `pages`: Streamlit would take that for automatic pages.
SCRIPT = Path(__file__).resolve().parents[1] / "shell" / "main.py"
# Streamlit 1.67 puts this folder into sys.path when a run begins and takes it out when that ends, unless it stands
# there already. Work beside the page that imported a module in that moment walked over a list that moved, left out an
# entry, and failed with ModuleNotFoundError. Last, so that nothing there takes the place of a library.
if str(SCRIPT.parent) not in sys.path:
    sys.path.append(str(SCRIPT.parent))

# Starlette would write uploads of more than 1 MB to the temporary folder, as a file without a name, before Streamlit
# takes them into memory as a whole. 0 is no limit: how large an upload may be, Streamlit judges before (maxUploadSize).
MultiPartParser.spool_max_size = 0

ENDS_WITH_INPUT = "SWEETSPOT_ENDS_WITH_INPUT"
"""Environment variable of the launcher: the server ends when its standard input is closed."""
SHUTDOWN_SECONDS = 5.0

# Answered before Streamlit's own; none may begin with /_stcore, /media, /component or /static.
ROUTES: list[BaseRoute] = [*serving.ROUTES, figure_socket.SESSION_CHECK, *speed.ROUTES]


def middleware() -> list[Middleware]:
    """Return the app's middleware, the outermost first; all of it is outside Streamlit's own.

    Ends the process with a sentence if the settings of a public demo are wrong.
    """
    try:
        public = demo.public_origins()
        token = start_token()
    except demo.SettingsError as error:
        sys.exit(f"Sweet Spot does not start: {error}")
    if token and TOKEN not in os.environ:
        # Started without the launcher, which would have chosen the token and opened the link.
        link = f"http://127.0.0.1:{st.get_option('server.port')}/?token={token}"
        print(f"Sweet Spot opens with this link only: {link}", flush=True)
    policy = FRAME_POLICY
    if (folder := streamlit_internals.find_static_folder()) is not None:
        policy = content_policy([(folder / "index.html").read_text(encoding="utf-8"), SIGN_IN])
    return [
        Middleware(Guard, public=public, is_demo=demo.is_served(), policy=policy),
        Middleware(StartToken, token=token),
        *speed.MIDDLEWARE,
        *serving.MIDDLEWARE,
    ]


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """Load modules while the browser starts, free ended sessions, and at the end stop all work.

    Folders of work are removed, too: a server that SIGTERM ends never reaches Python's own end, which would do it.
    """
    # A shorter switch interval meanwhile, for the browser's 60 requests, did not bring the first figure sooner.
    catalogue = "pages.shared.base.catalogue"
    threading.Thread(
        target=importlib.import_module, args=(catalogue,), name="load the pages", daemon=True
    ).start()
    if ENDS_WITH_INPUT in os.environ:
        threading.Thread(target=_end_with_input, name="end with the launcher", daemon=True).start()
    sweeping = asyncio.create_task(ended_sessions.sweep())
    try:
        yield
    finally:
        sweeping.cancel()
        # Imported here, as NumPy must come after the settings above.
        importlib.import_module("pages.shared.fields.jobs").drop_all()
        workspace.close_all()


def _end_with_input() -> None:
    """End this process when its standard input is closed, as happens when its launcher is killed."""
    # Not `sys.stdin`: Python aborts at its end if a thread waits there.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SHUTDOWN_SECONDS)
    os._exit(1)
