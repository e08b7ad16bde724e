"""What the tests of pages share."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from dpcore.private_choice import comparison
from pages.shared import take_away

ALL_COPIES = comparison.copy_curves


@pytest.fixture(scope="session", autouse=True)
def few_copies() -> Iterator[None]:
    """Choose privately simulates copies beside the page: a few are enough where a test does not read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "copy_curves", functools.partial(ALL_COPIES, runs=3))
        yield


@pytest.fixture
def all_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many copies as on the page, for a test that reads them."""
    monkeypatch.setattr(comparison, "copy_curves", ALL_COPIES)


@pytest.fixture
def taken(monkeypatch):
    """What pages contribute, by stem: AppTest cannot see what a button downloads."""
    found = {}
    monkeypatch.setattr(take_away, "draw", lambda stem, sensitivity, content: found.update({stem: content}))
    return found
