"""Quantile in a real browser: from data without values to an answer, a file, and a search that is stopped."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.browser import settle


def test_from_no_values_to_a_median_and_its_files(page: Page, app_url: str) -> None:
    page.goto(app_url)
    settle(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Quantile").click()
    page.get_by_role("button", name="Use the invented shop purchases").click()
    card = page.locator(".st-key-quantile_card")
    expect(card.get_by_text("Let no user weigh more than").first).to_be_visible()
    settle(page)
    page.wait_for_selector(".st-key-quantile_density .js-plotly-plot .scatterlayer .trace", state="attached")

    page.locator(".st-key-quantile-weighting").get_by_text("Cap", exact=True).click()
    expect(card.get_by_text("Keep at most").first).to_be_visible()
    page.get_by_role("textbox", name="Quantiles q").fill("0.25, 0.75")
    page.get_by_role("textbox", name="Quantiles q").press("Enter")
    expect(page.get_by_text("2 quantiles share ε evenly")).to_be_visible()
    settle(page)

    page.get_by_role("tab", name="Sampled answers").click()
    page.get_by_role("button", name="Draw answers").click()
    page.wait_for_selector(".st-key-quantile_samples .js-plotly-plot .scatterlayer .trace", state="attached")
    settle(page)

    page.get_by_role("tab", name="Downloads").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Choice (JSON)").click()
    choice = json.loads(Path(caught.value.path()).read_text(encoding="utf-8"))
    assert [one["quantile"] for one in choice["answer"]["quantiles"]] == [0.25, 0.75]
    assert choice["question"]["weighting"] == "cap"
    assert f"{choice['answer']['bound']:.0f} rows" in card.get_by_test_id("stMetricValue").first.inner_text()
