"""Small tables of ratings."""

import numpy as np
import pytest

from dpcore.factorisation.ratings import GeneratedRatings, Ratings


def table(seed: int, users: int = 40, items: int = 12, share: float = 0.5) -> Ratings:
    """Draw random ratings in float64; the first user rates everything."""
    rng = np.random.default_rng(seed)
    rated = rng.random((users, items)) < share
    rated[0] = True
    user_codes, item_codes = np.nonzero(rated)
    return Ratings.from_columns(
        user_codes, item_codes, rng.integers(1, 11, user_codes.size) / 2.0, items, users
    )


@pytest.fixture(scope="module")
def generated() -> Ratings:
    """Return a table of 800 users and 150 items."""
    return GeneratedRatings(800, 150, 30.0).draw(np.random.default_rng(3))
