"""The app and a browser for the tests in this folder.

A test that uses `page` also fails on console errors, page errors, requests to other computers, and exceptions
that reach the page. One that expects such a thing appends a piece of its text to `expected_problems`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.browser import browser as helpers

FLAGS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]
# Opened at /mean, Streamlit's own script asks below /mean first and then at the root, as it cannot know
# where it is mounted.
HARMLESS = re.compile(r"status of 404 .* http://[^/]+/[^/]+/_stcore/(health|host-config)$")

VIEWPORT = {"width": 1280, "height": 900}

# Playwright waits 5 seconds for what a test expects, and 30 for what it does: too little on a busy machine.
PATIENCE = 300_000
expect.set_options(timeout=PATIENCE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # One worker runs all of them: one server, one browser.
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one server that the whole session shares."""
    app = helpers.start_app(tmp_path_factory.mktemp("server") / "server.log")
    # As `make app` does: else a test that opens a page by its address meets a dialog "Page not found".
    assert helpers.launcher.answers(f"{app.url}/_stcore/script-health-check", helpers.START_LIMIT)
    yield app.url
    app.stop()


@pytest.fixture
def start_app(tmp_path: Path) -> Iterator[Callable[[], helpers.RunningApp]]:
    """A function that starts a server of the test's own, whose first request the test makes."""
    apps: list[helpers.RunningApp] = []

    def start() -> helpers.RunningApp:
        apps.append(helpers.start_app(tmp_path / f"server-{len(apps)}.log"))
        return apps[-1]

    yield start
    for app in apps:
        app.stop()


def browser_flags() -> list[str]:
    """What the browser is started with."""
    return [*FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [*FLAGS]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=helpers.find_browser(), args=browser_flags())
        yield chromium
        chromium.close()


def _server_output(url: str) -> str:
    """The end of the output of the server behind this address; the page itself says nothing of the cause."""
    outputs = [app.output() for app in helpers.started if url.startswith(app.url)]
    return "\n".join("".join(outputs).splitlines()[-30:])


@pytest.fixture
def expected_problems() -> list[str]:
    """What `page` may report without failing: append pieces of text."""
    return []


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One person's browser: it fetches and compiles the app's 7 MB of scripts once, as theirs does."""
    context = browser.new_context(accept_downloads=True, viewport=VIEWPORT)
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, expected_problems: list[str]) -> Iterator[Page]:
    """A new page, which must end without errors, exceptions and foreign requests; nothing is kept for the next."""
    page = helpers.listen(context.new_page())
    problems: list[str] = []

    def note_request(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.hostname != helpers.launcher.HOST:
            problems.append(f"request to another computer: {request.url}")

    def note_message(message: ConsoleMessage) -> None:
        text = f"console: {message.text} {message.location.get('url', '')}"
        if message.type == "error" and not HARMLESS.search(text):
            problems.append(text)

    page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
    page.on("console", note_message)
    page.on("request", note_request)
    yield page
    if not page.is_closed():
        shown = page.get_by_test_id("stException").all_inner_texts()
        problems.extend(f"exception on the page: {text}\n{_server_output(page.url)}" for text in shown)
        if page.url.startswith("http"):
            page.evaluate("localStorage.clear()")
        page.close()
    context.clear_cookies()
    unexpected = [text for text in problems if not any(piece in text for piece in expected_problems)]
    assert not unexpected, "\n".join(unexpected)
