"""Solve a release per group on a data set: the best bounds, the error around them, and the error of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.answer.against import BoundComparison
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset, Pairs
from dpcore.per_group.answer import error_map
from dpcore.per_group.answer.error_map import LARGE, BoundedSizes, ErrorMap, Pair
from dpcore.per_group.means import (
    MeanChoice,
    best_mean_pair,
    error_of_one_mean,
    mean_error,
    mean_squares,
    useful_size,
)
from dpcore.per_group.moments import ErrorParts, error_parts, moments, pair_error
from dpcore.per_group.pair_of_bounds import PairChoice, best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.passes import errors_by_groups, parts_by_groups
from dpcore.per_group.private_pair import MAX_PAIRS, tuner_pick
from dpcore.per_group.selection import (
    Selection,
    best_selected_pair,
    best_selected_vector,
    selected_tuner_pick,
)
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.per_group.summary import round_up
from dpcore.per_group.whole_vector import (
    VectorChoice,
    VectorRule,
    best_cap,
    best_radial,
    keep_amounts,
    vector_error,
)

MAP_COLUMNS, MAP_ROWS = 48, 20
"""Points of the map along groups and amounts; each amount costs one pass over the pairs."""
SELECTED_COLUMNS, SELECTED_ROWS = 12, 8
MAX_VISITED_PAIRS = 60_000_000
"""Pairs that the search with private groups visits in total, about a minute; at least 60 passes over all pairs."""
CURVE_POINTS = 36
"""Norms of the curves; each costs a pass over all pairs without sorting."""
NEAR_OPTIMAL = 1.05
"""Largest error of a near-optimal bound, relative to the best."""
MIN_SAVING = 0.01
"""Smallest share of the error saved by scaling that the answer mentions."""
USEFUL_ERROR = 0.1
"""Relative error below which a group's number is called useful."""


@dataclass(frozen=True, eq=False)
class PerGroupSolution:
    """The best bounds for a release per group, with the map of the error and the error of each group.

    Attributes:
        problem: The problem on these data.
        choice: The best pair, or the best found.
        pair: The same with L-infinity rounded to few digits if it is real, for card and code; None if releasing nothing
            is better.
        error_parts: Parts of the error of ``pair``; None for a mean.
        cap: The best cap of whole vectors; None outside the theorem.
        radial: The best radial clip; likewise.
        tuner: The pair that PipelineDP's rule picks; None if the rule does not cover the statistic.
        own_pair: The user's own pair, or None.
        map: The error over both bounds.
        good_groups: Interval of L0 around the best with an error within 5 %, at the best L-infinity.
        sizes: True value of every group (its rows, for a mean), shape (num_entries,); the last entry may stand for all
            groups without rows.
        errors: Root mean squared error of every group at ``pair``, or of publishing nothing if there is no pair.
        errors_scaled: The same at the better of cap and radial clip; None outside the theorem.
        one_mean: Error of every group if one mean is published for all; only for a mean.
        mean_size: Rows of a group from which its own mean is better than that; None if there is no such size.
        column: Name of the group column.
        value_column: Name of the column that is added up; empty for rows and users.
        selected: The solution for privately selected groups; None for a public list.
    """

    problem: PerGroupProblem
    choice: PairChoice | MeanChoice
    pair: Pair | None
    tuner: Pair | None
    own_pair: Pair | None
    map: ErrorMap
    sizes: FloatArray
    errors: FloatArray
    column: str
    value_column: str
    error_parts: ErrorParts | None = None
    cap: VectorChoice | None = None
    radial: VectorChoice | None = None
    good_groups: tuple[int, int] | None = None
    errors_scaled: FloatArray | None = None
    one_mean: FloatArray | None = None
    mean_size: float | None = None
    selected: error_map.SelectionSolution | None = None

    @property
    def parameters(self) -> PerGroupParameters:
        """Return the parameters of the problem."""
        return self.problem.parameters

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list, including groups without rows."""
        return self.problem.pairs.num_groups

    @property
    def is_mean(self) -> bool:
        """Return True if means are released."""
        return self.parameters.statistic is Statistic.MEAN

    @property
    def scaled(self) -> VectorChoice | None:
        """Return the better of cap and radial clip, or None if the theorem does not cover the statistic."""
        if self.cap is None or self.radial is None:
            return None
        return self.radial if self.radial.error < self.cap.error else self.cap

    @cached_property
    def bounded_sizes(self) -> BoundedSizes:
        """Return the sizes that the bounds cut, with their counts."""
        return error_map.count_bounded_sizes(self.problem)

    @cached_property
    def norm_curves(self) -> NormCurves:
        """Return the error over the bound on whole vectors; the theorem must cover the statistic."""
        return build_norm_curves(self)

    @property
    def pair_error(self) -> float:
        """Return the error of the best pair, or of releasing nothing if that is better."""
        return self.choice.error_of_nothing if self.pair is None else self.pair.error

    @property
    def saved_share(self) -> float:
        """Return the share of the best pair's error that bounding whole vectors saves; 0 if that was not computed."""
        vector = self.scaled if self.selected is None else self.selected.vector
        return (
            0.0
            if vector is None or self.pair_error == 0.0
            else max(0.0, 1.0 - vector.error / self.pair_error)
        )

    def find_useful_size(self, errors: FloatArray) -> float | None:
        """Return the smallest size such that every group from it on has an error below 10 % of its size, or None."""
        order = np.argsort(-np.abs(self.sizes), kind="stable")
        size = np.abs(self.sizes)[order]
        is_useful = (errors[order] < USEFUL_ERROR * size) & (size > 0.0)
        # A group of the same size with a larger error also ends the range.
        first = int(np.argmin(is_useful)) if not is_useful.all() else size.size
        sizes_above = size[:first] if first == size.size else size[:first][size[:first] > size[first]]
        return float(sizes_above[-1]) if sizes_above.size else None

    def count_useless(self, errors: FloatArray) -> int:
        """Return the number of groups whose error is at least their size, so that publishing 0 would be as good."""
        return int(self.problem.pairs.times[errors >= np.abs(self.sizes)].sum())


