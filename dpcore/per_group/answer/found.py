"""What is found for a release per group on a data set: the bounds, the error around them, and that of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.answer.against import BoundComparison
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset, Pairs
from dpcore.per_group.answer import error_map, selected
from dpcore.per_group.answer.error_map import LARGE, Bounded, ErrorMap, Pair
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
from dpcore.per_group.selection import (
    Selection,
    best_selected_pair,
    best_selected_vector,
    selected_tuner_pick,
)
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.per_group.tuner import MAX_PAIRS, tuner_pick
from dpcore.per_group.whole_vector import VectorChoice, VectorRule, best_cap, best_radial, kept, vector_error
from dpcore.per_group.words import short

MAP_COLUMNS, MAP_ROWS = 48, 20
"""Numbers of groups and amounts of the map; each amount costs one pass over the pairs."""
SELECTED_COLUMNS, SELECTED_ROWS = 12, 8
SEARCHED = 60_000_000
"""Pairs that the search with private groups looks at in all, about a minute; at least 60 times all of them."""
CURVE_POINTS = 36
"""Norms at which the curves of the tab are computed; each costs a sort-free look at all pairs."""
GOOD = 1.05
"""What counts as nearly as good as the best."""
WORTH = 0.01
"""Share of the error from which on what scaling saves is said."""
USEFUL = 0.1
"""Relative error below which a group's number is called useful."""


@dataclass(frozen=True, eq=False)
class PerGroupFound:
    """All that depends on data and question.

    Attributes:
        problem: The question on these data.
        choice: The best pair, or the best that was found.
        pair: The same with L-infinity in few digits where it is real: what card and code say; None where releasing
            nothing is better.
        parts: What the error of ``pair`` consists of; None for a mean.
        cap: The best cap of whole vectors; None outside the theorem.
        radial: The best radial clip; likewise.
        tuner: The pair that PipelineDP's rule picks; None where it is not carried over.
        own: The person's own pair.
        map: The error over both bounds.
        good_groups: L0 from where to where the error stays within 5 % at the best L-infinity.
        sizes: True value of every group, of a mean its rows; shape (num_entries,), the last of which may stand for all
            groups without rows.
        errors: Root mean squared error of every group at ``pair`` (of publishing nothing without one).
        errors_scaled: The same at the better of cap and radial clip; None outside the theorem.
        one_mean: Error of every group where one mean stands for all; only of a mean.
        mean_size: Rows from which groups' own means are better than that; None where there is no such size.
        column: Name of the group column.
        value_column: Name of the column that is added up; empty for rows and users.
        selected: What there is to say of groups that are selected privately; None for a public list.
    """

    problem: PerGroupProblem
    choice: PairChoice | MeanChoice
    pair: Pair | None
    tuner: Pair | None
    own: Pair | None
    map: ErrorMap
    sizes: FloatArray
    errors: FloatArray
    column: str
    value_column: str
    parts: ErrorParts | None = None
    cap: VectorChoice | None = None
    radial: VectorChoice | None = None
    good_groups: tuple[int, int] | None = None
    errors_scaled: FloatArray | None = None
    one_mean: FloatArray | None = None
    mean_size: float | None = None
    selected: selected.SelectedFound | None = None

    @property
    def parameters(self) -> PerGroupParameters:
        """Return what was asked."""
        return self.problem.parameters

    @property
    def num_groups(self) -> int:
        """Return the groups of the public list, those without rows included."""
        return self.problem.pairs.num_groups

    @property
    def is_mean(self) -> bool:
        """Return True if means are released."""
        return self.parameters.statistic is Statistic.MEAN

    @property
    def scaled(self) -> VectorChoice | None:
        """Return the better of cap and radial clip, where the theorem covers the statistic."""
        if self.cap is None or self.radial is None:
            return None
        return self.radial if self.radial.error < self.cap.error else self.cap

    @cached_property
    def bounded(self) -> Bounded:
        """Return what the bounds cut."""
        return error_map.bounded(self.problem)

    @cached_property
    def norm_curves(self) -> NormCurves:
        """Return the error against the bound on whole vectors, where the theorem covers the statistic."""
        return norm_curves(self)

    @property
    def pair_error(self) -> float:
        """Return the error of the best pair, or of releasing nothing where that is better."""
        return self.choice.error_of_nothing if self.pair is None else self.pair.error

    @property
    def saved(self) -> float:
        """Return the share of the best pair's error that bounding whole vectors saves; 0 where it is not looked at."""
        vector = self.scaled if self.selected is None else self.selected.vector
        return (
            0.0
            if vector is None or self.pair_error == 0.0
            else max(0.0, 1.0 - vector.error / self.pair_error)
        )

    def useful_from(self, errors: FloatArray) -> float | None:
        """Return the least size from which every group's error is below 10 % of it, or None if the largest is not."""
        order = np.argsort(-np.abs(self.sizes), kind="stable")
        size = np.abs(self.sizes)[order]
        good = (errors[order] < USEFUL * size) & (size > 0.0)
        # A group of the same size that is not good ends it as well.
        first = int(np.argmin(good)) if not good.all() else size.size
        above = size[:first] if first == size.size else size[:first][size[:first] > size[first]]
        return float(above[-1]) if above.size else None

    def useless(self, errors: FloatArray) -> int:
        """Return the groups whose error is at least their size: publishing 0 would be as good."""
        return int(self.problem.pairs.times[errors >= np.abs(self.sizes)].sum())


