"""Many tasks in a real browser: move the exponent, find the optimum, take weights away, stop the experiment."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from dpcore.multitask.budget import PrivacyTarget, exact_budget
from tests.browser.browser import settle, stop_button
from tests.browser.test_first_screen import MOST_WORDS, look_at_first_screen

LINK = "/many-tasks?link=1&epsilon=1&num_users=2000&num_tasks=30&tasks_per_user=5&experiment_repeats=100"
# Minutes of work: it cannot end by itself before it is stopped.
LINK += "&experiment_users=10000"


def test_from_an_exponent_to_weights_and_a_stopped_experiment(page: Page, app_url: str) -> None:
    page.goto(app_url + LINK)
    settle(page)
    look_at_first_screen(page, MOST_WORDS, "Many tasks")
    card = page.locator(".st-key-tasks_card")
    heading = card.get_by_role("heading")
    expect(heading).to_contain_text("Weight a task of n users by 1 / n to the power 0.5")
    slider = page.get_by_role("slider", name="Favour small tasks, μ")
    slider.focus()
    slider.press("Home")
    settle(page)
    expect(card).to_contain_text("Figure and code are for your μ = 0;")
    page.get_by_role("button", name=re.compile("^Use μ = ")).click()
    settle(page)
    expect(card).to_contain_text("The tail fifth of tasks gains")
    expect(card).not_to_contain_text("are for your μ")

    page.get_by_role("tab", name="Tasks").click()
    page.get_by_role("tab", name="Exact optimum").click()
    settle(page)
    page.get_by_role("button", name="Find the exact optima").click()
    expect(card).to_contain_text("The exact optimum would gain a further")
    expect(page.get_by_text("Free weights are better because")).to_be_visible()

    page.get_by_role("tab", name="Downloads").click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="User-task weights (CSV)").click()
    assert waiting.value.suggested_filename == "user-task-weights.csv"
    with Path(waiting.value.path()).open(newline="", encoding="utf-8") as stream:
        assert next(stream) == "# public input\n"
        rows = list(csv.DictReader(stream))
    per_user: dict[str, float] = {}
    for row in rows:
        per_user[row["user"]] = per_user.get(row["user"], 0.0) + float(row["weight"]) ** 2
    budget = exact_budget(PrivacyTarget(1.0, 1e-5))
    assert 0.99 * budget < max(per_user.values()) <= budget

    page.get_by_role("tab", name="Studies").click()
    page.get_by_role("tab", name="Experiment").click()
    settle(page)
    page.get_by_role("button", name="Run", exact=True).click()
    stop_button(page).click()
    expect(page.get_by_text(re.compile("Stopped (after|before)"))).to_be_visible()
