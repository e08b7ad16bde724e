"""Choose privately in a real browser: a number drawn, a copy released and used on Mean, and back."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.browser import settle


def test_a_number_then_a_copy_then_back(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{app_url}/choose-privately")
    settle(page)
    card = page.locator(".st-key-private_card")
    expect(card.get_by_text("against choosing in the clear").first).to_be_visible()
    # The cost figure and both buttons are there without scrolling.
    for seen in (page.locator(".st-key-private_cost_epsilon"), page.get_by_role("button", name="Release a")):
        box = seen.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800
    expect(page.get_by_text("nothing needs protecting").first).to_be_visible()
    page.get_by_role("button", name="Choose one number privately").click()
    expect(page.locator(".st-key-private_chosen").get_by_text("exponential mechanism")).to_be_visible()
    settle(page)
    expect(page.get_by_text("in 2 releases").first).to_be_visible()  # What the next draw would come to.
    expect(page.locator(".st-key-shell_data")).to_contain_text("Spent on these data")
    page.get_by_role("button", name="Code for your library").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_test_id("stCode")).to_contain_text("import")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    settle(page)
    page.get_by_role("button", name="Release a private copy").click()
    released = page.locator(".st-key-private_released")
    expect(released.get_by_text("discrete Laplace").first).to_be_visible()
    settle(page)
    expect(page.get_by_test_id("stProgress")).to_have_count(
        0
    )  # The page is drawn anew when copies are simulated.
    settle(page)
    with page.expect_download() as download:
        released.get_by_role("button", name="Released histogram (CSV)").click()
    assert "DP-release-epsilon-0.1" in download.value.suggested_filename
    released.get_by_role("link", name="Mean on the release").click()
    expect(page.locator(".st-key-mean_card")).to_be_visible()
    settle(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Choose privately").click()
    settle(page)
    page.get_by_role("button", name="Back to the original data").click()
    expect(page.locator(".st-key-private_released")).to_have_count(0)
    settle(page)
