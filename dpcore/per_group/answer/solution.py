"""Solve a release per group on a data set: the best bounds, the error around them, and the error of each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from dpcore.answer.against import BoundComparison
from dpcore.common.checks import refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.data.task_facets import Pairs, PairSizes
from dpcore.dataset import Dataset
from dpcore.per_group import whole_vector
from dpcore.per_group.answer import error_map
from dpcore.per_group.answer.error_map import NUM_PAIRS_OF_LARGE_DATA, ErrorMap, Pair
from dpcore.per_group.listed_pairs import build_pairs
from dpcore.per_group.means import (
    compute_mean_error,
    compute_mean_squares,
    find_best_mean_pair,
    find_useful_size,
)
from dpcore.per_group.moments import ErrorParts, compute_error_parts, compute_moments, compute_pair_error
from dpcore.per_group.pair_of_bounds import PairChoice, find_best_pair, round_up, space_evenly
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.passes import compute_parts_by_max_groups
from dpcore.per_group.private_pair import MAX_PAIRS, pick_as_tuner
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection import (
    SelectedVector,
    SelectionProblem,
    find_best_selected_pair,
    find_best_selected_vector,
)
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.per_group.summary import SummaryProblem, find_best_summary_pair

MAP_SHAPE, SELECTED_MAP_SHAPE, MEAN_MAP_SHAPE, SUMMARY_MAP_SHAPE = (48, 20), (12, 8), (9, 9), (30, 16)
"""Points of the map along groups and amounts."""
MAX_VISITED_PAIRS = 60_000_000
"""Pairs that a search with private groups visits, about a minute."""
NUM_CURVE_POINTS = 36
"""Norms of the curves."""
NEAR_OPTIMAL_RATIO = 1.05
"""Of the best error."""
MIN_SAVING = 0.01
"""Share of the error that scaling must save."""
USEFUL_ERROR = 0.1
"""Relative error of a useful number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairSolution:
    """The best pair of bounds and the map of the error, from the pairs or from their distribution.

    Attributes:
        problem: The problem on these data.
        facet: The pairs, or their distribution, as the data have them, with the names of their columns.
        pair_choice: The best pair, or the best found.
        pair: The same with L-infinity rounded to few digits if it is real, for card and code; None if releasing nothing
            is better.
        own_pair: The user's own pair, or None.
        tuner_pair: The pair that PipelineDP's rule picks; None if the rule does not cover the statistic.
        error_map: The error over both bounds.
    """

    problem: PerGroupProblem | SummaryProblem
    facet: Pairs | PairSizes
    pair_choice: PairChoice
    pair: Pair | None
    own_pair: Pair | None
    tuner_pair: Pair | None = None
    error_map: ErrorMap

    @property
    def parameters(self) -> PerGroupParameters:
        """Return the parameters of the problem."""
        return self.problem.parameters

    @property
    def num_pairs(self) -> int:
        """Return the number of pairs of user and group with rows."""
        return int(
            self.facet.pairs.sum() if isinstance(self.facet, PairSizes) else self.facet.user_codes.size
        )

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list, or in the data if groups are selected privately."""
        return self.problem.num_groups

    @property
    def pair_error(self) -> float:
        """Return the error of the best pair, or of releasing nothing if that is better."""
        return self.problem.error_of_nothing if self.pair is None else self.pair.error

    @cached_property
    def bounded_sizes(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return four arrays: groups per user and how many users have each, amounts and how many pairs have each.

        Numbers of groups and amounts are distinct and ascending: they are what the two bounds cut.
        """
        if isinstance(self.problem, SummaryProblem):
            pair_sizes = self.problem.pair_sizes
            # A user of k groups has k pairs.
            groups_per_user, pair_counts = pair_sizes.groups, pair_sizes.pairs.astype(np.float64)
            user_counts = pair_counts / groups_per_user
        else:
            groups_per_user = self.problem.pairs.groups_per_user
            user_counts = np.ones(groups_per_user.size)
            pair_counts = np.ones(self.problem.pairs.num_pairs)
        groups_and_users = _count_distinct(groups_per_user, user_counts)
        return *groups_and_users, *_count_distinct(np.abs(self.problem.amounts), pair_counts)


