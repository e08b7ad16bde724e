"""A tab that was idle while its server was started anew, or its connection lost: it works again by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect

from tests.browser import browser as helpers
from tests.browser.browser import settle
from tests.browser.conftest import PATIENCE

STREAM = "**/_stcore/stream"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., helpers.RunningApp]]:
    """Starts a server of the test's own."""
    apps: list[helpers.RunningApp] = []

    def of(**how: object) -> helpers.RunningApp:
        apps.append(helpers.start_app(tmp_path / f"{len(apps)}.log", **how))  # type: ignore[arg-type]
        assert helpers.launcher.answers(f"{apps[-1].url}/_stcore/script-health-check", helpers.START_LIMIT)
        return apps[-1]

    yield of
    for app in apps:
        app.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    yield made
    made.close()


class Line:
    """The web socket between a page and Streamlit, which can be cut and mended."""

    def __init__(self, page: Page) -> None:
        self.is_cut = False
        self._open: list[WebSocketRoute] = []
        page.route_web_socket(STREAM, self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self.is_cut:
            socket.close()
            return
        socket.connect_to_server()
        self._open.append(socket)

    def cut(self) -> None:
        self.is_cut = True
        for socket in self._open:
            socket.close()
        self._open.clear()

    def mend(self) -> None:
        self.is_cut = False


def headline(page: Page) -> str:
    return str(page.locator(".st-key-mean_card h2").inner_text())


def loaded_anew(page: Page) -> None:
    page.wait_for_function("!window.stays", timeout=PATIENCE)
    settle(page)


def epsilon_moves_the_answer(page: Page) -> None:
    before = headline(page)
    page.get_by_role("slider", name="Privacy budget ε").focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    expect(page.locator(".st-key-mean_card h2")).not_to_have_text(before)


def test_an_idle_tab_works_again_after_the_server_was_started_anew(
    start: Callable[..., helpers.RunningApp], context: BrowserContext
) -> None:
    app = start()
    page = helpers.listen(context.new_page())
    page.goto(f"{app.url}/mean?link=1&data=shop-events&epsilon=2&lower=0&upper=80")
    settle(page)
    shown = headline(page)
    page.evaluate("window.stays = true")
    app.stop()
    start(port=int(app.url.rpartition(":")[2]))
    # Nobody touches the page: it comes back by itself, with its settings.
    loaded_anew(page)
    assert headline(page) == shown
    expect(page.get_by_role("spinbutton", name="Highest value U")).to_have_value("80")
    epsilon_moves_the_answer(page)


def test_a_connection_that_was_lost_for_long_or_short(
    start: Callable[..., helpers.RunningApp], context: BrowserContext
) -> None:
    # For long: the server has let go of the session, as it does two minutes after a laptop fell asleep.
    app = start(STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL="1")
    page = helpers.listen(context.new_page())
    line = Line(page)
    page.goto(f"{app.url}/mean?link=1&data=shop-events&epsilon=2&lower=0&upper=80")
    settle(page)
    shown = headline(page)
    page.evaluate("window.stays = true")
    line.cut()
    page.wait_for_selector("[data-testid='stApp']:not([data-test-connection-state='CONNECTED'])")
    page.wait_for_timeout(2500)
    line.mend()
    loaded_anew(page)
    assert headline(page) == shown
    epsilon_moves_the_answer(page)
    # For a moment: the session is still there, and so is what it holds; nothing is loaded anew.
    page.evaluate("window.stays = true")
    line.cut()
    page.wait_for_selector("[data-testid='stApp']:not([data-test-connection-state='CONNECTED'])")
    line.mend()
    page.wait_for_selector("[data-testid='stApp'][data-test-connection-state='CONNECTED']")
    epsilon_moves_the_answer(page)
    assert page.evaluate("window.stays")
