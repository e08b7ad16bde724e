"""A hostile page in the person's own browser, beside the app."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from pages.shared.server.access import WRONG_HOST
from tests import foreign
from tests.browser import browser as helpers
from tests.browser.browser import listen, settle
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


@pytest.mark.long
def test_a_hostile_page_reaches_nothing_and_moves_nothing(
    browser: Browser, hostile_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with foreign.listen() as network, foreign.listen() as decoy:
        with monkeypatch.context() as patch:
            foreign.redirect_network(network, patch)
            app = helpers.start_app(tmp_path / "log")
        # A browser of its own, in which a foreign name leads to this computer, as after DNS rebinding.
        flags = [*browser_flags(), "--host-resolver-rules=MAP *.example 127.0.0.1"]
        hostile = browser.browser_type.launch(executable_path=helpers.find_browser(), args=flags)
        try:
            page = listen(hostile.new_page())
            for name in ("localhost", "evil.example"):
                page.goto(f"http://{name}:{hostile_port}")
                decoy.requests.clear()
                value = page.evaluate(ATTACK, [app.url, f"http://127.0.0.1:{decoy.port}"])
                # Such a page does get through to this computer: what was refused, the app refused.
                assert value.pop("decoy") == "answered"
                assert decoy.requests == ["GET / HTTP/1.1"]
                assert set(value.values()) == {"refused"}, value
                page.evaluate(FRAME, app.url)
                assert page.frames[1].url in {"", "chrome-error://chromewebdata/"}  # the browser's own page

            # DNS rebinding: the page's own name, now at the app's address, so that nothing is cross-origin.
            port = app.url.rpartition(":")[2]
            answer = page.goto(f"http://rebound.example:{port}/")
            assert (answer.status, answer.text()) == (403, WRONG_HOST)
            own_text = f"http://rebound.example:{port}"
            assert page.evaluate(ATTACK, [own_text, f"http://127.0.0.1:{decoy.port}"])["socket"] == "refused"
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
        assert network.requests == []
