"""The parameters of the page of sums and counts, and the amount of every user for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.parameters import (
    CARD,
    LINE,
    TAB,
    Option,
    Parameters,
    gaussian_delta,
    noise_kind,
    of_data,
    of_values,
    own_bound,
    program_choice,
    public,
)
from dpcore.common.programs import Program
from dpcore.common.wording import choose_word, format_count, format_entered
from dpcore.contributions import MAX_SIZE, FloatArray
from dpcore.data.totals_per_user import SIGNED_REMEDY, Amounts
from dpcore.dataset import Dataset
from dpcore.total import nonnegative, strategies
from dpcore.total.nonnegative import TotalProblem

HIGHEST_TOTAL_RANGE = (1e-6, 1e15)
"""Range of a public maximum of a total."""
DELTA_RANGE = (1e-15, 0.5)
"""The exact Gaussian noise was checked over this range."""

ASSUMPTIONS = (
    f"Neighbouring data sets: {nonnegative.NEIGHBOURS.value}. This user changes the bounded sum by at most the bound",
    "Every further release needs its own budget",
    "The errors are averages over the noise alone; the distribution of contributions is arbitrary",
    "The bound is public. If it was computed from private data, ε does not cover that",
)
"""Sentences without their full stop."""
ASSUMPTIONS_ON_RELEASE = (
    *ASSUMPTIONS[:2],
    "The errors are those on the release, averaged over the noise of the sum",
    "The DP release's own ε covers the bound; ε of the sum comes on top",
)
"""The assumptions on a DP release."""

SIGNED_ASSUMPTIONS = (
    f"Neighbouring data sets: {nonnegative.NEIGHBOURS.value}. This user changes the sum by at most max(|L|, |U|)",
    *ASSUMPTIONS[1:3],
    "L and U are public. If they were computed from private data, ε does not cover that",
)
"""The assumptions on signed totals."""


class Summed(Option):
    """The amount that is added up over users."""

    ROWS = "rows", "Rows"
    VALUES = "values", "Values"


LABEL_BY_MEASURE = {Measure.ABSOLUTE: "Expected", Measure.RMSE: "RMSE", Measure.BOUND: "Bound"}


def _declare_range_end(end_label: str) -> Any:
    """Declare the field of one end of the range of totals."""
    end_name = end_label[:1].lower() + end_label[1:]
    return of_values.number(None, end_label, name=end_name, placeholder="proposed", width=150, place=LINE)


@dataclass(frozen=True)
class TotalParameters(Parameters):
    """The parameters of the page *Sum and count*: everything but the data."""

    # Which of two quantities is released; every release says it.
    summed: Summed = public.choice(Summed.ROWS, "What is summed", place=LINE)
    """Rows, or the value column."""
    mechanism: NoiseKind = noise_kind("Mechanism")
    """Laplace for ε-DP, Gaussian for (ε, δ)-DP."""
    delta: float | None = gaussian_delta(DELTA_RANGE, "mechanism", place=LINE)
    """Probability that ε does not hold. Choose it well below 1 / (number of users)."""
    objective: Measure = public.choice(
        Measure.ABSOLUTE, "Error to minimise", LABEL_BY_MEASURE, former_name="measure"
    )
    """Expected: mean of |release − truth|. RMSE: root mean squared error. Bound: the paper's bias plus mean noise."""
    program: Program = program_choice(width=200, place=LINE)
    """The errors are those of its noise, and *Get code* opens with it."""
    # In the unit of a column that other data may not have.
    own_bound: float | None = own_bound(placeholder="optional", width=180)
    """A bound you use today, per user."""
    # It bounds totals of a column, so it can have been read off only where there were values.
    lower: float | None = _declare_range_end("Lowest total L")
    """If some totals are negative, smaller ones count as this; empty for a proposal."""
    upper: float | None = _declare_range_end("Highest total U")
    """If some totals are negative, larger ones count as this; empty for a proposal."""
    # Whoever moves it until its curve touches the best one has read it off the data.
    own_share: float = of_data.number(
        0.99, "Your own quantile", (0.0, 1.0), name="your own quantile", place=TAB
    )
    """The bound is this quantile of the users' totals."""
    runs: int = public.number(
        1000, "Runs of each point", (2, strategies.MAX_RUNS), name="the number of runs", place=TAB
    )
    seed: int = public.number(0, "Seed", (0, 2**32 - 1), place=TAB)
    highest_total: float | None = public.number(
        None,
        "Highest total of one user",
        HIGHEST_TOTAL_RANGE,
        name="the highest total",
        is_renewed=True,
        width=230,
        place=CARD,
    )
    """A public limit for choosing the bound with DP."""

    def _check_together(self, problems: Problems) -> None:
        """Add a problem if the own bound is out of range, or if L and U are not both given and in order."""
        if self.own_bound is not None:
            bound_by_name = {"your own bound": self.own_bound}
            if self.summed is Summed.ROWS:
                problems.whole(0, MAX_SIZE, **bound_by_name)
            else:
                problems.between(0.0, 1e15, **bound_by_name)
        if (self.lower is None) != (self.upper is None):
            problems.add("L and U go together", remedy="Enter both, or leave both empty")
        elif self.lower is not None and self.upper is not None:
            have_valid_ends = problems.between(-1e15, 1e15, lower=self.lower, upper=self.upper)
            if have_valid_ends and self.lower > self.upper:
                lower_text, upper_text = format_entered(self.lower), format_entered(self.upper)
                problems.add(f"lower must not lie above upper; got {lower_text} and {upper_text}")

    def build_problem(self, amounts: Amounts) -> TotalProblem:
        """Build the problem on given totals; if rows are counted, only whole bounds are allowed."""
        noise_arguments = self.epsilon, self.mechanism, self.delta
        is_integer = self.summed is Summed.ROWS
        return TotalProblem(amounts, *noise_arguments, self.objective, is_integer, self.program)


