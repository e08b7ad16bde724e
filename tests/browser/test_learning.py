"""Learning under a bound in a real browser: one's own cap, a simulation that is stopped, the files."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from dpcore.common import wording
from dpcore.data import samples
from dpcore.learning import LearningParameters, optimal_cap
from tests.browser.browser import settle, stop_button

LINK = "learning?link=1&data=shop-events&epsilon=0.1&alpha=0.05&population_rows=10000000&draws=1000"


def test_a_cap_is_tried_a_simulation_stopped_and_the_choice_taken_away(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{LINK}")
    settle(page)
    expect(page.get_by_role("heading", level=1, name="Learning under a bound")).to_be_visible()
    best = optimal_cap.best_cap(LearningParameters(0.1).problem(samples.load("shop-events").histogram))
    card = page.locator(".st-key-learning_card")
    expect(card).to_contain_text(
        f"Keep at most {wording.counted(best.max_contributions, 'row')} of each user"
    )

    page.get_by_role("button", name="More settings").click()
    own = page.get_by_role("spinbutton", name="Compare your own bound")
    own.fill("10")
    own.press("Enter")
    settle(page)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stMain")).to_contain_text("Your own bound, 10 rows")
    drawn = page.evaluate(
        "() => document.querySelector('.st-key-learning_bound .js-plotly-plot')._fullData.map(t => t.name)"
    )
    assert {"Excess risk, all three", "Best bound", "Your own bound"} <= set(drawn)

    page.get_by_role("tab", name="The paper").click()
    page.get_by_role("tab", name="Figure 3").click()
    settle(page)
    # A thousand samples of ten million rows would take minutes.
    page.get_by_role("button", name="Draw 1,000 samples").click()
    stop = stop_button(page)
    expect(page.get_by_text("Drawing samples: ")).to_be_visible()
    stop.click()
    expect(page.get_by_text("what was drawn is shown")).to_be_visible()
    settle(page)
    expect(stop).to_have_count(0)

    page.get_by_role("tab", name="Downloads").click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Choice (JSON)").click()
    document = json.loads(Path(waiting.value.path()).read_text(encoding="utf-8"))
    assert document["answer"]["max_contributions"] == best.max_contributions
    assert document["answer"]["label"] == "public input"
