"""The sample events, and a folder with them in which programs run."""

from __future__ import annotations

import csv
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

EVENTS = Path(__file__).resolve().parents[3] / "sample_data" / "shop_events.csv"


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    """Return the working folder, with the sample events."""
    shutil.copy(EVENTS, empty_folder / "shop_events.csv")
    return empty_folder


def rows_of_users() -> dict[str, list[tuple[float, str]]]:
    """(amount, product) of each user's rows, read without any of our code."""
    rows_by_user = defaultdict(list)
    with EVENTS.open(newline="") as lines:
        for row in csv.DictReader(lines):
            rows_by_user[row["user_id"]].append((float(row["amount"]), row["product"]))
    return rows_by_user
