"""The answer of Sum and count, computed once for a question and a data set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import total
from dpcore.answer.against import Against
from dpcore.common import noise_error, wording
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.shared_bound import Sharer
from dpcore.contributions import FloatArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.total import TotalChoice, TotalErrors, TotalProblem
from dpcore.total.parameters import TotalParameters, UserTotals, user_totals

Limits = tuple[tuple[float, float], tuple[float, float]]
"""(from, to) of the bound's axis and of the error's."""
CURVE_POINTS = 240
WIDEST = 1e6
"""The bound's axis starts at most this factor below the largest total."""


@dataclass(frozen=True)
class Unit:
    """How amounts are written.

    Attributes:
        column: The column that was added up; empty for rows.
    """

    column: str

    @property
    def axis(self) -> str:
        """The unit, as the title of an axis names it."""
        return "unit of the column" if self.column else "rows"

    @property
    def bound_axis(self) -> str:
        """The title of the axis of T."""
        return "Bound T (unit of the column, per user)" if self.column else "Bound T (rows per user)"

    @property
    def result(self) -> str:
        """What is released."""
        return "sum" if self.column else "count"

    def amount(self, value: float, digits: int = 3) -> str:
        """``12 rows``; a bare number for totals of a column."""
        number = wording.number(value, digits)
        return number if self.column else f"{number} {'row' if value == 1 else 'rows'}"


@dataclass(frozen=True)
class TotalView:
    """Everything the page shows of a sum whose totals are at least 0.

    Attributes:
        problem: The question on these data.
        unit: How amounts are written.
        choice: The best bound.
        bound: The best bound, in few digits where totals of a column are bounded: what the card says and code applies.
        at_bound: Errors at ``bound``.
        within: Smallest and largest bound within 5 % of the best error.
        others: The best bound by each measure, in few digits as ``bound`` is.
        bounds: T of the curves, ascending, shape (points,).
        errors: Over ``bounds``.
        limits: (from, to) of the bound's axis and of the error's axis; they depend on the data alone.
    """

    problem: TotalProblem
    unit: Unit
    choice: TotalChoice
    bound: float
    at_bound: TotalErrors
    within: tuple[float, float]
    others: dict[Measure, float]
    bounds: FloatArray
    errors: TotalErrors
    limits: Limits

    @property
    def rounded(self) -> bool:
        """Whether ``bound`` is not the very best bound, which the certificate is about."""
        return self.bound != self.choice.max_total

    def error(self, bound: float) -> float:
        """Error at a bound, by the problem's measure."""
        return float(total.measured(self.problem, bound))


def compute(held: UserTotals, parameters: TotalParameters, limits: Limits | None = None) -> TotalView:
    """Solve and evaluate; ``held`` must have amounts, whose ``limits`` are `axis_limits`."""
    assert held.amounts is not None
    problem = parameters.problem(held.amounts)
    choice = total.best_bound(problem)
    bound = total.short_bound(problem, choice.max_total)
    bounds = np.unique(
        np.concatenate((curve_bounds(held.amounts), [choice.max_total] if choice.max_total else []))
    )
    return TotalView(
        problem=problem,
        unit=Unit(held.column),
        choice=choice,
        bound=bound,
        at_bound=total.errors(problem, bound),
        within=total.bounds_within(problem),
        others={m: _short(replace(problem, measure=m)) for m in Measure},
        bounds=bounds,
        errors=total.errors(problem, bounds),
        limits=limits or axis_limits(held.amounts),
    )


def _short(problem: TotalProblem) -> float:
    return total.short_bound(problem, total.optimal_bound(problem))


NOT_COMPARED = ("own_bound",)


def against_epsilon(data: Dataset, parameters: TotalParameters) -> Against | str:
    """The best bound and its error at any epsilon."""
    held = user_totals(data, parameters.summed)
    if held.amounts is None:
        return "Over ε only sums of one non-negative total per user are compared. These data have none."
    if held.amounts.total == 0.0:
        return "All totals are 0, so that no bound costs anything at any ε."
    problem, unit = parameters.problem(held.amounts), Unit(held.column)

    def best(epsilon: float) -> tuple[float, float]:
        at = replace(problem, epsilon=epsilon)
        bound = total.short_bound(at, total.optimal_bound(at))
        return bound, float(total.measured(at, bound))

    def sharer(epsilon: float) -> Sharer:
        at = replace(problem, epsilon=epsilon)
        found = total.best_bound(at)
        proof = found.certificate
        return Sharer(lambda t: float(total.measured(at, t)), found.max_total, proof.value, proof.lower_bound)

    return Against(
        f"Best {unit.bound_axis[0].lower()}{unit.bound_axis[1:]}",
        f"{_MEASURED[parameters.measure]} ({unit.axis})",
        best,
        lambda epsilon, bounds: total.measured(replace(problem, epsilon=epsilon), bounds),
        held.amounts.values,
        held.amounts.users,
        cut="Left out of the sum" if held.column else "Rows left out",
        whole=problem.whole,
        sharer=sharer,
    )


_MEASURED = {
    Measure.ABSOLUTE: "Expected error",
    Measure.RMSE: "Root mean squared error",
    Measure.BOUND: "Bias plus noise",
}


def axis_limits(amounts: Amounts) -> Limits:
    """(from, to) of the bound's axis and of the error's axis; they depend on the data alone."""
    return bound_limits(amounts), error_limits(amounts)


def bound_limits(amounts: Amounts) -> tuple[float, float]:
    """(from, to) of the bound's axis: from the smallest positive total to the largest."""
    high = amounts.largest
    low = max(float(amounts.values[amounts.values > 0.0][0]), high / WIDEST)
    return low, max(high, 2.0 * low)


def curve_bounds(amounts: Amounts) -> FloatArray:
    """Bounds to draw: log-spaced to twice the largest total, and every distinct total where they are few."""
    low, high = bound_limits(amounts)
    extra = [high, *(amounts.values if amounts.values.size <= 60 else ())]
    return log_spaced(low, 2.0 * high, CURVE_POINTS, extra=extra)


def error_limits(amounts: Amounts) -> tuple[float, float]:
    """(from, to) of the error's axis; they depend on the data alone.

    From below what the best bound costs at epsilon = 10 to above what publishing 0 costs.
    """
    cheapest = total.best_bound(TotalProblem(amounts, 10.0)).absolute_error
    return cheapest / 3.0, max(amounts.total, 10.0 * cheapest) * 1.5


def largest_ratio(noise: NoiseKind) -> float:
    """The largest (a + E|noise|) / E|a + noise| over all a >= 0; it depends on a / scale alone."""
    from scipy.optimize import minimize_scalar

    def negative(r: float) -> float:
        return -(r + noise.mean_magnitude) / float(noise_error.expected_absolute(noise, r, 1.0))

    return -float(minimize_scalar(negative, bounds=(0.0, 10.0), method="bounded").fun)
