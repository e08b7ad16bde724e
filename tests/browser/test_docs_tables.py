"""Long tables of the documentation's site are sorted by a click on the head of a column."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opened

SCRIPT = Path(__file__).parents[2] / "docs" / "sort_tables.js"
CELLS = ["3.6 %", "–", "321 %", "no numbers printed", "−2", "1,000", *[str(n) for n in range(40, 70)]]


@pytest.mark.long
def test_a_click_sorts_a_long_table_and_a_second_one_turns_it_around(
    open_offline: Opened, tmp_path: Path
) -> None:
    rows = "".join(f"<tr><td>row {i}</td><td>{cell}</td></tr>" for i, cell in enumerate(CELLS))
    short = "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"
    long = f"<table id='long'><thead><tr><th>name</th><th>size</th></tr></thead><tbody>{rows}</tbody></table>"
    (tmp_path / "sort_tables.js").write_bytes(SCRIPT.read_bytes())
    file = tmp_path / "page.html"
    file.write_text(
        f"<meta charset='utf-8'><script src='sort_tables.js'></script>{long}{short}", encoding="utf-8"
    )
    page = open_offline(file)
    assert page.locator("button.sort").count() == 2  # The short table has none.

    def column(number: int) -> list[str]:
        return page.locator(f"#long tbody td:nth-child({number})").all_inner_texts()

    button = page.get_by_role("button", name="size")
    button.click()
    numbers = ["−2", "3.6 %", *[str(n) for n in range(40, 70)], "321 %", "1,000"]
    assert column(2)[:-2] == numbers
    assert set(column(2)[-2:]) == {"–", "no numbers printed"}
    button.press("Enter")
    assert column(2)[:-2] == numbers[::-1]  # What is no number stays last.
    page.get_by_role("button", name="name").click()
    assert column(1) == [f"row {i}" for i in range(len(CELLS))]
    assert page.locator("th[aria-sort]").all_inner_texts() == ["name"]
