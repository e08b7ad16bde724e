"""Means per group, against the mechanism itself and against simpler cases."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.noisy_ratio import compute_laplace_squares, compute_normal_squares
from dpcore.common.privacy import Disclosure, GaussianNoise, LaplaceNoise, Neighbours
from dpcore.common.programs import Program, find_noise
from dpcore.counting import count, open_files
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.group_pairs import build_pairs
from dpcore.dataset import Values
from dpcore.per_group.answer import build_answer
from dpcore.per_group.means import (
    compute_errors_of_one_mean,
    compute_mean_error,
    compute_mean_moments,
    compute_mean_squares,
    find_best_mean_pair,
    find_useful_size,
)
from dpcore.per_group.pair_of_bounds import find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem

RNG = np.random.default_rng(11)
USERS, GROUPS = RNG.integers(0, 60, 900), RNG.integers(0, 4, 900)
VALUES = (RNG.random(900) * 4.0 + GROUPS).round(2)
PAIRS = UserGroupPairs.from_arrays(USERS, GROUPS, 5, row_values=VALUES)


def build_parameters(
    epsilon: float, noise: NoiseKind = NoiseKind.LAPLACE, **options: object
) -> PerGroupParameters:
    settings = {
        "delta": None if noise is NoiseKind.LAPLACE else 1e-5,
        "program": Program.PYTHON,
        "lower": 0.0,
        "upper": 7.0,
    } | options
    return PerGroupParameters(epsilon, Statistic.MEAN, mechanism=noise, **settings)


@cache
def kept_at_random(max_groups: int, max_rows: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums, of values less 3.5, and rows that runs of the mechanism keep, before noise, shape (runs, groups)."""
    rng = np.random.default_rng(3)
    sums, rows = np.zeros((runs, 5)), np.zeros((runs, 5))
    for run in range(runs):
        # Groups of a user in random order, and rows within them.
        order = np.lexsort((rng.random(900), rng.random((60, 5))[USERS, GROUPS], USERS))
        u, g, x = USERS[order], GROUPS[order], VALUES[order] - 3.5
        new_user = np.r_[True, u[1:] != u[:-1]]
        new_pair = new_user | np.r_[True, g[1:] != g[:-1]]
        pair = np.cumsum(new_pair) - 1
        rank = pair - np.maximum.accumulate(np.where(new_user, pair, 0))
        at = np.arange(900)
        row = at - np.maximum.accumulate(np.where(new_pair, at, 0))
        kept = (rank < max_groups) & (row < max_rows)
        sums[run] = np.bincount(g[kept], x[kept], 5)
        rows[run] = np.bincount(g[kept], minlength=5)
    return sums, rows


