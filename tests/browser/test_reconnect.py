"""A server from its first request to its end and its next start, and what a tab and a session file keep of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dpcore import mean
from dpcore.common.wording import format_count
from dpcore.data import samples
from pages.shared.base import catalogue
from tests.browser.browser import enter, press, settle
from tests.browser.conftest import PATIENCE, Server
from tests.browser.test_files import ONE, choose, open_panel
from tests.browser.test_journeys import epsilon, go_to, move_epsilon, read_best_cap

# A page that was opened with it in place can have its line to Streamlit cut and mended.
LINE = """(() => {
    if (!sessionStorage.getItem("line")) return;
    const open = new Set(), Real = WebSocket;
    let isCut = false;
    window.WebSocket = class extends Real {
        constructor(address, ...how) {
            super(isCut ? "ws://127.0.0.1:1/" : address, ...how);  // Where nobody listens.
            open.add(this);
        }
    };
    window.line = {
        drop: () => { open.forEach(socket => socket.close()); open.clear(); },
        cut: () => { isCut = true; line.drop(); },
        mend: () => { isCut = false; },
    };
})()"""
LOST = "[data-testid='stApp']:not([data-test-connection-state='CONNECTED'])"
KEPT = 10
"""Seconds for which a session is kept whose connection was lost; two minutes, where nothing else is said."""


def a_deep_link_as_the_first_request_keeps_the_shell(page: Page, url: str) -> None:
    page.goto(f"{url}/mean?link=1&data=requests-commits&epsilon=3")
    settle(page)
    # A server that was not warmed (`make app` does) says at the very first that it does not know the page.
    notice = page.get_by_role("dialog").filter(has_text="Page not found")
    if notice.count():
        page.keyboard.press("Escape")
        expect(notice).to_have_count(0)
    expect(page.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    expect(page.locator(".st-key-shell_data")).to_contain_text("Commits per author of Requests")
    num_closed = sum(question.navigation_group in catalogue.FOLDED_GROUPS for question in catalogue.PAGES)
    links = page.locator(".st-key-navigation").get_by_role("link")
    assert links.count() == len(catalogue.PAGES) - num_closed
    assert epsilon(page) == 3.0
    move_epsilon(page, 1)
    assert epsilon(page) == 5.0
    expect(page.locator(".st-key-shell_data")).to_contain_text("Commits per author of Requests")
    problem = mean.MeanProblem(samples.load("requests-commits").histogram, 5.0, 1.0, 0.25)
    assert read_best_cap(page) == format_count(mean.find_best_cap(problem).max_contributions, "row")


def an_upload_is_saved(page: Page, file: Path) -> None:
    go_to(page, "Data")
    open_panel(page)
    choose(page, one=ONE)
    press(page.get_by_role("button", name="Use these data"))
    go_to(page, "Mean")
    enter(page.get_by_role("spinbutton", name="ε, exactly"), "0.37")
    # The sidebar was drawn before that: what is saved is what stands there now.
    with page.expect_download() as download:
        page.get_by_test_id("stSidebar").get_by_role("button", name="Save session").click()
    assert download.value.suggested_filename == "session-PRIVATE-do-not-publish.json"
    download.value.save_as(file)


def an_upload_comes_back(page: Page, file: Path) -> None:
    go_to(page, "Data")
    press(page.get_by_test_id("stMain").get_by_text("Session", exact=True))
    page.locator("input[type=file]").set_input_files(file)
    settle(page)
    expect(page.get_by_role("heading", name="In use: one.csv")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_contain_text("private data")
    go_to(page, "Mean")
    assert epsilon(page) == 0.37


def headline(page: Page) -> str:
    return str(page.locator(".st-key-mean_card h2").inner_text())


def loaded_anew(page: Page) -> None:
    page.wait_for_function("!window.stays", timeout=PATIENCE)
    settle(page)


def epsilon_moves_the_answer(page: Page, key: str = "ArrowLeft") -> None:
    headline_before = headline(page)
    page.get_by_role("slider", name="Privacy budget ε").focus()
    for _ in range(6):
        page.keyboard.press(key)
    page.wait_for_function(
        "before => document.querySelector('.st-key-mean_card h2')?.innerText !== before", arg=headline_before
    )
    settle(page)
    assert headline(page) != headline_before


@pytest.mark.long
def test_a_tab_and_an_upload_outlive_a_server_and_lost_connections(
    page: Page, app_url: str, server: Server, tmp_path: Path, expected_problems: list[str]
) -> None:
    expected_problems += [
        "The page that you have requested does not seem to exist",
        "WebSocket",
        "/assets/session",
    ]
    expected_problems += [
        "ERR_CONNECTION",
        "Failed to fetch",
        "AxiosError",
        "/_stcore/health",
        "is not responding",
    ]
    server.stop()
    server.start()
    a_deep_link_as_the_first_request_keeps_the_shell(page, app_url)
    file = tmp_path / "session.json"
    an_upload_is_saved(page, file)

    page.add_init_script(LINE)
    page.evaluate("sessionStorage.setItem('line', 'here')")
    page.goto(f"{app_url}/mean?link=1&data=shop-events&epsilon=2&lower=0&upper=80")
    settle(page)
    shown = headline(page)
    page.evaluate("window.stays = true")
    server.stop()
    page.wait_for_selector(LOST)
    server.start(STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL=str(KEPT))
    server.warm()
    # Nobody touches the page: it comes back by itself, with its settings.
    loaded_anew(page)
    assert headline(page) == shown
    expect(page.get_by_role("spinbutton", name="Highest value U")).to_have_value("80")
    epsilon_moves_the_answer(page)

    # For long: the server has let go of the session, as it does two minutes after a laptop fell asleep. What was moved
    # since the page was opened stays, also where Streamlit asks for a run of the new session by itself.
    shown = headline(page)
    page.evaluate("window.stays = true")
    page.evaluate("line.cut()")
    page.wait_for_selector(LOST)
    page.wait_for_timeout(1000 * (KEPT + 2))
    page.evaluate("line.mend()")
    loaded_anew(page)
    assert headline(page) == shown
    epsilon_moves_the_answer(page, "ArrowRight")
    # For a moment: the session is still there, and so is what it holds; nothing is loaded anew.
    page.evaluate("window.stays = true")
    with page.expect_websocket(lambda socket: socket.url.endswith("/_stcore/stream")):
        page.evaluate("line.drop()")
    settle(page)
    epsilon_moves_the_answer(page)
    assert page.evaluate("window.stays")

    an_upload_comes_back(page, file)
