"""What the Start page shows: what a bound throws away against the noise it needs. Computed once; pure."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore import total
from dpcore.common.noise_error import Measure
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from pages.shared.axes import curve_bounds

CELLS = 12
"""Counts in the table that is released, such as rows per month over a year. With a single count the best bound at
epsilon = 1 is the heaviest user's (rank 1 / epsilon), and there would be no trade-off to see."""


@dataclass(frozen=True)
class Tradeoff:
    """A table of `CELLS` counts released at once, at most T rows of each user counted over the whole table.

    One user changes the table by at most T in all, so each count gets Laplace noise of scale T / epsilon: added
    up over the table, the noise is that of one sum at epsilon / `CELLS` (`dpcore.total`).

    Attributes:
        num_rows: All rows.
        problem: The question.
        errors: Over the bounds of the curves; ``errors.bias`` is what is thrown away, in rows.
        best: The bound with the smallest sum of both.
        within: Smallest and largest bound within 5 % of the best.
    """

    num_rows: float
    problem: total.TotalProblem
    errors: total.TotalErrors
    best: total.TotalChoice
    within: tuple[float, float]

    def at(self, bound: float) -> total.TotalErrors:
        """The errors at one bound."""
        return total.errors(self.problem, bound)


def tradeoff(histogram: ContributionHistogram, epsilon: float) -> Tradeoff:
    """Bias and noise over the bound, and the best bound (Amin et al. 2019, equation 5, summed over the table)."""
    problem = total.TotalProblem(
        Amounts.from_histogram(histogram), epsilon / CELLS, measure=Measure.BOUND, whole=True
    )
    return Tradeoff(
        num_rows=float(histogram.num_rows),
        problem=problem,
        errors=total.errors(problem, curve_bounds(histogram)),
        best=total.best_bound(problem),
        within=total.bounds_within(problem),
    )


def axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Where the axis of the bound starts and ends before anything is chosen."""
    low, high = float(histogram.min_size), float(histogram.max_size)
    return low, max(high, 2.0 * low)
