"""Means per group, against the mechanism itself and against simpler cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.per_group import (
    Objective,
    PerGroupParameters,
    PerGroupProblem,
    Statistic,
    UserGroupPairs,
    best_mean_pair,
    best_pair,
    mean_error,
    mean_moments,
    mean_squares,
)
from dpcore.per_group.means import error_of_one_mean, useful_size

RNG = np.random.default_rng(11)
USERS, GROUPS = RNG.integers(0, 60, 900), RNG.integers(0, 4, 900)
VALUES = (RNG.random(900) * 4.0 + GROUPS).round(2)
PAIRS = UserGroupPairs.from_arrays(USERS, GROUPS, 5, sums=VALUES)


def asked(epsilon: float, noise: NoiseKind = NoiseKind.LAPLACE, **more: object) -> PerGroupParameters:
    delta = None if noise is NoiseKind.LAPLACE else 1e-5
    return PerGroupParameters(
        epsilon,
        Statistic.MEAN,
        noise=noise,
        delta=delta,
        lower=0.0,
        upper=7.0,
        **more,  # type: ignore[arg-type]
    )


def released(
    problem: PerGroupProblem, max_groups: int, max_rows: int, runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Noisy sums and rows of runs of the mechanism on rows, shape (runs, groups)."""
    rng = np.random.default_rng(3)
    sums, rows = np.zeros((runs, 5)), np.zeros((runs, 5))
    for run in range(runs):
        # Groups of a user in random order, and rows within them.
        order = np.lexsort((rng.random(900), rng.random((60, 5))[USERS, GROUPS], USERS))
        u, g, x = USERS[order], GROUPS[order], VALUES[order] - problem.middle
        new_user = np.r_[True, u[1:] != u[:-1]]
        new_pair = new_user | np.r_[True, g[1:] != g[:-1]]
        pair = np.cumsum(new_pair) - 1
        rank = pair - np.maximum.accumulate(np.where(new_user, pair, 0))
        at = np.arange(900)
        row = at - np.maximum.accumulate(np.where(new_pair, at, 0))
        kept = (rank < max_groups) & (row < max_rows)
        sums[run] = np.bincount(g[kept], x[kept], 5)
        rows[run] = np.bincount(g[kept], minlength=5)
    of_sum, of_rows = problem.parameters.mean_noise(max_groups, max_rows)
    laplace = problem.parameters.noise is NoiseKind.LAPLACE
    draw, by = (rng.laplace, math.sqrt(0.5)) if laplace else (rng.normal, 1.0)
    return sums + draw(0.0, of_sum * by, sums.shape), rows + draw(0.0, of_rows * by, rows.shape)


@pytest.mark.parametrize("noise", NoiseKind)
def test_moments_and_errors_agree_with_runs_of_the_mechanism(noise: NoiseKind) -> None:
    relation = Neighbours.REPLACE_USER if noise is NoiseKind.GAUSSIAN else Neighbours.ADD_OR_REMOVE_USER
    problem = PerGroupProblem(PAIRS, asked(4.0, noise, neighbours=relation))
    runs = 4_000
    sums, rows = released(problem, 2, 3, runs)
    m = mean_moments(problem, 2, 3)
    # Each of 30 means within 5 standard errors of its own: all hold with probability above 1 - 2e-5 where normal.
    figures = (
        (sums, m.sum_mean),
        (rows, m.rows_mean),
        ((sums - m.sum_mean) ** 2, m.sum_variance),
        ((rows - m.rows_mean) ** 2, m.rows_variance),
        ((sums - m.sum_mean) * (rows - m.rows_mean), m.covariance),
    )
    for found, truth in figures:
        assert np.all(np.abs(found.mean(axis=0) - truth) <= 5.0 * found.std(axis=0) / math.sqrt(runs))
    means = np.clip(sums / np.maximum(rows, 1.0), -3.5, 3.5)
    errors = np.sqrt(np.mean((means - problem.centred_means) ** 2, axis=0))[:4]
    # The normal pair stands for the true one: exact to the runs with Gaussian noise, roughly with Laplace noise.
    allowed = 0.03 if noise is NoiseKind.GAUSSIAN else 0.15
    assert np.sqrt(mean_squares(problem, 2, 3))[:4] == pytest.approx(errors, rel=allowed)


