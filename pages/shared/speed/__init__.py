"""Shortens the time to new curves and to the first figure, and does nothing else; SWEETSPOT_PLAIN=1 turns it off.

Measured on two busy cores: the socket with its gate saves 80 to 160 ms of each change. Serving Streamlit's own scripts
saves 0.3 to 0.5 s of the first figure.

**Figures ahead.** Streamlit's page goes through all of its elements when a run begins, and again when its messages have
come. Then at last it hands a figure its data, which is half of the time from a key press to new curves. So a figure's
message also goes to the browser by a web socket of our own, as soon as it is made, and the figure draws what comes
first. Without the socket, as behind a proxy that blocks it, figures are slower and nothing else. Messages may hold
numbers computed from private data. So they go only to a browser that names the session's token, a random text that only
the session's own browser gets. The socket passes the same checks of host and origin as every request.

**Curves before the rest.** A browser does one thing at a time. So curves that were sent ahead waited while Streamlit's
page went through its elements, longer on a page with more fields. So Streamlit's own messages wait until the browser
confirms that it has drawn the curves: for 0.1 s at most, and only if the last run drew a figure ahead.

**Streamlit's own scripts.** A page that opens asks for a hundred of them. Starlette's `StaticFiles` goes to another
thread to find a file, to open it, to read every piece, and to close it. This takes about 8 ms a file while the pages'
modules are loaded. Read and sent at once, sixty files arrive 0.25 s sooner on two cores, and so does the first figure.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary

import streamlit as st
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.shared import streamlit_internals
from pages.shared.base import keys
from pages.shared.streamlit_internals import asks_for_run, find_static_folder, read_session_id

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


MAX_WAIT_SECONDS = 0.1
"""Seconds for which messages wait at most. With no other load a figure is drawn some 60 ms after the run began."""
MIN_OPEN_SECONDS = 0.05
"""Seconds for which a gate that was opened stays open: while a slider is held, all that waited gets out in between."""


class Gate:
    """A gate that holds back a web socket's messages while it is closed; for the socket's event loop only."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._opened_at = -MIN_OPEN_SECONDS
        self._limit: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Hold messages back until `open`, for `MAX_WAIT_SECONDS` at most; a gate that was just opened stays open."""
        if self._is_open.is_set() and self._loop.time() - self._opened_at >= MIN_OPEN_SECONDS:
            self._is_open.clear()
            self._limit = self._loop.call_later(MAX_WAIT_SECONDS, self.open)

    def open(self) -> None:
        """Let messages go on."""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
            self._opened_at = self._loop.time()
            self._is_open.set()

    async def wait(self) -> None:
        """Wait until the gate is open."""
        await self._is_open.wait()


SOCKET_PATH = "/assets/figures"
"""Path of the socket, below the root of the app."""
SESSION_PATH = "/assets/session"
"""Below the root, too: answers whether the session of a token is still there (`pages/shared/screen/address.js`)."""
TOKEN_HEADER = "X-Sweetspot-Session"
"""Header of a request that carries the token; as part of an address it might be logged somewhere."""
TOKEN_SECONDS = 10.0
"""How long a browser that has connected may take to name its token."""
UNKNOWN_TOKEN_CODE = 4404
"""Code with which a socket is closed that names no session."""


class Listener:
    """A browser that listens; it gets the newest message of each figure, however slow it is."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._messages: dict[str, str] = {}
        self._has_messages = asyncio.Event()

    def send(self, figure_key: str, message: str) -> None:
        """Send a figure's message, from any thread."""
        with contextlib.suppress(RuntimeError):  # The server has just ended.
            self._loop.call_soon_threadsafe(self._store_message, figure_key, message)

    def _store_message(self, figure_key: str, message: str) -> None:
        """Store a figure's message in place of the one before, and wake the sender."""
        self._messages[figure_key] = message
        self._has_messages.set()

    async def send_all(self, web_socket: WebSocket) -> None:
        """Send waiting messages until cancelled, or until the browser leaves."""
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            while await self._has_messages.wait():
                self._has_messages.clear()
                message_by_figure, self._messages = self._messages, {}
                for figure_key, message in message_by_figure.items():
                    await web_socket.send_text(f"{figure_key}\n{message}")


class Channel:
    """The connection over which the figures of one session are sent ahead.

    Attributes:
        token: Names it; whoever knows it sees the session's figures.
        session_id: Streamlit's name of the session; empty if it is not known.
        listeners: The browsers that are connected; one that leaves disappears by itself.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.session_id = ""
        self.listeners: WeakSet[Listener] = WeakSet()
        self._lock = threading.Lock()
        self._has_drawn = False
        self._gate: Gate | None = None

    def add(self, listener: Listener) -> None:
        """Send figures to this listener from now on."""
        with self._lock:
            self.listeners.add(listener)

    def send(self, figure_key: str, message: bytes) -> None:
        """Send a figure's message to all listeners, and note that a figure was drawn."""
        with self._lock:
            listeners = list(self.listeners)
            self._has_drawn = True
        if listeners:
            message_text = message.decode()
            for listener in listeners:
                listener.send(figure_key, message_text)

    def close_until_drawn(self, gate: Gate) -> None:
        """Close a gate until the next figure, if somebody listens and the last run drew one."""
        with self._lock:
            expects_figure, self._has_drawn = self._has_drawn and bool(self.listeners), False
        if expects_figure:
            self._gate = gate
            gate.close()

    def confirm_drawn(self) -> None:
        """Open the gate, if one was closed, as a browser has drawn the figure that it was sent."""
        if self._gate is not None:
            self._gate.open()


