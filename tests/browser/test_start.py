"""Start in a real browser: the bound moves by itself, over every step, and a presentation lasts over pages."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from pages.shared.base import projector
from tests.browser.browser import settle
from tests.browser.test_figures import figure

SIZES = """() => {
    const plot = document.querySelector(".js-plotly-plot");
    return [
        parseFloat(getComputedStyle(document.documentElement).fontSize),
        parseFloat(getComputedStyle(plot.querySelector(".xtitle")).fontSize),
        plot._fullData.find((of) => of.name === "Both together" || of.name === "Total, bounded rows").line.width,
        (document.querySelector("[data-testid=stSidebar]")?.getBoundingClientRect().right ?? 0) > 50,
    ];
}"""
# A title longer than its axis would leave the figure.
TITLE_IS_WHOLE = """() => {
    const plot = document.querySelector(".js-plotly-plot");
    const [figure, title] = [plot, plot.querySelector(".ytitle")].map((of) => of.getBoundingClientRect());
    return figure.top <= title.top && title.bottom <= figure.bottom;
}"""


def test_play_moves_bound_figure_and_rows_and_a_presentation_lasts(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/?link=1&data=shop-events&epsilon=1&users=two+groups")
    settle(page)
    expect(page.get_by_text("Invented users.")).to_be_visible()
    plot = figure(page, "start_tradeoff")
    plot.evaluate(
        "e => { e.dataset.seen = 'yes'; e.dataset.max = 0; e.on('plotly_afterplot', () => e.dataset.max++) }"
    )
    slider = page.locator(".st-key-start-bound").get_by_role("slider")
    page.get_by_role("button", name="Play").click()
    seen = page.evaluate(
        """async () => {
            const handle = ".st-key-start-bound :is(input, [role=slider])";
            const at = () => document.querySelector(handle).getAttribute("aria-valuetext");
            const seen = [];
            const stands = () => document.querySelector(".st-key-start_play button").innerText.includes("Play");
            const late = performance.now() + 60000;
            let begun = false;
            while (performance.now() < late && !(begun && stands())) {
                begun ||= !stands();
                if (begun && seen.at(-1) !== at()) seen.push(at());
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
            return seen;
        }"""
    )
    settle(page)
    # A busy machine may draw two steps at once, but the bound rises to the last step before it goes to the best one.
    steps = [1, 2, 5, 10, 20, 50, 100, 200, 300]
    numbers = [int(text.replace(",", "")) for text in seen if text]
    assert set(numbers) <= set(steps)
    assert len(numbers) > len(steps) / 2
    assert slider.get_attribute("aria-valuetext") == "300"
    assert plot.evaluate("e => [e.dataset.seen, e.dataset.max > 3]") == ["yes", True]

    # A presentation is larger, has no sidebar, and lasts over pages and a reload.
    usual = page.evaluate(SIZES)
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Present", exact=True).click()
    settle(page)
    page.wait_for_function("() => document.querySelector('.xtitle').style.fontSize !== '14px'")
    large = page.evaluate(SIZES)
    assert large[0] == projector.TYPE_SIZE
    for before, after in zip(usual[:3], large[:3], strict=True):
        assert after == pytest.approx(before * projector.TYPE_SIZE / projector.USUAL_SIZE)
    assert (usual[3], large[3]) == (True, False)
    page.wait_for_function(TITLE_IS_WHOLE)
    page.goto(f"{app_url}/mean?present=1")
    settle(page)
    figure(page)
    assert "present=1" in page.url
    assert page.evaluate(SIZES)[::3] == [projector.TYPE_SIZE, False]
    page.get_by_role("button", name="Leave presentation").click()
    settle(page)
    assert page.evaluate("() => getComputedStyle(document.documentElement).fontSize") == "16px"
    assert "present" not in page.url
