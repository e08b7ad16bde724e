"""What a person chooses on the page of sums and counts, and what every user holds for it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from dpcore.common import noise_error, wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.contributions import MAX_SIZE, FloatArray
from dpcore.data.totals_per_user import SIGNED_REMEDY, Amounts, sums_per_user
from dpcore.dataset import Dataset
from dpcore.total import nonnegative, strategies
from dpcore.total.nonnegative import TotalProblem

HIGHEST_RANGE = (1e-6, 1e15)
"""Of a public maximum of a total, in the unit of its column."""
DELTA_RANGE = (1e-15, 0.5)
"""The exact Gaussian noise was checked over this range; with a delta near 1 hardly anything is promised."""

ASSUMPTIONS = (
    f"Neighbouring data sets differ thus: {nonnegative.NEIGHBOURS.value}. "
    "That user changes the bounded sum by at most the bound",
    "The budget is for this one number; every further release needs its own",
    "The errors are those on the very data given, averaged over the noise alone: nothing is assumed of how "
    "contributions are distributed",
    "The bound itself is taken as public. Read off private data it is not, and ε does not cover it",
)
"""What the answers of `dpcore.total` rest on; sentences without their full stop."""
ASSUMPTIONS_ON_RELEASE = (
    *ASSUMPTIONS[:2],
    "The errors are those on the users of the release, averaged over the noise of the sum alone",
    "The bound was chosen on a DP release, whose ε covers it; ε of the sum comes on top",
)
"""The same where the contributions are themselves a DP release."""

SIGNED_ASSUMPTIONS = (
    f"Neighbouring data sets differ thus: {nonnegative.NEIGHBOURS.value}. "
    "That user changes the clipped sum by at most max(|L|, |U|)",
    *ASSUMPTIONS[1:3],
    "L and U themselves are taken as public. Read off private data they are not, and ε does not cover it",
)
"""What the answers of `dpcore.total.signed` rest on."""


class Summed(enum.Enum):
    """What is added up over users."""

    ROWS = "rows"
    VALUES = "values"


@dataclass(frozen=True)
class TotalParameters:
    """Everything a person chooses on the page but the data.

    Attributes:
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        summed: Rows, or the values of a column.
        mechanism: Laplace or Gaussian.
        delta: In `DELTA_RANGE` with Gaussian noise; None with Laplace noise.
        measure: The error that the best bound minimises.
        own_bound: A bound T to compare with the best one, in the unit of what is summed; whole for rows.
        lower: L for totals of both signs; None (with ``upper``) for a proposal read off the data.
        upper: U >= L.
        own_share: A quantile of the users' totals, as a share in [0, 1], to compare as a bound.
        runs: Runs of each simulated point.
        seed: Seed of the simulation.
        highest_total: Public maximum of one user's total of a column, from what the quantity is, which a private draw
            of its bound needs; None for none. The answer does not depend on it.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    summed: Summed = Summed.ROWS
    mechanism: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    measure: Measure = Measure.ABSOLUTE
    own_bound: float | None = None
    lower: float | None = None
    upper: float | None = None
    own_share: float = 0.99
    runs: int = 1000
    seed: int = 0
    highest_total: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            if problems.between(*EPSILON_RANGE, epsilon=self.epsilon):
                noise_error.check_noise(problems, self.mechanism, self.epsilon, self.delta)
            if self.delta is not None:
                problems.between(*DELTA_RANGE, delta=self.delta)
            self._check_bounds(problems)
            problems.between(0.0, 1.0, **{"your own quantile": self.own_share})
            problems.whole(2, strategies.MAX_RUNS, **{"the number of runs": self.runs})
            problems.whole(0, 2**32 - 1, **{"the seed": self.seed})

    def _check_bounds(self, problems: Problems) -> None:
        if self.highest_total is not None:
            problems.between(*HIGHEST_RANGE, **{"the highest total": self.highest_total})
        if self.own_bound is not None:
            if self.summed is Summed.ROWS:
                problems.whole(0, MAX_SIZE, **{"your own bound": self.own_bound})
            else:
                problems.between(0.0, 1e15, **{"your own bound": self.own_bound})
        if (self.lower is None) != (self.upper is None):
            problems.add("L and U go together", remedy="Enter both, or leave both empty")
        elif self.lower is not None and self.upper is not None:
            ends = problems.between(-1e15, 1e15, lower=self.lower, upper=self.upper)
            if ends and self.lower > self.upper:
                low, high = wording.entered(self.lower), wording.entered(self.upper)
                problems.add(f"lower must not lie above upper; got {low} and {high}")

    def problem(self, amounts: Amounts) -> TotalProblem:
        """The question on given totals; a bound on rows is whole."""
        whole = self.summed is Summed.ROWS
        return TotalProblem(amounts, self.epsilon, self.mechanism, self.delta, self.measure, whole)


@dataclass(frozen=True, eq=False)
class UserTotals:
    """What every user adds to the sum.

    Attributes:
        amounts: Totals of at least 0, grouped; None where there are none.
        signed: One total per user, some negative, shape (num_users,); None where all are at least 0.
        column: The column that was added up; empty for rows.
        refusal: Why there are no ``amounts``, a sentence; empty where there are.
    """

    amounts: Amounts | None
    signed: FloatArray | None = None
    column: str = ""
    refusal: str = ""


def user_totals(dataset: Dataset, summed: Summed) -> UserTotals:
    """What every user holds of the data set.

    Negative values are fine as long as no user's total is negative: only totals are bounded.
    """
    if summed is Summed.ROWS:
        return UserTotals(Amounts.from_histogram(dataset.histogram))
    if dataset.totals is not None and dataset.totals.column:
        return UserTotals(Amounts.from_totals(dataset.totals), column=dataset.totals.column)
    if dataset.values is None:
        if dataset.release is not None:
            return UserTotals(
                None,
                refusal="A DP release holds only how many users have how many rows: there is no column of values "
                "that could be added up.",
            )
        return UserTotals(None, refusal="These data hold no column of values that could be added up.")
    column = dataset.values.column
    with np.errstate(over="ignore", invalid="ignore"):
        sums = sums_per_user(dataset.values)
        absolute_sum = float(np.abs(sums).sum())
    if not np.isfinite(absolute_sum):
        return UserTotals(None, column=column, refusal="The totals add up to more than a number can hold.")
    if sums.min() >= 0.0:
        return UserTotals(Amounts.from_totals(sums), column=column)
    negative = int(np.sum(sums < 0.0))
    return UserTotals(
        None,
        signed=sums,
        column=column,
        refusal=(
            f"{negative:,} of {wording.counted(sums.size, 'user')} "
            f"{wording.agreeing(negative, 'has', 'have')} a negative total; the smallest is {sums.min():,.4g}. "
            f"{SIGNED_REMEDY}."
        ),
    )
