"""What a person chooses for a mean, as one validated object: everything but the data. And what is assumed for it."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpcore.common import wording
from dpcore.common.alike import ASSUMED_SHARE
from dpcore.common.checks import EPSILON_RANGE, VALUE_BOUND_RANGE, Problems
from dpcore.common.privacy import Disclosure
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.mean import private_counts, public_counts
from dpcore.mean.models import Target
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.public_counts import MeanProblem
from dpcore.mean.read_values import ReadValues


class VarianceSource(enum.Enum):
    """Where sigma^2, the variance of one row's value, is taken from."""

    WORST_CASE = "worst"
    FROM_VALUES = "values"
    ENTERED = "entered"


class Likeness(enum.Enum):
    """How alike rows of one user are taken to be: where rho, the share of sigma^2 between users, is taken from."""

    INDEPENDENT = "none"
    ENTERED = "entered"
    FROM_VALUES = "values"


class Counts(enum.Enum):
    """Whether the number of rows of each user is public."""

    PUBLIC = "public"
    PRIVATE = "private"


def choose_defaults(data: Dataset) -> Mapping[str, Any]:
    """What holds of these data where nobody says otherwise, by setting of `MeanParameters`.

    The release is to come close to the mean of this very table. Public values are read. Data that are not public get
    the private side: how many rows each user has is protected too, sigma^2 is the worst case, and rho is assumed.
    Public counts, or what is read off private values, put into the bound what no epsilon covers. A DP release is made
    of data whose users are to be protected, and has no values.
    """
    public = data.disclosure is Disclosure.PUBLIC
    read = public and data.values is not None
    return {
        "counts": Counts.PUBLIC if public else Counts.PRIVATE,
        "variance_source": VarianceSource.FROM_VALUES if read else VarianceSource.WORST_CASE,
        "target": Target.TABLE,
        "likeness": Likeness.FROM_VALUES if read else Likeness.ENTERED,
    }


