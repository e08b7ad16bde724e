"""From a private file to its code with nothing read off it: the range and the bound of a mean, both drawn."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_journeys import SHOP_EVENTS, choose_file, enter, go_to, press


def test_from_a_private_file_to_code_with_range_and_bound_drawn(page: Page, app_url: str) -> None:
    page.goto(app_url)
    settle(page)
    go_to(page, "Your data")
    press(page.get_by_text("Upload a file"))
    choose_file(page, "shop_events.csv", SHOP_EVENTS.read_bytes())
    press(page.get_by_role("button", name="Use these data"))
    expect(page.locator(".st-key-shell_data")).to_contain_text("private data")
    go_to(page, "Mean")
    press(page.get_by_role("button", name="Choose it privately"))
    dialog = page.get_by_role("dialog")
    for name, value in (
        ("Typical value", "20"),
        ("Smallest distance", "1"),
        ("Largest distance", "1000"),
        ("Users, about", "400"),
    ):
        enter(dialog.get_by_role("spinbutton", name=name), value)
    press(dialog.get_by_role("button", name="Draw L and U (ε = 0.25)"))
    expect(dialog).to_have_count(0)
    settle(page)
    strip = page.get_by_label("From the data to the code")
    expect(strip).to_contain_text("drawn, ε = 0.25")
    press(page.get_by_role("button", name="Draw it privately (ε = 0.1)"))
    expect(page.get_by_text("ε = 1.35 in all")).to_be_visible()
    expect(page.locator(".st-key-shell_data")).to_contain_text(re.compile(r"ε = 0\.35\d* in 2 releases"))
    press(page.get_by_role("button", name="Code for your library"))
    expect(dialog.get_by_test_id("stCode")).to_contain_text("DP release (epsilon = 0.1")
    expect(dialog.get_by_test_id("stCode")).not_to_contain_text("do not publish")
