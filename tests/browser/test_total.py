"""Sum and count in a real browser: its bound is dragged; a pinned curve stays as ε moves, and nothing jumps."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from dpcore import total
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from pages.shared.fields.setting import DEFAULT_EPSILON
from tests.browser.browser import enter, press, settle

PLOT = "e => { const { l, r, t, b } = e._fullLayout._size; return [l, r, t, b]; }"
MAIN = "e => Array.from(e._fullData.find(t => t.name === 'Expected error').y)"


def the_bound_is_dragged(page: Page, best: int) -> None:
    """By the pointer and by keys: users are cut and releases move at once, and the server hears of the end."""
    figure = page.locator(".st-key-total_error")
    handle, locator = figure.get_by_role("slider", name="Bound"), figure.locator(".sweetspot-seen")
    expect(handle).to_have_attribute("aria-valuenow", str(best))
    dots = locator.locator("circle")
    expect(dots).to_have_count(20)
    own = page.get_by_role("spinbutton", name="Compare your own bound")
    before = [dot.get_attribute("cx") for dot in dots.all()]
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 80, y + 40, steps=4)
    let_go = int(str(handle.get_attribute("aria-valuenow")))
    assert let_go < best / 2
    expect(locator).to_contain_text(f"Bound {let_go}:")
    assert [dot.get_attribute("cx") for dot in dots.all()] != before
    expect(own).to_have_value("")
    page.mouse.up()
    settle(page)
    expect(own).to_have_value(str(let_go))
    expect(page.get_by_text(f"Your own bound, {let_go} rows").first).to_be_visible()
    handle.press("ArrowRight")
    expect(own).not_to_have_value(str(let_go))
    settle(page)
    assert int(own.input_value()) == int(str(handle.get_attribute("aria-valuenow"))) > let_go
    enter(own, "")
    expect(handle).to_have_attribute("aria-valuenow", str(best))


def a_pin_is_listed_and_nothing_jumps(page: Page) -> None:
    figure = page.locator(".js-plotly-plot").first
    tab = page.get_by_role("tab", name="Compare")
    value_before, box, plot = figure.evaluate(MAIN), tab.bounding_box(), figure.evaluate(PLOT)
    press(page.get_by_role("button", name="Pin this"))
    page.get_by_role("spinbutton", name="ε, exactly").fill("0.3")
    page.keyboard.press("Enter")
    settle(page)
    assert figure.evaluate(MAIN) != value_before
    assert tab.bounding_box() == box
    assert figure.evaluate(PLOT) == plot
    press(tab)
    expect(page.get_by_role("textbox", name="New name")).to_have_value(
        re.compile(rf"ε = {DEFAULT_EPSILON:g}$")
    )
    press(page.get_by_role("button", name="Remove", exact=True))
    expect(page.get_by_text("No answer is pinned yet")).to_be_visible()


@pytest.mark.long
def test_the_bound_of_the_sample_events_is_dragged_and_their_curve_pinned(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sum-and-count?link=1&data=shop-events&epsilon={DEFAULT_EPSILON:g}")
    settle(page)
    data = samples.load("shop-events")
    rows = total.find_best_choice(
        total.TotalProblem(Amounts.from_histogram(data.histogram), DEFAULT_EPSILON, is_integer=True)
    )
    card = page.locator(".st-key-total_card")
    expect(card).to_contain_text(f"Keep at most {rows.max_total:g} rows per user")

    the_bound_is_dragged(page, int(rows.max_total))
    a_pin_is_listed_and_nothing_jumps(page)
