"""The further solution for privately selected groups: release probabilities and curves over epsilon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupProblem
from dpcore.per_group.selection import SelectedGroups, SelectedVector, Selection
from dpcore.per_group.whole_vector import keep_amounts

NUM_EPSILONS = 13
"""Number of budgets of the curves, from a tenth of epsilon to ten times epsilon."""


@dataclass(frozen=True, eq=False)
class OverEpsilon:
    """Released groups and errors at other budgets, with fixed bounds; each of shape (n,).

    Attributes:
        epsilons: Budgets of selection and noise together, ascending.
        groups: Expected number of released groups.
        error_kept: Part of the error from released groups; both parts add up to the error.
        error_lost: Part of the error from groups that are not released.
    """

    epsilons: FloatArray
    groups: FloatArray
    error_kept: FloatArray
    error_lost: FloatArray


@dataclass(frozen=True, eq=False)
class SelectionSolution:
    """The solution for privately selected groups.

    Attributes:
        users: Number of users of every group, shape (num_entries,).
        pair: Release probability and error of every group at the best pair; None if releasing nothing is better.
        vector: The best bounds found for whole vectors; None if releasing nothing is better.
        vector_groups: Release probability and error of every group at ``vector``.
        tuner_groups: The same at the pair that PipelineDP's rule picks; None if it was not computed.
        over_epsilon: Curves over epsilon at the best pair; None if there is no pair.
        vector_over_epsilon: The same at ``vector``.
    """

    users: IntArray
    pair: SelectedGroups | None
    vector: SelectedVector | None
    vector_groups: SelectedGroups | None
    tuner_groups: SelectedGroups | None
    over_epsilon: OverEpsilon | None
    vector_over_epsilon: OverEpsilon | None


def evaluate(
    selection: Selection,
    pair: tuple[int, float] | None,
    vector: SelectedVector | None,
    tuner: tuple[int, int] | None,
    should_stop: ShouldStop,
) -> SelectionSolution:
    """Evaluate the best bounds of a search: every group, and curves over epsilon.

    Args:
        selection: The problem with its rule.
        pair: Best L0 and L-infinity, or None to release nothing.
        vector: The best bounds on whole vectors.
        tuner: PipelineDP's pick.
        should_stop: Called before each optional curve; True leaves it out.
    """
    problem = selection.problem
    users = np.bincount(problem.pairs.group_codes, minlength=problem.pairs.num_entries)
    epsilon = problem.parameters.epsilon
    budgets = np.geomspace(epsilon / 10.0, epsilon * 10.0, NUM_EPSILONS)
    budgets = budgets[(budgets >= 10.0 * EPSILON_RANGE[0]) & (budgets <= EPSILON_RANGE[1])]
    curve = vector_curve = None
    if pair is not None and not should_stop():
        curve = _build_curve(problem, budgets, selection.over_epsilon(budgets, *pair))
    if vector is not None and not should_stop():
        vector_curve = _build_curve(
            problem, budgets, [_evaluate_vector(selection, vector, e) for e in budgets]
        )
    return SelectionSolution(
        users=users,
        pair=None if pair is None else selection.groups(*pair),
        vector=vector,
        vector_groups=None if vector is None else _evaluate_vector(selection, vector, epsilon),
        tuner_groups=None if tuner is None else selection.groups(*tuner),
        over_epsilon=curve,
        vector_over_epsilon=vector_curve,
    )


def _evaluate_vector(selection: Selection, vector: SelectedVector, epsilon: float) -> SelectedGroups:
    """Return the release probability and error of every group with bounded vectors, at a given epsilon."""
    problem = selection.problem
    missing = problem.per_group(problem.amounts - keep_amounts(problem, vector.rule, vector.max_norm))
    rescaled = selection.with_epsilon(epsilon)
    noise = float(rescaled.parameters.norm_noise(vector.max_norm)) ** 2
    share = rescaled.keep_probability(vector.max_groups)
    return SelectedGroups(share, share * (missing**2 + noise), (1.0 - share) * problem.totals**2)


def _build_curve(
    problem: PerGroupProblem, epsilons: FloatArray, selected_groups: list[SelectedGroups]
) -> OverEpsilon:
    error_parts = [split_error(problem, groups) for groups in selected_groups]
    return OverEpsilon(
        epsilons,
        np.array([groups.expected_groups for groups in selected_groups]),
        np.array([kept_part for kept_part, _ in error_parts]),
        np.array([lost for _, lost in error_parts]),
    )


def split_error(problem: PerGroupProblem, groups: SelectedGroups) -> tuple[float, float]:
    """Split the error into the parts of released groups and of groups that are not released."""
    squares = groups.mean_squares
    # The error is sum w s / d, with d the root of each group's s, or of all of them together.
    root = np.sqrt(squares) if problem.parameters.objective.rooted else problem.error(squares)
    share = problem.weights / np.maximum(root, np.finfo(float).tiny)
    return float(share @ groups.error_kept), float(share @ groups.error_lost)
