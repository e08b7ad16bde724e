"""The solution for a sum or a count on a data set: the choice, its curves, and the limits of their axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore import total
from dpcore.answer.against import BoundComparison
from dpcore.answer.limits import Limits
from dpcore.common.checks import refuse
from dpcore.common.noise_error import DEFAULT_DELTA, Measure, NoiseKind
from dpcore.common.parameters import list_fields_beside_data
from dpcore.common.wording import capitalise, format_number
from dpcore.contributions import FloatArray, build_log_grid
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.total import TotalChoice, TotalErrors, TotalProblem
from dpcore.total.parameters import TotalParameters, UserTotals, compute_user_totals
from dpcore.total.signed import ClippedSum, SignedProblem

NAME_BY_MEASURE = {
    Measure.ABSOLUTE: "expected absolute error",
    Measure.RMSE: "root mean squared error",
    Measure.BOUND: "paper's bound",
}
NUM_CURVE_POINTS = 240
MAX_AXIS_RATIO = 1e6
"""Largest ratio of the ends of the bound's axis."""


@dataclass(frozen=True)
class Unit:
    """The unit of amounts, rows or that of a column, and how amounts are written in it.

    Attributes:
        column_name: The column that was added up; empty for rows.
    """

    column_name: str

    @property
    def axis_unit(self) -> str:
        """Return the unit of an amount, for the title of an axis."""
        return "unit of the column" if self.column_name else "rows"

    @property
    def per_user_unit(self) -> str:
        """Return the unit of a bound."""
        return "unit of the column, per user" if self.column_name else "rows per user"

    @property
    def result_name(self) -> str:
        """Return the name of the released quantity: "sum" of a column, or "count" of rows."""
        return "sum" if self.column_name else "count"

    def format_amount(self, shown_amount: float, num_digits: int = 3) -> str:
        """Format an amount as ``12 rows``; a bare number for totals of a column."""
        amount_text = format_number(shown_amount, num_digits)
        return amount_text if self.column_name else f"{amount_text} {'row' if shown_amount == 1 else 'rows'}"


@dataclass(frozen=True, kw_only=True)
class _CurveSolution:
    """What both kinds of totals have: what every user adds, and errors over a bound.

    Attributes:
        user_totals: What every user adds.
        bounds: T of the curves, ascending, shape (points,).
        errors: Over ``bounds``.
    """

    user_totals: UserTotals
    bounds: FloatArray
    errors: TotalErrors

    @property
    def unit(self) -> Unit:
        """Return the unit of the amounts: rows, or that of the column."""
        return Unit(self.user_totals.column_name)


@dataclass(frozen=True, kw_only=True)
class TotalSolution(_CurveSolution):
    """All that depends on data and question, but not on a bound or a quantile of the person's own.

    Attributes:
        problem: The question on these data.
        choice: The best bound.
        bound: The best bound, in few digits where totals of a column are bounded: what the card says and code applies.
        bound_errors: Errors at ``bound``.
        near_optimal_bounds: Smallest and largest bound within 5 % of the best error.
    """

    problem: TotalProblem
    choice: TotalChoice
    bound: float
    bound_errors: TotalErrors
    near_optimal_bounds: tuple[float, float]

    @property
    def measure(self) -> Measure:
        """Return the measure of the error that the bound minimises."""
        return self.problem.measure

    def compute_error(self, bound: float) -> float:
        """Compute the error at a bound by the problem's measure, in the totals' unit."""
        return float(total.measure_errors(self.problem, bound))

    @property
    def limits(self) -> tuple[Limits, Limits]:
        """Return (limits of the bound's axis, limits of the error's axis); they depend on the data alone.

        The error goes from below what the best bound costs at epsilon = 10 to above what publishing 0 costs.
        """
        amounts = self.problem.amounts
        problem = TotalProblem(amounts, 10.0)
        least_error = float(total.measure_errors(problem, total.find_optimal_bound(problem)))
        return find_bound_limits(amounts), (least_error / 3.0, max(amounts.total, 10.0 * least_error) * 1.5)

    @cached_property
    def bounds_by_measure(self) -> dict[Measure, float]:
        """Return the best bound by each measure, rounded as ``bound`` is."""
        return {measure: _find_short_bound(replace(self.problem, measure=measure)) for measure in Measure}

    def find_best_by_noise(self, noise_kind: NoiseKind) -> TotalChoice:
        """Find the best bound under a kind of noise; Gaussian noise has this solution's `delta`."""
        delta = self.delta if noise_kind is NoiseKind.GAUSSIAN else None
        return total.find_best_choice(replace(self.problem, mechanism=noise_kind, delta=delta))

    @property
    def delta(self) -> float:
        """Return the delta for Gaussian noise: the entered one, or a default one if the question has Laplace noise."""
        return DEFAULT_DELTA if self.problem.delta is None else self.problem.delta


