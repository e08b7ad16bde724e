"""What is asked for a release per group: the statistic, the noise, the neighbours, and what counts as its error."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import noise_error, wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.contributions import MAX_SIZE, FloatArray
from dpcore.per_group.pairs import MAX_GROUPS, UserGroupPairs
from dpcore.per_group.selection_rules import SelectionRule

DEFAULT_SELECTION_SHARE = 0.5
"""Share of epsilon for selecting groups: libraries split evenly between the selection and one statistic."""


class Statistic(enum.Enum):
    """What is released for every group."""

    ROWS = "rows"
    USERS = "distinct users"
    SUM = "sum of a column"
    SIGNED_SUM = "sum of a column of any sign"
    MEAN = "mean of a column"

    @property
    def non_negative(self) -> bool:
        """Whether amounts of at least 0 are added up, so that for every pair a cap errs no more in any group."""
        return self in (Statistic.ROWS, Statistic.USERS, Statistic.SUM)

    @property
    def whole(self) -> bool:
        """Whether L-infinity is a whole number: that of a count is."""
        return self not in (Statistic.SUM, Statistic.SIGNED_SUM)


class Objective(enum.Enum):
    """The error of all groups together; t is a group's true value, RMSE its root mean squared error."""

    ROOT_MEAN_SQUARE = "root mean squared error over the groups"
    MEAN_RMSE = "mean of the groups' root mean squared errors"
    RELATIVE_ROOT_MEAN_SQUARE = "root mean square of RMSE / max(t, floor)"
    MEAN_RELATIVE = "mean of RMSE / max(t, floor)"
    LARGE_GROUPS = "root mean squared error over the groups with t of at least the floor"

    @property
    def floored(self) -> bool:
        """Whether it needs a floor."""
        return self.relative or self is Objective.LARGE_GROUPS

    @property
    def relative(self) -> bool:
        """Whether a group's error is divided by its size."""
        return self in (Objective.RELATIVE_ROOT_MEAN_SQUARE, Objective.MEAN_RELATIVE)

    @property
    def rooted(self) -> bool:
        """Whether the root is taken group by group, before the mean."""
        return self in (Objective.MEAN_RMSE, Objective.MEAN_RELATIVE)


