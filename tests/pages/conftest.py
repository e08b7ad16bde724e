"""What the tests of pages share."""

from __future__ import annotations

import pytest

from pages.shared import take_away


@pytest.fixture
def taken(monkeypatch):
    """What pages contribute, by stem: AppTest cannot see what a button downloads."""
    found = {}
    monkeypatch.setattr(
        take_away, "draw", lambda stem, sensitivity, digest, content: found.update({stem: content})
    )
    return found
