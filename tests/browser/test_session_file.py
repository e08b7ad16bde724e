"""A server from its first request to its end, and an upload that outlives it, saved as a session file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from dpcore import mean
from dpcore.common import wording
from dpcore.data import samples
from pages.shared.base import catalogue
from tests.browser.browser import RunningApp, settle
from tests.browser.test_files import ONE, choose, open_panel
from tests.browser.test_journeys import best_cap, epsilon, go_to, move_epsilon


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
    assert page.get_by_test_id("stSidebarNav").get_by_role("link").count() == len(catalogue.PAGES)
    assert epsilon(page) == 3.0
    move_epsilon(page, 1)
    assert epsilon(page) == 5.0
    expect(page.locator(".st-key-shell_data")).to_contain_text("Commits per author of Requests")
    problem = mean.MeanProblem(samples.load("requests-commits").histogram, 5.0, 1.0, 0.25)
    assert best_cap(page) == wording.counted(mean.best_cap(problem).max_contributions, "row")


def test_a_servers_first_request_is_a_deep_link_and_an_upload_outlives_it(
    page: Page,
    app_url: str,
    start_app: Callable[[], RunningApp],
    tmp_path: Path,
    expected_problems: list[str],
) -> None:
    first = start_app()
    expected_problems.append("The page that you have requested does not seem to exist")
    a_deep_link_as_the_first_request_keeps_the_shell(page, first.url)
    go_to(page, "Your data")
    open_panel(page)
    choose(page, one=ONE)
    page.get_by_role("button", name="Use these data").click()
    settle(page)
    go_to(page, "Mean")
    page.get_by_role("spinbutton", name="ε, exactly").fill("0.37")
    page.keyboard.press("Enter")
    settle(page)
    # The sidebar was drawn before that: what is saved is what stands there now.
    with page.expect_download() as download:
        page.get_by_test_id("stSidebar").get_by_role("button", name="Save session").click()
    assert download.value.suggested_filename == "session-PRIVATE-do-not-publish.json"
    file = tmp_path / "session.json"
    download.value.save_as(file)
    expected_problems += ["ERR_CONNECTION", "WebSocket", "Failed to fetch", "AxiosError"]
    page.goto("about:blank")
    first.process.kill()
    first.process.wait()

    page.goto(f"{app_url}/your-data")
    settle(page)
    page.get_by_test_id("stMain").get_by_text("Session", exact=True).click()
    settle(page)
    page.locator("input[type=file]").set_input_files(file)
    settle(page)
    expect(page.get_by_role("heading", name="In use: one.csv")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_contain_text("private data")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Mean").click()
    expect(page.get_by_role("spinbutton", name="ε, exactly")).to_have_value("0.37")