@dataclass(frozen=True)
class PerGroupParameters:
    """What a person chooses for a release per group: everything but the data.

    Attributes:
        epsilon: Privacy budget for all groups together, in `dpcore.common.checks.EPSILON_RANGE`.
        statistic: What is released.
        noise: Laplace (by L1 sensitivity) or Gaussian (by L2 sensitivity, exact calibration).
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        neighbours: Add or remove one user, or replace one user by another.
        objective: The error of all groups together.
        floor: Least size that a relative error divides by, or least size of a large group; public, in the statistic's
            unit, of a mean in rows. None for other errors.
        lower: Least value of a row, public; only for a mean.
        upper: Its greatest value.
        num_groups: Groups of the public list; None for those that the data hold.
        own_groups: L0 of a pair to compare with the best one; it goes with ``own_amount``.
        own_amount: L-infinity of that pair, in the statistic's unit, of a mean in rows.
        selection: By a public list, or how groups are selected privately.
        selection_share: Share of ``epsilon`` that the selection spends; the rest is for the noise. Only with
            private ``selection``, and None without.
        selection_delta: What the selection spends of delta, strictly between 0 and 1; likewise. ``delta`` remains that
            of Gaussian noise alone, so that both together are (epsilon, delta + selection_delta)-DP.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    statistic: Statistic = Statistic.ROWS
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    objective: Objective = Objective.ROOT_MEAN_SQUARE
    floor: float | None = None
    lower: float | None = None
    upper: float | None = None
    num_groups: int | None = None
    own_groups: int | None = None
    own_amount: float | None = None
    selection: SelectionRule = SelectionRule.PUBLIC_LIST
    selection_share: float | None = None
    selection_delta: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            if problems.between(*EPSILON_RANGE, epsilon=self.epsilon):
                noise_error.check_noise(problems, self.noise, self.epsilon, self.delta)
            problems.of_kind(Statistic, statistic=self.statistic)
            if self.neighbours not in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER):
                problems.add(
                    "neighbours must be to add or remove one user, or to replace one user",
                    remedy="A user's groups are private here, so that replacing values alone protects too little",
                )
            if problems.of_kind(Objective, objective=self.objective):
                if self.objective.floored:
                    problems.between(1e-9, 1e15, floor=self.floor)
                elif self.floor is not None:
                    problems.add("floor goes only with a relative error, or with the error of large groups")
            self._check_mean(problems)
            self._check_own(problems)
            self._check_selection(problems)

    def _check_selection(self, problems: Problems) -> None:
        if not problems.of_kind(SelectionRule, selection=self.selection):
            return
        if not self.selection.private:
            if self.selection_share is not None or self.selection_delta is not None:
                problems.add("shares of a selection go only with groups that are selected privately")
            return
        problems.between(0.01, 0.99, **{"the selection's share of epsilon": self.selection_share})
        problems.inside(0.0, 1.0, **{"the selection's delta": self.selection_delta})
        if isinstance(self.statistic, Statistic) and not self.statistic.non_negative:
            problems.add(
                "private groups go with rows, distinct users, and sums of amounts of at least 0",
                remedy="Choose one of these, or a public list",
            )
        if self.neighbours is Neighbours.REPLACE_USER:
            problems.add(
                "the rules that select groups are for adding or removing one user",
                remedy="Choose that, or a public list",
            )
        if self.num_groups is not None:
            problems.add("private groups are those of the data", remedy="Leave the number of groups empty")

    def _check_own(self, problems: Problems) -> None:
        if self.num_groups is not None:
            problems.whole(1, MAX_GROUPS, **{"the number of groups": self.num_groups})
        if (self.own_groups is None) != (self.own_amount is None):
            problems.add("both bounds of your own pair go together", remedy="Enter both, or leave both empty")
        elif self.own_groups is not None:
            problems.whole(1, MAX_SIZE, **{"your own bound on groups": self.own_groups})
            if isinstance(self.statistic, Statistic) and self.statistic.whole:
                problems.whole(1, MAX_SIZE, **{"your own bound in each": self.own_amount})
            else:
                problems.between(1e-15, 1e15, **{"your own bound in each": self.own_amount})

    def _check_mean(self, problems: Problems) -> None:
        if self.statistic is not Statistic.MEAN:
            if self.lower is not None or self.upper is not None:
                problems.add("lower and upper go only with a mean")
            return
        if problems.between(-1e15, 1e15, lower=self.lower, upper=self.upper):
            problems.ascending(lower=self.lower, upper=self.upper)
        if isinstance(self.objective, Objective) and self.objective.relative:
            problems.add("the error of a mean is not divided by a size", remedy="Choose another error")

    @cached_property
    def unit_noise(self) -> float:
        """Noise scale at sensitivity 1: b of Laplace, standard deviation of Gaussian noise."""
        return noise_error.compute_unit_scale(self.noise, self.amount_epsilon, self.delta)

    @property
    def amount_epsilon(self) -> float:
        """What the noise spends of epsilon: all of it for a public list."""
        return self.epsilon * (1.0 - (self.selection_share or 0.0))

    @property
    def selection_epsilon(self) -> float:
        """What selecting groups spends of epsilon; 0 for a public list."""
        return self.epsilon * (self.selection_share or 0.0)

    @property
    def _replaced(self) -> float:
        """Sensitivity under these neighbours over that of adding or removing one user.

        One vector of non-negative amounts goes and another comes. They differ most where they share no group: then
        L1 norms add up (factor 2), squares of L2 norms add up (factor sqrt 2); in a shared group the change is
        the difference of two amounts, no more than the larger. Amounts of any sign differ most in shared groups, by
        twice the larger each: then both norms double.
        """
        return self._factor(self.statistic.non_negative)

    def _factor(self, non_negative: bool) -> float:
        if self.neighbours is Neighbours.ADD_OR_REMOVE_USER:
            return 1.0
        return math.sqrt(2.0) if self.noise is NoiseKind.GAUSSIAN and non_negative else 2.0

    def pair_sensitivity(self, max_groups: npt.ArrayLike, max_amount: npt.ArrayLike) -> FloatArray:
        """Most that one user moves the release, where they keep L0 groups with at most L-infinity in each.

        Args:
            max_groups: L0, at least 0, any shape.
            max_amount: L-infinity, at least 0, in the statistic's unit, broadcast with it.

        Returns:
            L1 norm L0 * Linf with Laplace noise, L2 norm sqrt(L0) * Linf with Gaussian noise; times 2 or sqrt 2
            where a user is replaced. As libraries do, it does not use that few groups leave no room for two disjoint
            sets of L0 groups.
        """
        groups = np.asarray(max_groups, dtype=np.float64)
        norm = groups if self.noise is NoiseKind.LAPLACE else np.sqrt(groups)
        return np.asarray(self._replaced * norm * np.asarray(max_amount, dtype=np.float64))

    def pair_noise(self, max_groups: npt.ArrayLike, max_amount: npt.ArrayLike) -> FloatArray:
        """Standard deviation of each group's noise; arguments as `pair_sensitivity`."""
        return np.asarray(self._deviation * self.pair_sensitivity(max_groups, max_amount))

    def norm_sensitivity(self, max_norm: npt.ArrayLike) -> FloatArray:
        """Most that one user moves the release, where the norm of their whole vector is at most T.

        Args:
            max_norm: T >= 0, of the L1 norm with Laplace, of the L2 norm with Gaussian noise; any shape.
        """
        return np.asarray(self._replaced * np.asarray(max_norm, dtype=np.float64))

    def norm_noise(self, max_norm: npt.ArrayLike) -> FloatArray:
        """Standard deviation of each group's noise; arguments as `norm_sensitivity`."""
        return np.asarray(self._deviation * self.norm_sensitivity(max_norm))

    @property
    def _deviation(self) -> float:
        return math.sqrt(self.noise.unit_variance) * self.unit_noise

    @property
    def mean_range(self) -> tuple[float, float]:
        """(lower, upper) of a mean."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    def mean_noise(self, max_groups: int, max_rows: int) -> tuple[float, float]:
        """Standard deviations of the noise of a mean's sum, of values less the middle of their range, and of its rows.

        Released is one vector with two entries per group: the kept rows' distances from ``lower`` added up, and those
        from ``upper``. A user's n rows in a group add a, b >= 0 with a + b = n (upper - lower); so the vector of a user
        has entries of at least 0, an L1 norm of at most L0 * Linf * (upper - lower), and an L2 norm of at most
        sqrt(L0) * Linf * (upper - lower), both reached where all values are at one end. Half the difference of the two
        noisy entries is the sum, their sum over (upper - lower) the number of rows; these two are uncorrelated.
        """
        low, high = self.mean_range
        norm = max_groups if self.noise is NoiseKind.LAPLACE else math.sqrt(max_groups)
        entry = self._deviation * self._factor(True) * norm * max_rows * (high - low)
        # The noises of both entries are uncorrelated: half their difference has 1 / sqrt 2 of one's deviation,
        # their sum sqrt 2.
        return entry / math.sqrt(2.0), entry * math.sqrt(2.0) / (high - low)

    def check_sizes(self, totals: FloatArray) -> None:
        """Refuse groups of which none is large, where the error is that of large ones."""
        floor = self.floor or 0.0
        if self.objective is Objective.LARGE_GROUPS and not np.any(np.abs(totals) >= floor):
            raise refuse(f"no group reaches the least size of a large group, {wording.number(floor)}")

    def group_weights(self, totals: FloatArray, times: FloatArray) -> FloatArray:
        """Weight of one group of each size: of its RMSE where the objective is rooted, else of its MSE.

        Args:
            totals: True values, shape (k,); of a mean its rows.
            times: How many groups have each, likewise.
        """
        counted: FloatArray = np.ones(totals.shape)
        if self.objective is Objective.LARGE_GROUPS:
            counted = np.asarray(np.abs(totals) >= (self.floor or 0.0), dtype=np.float64)
        elif self.statistic is Statistic.MEAN:  # A group without rows has no mean.
            counted = np.asarray(totals > 0.0, dtype=np.float64)
        elif self.objective.relative:
            assert self.floor is not None
            size = np.maximum(np.abs(totals), self.floor)
            return np.asarray(1.0 / (float(times.sum()) * (size if self.objective.rooted else size**2)))
        return np.asarray(counted / float(times @ counted))


@dataclass(frozen=True, eq=False)
class PerGroupProblem:
    """The question on given pairs; the list of groups is public.

    Attributes:
        pairs: Who contributes how much to which group.
        parameters: What is asked.

    Raises:
        InvalidInput: A sum is asked for where there is none, or where one is negative; values lie outside the range
            of a mean; or no group is large.
    """

    pairs: UserGroupPairs
    parameters: PerGroupParameters

    def __post_init__(self) -> None:
        with Problems() as problems:
            fine = problems.of_kind(UserGroupPairs, pairs=self.pairs)
            if problems.of_kind(PerGroupParameters, parameters=self.parameters) and fine:
                self._check_sums(problems)
        self.parameters.check_sizes(self.totals)

    def _check_sums(self, problems: Problems) -> None:
        p, pairs = self.parameters, self.pairs
        if p.statistic in (Statistic.ROWS, Statistic.USERS):
            return
        if pairs.sums is None:
            problems.add("the pairs hold no sums", remedy="Choose rows or distinct users, or add a column up")
        elif p.statistic is Statistic.SUM and float(pairs.sums.min()) < 0.0:
            negative = int(np.sum(pairs.sums < 0.0))
            problems.add(
                f"{negative:,} of {pairs.num_pairs:,} sums of a user in a group are negative",
                remedy="Choose the sum of any sign",
            )
        elif p.statistic is Statistic.MEAN:
            if pairs.sums_of_squares is None or pairs.value_range is None:
                problems.add("a mean needs sums of squares and the range of the values")
                return
            (least, greatest), (low, high) = pairs.value_range, p.mean_range
            if least < low or greatest > high:
                problems.add(
                    f"values go from {wording.number(least)} to {wording.number(greatest)}, beyond lower or upper",
                    remedy="Sums cannot be clipped row by row any more: widen the range, or clip the values first",
                )

    @cached_property
    def amounts(self) -> FloatArray:
        """What each pair adds to its group, shape (num_pairs,): at least 0 but for sums of any sign; rows of a mean."""
        statistic = self.parameters.statistic
        if statistic is Statistic.USERS:
            return np.ones(self.pairs.num_pairs)
        if statistic in (Statistic.ROWS, Statistic.MEAN):
            return self.pairs.rows.astype(np.float64)
        assert self.pairs.sums is not None
        return self.pairs.sums

    @cached_property
    def totals(self) -> FloatArray:
        """True value of every group, shape (num_entries,); of a mean its rows."""
        return self.per_group(self.amounts)

    @cached_property
    def weights(self) -> FloatArray:
        """Weight of each entry, shape (num_entries,): of its RMSE where the objective is rooted, else of its MSE."""
        return self.parameters.group_weights(self.totals, self.pairs.times) * self.pairs.times

    @property
    def whole(self) -> bool:
        """Whether L-infinity is a whole number: that of a count is."""
        return self.parameters.statistic.whole

    def per_group(self, of_pairs: FloatArray) -> FloatArray:
        """Sums over each group's pairs, shape (num_entries,)."""
        number = self.pairs.num_entries
        return np.bincount(self.pairs.group_codes, weights=of_pairs, minlength=number).astype(np.float64)

    def error(self, mean_squares: FloatArray) -> float:
        """The objective at given mean squared errors of the groups, shape (num_entries,)."""
        if self.parameters.objective.rooted:
            return float(np.sqrt(mean_squares) @ self.weights)
        return math.sqrt(float(mean_squares @ self.weights))

    @cached_property
    def error_of_nothing(self) -> float:
        """What it costs to publish 0 for every group without looking at the data; of a mean the middle of the range."""
        if self.parameters.statistic is Statistic.MEAN:
            return self.error(self.centred_means**2)
        return self.error(self.totals**2)

    @cached_property
    def middle(self) -> float:
        """Middle of the range of a mean's values."""
        low, high = self.parameters.mean_range
        return (low + high) / 2.0

    @cached_property
    def centred_means(self) -> FloatArray:
        """True mean of every group less the middle of the range, shape (num_entries,); 0 in groups without rows."""
        assert self.pairs.sums is not None
        centred = self.per_group(self.pairs.sums - self.middle * self.pairs.rows)
        return centred / np.maximum(self.totals, 1.0)
