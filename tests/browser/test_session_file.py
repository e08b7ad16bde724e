"""An upload outlives the server: saved as a session file, the server killed, and opened on another server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.browser import RunningApp, settle
from tests.browser.test_files import ONE, choose, open_panel


def test_an_upload_outlives_the_server(
    page: Page,
    app_url: str,
    start_app: Callable[[], RunningApp],
    tmp_path: Path,
    expected_problems: list[str],
) -> None:
    first = start_app()
    open_panel(page, first.url)
    choose(page, one=ONE)
    page.get_by_role("button", name="Use these data").click()
    settle(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Mean").click()
    expect(page.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    settle(page)
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
