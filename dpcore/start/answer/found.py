"""The solution of the first trade-off: the bias of a bound against its noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import total
from dpcore.answer.against import BoundComparison
from dpcore.answer.axes import CURVE_POINTS
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.parameters import StartParameters
from dpcore.start.presets import UserPreset

CELLS = 12
"""Counts in the table that is released, such as rows per month over a year. With a single count the best bound at
epsilon = 1 is the heaviest user's (rank 1 / epsilon), and there would be no trade-off to see."""
AXIS_FACTOR = 5
"""How far beyond the heaviest user the bounds go, as a factor: there a bound cuts nobody, and noise alone grows."""


@dataclass(frozen=True)
class Tradeoff:
    """A table of `CELLS` counts released at once, with at most T rows of each user counted over the whole table.

    One user changes the table by at most T in all, so each count gets Laplace noise of scale T / epsilon. Every
    count is assumed to lose the same share of its rows. Then `CELLS` times one count and its noise is the sum
    of all rows released at epsilon / `CELLS` (`dpcore.total`), and both have the same relative error. If counts
    lose different shares, their mean error is larger, since it is convex in the loss, and at most bias and mean
    noise together.

    Attributes:
        histogram: How many rows users have.
        problem: The question.
        errors: Over the bounds of the curves; ``errors.bias`` is what is thrown away, in rows of all counts together.
        best: The bound with the smallest expected error.
        near_optimal: Smallest and largest bound within 5 % of the best.
        single_count_bound: The best bound of one count of all rows with all of epsilon to itself, as on the page of
            sums and counts.
    """

    histogram: ContributionHistogram
    problem: total.TotalProblem
    errors: total.TotalErrors
    best: total.TotalChoice
    near_optimal: tuple[float, float]
    single_count_bound: float

    def evaluate(self, bound: float) -> total.TotalErrors:
        """Evaluate the errors at one bound."""
        return total.errors(self.problem, bound)

    def evaluate_error(self, bound: float) -> float:
        """Evaluate the expected error of a count at one bound, as a share of it."""
        return float(self.evaluate(bound).absolute_error) / self.num_rows

    @property
    def num_rows(self) -> float:
        """Return the number of all rows."""
        return float(self.histogram.num_rows)


def build_problem(histogram: ContributionHistogram, epsilon: float) -> total.TotalProblem:
    """Build the problem at an epsilon: all cells of the table together are one sum at epsilon / `CELLS`."""
    return total.TotalProblem(
        Amounts.from_histogram(histogram), epsilon / CELLS, measure=Measure.ABSOLUTE, is_integer=True
    )


NOT_COMPARED = ("bound",)


def against_epsilon(dataset: Dataset, parameters: StartParameters) -> BoundComparison:
    """Return the sweet spot and its error at any epsilon, of the data in use or of the simulated users."""
    in_use = parameters.users is UserPreset.IN_USE
    histogram = presets.choose_dataset(dataset, parameters.users).histogram
    rows, problem = float(histogram.num_rows), build_problem(histogram, 1.0)

    def problem_at(epsilon: float) -> total.TotalProblem:
        return replace(problem, epsilon=epsilon / CELLS)

    def error(epsilon: float, bounds: FloatArray) -> FloatArray:
        return np.asarray(total.measured(problem_at(epsilon), bounds) / rows)

    def best(epsilon: float) -> tuple[float, float]:
        bound = total.optimal_bound(problem_at(epsilon))
        return bound, float(error(epsilon, np.array(bound)))

    return BoundComparison(
        "Sweet spot (rows per user)",
        f"Error of each of {CELLS} private counts (share of it)",
        best,
        error,
        histogram.sizes,
        histogram.users,
        provenance=None if in_use else Disclosure.PUBLIC,
    )


def solve(dataset: Dataset, parameters: StartParameters) -> Tradeoff:
    """Compute bias, noise and error over the bound, and the best bound, as of one sum (Amin et al. 2019, section 3)."""
    histogram = presets.choose_dataset(dataset, parameters.users).histogram
    problem = build_problem(histogram, parameters.epsilon)
    return Tradeoff(
        histogram=histogram,
        problem=problem,
        errors=total.errors(problem, log_spaced(*choose_axis_limits(histogram), CURVE_POINTS)),
        best=total.best_bound(problem),
        near_optimal=total.bounds_within(problem),
        single_count_bound=total.optimal_bound(replace(problem, epsilon=parameters.epsilon)),
    )


def choose_axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Choose the ends of the bound's axis, which no setting moves."""
    return 1.0, float(min(histogram.max_size * AXIS_FACTOR, MAX_SIZE))
