"""The moments against an enumeration of all choices of groups, and against the mechanism itself."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.per_group.moments import compute_moments, compute_pair_error
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from tests.dpcore.per_group.conftest import draw_whole, random_pairs

ADDED_UP = [statistic for statistic in Statistic if statistic is not Statistic.MEAN]


def table(statistic: Statistic) -> UserGroupPairs:
    return random_pairs(0, shift=2.0 if statistic is Statistic.SIGNED_SUM else 0.0)


@pytest.mark.parametrize("statistic", ADDED_UP)
def test_moments_agree_with_all_choices_of_groups(statistic: Statistic) -> None:
    small = table(statistic)
    problem = PerGroupProblem(small, PerGroupParameters(1.0, statistic))
    for max_groups, max_amount in product((1, 2, 3, 9), (1, 2.5, 1e9)):
        moments = compute_moments(problem, max_groups, max_amount)
        mean, variance = np.zeros(small.num_groups), np.zeros(small.num_groups)
        for user in np.unique(small.user_codes):
            own_indices = np.flatnonzero(small.user_codes == user)
            outcomes = []
            for combination in combinations(own_indices.tolist(), min(max_groups, own_indices.size)):
                outcome = np.zeros(small.num_groups)
                outcome[small.group_codes[list(combination)]] = np.clip(
                    problem.amounts[list(combination)], -max_amount, max_amount
                )
                outcomes.append(outcome)
            mean += np.mean(outcomes, axis=0)
            variance += np.var(outcomes, axis=0)
        assert moments.biases == pytest.approx(mean - problem.totals, rel=1e-12, abs=1e-12)
        assert moments.sampling_variances == pytest.approx(variance, rel=1e-10, abs=1e-12)


@pytest.mark.thinned
@pytest.mark.parametrize("statistic", ADDED_UP)
@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER])
@pytest.mark.parametrize("epsilon", [3.0, 20.0])
def test_moments_agree_with_runs_of_the_mechanism(
    statistic: Statistic, noise: NoiseKind, neighbours: Neighbours, epsilon: float
) -> None:
    small = table(statistic)
    delta = None if noise is NoiseKind.LAPLACE else 1e-5
    asked = PerGroupParameters(epsilon, statistic, noise, delta, neighbours=neighbours)
    problem = PerGroupProblem(small, asked)
    max_groups, max_amount, runs = 2, 3.0, 4_000
    rng = np.random.default_rng(7)
    # The mechanism: each user's groups in random order, the first two kept, clipped, added up, noise added.
    rank = np.empty((runs, small.num_pairs))
    for user in np.unique(small.user_codes):
        own = np.flatnonzero(small.user_codes == user)
        rank[:, own] = np.argsort(np.argsort(rng.random((runs, own.size)), axis=1), axis=1)
    kept = np.where(rank < max_groups, np.clip(problem.amounts, -max_amount, max_amount), 0.0)
    release = kept @ (small.group_codes[:, None] == np.arange(small.num_groups))
    scale = (
        float(asked.compute_norm_sensitivity(asked.compute_pair_norm(max_groups, max_amount)))
        * asked.noise.unit_scale
    )
    if statistic in (Statistic.ROWS, Statistic.USERS):  # OpenDP's noise on counts is whole.
        draws = draw_whole(rng, noise, scale, release.shape)
    else:
        draws = (rng.laplace if noise is NoiseKind.LAPLACE else rng.normal)(0.0, scale, release.shape)
    error = release + draws - problem.totals
    found = compute_moments(problem, max_groups, max_amount)
    # Ten means within 5 standard errors of their own: all hold with probability above 1 - 1e-5 for normal means.
    for figures, truth in ((error, found.biases), (error**2, found.mean_squares)):
        allowed = 5.0 * figures.std(axis=0) / math.sqrt(runs)
        assert np.all(np.abs(figures.mean(axis=0) - truth) <= allowed)


def test_objectives_are_what_their_names_say(small: UserGroupPairs) -> None:
    def of(objective: Objective, floor: float | None = None) -> float:
        return compute_pair_error(
            PerGroupProblem(small, PerGroupParameters(1.0, objective=objective, floor=floor)), 2, 3
        )

    plain_problem = PerGroupProblem(small, PerGroupParameters(1.0))
    squares = compute_moments(plain_problem, 2, 3).mean_squares
    size = np.maximum(plain_problem.totals, 4.0)
    assert of(Objective.ROOT_MEAN_SQUARE) == pytest.approx(np.sqrt(squares.mean()), rel=1e-14)
    assert of(Objective.MEAN_RMSE) == pytest.approx(np.sqrt(squares).mean(), rel=1e-14)
    assert of(Objective.MEAN_RELATIVE, 4.0) == pytest.approx((np.sqrt(squares) / size).mean(), rel=1e-14)
    large = plain_problem.totals >= 4.0
    assert 0 < large.sum() < large.size
    assert of(Objective.LARGE_GROUPS, 4.0) == pytest.approx(np.sqrt(squares[large].mean()), rel=1e-14)
    root = np.sqrt((squares / size**2).mean())
    assert of(Objective.RELATIVE_ROOT_MEAN_SQUARE, 4.0) == pytest.approx(root, rel=1e-14)
