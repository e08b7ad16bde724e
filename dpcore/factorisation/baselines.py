"""The baselines of a factorisation: one number for all ratings, or one per item, with and without privacy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.fit import RIDGE_TO_NOISE, PrivateFit, fit_private
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings

LEVEL_ONLY = FactorSettings(dimension=1, sweeps=1, offset=1.0)
"""Item vectors of one coordinate, the item's level; user vectors are all 1."""


def fit_global_mean(train: Ratings, limits: RatingRange) -> FactorModel:
    """Predict the mean of all ratings for every item. Not private."""
    mean = float(limits.centre(train.values.astype(np.float64)).mean())
    return FactorModel(np.full((train.num_items, 1), mean), LEVEL_ONLY, limits)


def fit_item_means(train: Ratings, limits: RatingRange, ridge: float = 5.0) -> FactorModel:
    """Compute each item's mean, shrunk to the mean of all ratings as if it had ``ridge`` ratings more. Not private."""
    labels = limits.centre(train.values.astype(np.float64))
    overall = labels.mean()
    sums = np.bincount(train.items, labels - overall, train.num_items)
    means = overall + sums / (train.item_counts + ridge)
    return FactorModel(means[:, None], LEVEL_ONLY, limits)


EQUAL_WEIGHTS_BELOW = 2.0
"""ε below which all ratings of a user weigh alike in item means, which takes no noisy counts: these are then not worth
their share. Public, found on generated ratings and on MovieLens 1M: at ε = 0.3 the error is 0.010 less on both than
with μ = 1/4, at ε = 3 it is 0.002 less and 0.002 more."""


def choose_exponent(epsilon: float, exponent: float) -> float:
    """Return mu of the private item means at an ε, whatever the data: 0 where ε is small, else the given one."""
    return 0.0 if epsilon < EQUAL_WEIGHTS_BELOW else exponent


def fit_private_item_means(
    train: Ratings,
    limits: RatingRange,
    spending: Spending,
    exponent: float = 0.25,
    ridge_to_noise: float = RIDGE_TO_NOISE,
    seed: int = 0,
) -> PrivateFit:
    """Compute each item's mean with the guarantee of a factorisation: `fit_private` with the level alone, one sweep.

    Args:
        train: The table.
        limits: The public range of ratings.
        spending: The budget; its sweeps are taken to be one, for this needs no more.
        exponent: mu of its adaptive weights; `choose_exponent` says which is the better one.
        ridge_to_noise: As in `fit_private`.
        seed: Of noise and draws.
    """
    # With mu = 0 no count is read, and none is paid for.
    count_share = spending.count_share if exponent else 0.0
    single_sweep = Spending(spending.budget, count_share, 1, spending.max_items)
    fit = fit_private(
        train, LEVEL_ONLY, limits, Scheme.ADAPTIVE, single_sweep, exponent, ridge_to_noise, seed
    )
    assert fit is not None  # It was not asked to stop.
    return fit


OWN_RIDGE = 5.0
"""Of a user's own offset: about the variance of an error over that of offsets. Public; users may take any other."""


def add_own_offsets(item_means: FactorModel, ridge: float = OWN_RIDGE) -> FactorModel:
    """Add to released item means each user's own offset, computed at home: Σ (y - item mean) / (ratings + ridge).

    The release is the same. A user's offset is computed from it and from their own ratings and stays with them,
    so that predictions are private for everybody else (joint differential privacy); nothing more is paid.

    Args:
        item_means: Item means, `fit_item_means` or of `fit_private_item_means`.
        ridge: Ratings that an offset is drawn to 0 by.

    Source: Kearns, Pai, Roth and Ullman 2014, for joint differential privacy (the billboard lemma).
    """
    settings = replace(LEVEL_ONLY, user_ridge=ridge, own_coordinate=1.0)
    return FactorModel(settings.append_own_coordinate(item_means.item_vectors), settings, item_means.range)
