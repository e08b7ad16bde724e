"""Rows of one user that are alike: against covariance matrices, and in the words of every page that names them."""

import math
import re

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.common import noise_error
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.group_pairs import build_pairs
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.learning.answer import build_answer as of_learning
from dpcore.per_group.answer import build_answer as of_groups
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.quantile.answer import build_answer as of_quantile
from dpcore.quantile.parameters import QuantileParameters

SHOP = samples.load("shop-events")


def test_variances_are_those_of_the_covariance_matrix():
    generator = np.random.default_rng(5)
    for rho in (0.0, 0.3, 1.0):
        codes = generator.integers(0, 6, 40)
        covariance = np.where(codes[:, None] == codes[None, :], rho, 0.0)
        np.fill_diagonal(covariance, 1.0)
        weights = generator.normal(size=(3, 40))
        of_matrix = sum(w @ covariance @ w for w in weights) / (weights**2).sum()
        assert noise_error.compute_weighted_effect(weights, codes, rho) == pytest.approx(of_matrix)
        sizes, users = np.unique(np.unique(codes, return_counts=True)[1], return_counts=True)
        assert noise_error.compute_design_effect(sizes, users, rho) == pytest.approx(covariance.sum() / 40)
    # Users with 5 rows each and equal weights: 1 + (s - 1) rho.
    assert noise_error.compute_weighted_effect(
        np.ones((2, 20)), np.repeat(np.arange(4), 5), 0.2
    ) == pytest.approx(1.8)


def numbers_of(answer) -> list[float]:
    return [
        float(number)
        for number in re.findall(r"(\d+\.\d+) times", answer.facts[noise_error.ASSUMPTION_LABEL])
    ]


def test_pages_say_the_figure_of_their_rows():
    counts = np.unique(SHOP.values.user_codes, return_counts=True)[1].astype(float)
    rho = noise_error.ASSUMED_USER_SHARE
    full_effect = math.sqrt(1.0 + rho * ((counts**2).sum() / counts.sum() - 1.0))
    assert numbers_of(of_quantile(SHOP, QuantileParameters(1.0, low=0.0, high=100.0))) == [
        pytest.approx(full_effect, rel=5e-3)
    ]
    learnt = of_learning(SHOP, LearningParameters(1.0))
    kept_counts = np.minimum(counts, learnt.solution.best_choice.cap)
    factor = math.sqrt(1.0 + rho * ((kept_counts**2).sum() / kept_counts.sum() - 1.0))
    assert numbers_of(learnt) == [pytest.approx(factor, rel=5e-3)]
    assert 1.0 < factor < full_effect


def test_nothing_is_assumed_of_users_per_group_but_for_what_a_mean_estimates():
    generator = np.random.default_rng(8)
    codes = np.sort(generator.integers(0, 30, 120))
    pairs_facet = build_pairs(
        codes, generator.integers(0, 3, 120), 3, "group", generator.uniform(size=120), "value"
    )
    histogram = ContributionHistogram.from_counts(np.unique(codes, return_counts=True)[1])
    dataset = Dataset("made", "a generator", Disclosure.PUBLIC, histogram, pairs=pairs_facet)
    mean = of_groups(dataset, PerGroupParameters(1.0, statistic=Statistic.MEAN, lower=0.0, upper=1.0))
    middle, worst = numbers_of(mean)
    pairs = mean.solution.problem.pairs
    each = []
    for group in range(pairs.num_groups):
        s = pairs.rows[pairs.group_codes == group].astype(float)
        each.append(math.sqrt(1.0 + noise_error.ASSUMED_USER_SHARE * ((s**2).sum() / s.sum() - 1.0)))
    assert (middle, worst) == (pytest.approx(np.median(each), rel=5e-3), pytest.approx(max(each), rel=5e-3))


def test_regression_says_by_how_much_the_best_weights_err_more():
    """The features are public; the fact is that of the matrix that stands in the answer."""
    generator = np.random.default_rng(2)
    codes = np.repeat(np.arange(12), generator.integers(1, 8, 12))
    features = np.column_stack((np.ones(codes.size), generator.normal(size=codes.size)))
    answer = ss.regression_weights(
        pd.DataFrame({"user": codes, "x": features[:, 1], "y": generator.uniform(size=codes.size)}),
        user="user", label="y", features=["x"], epsilon=1.0, lower=0.0, upper=1.0,
    )  # fmt: skip
    estimate, rho = answer.solution.best_estimate, noise_error.ASSUMED_USER_SHARE
    by_user = sum(((estimate.matrix[:, codes == user].sum(axis=1)) ** 2).sum() for user in range(12))
    effect = 1.0 - rho + rho * by_user / (estimate.matrix**2).sum()
    (error,) = re.findall(r"standard error is ([\d.]*\d)", answer.facts[noise_error.ASSUMPTION_LABEL])
    expected = math.sqrt(effect * estimate.sampling_variance + estimate.privacy_variance)
    assert float(error) == pytest.approx(expected, rel=5e-3)
