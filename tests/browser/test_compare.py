"""A pinned curve stays behind the figure as ε moves and nothing jumps; two data sets stand on one figure."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_journeys import go_to

GHOSTS = "e => e._fullData.filter(t => t.legend === 'legend2').map(t => [t.name, Array.from(t.y)])"
PLOT = "e => { const { l, r, t, b } = e._fullLayout._size; return [l, r, t, b]; }"
MAIN = "e => Array.from(e._fullData.find(t => t.name === 'Expected error').y)"


def test_a_pinned_curve_stays_nothing_jumps_and_two_data_sets_have_one_bound(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sum-and-count")
    settle(page)
    figure = page.locator(".js-plotly-plot").first
    tab = page.get_by_role("tab", name="Compare")
    before, place, plot = figure.evaluate(MAIN), tab.bounding_box(), figure.evaluate(PLOT)
    page.get_by_role("button", name="Pin this").click()
    settle(page)
    page.get_by_role("spinbutton", name="ε, exactly").fill("0.3")
    page.keyboard.press("Enter")
    settle(page)
    ((name, ghost),) = figure.evaluate(GHOSTS)
    assert name.endswith("ε = 1")
    assert ghost == before
    assert figure.evaluate(MAIN) != before
    assert tab.bounding_box() == place
    assert figure.evaluate(PLOT) == plot
    tab.click()
    settle(page)
    expect(page.get_by_role("textbox", name="New name")).to_have_value(name)
    page.get_by_role("button", name="Remove", exact=True).click()
    settle(page)
    expect(page.get_by_text("Nothing is pinned yet")).to_be_visible()
    assert figure.evaluate(GHOSTS) == []

    # Another data set beside this one.
    go_to(page, "Your data")
    page.get_by_role("button", name="Keep beside the next data").click()
    settle(page)
    page.get_by_role("combobox", name="Sample").click()
    page.get_by_role("option", name="Online Retail: invoices per customer").click()
    settle(page)
    go_to(page, "Sum and count")
    names = figure.evaluate("e => e.data.map(t => t.name)")
    assert {"Expected error", "Online Retail: invoice lines pe…"} <= set(names)
    tab.click()
    settle(page)
    expect(page.get_by_text("One bound for both:")).to_be_visible()
