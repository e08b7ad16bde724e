"""The map of the error over both bounds, and curves for privately selected groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.pair_of_bounds import space_evenly
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection import SelectedGroups, SelectedVector, SelectionProblem
from dpcore.per_group.whole_vector import sum_cut_amounts

NUM_PAIRS_OF_LARGE_DATA = 2_000_000
"""Pairs above which maps and curves are coarser."""


@dataclass(frozen=True)
class Pair:
    """A pair of bounds, L0 and L-infinity, with its error by the problem's objective.

    Attributes:
        max_groups: L0.
        max_amount: L-infinity, in the statistic's unit; of a mean, in rows.
        error: By the problem's objective.
    """

    max_groups: int
    max_amount: float
    error: float


@dataclass(frozen=True, eq=False)
class ErrorMap:
    """The error over both bounds, and the parts of it that add up to it, if known.

    Attributes:
        group_bounds: L0, ascending, shape (columns,).
        amount_bounds: L-infinity, ascending, shape (rows,).
        errors: Shape (rows, columns).
        sampling_parts: Part of the error from the random choice of groups, as in
            `dpcore.per_group.moments.ErrorParts`, of the same shape; None if the parts of the error are unknown.
        noise_parts: Part of the error from the noise, likewise.
    """

    group_bounds: FloatArray
    amount_bounds: FloatArray
    errors: FloatArray
    sampling_parts: FloatArray | None = None
    noise_parts: FloatArray | None = None

    def split_squares(self) -> dict[str, FloatArray]:
        """Return bias, sampling and noise as mean squares, which add up to the squared error; empty if unknown.

        If the error is a mean of the groups' roots, its square is divided in the proportions of the error itself.
        """
        if self.sampling_parts is None or self.noise_parts is None:
            return {}
        bias_errors = np.maximum(self.errors - self.sampling_parts - self.noise_parts, 0.0)
        errors_by_part = {"bias": bias_errors, "sampling": self.sampling_parts, "noise": self.noise_parts}
        return {
            part_name: self.errors * errors_of_part for part_name, errors_of_part in errors_by_part.items()
        }


def choose_axes(
    problem: PerGroupProblem, best_pair: Pair | None, max_group_bounds: int, max_amount_bounds: int
) -> tuple[FloatArray, FloatArray]:
    """Return the L0 and the L-infinity of the map, ascending, with those of the pair; fewer rows for large data."""
    if problem.pairs.num_pairs > NUM_PAIRS_OF_LARGE_DATA:
        max_amount_bounds //= 3
    abs_amounts = np.abs(problem.amounts)
    largest_amount = float(abs_amounts.max())
    group_bounds = space_evenly(int(problem.pairs.groups_per_user.max()), max_group_bounds)
    if problem.parameters.statistic.is_integer:
        amount_bounds = np.array(space_evenly(int(largest_amount), max_amount_bounds), dtype=np.float64)
    else:
        smallest_amount = float(abs_amounts[abs_amounts > 0.0].min(initial=largest_amount))
        smallest_amount = max(smallest_amount, largest_amount / 1e4) or 1.0
        amount_bounds = np.geomspace(
            smallest_amount, max(largest_amount, smallest_amount * 1.01), max_amount_bounds
        )
    pair_group_bounds, pair_amount_bounds = (
        ([], []) if best_pair is None else ([best_pair.max_groups], [best_pair.max_amount])
    )
    return np.unique(np.r_[group_bounds, pair_group_bounds] * 1.0), np.unique(
        np.r_[amount_bounds, pair_amount_bounds]
    )


def map_by_rows(
    group_bounds: FloatArray,
    amount_bounds: FloatArray,
    compute_row_at: Callable[[float], FloatArray],
    first_pair: Pair | None,
    should_stop: ShouldStop,
) -> ErrorMap:
    """Build the map row by row, that of the pair first; if stopped, return the rows computed so far, at least one.

    ``compute_row_at`` returns the errors, shape (1, columns), or errors, sampling and noise parts, shape (3, columns).
    """
    first_amount = first_pair.max_amount if first_pair is not None else float(amount_bounds[-1])
    rows_by_amount: dict[float, FloatArray] = {}
    for amount in sorted(amount_bounds.tolist(), key=lambda x: (x != first_amount, x)):
        if rows_by_amount and should_stop():
            break
        rows_by_amount[amount] = compute_row_at(amount)
    computed_amounts = sorted(rows_by_amount)
    errors_and_parts = np.stack([rows_by_amount[amount] for amount in computed_amounts], axis=1)
    return ErrorMap(group_bounds, np.array(computed_amounts), *errors_and_parts)


NUM_EPSILONS = 13
"""Budgets of the curves."""


@dataclass(frozen=True, eq=False)
class SelectionSolution:
    """The solution for privately selected groups, by the bounds ``pair``, ``scaled`` and ``tuner``.

    Attributes:
        users_per_group: Number of users of every group, shape (num_entries,).
        selected_vector: The best bounds found for whole vectors, ``scaled``; None if releasing nothing is better.
        selected_groups_by_bounds_name: Release probability and error of every group under each of the bounds.
        curves_by_bounds_name: Curves at other budgets with ``pair`` and ``scaled`` fixed, each of shape (n,): the
            budgets of selection and noise together, ascending; the expected number of released groups; and the
            parts of the error from released groups and from the others.
    """

    users_per_group: IntArray
    selected_vector: SelectedVector | None
    selected_groups_by_bounds_name: Mapping[str, SelectedGroups]
    curves_by_bounds_name: Mapping[str, tuple[FloatArray, FloatArray, FloatArray, FloatArray]]


def evaluate_selection(
    selection: SelectionProblem,
    best_pair: Pair | None,
    selected_vector: SelectedVector | None,
    tuner_pair: Pair | None,
    should_stop: ShouldStop,
) -> SelectionSolution:
    """Evaluate every group under the given bounds, and compute curves over epsilon with these bounds fixed.

    Args:
        selection: The problem with its rule.
        best_pair: Best L0 and L-infinity, or None to release nothing.
        selected_vector: The best bounds on whole vectors; None to release nothing.
        tuner_pair: PipelineDP's pick.
        should_stop: Called before each optional curve; True leaves it out.
    """
    problem = selection.problem
    epsilon = problem.parameters.epsilon
    epsilons = np.geomspace(epsilon / 10.0, epsilon * 10.0, NUM_EPSILONS)
    epsilons = epsilons[(epsilons >= 10.0 * EPSILON_RANGE[0]) & (epsilons <= EPSILON_RANGE[1])]
    selected_groups_by_bounds_name: dict[str, SelectedGroups] = {}
    groups_over_epsilon: dict[str, list[SelectedGroups]] = {}
    for bounds_name, compared_pair in (("pair", best_pair), ("tuner", tuner_pair)):
        if compared_pair is not None:
            max_groups_and_amount = compared_pair.max_groups, compared_pair.max_amount
            selected_groups_by_bounds_name[bounds_name] = selection.evaluate_groups(*max_groups_and_amount)
            if compared_pair is best_pair and not should_stop():
                groups_over_epsilon[bounds_name] = selection.evaluate_at(epsilons, *max_groups_and_amount)
    if selected_vector is not None:
        max_norm, max_groups = selected_vector.max_norm, selected_vector.max_groups
        cut_amounts = sum_cut_amounts(problem, selected_vector.vector_rule, max_norm)

        def bound_vectors(total_epsilon: float) -> SelectedGroups:
            """Evaluate every group under the bound on whole vectors at a total budget."""
            return selection.with_epsilon(total_epsilon).bound_vectors(cut_amounts, max_norm, max_groups)

        selected_groups_by_bounds_name["scaled"] = bound_vectors(epsilon)
        if not should_stop():
            groups_over_epsilon["scaled"] = [bound_vectors(other_epsilon) for other_epsilon in epsilons]
    curves_by_bounds_name = {}
    for bounds_name, all_selected_groups in groups_over_epsilon.items():
        curve_columns = [
            (selected_groups.num_expected_groups, *split_error(problem, selected_groups))
            for selected_groups in all_selected_groups
        ]
        curves_by_bounds_name[bounds_name] = (epsilons, *np.array(curve_columns).T)
    users_per_group = np.bincount(problem.pairs.group_codes, minlength=problem.pairs.num_entries)
    return SelectionSolution(
        users_per_group, selected_vector, selected_groups_by_bounds_name, curves_by_bounds_name
    )


def split_error(problem: PerGroupProblem, selected_groups: SelectedGroups) -> tuple[float, float]:
    """Split the objective into a part of released groups and one of groups that are not released; they add up."""
    weights_of_squares = problem.parameters.divide_weights(selected_groups.mean_squares, problem.weights)
    released_part = float(weights_of_squares @ selected_groups.released_squares)
    return released_part, float(weights_of_squares @ selected_groups.dropped_squares)
