"""Curves before the rest: while a run makes its first figure, Streamlit's own messages to the browser wait.

Streamlit's page goes through all of its elements as soon as it hears that a run begins. A browser does one thing at a
time, so curves that were sent ahead meanwhile waited, the longer the more fields a page has. Now they come first. When
the browser confirms that it has drawn them, Streamlit's own messages follow in their order. They wait for 0.1 s at
most, and only if the last run drew a figure ahead; without the figures' own socket nothing waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages.shared.speed import figure_socket
from pages.shared.speed.gate import Gate
from pages.shared.streamlit_internals import asks_for_run, read_session_id

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

STREAM = "/_stcore/stream"
"""Streamlit's own web socket."""


class FiguresFirst:
    """ASGI middleware with a gate in each of Streamlit's web sockets, which closes when the browser asks for a run."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, in order."""
        if scope["type"] != "websocket" or not scope["path"].endswith(STREAM):
            await self._app(scope, receive, send)
            return
        gate = Gate()
        session = ""

        async def receive_and_close() -> Message:
            message = await receive()
            if session and asks_for_run(message.get("bytes")):
                figure_socket.close_until_drawn(session, gate)
            return message

        async def send_in_turn(message: Message) -> None:
            nonlocal session
            if message["type"] == "websocket.send":
                session = session or read_session_id(message.get("bytes"))
                await gate.wait()
            await send(message)

        await self._app(scope, receive_and_close, send_in_turn)
