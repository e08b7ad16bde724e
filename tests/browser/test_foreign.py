"""A hostile page in the person's own browser, beside the app; and the app as a public demo."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from dpcore import mean
from dpcore.common import wording
from dpcore.data import samples
from pages.shared.base import demo
from pages.shared.server.guard import DEMO_TAKES_NOTHING, WRONG_HOST
from tests import foreign
from tests.browser import browser as helpers
from tests.browser.browser import RunningApp, listen, settle
from tests.browser.conftest import browser_flags

# What a hostile page can try, each with how it ended. A websocket or a request that never ends fails the test.
ATTACK = """async ([app, decoy]) => {
    const socket = address => new Promise(done => {
        const socket = new WebSocket(address);
        socket.onopen = () => { socket.close(); done("open"); };
        socket.onerror = () => done("refused");
    });
    const read = (path, options) => fetch(app + path, options).then(() => "answered", () => "refused");
    const load = path => new Promise(done => {
        const image = new Image();
        image.onload = () => done("loaded");
        image.onerror = () => done("refused");
        image.src = app + path;
    });
    const host = app.replace("http", "ws");
    return {
        decoy: await fetch(decoy, {mode: "no-cors"}).then(() => "answered", () => "refused"),
        socket: await socket(host + "/_stcore/stream"),
        host_config: await read("/_stcore/host-config"),
        blind: await read("/_stcore/health", {mode: "no-cors"}),
        upload: await read("/_stcore/upload_file/a/b", {method: "PUT", body: "x", credentials: "include"}),
        image: await load("/favicon.png"),
    };
}"""


FRAME = """app => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.onload = done;
    frame.src = app;
    document.body.append(frame);
})"""


@pytest.fixture
def hostile_port() -> Iterator[int]:
    """Where another program on this computer serves an empty page."""

    class Serve(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>hostile</title><body>")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Serve) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def test_a_hostile_page_reaches_nothing_and_moves_nothing(
    browser: Browser, hostile_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with foreign.listening() as network, foreign.listening() as decoy:
        with monkeypatch.context() as patch:
            foreign.put_in_place_of_the_network(network, patch)
            app = helpers.start_app(tmp_path / "log")
        # A browser of its own, in which a foreign name leads to this computer, as after DNS rebinding.
        flags = [*browser_flags(), "--host-resolver-rules=MAP *.example 127.0.0.1"]
        hostile = browser.browser_type.launch(executable_path=helpers.find_browser(), args=flags)
        try:
            page = listen(hostile.new_page())
            for name in ("localhost", "evil.example"):
                page.goto(f"http://{name}:{hostile_port}")
                decoy.heard.clear()
                ended = page.evaluate(ATTACK, [app.url, f"http://127.0.0.1:{decoy.port}"])
                # Such a page does get through to this computer: what was refused, the app refused.
                assert ended.pop("decoy") == "answered"
                assert decoy.heard == ["GET / HTTP/1.1"]
                assert set(ended.values()) == {"refused"}, ended
                page.evaluate(FRAME, app.url)
                assert page.frames[1].url in {"", "chrome-error://chromewebdata/"}  # the browser's own page

            # DNS rebinding: the page's own name, now at the app's address, so that nothing is cross-origin.
            port = app.url.rpartition(":")[2]
            answer = page.goto(f"http://rebound.example:{port}/")
            assert answer is not None
            assert (answer.status, answer.text()) == (403, WRONG_HOST)
            own = f"http://rebound.example:{port}"
            assert page.evaluate(ATTACK, [own, f"http://127.0.0.1:{decoy.port}"])["socket"] == "refused"
            assert page.evaluate("fetch('/_stcore/metrics').then(answer => answer.status)") == 403

            # A link from anywhere works.
            page.goto(f"http://evil.example:{hostile_port}")
            page.evaluate("address => { location.href = address; }", f"{app.url}/mean")
            expect(page.get_by_role("heading", level=1, name="Mean")).to_be_attached()
            settle(page)
            assert page.evaluate(ATTACK, [app.url, f"http://127.0.0.1:{decoy.port}"])["socket"] == "open"
        finally:
            hostile.close()
            app.stop()
        assert network.heard == []


UPLOAD = """session => {
    const token = document.cookie.match(/_streamlit_xsrf=([^;]+)/)[1];
    const body = new FormData();
    body.append("file", new Blob(["user\\na\\n"]), "x.csv");
    return fetch("/_stcore/upload_file/" + session + "/x", {method: "PUT", body, headers: {"X-Xsrftoken": token}})
        .then(async answer => [answer.status, await answer.text()]);
}"""


def test_a_public_demo_shows_samples_and_takes_nothing(
    start_app: Callable[[], RunningApp],
    page: Page,
    app_url: str,
    expected_problems: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions: list[str] = []

    def note(payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            message = ForwardMsg.FromString(payload)
            if message.WhichOneof("type") == "new_session":
                sessions.append(message.new_session.initialize.session_id)

    def connected(socket: WebSocket) -> None:
        socket.on("framereceived", note)

    page.on("websocket", connected)
    # The very upload that a demo must refuse is one that the app takes elsewhere.
    page.goto(f"{app_url}/mean")
    settle(page)
    assert page.evaluate(UPLOAD, sessions[-1]) == [204, ""]

    monkeypatch.setenv(demo.SERVED, "1")
    app = start_app()
    assert helpers.launcher.answers(f"{app.url}/_stcore/script-health-check", helpers.START_LIMIT)
    page.goto(f"{app.url}/your-data")
    settle(page)
    page.get_by_text("Upload a file").click()
    settle(page)
    expect(page.get_by_text("This is a public demo: uploads and paths are switched off")).to_be_visible()
    expect(page.locator("input[type=file]")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Or the path of a file")).to_have_count(0)
    expected_problems.append("403")
    assert page.evaluate(UPLOAD, sessions[-1]) == [403, DEMO_TAKES_NOTHING]
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Mean").click()
    expect(page.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    settle(page)
    problem = mean.MeanProblem(
        samples.load("online-retail-lines").histogram,
        1.0,
        1.0,
        0.25,
        target=mean.Target.TABLE,
        user_share=0.2,
    )
    best = wording.counted(mean.best_cap(problem).max_contributions, "row")
    number = page.locator(".st-key-mean_card .sweetspot-number .value")
    expect(number).to_have_text(re.compile(f"^{re.escape(best)}"))
    page.remove_listener("websocket", connected)
