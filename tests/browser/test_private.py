"""Choosing with DP in a real browser: a DP histogram takes the place of the data, and a former address leads on."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browser import settle


def test_a_dp_histogram_is_released_where_its_button_stands(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{app_url}/your-data")
    settle(page)
    page.get_by_text("DP histogram of rows per user").click()
    expect(page.get_by_text("nothing needs protecting")).to_be_visible()
    page.get_by_role("button", name="Release it…").click()
    settle(page)
    page.get_by_role("button", name="Spend ε = 0.1").click()
    settle(page)
    expect(page.get_by_role("button", name="Back to the original data")).to_be_visible()
    expect(page.get_by_text("Spent on these data: ε = 0.1")).to_be_visible()
    page.get_by_role("button", name="Back to the original data").click()
    settle(page)
    expect(page.get_by_text("DP release, ε = 0.1")).to_have_count(0)


@pytest.mark.long
def test_the_address_of_the_former_page_leads_to_the_page_of_the_bound(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/choose-privately?link=1&epsilon=0.7&wanted=sum")
    settle(page)
    expect(page.get_by_role("heading", name="Sum and count")).to_be_visible()
    expect(page.get_by_label("ε, exactly")).to_have_value("0.7")
