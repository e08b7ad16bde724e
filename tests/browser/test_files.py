"""Files through the real upload widget and by path: several at once, progress and Stop on a large one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from tests.browser.browser import enter, press, settle, stop_button
from tests.browser.test_journeys import choose_file

ONE = b"user_id,amount\nanna,1\nbert,2\nanna,3\n"
TWO = b"amount,user_id\n4,anna\n5,carl\n"
OTHER = b"kunde,amount\nanna,1\n"


def open_panel(page: Page) -> None:
    """On Data: where a file is chosen."""
    press(page.get_by_test_id("stMain").get_by_text("Upload a file", exact=True))


def choose(page: Page, **files: bytes) -> None:
    given = [
        {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": content} for name, content in files.items()
    ]
    page.locator("input[type=file]").set_input_files(given)
    settle(page)


def hostile_files_give_sentences(page: Page) -> None:
    error = page.get_by_test_id("stAlert")
    choose_file(page, "<b>x</b> *y*.csv", b"\x89PNG\r\n\x1a\n" + bytes(60))
    expect(error).to_contain_text("<b>x</b> *y*.csv was not read")
    expect(error).to_contain_text("This is a PNG picture, not a table in text form")
    expect(error).to_contain_text("The data in use stay as they were")
    choose_file(page, "www.example.org me@example.org.csv", b"")
    expect(error).to_contain_text("The file is empty")
    expect(error.locator("a")).to_have_count(0)


def files_of_different_columns_get_a_sentence_and_those_of_the_same_count_as_one_table(page: Page) -> None:
    choose(page, one=ONE, other=OTHER)
    alert = page.get_by_test_id("stAlert").filter(has_text="The files were not read")
    expect(alert).to_contain_text(
        "File other.csv: unlike one.csv, this file lacks column user_id and has column kunde"
    )
    choose(page, one=ONE, two=TWO)  # the widget takes the next files
    expect(page.get_by_text("one.csv and 1 more: 5 rows, 2 columns")).to_be_visible()
    expect(alert).to_have_count(0)
    press(page.get_by_role("button", name="Use these data"))
    expect(page.get_by_role("heading", name="In use: one.csv and 1 more")).to_be_visible()
    # anna has two rows in the first file and one in the second; bert and carl one each.
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("3 users")
    expect(main).to_contain_text("5 rows")


def a_large_file_by_path_shows_progress_and_stops(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    rng = np.random.default_rng(3)
    schema = pa.schema([("user_id", pa.int64()), ("amount", pa.float64())])
    # Plainly written: neither compression nor a dictionary finds anything in random numbers.
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(24):
            users = rng.integers(0, 2**40, 1_000_000)  # nearly all different: the costliest to group
            writer.write_table(pa.table({"user_id": users, "amount": users / 2.0**40}))
    field = page.get_by_role("textbox", name="Or the path of a file")
    enter(field, str(path))
    press(page.get_by_role("button", name="Look at it"))
    expect(page.get_by_text("not yet counted")).to_be_visible()
    text_before = page.get_by_text("In use until then:").inner_text()
    page.get_by_role("button", name="Use these data").click()
    bar = page.get_by_test_id("stProgress")
    expect(bar).to_be_visible()
    seen: set[str] = set()
    for _ in range(600):
        if not bar.count():
            break
        seen.add(bar.inner_text())
        if len(seen) >= 2:
            break
        page.wait_for_timeout(100)
    assert any(text != "Counting: 0%" for text in seen), seen  # a real fraction
    stop_button(page).click()
    expect(page.get_by_text("Stopped; the data in use stay as they were.")).to_be_visible()
    settle(page)
    assert page.get_by_text("In use until then:").inner_text() == text_before
    expect(page.get_by_role("button", name="Use these data")).to_be_enabled()  # the file still waits
    assert path.exists()


@pytest.mark.long
def test_files_are_refused_counted_put_together_and_stopped(page: Page, app_url: str, tmp_path: Path) -> None:
    page.goto(f"{app_url}/your-data")
    settle(page)
    open_panel(page)
    a_large_file_by_path_shows_progress_and_stops(page, tmp_path)
    hostile_files_give_sentences(page)
    files_of_different_columns_get_a_sentence_and_those_of_the_same_count_as_one_table(page)
