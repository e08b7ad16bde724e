"""Regression in a real browser: a table is brought, bounded, answered, and drawn from twice."""

from __future__ import annotations

import re

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.browser import settle


def table() -> bytes:
    rng = np.random.default_rng(5)
    owners = np.minimum(rng.zipf(1.7, 200), 30)
    lines = ["user,colour,size,rating"]
    for owner in owners:
        colour, size = rng.choice(["red", "blue"]), rng.normal(5.0, 1.0)
        rating = min(max(round(4.0 + 2.0 * (colour == "red") + 0.3 * size + rng.normal()), 1), 10)
        lines.append(f"u{owner},{colour},{size:.3f},{rating}")
    return "\n".join(lines).encode()


def enter(page: Page, name: str, text: str) -> None:
    field = page.get_by_role("spinbutton", name=name)
    field.fill(text)
    field.press("Enter")
    settle(page)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()
    settle(page)


def place(page: Page) -> tuple[float, float]:
    """How far the page is scrolled, and how long it is."""
    found = page.get_by_test_id("stMain").evaluate("e => [e.scrollTop, e.scrollHeight]")
    return found[0], found[1]


def test_from_a_table_to_two_counted_draws(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/regression")
    card = page.locator(".st-key-regression_card")
    expect(card).to_contain_text("Weight the rows instead of bounding them")
    expect(page.get_by_text("Proved best")).to_be_visible()
    settle(page)

    # Another question: nothing is taken away, and a page that is scrolled down stays where it is.
    page.locator(".st-key-regression_state").scroll_into_view_if_needed()
    before, number = place(page), card.locator(".value").inner_text()
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press("ArrowRight")
    expect(card.locator(".value")).not_to_have_text(number)
    expect(page.get_by_text("Proved best")).to_be_visible()
    settle(page)
    # It may grow by the line that names the pale curves, where the first answer was there at once and had none.
    scrolled, length = place(page)
    assert scrolled == before[0]
    assert length >= before[1]
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press("ArrowLeft")
    # The weights found for the first question again, or others as good to within what is proved: the scale of the noise
    # is one part of their error, and moves more than the error does where that is flat.
    expect(card.locator(".value")).to_have_text(re.compile(rf"^{re.escape(number[:2])}"))

    page.get_by_role("button", name="Other data").click()
    page.get_by_text("Upload a table", exact=True).click()
    settle(page)
    page.locator("input[type=file]").set_input_files(
        {"name": "ratings.csv", "mimeType": "text/csv", "buffer": table()}
    )
    settle(page)
    press(page, "Use these data")
    enter(page, "Lowest label L", "1")
    enter(page, "Highest label U", "10")
    expect(card).to_contain_text("do not publish")
    page.get_by_role("tab", name="Release").click()
    expect(page.get_by_role("button", name="Draw the coefficients")).to_be_disabled()
    press(page, "More settings")
    page.get_by_text("Entered", exact=True).click()
    settle(page)
    enter(page, "σ² (rating, squared)", "1")
    expect(card).to_contain_text("Weight the rows instead of bounding them")
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Release").click()
    settle(page)
    press(page, "Draw the coefficients")
    expect(page.get_by_text("Spent on these data: ε = 1 in 1 release")).to_be_visible()
    press(page, "Draw once more")
    expect(page.get_by_text("Spent on these data: ε = 2 in 2 releases")).to_be_visible()
    page.get_by_role("tab", name="Downloads").click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="C (Parquet)").click()
    assert waiting.value.suggested_filename == "regression-matrix-PRIVATE-do-not-publish.parquet"
