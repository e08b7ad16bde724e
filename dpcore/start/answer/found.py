"""What is found for the first trade-off: what a bound throws away against the noise it needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import total
from dpcore.answer.against import Against
from dpcore.answer.axes import CURVE_POINTS
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.parameters import StartParameters
from dpcore.start.presets import Users

CELLS = 12
"""Counts in the table that is released, such as rows per month over a year. With a single count the best bound at
epsilon = 1 is the heaviest user's (rank 1 / epsilon), and there would be no trade-off to see."""
BEYOND = 5
"""How far beyond the heaviest user the bounds go, as a factor: there a bound cuts nobody, and noise alone grows."""


@dataclass(frozen=True)
class Tradeoff:
    """A table of `CELLS` counts released at once, at most T rows of each user counted over the whole table.

    One user changes the table by at most T in all, so each count gets Laplace noise of scale T / epsilon. Every count
    is taken to lose the same share of its rows: then `CELLS` times one count and its noise is the sum of all rows
    released at epsilon / `CELLS` (`dpcore.total`), and the relative error of the one is that of the other. Where
    counts lose different shares their mean error is larger, as it is convex in what is lost, and at most bias and
    mean noise together.

    Attributes:
        histogram: How many rows users have.
        problem: The question.
        errors: Over the bounds of the curves; ``errors.bias`` is what is thrown away, in rows of all counts together.
        best: The bound with the smallest expected error.
        within: Smallest and largest bound within 5 % of the best.
        alone: The best bound of one count of all rows with all of epsilon to itself, as on the page of sums and counts.
    """

    histogram: ContributionHistogram
    problem: total.TotalProblem
    errors: total.TotalErrors
    best: total.TotalChoice
    within: tuple[float, float]
    alone: float

    def at(self, bound: float) -> total.TotalErrors:
        """The errors at one bound."""
        return total.errors(self.problem, bound)

    def error_at(self, bound: float) -> float:
        """The expected error of a count at one bound, as a share of it."""
        return float(self.at(bound).absolute_error) / self.num_rows

    @property
    def num_rows(self) -> float:
        """All rows."""
        return float(self.histogram.num_rows)


def problem_of(histogram: ContributionHistogram, epsilon: float) -> total.TotalProblem:
    """The question at an epsilon: all cells of the table together are one sum at epsilon / `CELLS`."""
    return total.TotalProblem(
        Amounts.from_histogram(histogram), epsilon / CELLS, measure=Measure.ABSOLUTE, whole=True
    )


NOT_COMPARED = ("bound",)


def against_epsilon(data: Dataset, parameters: StartParameters) -> Against:
    """The sweet spot and its error at any epsilon, of the data in use or of the invented users that are shown."""
    in_use = parameters.users is Users.IN_USE
    histogram = presets.shown(data, parameters.users).histogram
    rows, problem = float(histogram.num_rows), problem_of(histogram, 1.0)

    def at(epsilon: float) -> total.TotalProblem:
        return replace(problem, epsilon=epsilon / CELLS)

    def error(epsilon: float, bounds: FloatArray) -> FloatArray:
        return np.asarray(total.measured(at(epsilon), bounds) / rows)

    def best(epsilon: float) -> tuple[float, float]:
        bound = total.optimal_bound(at(epsilon))
        return bound, float(error(epsilon, np.array(bound)))

    return Against(
        "Sweet spot (rows per user)",
        f"Error of each of {CELLS} private counts (share of it)",
        best,
        error,
        histogram.sizes,
        histogram.users,
        provenance=None if in_use else Disclosure.PUBLIC,
    )


def find(data: Dataset, parameters: StartParameters) -> Tradeoff:
    """Bias, noise and error over the bound, and the best bound, as of one sum (Amin et al. 2019, section 3)."""
    histogram = presets.shown(data, parameters.users).histogram
    problem = problem_of(histogram, parameters.epsilon)
    return Tradeoff(
        histogram=histogram,
        problem=problem,
        errors=total.errors(problem, log_spaced(*axis_limits(histogram), CURVE_POINTS)),
        best=total.best_bound(problem),
        within=total.bounds_within(problem),
        alone=total.optimal_bound(replace(problem, epsilon=parameters.epsilon)),
    )


def axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Where the axis of the bound starts and ends, whatever is chosen."""
    return 1.0, float(min(histogram.max_size * BEYOND, MAX_SIZE))
