"""The answer, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.toy.heavy import heavy_users
from dpcore.toy.parameters import ToyParameters


@dataclass(frozen=True)
class ToyAnswer:
    """Heavy users, for the number of rows that was asked for and for all."""

    heavy: int
    sizes: IntArray
    users: IntArray
    shares: FloatArray


def compute(histogram: ContributionHistogram, parameters: ToyParameters) -> ToyAnswer:
    """Count."""
    users = np.array([heavy_users(histogram, int(size)) for size in histogram.sizes])
    return ToyAnswer(
        heavy_users(histogram, parameters.rows), histogram.sizes, users, users / histogram.num_users
    )
