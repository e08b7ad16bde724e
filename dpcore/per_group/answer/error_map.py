"""The map of the error over both bounds, and curves for privately selected groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.means import mean_error
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.selection import SelectedGroups, SelectedVector, Selection
from dpcore.per_group.whole_vector import keep_amounts

LARGE = 2_000_000
"""Number of pairs above which map and curves have a third of the points and the tolerance of the best cap is 1 %."""
MEAN_COLUMNS, MEAN_ROWS = 9, 9


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

    def squares(self) -> dict[str, FloatArray] | None:
        """Return bias, sampling and noise as mean squares, which add up to the squared error; None without known parts.

        If the error is a mean of the groups' roots, its square is divided in the proportions of the error itself.
        """
        if self.sampling is None or self.noise is None:
            return None
        bias = np.maximum(self.errors - self.sampling - self.noise, 0.0)
        values_by_part = {"bias": bias, "sampling": self.sampling, "noise": self.noise}
        return {name: self.errors * values for name, values in values_by_part.items()}


@dataclass(frozen=True, eq=False)
class BoundedSizes:
    """The sizes that the two bounds cut: distinct, ascending, each with its count.

    Attributes:
        groups: Groups per user.
        users: Number of users with so many groups, likewise.
        amounts: Amount that a user adds to a group, without its sign.
        pairs: Number of pairs of user and group with that amount.
    """

    groups: FloatArray
    users: FloatArray
    amounts: FloatArray
    pairs: FloatArray


def count_bounded_sizes(problem: PerGroupProblem) -> BoundedSizes:
    """Count the groups per user and the amounts per pair, which the two bounds cut."""
    groups, users = np.unique(problem.pairs.groups_per_user, return_counts=True)
    sizes = problem.pairs.rows if problem.parameters.statistic is Statistic.MEAN else problem.amounts
    amounts, pairs = np.unique(np.abs(sizes), return_counts=True)
    return BoundedSizes(*(column.astype(np.float64) for column in (groups, users, amounts, pairs)))


class MappedSolution(Protocol):
    """A solution with a map of the error, for the figure over both bounds."""

    @property
    def parameters(self) -> PerGroupParameters:
        """Return the parameters of the problem."""

    @property
    def map(self) -> ErrorMap:
        """Return the error over both bounds."""

    @property
    def pair(self) -> Pair | None:
        """Return the best pair."""

    @property
    def tuner(self) -> Pair | None:
        """Return the pair of PipelineDP's rule."""

    @property
    def own_pair(self) -> Pair | None:
        """Return the user's own pair."""

    @property
    def pair_error(self) -> float:
        """Return the error of the best pair, or of releasing nothing."""

    @property
    def bounded_sizes(self) -> BoundedSizes:
        """Return the sizes that the bounds cut."""


def _log_spaced_integers(largest: int, count: int, extra: list[int]) -> FloatArray:
    """Return integers from 1 to the largest, evenly spaced on a log axis, together with the extra ones."""
    spread = np.rint(np.geomspace(1.0, max(largest, 1), count))
    return np.unique(np.r_[spread, [float(x) for x in extra if 1 <= x <= largest]])


def choose_axes(
    problem: PerGroupProblem, pair: Pair | None, columns: int, rows: int
) -> tuple[FloatArray, FloatArray]:
    """Return the values of both bounds for the map, including those of the pair."""
    most_groups, largest = int(problem.pairs.groups_per_user.max()), float(np.abs(problem.amounts).max())
    if problem.pairs.num_pairs > LARGE:
        rows //= 3
    groups = _log_spaced_integers(most_groups, columns, [] if pair is None else [pair.max_groups])
    if problem.whole:
        return groups, _log_spaced_integers(
            int(largest), rows, [] if pair is None else [int(pair.max_amount)]
        )
    sizes = np.abs(problem.amounts)
    positive = sizes[sizes > 0.0]
    low = max(float(positive.min()), largest / 1e4) if positive.size else 1.0
    amounts = np.geomspace(low, max(largest, low * 1.01), rows)
    return groups, np.unique(np.r_[amounts, [] if pair is None else [pair.max_amount]])


def map_by_rows(
    groups: FloatArray,
    amounts: FloatArray,
    row: Callable[[float], FloatArray],
    pair: Pair | None,
    should_stop: ShouldStop,
) -> ErrorMap:
    """Build the map row by row, that of the pair first; if stopped, return the rows computed so far.

    ``row`` returns the errors, shape (columns,), or errors, sampling and noise parts, shape (3, columns).
    """
    first = pair.max_amount if pair is not None else float(amounts[-1])
    rows: dict[float, FloatArray] = {}
    for amount in sorted(amounts.tolist(), key=lambda x: (x != first, x)):
        if rows and should_stop():
            break
        rows[amount] = row(amount)
    computed = np.array(sorted(rows))
    errors = np.array([rows[amount] for amount in computed.tolist()])
    return (
        ErrorMap(groups, computed, errors)
        if errors.ndim == 2
        else ErrorMap(groups, computed, *errors.swapaxes(0, 1))
    )


def map_means(problem: PerGroupProblem, should_stop: ShouldStop) -> ErrorMap:
    """Build the map for means; each point costs a pass over all pairs."""
    groups = _log_spaced_integers(int(problem.pairs.groups_per_user.max()), MEAN_COLUMNS, [])
    amounts = _log_spaced_integers(int(problem.pairs.rows.max()), MEAN_ROWS, [])

    def row(amount: float) -> FloatArray:
        return np.array([mean_error(problem, int(l0), int(amount)) for l0 in groups])

    return map_by_rows(groups, amounts, row, None, should_stop)


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
