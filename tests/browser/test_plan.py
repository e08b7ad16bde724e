"""Plan in a real browser: from a CSV to a plan, a program that runs, and a file of settings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sweet_spot import command
from tests.browser.browser import settle
from tests.browser.test_journeys import choose_file, enter, press
from tests.browser.test_one_path import FILE, purchases
from tests.browser.test_report import download


def test_from_a_csv_to_a_plan_a_program_that_runs_and_settings_that_answer_alike(
    page: Page, app_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FILE).write_bytes(purchases())
    page.goto(f"{app_url}/your-data")
    settle(page)
    press(page.get_by_text("Upload a file", exact=True))
    choose_file(page, FILE, purchases())
    press(page.get_by_text("Yes: anybody may see them"))
    press(page.get_by_role("button", name="Use these data"))
    press(page.locator(".st-key-your_data_offers").get_by_role("link", name="Quantile"))
    press(page.get_by_role("button", name="Add to the plan"))
    press(page.get_by_role("link", name="Among the numbers of the plan"))
    expect(page.get_by_role("heading", level=1, name="Plan")).to_be_visible()
    enter(page.get_by_role("spinbutton", name="ε, exactly"), "3")
    card = page.locator(".st-key-plan_card")
    expect(card).to_contain_text(re.compile(r"ε = 3 is enough for .+ of 6 numbers"))
    said = card.get_by_role("heading").inner_text()

    press(page.get_by_role("button", name="Code for your library"))
    text = page.get_by_role("dialog").get_by_test_id("stCode").locator("code").inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for what in ("users", "rows", "sum", "mean", "rows per group", "median"):
        assert what in done.stdout

    press(page.get_by_role("tab", name="Downloads"))
    settings = download(page, "Settings (TOML)", tmp_path)
    assert settings.name == "plan.toml"
    assert command.main(["plan", str(settings), str(tmp_path / FILE)]) == 0
    assert said in capsys.readouterr().out
