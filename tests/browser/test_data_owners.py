"""Data owners in a real browser: the card's number, a slider that crosses a regime, its program, and a training."""

from __future__ import annotations

import contextlib
import io

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen
from tests.browser.test_journeys import press


def test_from_the_map_to_a_program_that_runs_and_a_training(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/data-owners?link=1&epsilon=0.7&train_owners=4&train_epsilons=1")
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Data owners")
    card = page.locator(".st-key-owners_card")
    expect(card).to_contain_text("51 owners of 100 records each must join before sharing pays at ε = 0.7")
    point = """() => document.querySelector('.st-key-owners_map .js-plotly-plot')._fullData
        .filter(t => t.name === 'You').map(t => [t.x[0], t.y[0]])"""
    assert page.evaluate(point) == [[64, 0.7]]
    # ε* of 64 owners is 0.537: one step to 0.5 crosses the line.
    slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
    slider.press("ArrowLeft")
    settle(page)
    expect(card.locator("h2")).to_contain_text("Work alone")
    assert page.evaluate(point) == [[64, 0.5]]

    press(card.get_by_role("button", name="Code for your library"))
    text = page.get_by_role("dialog").get_by_test_id("stCode").inner_text()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "program", "exec"), {"__name__": "__main__"})
    assert "pays above epsilon = 0.536833" in out.getvalue()
    page.keyboard.press("Escape")
    settle(page)

    press(page.get_by_role("tab", name="Accuracy"))
    press(page.get_by_role("button", name="Train", exact=True))
    expect(page.get_by_text("Joint privacy against full privacy")).to_be_visible()
    settle(page)
    expect(page.locator(".st-key-owners_accuracy .js-plotly-plot")).to_be_visible()
