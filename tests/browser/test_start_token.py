"""The app as a person starts it: the link of this start opens it, and leaves no trace in the browser."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import browser as helpers
from tests.browser.browser import listen, settle
from tests.http_answers import ask, open_websocket

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="processes are read from /proc"
)

LAUNCH = """
import os, sys
sys.path[:0] = ["{root}"]
from dpcore.common import workspace as browser
from dpcore.cli import launch
browser._may_read_files = lambda: True
launch.choose_port.__defaults__ = ({port},)
sys.exit(launch.main())
"""
OTHER_TOKEN = "the-token-of-another-server-here"


@contextmanager
def launched(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """Start the app with a browser that only notes its argument; yields process, printed lines and that file."""
    noted = folder / "noted"
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{noted}"\n', encoding="utf-8")
    browser.chmod(0o700)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SWEETSPOT_")}
    program = LAUNCH.format(root=helpers.ROOT, port=40000 + os.getpid() % 20000)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**environment, "BROWSER": f"{browser} %s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        output = ""
        for line in process.stdout:
            output += line
            if " is at " in line:
                break
        try:
            address = noted.read_text(encoding="utf-8")
            assert address.startswith("file://"), output
            yield process, output, Path(url2pathname(urlsplit(address).path))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(60)


def command_lines() -> list[str]:
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes().decode(errors="replace"))
        except OSError:  # It has ended meanwhile.
            continue
    return lines


def history(page: Page) -> list[str]:
    session = page.context.new_cdp_session(page)
    return [entry["url"] for entry in session.send("Page.getNavigationHistory")["entries"]]


@pytest.mark.long
def test_the_link_opens_the_app_and_leaves_no_trace(browser: Browser, tmp_path: Path) -> None:
    with launched(tmp_path) as (process, output, file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        (token,) = set(re.findall(r'token=([\w-]{32})"', file.read_text(encoding="utf-8")))
        (url,) = re.findall(r"is at (http://127\.0\.0\.1:\d+) ", output)
        # The server is among them, and no command line says more than what everybody may read.
        assert any(f"--server.port\0{url.rpartition(':')[2]}" in line for line in command_lines())
        assert not [line for line in command_lines() if token in line]
        for path in ("/", "/mean", "/_stcore/host-config", "/_stcore/script-health-check", "/media/x.csv"):
            assert ask(url, path).status == 403
        assert open_websocket(url, origin=url).status == 403
        assert open_websocket(url, origin=url, cookie=f"sweetspot-1={token}").status == 101

        context = browser.new_context()
        problems: list[str] = []
        page = listen(context.new_page())
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(file.as_uri())
        expect(page.get_by_role("heading", level=1)).to_be_attached()
        settle(page)
        assert page.url.startswith(f"{url}/")
        assert "token" not in page.url
        assert not [entry for entry in history(page) if "token" in entry]
        assert token not in page.content()
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_test_id("stCode").first).to_contain_text(f"{url}/?link=")
        assert token not in page.content()
        assert page.evaluate("document.cookie.includes('sweetspot')") is False
        assert page.evaluate("document.referrer") in {"", f"{url}/"}
        (cookie,) = [one for one in context.cookies() if one["name"].startswith("sweetspot")]
        assert cookie["name"] == f"sweetspot-{url.rpartition(':')[2]}"
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert problems == []

        # Path and settings of a link are kept. The cookie of another port takes no place of this one.
        other = helpers.start_app(tmp_path / "log", SWEETSPOT_TOKEN=OTHER_TOKEN)
        try:
            page.goto(f"{other.url}/_stcore/host-config?of=all&token={OTHER_TOKEN}")
            page.wait_for_url(f"{other.url}/_stcore/host-config?of=all")
            assert "opens with the link" not in page.content()
            assert not [entry for entry in history(page) if "token" in entry]
        finally:
            other.stop()
        assert OTHER_TOKEN not in other.output()

        # A link on another site comes without the cookie; one on the page that says so brings it.
        link = tmp_path / "link.html"
        link.write_text(f'<a href="{url}/mean">link</a>', encoding="utf-8")
        page.goto(link.as_uri())
        page.get_by_role("link").click()
        page.get_by_role("link", name="continue to it").click()
        expect(page.get_by_role("heading", level=1, name="Mean")).to_be_attached()
        settle(page)
        # The Content-Security-Policy lets all scripts of a page run, and no other.
        page.wait_for_selector(".js-plotly-plot .main-svg", state="attached")
        assert not [text for text in problems if "Content Security Policy" in text]
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'ran = 1'}))"
        )
        assert page.evaluate("window.ran") is None

        page.goto("about:blank")
        stranger = browser.new_context().new_page()
        answer = stranger.goto(f"{url}/?token={'x' * 32}")
        assert answer.status == 403
        expect(stranger.get_by_text("opens with the link")).to_be_visible()
        stranger.context.close()
        context.close()

        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=600)
        assert rest.endswith("\nSweet Spot has stopped.\n"), rest
        assert token not in output + rest
        assert not file.parent.exists()
