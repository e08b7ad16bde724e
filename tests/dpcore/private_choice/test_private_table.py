"""The bound of a mean of this table, drawn: errors by hand, what the condition is near, and wrong variants."""

import dataclasses
import math

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.private_choice import choice
from dpcore.private_choice.choice import ChoiceProblem
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.scores import CapMean
from dpcore.private_choice.table_scores import TableCap, TableSmooth


def test_errors_are_those_user_by_user_and_no_bound_is_better() -> None:
    rng = np.random.default_rng(0)
    for _ in range(6):
        counts = rng.zipf(1.7, 60).clip(max=300)
        histogram = ContributionHistogram.from_counts(counts)
        a, rho, s = (
            float(rng.choice([0.02, 0.2, 2.0])),
            float(rng.choice([0.05, 0.3, 1.0])),
            counts.astype(float),
        )
        for item in (TableCap(a, rho), TableSmooth(a, rho)):
            for h in np.linspace(s.min(), s.max(), 9):
                kept_values = np.minimum(h, s)
                u = kept_values / kept_values.sum()
                off = u - s / s.sum()
                # A cap: kept rows are a sample without replacement. Weights: each user's mean has variance 1 / x.
                if item.is_integer:
                    variance = rho * off @ off + (1.0 - rho) * (1.0 / kept_values.sum() - 1.0 / s.sum())
                else:
                    variance = (off**2) @ (rho + (1.0 - rho) / s)
                expected = math.sqrt(a * variance + (h / kept_values.sum()) ** 2)
                assert item.compute_errors(histogram, np.array([h]))[0] == pytest.approx(expected, rel=1e-9)
            fine = np.arange(s.min(), s.max() + 1) if item.is_integer else np.linspace(s.min(), s.max(), 3001)
            best = item.compute_errors(histogram, np.array([item.find_best_bound(histogram)]))[0]
            assert best <= item.compute_errors(histogram, fine).min() * (1 + 1e-12)


@pytest.mark.long
def test_a_draw_comes_near_the_best_bound_where_one_for_independent_rows_does_not() -> None:
    """By the law and the errors as they stand, over the samples with each user so often that there are 10,000."""
    found, independent = [], []
    for key in samples.SAMPLES:
        histogram = samples.load(key).histogram
        times = round(10_000 / histogram.num_users)
        many = ContributionHistogram(histogram.sizes, histogram.users * times)
        asked = PrivateParameters(1.0, BoundPurpose.CAP, 0.5, user_share=0.2)
        costs = asked.condition.compute_errors(many, asked.choice.candidates)
        costs = (
            costs / asked.condition.compute_errors(many, np.array([asked.condition.find_best_bound(many)]))[0]
        )
        found.append(float(choice.compute_probabilities(asked.choice, many) @ costs))
        assert choice.summarise_regret(asked.choice, many).mean_regrets[0, 0] == pytest.approx(
            found[-1] - 1.0, abs=1e-9
        )
        other = dataclasses.replace(asked, user_share=0.0)
        independent.append(float(choice.compute_probabilities(other.choice, many) @ costs))
    assert max(found) < 1.2
    assert max(independent) > 1.5


def test_a_user_without_a_limit_would_move_the_score_without_a_limit() -> None:
    """The sum of what is cut, in units of h, without REACH: the newcomer counts a hundred times and more."""
    condition, grid = TableCap(0.5, 0.5), np.array([2.0, 5.0])
    histogram = ContributionHistogram([1, 4], [30, 10])
    more = ContributionHistogram([1, 4, 2000], [30, 10, 1])
    largest = np.abs(
        condition.compute_distances(more, grid) - condition.compute_distances(histogram, grid)
    ).max()
    assert largest == condition.compute_sensitivity(Neighbours.ADD_OR_REMOVE_USER)
    rows, others = (np.repeat(h.sizes, h.users).astype(float) for h in (more, histogram))
    wrong = [np.maximum(item[:, None] - grid, 0.0).sum(axis=0) / grid for item in (rows, others)]
    assert np.abs(wrong[0] - wrong[1]).max() > 100


def test_independent_rows_are_drawn_for_as_before() -> None:
    parameters = PrivateParameters(2.0, BoundPurpose.CAP)
    assert parameters.condition == CapMean(parameters.trade_off)
    assert not parameters.setting.targets_table_mean
    with pytest.raises(InvalidInput) as refused:
        TableCap(0.0, 1.5)
    assert len(refused.value.problems) == 2
    assert ChoiceProblem(TableCap(1.0, 0.5), 1.0, 10).candidates.size == 10