def pairs_for(data: Dataset, parameters: PerGroupParameters) -> UserGroupPairs:
    """Return the pairs for a question: with the number of groups of a public list, and values clamped for a mean."""
    pairs, values = data.pairs, data.values
    assert pairs is not None
    num_groups = None if parameters.num_groups is None else int(parameters.num_groups)
    if parameters.statistic is Statistic.MEAN and values is not None and pairs.value_range is not None:
        (least, greatest), (lower, upper) = pairs.value_range, parameters.mean_range
        if least < lower or greatest > upper:
            clamped = UserGroupPairs.from_clamped(pairs, values, lower, upper, num_groups)
            if clamped is not None:
                return clamped
    return UserGroupPairs.from_facet(pairs, num_groups)


NOT_COMPARED = ("own_groups", "own_amount")


def against_epsilon(data: Dataset, parameters: PerGroupParameters) -> BoundComparison | str:
    """Return the groups per user of the best pair, and its error, at any epsilon.

    Where groups are selected privately the page has curves over epsilon of its own, which tell what selection costs.
    """
    if data.pairs is None:
        return "This needs a group in each row, and these data have none."
    if parameters.selection.private:
        return "Where groups are selected privately, the tab on that selection has the curves over ε."
    pairs = pairs_for(data, parameters)
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
    """Refuse what does not fit before any search begins.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    assert data.pairs is not None
    PerGroupProblem(pairs_for(data, parameters), parameters)


def find(
    data: Dataset,
    parameters: PerGroupParameters,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> PerGroupFound:
    """Solve and evaluate; the data must have pairs.

    Args:
        data: The data.
        parameters: The question.
        progress: Told the share that is done.
        should_stop: Asked all the time; what was found until then is shown, with the gap that it has.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    assert data.pairs is not None
    problem = PerGroupProblem(pairs_for(data, parameters), parameters)
    if parameters.selection.private:
        return _find_selected(data.pairs, problem, progress, should_stop)
    mean = parameters.statistic is Statistic.MEAN
    facet = None if mean else SortedPairs.of(problem)
    progress(0.1)
    choice: PairChoice | MeanChoice = (
        best_mean_pair(problem, should_stop=should_stop)
        if mean
        else best_pair(problem, facet, should_stop=should_stop)
    )
    progress(0.3)

    def at(groups: int, amount: float) -> Pair:
        error = mean_error(problem, groups, int(amount)) if mean else pair_error(problem, groups, amount)
        return Pair(groups, amount, error)

    pair = None
    if not choice.releases_nothing:
        pair = at(
            choice.max_groups, choice.max_amount if parameters.statistic.whole else short(choice.max_amount)
        )
    covered = parameters.statistic.non_negative
    near = 1e-2 if problem.pairs.num_pairs > LARGE else 1e-3
    cap, radial = None, None
    if covered:
        cap, radial = best_cap(problem, tolerance=near, should_stop=should_stop), best_radial(problem)
    progress(0.6)
    tuner = None
    if covered and problem.pairs.num_pairs <= MAX_PAIRS and not should_stop():
        tuner = at(*tuner_pick(problem))
    own = None
    if parameters.own_groups is not None and parameters.own_amount is not None:
        own = at(int(parameters.own_groups), float(parameters.own_amount))
    progress(0.7)
    if mean:
        cells = error_map.of_means(problem, should_stop)
    else:
        assert facet is not None
        groups, amounts = error_map.axes(problem, pair, MAP_COLUMNS, MAP_ROWS)

        def row(amount: float) -> FloatArray:
            at = parts_by_groups(problem, amount, facet)
            return np.array([at.errors, at.sampling, at.noise])[:, groups.astype(np.int64) - 1]

        cells = error_map.row_by_row(groups, amounts, row, pair, should_stop)
    errors = _errors_of_groups(problem, pair)
    scaled = None
    if cap is not None and radial is not None:
        better = radial if radial.error < cap.error else cap
        scaled = _errors_scaled(problem, better)
    return PerGroupFound(
        problem=problem,
        choice=choice,
        pair=pair,
        parts=None if mean or pair is None else error_parts(problem, pair.max_groups, pair.max_amount),
        cap=cap,
        radial=radial,
        tuner=tuner,
        own=own,
        map=cells,
        good_groups=None if mean or pair is None else _good_groups(problem, pair, facet),
        sizes=problem.totals,
        errors=errors,
        errors_scaled=scaled,
        one_mean=error_of_one_mean(problem) if mean else None,
        mean_size=useful_size(problem, errors) if mean and pair is not None else None,
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
    missing = problem.per_group(problem.amounts - kept(problem, choice.rule, choice.max_norm))
    return np.hypot(missing, float(problem.parameters.norm_noise(choice.max_norm)))


def _find_selected(
    facet: Pairs, problem: PerGroupProblem, progress: Progress, should_stop: ShouldStop
) -> PerGroupFound:
    """Return the same where groups are selected privately."""
    selection, asked = Selection(problem), problem.parameters
    num_pairs = problem.pairs.num_pairs
    most = int(min(max(SEARCHED // num_pairs, 60), 1_500))
    choice = best_selected_pair(
        selection, max_evaluations=most, progress=lambda share: progress(0.7 * share), should_stop=should_stop
    )
    pair = None
    if not choice.releases_nothing:
        amount = choice.max_amount if asked.statistic.whole else short(choice.max_amount)
        pair = Pair(choice.max_groups, amount, selection.error(choice.max_groups, amount))
    progress(0.7)
    tuner = own = None
    if num_pairs <= MAX_PAIRS and not should_stop():
        l0, linf = selected_tuner_pick(selection)
        tuner = Pair(l0, linf, selection.error(l0, linf))
    if asked.own_groups is not None and asked.own_amount is not None:
        l0, x = int(asked.own_groups), float(asked.own_amount)
        own = Pair(l0, x, selection.error(l0, x))
    vector = best_selected_vector(selection, should_stop)
    progress(0.8)
    view = selected.find(
        selection,
        None if pair is None else (pair.max_groups, pair.max_amount),
        vector,
        None if tuner is None else (tuner.max_groups, int(tuner.max_amount)),
        should_stop,
    )
    progress(0.85)
    groups, amounts = error_map.axes(problem, pair, SELECTED_COLUMNS, SELECTED_ROWS)
    if should_stop():  # One point, as each takes a search's step.
        groups = groups[:1] if pair is None else np.array([float(pair.max_groups)])

    def row(amount: float) -> FloatArray:
        return np.array([selection.error(int(l0), amount) for l0 in groups])

    cells = error_map.row_by_row(groups, amounts, row, pair, should_stop)
    nothing = np.abs(problem.totals)
    return PerGroupFound(
        problem=problem,
        choice=choice,
        pair=pair,
        tuner=tuner,
        own=own,
        map=cells,
        sizes=problem.totals,
        errors=nothing if view.pair is None else np.sqrt(view.pair.mean_squares),
        errors_scaled=None if view.of_vector is None else np.sqrt(view.of_vector.mean_squares),
        column=facet.label,
        value_column=facet.value_column if asked.statistic is Statistic.SUM else "",
        selected=view,
    )


def _good_groups(problem: PerGroupProblem, pair: Pair, facet: SortedPairs | None) -> tuple[int, int]:
    near = np.flatnonzero(errors_by_groups(problem, pair.max_amount, facet) <= GOOD * pair.error) + 1
    # From the pair outwards, so that no further valley is joined to it.
    inside = np.searchsorted(near, pair.max_groups)
    gaps = np.flatnonzero(np.diff(near) > 1)
    low, high = gaps[gaps < inside], gaps[gaps >= inside]
    return int(near[low[-1] + 1] if low.size else near[0]), int(near[high[0]] if high.size else near[-1])


@dataclass(frozen=True, eq=False)
class NormCurves:
    """The error against T for both rules, shape of ``norms``."""

    norms: FloatArray
    cap: FloatArray
    radial: FloatArray


def norm_curves(view: PerGroupFound) -> NormCurves:
    """Return the error against the bound on the norm, around the best ones."""
    assert view.cap is not None
    assert view.radial is not None
    problem = view.problem
    chosen = [x for x in (view.cap.max_norm, view.radial.max_norm) if x > 0.0]
    norm = float(np.linalg.norm(problem.amounts[: problem.pairs.groups_per_user[0]]))
    middle = chosen or [norm or 1.0]
    low, high = min(middle) / 30.0, max(middle) * 30.0
    points = CURVE_POINTS // 3 if problem.pairs.num_pairs > LARGE else CURVE_POINTS
    norms = np.unique(np.r_[np.geomspace(low, high, points), chosen])
    return NormCurves(
        norms,
        np.array([vector_error(problem, VectorRule.CAP, float(t)) for t in norms]),
        np.array([vector_error(problem, VectorRule.RADIAL, float(t)) for t in norms]),
    )