def build_pairs(data: Dataset, parameters: PerGroupParameters) -> UserGroupPairs:
    """Build the pairs for a problem, with the groups of the public list and, for a mean, with clamped values."""
    pairs, values = data.pairs, data.values
    assert pairs is not None
    num_groups = None if parameters.num_groups is None else int(parameters.num_groups)
    if parameters.statistic is Statistic.MEAN and values is not None and pairs.value_range is not None:
        (smallest, largest), (lower, upper) = pairs.value_range, parameters.mean_range
        if smallest < lower or largest > upper:
            clamped = UserGroupPairs.from_clamped(pairs, values, lower, upper, num_groups)
            if clamped is not None:
                return clamped
    return UserGroupPairs.from_facet(pairs, num_groups)


NOT_COMPARED = ("own_groups", "own_amount")


def against_epsilon(data: Dataset, parameters: PerGroupParameters) -> BoundComparison | str:
    """Compare the groups per user of the best pair and its error over epsilon, or return why that is not possible.

    For privately selected groups the page has its own curves over epsilon, which include the cost of selection.
    """
    if data.pairs is None:
        return "This needs a group in each row, and these data have none."
    if parameters.selection.private:
        return "Where groups are selected privately, the tab on that selection has the curves over ε."
    pairs = build_pairs(data, parameters)
    mean = parameters.statistic is Statistic.MEAN

    def best(epsilon: float) -> tuple[float, float]:
        problem = PerGroupProblem(pairs, replace(parameters, epsilon=epsilon))
        choice: PairChoice | MeanChoice = best_mean_pair(problem) if mean else best_pair(problem)
        if choice.releases_nothing:
            return 0.0, choice.error_of_nothing
        return float(choice.max_groups), choice.error

    return BoundComparison(
        "Groups per user of the best pair",
        "Error of the best pair, by what is minimised",
        best,
        is_slow=True,
    )


