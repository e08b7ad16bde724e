"""Quantile in a real browser: an answer on data with values, another question, and nothing moves."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import UNREADABLE, wait_for_figures
from tests.browser.test_journeys import NARROW, WIDE


@pytest.mark.long
def test_a_long_range_is_not_cut_and_nothing_moves_when_two_quantiles_are_answered(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/quantile?link=1&data=shop-events&epsilon=1&low=0&high=1&program=plain+Python")
    # The range on the card is long here, and not cut.
    for viewport in (NARROW, WIDE):
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        wait_for_figures(page)
        assert re.search(r"0\.\d+ to 0\.\d+", page.get_by_test_id("stMain").inner_text())
        assert page.evaluate(UNREADABLE) == []
    card = page.locator(".st-key-quantile_card")
    expect(card.get_by_text("Cap each user's total weight at").first).to_be_visible()
    expect(page.locator(".st-key-quantile_error .annotation", has_text="Demonstration")).to_have_count(0)
    page.get_by_role("button", name="More settings").click()
    page.locator(".st-key-quantile-weighting").get_by_text("Bounded rows", exact=True).click()
    page.keyboard.press("Escape")
    expect(card.get_by_text("Keep at most").first).to_be_visible()
    page.get_by_role("textbox", name="Quantiles").fill("0.25, 0.75")
    page.get_by_role("textbox", name="Quantiles").press("Enter")
    expect(page.get_by_text("2 quantiles: ε = 0.5 for each")).to_be_visible()
    expect(page.get_by_test_id("stProgress")).to_have_count(0)  # The exact answer to the question before.
    settle(page)
    # A first answer, then the exact one: the figure stays, and nothing moves.
    figure, tabs = page.locator(".st-key-quantile_error .js-plotly-plot"), page.get_by_role("tablist").last
    figure.evaluate("e => { e.dataset.seen = 'yes' }")
    box_before = tabs.bounding_box()
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press("ArrowRight")
    settle(page)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    settle(page)
    assert figure.evaluate("e => e.dataset.seen") == "yes"
    assert tabs.bounding_box() == box_before