def noisy_means(
    problem: PerGroupProblem, pair: tuple[int, int], sums: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """What the mechanism releases, by the noise's own definition: one vector per group, or two sums."""
    parameters, rng = problem.parameters, np.random.default_rng(4)
    replaced = parameters.neighbours is Neighbours.REPLACE_USER
    if parameters.program in (Program.PIPELINEDP, Program.BIGQUERY):
        # Half of epsilon each, or a third of it; the sum is around the middle of the range.
        share = parameters.epsilon / (2.0 if parameters.program is Program.PIPELINEDP else 3.0)
        scale = LaplaceNoise.for_release(pair[0] * pair[1] * (2.0 if replaced else 1.0), share).scale
        counted = rows + rng.laplace(0.0, scale, rows.shape)
        return np.clip(
            (sums + rng.laplace(0.0, 3.5 * scale, sums.shape)) / np.maximum(counted, 1.0), -3.5, 3.5
        )
    if parameters.mechanism is NoiseKind.LAPLACE:
        scale = LaplaceNoise.for_release(
            pair[0] * pair[1] * 7.0 * (2.0 if replaced else 1.0), parameters.epsilon
        ).scale
    else:
        norm = math.sqrt(pair[0] * (2.0 if replaced else 1.0)) * pair[1] * 7.0
        scale = GaussianNoise.for_release(norm, parameters.epsilon, parameters.delta).scale
    draw = rng.laplace if parameters.mechanism is NoiseKind.LAPLACE else rng.normal
    above, below = (3.5 * rows + side * sums + draw(0.0, scale, sums.shape) for side in (1.0, -1.0))
    return np.clip((above - below) / 2.0 / np.maximum((above + below) / 7.0, 1.0), -3.5, 3.5)


@pytest.mark.long
def test_moments_agree_with_runs_of_the_mechanism() -> None:
    problem, runs = PerGroupProblem(PAIRS, build_parameters(4.0)), 4_000
    sums, rows = kept_at_random(2, 3, runs)
    m = compute_mean_moments(problem, 2, 3)
    s, n = sums - m.mean_sums, rows - m.mean_rows
    # Each of 40 means within 5 standard errors of its own: all hold with probability above 1 - 3e-5 where normal.
    figures = (
        (sums, m.mean_sums),
        (rows, m.mean_rows),
        (s**2, m.sum_variances),
        (n**2, m.rows_variances),
        (s * n, m.covariances),
        *zip((n**3, n * n * s, n * s * s), m.third_cumulants, strict=True),
    )
    for found, truth in figures:
        assert np.all(np.abs(found.mean(axis=0) - truth) <= 5.0 * found.std(axis=0) / math.sqrt(runs))


@pytest.mark.long_for("NoiseKind.LAPLACE-Program.PYTHON", "NoiseKind.GAUSSIAN-Program.PYTHON")
@pytest.mark.parametrize(
    ("noise", "program"),
    [
        *((noise, Program.PYTHON) for noise in NoiseKind),
        (NoiseKind.LAPLACE, Program.PIPELINEDP),
        (NoiseKind.GAUSSIAN, Program.BIGQUERY),
    ],
)
def test_errors_agree_with_runs_of_the_mechanism(noise: NoiseKind, program: Program) -> None:
    relation = Neighbours.REPLACE_USER if noise is NoiseKind.GAUSSIAN else Neighbours.ADD_OR_REMOVE_USER
    # Nothing is left out at random: the error is exact. Each of 12 mean squares lies within 5 standard errors.
    sums, rows = (
        np.broadcast_to(np.bincount(GROUPS, x, 5), (40_000, 5)) for x in (VALUES - 3.5, np.ones(900))
    )
    for epsilon in (0.3, 2.0, 10.0):
        problem = PerGroupProblem(
            PAIRS, build_parameters(epsilon, noise, neighbours=relation, program=program)
        )
        squares = (noisy_means(problem, (4, 18), sums, rows) - problem.centred_means) ** 2
        allowed = 5.0 * squares.std(axis=0) / math.sqrt(40_000) + 1e-3 * squares.mean(axis=0)
        assert np.all(np.abs(compute_mean_squares(problem, 4, 18) - squares.mean(axis=0))[:4] <= allowed[:4])
    # Here most is, down to about 15 rows in a group, and chance alone decides where noise is low.
    sums, rows = (np.repeat(x, 10, axis=0) for x in kept_at_random(1, 1, 4_000))
    for epsilon in (1.0, 10.0, 400.0):
        problem = PerGroupProblem(
            PAIRS, build_parameters(epsilon, noise, neighbours=relation, program=program)
        )
        squares = (noisy_means(problem, (1, 1), sums, rows) - problem.centred_means) ** 2
        # Runs that share a sample are no independent ones.
        error = squares.reshape(4_000, 10, 5).mean(axis=1)
        allowed = 5.0 * error.std(axis=0) / math.sqrt(4_000)
        mean_squares = compute_mean_squares(problem, 1, 1)
        assert np.all(np.abs(mean_squares - error.mean(axis=0))[:4] <= allowed[:4])
        assert problem.combine_errors(mean_squares) == pytest.approx(
            problem.combine_errors(error.mean(axis=0)), rel=0.02
        )


def test_the_error_is_the_integral_over_the_noise() -> None:
    # Both entries on a grid of panels that meet at their own bends, for a range of 2 h = 3 and noise of scale 2.
    edges = np.r_[-np.geomspace(80.0, 1e-2, 60), 0.0, np.geomspace(1e-2, 80.0, 60)]
    at, weight = np.polynomial.legendre.leggauss(5)
    z = (edges[:-1, None] + np.diff(edges)[:, None] * (at + 1.0) / 2.0).ravel()
    step = (np.diff(edges)[:, None] * weight / 2.0).ravel()
    laplace, normal = (
        np.exp(-np.abs(z) / 2.0) / 4.0 * step,
        np.exp(-((z / 2.0) ** 2) / 2.0) / math.sqrt(8.0 * math.pi) * step,
    )
    cases = [
        (0.4, 0.5, 0.6),
        (3.0, 5.0, 0.4),
        (-1.0, 1.0, -1.5),
        (0.0, 30.0, 0.0),
        (35.0, 30.0, 1.2),
        (500.0, 1e3, 0.5),
    ]
    cases.append((-3.0, -0.4, 0.2))  # Fewer rows than none: what stands for the random choice goes as far.
    sums, rows, truth = (np.array(x) for x in zip(*cases, strict=True))
    exact = []
    for s, n, t in cases:
        noisy, counted = s + (z[:, None] - z) / 2.0, n + (z[:, None] + z) / 3.0
        squares = (np.clip(noisy / np.maximum(counted, 1.0), -1.5, 1.5) - t) ** 2
        exact.append((laplace @ squares @ laplace, normal @ squares @ normal))
        # The same scales for a sum and a number of rows with noise of their own.
        noisy, counted = s + z[:, None], n + z / 1.5
        squares = (np.clip(noisy / np.maximum(counted, 1.0), -1.5, 1.5) - t) ** 2
        exact[-1] += (laplace @ squares @ laplace,)
    by_laplace, by_normal, by_split = np.array(exact).T
    assert compute_laplace_squares(sums, rows, 2.0, 1.5, truth, is_split=True) == pytest.approx(
        by_split, rel=1e-3
    )
    assert compute_laplace_squares(sums, rows, 2.0, 1.5, truth) == pytest.approx(by_laplace, rel=1e-3)
    found = compute_normal_squares(sums, rows, np.full(7, 2.0), 2.0 * math.sqrt(2.0) / 3.0, 1.5, truth)
    assert found == pytest.approx(by_normal, rel=1e-3)


def test_programs_draw_one_vector_or_split_the_budget() -> None:
    # Of the notes on libraries: deviations for L0 = 3 groups of 2 rows, a range of 7 and epsilon 0.5.
    one = math.sqrt(2.0) * 3 * 2 / 0.5
    for program, rows_noise in (
        (Program.PYTHON, math.sqrt(2.0) * one),
        (Program.OPENDP, math.sqrt(2.0) * one),
        (Program.BEST, math.sqrt(2.0) * one),
        (Program.PIPELINEDP, 2.0 * one),
        (Program.TUMULT, 2.0 * one),
        (Program.BIGQUERY, 3.0 * one),
    ):
        expected = 3.5 * rows_noise, rows_noise
        assert build_parameters(0.5, program=program).compute_mean_noise(3, 2) == pytest.approx(
            expected, rel=1e-12
        )
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6)):
        # Gaussian accountants compose: a sum and a number of rows have twice the square of one noise each.
        for program in (Program.PYTHON, Program.PIPELINEDP, Program.OPENDP, Program.TUMULT):
            parameters = build_parameters(epsilon, NoiseKind.GAUSSIAN, program=program, delta=delta)
            sigma = find_noise(program, NoiseKind.GAUSSIAN, epsilon, delta).unit_scale
            rows_noise = math.sqrt(2.0 * 3) * 2 * sigma
            assert parameters.compute_mean_noise(3, 2) == pytest.approx(
                (3.5 * rows_noise, rows_noise), rel=1e-12
            )


