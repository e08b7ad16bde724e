"""The cap and the radial clip: the theorem, the sensitivities, and the best T of both."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.per_group.moments import compute_moments, compute_pair_error
from dpcore.per_group.pair_of_bounds import find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.whole_vector import (
    VectorRule,
    compute_vector_error,
    find_best_cap,
    find_best_radial,
    keep_amounts,
)
from tests.dpcore.per_group.conftest import random_pairs

RELATIONS = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER)
amounts = st.lists(st.one_of(st.integers(0, 60), st.floats(0.0, 1e6)), min_size=1, max_size=8)


def build_parameters(noise: NoiseKind, epsilon: float = 1.0, **options: object) -> PerGroupParameters:
    delta = None if noise is NoiseKind.LAPLACE else 1e-5
    return PerGroupParameters(epsilon, mechanism=noise, delta=delta, **options)


def summed(vectors: list[list[float]], noise: NoiseKind, **options: object) -> PerGroupProblem:
    users = np.repeat(np.arange(len(vectors)), [len(v) for v in vectors])
    groups = np.concatenate([np.arange(len(v)) for v in vectors])
    pairs = UserGroupPairs.from_arrays(users, groups, 8, row_values=np.concatenate(vectors).astype(float))
    return PerGroupProblem(pairs, build_parameters(noise, statistic=Statistic.SUM, **options))


@settings(max_examples=80)
@given(
    vectors=st.lists(amounts, min_size=1, max_size=4),
    max_groups=st.integers(1, 8),
    max_amount=st.floats(1e-3, 1e6),
    noise=st.sampled_from(NoiseKind),
    relation=st.sampled_from(RELATIONS),
)
def test_the_cap_is_never_worse_than_a_pair_group_by_group(
    vectors: list[list[float]], max_groups: int, max_amount: float, noise: NoiseKind, relation: Neighbours
) -> None:
    problem = summed(vectors, noise, neighbours=relation)
    norm = (max_groups if noise is NoiseKind.LAPLACE else math.sqrt(max_groups)) * max_amount
    parameters = problem.parameters
    assert float(parameters.compute_norm_noise_std(norm)) == pytest.approx(
        float(parameters.compute_pair_noise_std(max_groups, max_amount)), rel=1e-12
    )
    sizes = np.repeat(problem.pairs.groups_per_user, problem.pairs.groups_per_user)
    expected = np.minimum(1.0, max_groups / sizes) * np.minimum(problem.amounts, max_amount)
    y = keep_amounts(problem, VectorRule.CAP, norm)
    assert np.all(y >= expected * (1 - 1e-9) - 1e-9)
    with_pair = compute_moments(problem, max_groups, max_amount).mean_squares
    with_cap = (
        problem.sum_by_group(problem.amounts - y) ** 2 + float(parameters.compute_norm_noise_std(norm)) ** 2
    )
    assert np.all(with_cap <= with_pair * (1 + 1e-9) + 1e-9)


@settings(max_examples=60)
@given(left=amounts, right=amounts, max_norm=st.floats(1e-3, 1e6), rule=st.sampled_from(VectorRule))
def test_one_user_moves_the_release_by_no_more_than_declared(
    left: list[float], right: list[float], max_norm: float, rule: VectorRule
) -> None:
    for noise, order in ((NoiseKind.LAPLACE, 1), (NoiseKind.GAUSSIAN, 2)):
        one, other = (np.zeros(8) for _ in range(2))
        # Each user alone: nothing that is kept of one may depend on another.
        for vector, into in ((left, one), (right, other)):
            into[: len(vector)] = keep_amounts(summed([vector], noise), rule, max_norm)
        together = keep_amounts(summed([left, right], noise), rule, max_norm)
        # To rounding: with other users the cap's steps are added up from other prefixes.
        alone = np.r_[one[: len(left)], other[: len(right)]]
        assert np.allclose(together, alone, rtol=1e-7, atol=1e-7)
        for relation, change in ((RELATIONS[0], one), (RELATIONS[1], one - other[::-1])):
            allowed = float(build_parameters(noise, neighbours=relation).compute_norm_sensitivity(max_norm))
            assert np.linalg.norm(change, order) <= allowed * (1 + 1e-12)


def test_the_cap_is_the_largest_level_of_the_norm() -> None:
    rng = np.random.default_rng(4)
    for noise, order in ((NoiseKind.LAPLACE, 1), (NoiseKind.GAUSSIAN, 2)):
        for vector in (rng.gamma(0.5, 5.0, size) for size in (1, 3, 8)):
            whole = float(np.linalg.norm(vector, order))
            for norm in (0.1 * whole, 0.6 * whole, 0.999 * whole):
                level = brentq(
                    lambda x, v=vector, t=norm, o=order: np.linalg.norm(np.minimum(v, x), o) - t, 0.0, whole
                )
                found = keep_amounts(summed([vector.tolist()], noise), VectorRule.CAP, norm)
                assert found == pytest.approx(np.minimum(vector, level), rel=1e-9)
            assert keep_amounts(
                summed([vector.tolist()], noise), VectorRule.CAP, 1.001 * whole
            ) == pytest.approx(vector)


def test_distinct_users_are_capped_and_scaled_alike(small: UserGroupPairs) -> None:
    for noise, norm in product(NoiseKind, (0.4, 1.0, 1.7, 9.0)):
        problem = PerGroupProblem(small, build_parameters(noise, statistic=Statistic.USERS))
        assert keep_amounts(problem, VectorRule.CAP, norm) == pytest.approx(
            keep_amounts(problem, VectorRule.RADIAL, norm)
        )


@pytest.mark.long_but("Objective.RELATIVE_ROOT_MEAN_SQUARE")
@pytest.mark.parametrize("objective", Objective)
def test_no_bound_of_a_fine_grid_is_better(objective: Objective) -> None:
    for seed, noise, statistic in product(range(2), NoiseKind, (Statistic.ROWS, Statistic.SUM)):
        floor = 2.0 if objective.needs_floor else None
        question = build_parameters(
            noise, (0.15, 2.0)[seed], statistic=statistic, objective=objective, floor=floor
        )
        problem = PerGroupProblem(random_pairs(seed, users=14, groups=6, rows=150), question)
        radial, cap = find_best_radial(problem), find_best_cap(problem, tolerance=1e-2)
        assert radial.certificate.proves(1e-9)
        assert cap.certificate.proves(1e-2)
        grid = np.linspace(0.0, 1.2 * float(problem.amounts.sum()), 150).tolist()
        grid += [item.max_norm * x for item in (radial, cap) for x in (0.98, 0.9999, 1.0001, 1.02)]
        for item in (radial, cap):
            errors = [compute_vector_error(problem, item.vector_rule, t) for t in grid]
            assert compute_vector_error(problem, item.vector_rule, item.max_norm) == pytest.approx(
                item.error, rel=1e-12
            )
            assert item.certificate.lower_bound <= min(errors) * (1 + 1e-12)
            allowed = 1e-9 if item.vector_rule is VectorRule.RADIAL else 1e-2
            assert item.error <= min(errors) * (1 + allowed / (1 - allowed))
            assert problem.error_of_nothing == pytest.approx(
                compute_vector_error(problem, item.vector_rule, 0.0), rel=1e-12
            )
        # With the same noise: that of a pair on counts is whole in OpenDP.
        problem = PerGroupProblem(problem.pairs, replace(question, program=Program.PYTHON))
        cap = find_best_cap(problem, tolerance=1e-2)
        assert cap.error <= find_best_pair(problem, tolerance=1e-2).error / (1 - 1e-2)


def test_a_short_search_says_so_and_bad_options_are_refused(small: UserGroupPairs) -> None:
    problem = PerGroupProblem(small, build_parameters(NoiseKind.LAPLACE))
    short = find_best_cap(problem, max_evaluations=3)
    assert short.stop_reason.startswith("Stopped")
    assert not short.certificate.proves(1e-3)
    assert short.certificate.lower_bound <= find_best_cap(problem).error


def test_one_value_of_the_error_by_hand() -> None:
    # One user with 3 and 1 rows, Laplace, epsilon 1, T = 2. Cap: (1, 1), missing (2, 0). Radial: (1.5, 0.5), missing
    # (1.5, 0.5). Noise variance 2 * 2^2 = 8. L0 = 1, Linf = 2: kept 2 or 1, each half: missing (2, 0.5) on average,
    # sampling variance (1, 1/4).
    pairs = UserGroupPairs(np.zeros(2, int), np.arange(2), np.array([3, 1]), 2)
    problem = PerGroupProblem(pairs, PerGroupParameters(1.0, program=Program.PYTHON))
    assert compute_vector_error(problem, VectorRule.CAP, 2.0) == pytest.approx(
        math.sqrt((4 + 0) / 2 + 8), rel=1e-14
    )
    assert compute_vector_error(problem, VectorRule.RADIAL, 2.0) == pytest.approx(
        math.sqrt((2.25 + 0.25) / 2 + 8), rel=1e-14
    )
    assert compute_pair_error(problem, 1, 2) == pytest.approx(
        math.sqrt((4 + 1 + 0.25 + 0.25) / 2 + 8), rel=1e-14
    )