@dataclass(frozen=True, eq=False)
class UserTotals:
    """The amount that every user adds to the sum.

    Attributes:
        amounts: Totals of at least 0, grouped; None where there are none.
        signed_totals: One total per user, some negative, shape (num_users,); None where all are at least 0.
        column_name: The column that was added up; empty for rows.
        refusal_sentence: Why there are no ``amounts``, a sentence; empty where there are.
    """

    amounts: Amounts | None
    signed_totals: FloatArray | None = None
    column_name: str = ""
    refusal_sentence: str = ""


def compute_user_totals(dataset: Dataset, summed: Summed) -> UserTotals:
    """Compute the total of every user: their number of rows, or the sum of their values.

    If they cannot be added up, the result says why. Negative values are allowed: only totals are bounded.
    """
    if summed is Summed.ROWS:
        return UserTotals(Amounts.from_histogram(dataset.histogram))
    if dataset.totals is not None and dataset.totals.column:
        return UserTotals(Amounts.from_totals(dataset.totals), column_name=dataset.totals.column)
    if dataset.values is None:
        refusal_sentence = "These data have no column of values to add up."
        if dataset.release is not None:
            refusal_sentence = "A DP release holds only how many users have how many rows, and no values."
        return UserTotals(None, refusal_sentence=refusal_sentence)
    column_name = dataset.values.column
    with np.errstate(over="ignore", invalid="ignore"):
        sums = dataset.values.sum_per_user(dataset.values.values)
    if not np.isfinite(float(np.abs(sums).sum())):
        refusal_sentence = "The totals are too large to add up."
        return UserTotals(None, None, column_name, refusal_sentence)
    if sums.min() >= 0.0:
        return UserTotals(Amounts.from_totals(sums), column_name=column_name)
    num_negative = int(np.sum(sums < 0.0))
    refusal_sentence = (
        f"{num_negative:,} of {format_count(sums.size, 'user')} {choose_word(num_negative, 'has', 'have')} a "
        f"negative total; the smallest is {sums.min():,.4g}. {SIGNED_REMEDY}."
    )
    return UserTotals(None, sums, column_name, refusal_sentence)
