"""What the browser is told of a figure, what it is served, and that the whole app draws figures in one way."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import math
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.io import to_json
from plotly.offline import get_plotlyjs, get_plotlyjs_version
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

import dpcore as ss
from dpcore.report import charts, labels, plotly_figures, plotly_script
from pages.shared import figure, speed
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
