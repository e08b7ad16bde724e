"""What the tests of pages share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpcore.private_choice import comparison
from dpcore.training import experiment
from pages.shared import shell
from pages.shared.report import report_content

ALL_COPIES = comparison.simulate_cost


@pytest.fixture(scope="session", autouse=True)
def few_copies() -> Iterator[None]:
    """Simulate a few DP histograms: they are enough where a test does not read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "simulate_cost", functools.partial(ALL_COPIES, num_runs=3))
        yield


@pytest.fixture(scope="module", autouse=True)  # of the session it would last into the tests of the core
def few_subsamples_on_pages(few_subsamples: None) -> None:
    """Average few subsamples on all pages."""


FILL, REFERENCES = experiment.fill_table, experiment.compute_references


def first_runs(table: experiment.RunTable, **options: Any) -> experiment.RunTable:
    """Do as `experiment.fill_table`, until there is a first curve."""
    if options.get("on_update") is None or "should_stop" not in options:
        return FILL(table, **options)
    updates: list[object] = []
    on_update, stop = options["on_update"], options["should_stop"]
    options |= {
        "on_update": lambda update: (updates.append(update), on_update(update)),
        "should_stop": lambda: bool(updates) or stop(),
    }
    return FILL(table, **options)


def of_first_split(question: experiment.Experiment, *arguments: Any) -> experiment.References | None:
    """Do as `experiment.compute_references`, with what is found on the first split in the place of all."""
    solutions = REFERENCES(dataclasses.replace(question, splits=question.splits[:1]), *arguments)
    if solutions is None:
        return None
    scores = (
        "scores_without_privacy",
        "guessing_scores",
        "scores_without_noise",
        "scores_without_noise_and_clipping",
    )
    all_of = {name: np.repeat(getattr(solutions, name), len(question.splits), axis=0) for name in scores}
    return dataclasses.replace(solutions, **all_of)


@pytest.fixture(scope="session", autouse=True)
def few_runs() -> Iterator[None]:
    """Stop Training at a first curve, which is enough elsewhere: it makes its runs whenever the page is opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "fill_table", first_runs)
        patch.setattr(experiment, "compute_references", of_first_split)
        yield


@pytest.fixture
def all_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate as many copies as on the page, for a test that reads them."""
    monkeypatch.setattr(comparison, "simulate_cost", ALL_COPIES)


@pytest.fixture
def report_contents():
    """Yield what pages contribute, by stem: AppTest cannot see what a button downloads."""
    contents = {}
    with pytest.MonkeyPatch.context() as patch:  # not the test's own, which costs it what others have cached
        patch.setattr(
            report_content,
            "_draw_buttons",
            lambda stem, disclosure, content, public_only: contents.update({stem: content}),
        )
        yield contents


@pytest.fixture(scope="session", autouse=True)
def settled_memory() -> Iterator[None]:
    """Do once what a server does once, also after caches were cleared; `tests/conftest.py` does it for the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell, "freeze_memory", lambda: True)
        yield
