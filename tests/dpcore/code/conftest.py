"""A folder with the sample events, in which programs run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EVENTS = Path(__file__).resolve().parents[3] / "sample_data" / "shop_events.csv"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(EVENTS, tmp_path / "shop_events.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path
