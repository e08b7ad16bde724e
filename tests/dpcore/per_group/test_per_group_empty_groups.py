"""Groups without rows: one entry stands for all of them, whatever their number, and nothing else changes."""

import math

import numpy as np
import pytest

from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.per_group.means import find_best_mean_pair
from dpcore.per_group.pair_of_bounds import find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.passes import compute_parts_by_max_groups
from dpcore.per_group.private_pair import pick_as_tuner
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection import SelectionProblem, find_best_selected_pair
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.per_group.whole_vector import find_best_cap, find_best_radial

EMPTY = 9


def pairs(behind: bool) -> UserGroupPairs:
    """40 users of 12 groups, with nine further groups that nobody is in: behind all others, or between them.

    Groups have no order. Empty ones between others have an entry each, so what is found must be the same.
    """
    rng = np.random.default_rng(6)
    users, groups = rng.integers(0, 40, 400), (rng.integers(0, 12, 400) * rng.random(400)).astype(int)
    groups = np.r_[groups, np.arange(12)]
    users = np.r_[users, np.zeros(12, dtype=int)]
    codes = np.arange(12) if behind else np.r_[0, 2, 3, 5, 7, 8, 11, 13, 14, 16, 18, 20]
    return UserGroupPairs.from_arrays(
        users, codes[groups], 12 + EMPTY, row_values=rng.integers(0, 6, 412) / 4.0
    )


BEHIND, BETWEEN = pairs(behind=True), pairs(behind=False)
NOISES = ({"mechanism": NoiseKind.LAPLACE}, {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6})


def problems(**fields: object) -> tuple[PerGroupProblem, PerGroupProblem]:
    parameters = PerGroupParameters(**fields)
    return PerGroupProblem(BEHIND, parameters), PerGroupProblem(BETWEEN, parameters)


def test_one_entry_stands_for_all_empty_groups() -> None:
    assert (BEHIND.num_entries, BETWEEN.num_entries) == (13, 21)
    assert BEHIND.multiplicities.tolist() == [1.0] * 12 + [EMPTY]
    assert BETWEEN.multiplicities.tolist() == [1.0] * 21
    few = UserGroupPairs(np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), 2)
    assert few.multiplicities.tolist() == [1.0, 1.0]


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES, ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("statistic", [Statistic.ROWS, Statistic.USERS, Statistic.SUM, Statistic.SIGNED_SUM])
def test_where_empty_groups_stand_in_the_list_changes_no_answer(
    statistic: Statistic, noise: dict[str, object]
) -> None:
    for objective in Objective:
        floor = None if objective in (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RMSE) else 4.0
        one, other = problems(epsilon=2.0, statistic=statistic, objective=objective, floor=floor, **noise)
        assert one.error_of_nothing == pytest.approx(other.error_of_nothing, rel=1e-12)
        found, same = find_best_pair(one), find_best_pair(other)
        assert found.error == pytest.approx(same.error, rel=2e-6)
        assert found.certificate.lower_bound == pytest.approx(same.certificate.lower_bound, rel=2e-6)
        np.testing.assert_allclose(
            compute_parts_by_max_groups(one, 2.0)[0], compute_parts_by_max_groups(other, 2.0)[0], rtol=1e-12
        )
        if statistic is not Statistic.SIGNED_SUM:
            assert find_best_cap(one).error == pytest.approx(find_best_cap(other).error, rel=2e-3)
            assert find_best_radial(one).error == pytest.approx(find_best_radial(other).error, rel=1e-9)
            assert pick_as_tuner(one) == pick_as_tuner(other)


@pytest.mark.long
def test_means_and_selected_groups_do_not_see_empty_groups_either() -> None:
    for objective in (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RMSE):
        asked = {"statistic": Statistic.MEAN, "lower": 0.0, "upper": 1.25, "objective": objective}
        one, other = problems(epsilon=3.0, **asked)
        assert find_best_mean_pair(one).error == pytest.approx(find_best_mean_pair(other).error, rel=1e-12)
        chosen = {"selection_share": 0.5, "selection_delta": 1e-3, "objective": objective}
        one, other = problems(epsilon=3.0, selection=SelectionRule.TRUNCATED_GEOMETRIC, **chosen)
        selected_pair, same = (
            find_best_selected_pair(SelectionProblem(one)),
            find_best_selected_pair(SelectionProblem(other)),
        )
        assert selected_pair.error == pytest.approx(same.error, rel=2e-3)
        at = SelectionProblem(one).evaluate_groups(2, 3.0), SelectionProblem(other).evaluate_groups(2, 3.0)
        assert at[0].keep_probabilities[-1] == 0.0  # A group without users is never released.
        assert at[0].num_expected_groups == pytest.approx(at[1].num_expected_groups, rel=1e-12)
        assert one.combine_errors(at[0].mean_squares) == pytest.approx(
            other.combine_errors(at[1].mean_squares), rel=1e-12
        )


def test_a_list_of_a_hundred_million_groups_costs_what_its_few_groups_cost() -> None:
    many = UserGroupPairs(BEHIND.user_codes, BEHIND.group_codes, BEHIND.rows, 100_000_000)
    problem = PerGroupProblem(many, PerGroupParameters(1.0, program=Program.PYTHON))
    assert problem.totals.size == problem.weights.size == 13
    # Every group has noise of variance 2 (L0 Linf / epsilon)^2 = 8, and the others nothing else.
    few = UserGroupPairs(BEHIND.user_codes, BEHIND.group_codes, BEHIND.rows, 12)
    held = compute_parts_by_max_groups(PerGroupProblem(few, problem.parameters), 1.0)[0][1] ** 2 - 8.0
    found = compute_parts_by_max_groups(problem, 1.0)[0][1]
    assert found == pytest.approx(math.sqrt(8.0 + held * 12 / 100_000_000), rel=1e-9)
    assert find_best_pair(problem).releases_nothing
