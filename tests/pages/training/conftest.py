"""What the tests of Classifier share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpcore.training import experiment

FILL, REFERENCES = experiment.fill_table, experiment.compute_references


@pytest.fixture(scope="module", autouse=True)
def all_runs() -> Iterator[None]:
    """Make as many runs as on the page; tests of other pages stop at the first curve."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "fill_table", FILL)
        patch.setattr(experiment, "compute_references", REFERENCES)
        yield