# A channel lives as long as its session, whose state holds it.
_channels: WeakValueDictionary[str, Channel] = WeakValueDictionary()
_channels_by_session: WeakValueDictionary[str, Channel] = WeakValueDictionary()
"""Channels by Streamlit's name of their session."""


def get_channel() -> Channel:
    """Return the session's channel; make one if there is none."""
    channel: Channel | None = st.session_state.get(keys.FIGURE_CHANNEL)
    if channel is None:
        channel = st.session_state[keys.FIGURE_CHANNEL] = Channel()
        _channels[channel.token] = channel
        if session_id := streamlit_internals.get_session_id():
            channel.session_id = session_id
            _channels_by_session[session_id] = channel
    return channel


async def serve_figures(web_socket: WebSocket) -> None:
    """Send a session's figures until the browser leaves; close the socket if it names no token of a session."""
    # Starlette raises a RuntimeError where the browser left before it was accepted, or while it was told something, and
    # the server an OSError: nobody is there any more, and nothing is lost. KeyError: bytes came, no text.
    with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect, KeyError):
        await web_socket.accept()
        channel_token = ""
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, KeyError):
            channel_token = await asyncio.wait_for(web_socket.receive_text(), TOKEN_SECONDS)
        if (channel := _channels.get(channel_token)) is None:
            await web_socket.close(UNKNOWN_TOKEN_CODE)
            return
        listener = Listener()
        channel.add(listener)
        del channel  # The session alone keeps its channel.
        writer_task = asyncio.create_task(listener.send_all(web_socket))
        try:
            async for _ in web_socket.iter_text():  # It says nothing but that it has drawn.
                if (current_channel := _channels.get(channel_token)) is not None:
                    current_channel.confirm_drawn()
                del current_channel
        finally:
            writer_task.cancel()


def is_connected(channel_token: str) -> bool:
    """Return True if a browser is connected to the session of this token, or if the session's name is not known.

    After a lost connection, a browser may have been given another session: the server was restarted, or has dropped
    the old one. The old session may still be in memory, so Streamlit is asked which sessions it knows.
    """
    channel = _channels.get(channel_token)
    if channel is None:
        return False
    return not channel.session_id or streamlit_internals.is_connected(channel.session_id)


def _respond_to_check(request: Request) -> Response:
    """Answer 204 if a browser is connected to the session of the token, else 404."""
    return Response(status_code=204 if is_connected(request.headers.get(TOKEN_HEADER, "")) else 404)


SOCKET = WebSocketRoute(SOCKET_PATH, serve_figures)
SESSION_CHECK = Route(SESSION_PATH, _respond_to_check, methods=["GET"])
"""No matter of speed: it is served in any case."""


STREAM_PATH = "/_stcore/stream"
"""Streamlit's own web socket."""


class FiguresFirst:
    """ASGI middleware with a gate in each of Streamlit's web sockets, which closes when the browser asks for a run."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, in order; what Streamlit's socket sends to the browser waits while the gate is closed."""
        if scope["type"] != "websocket" or not scope["path"].endswith(STREAM_PATH):
            await self._app(scope, receive, send)
            return
        gate = Gate()
        session_id = ""

        async def receive_and_close() -> Message:
            """Receive a message of the browser, and close the gate if it asks for a run."""
            message = await receive()
            channel = _channels_by_session.get(session_id)
            if channel is not None and asks_for_run(message.get("bytes")):
                channel.close_until_drawn(gate)
            return message

        async def send_in_turn(message: Message) -> None:
            """Send a message once the gate is open, and note the session that it opens."""
            nonlocal session_id
            if message["type"] == "websocket.send":
                session_id = session_id or read_session_id(message.get("bytes"))
                await gate.wait()
            await send(message)

        await self._app(scope, receive_and_close, send_in_turn)


CACHE_FOREVER = "public, max-age=31536000, immutable"
# Names that hold a digest of the content, as in Streamlit 1.67's build: Slider.WU6er_Bo.js. Only these may be kept for
# good; whatever is called otherwise, Streamlit serves itself. No name holds a slash or begins with a dot.
_DIGEST_NAME = re.compile(r"/static/(?:js|css|media)/\w[\w.-]*\.[\w-]{8}\.(?:js|css|woff2)", re.ASCII)
# Not asked of the computer: the registry of Windows often has another kind for .js, and browsers run no such module.
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}


class Frontend:
    """ASGI middleware that serves Streamlit's own scripts, styles and fonts; all other requests pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the file, or hand the request on."""
        await (_serve_file(scope) or self._app)(scope, receive, send)


def _serve_file(scope: Scope) -> Response | None:
    """Return the response to a request for one of Streamlit's own files; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "GET" or not _DIGEST_NAME.fullmatch(scope["path"]):
        return None
    # What is asked for a part of a file, or whether it has changed, is rare.
    if not {"range", "if-none-match", "if-modified-since"}.isdisjoint(Headers(scope=scope)):
        return None
    try:
        return _read_file(scope["path"])
    except OSError:
        return None


@cache
def _read_file(file_path: str) -> Response:
    """Return the response with a file's content, cached: all files together have 26 MB, those that our pages need 4."""
    folder = find_static_folder()
    if folder is None:
        raise FileNotFoundError(file_path)
    content = (folder / file_path[1:]).read_bytes()
    return Response(
        content, media_type=_MEDIA_TYPES[Path(file_path).suffix], headers={"Cache-Control": CACHE_FOREVER}
    )


IS_ON = os.environ.get("SWEETSPOT_PLAIN", "").strip() in {"", "0"}
ROUTES: list[BaseRoute] = [SOCKET] if IS_ON else []
MIDDLEWARE = [Middleware(Frontend), Middleware(FiguresFirst)] if IS_ON else []
