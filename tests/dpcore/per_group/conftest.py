"""Small random tables."""

import numpy as np
import pytest

from dpcore.per_group.pairs import UserGroupPairs


def random_pairs(
    seed: int, users: int = 9, groups: int = 5, rows: int = 60, shift: float = 0.0
) -> UserGroupPairs:
    """A skewed table: few users hold most rows; one group stays empty; values are of at least -shift."""
    rng = np.random.default_rng(seed)
    who = rng.zipf(1.6, rows) % users
    what = rng.integers(0, groups - 1, rows)
    return UserGroupPairs.from_arrays(who, what, groups, sums=(rng.gamma(0.7, 3.0, rows) - shift).round(2))


@pytest.fixture(scope="session")
def small() -> UserGroupPairs:
    return random_pairs(0)