def test_without_bounds_and_with_hardly_any_noise_the_mean_is_exact() -> None:
    problem = PerGroupProblem(PAIRS, build_parameters(100.0))
    m = compute_mean_moments(problem, 5, 100)
    true = np.array([VALUES[g == GROUPS].mean() - 3.5 for g in range(4)])
    assert (m.mean_sums / np.maximum(m.mean_rows, 1.0))[:4] == pytest.approx(true, rel=1e-12)
    assert problem.centred_means[:4] == pytest.approx(true, rel=1e-12)
    # To first order the variance of a ratio with independent sums is (V_S + r^2 V_N) / N^2.
    of_sum, of_rows = m.sum_variances + m.sum_noise_std**2, m.rows_variances + m.rows_noise_std**2
    first = (of_sum + problem.centred_means**2 * of_rows) / np.maximum(m.mean_rows, 1.0) ** 2
    loud = PerGroupProblem(PAIRS, build_parameters(20.0))
    assert compute_mean_squares(problem, 4, 18)[:4] == pytest.approx(
        first[:4] * (4 * 18 / 500) ** 2, rel=0.02
    )
    assert compute_mean_error(problem, 4, 18) < compute_mean_error(loud, 4, 18)


@pytest.mark.long
def test_few_pairs_are_all_looked_at_and_of_many_a_good_one_is_found() -> None:
    thin = UserGroupPairs.from_arrays(USERS[:150], GROUPS[:150], 5, row_values=VALUES[:150])
    for noise, objectives in (
        (NoiseKind.LAPLACE, (Objective.ROOT_MEAN_SQUARE, Objective.LARGE_GROUPS)),
        (NoiseKind.GAUSSIAN, (Objective.MEAN_RMSE,)),
    ):
        for objective in objectives:
            floor = 20.0 if objective.needs_floor else None
            problem = PerGroupProblem(thin, build_parameters(8.0, noise, objective=objective, floor=floor))
            mean_pair = find_best_mean_pair(problem)
            most = int(thin.groups_per_user.max()), int(thin.rows.max())
            every = {
                (g, r): compute_mean_error(problem, g, r)
                for g in range(1, most[0] + 1)
                for r in range(1, most[1] + 1)
            }
            assert "by an approximate error" in mean_pair.certificate.sentence
            assert "Proved" not in mean_pair.certificate.sentence
            assert mean_pair.error == min(*every.values(), problem.error_of_nothing)
    one = PerGroupProblem(
        UserGroupPairs.from_arrays(np.arange(9), np.arange(9) % 2, 2, row_values=VALUES[:9]),
        build_parameters(9.0),
    )
    # One group and one row each: nothing is left to chance.
    assert find_best_mean_pair(one).certificate.sentence.startswith("Proved best")
    wide = PerGroupProblem(
        UserGroupPairs.from_arrays(USERS % 7, GROUPS + 5 * (USERS % 5), 25, row_values=VALUES),
        build_parameters(30.0),
    )
    mean_pair = find_best_mean_pair(wide)
    assert mean_pair.certificate is None
    assert "without a proof" in mean_pair.stop_reason
    grid = [
        compute_mean_error(wide, g, r)
        for g in range(1, int(wide.pairs.groups_per_user.max()) + 1)
        for r in range(1, int(wide.pairs.rows.max()) + 1)
    ]
    assert mean_pair.error <= min(grid) * 1.02