def check(data: Dataset, parameters: PerGroupParameters) -> None:
    """Check that the data fit the parameters, before any search begins.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    assert data.pairs is not None
    PerGroupProblem(build_pairs(data, parameters), parameters)


def solve(
    data: Dataset,
    parameters: PerGroupParameters,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> PerGroupSolution:
    """Solve for the best bounds and evaluate them; the data must have pairs.

    Args:
        data: The data.
        parameters: The question.
        progress: Called with the share that is done.
        should_stop: Called often; True ends the searches with their present solution and gap.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    assert data.pairs is not None
    problem = PerGroupProblem(build_pairs(data, parameters), parameters)
    if parameters.selection.private:
        return _solve_selected(data.pairs, problem, progress, should_stop)
    is_mean = parameters.statistic is Statistic.MEAN
    facet = None if is_mean else SortedPairs.from_problem(problem)
    progress(0.1)
    choice: PairChoice | MeanChoice = (
        best_mean_pair(problem, should_stop=should_stop)
        if is_mean
        else best_pair(problem, facet, should_stop=should_stop)
    )
    progress(0.3)

    def evaluate(groups: int, amount: float) -> Pair:
        error = mean_error(problem, groups, int(amount)) if is_mean else pair_error(problem, groups, amount)
        return Pair(groups, amount, error)

    pair = None
    if not choice.releases_nothing:
        pair = evaluate(
            choice.max_groups,
            choice.max_amount if parameters.statistic.whole else round_up(choice.max_amount),
        )
    is_non_negative = parameters.statistic.non_negative
    tolerance = 1e-2 if problem.pairs.num_pairs > LARGE else 1e-3
    cap, radial = None, None
    if is_non_negative:
        cap, radial = best_cap(problem, tolerance=tolerance, should_stop=should_stop), best_radial(problem)
    progress(0.6)
    tuner = None
    if is_non_negative and problem.pairs.num_pairs <= MAX_PAIRS and not should_stop():
        tuner = evaluate(*tuner_pick(problem))
    own_pair = None
    if parameters.own_groups is not None and parameters.own_amount is not None:
        own_pair = evaluate(int(parameters.own_groups), float(parameters.own_amount))
    progress(0.7)
    if is_mean:
        cells = error_map.map_means(problem, should_stop)
    else:
        assert facet is not None
        groups, amounts = error_map.choose_axes(problem, pair, MAP_COLUMNS, MAP_ROWS)

        def row(amount: float) -> FloatArray:
            group_errors = parts_by_groups(problem, amount, facet)
            return np.array([group_errors.errors, group_errors.sampling, group_errors.noise])[
                :, groups.astype(np.int64) - 1
            ]

        cells = error_map.map_by_rows(groups, amounts, row, pair, should_stop)
    errors = _errors_of_groups(problem, pair)
    scaled = None
    if cap is not None and radial is not None:
        better = radial if radial.error < cap.error else cap
        scaled = _errors_scaled(problem, better)
    return PerGroupSolution(
        problem=problem,
        choice=choice,
        pair=pair,
        error_parts=None
        if is_mean or pair is None
        else error_parts(problem, pair.max_groups, pair.max_amount),
        cap=cap,
        radial=radial,
        tuner=tuner,
        own_pair=own_pair,
        map=cells,
        good_groups=None if is_mean or pair is None else _good_groups(problem, pair, facet),
        sizes=problem.totals,
        errors=errors,
        errors_scaled=scaled,
        one_mean=error_of_one_mean(problem) if is_mean else None,
        mean_size=useful_size(problem, errors) if is_mean and pair is not None else None,
        column=data.pairs.label,
        value_column=data.pairs.value_column
        if parameters.statistic not in (Statistic.ROWS, Statistic.USERS)
        else "",
    )


def _errors_of_groups(problem: PerGroupProblem, pair: Pair | None) -> FloatArray:
    mean = problem.parameters.statistic is Statistic.MEAN
    if pair is None:
        return np.abs(problem.centred_means if mean else problem.totals)
    if mean:
        return np.asarray(np.sqrt(mean_squares(problem, pair.max_groups, int(pair.max_amount))))
    return np.asarray(np.sqrt(moments(problem, pair.max_groups, pair.max_amount).mean_squares))


def _errors_scaled(problem: PerGroupProblem, choice: VectorChoice) -> FloatArray:
    missing = problem.per_group(problem.amounts - keep_amounts(problem, choice.rule, choice.max_norm))
    return np.hypot(missing, float(problem.parameters.norm_noise(choice.max_norm)))


