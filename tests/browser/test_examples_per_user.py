"""Examples per user in a real browser: the exact noise comes, one's own bound is compared, a training is stopped."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from dpcore.common import wording
from dpcore.data import samples
from dpcore.examples_per_user import ExamplesParameters
from dpcore.examples_per_user.answer import answered
from tests.browser.browser import settle, stop_button


def test_noise_is_found_a_bound_compared_and_a_training_stopped(page: Page, app_url: str) -> None:
    expected = answered(samples.load("shop-events"), ExamplesParameters(1.0))
    best = expected.found.best
    page.goto(f"{app_url}/examples-per-user?link=1&data=shop-events&epsilon=1")
    settle(page)
    card = page.locator(".st-key-examples_per_user_card")
    expect(card).to_contain_text(f"at most {best.bound} examples of each")
    expect(card).to_contain_text(wording.number(expected.numbers[1].value or 0.0, 4))
    expect(card).not_to_contain_text("on its way")

    own = page.get_by_placeholder("your own bound")
    own.fill("20")
    own.press("Enter")
    settle(page)
    expect(page.get_by_test_id("stMain")).to_contain_text("Your bound, 20 examples")

    page.get_by_role("tab", name="Train on it").click()
    settle(page)
    page.locator(".st-key-examples_per_user_train button").click()
    stop = stop_button(page)
    expect(page.get_by_text("Training: ")).to_be_visible()
    stop.click()
    expect(page.get_by_text("Stopped")).to_be_visible()
    expect(stop).to_have_count(0)

    page.get_by_role("tab", name="Downloads").click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Choice (JSON)").click()
    document = json.loads(Path(waiting.value.path()).read_text(encoding="utf-8"))
    assert document["answer"]["bound"] == best.bound
    assert document["answer"]["noise_multiplier"] == expected.numbers[1].value
