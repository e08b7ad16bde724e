"""What weights gain in a real browser: the answer, one's own table, the search stopped, a link."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from dpcore.gap_examples.two_groups import supremum
from tests.browser.browser import settle, stop_button
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen

BEST = supremum().ratio


def open_step(page: Page, name: str) -> None:
    page.get_by_role("tab", name="Try it").click()
    page.get_by_role("tab", name=name, exact=True).click()
    settle(page)


def test_from_the_answer_to_an_instance_and_its_link(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/gap")
    expect(page.get_by_text("On no data has it more than").first).to_be_visible()
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "gap")

    open_step(page, "Search")
    slider = page.get_by_role("slider", name="Instances to try")
    slider.focus()
    slider.press("End")
    settle(page)
    page.get_by_role("button", name="Search", exact=True).click()
    stop_button(page).click()
    expect(page.get_by_text("Stopped after")).to_be_visible()
    settle(page)
    with page.expect_download() as caught:
        page.get_by_role("button", name="Instance with proof (JSON)").click()
    document = json.loads(Path(caught.value.path()).read_text(encoding="utf-8"))
    assert 1.5 < document["answer"]["ratio"] < BEST

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
    edited = ratio.inner_text()

    page.get_by_role("button", name="Copy link").click()
    link = page.get_by_test_id("stCode").inner_text().strip()
    assert "table=60x1+31x1000000" in link
    page.goto(link)
    settle(page)
    open_step(page, "Your instance")
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(edited)