@dataclass(frozen=True)
class MeanParameters:
    """What a person chooses on the Mean page: everything but the data.

    What is left out means what it did before users could differ: the mean of a population whose rows are independent,
    as in Epasto et al. 2020. What page and call take is `usual`.

    Attributes:
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        lower: L, values below are raised to it, in the values' unit.
        upper: U > L, values above are lowered to it. B = U - L.
        variance_source: Where sigma^2 comes from. Where it is the values, and the target is the mean of this very
            table, the values are read themselves: nothing is assumed of users then.
        value_variance: sigma^2 where it is entered, at most B^2 / 4, in the values' unit squared.
        own_cap: A bound to compare with the best one, in rows per user.
        counts: Whether contribution counts are public, or private too.
        target: Whether the mean of this very table is asked for, or that of the population it comes from.
        likeness: How alike rows of one user are taken to be.
        user_share: rho in [0, 1] where it is entered: the share of sigma^2 that lies between users.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    lower: float = 0.0
    upper: float = 1.0
    variance_source: VarianceSource = VarianceSource.WORST_CASE
    value_variance: float | None = None
    own_cap: int | None = None
    counts: Counts = Counts.PUBLIC
    target: Target = Target.POPULATION
    likeness: Likeness = Likeness.INDEPENDENT
    user_share: float = ASSUMED_SHARE

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if problems.ascending(**{"the lower value bound": self.lower, "the upper one": self.upper}):
                problems.between(*VALUE_BOUND_RANGE, **{"upper − lower": self.value_bound})
                self._check_variance(problems)
            if self.own_cap is not None:
                problems.whole(1, MAX_SIZE, **{"your own bound": self.own_cap})
            problems.of_kind(Counts, counts=self.counts)
            problems.of_kind(Target, target=self.target)
            problems.of_kind(Likeness, likeness=self.likeness)
            problems.between(0.0, 1.0, **{"the share between users": self.user_share})

    def _check_variance(self, problems: Problems) -> None:
        if self.variance_source is not VarianceSource.ENTERED:
            if self.value_variance is not None:
                problems.add('a variance is given, but its source is not "entered"')
            return
        if self.value_variance is None:
            problems.add("enter the variance of one row's value")
        elif problems.non_negative(value_variance=self.value_variance):
            most = self.largest_variance
            if self.value_variance > most * (1.0 + 1e-12):
                low, high = wording.entered(self.lower), wording.entered(self.upper)
                problems.add(
                    f"values between {low} and {high} cannot vary by more than "
                    f"(upper − lower)²/4 = {wording.entered(most)}; got {wording.entered(self.value_variance)}"
                )

    @cached_property
    def value_bound(self) -> float:
        """B = U - L, in the values' unit."""
        return self.upper - self.lower

    @cached_property
    def largest_variance(self) -> float:
        """B^2 / 4, which no values in [L, U] can exceed (Popoviciu's inequality)."""
        return self.value_bound * self.value_bound / 4.0  # 1e300**2 raises, 1e300 * 1e300 is infinite

    def problem(
        self,
        histogram: ContributionHistogram,
        values_variance: float | None = None,
        values_mean: float | None = None,
        read: ReadValues | None = None,
    ) -> MeanProblem:
        """The question on given data.

        Args:
            histogram: Rows per user.
            values_variance: Variance of the clamped values, for `VarianceSource.FROM_VALUES`; where it is
                missing the worst case stands in.
            values_mean: Mean of the clamped values, for the same; it matters only where counts are private.
            read: All that is read off the values, in the place of these two.

        Returns:
            A `dpcore.mean.private_counts.PrivateCountsProblem` where counts are private.
        """
        if read is not None:
            values_variance, values_mean = read.clamped.variance, read.clamped.mean
        variance = self.largest_variance
        if self.variance_source is VarianceSource.ENTERED and self.value_variance is not None:
            variance = self.value_variance
        elif self.variance_source is VarianceSource.FROM_VALUES and values_variance is not None:
            variance = min(values_variance, variance)
        if self.counts is Counts.PUBLIC:
            return MeanProblem(histogram, self.epsilon, self.value_bound, variance, **self._users(read))

        expected = None
        if self.variance_source is VarianceSource.FROM_VALUES and values_mean is not None:
            expected = min(max(values_mean - self.lower, 0.0), self.value_bound)
        about = self._users(read)
        return PrivateCountsProblem(histogram, self.epsilon, self.value_bound, variance, expected, **about)

    def reads_table(self, read: ReadValues | None) -> bool:
        """Whether the error is that on the values themselves, so that nothing is assumed of users."""
        wanted = self.target is Target.TABLE and self.variance_source is VarianceSource.FROM_VALUES
        return wanted and read is not None and read.tells_table

    def share(self, read: ReadValues | None) -> float:
        """rho in use; where values are to tell it that there are not, or that do not tell it, the one entered."""
        if self.likeness is Likeness.INDEPENDENT:
            return 0.0
        told = (
            self.likeness is Likeness.FROM_VALUES and read is not None and not math.isnan(read.share.estimate)
        )
        return read.share.used if told and read is not None else self.user_share

    def _users(self, read: ReadValues | None) -> dict[str, Any]:
        """What a problem says of target and users."""
        if self.reads_table(read) and read is not None:
            return {"target": self.target, "table": read.table}
        return {"target": self.target, "user_share": self.share(read)}


# --- What the answer assumes then; sentences without their full stop --------------------------------------------------

INDEPENDENT = "Rows are independent draws with one variance, also those of one user"
"""What the settings assume of users where nothing else is said; the third of their sentences."""
TABLE_READ = (
    "The error is that on the rows in this table, about their mean before clamping; nothing is assumed of users",
    "The rows that a bound keeps are drawn at random. Where a library keeps the first rows, the error is another one",
)
EXCHANGEABLE = (
    "The error is that about the mean of the rows in this table",
    "Who has many rows says nothing about the values, and rows that a bound keeps are drawn at random",
)
POPULATION = (
    "The error is that about the mean of the population that users come from, whatever their number of rows"
)


def assumptions(problem: MeanProblem) -> tuple[str, ...]:
    """The sentences of the setting, with what is assumed of users in the place of independent rows."""
    private = isinstance(problem, PrivateCountsProblem)
    setting = private_counts.ASSUMPTIONS if private else public_counts.ASSUMPTIONS
    at = setting.index(INDEPENDENT)
    return (*setting[:at], *assumed_of_users(problem), *setting[at + 1 :])


def assumed_of_users(problem: MeanProblem) -> tuple[str, ...]:
    """What the error assumes of users and their rows, and which mean it is about."""
    if problem.table is not None:
        return TABLE_READ
    share = wording.number(problem.user_share, 2)
    alike = (
        f"A share of {share} of a row's variance lies between users; the rest are differences within a user"
    )
    alike = INDEPENDENT if problem.user_share == 0.0 else alike
    if problem.target is Target.TABLE:
        return (*EXCHANGEABLE, alike)
    return (alike, POPULATION) if problem.user_share else (alike,)
