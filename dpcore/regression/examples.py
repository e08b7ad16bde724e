"""Instances that are known: the paper's two examples of an unbounded gap, and its synthetic data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import require
from dpcore.contributions import FloatArray, IntArray
from dpcore.regression.problem import RegressionProblem

Kinds = tuple[FloatArray, IntArray, IntArray]
"""Rows of one user with the same features: these, shape (kinds, 2), whose they are, ascending, and how many."""


def kinds_1(g: int) -> Kinds:
    """Return example 1: one far point against many users with g rows, one with g rows against many with one."""
    many = g * g
    features = np.zeros((2 * many + 2, 2))
    features[: many + 1, 0] = 1.0
    features[0, 0] = g
    features[many + 1 :, 1] = 1.0
    counts = np.ones(2 * many + 2, dtype=np.int64)
    counts[1 : many + 2] = g
    return features, np.arange(2 * many + 2), counts


def kinds_3(g: int) -> Kinds:
    """Return example 3: user 1 with g rows; for each other user one in the first direction and g - 1 in the second."""
    features = np.concatenate(([[1.0, 0.0]], np.tile([[1.0, 0.0], [0.0, 1.0]], (g, 1))))
    codes = np.concatenate(([0], np.repeat(np.arange(1, g + 1), 2)))
    return features, codes, np.concatenate(([g], np.tile([1, g - 1], g)))


def _problem(kinds: Kinds, value_bound: float, residual_variance: float) -> RegressionProblem:
    features, codes, counts = kinds
    rows, owners = np.repeat(features, counts, axis=0), np.repeat(codes, counts)
    return RegressionProblem(rows, owners, 2.0, value_bound, residual_variance)


def example_1(g: int) -> RegressionProblem:
    """Labels without noise: the best estimator has variance exactly 1 / (g^2 + 1)^2.

    In the second direction g^2 + 1 users share a total of 1 at best, so t >= 1 / (g^2 + 1), and that much is
    more than enough in the first. Every cap costs at least 1 / (4 g^3).

    Args:
        g: Whole, 1 to 300.

    Source: Epasto et al. 2020, example 1 and claim 3. (The C given there, with 1/g^2 per data point, does
        not satisfy C X = I; 1/g^3 does, and the variance 1/g^4 stands.)
    """
    require.whole(1, 300, g=g)
    return _problem(kinds_1(g), 1.0, 0.0)


def example_3(g: int) -> RegressionProblem:
    """Build features of length 1, where the best estimator has variance at most 6/g, every cap about g/9 or more.

    Args:
        g: Whole, 2 to 1,000 (the paper asks for 8 or more).

    Source: Epasto et al. 2020, example 3 and claim 9: sigma = 1 and 2 d (B / epsilon)^2 = g.
    """
    require.whole(2, 1000, g=g)
    return _problem(kinds_3(g), float(np.sqrt(g)), 1.0)


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A generated table.

    Attributes:
        features: X, standard normal, shape (num_rows, num_features).
        labels: y = X beta + noise, shape (num_rows,).
        user_codes: Owners, shape (num_rows,).
        coefficients: beta, shape (num_features,); the uninformative ones are 0.
    """

    features: FloatArray
    labels: FloatArray
    user_codes: IntArray
    coefficients: FloatArray


def compute_zipf_sizes(num_rows: int, exponent: float) -> IntArray:
    """Return the rows per user with the number of users having i rows in proportion to 1 / i^exponent.

    The number of users with at most i rows is rounded, so that the tail is filled as the law asks; the
    heaviest user is the one that is cut to make the rows add up.

    Args:
        num_rows: n, at least 1.
        exponent: alpha, above 1 in the paper.

    Source: Epasto et al. 2020, appendix E.1.1.
    """
    i = np.arange(1, num_rows + 1, dtype=np.float64)
    law = i**-exponent
    users = np.diff(np.round(np.cumsum(law * (num_rows / float(law @ i)))), prepend=0.0).astype(np.int64)
    sizes = np.repeat(np.arange(1, num_rows + 1), users)
    sizes = sizes[np.cumsum(sizes) <= num_rows]
    remaining = num_rows - int(sizes.sum())
    return np.append(sizes, remaining) if remaining else sizes


def synthetic(
    num_rows: int,
    informative: int = 5,
    uninformative: int = 5,
    label_noise: float = 20.0,
    exponent: float = 1.5,
    seed: int = 0,
) -> Synthetic:
    """Generate data as the paper does: a linear model, users with a power law of rows, rows dealt at random.

    The model is that of scikit-learn's ``make_regression`` with no bias: standard normal features,
    coefficients of the informative ones uniform on [0, 100], normal noise.

    Args:
        num_rows: n, 1 to 5,000,000.
        informative: Features with a coefficient, 1 to 50.
        uninformative: Features without, 0 to 49.
        label_noise: Standard deviation of the noise, in the labels' unit.
        exponent: alpha of the power law of rows per user, above 0 and up to 5.
        seed: Of the generator.

    Source: Epasto et al. 2020, section 6 and appendix E.1.1.
    """
    rng = np.random.default_rng(seed)
    d = informative + uninformative
    coefficients = np.concatenate((100.0 * rng.random(informative), np.zeros(uninformative)))
    coefficients = coefficients[rng.permutation(d)]
    features = rng.standard_normal((num_rows, d))
    labels = features @ coefficients + label_noise * rng.standard_normal(num_rows)
    sizes = compute_zipf_sizes(num_rows, exponent)
    owners = rng.permutation(np.repeat(np.arange(sizes.size), sizes))
    return Synthetic(features, labels, owners, coefficients)
