"""The pair of bounds that serves several data sets best, against brute force over all pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.common.errors import InvalidInput
from dpcore.per_group.moments import pair_error
from dpcore.per_group.pair_of_bounds import best_pair
from dpcore.per_group.parameters import Objective, PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.passes import interval_errors
from dpcore.per_group.shared_pair import TOLERANCE, shared_pair
from tests.dpcore.per_group.conftest import random_pairs


def problems(seed: int, asked: PerGroupParameters, shift: float = 0.0) -> list[PerGroupProblem]:
    """Two tables of different sizes: users of the second have more groups and rows."""
    tables = (random_pairs(seed, shift=shift), random_pairs(seed + 50, 14, 9, 400, shift))
    return [PerGroupProblem(table, asked) for table in tables]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", list(Objective))
def test_whole_pairs_against_all_of_them(seed: int, objective: Objective) -> None:
    statistic = (Statistic.ROWS, Statistic.USERS)[seed % 2]
    floor = 3.0 if objective.floored else None
    asked = PerGroupParameters(0.3 + 0.4 * seed, statistic=statistic, objective=objective, floor=floor)
    both = problems(seed, asked)
    choices = [best_pair(problem) for problem in both]
    found = shared_pair(both, choices)
    groups = range(1, 1 + max(int(problem.pairs.groups_per_user.max()) for problem in both))
    amounts = range(1, 1 + max(int(problem.amounts.max()) for problem in both))
    worst = {
        (l0, amount): max(
            pair_error(problem, l0, amount) / choice.error
            for problem, choice in zip(both, choices, strict=True)
        )
        for l0 in groups
        for amount in amounts
    }
    worst[0, 0] = max(choice.error_of_nothing / choice.error for choice in choices)
    least = min(worst.values())
    assert worst[found.max_groups, int(found.max_amount)] <= least * (1.0 + 2.0 * TOLERANCE)
    assert max(found.regrets) == pytest.approx(worst[found.max_groups, int(found.max_amount)] - 1.0, abs=1e-9)
    assert found.certificate.lower_bound <= least * (1.0 + 1e-9)
    assert found.certificate.proves(2.0 * TOLERANCE)


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_real_pairs_against_a_dense_grid(shift: float) -> None:
    asked = PerGroupParameters(1.0, statistic=Statistic.SIGNED_SUM if shift else Statistic.SUM)
    tolerance = 1e-2 if shift else 1e-3  # Sums of any sign are bounded less well, and take many passes.
    both = problems(3, asked, shift)
    choices = [best_pair(problem, tolerance=tolerance) for problem in both]
    found = shared_pair(both, choices, tolerance=tolerance)
    most = max(float(np.abs(problem.amounts).max()) for problem in both)
    errors = [interval_errors(problem) for problem in both]
    groups = max(int(problem.pairs.groups_per_user.max()) for problem in both)
    least = min(
        float(
            np.max(
                [of(c, c, 1, groups) / one.error for of, one in zip(errors, choices, strict=True)], 0
            ).min()
        )
        for c in np.geomspace(most / 1e3, most, 300)
    )
    assert max(found.regrets) + 1.0 <= least * (1.0 + 2.0 * tolerance)
    assert found.certificate.lower_bound <= least * (1.0 + 1e-9)
    assert found.certificate.proves(3.0 * tolerance)
    assert found.errors == tuple(pair_error(p, found.max_groups, found.max_amount) for p in both)


def test_an_interval_of_one_number_is_the_error_even_above_what_any_user_has() -> None:
    for objective in (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RMSE):
        asked = PerGroupParameters(1.0, statistic=Statistic.ROWS, objective=objective)
        (problem, _) = problems(0, asked)
        most = int(problem.pairs.groups_per_user.max())
        largest = float(problem.amounts.max())
        for amount in (1.0, largest, largest + 7.0):
            found = interval_errors(problem)(amount, amount, 1, most + 4)
            for at, error in enumerate(found, start=1):
                assert error == pytest.approx(pair_error(problem, at, amount), rel=1e-9)


def test_one_data_set_keeps_its_own_pair_and_bad_input_is_said() -> None:
    asked = PerGroupParameters(1.0, statistic=Statistic.ROWS)
    (one, other) = problems(1, asked)
    choice = best_pair(one)
    found = shared_pair([one], [choice])
    assert (found.max_groups, found.max_amount) == (choice.max_groups, choice.max_amount)
    assert found.regrets == (0.0,)
    with pytest.raises(InvalidInput, match="one best pair for each"):
        shared_pair([one, other], [choice])
    with pytest.raises(InvalidInput, match="least error of data set 1"):
        shared_pair([one], [replace(choice, error=0.0)])
    stopped = shared_pair([one, other], [choice, best_pair(other)], should_stop=lambda: True)
    assert math.isfinite(stopped.certificate.lower_bound)
    assert stopped.certificate.value >= stopped.certificate.lower_bound
