"""What the browser is told of a figure, what it is served, and that the whole app draws figures in one way."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import json
import math
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.io import to_json
from plotly.offline import get_plotlyjs, get_plotlyjs_version
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

import dpcore as ss
from dpcore.report import charts, labels, plotly_figures, plotly_script
from pages.shared import figure, speed, streamlit_internals
from pages.shared.base import catalogue, keys
from pages.shared.server import server
from tests.pages.driving import chart, check, list_figure_keys, open_app, trace
from tests.pages.driving import go as go_to

ROOT = Path(__file__).resolve().parents[3]


def read_message(fig: go.Figure, **options: Any) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON: no browser reads it")

    message: dict[str, Any] = json.loads(
        figure.build_message(fig, alt="What it shows.", fileName="name-of-file", **options),
        parse_constant=refuse,
    )
    return message


def plain(value: Any) -> Any:
    """A figure as JSON with its arrays as lists, whatever their type."""
    if isinstance(value, dict) and "bdata" in value:
        shape = [int(length) for length in value["shape"].split(",")] if "shape" in value else [-1]
        return np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).reshape(shape).tolist()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "column",
    [
        np.geomspace(1e-300, 1e300, 5),
        np.array([1.0, np.nan, np.inf]),
        np.arange(6.0, dtype=np.float32).reshape(2, 3),
        np.array([-1, 200]),
        np.array([0, 2**40]),
        np.array([2**63], dtype=np.uint64),
        np.arange(5)[::2],
        np.array([True, False]),
        np.array(["a", "b"]),
        np.array([]),
        [1.0, math.nan],
        [None, "a"],
        (np.float64(2.5), np.int64(3)),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
    ],
    ids=lambda column: f"{getattr(column, 'dtype', type(column).__name__)}",
)
def test_a_figure_is_written_as_plotly_writes_it(column, monkeypatch):
    layout = {"height": 9, "xaxis": {"range": np.array([0.5, 2.0])}}
    fig = go.Figure({"data": [{"type": "scatter", "y": column}], "layout": layout}, _validate=False)
    their_content, calls = json.loads(to_json(fig, validate=False)), []
    monkeypatch.setattr(
        "plotly.io.to_json", lambda *settings, **options: (calls.append(1), to_json(*settings, **options))[1]
    )
    ours = read_message(fig)["figure"]
    # Compared as text: NaN is not itself.
    assert repr(plain(ours)) == repr(plain(their_content))
    assert ours["layout"]["xaxis"]["range"] == [0.5, 2.0]
    # Plotly is asked for what JSON has no word for, and for nothing else.
    no_word = (
        math.nan in column if isinstance(column, list) else getattr(column, "dtype", None) == "datetime64[D]"
    )
    assert calls == [1] * no_word


def test_the_browser_gets_every_digit_and_all_that_it_needs():
    x, y = np.geomspace(1.0, 1e9, 500), np.random.default_rng(1).normal(size=500)
    fig = charts.Sketch(
        plotly_figures.build_log_axis("x", (1.0, 1e9)),
        plotly_figures.build_linear_axis("y", (-4.0, 4.0)),
        333,
    ).to_figure()
    fig.add_trace(go.Scatter(plotly_figures.build_trace("A curve", x, y, "%{y}", mode="lines")))
    message = read_message(fig, csv="a_csv", ghost=True, key="a_figure", channel="a token")
    drawn_x, drawn_y = trace(message["figure"], "A curve")
    assert np.array_equal(drawn_x, x)
    assert np.array_equal(drawn_y, y)
    rest = {name: message[name] for name in message if name != "figure"}
    assert rest == {
        "alt": "What it shows.",
        "fileName": "name-of-file",
        "csv": "a_csv",
        "ghost": True,
        "height": 333,
        "key": "a_figure",
        "channel": "a token",
    }


def test_a_message_of_five_curves_is_small():
    x = np.geomspace(1.0, 1e9, 500)
    fig = charts.Sketch(
        plotly_figures.build_log_axis("x", (1.0, 1e9)), plotly_figures.build_log_axis("y", (1.0, 1e9))
    ).to_figure()
    for name in "abcde":
        fig.add_trace(go.Scatter(plotly_figures.build_trace(name, x, x, "%{y}", mode="lines")))
    # 2 x 500 numbers of 8 bytes are 10,667 signs of base64; the rest is the layout.
    assert len(figure.build_message(fig, alt="alt", fileName="name")) < 5 * 10_700 + 7_000
    assert len(figure._build_loader()) < 640


class Answer:
    """The answer of an ASGI app to one GET."""

    def __init__(self, app: Any, path: str, **headers: str) -> None:
        sent: list[dict[str, Any]] = []
        requests: list[bool] = []
        given = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": given,
            "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2),
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            # A file's sender waits beside for the browser to leave, which this one does not.
            if requests:
                await asyncio.Event().wait()
            requests.append(True)
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        # In a thread of its own: where browser tests have run before, an event loop runs in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, app(scope, receive, send)).result()
        self.status = sent[0]["status"]
        self.headers = [(name.decode(), text.decode()) for name, text in sent[0]["headers"]]
        self.body = b"".join(message.get("body", b"") for message in sent[1:])

    def header(self, name: str) -> str:
        return ", ".join(text for header, text in self.headers if header == name)


def test_our_plotly_is_of_the_version_that_the_package_was_made_for(monkeypatch):
    script = plotly_script.find_script()
    assert script.parent == plotly_script.FOLDER
    text = script.read_text(encoding="utf-8")
    assert f'version="{get_plotlyjs_version()}"' in text
    for item in plotly_script.TRACE_TYPES:
        assert f'moduleType:"trace",name:"{item}"' in text, item
    # Another version of the package has its own script until ours is made anew.
    monkeypatch.setattr(plotly_script, "get_plotlyjs_version", lambda: "99.0.0")
    other = plotly_script.find_script.__wrapped__()
    assert other.read_text(encoding="utf-8") == get_plotlyjs()


def test_plotlys_script_is_served_packed_plain_and_not_twice():
    app = Starlette(routes=server.ROUTES)
    address = figure.PLOTLY_SCRIPT.address
    plain_answer, packed = Answer(app, address), Answer(app, address, accept_encoding="br, gzip")
    assert plain_answer.body == plotly_script.find_script().read_bytes()
    assert packed.header("content-encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain_answer.body
    assert len(packed.body) < 0.35 * len(plain_answer.body)
    for answer in (plain_answer, packed):
        assert answer.header("content-type").startswith("text/javascript")
        assert "immutable" in answer.header("cache-control")
        assert answer.header("vary") == "Accept-Encoding"
    again = Answer(app, address, if_none_match=plain_answer.header("etag"))
    assert (again.status, again.body) == (304, b"")
    assert Answer(app, address, if_none_match='"other"').body == plain_answer.body


def test_the_loader_asks_for_what_is_served_and_an_edited_script_has_another_address(tmp_path):
    served = {route.path for route in server.ROUTES if isinstance(route, Route | WebSocketRoute)}
    addresses = set(re.findall(r'"(/assets/[^"]+)"', figure._build_loader()))
    assert addresses == {figure.PLOTLY_SCRIPT.address, figure.FIGURE_SCRIPT.address, speed.SOCKET_PATH}
    assert addresses <= served
    text = b"\n".join(file.read_bytes() for file in figure.FIGURE_SCRIPT.paths)
    assert Answer(Starlette(routes=server.ROUTES), figure.FIGURE_SCRIPT.address).body == text
    edited = tmp_path / "figure.js"
    edited.write_bytes(figure.FIGURE_SCRIPT.paths[-1].read_bytes() + b"\n")
    address = figure.ServedScript("figure", figure.FIGURE_SCRIPT.paths[-1:]).address
    assert figure.ServedScript("figure", (edited,)).address != address


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


def test_streamlits_own_scripts_are_answered_as_streamlit_answers_them():
    own = Starlette(routes=create_streamlit_static_assets_routes(None))
    passed = []

    async def streamlit(scope, receive, send):
        passed.append(scope["path"])
        await own(scope, receive, send)

    frontend = speed.Frontend(streamlit)
    page = Answer(own, "/").body.decode()
    addresses = [f"/{name}" for name in re.findall(r'"\./(static/[^"]+)"', page)]
    assert len(addresses) > 40
    for address in addresses:
        answer, other_answer = Answer(frontend, address), Answer(own, address)
        assert answer.body == other_answer.body
        for name in ("content-type", "content-length"):
            assert answer.header(name) == other_answer.header(name), address
        assert {"immutable", "public", "max-age=31536000"} == set(answer.header("cache-control").split(", "))
    assert passed == []
    # All else is Streamlit's: pages, names without a digest of their content, parts, what may not have changed.
    known = addresses[0]
    for path, headers in (
        ("/", {}),
        ("/favicon.png", {}),
        ("/static/js/index.00000000.js", {}),
        ("/static/../static/js/../index.html", {}),
        (f"/x{known}", {}),
        (known, {"range": "bytes=0-10"}),
        (known, {"if_none_match": "a"}),
    ):
        passed.clear()
        assert Answer(frontend, path, **headers).status == Answer(own, path, **headers).status
        assert passed == [path]


def test_only_a_page_announces_the_scripts():
    app = figure.EarlyScripts(
        Starlette(
            routes=[
                Route("/", lambda _: HTMLResponse("page")),
                Route("/text", lambda _: PlainTextResponse("text")),
            ]
        )
    )
    link = Answer(app, "/").header("link")
    assert f"<{figure.PLOTLY_SCRIPT.address}>; rel=preload; as=script" in link
    assert f"<{figure.FIGURE_SCRIPT.address}>; rel=modulepreload" in link
    assert Answer(app, "/text").header("link") == ""


def test_a_figure_keeps_its_element_while_the_question_changes():
    app = open_app("Home")
    proto, figure_before = app.get_by_key("figure_start_tradeoff").proto, chart(app, "start_tradeoff")
    check(app.number_input(key="epsilon").set_value(3.0).run())
    other, figure_after = app.get_by_key("figure_start_tradeoff").proto, chart(app, "start_tradeoff")
    assert figure_before["data"] != figure_after["data"]
    # By its id the browser knows it again; other scripts would make it another component.
    assert other.id == proto.id
    assert other.js_content == proto.js_content


@pytest.mark.parametrize("call", ["plotly_chart", "altair_chart", "line_chart", "pyplot"])
def test_figures_are_drawn_in_one_way(call):
    drawing = re.compile(rf"\.{call}\(")
    files = [
        path for path in (ROOT / "pages").rglob("*.py") if drawing.search(path.read_text(encoding="utf-8"))
    ]
    assert files == []


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


@pytest.mark.parametrize("title", ["Weights vs. caps", "Bias curves over τ₀", "Multi-task weights"])
def test_paper_notation_is_one_switch_for_all_pages_and_changes_words_only(title):
    app = open_app(title)
    key = list_figure_keys(app)[0]
    before = chart(app, key)
    check(app.toggle(key=keys.PAPER_NOTATION).set_value(True).run())
    after = chart(app, key)
    symbols = next(page for page in catalogue.PAGES if page.title == title).symbols_by_phrase
    drawn_before, drawn_after = (
        {
            trace["name"]: (trace["x"], trace["y"])
            for trace in figure["data"]
            if trace["x"] != [None] and labels.LABEL_NAME_SUFFIX not in trace["name"]
        }
        for figure in (before, after)
    )
    assert {symbols.get(name, name): values for name, values in drawn_before.items()} == drawn_after
    assert drawn_before.keys() != drawn_after.keys()
    headings = [
        [figure["layout"][axis]["title"]["text"] for axis in ("xaxis", "yaxis")] for figure in (before, after)
    ]
    assert all(old != new for old, new in zip(*headings, strict=True))
    go_to(app, "Multi-task weights")
    assert app.toggle(key=keys.PAPER_NOTATION).value


def test_every_symbol_of_a_paper_stands_for_words_of_a_main_figure():
    rows, pairs = [1] * 90 + [10] * 10, pd.DataFrame({"user": list("aabc"), "task": list("xyxy")})
    replies = {
        "gap_examples": [ss.weights_gain(rows, epsilon=1)],
        "learning": [ss.learning_bound(rows, epsilon=1, cap_unit=unit) for unit in ("tau_0", "rows")],
        "multitask": [ss.task_weights(pairs, user="user", group="task", epsilon=1)],
    }
    for question in (page for page in catalogue.PAGES if page.symbols_by_phrase):
        words = set()
        for reply in replies[question.name]:
            plot = next(iter(reply.answer.plots.values()))()
            axes = [axis for one in (plot, plot.lower_plot) if one for axis in (one.x, one.y)]
            words |= {plot.title, *(item.name for item in plot.items)}
            words |= {word for axis in axes for word in (axis.name, axis.heading)}
        assert set(question.symbols_by_phrase) <= words, question.name