def _find_short_bound(problem: TotalProblem) -> float:
    """Find the best bound, rounded to few digits unless only whole bounds are allowed."""
    return total.find_short_bound(problem, total.find_optimal_bound(problem))


@dataclass(frozen=True, kw_only=True)
class SignedSolution(_CurveSolution):
    """Totals of both signs, clipped to [L, U]; the errors are those of clipping to [-T, T].

    Attributes:
        problem: The problem on these totals.
        clipped_sum: What the range costs.
        is_entered: Whether the person entered the range; else it is [-T, T] read off the data.
        measure: By which the error is said: the expected one in place of a bound on it, since cuts may cancel.
    """

    problem: SignedProblem
    clipped_sum: ClippedSum
    is_entered: bool
    measure: Measure

    def compute_own_error(self, parameters: TotalParameters) -> float | None:
        """Compute the error of clipping to [-T, T] at the person's own bound T, by ``measure``.

        None without an own bound.
        """
        if not parameters.own_bound:
            return None
        return float(self.problem.compute_symmetric_errors(parameters.own_bound).measure_error(self.measure))

    @property
    def error(self) -> float:
        """Return the error of the clipped sum, by ``measure``."""
        return float(self.clipped_sum.errors.measure_error(self.measure))

    @property
    def limits(self) -> tuple[Limits, Limits]:
        """Return (limits of the bound's axis, limits of the error's axis); they depend on the data alone."""
        amounts = self.problem.size_problem.amounts
        return (float(self.bounds[0]), amounts.largest), (amounts.total / 1e3, amounts.total * 1.5)


def explain_refusal(user_totals: UserTotals) -> str:
    """Return a sentence on why these totals have no answer; empty if they have one."""
    if user_totals.amounts is None:
        return user_totals.refusal_sentence if user_totals.signed_totals is None else ""
    return "All totals are 0." if user_totals.amounts.total == 0.0 else ""


def solve(
    dataset: Dataset, parameters: TotalParameters, user_totals: UserTotals | None = None
) -> TotalSolution | SignedSolution:
    """Find the best bound on a user's total, and its errors over bounds.

    For totals of both signs, find the best range [-T, T] in place of the bound.

    Args:
        dataset: The data.
        parameters: The question.
        user_totals: Result of `compute_user_totals` for both, which do not depend on epsilon.

    Raises:
        InvalidInput: There is nothing to add up, or all of it is 0.
    """
    user_totals = compute_user_totals(dataset, parameters.summed) if user_totals is None else user_totals
    if refusal_sentence := explain_refusal(user_totals):
        raise refuse(refusal_sentence)
    if user_totals.amounts is None:
        return _solve_signed(user_totals, parameters)
    problem = parameters.build_problem(user_totals.amounts)
    choice = total.find_best_choice(problem)
    rounded_best_bound = total.find_short_bound(problem, choice.max_total)
    plot_bounds = choose_plot_bounds(user_totals.amounts)
    if choice.max_total:
        plot_bounds = np.unique(np.append(plot_bounds, choice.max_total))
    return TotalSolution(
        user_totals=user_totals,
        problem=problem,
        choice=choice,
        bound=rounded_best_bound,
        bound_errors=total.compute_errors(problem, rounded_best_bound),
        near_optimal_bounds=total.find_near_optimal_bounds(problem),
        bounds=plot_bounds,
        errors=total.compute_errors(problem, plot_bounds),
    )


