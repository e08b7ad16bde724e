"""What the page shows beside the best pair: parts of the error, the error at every L0, PipelineDP's rule."""

from itertools import product

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.data.task_facets import Pairs
from dpcore.per_group.moments import compute_error_parts, compute_moments, compute_pair_error
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.passes import compute_parts_by_max_groups
from dpcore.per_group.private_pair import (
    MAX_TUNER_CANDIDATES,
    list_tuner_candidates,
    pick_as_tuner,
    spread_numbers,
)
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.per_group.whole_vector import find_best_cap
from tests.dpcore.per_group.conftest import random_pairs


def build_parameters(objective: Objective = Objective.ROOT_MEAN_SQUARE, **more: object) -> PerGroupParameters:
    floor = 3.0 if objective.needs_floor else None
    return PerGroupParameters(1.0, objective=objective, floor=floor, **more)


@pytest.mark.parametrize("objective", Objective)
def test_the_parts_add_up_and_are_0_where_nothing_is_lost(
    objective: Objective, small: UserGroupPairs
) -> None:
    problem = PerGroupProblem(small, build_parameters(objective))
    for pair in product((1, 2, 9), (1, 4, 99)):
        error_parts = compute_error_parts(problem, *pair)
        assert error_parts.total == pytest.approx(compute_pair_error(problem, *pair), rel=1e-12)
        assert min(error_parts.clipping_part, error_parts.omission_part, error_parts.sampling_part) >= 0.0
    everything = compute_error_parts(problem, 9, 99)
    assert (everything.clipping_part, everything.omission_part, everything.sampling_part) == (0.0, 0.0, 0.0)
    assert (
        compute_error_parts(problem, 9, 1).omission_part
        == 0.0
        < compute_error_parts(problem, 9, 1).clipping_part
    )
    assert (
        compute_error_parts(problem, 1, 99).clipping_part
        == 0.0
        < compute_error_parts(problem, 1, 99).sampling_part
    )


@pytest.mark.parametrize("objective", Objective)
def test_one_pass_gives_the_error_at_every_number_of_groups(objective: Objective) -> None:
    for statistic, noise in product((Statistic.ROWS, Statistic.SIGNED_SUM), NoiseKind):
        signed = statistic is Statistic.SIGNED_SUM
        pairs = random_pairs(5, users=20, groups=8, rows=150, shift=2.0 if signed else 0.0)
        delta = None if noise is NoiseKind.LAPLACE else 1e-6
        problem = PerGroupProblem(
            pairs, build_parameters(objective, statistic=statistic, mechanism=noise, delta=delta)
        )
        facet = SortedPairs.from_problem(problem)
        most = int(pairs.groups_per_user.max())
        for amount in (1.0, 2.0, 60.0):
            found = compute_parts_by_max_groups(problem, amount, facet)[0]
            assert found == pytest.approx(
                [compute_pair_error(problem, l0, amount) for l0 in range(1, most + 1)]
            )
            # The parts of the same pass are those of the moments, and add up.
            errors, sampling, of_noise = compute_parts_by_max_groups(problem, amount, facet)
            exact = [compute_error_parts(problem, l0, amount) for l0 in range(1, most + 1)]
            assert errors == pytest.approx(found)
            assert sampling == pytest.approx([item.sampling_part for item in exact], abs=1e-9)
            assert of_noise == pytest.approx([item.noise_part for item in exact])
            bias = [item.clipping_part + item.omission_part for item in exact]
            assert errors - sampling - of_noise == pytest.approx(bias, abs=1e-7)


def test_candidates_are_numbers_of_three_leading_digits() -> None:
    assert spread_numbers(5, 7) == [1, 2, 3, 4, 5]
    # 1 .. 1000 and 1010, 1020 ... 1230: 1,023 numbers; six of them evenly spread, and the largest.
    every = [*range(1, 1001), *range(1010, 1235, 10)]
    assert spread_numbers(1234, 7) == [every[int(i * len(every) / 6)] for i in range(6)] + [1234]
    assert spread_numbers(9, 1) == [9]
    few = PerGroupProblem(
        UserGroupPairs.from_arrays(np.zeros(300, int), np.arange(300) % 90, 90), build_parameters()
    )
    tuner_candidates = list_tuner_candidates(few)
    assert len(tuner_candidates) <= MAX_TUNER_CANDIDATES
    assert {linf for _, linf in tuner_candidates} == {1, 2, 3, 4}  # 300 rows in 90 groups: 3 or 4 in each.
    assert len({l0 for l0, _ in tuner_candidates}) == MAX_TUNER_CANDIDATES // 4


def test_the_rule_minimises_its_own_objective_over_its_own_candidates() -> None:
    pairs = random_pairs(3, users=40, groups=9, rows=600)
    for objective in (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RELATIVE):
        problem = PerGroupProblem(pairs, build_parameters(objective))
        errors = {
            p: float(np.sqrt(compute_moments(problem, *p).mean_squares).mean())
            for p in list_tuner_candidates(problem)
        }
        assert errors[pick_as_tuner(problem)] == min(errors.values())
    signed = PerGroupProblem(random_pairs(3, shift=2.0), build_parameters(statistic=Statistic.SIGNED_SUM))
    with pytest.raises(InvalidInput, match="amounts of at least 0"):
        pick_as_tuner(signed)
    with pytest.raises(InvalidInput, match="amounts of at least 0"):
        find_best_cap(signed)


def test_the_facet_becomes_pairs_of_a_public_list() -> None:
    facet = Pairs(np.array([0, 0, 1]), np.array([0, 2, 1]), 3)
    assert UserGroupPairs.from_facet(facet).rows.tolist() == [1, 1, 1]
    assert UserGroupPairs.from_facet(facet, 7).num_groups == 7
    with pytest.raises(InvalidInput, match="hold 3 groups, more than the 2 entered"):
        UserGroupPairs.from_facet(facet, 2)


def test_a_persons_own_pair_is_whole_or_not_as_the_statistic_is() -> None:
    assert build_parameters(own_groups=3, own_amount=2.0).own_groups == 3
    assert build_parameters(statistic=Statistic.SUM, own_groups=3, own_amount=2.5).own_amount == 2.5
    with pytest.raises(
        InvalidInput,
        match=r"(?is)the number of groups on the public list must be.*your own bound on groups.*your own bound in each",
    ):
        build_parameters(num_groups=0, own_groups=0, own_amount=2.5)
    with pytest.raises(InvalidInput, match="go together"):
        build_parameters(own_groups=3)
