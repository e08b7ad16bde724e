"""Start in a real browser: the bound moves by itself, over every step, and ends at the best one."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_figures import figure


def test_play_moves_bound_figure_and_rows_and_ends_at_the_best(page: Page, app_url: str) -> None:
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
            const at = () => document.querySelector(".st-key-start-bound :is(input, [role=slider])").getAttribute("aria-valuetext");
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
