"""Figures go ahead of what Streamlit says, to the browser of their session alone."""

from __future__ import annotations

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.shared import speed, streamlit_internals
from pages.shared.server import server


class Ear:
    """A browser at the socket of figures: what it says first, and what it hears."""

    def __init__(self, first: str) -> None:
        self.heard: list[dict[str, Any]] = []
        self.says: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.news = asyncio.Event()
        self.send = self.hear
        for message in ({"type": "websocket.connect"}, {"type": "websocket.receive", "text": first}):
            self.says.put_nowait(message)

    async def listen(self) -> None:
        scope = {
            "type": "websocket",
            "path": speed.SOCKET_PATH,
            "root_path": "",
            "headers": [],
            "query_string": b"",
        }
        await Starlette(routes=server.ROUTES)(scope, self.says.get, self.receive)

    async def receive(self, message: dict[str, Any]) -> None:
        await self.send(message)

    async def hear(self, message: dict[str, Any]) -> None:
        self.heard.append(message)
        self.news.set()

    async def until(self, count: int) -> list[dict[str, Any]]:
        while len(self.heard) < count:
            await asyncio.wait_for(self.news.wait(), 60)
            self.news.clear()
        return self.heard


def test_figures_go_ahead_to_the_browser_of_their_session_alone(monkeypatch):
    async def two_sessions() -> None:
        channels = []
        for state in ({}, {}):
            monkeypatch.setattr(speed.st, "session_state", state)
            channels.append((state, speed.get_channel()))
            assert speed.get_channel() is channels[-1][1]
        (_, mine), (others_state, others) = channels
        assert mine.token != others.token
        ears = [Ear(mine.token), Ear(others.token), Ear("a guess"), Ear("")]
        tasks = [asyncio.create_task(ear.listen()) for ear in ears]
        for ear in ears[2:]:
            accepted, closed = await ear.until(2)
            assert (accepted["type"], closed["type"], closed["code"]) == (
                "websocket.accept", "websocket.close", speed.UNKNOWN_TOKEN_CODE,
            )  # fmt: skip
        async with asyncio.timeout(60):
            while not (mine.listeners and others.listeners):
                await asyncio.sleep(0)
        # As a page's run does, from another thread.
        await asyncio.to_thread(mine.send, "a_figure", b'{"first": 1}')
        await asyncio.to_thread(others.send, "a_figure", "{}ε".encode())
        assert (await ears[0].until(2))[1]["text"] == 'a_figure\n{"first": 1}'
        assert (await ears[1].until(2))[1]["text"] == "a_figure\n{}ε"
        # A browser that lags behind gets the newest message only.
        for number in range(5):
            mine.send("a_figure", str(number).encode())
        assert [message["text"] for message in (await ears[0].until(3))[2:]] == ["a_figure\n4"]
        for ear in ears[:2]:
            ear.says.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
        # Nobody listens; and a session that is gone leaves no way to it.
        mine.send("a_figure", b"nobody")
        assert len(ears[0].heard) == 3
        token, gone = others.token, weakref.ref(others)
        others_state.clear()
        del others, channels
        async with asyncio.timeout(60):
            while gone() is not None:  # The thread that told has perhaps not let it go yet.
                gc.collect()
                await asyncio.sleep(0.01)
        late = Ear(token)
        await asyncio.wait_for(late.listen(), 60)
        assert late.heard[-1]["code"] == speed.UNKNOWN_TOKEN_CODE

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, two_sessions()).result()


