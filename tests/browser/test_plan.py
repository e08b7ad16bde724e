"""Plan in a real browser: from a quantile to a plan, a program that runs, and a file of settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dpcore.cli import command
from tests.browser.browser import enter, press, settle
from tests.browser.test_journeys import ROOT, SHOP_EVENTS
from tests.browser.test_report import download


@pytest.mark.long
def test_from_a_quantile_to_a_plan_a_program_that_runs_and_settings_that_answer_alike(
    page: Page,
    app_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.goto(f"{app_url}/quantile?link=1&data=shop-events&epsilon=1&low=0&high=100")
    settle(page)
    press(page.get_by_role("button", name="Add to the plan"))
    press(page.get_by_role("link", name="Added to the plan: open Budget plan"))
    expect(page.get_by_role("heading", level=1, name="Budget plan")).to_be_visible()
    for line in ("number of users", "number of rows", "sum", "mean", "rows per group"):
        press(page.get_by_role("button", name=f"Add {line}", exact=True))
    enter(page.get_by_role("textbox", name="Target error of rows", exact=True), "2%")
    press(page.get_by_role("button", name="Remove sum", exact=True))
    table = page.locator(".sweetspot-plan")
    expect(table.get_by_role("row")).to_have_count(6)
    expect(table.get_by_role("row").nth(3).get_by_role("textbox")).to_have_value("2%")
    expect(table.get_by_role("rowheader")).to_have_text(["median", "users", "rows", "mean", "rows per group"])
    enter(page.get_by_role("spinbutton", name="ε, exactly"), "3")
    card = page.locator(".st-key-plan_card")
    expect(card).to_contain_text(re.compile(r"ε = 3 is enough for .+ of 5 numbers"))
    headline = card.get_by_role("heading").inner_text()

    press(page.get_by_role("button", name="Get code"))
    text = page.get_by_role("dialog").get_by_test_id("stCode").locator("code").inner_text()
    with page.expect_download():
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    # The button was disabled while its file was made: the keyboard works on where it was.
    expect(page.get_by_role("dialog").get_by_role("button", name="Download")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    monkeypatch.chdir(ROOT)
    exec(compile(text, "program", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    for message in ("users", "rows", "mean", "rows per group", "median"):
        assert message in printed

    press(page.get_by_role("tab", name="Downloads"))
    settings = download(page, "Settings (TOML)", tmp_path)
    assert settings.name == "plan.toml"
    assert command.main(["plan", str(settings), str(SHOP_EVENTS)]) == 0
    assert headline in capsys.readouterr().out
