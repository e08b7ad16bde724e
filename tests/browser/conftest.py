"""The app and a browser for the tests in this folder.

A test that uses `page` also fails on console errors, page errors, requests to other computers, and exceptions
that reach the page. One that expects such a thing appends a piece of its text to `expected_problems`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
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
# Nothing glides or fades in: drawing that for nobody takes a seventh of the browser's processor time and a tenth of
# the server's, as pages wait until it is over. Kept apart from the page's own styles, which its scripts rewrite.
STILL = """(() => {
    const still = new CSSStyleSheet();
    still.replaceSync("*, *::before, *::after { animation: none !important; transition: none !important; }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];
})()"""
# Opened at /mean, Streamlit's own script asks below /mean first and then at the root, as it cannot know
# where it is mounted.
HARMLESS = re.compile(r"status of 404 .* http://[^/]+/[^/]+/_stcore/(health|host-config)$")

Opened = Callable[..., Page]
"""Opens a file; what else is named goes to the browser's context."""

VIEWPORT = {"width": 1280, "height": 900}

# Playwright waits 5 seconds for what a test expects, and 30 for what it does: too little on a busy machine.
PATIENCE = 300_000
# Of a page whose test failed.
LINES_SHOWN = 150
WHERE_TO_LOOK = "[role='dialog'], [data-testid='stPopoverBody'], [data-testid='stMain']"
expect.set_options(timeout=PATIENCE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # Meant for one worker, one server, one browser. With pytest 9.2, xdist 3.8 does not group tests, and each
            # worker has its own.
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report what a page showed when its test failed: where it ran, nobody may be able to look."""
    report = yield
    page = getattr(item, "funcargs", {}).get("page")
    if report.failed and report.when == "call" and page is not None and not page.is_closed():
        try:
            page.mouse.move(0, 0)
            page_texts = page.locator(WHERE_TO_LOOK).all_inner_texts()
        except Error as error:  # The test's own failure is what counts.
            page_texts = [f"not to be had: {error}"]
        lines = [line for text in page_texts for line in text.splitlines() if line.strip()][:LINES_SHOWN]
        report.sections.append((f"{page.url} showed", " | ".join(lines)))
        report.sections.append(("The server said", _server_output(page.url)))
    return report


@dataclass
class Server:
    """The one server that the whole session shares; started anew, it stands at the same address."""

    app: helpers.RunningApp

    def warm(self) -> None:
        """Warm the server as `make app` does: else a page opened by its address shows a dialog "Page not found"."""
        address = f"{self.app.url}/_stcore/script-health-check"
        deadline = time.monotonic() + helpers.START_LIMIT
        # On a busy machine Streamlit itself gives up before the first run has ended.
        while not helpers.launcher.is_answering(address, helpers.START_LIMIT):
            assert time.monotonic() < deadline, self.app.output()
            time.sleep(1.0)

    def stop(self) -> None:
        """Stop the server as if its computer went down."""
        self.app.process.kill()
        self.app.process.wait()

    def start(self, **environment: str) -> None:
        """Start it anew where it stood, not warmed: its first request comes from the test."""
        port = int(self.app.url.rpartition(":")[2])
        log = self.app.log.with_name(f"server-{len(helpers.started)}.log")
        self.app = helpers.start_app(log, port=port, **environment)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield the server behind `app_url`, for tests that stop it and start it anew."""
    app_server = Server(helpers.start_app(tmp_path_factory.mktemp("server") / "server.log"))
    app_server.warm()
    yield app_server
    app_server.app.stop()


@pytest.fixture(scope="session")
def app_url(server: Server) -> str:
    """Return the address of one server that the whole session shares."""
    return server.app.url


@pytest.fixture(scope="session")
def plain_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a server without the second web socket, its gate, and our serving of Streamlit's scripts."""
    server = Server(helpers.start_app(tmp_path_factory.mktemp("plain") / "server.log", SWEETSPOT_PLAIN="1"))
    server.warm()
    yield server.app.url
    server.app.stop()


def browser_flags() -> list[str]:
    """Return the flags that the browser is started with."""
    return [*FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [*FLAGS]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=helpers.find_browser(), args=browser_flags())
        yield chromium
        chromium.close()


@pytest.fixture
def open_offline(browser: Browser) -> Iterator[Opened]:
    """Yield a function that opens a file from disk without a network; at the end it must have asked for nothing."""
    problems: list[str] = []
    contexts = []

    def open_it(file: Path, **how: object) -> Page:
        context = browser.new_context(**how)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("console", lambda m: problems.append(f"console {m.type}: {m.text}"))
        page.on("dialog", lambda d: (problems.append(f"dialog: {d.message}"), d.dismiss()))
        page.on(
            "request", lambda r: None if r.url.startswith("file:") else problems.append(f"request: {r.url}")
        )
        page.goto(file.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


def _server_output(url: str) -> str:
    """Return the end of the output of the server behind this address; the page itself says nothing of the cause."""
    outputs = [app.output() for app in helpers.started if url.startswith(app.url)]
    return "\n".join("".join(outputs).splitlines()[-30:])


@pytest.fixture
def expected_problems() -> list[str]:
    """Return a list of what `page` may report without failing: append pieces of text."""
    return []


@dataclass
class Window:
    """One page that tests use after each other, as a person uses a tab: its scripts are compiled once.

    Opening the app in a new page takes 4 s of processor time, in one that showed the app before 1.7 s.
    """

    context: BrowserContext
    home: str
    _page: Page | None = None

    def page(self) -> Page:
        """Return the page, as if it were new."""
        if self._page is None or self._page.is_closed():
            self._page = helpers.listen(self.context.new_page())
            self._leave(self._page)
        return self._page

    def clean(self, failed: bool) -> None:
        """Leave nothing for the next test; throw away what a failed one left."""
        page = self._page
        if page is None or page.is_closed():
            return
        if failed:
            page.close()
            return
        page.unroute_all(behavior="ignoreErrors")
        page.mouse.move(0, 0)
        page.emulate_media(media="null", color_scheme="light")
        if page.viewport_size != VIEWPORT:
            page.set_viewport_size(VIEWPORT)
        self._leave(page)
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.context.clear_cookies()
        self.context.clear_permissions()

    def _leave(self, page: Page) -> None:
        # A text of the same origin: from about:blank the app would be opened in a new process, compiled again.
        page.goto(f"{self.home}/_stcore/health")


def _windows(browser: Browser, app_url: str) -> Iterator[Window]:
    # Playwright evaluates in the page what it waits for, which the policy forbids; test_start_token keeps the policy.
    context = browser.new_context(accept_downloads=True, viewport=VIEWPORT, bypass_csp=True)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(STILL)
    yield Window(context, app_url)
    context.close()


@pytest.fixture(scope="session")
def window(browser: Browser, app_url: str) -> Iterator[Window]:
    """Yield one person's browser: it fetches and compiles the app's 7 MB of scripts once, as theirs does."""
    yield from _windows(browser, app_url)


@pytest.fixture(scope="session")
def window_of_another(browser: Browser, app_url: str) -> Iterator[Window]:
    """Yield another person's browser."""
    yield from _windows(browser, app_url)


@pytest.fixture
def new_window(window_of_another: Window) -> Iterator[Page]:
    """Yield a page that shares nothing with `page`, as in another person's browser."""
    yield window_of_another.page()
    window_of_another.clean(failed=False)


@pytest.fixture
def page(window: Window, expected_problems: list[str]) -> Iterator[Page]:
    """Yield a page, which must end without errors, exceptions and foreign requests; keep nothing for the next."""
    page = window.page()
    problems: list[str] = []

    def note_error(error: Error) -> None:
        problems.append(f"page error: {error}")

    def note_request(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.hostname != helpers.launcher.HOST:
            problems.append(f"request to another computer: {request.url}")

    def note_message(message: ConsoleMessage) -> None:
        text = f"console: {message.text} {message.location.get('url', '')}"
        if message.type == "error" and not HARMLESS.search(text):
            problems.append(text)

    listeners = {"pageerror": note_error, "console": note_message, "request": note_request}
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]
    yield page
    if not page.is_closed():
        exception_texts = page.get_by_test_id("stException").all_inner_texts()
        problems.extend(
            f"exception on the page: {text}\n{_server_output(page.url)}" for text in exception_texts
        )
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    unexpected = [text for text in problems if not any(piece in text for piece in expected_problems)]
    window.clean(failed=bool(unexpected))
    assert not unexpected, "\n".join(unexpected)
