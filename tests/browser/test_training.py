"""Training in a real browser: a first curve that is refined, the first screen, another budget, a release."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import MOST_WORDS, SCREEN, look_at_first_screen, look_in_a_narrow_window

# Of twelve runs, with what comes before they end, 6 s of processor time more.
LINK = "link=1&epsilon=1&runs=4&splits=2"


def test_from_the_first_curve_to_a_counted_release(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/training?{LINK}")
    card = page.locator(".st-key-training_card")
    expect(card).to_contain_text("Train by")
    expect(page.get_by_text("4 runs of every method at every bound")).to_be_visible()
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Training")
    look_in_a_narrow_window(page, "Training")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(SCREEN)
    settle(page)
    names = page.evaluate(
        """() => document.querySelector('.st-key-training_methods_loss .js-plotly-plot')._fullData
            .filter(t => t.name && t.showlegend !== false).map(t => t.name)"""
    )
    assert names == ["The answer", "Other methods, at their best bounds", "No privacy", "Guessing"]

    # Another budget: the answer before stays until there is a new one, and the axes stay where they are.
    axis = """() => document.querySelector('.st-key-training_methods_loss .js-plotly-plot')._fullLayout.yaxis.range"""
    before, loss = page.evaluate(axis), card.locator(".note").inner_text()
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press("ArrowRight")
    expect(card.locator(".note")).not_to_have_text(loss)
    expect(page.get_by_text("4 runs of every method at every bound")).to_be_visible()
    settle(page)
    assert page.evaluate(axis) == before

    page.get_by_role("tab", name="Release").click()
    page.get_by_role("button", name="Train once").click()
    expect(page.get_by_text("Spent on these data: ε = 1.5, δ = 0.00001 in 1 release")).to_be_visible()
    settle(page)
