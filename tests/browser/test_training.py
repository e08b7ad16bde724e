"""Training in a real browser: a first curve that is refined, and the first screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen, look_in_a_narrow_window

# The fewest: each of them draws the page anew.
LINK = "link=1&epsilon=1&runs=2&splits=1"


@pytest.mark.long
def test_the_first_curve_is_refined(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/training?{LINK}")
    card = page.locator(".st-key-training_card")
    expect(card).to_contain_text(re.compile("[Tt]rain with"))
    expect(page.get_by_text("2 runs of every method at every bound")).to_be_visible()
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Classifier")
    look_in_a_narrow_window(page, "Classifier")
    names = page.evaluate(
        """() => document.querySelector('.st-key-training_methods_loss .js-plotly-plot')._fullData
            .filter(t => t.mode === 'text').map(t => t.name)"""
    )
    assert sorted(names) == [f"{name} (label)" for name in ("Guessing", "No privacy", "Recommended")]
