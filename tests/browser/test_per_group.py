"""Group by in a real browser: from the sample events to the best pair, and one of one's own."""

from __future__ import annotations

import re
from itertools import product

import pytest
from playwright.sync_api import Page, expect

from dpcore.data import samples
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.problem import PerGroupProblem
from pages.shared.fields.setting import DEFAULT_EPSILON
from tests.browser.browser import enter, settle


def both_bounds_are_dragged(page: Page, l0: int, linf: int) -> None:
    """In the map by the pointer and by keys, and cleared again."""
    figure = page.locator(".st-key-per_group_error")
    handle, locator = figure.get_by_role("slider"), figure.locator(".sweetspot-seen")
    own = (
        page.get_by_role("spinbutton", name="Your groups"),
        page.get_by_role("spinbutton", name="Your amount"),
    )
    expect(handle).to_have_attribute("aria-valuetext", f"Groups {l0}, Rows {linf} in each")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 90, y - 60, steps=4)
    # Nobody but the browser has heard of it.
    expect(own[0]).to_have_value("")
    bounds_text = re.fullmatch(
        r"Groups (\d+), Rows (\d+) in each", str(handle.get_attribute("aria-valuetext"))
    )
    groups, rows = int(bounds_text[1]), int(bounds_text[2])
    assert groups < l0
    assert rows > linf
    expect(locator).to_contain_text(f"Groups {groups}:")
    expect(locator).to_contain_text(f"Rows {rows}:")
    expect(locator.locator("circle")).to_have_count(20)
    page.mouse.up()
    settle(page)
    expect(own[0]).to_have_value(str(groups))
    expect(own[1]).to_have_value(str(rows))
    handle.press("ArrowRight")
    handle.press("ArrowDown")
    expect(own[1]).not_to_have_value(str(rows))
    settle(page)
    assert int(own[0].input_value()) > groups
    assert int(own[1].input_value()) < rows
    for field in own:
        enter(field, "")
    expect(handle).to_have_attribute("aria-valuetext", f"Groups {l0}, Rows {linf} in each")


@pytest.mark.long
def test_the_best_pair_of_the_sample_events_and_one_dragged(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/per-group?link=1&data=shop-events&epsilon={DEFAULT_EPSILON:g}")
    facet = samples.load("shop-events").pairs
    problem = PerGroupProblem(UserGroupPairs.from_facet(facet), PerGroupParameters(DEFAULT_EPSILON))
    # Product is the column of groups; brute force over all pairs of bounds.
    _, l0, linf = min(
        (compute_pair_error(problem, l0, c), l0, c) for l0, c in product(range(1, 33), range(1, 26))
    )
    card = page.locator(".st-key-per_group_card")
    expect(card).to_contain_text(f"{l0} groups × {linf} rows")
    expect(card).to_contain_text(f"Keep at most {l0} groups per user, and {linf} rows in each.")
    settle(page)
    marked = page.evaluate(
        """() => document.querySelector('.st-key-per_group_error .js-plotly-plot')._fullData
            .filter(t => t.name === 'Best pair').map(t => [t.x[0], t.y[0]])"""
    )
    assert marked == [[l0, linf]]

    both_bounds_are_dragged(page, l0, linf)