@pytest.mark.parametrize("when", ["before it is accepted", "before its token", "while it is told"])
def test_a_browser_that_leaves_early_raises_nothing(when, monkeypatch):
    """A page that is closed at once: whatever the server library raises then, nobody has to read it."""

    async def leaves() -> None:
        monkeypatch.setattr(speed.st, "session_state", state)
        channel = speed.get_channel()
        ear = Ear(channel.token)
        gone = {"type": "websocket.disconnect", "code": 1001}
        if when != "while it is told":
            ear.says = asyncio.Queue()
            for message in [{"type": "websocket.connect"}, gone][when == "before it is accepted" :]:
                ear.says.put_nowait(message)
        listening = asyncio.create_task(ear.listen())
        if when == "while it is told":
            async with asyncio.timeout(60):
                while not channel.listeners:
                    await asyncio.sleep(0)

            async def fails(message: dict[str, Any]) -> None:
                raise OSError("the connection was reset")

            ear.send = fails
            channel.send("a_figure", b"{}")
            for _ in range(20):
                await asyncio.sleep(0)
            # The library knows by now that nobody is there; what comes is asked for nevertheless.
            ear.says.put_nowait({"type": "websocket.receive", "text": "drawn"})
            ear.says.put_nowait(gone)
        await asyncio.wait_for(listening, 60)

    state: dict[str, Any] = {}
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, leaves()).result()


class Stream:
    """Streamlit's web socket behind the gate: what a browser asks for, and what gets out to it."""

    def __init__(self, session: str) -> None:
        self.asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.out: list[bytes] = []
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()
        begins = ForwardMsg()
        begins.new_session.initialize.session_id = session
        self.answers.put_nowait(begins.SerializeToString())

    def ask(self, message: BackMsg) -> None:
        self.asked.put_nowait({"type": "websocket.receive", "bytes": message.SerializeToString()})

    async def run(self) -> None:
        async def streamlit(_scope: Any, receive: Any, send: Any) -> None:
            async def hear() -> None:
                while (await receive())["type"] != "websocket.disconnect":
                    pass

            hearing = asyncio.create_task(hear())
            while not hearing.done():
                if not self.answers.empty():
                    await send({"type": "websocket.send", "bytes": self.answers.get_nowait()})
                await asyncio.sleep(0)
            hearing.result()

        async def out(message: dict[str, Any]) -> None:
            self.out.append(message["bytes"])

        await speed.FiguresFirst(streamlit)(
            {"type": "websocket", "path": speed.STREAM_PATH}, self.asked.get, out
        )


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def asked_for(*, by_itself: bool = False) -> BackMsg:
    message = BackMsg()
    message.rerun_script.is_auto_rerun = by_itself
    return message


def test_what_streamlit_says_waits_for_the_figure_and_for_no_longer(monkeypatch):
    async def one_session() -> None:
        monkeypatch.setattr(speed, "MAX_WAIT_SECONDS", 3600.0)
        monkeypatch.setattr(speed, "MIN_OPEN_SECONDS", 0.0)
        monkeypatch.setattr(speed.st, "session_state", {})
        monkeypatch.setattr(streamlit_internals, "get_session_id", lambda: "mine")
        channel = speed.get_channel()
        stream = Stream("mine")
        running = asyncio.create_task(stream.run())
        await turns()
        stream.out.clear()

        async def goes_out(asks: BackMsg) -> bool:
            """Whether what Streamlit says goes out at once after the browser has asked for something."""
            stream.ask(asks)
            await turns()
            for word in (b"first", b"second"):
                stream.answers.put_nowait(word)
            await turns()
            if stream.out:
                assert stream.out == [b"first", b"second"]
            gone, stream.out = bool(stream.out), []
            return gone

        channel.send("a_figure", b"{}")
        assert await goes_out(asked_for())  # Nobody listens.
        ear = Ear(channel.token)
        listening = asyncio.create_task(ear.listen())
        async with asyncio.timeout(60):
            while not channel.listeners:
                await asyncio.sleep(0)
        assert await goes_out(asked_for())  # The last run drew no figure.
        channel.send("a_figure", b"{}")
        assert await goes_out(asked_for(by_itself=True))  # Nobody did anything.
        assert await goes_out(BackMsg(stop_script=True))
        # The figure is told, which lets nothing go, and drawn, which does, in order.
        assert not await goes_out(asked_for())
        channel.send("a_figure", b"{}")
        await turns()
        assert not stream.out
        ear.says.put_nowait({"type": "websocket.receive", "text": "drawn"})
        await turns()
        assert stream.out == [b"first", b"second"]
        stream.out.clear()
        # A run that draws nothing holds what is said for a limited time, and the run after it nothing.
        monkeypatch.setattr(speed, "MAX_WAIT_SECONDS", 0.0)
        assert await goes_out(asked_for()) or await goes_out(BackMsg(stop_script=True))
        monkeypatch.setattr(speed, "MAX_WAIT_SECONDS", 3600.0)
        assert await goes_out(asked_for())
        # A slider that is held asks again and again: a gate that was just opened is not closed.
        channel.send("a_figure", b"{}")
        assert not await goes_out(asked_for())
        monkeypatch.setattr(speed, "MIN_OPEN_SECONDS", 3600.0)
        ear.says.put_nowait({"type": "websocket.receive", "text": "drawn"})
        await turns()
        stream.out.clear()
        channel.send("a_figure", b"{}")
        assert await goes_out(asked_for())
        for queue in (stream.asked, ear.says):
            queue.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await asyncio.wait_for(asyncio.gather(running, listening), 60)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, one_session()).result()


