"""Choose privately in a real browser: the first screen, and numbers drawn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen, wait_for_figures
from tests.browser.test_journeys import NARROW

SCREEN = {"width": 1280, "height": 800}


def numbers_drawn_stand_below_their_button_and_nothing_moves(page: Page) -> None:
    """At the end two numbers were drawn, and the window is narrow."""
    tops = page.evaluate(
        """() => [...document.querySelectorAll(
            '.st-key-private_choice_inputs [data-testid="stNumberInputContainer"]')]
            .map(e => e.getBoundingClientRect().top)"""
    )
    assert len(tops) == 2
    assert max(tops) - min(tops) < 1
    page.set_viewport_size(NARROW)
    button = page.get_by_role("button", name="Choose one number privately")
    button.scroll_into_view_if_needed()
    wait_for_figures(page)
    box_before = button.bounding_box()
    for draws in (1, 2):
        button.click()
        page.get_by_role("button", name="Spend ε").click()
        expect(page.locator(".st-key-private_chosen").get_by_text("exponential mechanism")).to_have_count(
            draws
        )
        settle(page)
        box_after, result = button.bounding_box(), page.locator(".st-key-private_chosen").bounding_box()
        assert box_after["y"] == pytest.approx(box_before["y"], abs=1.0)
        assert 0.0 < result["y"] - (box_after["y"] + box_after["height"]) < 120.0


def test_two_numbers_are_drawn_where_they_belong(page: Page, app_url: str) -> None:
    page.set_viewport_size(SCREEN)
    page.goto(f"{app_url}/choose-privately")
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Choose privately")
    card = page.locator(".st-key-private_card")
    expect(card.get_by_text("against choosing in the clear").first).to_be_visible()
    # The cost figure and both buttons are there without scrolling.
    for item in (page.locator(".st-key-private_cost_epsilon"), page.get_by_role("button", name="Release a")):
        box = item.bounding_box()
        assert box["y"] + box["height"] <= 800
    expect(page.get_by_text("nothing needs protecting").first).to_be_visible()
    numbers_drawn_stand_below_their_button_and_nothing_moves(page)
    expect(page.get_by_text("in 3 releases").first).to_be_visible()  # What the next draw would come to.
