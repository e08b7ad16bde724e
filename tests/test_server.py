"""Who may speak to the server: the rule itself, and the real server under every way to start it."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.datastructures import UploadFile
from starlette.requests import Request
from streamlit import net_util
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed

from pages.shared.server import access, server
from pages.shared.server.access import (
    DEMO_HIDES,
    DEMO_TAKES_NOTHING,
    SIGN_IN_PAGE,
    WRONG_HOST,
    WRONG_ORIGIN,
    Guard,
    find_refusal,
)
from tests import foreign
from tests.browser import browser as helpers
from tests.http_answers import ask, open_websocket

# One worker runs all of them, so that each server is started once.
pytestmark = pytest.mark.xdist_group("server")

ROOT = Path(__file__).resolve().parent.parent
OWN = "127.0.0.1:8501"
DEMO = "https://demo.example.org"


def scope(kind: str = "http", method: str = "GET", scheme: str = "http", **headers: str) -> dict[str, object]:
    """A request to this computer; `Host` is ours unless it is given."""
    named = {"host": OWN} | {name.replace("_", "-"): value for name, value in headers.items()}
    return {
        "type": kind,
        "method": method,
        "scheme": {"http": "ws", "https": "wss"}[scheme] if kind == "websocket" else scheme,
        "path": "/",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_only_this_computers_own_pages_are_answered(kind):
    for host in (OWN, "localhost:8501", "LOCALHOST:9000", "[::1]:8501", "127.0.0.1"):
        assert find_refusal(scope(kind, host=host), frozenset(), False) == ""
        own_text = f"http://{host}"
        assert find_refusal(scope(kind, host=host, origin=own_text), frozenset(), False) == ""
        assert (
            find_refusal(scope(kind, host=host, origin=own_text.replace("http", "https")), frozenset(), False)
            == WRONG_ORIGIN
        )
    for host in (
        "evil.example:8501",
        "127.0.0.1.evil.example:8501",
        "localhost.evil.example",
        "localhost.",
        "0.0.0.0:8501",
        "127.0.0.2:8501",
        "127.0.0.1:8501@evil.example",
        "evil.example@127.0.0.1:8501",
        "127.0.0.1:8501,evil.example",
        "127.0.0.1:8501/x",
        "127.0.0.1:",
        "",
    ):
        assert find_refusal(scope(kind, host=host), frozenset(), False) == WRONG_HOST
        # DNS rebinding: the browser takes the foreign page for the same origin as the app.
        assert find_refusal(scope(kind, host=host, origin=f"http://{host}"), frozenset(), False) == WRONG_HOST
    for origin in (
        "http://evil.example",
        "http://127.0.0.1:8502",  # another program's page on this computer
        "http://127.0.0.1",
        "http://localhost:8501",  # may be another program, on ::1
        "https://127.0.0.1:8501",
        "http://127.0.0.1:8501.evil.example",
        "null",
        "",
    ):
        assert find_refusal(scope(kind, origin=origin), frozenset(), False) == WRONG_ORIGIN
    assert find_refusal(scope(kind, origin=f"https://{OWN}", scheme="https"), frozenset(), False) == ""


def test_a_host_is_named_exactly_once_and_every_origin_counts():
    for extra, refusal in ((b"host", WRONG_HOST), (b"origin", "")):
        twice = scope(origin=f"http://{OWN}")
        own = OWN.encode() if extra == b"host" else f"http://{OWN}".encode()
        twice["headers"] = [*twice["headers"], (extra, own)]
        assert find_refusal(twice, frozenset(), False) == refusal
    two = scope(origin=f"http://{OWN}")
    two["headers"] = [*two["headers"], (b"origin", b"http://evil.example")]
    assert find_refusal(two, frozenset(), False) == WRONG_ORIGIN
    none = scope()
    none["headers"] = []
    assert find_refusal(none, frozenset(), False) == WRONG_HOST


def test_other_pages_may_link_here_and_do_nothing_else():
    for site in ("cross-site", "same-site"):
        for mode, dest, refusal in (
            ("navigate", "document", ""),
            ("navigate", "iframe", WRONG_ORIGIN),
            ("navigate", "object", WRONG_ORIGIN),
            ("no-cors", "image", WRONG_ORIGIN),
            ("no-cors", "script", WRONG_ORIGIN),
            ("cors", "empty", WRONG_ORIGIN),
        ):
            request = scope(sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest)
            assert find_refusal(request, frozenset(), False) == refusal, (site, mode, dest)
    for site in ("none", "same-origin"):
        assert find_refusal(scope(sec_fetch_site=site, sec_fetch_mode="cors"), frozenset(), False) == ""


def test_a_demo_answers_at_its_own_addresses_and_takes_nothing():
    public = frozenset({DEMO, "http://other.example:8080"})
    behind = {"host": "demo.example.org"}
    assert find_refusal(scope(**behind, origin=DEMO), public, True) == ""
    assert find_refusal(scope(origin=DEMO), public, True) == ""  # the proxy put its own name for us into Host
    assert find_refusal(scope(host="other.example:8080"), public, True) == ""
    assert find_refusal(scope(origin=f"http://{OWN}"), public, True) == ""
    assert find_refusal(scope(**behind, origin="http://demo.example.org"), public, True) == WRONG_ORIGIN
    assert find_refusal(scope(**behind, origin="http://other.example:8080"), public, True) == WRONG_ORIGIN
    assert find_refusal(scope(host="other.example"), public, True) == WRONG_HOST
    for method in ("PUT", "POST", "DELETE", "PATCH", "OPTIONS", "put"):
        assert find_refusal(scope(method=method), public, True) == DEMO_TAKES_NOTHING
        assert find_refusal(scope(method=method), public, False) == ""
    assert find_refusal(scope(method="HEAD"), public, True) == ""
    for path in ("metrics", "agent/openapi.json", "agent/mcp", "upload_file/a/b", "healthy", "x/../metrics"):
        request = {**scope(**behind), "path": f"/_stcore/{path}"}
        assert find_refusal(request, public, True) == DEMO_HIDES
        assert find_refusal({**request, "path": f"//_stcore/{path}"}, public, True) == DEMO_HIDES
        assert find_refusal({**scope(), "path": f"/_stcore/{path}"}, public, False) == ""
    for path in ("health", "host-config", "stream", "bidi-components/a/b.js"):
        assert find_refusal({**scope(**behind), "path": f"/_stcore/{path}"}, public, True) == ""
    # The container's check of health, and nobody else's.
    health = {"path": "/_stcore/script-health-check"}
    assert find_refusal({**scope(), **health}, public, True) == ""
    assert find_refusal({**scope(**behind), **health}, public, True) == DEMO_HIDES


def test_addresses_of_a_demo_are_read_as_browsers_write_them():
    def read(text: str, served: str = "1") -> frozenset[str]:
        return access.read_public_origins({access.ORIGINS: text, access.SERVED: served})

    assert read("") == read("", "") == frozenset()
    assert read(f" {DEMO.upper()}/, http://[2001:db8::1]:8501") == {DEMO, "http://[2001:db8::1]:8501"}
    assert read("https://a.example:443 http://b.example:80 http://c.example:443") == {
        "https://a.example",
        "http://b.example",
        "http://c.example:443",
    }
    for wrong in (
        "demo.example.org",
        "*",
        "https://*.example.org",
        f"{DEMO}/path",
        "https://",
        "null",
        "ws://a.b",
    ):
        with pytest.raises(access.SettingsError, match="as a browser shows it"):
            read(f"{DEMO} {wrong}")
    for unserved in ("", "0"):
        with pytest.raises(access.SettingsError, match="SWEETSPOT_SERVED=1"):
            read(DEMO, unserved)
    # A word that was meant as yes must not leave uploads on.
    assert all(access.is_served({access.SERVED: word}) for word in ("1", "true", "yes", "on"))
    assert not any(access.is_served(settings) for settings in ({}, {access.SERVED: ""}, {access.SERVED: "0"}))


def test_what_was_judged_here_never_reaches_streamlits_look_up(monkeypatch):
    passed = []

    async def inner(scope, _receive, _send):
        passed.append({name.decode(): value.decode() for name, value in scope["headers"]})

    guard = Guard(inner, public_origins=frozenset({DEMO}), is_demo=True, content_policy="")
    own_text = f"http://{OWN}"
    for headers in ({"origin": own_text}, {"host": "demo.example.org", "origin": DEMO}, {"origin": DEMO}, {}):
        # In a thread of its own: where browser tests have run before, an event loop runs in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(
                asyncio.run, guard(scope("websocket", cookie="a=b", **headers), None, None)
            ).result()
    assert [headers["cookie"] for headers in passed] == ["a=b"] * 4
    monkeypatch.setattr(net_util, "_external_ip", None)
    with foreign.listen() as network:
        foreign.redirect_network(network, monkeypatch)
        assert all(_is_origin_allowed(headers.get("origin"), headers["host"]) for headers in passed)
        assert network.requests == []
        # Streamlit itself asks for this computer's address, and what answers is then an allowed origin.
        assert not _is_origin_allowed("http://evil.example", OWN)
        assert _is_origin_allowed(f"http://{foreign.PUBLIC_ADDRESS}", OWN)
        assert network.requests


def plainly(port: int) -> list[str]:
    options = ["--server.port", str(port), "--server.headless", "true"]
    return [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), *options]


AS_ANOTHER_USER = """
import os, sys
os.geteuid = lambda: 1000
from dpcore.cli.command import main
sys.exit(main(sys.argv[1:]))
"""


def in_a_container(port: int) -> list[str]:
    """The command of the container in the documentation, on another port, as if another user than root started it."""
    text = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    python, dash_m, package, *options = json.loads(command)
    assert (python, dash_m, package) == ("python", "-m", "dpcore")
    options[options.index("8501")] = str(port)
    return [sys.executable, "-c", AS_ANOTHER_USER, *options]


def wait_until_announced(running: helpers.RunningApp) -> None:
    """Wait until the command has said where the app is: it says so some time after the app first answers."""
    deadline = time.monotonic() + helpers.START_LIMIT
    while "Sweet Spot is at" not in running.output():
        assert time.monotonic() < deadline, running.output()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def network() -> Iterator[foreign.Listener]:
    """What the servers of this module meet where they would ask other computers."""
    with foreign.listen() as listener, pytest.MonkeyPatch.context() as patch:
        foreign.redirect_network(listener, patch)
        yield listener


@pytest.fixture(scope="module", params=["as make app does", "streamlit run app.py", "as a demo"])
def app(
    request: pytest.FixtureRequest, network: foreign.Listener, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[helpers.RunningApp]:
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "as a demo":
            patch.setenv(access.SERVED, "1")
            patch.setenv(access.ORIGINS, DEMO)
        if request.param == "as make app does":
            running = helpers.start_app(folder / "log")
        elif request.param == "as a demo":
            running = helpers.start_app(folder / "log", in_a_container)
            wait_until_announced(running)
        else:
            running = helpers.start_app(folder / "log", plainly, cwd=folder)
    yield running
    running.stop()


def directives(policy: str) -> dict[str, list[str]]:
    """Return the sources of each directive of a Content-Security-Policy."""
    words = [directive.split() for directive in policy.split(";")]
    return {name: sources for name, *sources in words}


@pytest.mark.long_but("streamlit run app.py")
def test_foreign_pages_get_a_refusal_and_nothing_else(app, network):
    index = ask(app.url, "/").body
    script = re.search(r'src="\./(static/[^"]+\.js)"', index)
    assert script
    inline = re.findall(r"<script>(.*?)</script>", index + SIGN_IN_PAGE, re.DOTALL)
    sha256 = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline]
    digests = [f"'sha256-{digest}'" for digest in sha256]
    assert len(digests) == 2
    paths = ["/", "/mean", "/_stcore/health", "/_stcore/host-config", "/_stcore/metrics", f"/{script[1]}"]
    paths += [
        "/_stcore/script-health-check",
        "/_stcore/agent/openapi.json",
        "/media/x.csv",
        "/component/x/y",
        "//x",
    ]
    is_demo = ask(app.url, "/", host="demo.example.org").status == 200
    hidden = {"/_stcore/metrics", "/_stcore/agent/openapi.json"} if is_demo else set()
    for path in paths:
        own = ask(app.url, path)
        assert (own.status == 403, own.body == DEMO_HIDES) == (path in hidden, path in hidden), path
        refused = [
            ask(app.url, path, host="evil.example:8501"),
            ask(app.url, path, origin="http://evil.example"),
        ]
        # Whoever watches over servers asks by a name of their own, and hears whether it is up.
        foreign_host = (200, "ok") if path == "/_stcore/health" else (403, WRONG_HOST)
        assert [(entry.status, entry.body) for entry in refused] == [foreign_host, (403, WRONG_ORIGIN)], path
        for entry in (own, *refused):  # never in a frame
            policy = directives(entry.headers["content-security-policy"])
            assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == ["'none'"], path
            assert policy["default-src"] == ["'self'"], path
            assert sorted(policy["script-src"]) == sorted(["'self'", "blob:", *digests]), path
            assert entry.headers["x-frame-options"] == "DENY", path
            assert entry.headers["cross-origin-resource-policy"] == "same-origin", path
            assert entry.headers["cross-origin-opener-policy"] == "same-origin", path
            assert "access-control-allow-origin" not in entry.headers, path
    health = "/_stcore/health"
    answers = [
        ask(app.url, health, host="evil.example", cookie="a=b"),
        ask(app.url, health, "HEAD", host="evil.example"),
    ]
    answers += [ask(app.url, health, host="10.1.2.3:8501", sec_fetch_site="none")]
    assert [(entry.status, entry.body) for entry in answers] == [(200, "ok"), (200, ""), (200, "ok")]
    usual = {"content-type", "content-length", "cache-control", "date", "server", "content-security-policy"}
    usual |= {"x-frame-options", "cross-origin-resource-policy", "cross-origin-opener-policy"}
    assert all(set(entry.headers) <= usual for entry in answers)
    for item in ({"method": "POST"}, {"method": "OPTIONS"}, {"origin": "http://evil.example"}):
        assert ask(app.url, health, host="evil.example", **item).body == WRONG_HOST
    assert ask(app.url, f"{health}/x", host="evil.example").body == WRONG_HOST
    upload = {"method": "PUT", "content_length": "150000000"}
    assert ask(app.url, "/_stcore/upload_file/a/b", host="evil.example", **upload).body == WRONG_HOST
    assert (
        ask(app.url, "/_stcore/upload_file/a/b", origin="http://evil.example", **upload).body == WRONG_ORIGIN
    )

    port = app.url.rpartition(":")[2]
    output_before = app.output()
    assert open_websocket(app.url, origin=app.url).status == 101
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": f"http://{foreign.PUBLIC_ADDRESS}"},
        {"origin": f"http://127.0.0.1:{int(port) + 1}"},
        {"origin": f"http://localhost:{port}"},
        {"origin": f"https://127.0.0.1:{port}"},
        {"origin": "null"},
        {"host": f"evil.example:{port}", "origin": f"http://evil.example:{port}"},
    ):
        refused = open_websocket(app.url, **headers)
        assert (refused.status, refused.body) == (403, ""), headers
    assert network.requests == []
    assert app.output() == output_before


@pytest.mark.long
def test_a_demo_refuses_uploads_before_it_reads_them(app):
    served = "/_stcore/upload_file/a/b"
    answer = ask(app.url, served, method="PUT", content_length="150000000")
    is_demo = ask(app.url, "/", host="demo.example.org").status == 200
    assert (answer.status, answer.body == DEMO_TAKES_NOTHING) == (403, is_demo)
    assert (answer.headers.get("connection") == "close") == is_demo
    port = app.url.rpartition(":")[2]
    for headers in ({"host": "demo.example.org"}, {"host": f"127.0.0.1:{port}"}):
        assert open_websocket(app.url, origin=DEMO, **headers).status == (101 if is_demo else 403)


@pytest.mark.long
def test_uploads_are_read_without_a_disk(monkeypatch):
    content = os.urandom(1 << 16) * 200  # 13 MB; Starlette alone would write what is above 1 MB to a file
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    pieces = iter(
        [head, *(content[at : at + 65_536] for at in range(0, len(content), 65_536)), b"\r\n--x--\r\n"]
    )

    async def receive() -> dict[str, object]:
        piece = next(pieces, b"")
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    async def uploaded() -> bytes:  # as Streamlit's route has it
        request = scope(method="PUT", content_type="multipart/form-data; boundary=x")
        async with Request(request, receive).form() as form:
            file = form["file"]
            assert isinstance(file, UploadFile)
            return await file.read()

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert server.MAIN_SCRIPT.is_file()  # to import the module is what settles it
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with ThreadPoolExecutor() as thread:  # Playwright leaves a running loop in the worker's main thread
        assert thread.submit(asyncio.run, uploaded()).result() == content


@pytest.mark.long
def test_a_demo_with_wrong_settings_does_not_start(tmp_path):
    environment = {**os.environ, access.SERVED: "1", access.ORIGINS: "demo.example.org"}
    port = helpers.launcher.choose_port(40000 + os.getpid() % 20000)
    done = subprocess.run(
        plainly(port), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode != 0
    assert "Sweet Spot does not start: SWEETSPOT_ORIGINS holds demo.example.org." in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.long
def test_the_launcher_starts_what_was_tested_here_from_any_folder(network, tmp_path):
    make = shutil.which("make")
    assert make
    # Only what would be done: where the set-up is older than the requirements, it would begin anew.
    # `make test` hands its own flags down, and a make within another says which folder it enters and leaves.
    outside = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    planned = subprocess.run(
        [make, "-n", "app"], cwd=ROOT, env=outside, capture_output=True, text=True, check=True, timeout=60
    )
    assert planned.stdout.splitlines()[-1].strip() == ".venv/bin/python -m dpcore"

    # Another project's settings and modules, where it is started from, are not its own.
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(
        '[server]\naddress = "0.0.0.0"\nbaseUrlPath = "elsewhere"\nmaxUploadSize = 1\n', encoding="utf-8"
    )
    (tmp_path / "pages.py").write_text("raise SystemExit", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SWEETSPOT_NO_BROWSER": "1", "SWEETSPOT_TOKEN": ""}
    with subprocess.Popen(
        [sys.executable, "-m", "dpcore"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        address_line = next((line for line in process.stdout if " is at " in line), "")
        try:
            (url,) = re.findall(r"http://127\.0\.0\.1:\d+", address_line)
            assert ask(url, "/").headers["x-frame-options"] == "DENY"
            assert ask(url, "/", host="evil.example:8501").body == WRONG_HOST
            assert open_websocket(url, origin="http://evil.example").status == 403
            assert open_websocket(url, origin=url).status == 101
        finally:
            os.killpg(process.pid, signal.SIGINT)  # Ctrl-C goes to the server, too
            rest, _ = process.communicate(timeout=600)
        assert rest.endswith("\nSweet Spot has stopped.\n"), (process.returncode, rest)
        assert "Traceback" not in rest
        assert process.returncode == 0
    assert network.requests == []


@pytest.mark.long
def test_linear_algebra_has_one_thread_since_numpy_comes_after_the_server() -> None:
    program = (
        "import os, sys, streamlit, pages.shared.server.server; "
        "print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {name: text for name, text in os.environ.items() if not name.endswith("_NUM_THREADS")}
    output = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["False", "1"]