def test_what_is_no_message_of_the_browser_asks_for_nothing():
    assert not streamlit_internals.asks_for_run(None)
    assert not streamlit_internals.asks_for_run(b"\xff\xff\xff")
    assert streamlit_internals.asks_for_run(asked_for().SerializeToString())


@pytest.mark.parametrize("payload", [None, b"\xff\xff\xff", b"", "text", ForwardMsg().SerializeToString()])
def test_what_is_no_message_of_streamlit_s_begins_no_session(payload):
    assert streamlit_internals.read_session_id(payload) == ""


@pytest.mark.parametrize("name", ["BackMsg", "ForwardMsg"])
def test_whatever_streamlit_changes_in_its_messages_goes_through(name, monkeypatch):
    """The gate costs time where it fails, never a message: here every message is of a form that is not known."""

    class Other:
        @classmethod
        def FromString(cls, payload: bytes) -> object:  # noqa: N802
            return cls()

    monkeypatch.setattr(f"streamlit.proto.{name}_pb2.{name}", Other)

    async def passes() -> None:
        stream = Stream("mine")
        running = asyncio.create_task(stream.run())
        async with asyncio.timeout(60):
            while not stream.out:
                await asyncio.sleep(0)
        stream.ask(asked_for())
        await turns()
        stream.asked.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await asyncio.wait_for(running, 60)

    with ThreadPoolExecutor() as thread:
        thread.submit(asyncio.run, passes()).result()


def test_a_browser_is_told_whether_its_session_is_still_there(monkeypatch):
    """After a lost connection the page asks, and loads itself anew where its session is another one."""
    state: dict[str, Any] = {}
    monkeypatch.setattr(speed.st, "session_state", state)
    monkeypatch.setattr(streamlit_internals, "get_session_id", lambda: "mine")
    channel = speed.get_channel()
    (route,) = [
        route for route in server.ROUTES if isinstance(route, Route) and route.path == speed.SESSION_PATH
    ]

    def ask_status(token: str) -> int:
        headers = [(speed.TOKEN_HEADER.lower().encode(), token.encode())]
        return route.endpoint(Request({"type": "http", "headers": headers})).status_code

    connected = {"mine"}
    runtime = SimpleNamespace(is_active_session=connected.__contains__)
    monkeypatch.setattr("streamlit.runtime.Runtime.instance", lambda: runtime)
    assert (ask_status(channel.token), ask_status("a guess"), ask_status("")) == (204, 404, 404)
    connected.clear()  # In memory still, and the browser was given another session.
    assert ask_status(channel.token) == 404
    # Where Streamlit no longer says which sessions it knows, the channel alone tells.
    monkeypatch.setattr("streamlit.runtime.Runtime.instance", object)
    assert (ask_status(channel.token), ask_status("a guess")) == (204, 404)
