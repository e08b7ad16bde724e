"""Factorisation in a real browser: train, read the verdict, look at rare items, take the runs away."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.browser import settle
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen

LINK = (
    "/factorisation?link=1&data=online-retail-lines&epsilon=1&num_users=600&num_items=100&ratings_per_user=20"
)
LINK += "&train_epsilons=5&repeats=2"


def test_from_a_training_to_the_verdict_and_its_runs(page: Page, app_url: str) -> None:
    page.goto(app_url + LINK)
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Factorisation")
    card = page.locator(".st-key-factorisation_card")
    expect(card.get_by_role("heading")).to_contain_text("Not trained yet: noise on the rarest")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(card.get_by_role("heading")).to_contain_text("At ε = 1 it is not clear")  # two seeds
    expect(page.get_by_role("button", name="Train again")).to_be_visible()
    settle(page)
    page.get_by_role("tab", name="Items").click()
    page.get_by_role("tab", name="Rare and popular items").click()
    settle(page)
    expect(page.get_by_text("Mean differences over 2 seeds")).to_be_visible()
    page.get_by_role("tab", name="Downloads").click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Runs (CSV)").click()
    with Path(waiting.value.path()).open(newline="", encoding="utf-8") as stream:
        assert next(stream) == "# public input\n"
        rows = list(csv.DictReader(stream))
    errors = {
        row["model"]: float(row["rmse"]) for row in rows if row["items"] == "all" and row["epsilon"] != "5.0"
    }
    assert errors["private_offsets"] < errors["private_mean"]
