"""What is found for the first trade-off: what a bound throws away against the noise it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore import total
from dpcore.answer.against import Against
from dpcore.answer.axes import CURVE_POINTS
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure
from dpcore.common.shared_bound import Sharer
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, IntArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.parameters import StartParameters
from dpcore.start.presets import Users

CELLS = 12
"""Counts in the table that is released, such as rows per month over a year. With a single count the best bound at
epsilon = 1 is the heaviest user's (rank 1 / epsilon), and there would be no trade-off to see."""


MOST_USERS, MOST_DOTS = 40, 30
"""Of the picture of rows: users side by side, and dots on top of each other for the heaviest of them."""


@dataclass(frozen=True)
class RowsOfUsers:
    """Some users, from the lightest to the heaviest, with their rows as dots.

    Attributes:
        num_users: All users, of which these are some at even distances of rank.
        sizes: Rows of each user shown, ascending, shape (users shown,).
        rows_per_dot: At most so many rows stand behind one dot.
        user: Which of them a dot belongs to, from 0, shape (dots,).
        height: Middle of the rows behind a dot, counted from the user's first row, shape (dots,).
    """

    num_users: float
    sizes: FloatArray
    rows_per_dot: int
    user: IntArray
    height: FloatArray

    def is_kept(self, bound: float) -> npt.NDArray[np.bool_]:
        """Whether at least half of a dot's rows are within the bound, shape (dots,)."""
        return self.height <= bound


def rows_of_users(histogram: ContributionHistogram) -> RowsOfUsers:
    """The users at even distances of rank, the lightest and the heaviest included, and dots for their rows."""
    num_users = float(histogram.num_users)
    ranks = np.unique(np.floor(np.linspace(0.0, num_users - 1.0, min(MOST_USERS, int(num_users)))))
    which = np.searchsorted(np.cumsum(histogram.users, dtype=np.float64), ranks, side="right")
    sizes: FloatArray = histogram.sizes[which].astype(np.float64)
    each = math.ceil(sizes[-1] / MOST_DOTS)
    dots = np.ceil(sizes / each).astype(int)
    user: IntArray = np.repeat(np.arange(sizes.size), dots)
    below = np.concatenate([np.arange(n) for n in dots]) * float(each)  # Rows of that user below the dot.
    height: FloatArray = (below + np.minimum(below + each, sizes[user])) / 2
    return RowsOfUsers(num_users, sizes, each, user, height)


@dataclass(frozen=True)
class Tradeoff:
    """A table of `CELLS` counts released at once, at most T rows of each user counted over the whole table.

    One user changes the table by at most T in all, so each count gets Laplace noise of scale T / epsilon: added
    up over the table, the noise is that of one sum at epsilon / `CELLS` (`dpcore.total`).

    Attributes:
        histogram: How many rows users have.
        problem: The question.
        errors: Over the bounds of the curves; ``errors.bias`` is what is thrown away, in rows.
        best: The bound with the smallest sum of both.
        within: Smallest and largest bound within 5 % of the best.
    """

    histogram: ContributionHistogram
    problem: total.TotalProblem
    errors: total.TotalErrors
    best: total.TotalChoice
    within: tuple[float, float]

    def at(self, bound: float) -> total.TotalErrors:
        """The errors at one bound."""
        return total.errors(self.problem, bound)

    @property
    def num_rows(self) -> float:
        """All rows."""
        return float(self.histogram.num_rows)

    @cached_property
    def rows(self) -> RowsOfUsers:
        """Some users with their rows as dots."""
        return rows_of_users(self.histogram)


def problem_of(histogram: ContributionHistogram, epsilon: float) -> total.TotalProblem:
    """The question at an epsilon: all cells of the table together are one sum at epsilon / `CELLS`."""
    return total.TotalProblem(
        Amounts.from_histogram(histogram), epsilon / CELLS, measure=Measure.BOUND, whole=True
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

    def sharer(epsilon: float) -> Sharer:
        choice = total.best_bound(at(epsilon))
        value, least = choice.certificate.value / rows, choice.certificate.lower_bound / rows
        return Sharer(lambda t: float(error(epsilon, np.array(t))), choice.max_total, value, least)

    return Against(
        "Sweet spot (rows per user)",
        f"Error of {CELLS} private counts (share of all rows)",
        best,
        error,
        histogram.sizes,
        histogram.users,
        sharer=sharer if in_use else None,  # Invented users stand beside no second data set.
        provenance=None if in_use else Disclosure.PUBLIC,
    )


def find(data: Dataset, parameters: StartParameters) -> Tradeoff:
    """Bias and noise over the bound, and the best bound (Amin et al. 2019, equation 5, summed over the table)."""
    histogram = presets.shown(data, parameters.users).histogram
    problem = problem_of(histogram, parameters.epsilon)
    return Tradeoff(
        histogram=histogram,
        problem=problem,
        errors=total.errors(problem, log_spaced(*axis_limits(histogram), CURVE_POINTS)),
        best=total.best_bound(problem),
        within=total.bounds_within(problem),
    )


def axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Where the axis of the bound starts and ends before anything is chosen.

    Where all users have equally many rows it ends at five times that, so that a bound above them all can be tried.
    """
    beyond = 5 if histogram.sizes.size == 1 else 1
    return 1.0, float(min(max(histogram.max_size * beyond, 2), MAX_SIZE))
