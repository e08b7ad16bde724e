"""Mean with private counts in a real browser: the switch, its first screen, and a simulation that is stopped."""

from __future__ import annotations

import math

from playwright.sync_api import Page, expect

from tests.browser.browser import settle, stop_button
from tests.browser.test_first_screen import MOST_WORDS, SCREEN, look_at_first_screen, look_in_a_narrow_window


def test_private_counts_on_mean_and_a_simulation_stopped(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/mean")
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Mean")
    page.get_by_role("button", name="More settings").click()
    page.get_by_text("Private too", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Against the usual split")).to_be_visible()
    settle(page)
    # What is chosen first is short; with other settings there may be more to say.
    look_at_first_screen(page, math.inf, "Mean, counts private")
    look_in_a_narrow_window(page, "Mean, counts private")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(SCREEN)
    settle(page)
    page.get_by_role("tab", name="Rows and users").click()
    page.get_by_role("tab", name="Simulation").click()
    runs = page.get_by_role("spinbutton", name="Runs at each point")
    runs.fill("1000000")  # As many as there may be, so that they have not ended before they are stopped.
    runs.press("Enter")
    settle(page)
    page.get_by_role("button", name="Simulate", exact=True).click()
    stop_button(page).click()
    expect(page.get_by_text("Stopped").first).to_be_visible()
    settle(page)
