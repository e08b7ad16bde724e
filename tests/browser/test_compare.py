"""A pinned curve stays behind the figure as ε moves, and nothing jumps."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.browser import settle

GHOSTS = "e => e._fullData.filter(t => t.legend === 'legend2').map(t => [t.name, Array.from(t.y)])"
PLOT = "e => { const { l, r, t, b } = e._fullLayout._size; return [l, r, t, b]; }"
MAIN = "e => Array.from(e._fullData.find(t => t.name === 'Expected error').y)"


def test_a_pinned_curve_stays_and_nothing_jumps(page: Page, app_url: str) -> None:
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