def test_without_bounds_and_with_hardly_any_noise_the_mean_is_exact() -> None:
    problem = PerGroupProblem(PAIRS, asked(100.0))
    m = mean_moments(problem, 5, 100)
    true = np.array([VALUES[g == GROUPS].mean() - 3.5 for g in range(4)])
    assert (m.sum_mean / np.maximum(m.rows_mean, 1.0))[:4] == pytest.approx(true, rel=1e-12)
    assert problem.centred_means[:4] == pytest.approx(true, rel=1e-12)
    # To first order the variance of a ratio with independent sums is (V_S + r^2 V_N) / N^2.
    first = (m.sum_variance + problem.centred_means**2 * m.rows_variance) / np.maximum(m.rows_mean, 1.0) ** 2
    loud = PerGroupProblem(PAIRS, asked(20.0))
    assert mean_squares(problem, 4, 18)[:4] == pytest.approx(first[:4] * (4 * 18 / 500) ** 2, rel=0.02)
    assert mean_error(problem, 4, 18) < mean_error(loud, 4, 18)


def test_few_pairs_are_all_looked_at_and_of_many_a_good_one_is_found() -> None:
    thin = UserGroupPairs.from_arrays(USERS[:150], GROUPS[:150], 5, sums=VALUES[:150])
    for noise in NoiseKind:
        for objective in (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RMSE, Objective.LARGE_GROUPS):
            floor = 20.0 if objective.floored else None
            problem = PerGroupProblem(thin, asked(8.0, noise, objective=objective, floor=floor))
            found = best_mean_pair(problem)
            most = int(thin.groups_per_user.max()), int(thin.rows.max())
            every = {
                (g, r): mean_error(problem, g, r)
                for g in range(1, most[0] + 1)
                for r in range(1, most[1] + 1)
            }
            assert found.certificate is not None
            assert found.error == min(*every.values(), problem.error_of_nothing)
    wide = PerGroupProblem(
        UserGroupPairs.from_arrays(USERS % 7, GROUPS + 5 * (USERS % 5), 25, sums=VALUES), asked(30.0)
    )
    found = best_mean_pair(wide)
    assert found.certificate is None
    assert "nothing proves" in found.ended
    grid = [
        mean_error(wide, g, r)
        for g in range(1, int(wide.pairs.groups_per_user.max()) + 1)
        for r in range(1, int(wide.pairs.rows.max()) + 1)
    ]
    assert found.error <= min(grid) * 1.02


def test_where_noise_is_too_much_the_middle_or_one_mean_is_better() -> None:
    problem = PerGroupProblem(PAIRS, asked(1e-3))
    found = best_mean_pair(problem)
    assert found.releases_nothing
    assert found.error == problem.error_of_nothing
    one = np.abs([VALUES[g == GROUPS].mean() - VALUES.mean() for g in range(4)])
    assert error_of_one_mean(problem)[:4] == pytest.approx(one, rel=1e-9)
    size = problem.totals
    # Nothing beats one mean; everything does; only the largest group's own mean does.
    assert useful_size(problem, np.full(5, 100.0)) is None
    assert useful_size(problem, np.zeros(5)) == size[:4].min()
    largest = int(np.argmax(size))
    errors = np.where(np.arange(5) == largest, 0.0, 100.0)
    assert useful_size(problem, errors) == size[largest]


def test_what_no_mean_can_be_made_of_is_refused() -> None:
    with pytest.raises(InvalidInput, match="beyond lower or upper"):
        PerGroupProblem(PAIRS, PerGroupParameters(1.0, Statistic.MEAN, lower=0.0, upper=5.0))
    with pytest.raises(InvalidInput, match="sums of squares"):
        PerGroupProblem(
            UserGroupPairs.from_arrays([0], [0], 1, rows=[2], sums=[1.0]),
            asked(1.0),
        )
    with pytest.raises(InvalidInput, match="hold no sums"):
        PerGroupProblem(UserGroupPairs.from_arrays([0], [0], 1), asked(1.0))
    rows = PerGroupProblem(PAIRS, PerGroupParameters(1.0))
    for call in (best_mean_pair, lambda p: mean_moments(p, 1, 1)):
        with pytest.raises(InvalidInput, match="must be a mean"):
            call(rows)
    with pytest.raises(InvalidInput, match="best_mean_pair"):
        best_pair(PerGroupProblem(PAIRS, asked(1.0)))
