"""Curves before the rest: while a run makes its first figure, what Streamlit has to say to the browser waits.

Streamlit's page goes through all of its elements as soon as it hears that a run begins. A browser does one thing at a
time, so curves that were sent ahead meanwhile waited for 30 to 60 ms, the longer the more fields a page has. Now they
come first; when the browser says that it has drawn them, Streamlit's own messages follow in their order. They wait for
0.1 s at most, and only where the last run drew a figure ahead; without the figures' own socket nothing waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.shared.figure import ahead
from pages.shared.figure.gate import Gate

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

STREAM = "/_stcore/stream"
"""Streamlit's own web socket."""


class FiguresFirst:
    """Has a gate in each of Streamlit's web sockets, and closes it when the browser asks for a run."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, in order."""
        if scope["type"] != "websocket" or not scope["path"].endswith(STREAM):
            await self._app(scope, receive, send)
            return
        gate = Gate()
        session = ""

        async def heard() -> Message:
            message = await receive()
            if session and asks_for_run(message.get("bytes")):
                ahead.close_until_drawn(session, gate)
            return message

        async def told(message: Message) -> None:
            nonlocal session
            if message["type"] == "websocket.send":
                session = session or session_of(message.get("bytes"))
                await gate.passed()
            await send(message)

        await self._app(scope, heard, told)


# These messages are Streamlit's own and no interface: what is not as in 1.67 is not waited for, and goes through as it
# is. Streamlit says what is wrong with one that cannot be read.
NOT_UNDERSTOOD = (DecodeError, AttributeError, TypeError, ValueError)


def asks_for_run(payload: bytes | None) -> bool:
    """Whether a browser's message asks for a run because somebody did something."""
    try:
        message = BackMsg.FromString(payload or b"")
        return message.WhichOneof("type") == "rerun_script" and not message.rerun_script.is_auto_rerun
    except NOT_UNDERSTOOD:
        return False


def session_of(payload: bytes | None) -> str:
    """The session that a message of Streamlit's begins, or nothing."""
    try:
        return str(ForwardMsg.FromString(payload or b"").new_session.initialize.session_id)
    except NOT_UNDERSTOOD:
        return ""
