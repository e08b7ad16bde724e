"""How many users are heavy, and what the noise does to that."""

from __future__ import annotations

import numpy as np

from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import ContributionHistogram, FloatArray


def heavy_users(histogram: ContributionHistogram, rows: int) -> int:
    """Users with more than so many rows."""
    return int(histogram.users[histogram.sizes > rows].sum())


def noisy_counts(
    count: int, epsilon: float, runs: int, progress: Progress, should_stop: ShouldStop
) -> FloatArray:
    """The count with Laplace noise of scale 1 / epsilon, shape (runs,)."""
    found = []
    for run in range(runs):
        if should_stop():
            break
        found.append(count + np.random.default_rng(run).laplace(scale=1.0 / epsilon))
        progress((run + 1) / runs)
    return np.array(found)
