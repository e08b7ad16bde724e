"""What weights gain in a real browser: the answer, and one's own table."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen


def open_step(page: Page, name: str) -> None:
    page.get_by_role("tab", name="Try it").click()
    page.get_by_role("tab", name=name, exact=True).click()
    settle(page)


def test_from_the_answer_to_an_instance_of_ones_own(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/gap")
    expect(page.get_by_text("On no data has it more than").first).to_be_visible()
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "gap")

    open_step(page, "Your instance")
    page.get_by_role("button", name="Nearly the largest").click()
    settle(page)
    ratio = page.get_by_test_id("stMetricValue").first
    expect(ratio).to_have_text("1.564928")
    # In the table: 60 light users instead of 26.
    box = page.get_by_test_id("stDataFrame").locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.dblclick(box["x"] + 0.85 * box["width"], box["y"] + 52)
    editor = page.locator("#portal input")
    editor.fill("60")
    editor.press("Enter")
    expect(ratio).not_to_have_text("1.564928")
    settle(page)
    page.get_by_role("button", name="Copy link").click()
    assert "table=60x1+31x1000000" in page.get_by_test_id("stCode").inner_text()
