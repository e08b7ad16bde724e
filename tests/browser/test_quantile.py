"""Quantile in a real browser: from a demonstration to an answer on data with values, and its file."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.browser import settle


def test_from_a_demonstration_to_a_median_and_its_files(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/quantile")
    settle(page)
    card = page.locator(".st-key-quantile_card")
    expect(card.get_by_text("Let no user weigh more than").first).to_be_visible()
    expect(card.get_by_text("Demonstration: invented shop purchases").first).to_be_visible()
    label = page.locator(".st-key-quantile_error .annotation", has_text="Demonstration")
    expect(label).to_be_attached()
    expect(page.locator(".st-key-shell_data")).not_to_contain_text("Shop")

    page.goto(f"{app_url}/quantile?link=1&data=shop-events&epsilon=1")
    settle(page)
    expect(label).to_have_count(0)
    page.get_by_role("button", name="More settings").click()
    page.locator(".st-key-quantile-weighting").get_by_text("Cap", exact=True).click()
    page.keyboard.press("Escape")
    expect(card.get_by_text("Keep at most").first).to_be_visible()
    page.get_by_role("textbox", name="Quantiles").fill("0.25, 0.75")
    page.get_by_role("textbox", name="Quantiles").press("Enter")
    expect(page.get_by_text("2 quantiles share ε evenly")).to_be_visible()
    expect(page.get_by_test_id("stProgress")).to_have_count(0)  # The exact answer to the question before.
    settle(page)
    # A first answer, then the exact one: the figure stays, and nothing moves.
    figure, tabs = page.locator(".st-key-quantile_error .js-plotly-plot"), page.get_by_role("tablist").last
    figure.evaluate("e => { e.dataset.seen = 'yes' }")
    before = tabs.bounding_box()
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press("ArrowRight")
    settle(page)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    settle(page)
    assert figure.evaluate("e => e.dataset.seen") == "yes"
    assert tabs.bounding_box() == before

    page.get_by_role("tab", name="Where the answer falls").click()
    page.wait_for_selector(".st-key-quantile_density .js-plotly-plot .scatterlayer .trace", state="attached")
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
    expect(card.get_by_role("heading")).to_contain_text(f"{choice['answer']['bound']:.0f} row")
