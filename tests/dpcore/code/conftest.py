"""A folder with the sample events, in which programs run."""

from __future__ import annotations

import shutil
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