def _solve_signed(user_totals: UserTotals, parameters: TotalParameters) -> SignedSolution:
    """Compute the errors of the entered range, or of one that is proposed from the data."""
    assert user_totals.signed_totals is not None
    epsilon_mechanism_delta = parameters.epsilon, parameters.mechanism, parameters.delta
    problem = SignedProblem.from_totals(
        user_totals.signed_totals, *epsilon_mechanism_delta, parameters.program
    )
    lower, upper = parameters.lower, parameters.upper
    is_entered = lower is not None and upper is not None
    if lower is None or upper is None:
        upper = problem.propose_bound()
        lower = -upper
    plot_bounds = choose_plot_bounds(problem.size_problem.amounts)
    return SignedSolution(
        user_totals=user_totals,
        problem=problem,
        clipped_sum=problem.clip(lower, upper),
        is_entered=is_entered,
        measure=Measure.RMSE if parameters.objective is Measure.RMSE else Measure.ABSOLUTE,
        bounds=plot_bounds,
        errors=problem.compute_symmetric_errors(plot_bounds),
    )


IGNORED_FIELD_NAMES = list_fields_beside_data(TotalParameters)
"""Settings on which no part of the solution depends."""


def compare_over_epsilon(dataset: Dataset, parameters: TotalParameters) -> BoundComparison | str:
    """Build the comparison of the best bound and its error over epsilon.

    Return a sentence on why there is none if totals are negative, all 0 or missing.
    """
    user_totals = compute_user_totals(dataset, parameters.summed)
    if user_totals.amounts is None:
        return "The comparison over ε needs totals ≥ 0."
    if user_totals.amounts.total == 0.0:
        return "All totals are 0."
    problem, unit = parameters.build_problem(user_totals.amounts), Unit(user_totals.column_name)

    def solve_at(epsilon: float) -> tuple[float, float]:
        """Return (best bound, its error) at another epsilon."""
        epsilon_problem = replace(problem, epsilon=epsilon)
        best_bound = _find_short_bound(epsilon_problem)
        return best_bound, float(total.measure_errors(epsilon_problem, best_bound))

    return BoundComparison(
        f"Best bound ({unit.per_user_unit})",
        f"{capitalise(NAME_BY_MEASURE[parameters.objective])} ({unit.axis_unit})",
        solve_at,
        lambda epsilon, bounds: total.measure_errors(replace(problem, epsilon=epsilon), bounds),
        user_totals.amounts.values,
        user_totals.amounts.users,
        is_integer=problem.is_integer,
    )


def find_bound_limits(amounts: Amounts) -> Limits:
    """Return the limits of the bound's axis: from the smallest positive total to the largest."""
    smallest_total = float(amounts.values[np.searchsorted(amounts.values, 0.0, side="right")])
    axis_start = max(min(smallest_total, max(amounts.largest / 100.0, 1.0)), amounts.largest / MAX_AXIS_RATIO)
    return axis_start, max(amounts.largest, 2.0 * smallest_total)


def choose_plot_bounds(amounts: Amounts) -> FloatArray:
    """Return the bounds to plot, ascending: log-spaced up to twice the largest total, and distinct totals if few."""
    axis_start, axis_end = find_bound_limits(amounts)
    extra_bounds = [axis_end, *(amounts.values if amounts.values.size <= 60 else ())]
    return build_log_grid(axis_start, 2.0 * axis_end, NUM_CURVE_POINTS, extra_points=extra_bounds)
