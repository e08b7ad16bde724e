"""The map of the error over both bounds, and curves for privately selected groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.pair_search import space_evenly
from dpcore.per_group.parameters import PerGroupProblem
from dpcore.per_group.selection import SelectedGroups, SelectedVector, Selection
from dpcore.per_group.whole_vector import keep_amounts

LARGE = 2_000_000
"""Number of pairs above which map and curves have a third of the points and the tolerance of the best cap is 1 %."""


@dataclass(frozen=True)
class Pair:
    """A pair of bounds with its error.

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
    """The error over both bounds.

    Attributes:
        groups: L0, ascending, shape (columns,).
        amounts: L-infinity, ascending, shape (rows,).
        errors: Shape (rows, columns).
        sampling: Part of the error from the random choice of groups, as in `dpcore.per_group.moments.ErrorParts`, of
            the same shape; None if the parts of the error are unknown.
        noise: Part of the error from the noise, likewise.
    """

    groups: FloatArray
    amounts: FloatArray
    errors: FloatArray
    sampling: FloatArray | None = None
    noise: FloatArray | None = None

    def squares(self) -> dict[str, FloatArray]:
        """Return bias, sampling and noise as mean squares, which add up to the squared error; empty if unknown.

        If the error is a mean of the groups' roots, its square is divided in the proportions of the error itself.
        """
        if self.sampling is None or self.noise is None:
            return {}
        bias = np.maximum(self.errors - self.sampling - self.noise, 0.0)
        values_by_part = {"bias": bias, "sampling": self.sampling, "noise": self.noise}
        return {name: self.errors * values for name, values in values_by_part.items()}


def choose_axes(
    problem: PerGroupProblem, pair: Pair | None, columns: int, rows: int
) -> tuple[FloatArray, FloatArray]:
    """Return the values of both bounds for the map, including those of the pair."""
    if problem.pairs.num_pairs > LARGE:
        rows //= 3
    sizes = np.abs(problem.amounts)
    largest = float(sizes.max())
    best_groups, best_amount = ([], []) if pair is None else ([pair.max_groups], [pair.max_amount])
    groups = space_evenly(int(problem.pairs.groups_per_user.max()), columns)
    if problem.is_integer:
        amounts = np.array(space_evenly(int(largest), rows), dtype=np.float64)
    else:
        low = max(float(sizes[sizes > 0.0].min(initial=largest)), largest / 1e4) or 1.0
        amounts = np.geomspace(low, max(largest, low * 1.01), rows)
    return np.unique(np.r_[groups, best_groups].astype(np.float64)), np.unique(np.r_[amounts, best_amount])


def map_by_rows(
    groups: FloatArray,
    amounts: FloatArray,
    row: Callable[[float], FloatArray],
    pair: Pair | None,
    should_stop: ShouldStop,
) -> ErrorMap:
    """Build the map row by row, that of the pair first; if stopped, return the rows computed so far.

    ``row`` returns the errors, shape (1, columns), or errors, sampling and noise parts, shape (3, columns).
    """
    first = pair.max_amount if pair is not None else float(amounts[-1])
    rows: dict[float, FloatArray] = {}
    for amount in sorted(amounts.tolist(), key=lambda x: (x != first, x)):
        if rows and should_stop():
            break
        rows[amount] = row(amount)
    computed = sorted(rows)
    return ErrorMap(groups, np.array(computed), *np.stack([rows[amount] for amount in computed], axis=1))


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
    pair: Pair | None,
    vector: SelectedVector | None,
    tuner: Pair | None,
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
    epsilon = problem.parameters.epsilon
    budgets = np.geomspace(epsilon / 10.0, epsilon * 10.0, NUM_EPSILONS)
    budgets = budgets[(budgets >= 10.0 * EPSILON_RANGE[0]) & (budgets <= EPSILON_RANGE[1])]

    def trace(outcomes: list[SelectedGroups]) -> OverEpsilon:
        rows = [(groups.expected_groups, *split_error(problem, groups)) for groups in outcomes]
        return OverEpsilon(budgets, *np.array(rows).T)

    curve = vector_curve = None
    if pair is not None and not should_stop():
        curve = trace(selection.over_epsilon(budgets, pair.max_groups, pair.max_amount))
    if vector is not None and not should_stop():
        vector_curve = trace([_evaluate_vector(selection, vector, budget) for budget in budgets])
    return SelectionSolution(
        users=np.bincount(problem.pairs.group_codes, minlength=problem.pairs.num_entries),
        pair=None if pair is None else selection.evaluate_groups(pair.max_groups, pair.max_amount),
        vector=vector,
        vector_groups=None if vector is None else _evaluate_vector(selection, vector, epsilon),
        tuner_groups=None if tuner is None else selection.evaluate_groups(tuner.max_groups, tuner.max_amount),
        over_epsilon=curve,
        vector_over_epsilon=vector_curve,
    )


def _evaluate_vector(selection: Selection, vector: SelectedVector, epsilon: float) -> SelectedGroups:
    """Return the release probability and error of every group with bounded vectors, at a given epsilon."""
    problem = selection.problem
    missing = problem.per_group(problem.amounts - keep_amounts(problem, vector.rule, vector.max_norm))
    return selection.with_epsilon(epsilon).bound_vectors(missing, vector.max_norm, vector.max_groups)


def split_error(problem: PerGroupProblem, groups: SelectedGroups) -> tuple[float, float]:
    """Split the error into the parts of released groups and of groups that are not released."""
    share = problem.parameters.divide_weights(groups.mean_squares, problem.weights)
    return float(share @ groups.error_kept), float(share @ groups.error_lost)