def _solve_selected(
    facet: Pairs, problem: PerGroupProblem, progress: Progress, should_stop: ShouldStop
) -> PerGroupSolution:
    """Solve a problem whose groups are selected privately."""
    selection, parameters = Selection(problem), problem.parameters
    num_pairs = problem.pairs.num_pairs
    max_evaluations = int(min(max(MAX_VISITED_PAIRS // num_pairs, 60), 1_500))
    choice = best_selected_pair(
        selection,
        max_evaluations=max_evaluations,
        progress=lambda share: progress(0.7 * share),
        should_stop=should_stop,
    )
    pair = None
    if not choice.releases_nothing:
        amount = choice.max_amount if parameters.statistic.whole else round_up(choice.max_amount)
        pair = Pair(choice.max_groups, amount, selection.error(choice.max_groups, amount))
    progress(0.7)
    tuner = own_pair = None
    if num_pairs <= MAX_PAIRS and not should_stop():
        l0, linf = selected_tuner_pick(selection)
        tuner = Pair(l0, linf, selection.error(l0, linf))
    if parameters.own_groups is not None and parameters.own_amount is not None:
        l0, x = int(parameters.own_groups), float(parameters.own_amount)
        own_pair = Pair(l0, x, selection.error(l0, x))
    vector = best_selected_vector(selection, should_stop)
    progress(0.8)
    selected_solution = error_map.evaluate(
        selection,
        None if pair is None else (pair.max_groups, pair.max_amount),
        vector,
        None if tuner is None else (tuner.max_groups, int(tuner.max_amount)),
        should_stop,
    )
    progress(0.85)
    groups, amounts = error_map.choose_axes(problem, pair, SELECTED_COLUMNS, SELECTED_ROWS)
    if should_stop():  # One point only, as each costs as much as a step of the search.
        groups = groups[:1] if pair is None else np.array([float(pair.max_groups)])

    def row(amount: float) -> FloatArray:
        return np.array([selection.error(int(l0), amount) for l0 in groups])

    cells = error_map.map_by_rows(groups, amounts, row, pair, should_stop)
    totals = np.abs(problem.totals)
    return PerGroupSolution(
        problem=problem,
        choice=choice,
        pair=pair,
        tuner=tuner,
        own_pair=own_pair,
        map=cells,
        sizes=problem.totals,
        errors=totals if selected_solution.pair is None else np.sqrt(selected_solution.pair.mean_squares),
        errors_scaled=None
        if selected_solution.vector_groups is None
        else np.sqrt(selected_solution.vector_groups.mean_squares),
        column=facet.label,
        value_column=facet.value_column if parameters.statistic is Statistic.SUM else "",
        selected=selected_solution,
    )


def _good_groups(problem: PerGroupProblem, pair: Pair, facet: SortedPairs | None) -> tuple[int, int]:
    near = np.flatnonzero(errors_by_groups(problem, pair.max_amount, facet) <= NEAR_OPTIMAL * pair.error) + 1
    # Only the interval around the pair, without other near-optimal intervals.
    inside = np.searchsorted(near, pair.max_groups)
    gaps = np.flatnonzero(np.diff(near) > 1)
    low, high = gaps[gaps < inside], gaps[gaps >= inside]
    return int(near[low[-1] + 1] if low.size else near[0]), int(near[high[0]] if high.size else near[-1])


@dataclass(frozen=True, eq=False)
class NormCurves:
    """The error over T for both rules, of the shape of ``norms``."""

    norms: FloatArray
    cap: FloatArray
    radial: FloatArray


def build_norm_curves(solution: PerGroupSolution) -> NormCurves:
    """Build the curves of the error over the bound on the norm, around the best bounds."""
    assert solution.cap is not None
    assert solution.radial is not None
    problem = solution.problem
    best_norms = [x for x in (solution.cap.max_norm, solution.radial.max_norm) if x > 0.0]
    norm = float(np.linalg.norm(problem.amounts[: problem.pairs.groups_per_user[0]]))
    centres = best_norms or [norm or 1.0]
    low, high = min(centres) / 30.0, max(centres) * 30.0
    points = CURVE_POINTS // 3 if problem.pairs.num_pairs > LARGE else CURVE_POINTS
    norms = np.unique(np.r_[np.geomspace(low, high, points), best_norms])
    return NormCurves(
        norms,
        np.array([vector_error(problem, VectorRule.CAP, float(t)) for t in norms]),
        np.array([vector_error(problem, VectorRule.RADIAL, float(t)) for t in norms]),
    )
