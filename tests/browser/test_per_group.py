"""Per group in a real browser: from the sample events to the best pair, and its program, which is run."""

from __future__ import annotations

from itertools import product

import pytest
from playwright.sync_api import Page, expect

from dpcore.data import samples
from dpcore.per_group import PerGroupParameters, PerGroupProblem, UserGroupPairs, pair_error
from pages.shared.fields.ranges import DEFAULT_EPSILON
from tests.browser.browser import ROOT, settle
from tests.browser.test_journeys import go_to, press


def test_from_the_sample_events_to_the_best_pair_and_a_program_that_runs(
    page: Page, app_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.goto(f"{app_url}/your-data?link=1&data=shop-events")
    settle(page)
    go_to(page, "Per group")
    facet = samples.load("shop-events").pairs
    assert facet is not None
    problem = PerGroupProblem(UserGroupPairs.from_facet(facet), PerGroupParameters(DEFAULT_EPSILON))
    # Product is the column of groups; brute force over all pairs of bounds.
    _, l0, linf = min((pair_error(problem, l0, c), l0, c) for l0, c in product(range(1, 33), range(1, 26)))
    card = page.locator(".st-key-per_group_card")
    expect(card).to_contain_text(f"{l0} groups × {linf} rows")
    expect(card).to_contain_text(f"Keep at most {l0} groups of each user, and at most {linf} rows in each.")
    settle(page)
    marked = page.evaluate(
        """() => document.querySelector('.st-key-per_group_error .js-plotly-plot')._fullData
            .filter(t => t.name === 'Best pair').map(t => [t.x[0], t.y[0]])"""
    )
    assert marked == [[l0, linf]]

    press(card.get_by_role("button", name="Code for your library"))
    dialog = page.get_by_role("dialog")
    press(dialog.get_by_role("radio", name=f"Pair, {l0} × {linf}"))
    press(dialog.get_by_role("radio", name="Plain Python"))
    text = dialog.get_by_test_id("stCode").inner_text()
    assert f"MAX_GROUPS = {l0}" in text
    assert f"MAX_ROWS = {linf}" in text
    assert "GROUP = 'product'" in text.replace('"', "'")
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(compile(text, "program", "exec"), names)
    noisy = names["noisy"]
    assert isinstance(noisy, list)
    assert len(noisy) == problem.pairs.num_groups

    page.keyboard.press("Escape")
    settle(page)
    press(page.get_by_role("tab", name="Error of each group"))
    expect(page.get_by_text("by their whole size or more").first).to_be_visible()