def test_where_noise_is_too_much_the_middle_or_one_mean_is_better() -> None:
    # With half of epsilon for each sum, and its error by a normal pair, nothing was worth releasing up to 0.8.
    thin = UserGroupPairs.from_arrays(USERS[:150], GROUPS[:150], 5, row_values=VALUES[:150])
    assert not find_best_mean_pair(PerGroupProblem(thin, build_parameters(0.7))).releases_nothing
    problem = PerGroupProblem(PAIRS, build_parameters(1e-3))
    mean_pair = find_best_mean_pair(problem)
    assert mean_pair.releases_nothing
    assert mean_pair.error == problem.error_of_nothing
    one = np.abs([VALUES[g == GROUPS].mean() - VALUES.mean() for g in range(4)])
    assert compute_errors_of_one_mean(problem)[:4] == pytest.approx(one, rel=1e-9)
    size = problem.totals
    # Nothing beats one mean; everything does; only the largest group's own mean does.
    assert find_useful_size(problem, np.full(5, 100.0)) is None
    assert find_useful_size(problem, np.zeros(5)) == size[:4].min()
    largest = int(np.argmax(size))
    errors = np.where(np.arange(5) == largest, 0.0, 100.0)
    assert find_useful_size(problem, errors) == size[largest]


@pytest.mark.long
@pytest.mark.parametrize("small_bytes", [0, 5_000_000])
def test_values_outside_the_range_are_clamped_row_by_row(tmp_path, small_bytes) -> None:
    users = [f"u{user}" if user % 11 else "" for user in USERS]
    groups = [f"g{group}" if (group + user) % 7 else "" for user, group in zip(USERS, GROUPS, strict=True)]
    lower, upper = 1.5, 4.25
    found = {}
    for name, values in {"raw": VALUES, "clipped": np.clip(VALUES, lower, upper)}.items():
        path = tmp_path / f"{name}.csv"
        pd.DataFrame({"user": users, "group": groups, "value": values}).to_csv(path, index=False)
        source = open_files([path], small_bytes=small_bytes)
        roles = Roles(TableKind.EVENTS, user="user", value="value", task="group")
        data = count(source, roles, Disclosure.PUBLIC).dataset
        parameters = PerGroupParameters(2.0, Statistic.MEAN, lower=lower, upper=upper)
        found[name] = build_answer(data, parameters)
    raw, clipped = (found[name].solution for name in ("raw", "clipped"))
    for array in ("rows", "group_codes", "user_codes"):
        np.testing.assert_array_equal(
            getattr(raw.problem.pairs, array), getattr(clipped.problem.pairs, array)
        )
    for array in ("sums", "sums_of_squares"):
        np.testing.assert_allclose(
            getattr(raw.problem.pairs, array), getattr(clipped.problem.pairs, array), rtol=1e-12
        )
    assert raw.pair_error == pytest.approx(clipped.pair_error, rel=1e-9)
    named = [value for value, user in zip(VALUES, users, strict=True) if user]
    outside = sum(not lower <= value <= upper for value in named)
    said = found["raw"].facts["Values outside the range"]
    assert said.startswith(f"{outside} values of {len(named)} (")
    assert "clamped, which no error counts" in said
    assert "of the values are clamped**" in found["raw"].detail
    assert (
        found["clipped"].facts["Values outside the range"] == "All values lie inside the range from L to U."
    )


