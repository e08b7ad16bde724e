"""The tour in a real browser: a question, a slider, its answer, the next page, a reload, and what was there before."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from pages.shared.screen import tour_bar
from tests.browser.browser import settle
from tests.browser.test_first_screen import SCREEN, main_figure


def figure_ends(page: Page) -> float:
    box = main_figure(page).bounding_box()
    return box["y"] + box["height"]


@pytest.mark.long
def test_a_slider_answers_the_next_page_follows_and_a_reload_and_the_end_lose_nothing(
    page: Page, app_url: str
) -> None:
    page.set_viewport_size(SCREEN)
    page.goto(f"{app_url}/?link=1&data=shop-events&epsilon=3&users=two+groups")
    settle(page)
    page.get_by_role("button", name="Take the tour").click()
    bar = page.locator(".st-key-tour_bar")
    expect(bar).to_contain_text("step 1 of 6")
    expect(bar).to_contain_text(tour_bar.ANSWER_HINT)
    settle(page)
    figure_ends_before = figure_ends(page)
    assert figure_ends_before <= SCREEN["height"]
    page.get_by_role("slider", name="Bound", exact=True).press("End")
    # Five times the rows of the heaviest user.
    expect(bar).to_contain_text("At 100,000 rows the noise is 1,667")
    settle(page)
    assert abs(figure_ends(page) - figure_ends_before) <= 1  # The answer stands where the hint stood.
    bar.get_by_role("button", name="Next").click()
    expect(page.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    expect(bar).to_contain_text("step 2 of 6")
    settle(page)
    assert figure_ends(page) <= SCREEN["height"]
    epsilon = page.get_by_role("spinbutton", name="ε, exactly")
    epsilon.fill("0.3")
    epsilon.press("Enter")
    expect(bar).to_contain_text("at ε = 0.3 weights have")
    expect(page).to_have_url(re.compile("epsilon=0.3"))
    page.reload()
    expect(bar).to_contain_text("step 2 of 6")
    expect(bar).to_contain_text("at ε = 0.3 weights have")
    settle(page)
    bar.get_by_role("button", name="End").click()
    expect(page.get_by_role("button", name="Take the tour")).to_be_visible()
    expect(bar).to_have_count(0)
    expect(page).to_have_url(re.compile("data=shop-events"))
    fields = parse_qs(urlsplit(page.url).query)
    assert fields["data"] == ["shop-events"]
    assert not {"tour", "before"} & set(fields)
