"""How many users are heavy, and what the noise does to that."""

from __future__ import annotations

import numpy as np

from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import ContributionHistogram, FloatArray


def count_heavy_users(histogram: ContributionHistogram, rows: int) -> int:
    """Count the users with more than so many rows."""
    return int(histogram.users[histogram.sizes > rows].sum())


def draw_noisy_counts(
    count: int, epsilon: float, runs: int, progress: Progress, should_stop: ShouldStop
) -> FloatArray:
    """Draw the count with Laplace noise of scale 1 / epsilon, shape (runs,); fewer runs if stopped."""
    counts = []
    for run in range(runs):
        if should_stop():
            break
        counts.append(count + np.random.default_rng(run).laplace(scale=1.0 / epsilon))
        progress((run + 1) / runs)
    return np.array(counts)