def test_values_in_another_order_than_the_pairs_are_not_clamped() -> None:
    pairs = build_pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 2, "g", np.array([1.0, 2, 3, 4]), "v")
    sorted_values = Values([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0])
    clamped = UserGroupPairs.from_clamped(pairs, sorted_values, 1.5, 3.5)
    assert clamped.sums.tolist() == [1.5, 2.0, 3.0, 3.5]
    assert UserGroupPairs.from_clamped(pairs, Values([0, 0, 1, 1], [2.0, 1, 3, 4]), 1.5, 3.5) is None
    assert UserGroupPairs.from_clamped(pairs, Values([0, 0, 1], [1.0, 2.0, 3.0]), 1.5, 3.5) is None


def test_what_no_mean_can_be_made_of_is_refused() -> None:
    with pytest.raises(InvalidInput, match="beyond lower or upper"):
        PerGroupProblem(PAIRS, PerGroupParameters(1.0, Statistic.MEAN, lower=0.0, upper=5.0))
    codes = np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidInput, match="sums of squares"):
        PerGroupProblem(UserGroupPairs(codes, codes, codes + 2, 1, np.ones(1)), build_parameters(1.0))
    with pytest.raises(InvalidInput, match="hold no sums"):
        PerGroupProblem(UserGroupPairs.from_arrays([0], [0], 1), build_parameters(1.0))
    with pytest.raises(InvalidInput, match="find_best_mean_pair"):
        find_best_pair(PerGroupProblem(PAIRS, build_parameters(1.0)))
