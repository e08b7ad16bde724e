"""What is found where groups are selected privately, beside what a public list has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupProblem
from dpcore.per_group.selection import SelectedGroups, SelectedVector, Selection
from dpcore.per_group.whole_vector import kept

EPSILONS = 13
"""Budgets of the curves: from a tenth of the one that is asked for to ten times it."""


@dataclass(frozen=True, eq=False)
class OverEpsilon:
    """What other budgets buy, with the bounds as they are; each of shape (n,).

    Attributes:
        epsilons: Budgets of selection and noise together, ascending.
        groups: Groups that are released on average.
        error_kept: What released groups add to the error; both parts add up to it.
        error_lost: What groups that are not released add.
    """

    epsilons: FloatArray
    groups: FloatArray
    error_kept: FloatArray
    error_lost: FloatArray


@dataclass(frozen=True, eq=False)
class SelectedFound:
    """What there is of private groups.

    Attributes:
        users: Users of every group, shape (num_entries,).
        pair: What every group is worth at the best pair; None where releasing nothing is better.
        vector: The best bounds that were found where whole vectors are bounded; None where nothing is better.
        of_vector: What every group is worth there.
        of_tuner: The same at the pair that PipelineDP's rule picks; None where it was not computed.
        over_epsilon: What other budgets buy at the best pair; None without one.
        vector_over_epsilon: The same for whole vectors.
    """

    users: IntArray
    pair: SelectedGroups | None
    vector: SelectedVector | None
    of_vector: SelectedGroups | None
    of_tuner: SelectedGroups | None
    over_epsilon: OverEpsilon | None
    vector_over_epsilon: OverEpsilon | None


def find(
    selection: Selection,
    pair: tuple[int, float] | None,
    vector: SelectedVector | None,
    tuner: tuple[int, int] | None,
    should_stop: ShouldStop,
) -> SelectedFound:
    """Evaluate what the search found.

    Args:
        selection: The question.
        pair: Best L0 and L-infinity, None where nothing is worth releasing.
        vector: The best bounds on whole vectors.
        tuner: PipelineDP's pick.
        should_stop: Asked before what can be left out.
    """
    problem = selection.problem
    users = np.bincount(problem.pairs.group_codes, minlength=problem.pairs.num_entries)
    asked = problem.parameters.epsilon
    budgets = np.geomspace(asked / 10.0, asked * 10.0, EPSILONS)
    budgets = budgets[(budgets >= 10.0 * EPSILON_RANGE[0]) & (budgets <= EPSILON_RANGE[1])]
    curve = vector_curve = None
    if pair is not None and not should_stop():
        curve = _curve(problem, budgets, selection.over_epsilon(budgets, *pair))
    if vector is not None and not should_stop():
        vector_curve = _curve(problem, budgets, [_of_vector(selection, vector, e) for e in budgets])
    return SelectedFound(
        users=users,
        pair=None if pair is None else selection.groups(*pair),
        vector=vector,
        of_vector=None if vector is None else _of_vector(selection, vector, asked),
        of_tuner=None if tuner is None else selection.groups(*tuner),
        over_epsilon=curve,
        vector_over_epsilon=vector_curve,
    )


def _of_vector(selection: Selection, vector: SelectedVector, epsilon: float) -> SelectedGroups:
    """Return what every group is worth where whole vectors are bounded, at some budget."""
    problem = selection.problem
    missing = problem.per_group(problem.amounts - kept(problem, vector.rule, vector.max_norm))
    asked = selection.at(epsilon)
    noise = float(asked.parameters.norm_noise(vector.max_norm)) ** 2
    share = asked.keep(vector.max_groups)
    return SelectedGroups(share, share * (missing**2 + noise), (1.0 - share) * problem.totals**2)


def _curve(problem: PerGroupProblem, epsilons: FloatArray, found: list[SelectedGroups]) -> OverEpsilon:
    parts = [parts_of(problem, groups) for groups in found]
    return OverEpsilon(
        epsilons,
        np.array([groups.expected_groups for groups in found]),
        np.array([kept_part for kept_part, _ in parts]),
        np.array([lost for _, lost in parts]),
    )


def parts_of(problem: PerGroupProblem, groups: SelectedGroups) -> tuple[float, float]:
    """Return what groups that are released, and those that are not, add to the error: both add up to it."""
    squares = groups.mean_squares
    # The error is sum w s / d, with d the root of each group's s, or of all of them together.
    root = np.sqrt(squares) if problem.parameters.objective.rooted else problem.error(squares)
    share = problem.weights / np.maximum(root, np.finfo(float).tiny)
    return float(share @ groups.error_kept), float(share @ groups.error_lost)