def _count_distinct(
    repeated_values: npt.ArrayLike, count_of_each: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values, ascending, and the sum of the counts of each, rounded to whole numbers."""
    distinct_values, value_indices = np.unique(
        np.asarray(repeated_values, dtype=np.float64), return_inverse=True
    )
    return distinct_values, np.rint(np.bincount(value_indices, count_of_each))


@dataclass(frozen=True, eq=False, kw_only=True)
class DistributionSolution(PairSolution):
    """The best pair for a distribution of pairs.

    Attributes:
        error_limits: Interval of the error for any mixture of pairs; None if it is not known.
    """

    problem: SummaryProblem
    error_limits: tuple[float, float] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class PerGroupSolution(PairSolution):
    """The best bounds for a release per group, with the error of each group.

    Attributes:
        vector_choices: The best cap and the best radial clip of whole vectors; empty outside the theorem.
        near_optimal_groups: Interval of L0 around the best with an error within 5 %, at the best L-infinity; None
            for means, for privately selected groups, and without a pair.
        selection_solution: The solution for privately selected groups; None for a public list.
    """

    problem: PerGroupProblem
    facet: Pairs
    vector_choices: tuple[whole_vector.VectorChoice, ...] = ()
    near_optimal_groups: tuple[int, int] | None = None
    selection_solution: error_map.SelectionSolution | None = None

    @property
    def is_mean(self) -> bool:
        """Return True if means are released."""
        return self.parameters.statistic is Statistic.MEAN

    @property
    def value_column(self) -> str:
        """Return the name of the column that is added up or averaged; empty for rows and users."""
        is_count = self.parameters.statistic in (Statistic.ROWS, Statistic.USERS)
        return "" if is_count else self.facet.value_column

    @property
    def best_vector(self) -> whole_vector.VectorChoice | SelectedVector | None:
        """Return the better of cap and radial clip; with privately selected groups, the best `SelectedVector`.

        None if no bound on whole vectors was searched for or is useful.
        """
        if self.selection_solution is not None:
            return self.selection_solution.selected_vector
        return min(self.vector_choices, key=lambda vector_choice: vector_choice.error, default=None)

    @cached_property
    def error_parts(self) -> ErrorParts | None:
        """Return the parts of the error of ``pair``; None without one, for means, and for privately selected groups."""
        if self.is_mean or self.pair is None or self.selection_solution is not None:
            return None
        return compute_error_parts(self.problem, self.pair.max_groups, self.pair.max_amount)

    @cached_property
    def group_errors(self) -> FloatArray:
        """Return the root mean squared error of every group at ``pair``, or of publishing nothing without a pair."""
        problem, best_pair = self.problem, self.pair
        if best_pair is None:
            return np.abs(problem.centred_means if self.is_mean else problem.totals)
        if self.selection_solution is not None:
            return np.sqrt(self.selection_solution.selected_groups_by_bounds_name["pair"].mean_squares)
        if self.is_mean:
            return np.sqrt(compute_mean_squares(problem, best_pair.max_groups, int(best_pair.max_amount)))
        return np.sqrt(compute_moments(problem, best_pair.max_groups, best_pair.max_amount).mean_squares)

    @cached_property
    def vector_group_errors(self) -> FloatArray | None:
        """Return every group's root mean squared error at the better bound on whole vectors; None if there is none."""
        if (best_vector := self.best_vector) is None:
            return None
        if self.selection_solution is not None:
            return np.sqrt(self.selection_solution.selected_groups_by_bounds_name["scaled"].mean_squares)
        return np.sqrt(
            whole_vector.compute_mean_squares(self.problem, best_vector.vector_rule, best_vector.max_norm)
        )

    @property
    def median_relative_error(self) -> float:
        """Return the median over the groups of their error at ``pair`` over their size; of size 0 it is infinite."""
        sizes, multiplicities = np.abs(self.problem.totals), self.problem.pairs.multiplicities
        ratios = np.divide(self.group_errors, sizes, out=np.full(sizes.shape, np.inf), where=sizes > 0.0)
        order = np.argsort(ratios)
        half_num_groups = multiplicities.sum() / 2.0
        return float(ratios[order[np.searchsorted(np.cumsum(multiplicities[order]), half_num_groups)]])

    def compute_standard_error_ratios(self, user_share: float) -> FloatArray:
        """Compute the standard error of each group's mean over that of as many independent rows.

        Args:
            user_share: Of the values of two rows of one user.

        Returns:
            One ratio per group with rows; groups without rows have none.
        """
        pair_rows = self.problem.pairs.rows.astype(np.float64)
        group_rows, row_squares = (
            self.problem.sum_by_group(pair_rows),
            self.problem.sum_by_group(pair_rows**2),
        )
        occupied_mask = group_rows > 0.0
        excess_design_effects = row_squares[occupied_mask] / group_rows[occupied_mask] - 1.0
        return np.sqrt(1.0 + user_share * excess_design_effects)

    @cached_property
    def useful_mean_size(self) -> float | None:
        """Return the number of rows from which on groups' own means err less than one mean for all groups.

        None if that is so for no number of rows, if no pair is released, and for statistics other than means.
        """
        has_means = self.is_mean and self.pair is not None
        return find_useful_size(self.problem, self.group_errors) if has_means else None

    @cached_property
    def norm_curves(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds on whole vectors around the best, and the errors of cap and of radial clip at each bound.

        The theorem must cover the statistic.
        """
        problem = self.problem
        best_norms = [choice.max_norm for choice in self.vector_choices if choice.max_norm > 0.0]
        first_user_norm = float(np.linalg.norm(problem.amounts[: problem.pairs.groups_per_user[0]]))
        grid_centres = best_norms or [first_user_norm or 1.0]
        num_points = (
            NUM_CURVE_POINTS // 3 if problem.pairs.num_pairs > NUM_PAIRS_OF_LARGE_DATA else NUM_CURVE_POINTS
        )
        grid_norms = np.geomspace(min(grid_centres) / 30.0, max(grid_centres) * 30.0, num_points)
        curve_norms = np.unique(np.r_[grid_norms, best_norms])
        cap_errors, radial_errors = (
            np.array([whole_vector.compute_vector_error(problem, vector_rule, float(t)) for t in curve_norms])
            for vector_rule in (whole_vector.VectorRule.CAP, whole_vector.VectorRule.RADIAL)
        )
        return curve_norms, cap_errors, radial_errors

    @property
    def saved_share(self) -> float:
        """Return the share of `pair_error` that bounding whole vectors saves; 0 also if it was not computed."""
        if self.best_vector is None or self.pair_error == 0.0:
            return 0.0
        return max(0.0, 1.0 - self.best_vector.error / self.pair_error)

    def find_useful_size(self, group_errors: FloatArray) -> float | None:
        """Return the smallest size from which on every group's error is below 10 % of its size, or None."""
        sizes = np.abs(self.problem.totals)
        useless_sizes = sizes[~(group_errors < USEFUL_ERROR * sizes)]
        # A group of the same size with a larger error also ends the range.
        useful_sizes = sizes[sizes > useless_sizes.max(initial=0.0)]
        return float(useful_sizes.min()) if useful_sizes.size else None

    def count_useless(self, group_errors: FloatArray) -> int:
        """Return the number of groups whose error is at least their size, so that publishing 0 would be as good."""
        return int(self.problem.pairs.multiplicities[group_errors >= np.abs(self.problem.totals)].sum())


IGNORED_FIELD_NAMES = ("own_groups", "own_amount")


def compare_over_epsilon(dataset: Dataset, parameters: PerGroupParameters) -> BoundComparison | str:
    """Build the comparison over epsilon of the best pair's groups and error, or return a sentence why there is none.

    For privately selected groups the page has its own curves over epsilon, which include the cost of selection.
    """
    if dataset.pairs is None:
        return "These data have no groups."
    if parameters.selection.is_private:
        return "*Which groups survive* has the curves over ε."
    user_group_pairs = build_pairs(dataset, parameters)

    def solve_at(epsilon: float) -> tuple[float, float]:
        """Return L0 and the error of the best pair at another epsilon."""
        problem = PerGroupProblem(user_group_pairs, replace(parameters, epsilon=epsilon))
        is_mean = parameters.statistic is Statistic.MEAN
        pair_choice = find_best_mean_pair(problem) if is_mean else find_best_pair(problem)
        return float(pair_choice.max_groups), pair_choice.error

    axis_labels = "Groups per user of the best pair", "Error of the best pair"
    return BoundComparison(*axis_labels, solve_at, is_slow=True)


def check_data(dataset: Dataset, parameters: PerGroupParameters) -> bool:
    """Return True if the data fit the parameters, else raise `InvalidInput`; nothing is searched.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    PerGroupProblem(build_pairs(dataset, parameters), parameters)
    return True


def solve(
    dataset: Dataset,
    parameters: PerGroupParameters,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> PerGroupSolution:
    """Solve for the best bounds and evaluate them; the data must have pairs.

    Args:
        dataset: The data.
        parameters: The question.
        progress: Called with the share that is done.
        should_stop: Called often; True ends the searches with their present solution and gap.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if dataset.pairs is None:
        raise refuse("these data have no groups")
    problem = PerGroupProblem(build_pairs(dataset, parameters), parameters)
    num_pairs, statistic = problem.pairs.num_pairs, parameters.statistic
    is_mean = statistic is Statistic.MEAN
    selection, sorted_pairs, map_grid_size = None, None, MAP_SHAPE
    compute_pair_error_of: Callable[[int, float], float]
    if parameters.selection.is_private:
        selection, map_grid_size = SelectionProblem(problem), SELECTED_MAP_SHAPE
        compute_pair_error_of = selection.compute_error
        pair_choice = find_best_selected_pair(
            selection,
            max_evaluations=int(min(max(MAX_VISITED_PAIRS // num_pairs, 60), 1_500)),
            progress=lambda share: progress(0.1 + 0.6 * share),
            should_stop=should_stop,
        )
    elif is_mean:
        compute_pair_error_of, map_grid_size = partial(compute_mean_error, problem), MEAN_MAP_SHAPE
        pair_choice = find_best_mean_pair(problem, should_stop=should_stop)
    else:
        compute_pair_error_of = partial(compute_pair_error, problem)
        sorted_pairs = SortedPairs.from_problem(problem)
        progress(0.1)
        pair_choice = find_best_pair(problem, sorted_pairs, should_stop=should_stop)

    def evaluate_pair(max_groups: int, amount: float) -> Pair:
        """Return the pair of bounds with its error."""
        return Pair(max_groups, amount, compute_pair_error_of(max_groups, amount))

    pair = tuner_pair = own_pair = near_optimal_groups = selection_solution = None
    vector_choices: tuple[whole_vector.VectorChoice, ...] = ()
    if not pair_choice.releases_nothing:
        rounded_amount = pair_choice.max_amount if statistic.is_integer else round_up(pair_choice.max_amount)
        pair = evaluate_pair(pair_choice.max_groups, rounded_amount)
    progress(0.7)
    if selection is None and statistic.is_non_negative and parameters.has_vectors:
        search_tolerance = 1e-2 if num_pairs > NUM_PAIRS_OF_LARGE_DATA else 1e-3
        cap_choice = whole_vector.find_best_cap(problem, tolerance=search_tolerance, should_stop=should_stop)
        vector_choices = cap_choice, whole_vector.find_best_radial(problem)
    if statistic.is_non_negative and num_pairs <= MAX_PAIRS and not should_stop():
        compute_probabilities = None if selection is None else selection.compute_keep_probabilities
        tuner_pair = evaluate_pair(*pick_as_tuner(problem, compute_probabilities))
    if parameters.own_groups is not None and parameters.own_amount is not None:
        own_pair = evaluate_pair(int(parameters.own_groups), float(parameters.own_amount))
    progress(0.8)
    if selection is not None:
        selected_vector = (
            find_best_selected_vector(selection, should_stop) if parameters.has_vectors else None
        )
        selection_solution = error_map.evaluate_selection(
            selection, pair, selected_vector, tuner_pair, should_stop
        )
    map_pair = None if is_mean else pair
    group_bounds, amount_bounds = error_map.choose_axes(problem, map_pair, *map_grid_size)
    # One point only, as each costs as much as a step of the search.
    if selection is not None and should_stop():
        group_bounds = group_bounds[:1] if pair is None else np.array([float(pair.max_groups)])

    def compute_row(amount: float) -> FloatArray:
        """Return the map's row at an L-infinity: errors, and sampling and noise parts if known; (1 or 3, columns).

        For means and for privately selected groups the errors alone, shape (1, columns).
        """
        if sorted_pairs is not None:
            errors_and_parts = compute_parts_by_max_groups(problem, amount, sorted_pairs)
            return errors_and_parts[:, group_bounds.astype(np.int64) - 1]
        return np.array([[compute_pair_error_of(int(l0), amount) for l0 in group_bounds]])

    if sorted_pairs is not None and pair is not None:
        near_optimal_groups = _find_near_optimal(problem, pair, sorted_pairs)
    return PerGroupSolution(
        problem=problem,
        pair_choice=pair_choice,
        pair=pair,
        own_pair=own_pair,
        tuner_pair=tuner_pair,
        error_map=error_map.map_by_rows(group_bounds, amount_bounds, compute_row, map_pair, should_stop),
        facet=dataset.pairs,
        vector_choices=vector_choices,
        near_optimal_groups=near_optimal_groups,
        selection_solution=selection_solution,
    )


def _find_near_optimal(
    problem: PerGroupProblem, best_pair: Pair, sorted_pairs: SortedPairs
) -> tuple[int, int]:
    """Return the interval of near-optimal L0 around the pair, without other near-optimal intervals."""
    errors_per_l0 = compute_parts_by_max_groups(problem, best_pair.max_amount, sorted_pairs)[0]
    worse_l0s = 1 + np.flatnonzero(errors_per_l0 > NEAR_OPTIMAL_RATIO * best_pair.error)
    num_worse_below = np.searchsorted(worse_l0s, best_pair.max_groups)
    worse_l0s_and_ends = np.r_[0, worse_l0s, errors_per_l0.size + 1]
    return int(worse_l0s_and_ends[num_worse_below]) + 1, int(worse_l0s_and_ends[num_worse_below + 1]) - 1


def solve_by_distribution(dataset: Dataset, parameters: PerGroupParameters) -> DistributionSolution:
    """Find the best pair of bounds from the distribution of pairs alone, and map the error over both bounds.

    Raises:
        InvalidInput: The parameters need the pairs themselves.
    """
    assert dataset.pair_sizes is not None
    problem = SummaryProblem(dataset.pair_sizes, parameters)
    pair_choice = find_best_summary_pair(problem)
    best_pair = own_pair = None
    error_limits: tuple[float, float] | None = (pair_choice.error, pair_choice.error)
    if not pair_choice.releases_nothing:
        best_pair = Pair(pair_choice.max_groups, pair_choice.max_amount, pair_choice.error)
        error_limits = problem.compute_limits(best_pair.max_groups, best_pair.max_amount)
    if parameters.own_groups is not None and parameters.own_amount is not None:
        l0, own_linf = int(parameters.own_groups), float(parameters.own_amount)
        own_pair = Pair(l0, own_linf, problem.compute_error(l0, own_linf))
    group_bounds, amount_bounds = (
        np.unique(np.r_[space_evenly(int(largest_value), max_num_bounds), best_bound or 1]).astype(np.float64)
        for largest_value, max_num_bounds, best_bound in (
            (dataset.pair_sizes.groups.max(), SUMMARY_MAP_SHAPE[0], pair_choice.max_groups),
            (problem.amounts.max(), SUMMARY_MAP_SHAPE[1], pair_choice.max_amount),
        )
    )
    map_values = np.array(
        [[problem.compute_error_parts(int(l0), float(c)) for l0 in group_bounds] for c in amount_bounds]
    )
    return DistributionSolution(
        problem=problem,
        facet=dataset.pair_sizes,
        pair_choice=pair_choice,
        pair=best_pair,
        own_pair=own_pair,
        error_map=ErrorMap(group_bounds, amount_bounds, *np.moveaxis(map_values, -1, 0)),
        error_limits=error_limits,
    )
