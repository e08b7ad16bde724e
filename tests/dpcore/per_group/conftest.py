"""Small random tables."""

import math

import numpy as np
import pytest

from dpcore.common.noise_error import NoiseKind
from dpcore.per_group.pairs import UserGroupPairs


def random_pairs(
    seed: int, users: int = 9, groups: int = 5, rows: int = 60, shift: float = 0.0
) -> UserGroupPairs:
    """Draw a skewed table: few users hold most rows; one group stays empty; values are of at least -shift."""
    rng = np.random.default_rng(seed)
    who = rng.zipf(1.6, rows) % users
    groups_of_rows = rng.integers(0, groups - 1, rows)
    return UserGroupPairs.from_arrays(
        who, groups_of_rows, groups, row_values=(rng.gamma(0.7, 3.0, rows) - shift).round(2)
    )


def draw_whole(
    rng: np.random.Generator, noise_kind: NoiseKind, scale: float, shape: tuple[int, ...]
) -> np.ndarray:
    """Draw whole noise by its definition: a difference of geometric numbers, or P(z) ~ exp(-z^2 / (2 scale^2))."""
    if noise_kind is NoiseKind.LAPLACE:
        positive, negative = rng.geometric(-math.expm1(-1.0 / scale), (2, *shape))
        return (positive - negative).astype(float)
    numbers = np.arange(-math.ceil(12.0 * scale) - 1, math.ceil(12.0 * scale) + 2)
    weights = np.exp(-0.5 * (numbers / scale) ** 2)
    return rng.choice(numbers, shape, p=weights / weights.sum()).astype(float)


@pytest.fixture(scope="session")
def small() -> UserGroupPairs:
    return random_pairs(0)
