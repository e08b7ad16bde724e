"""What is asked for a release per group: the statistic, the noise, the neighbours, and what counts as its error."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import noise_error
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray
from dpcore.per_group.pairs import UserGroupPairs


class Statistic(enum.Enum):
    """What is released for every group."""

    ROWS = "rows"
    USERS = "distinct users"
    SUM = "sum of a column"


class Objective(enum.Enum):
    """The error of all groups together; t is a group's true value, RMSE its root mean squared error."""

    ROOT_MEAN_SQUARE = "root mean squared error over the groups"
    MEAN_RMSE = "mean of the groups' root mean squared errors"
    RELATIVE_ROOT_MEAN_SQUARE = "root mean square of RMSE / max(t, floor)"
    MEAN_RELATIVE = "mean of RMSE / max(t, floor)"

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
        floor: Least size that a relative error divides by, public, in the statistic's unit; None for other errors.

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

    def __post_init__(self) -> None:
        problems = Problems()
        if problems.between(*EPSILON_RANGE, epsilon=self.epsilon):
            noise_error.check_noise(problems, self.noise, self.epsilon, self.delta)
        if not isinstance(self.statistic, Statistic):
            problems.add("statistic must be a Statistic")
        if self.neighbours not in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER):
            problems.add(
                "neighbours must be to add or remove one user, or to replace one user",
                remedy="A user's groups are private here, so that replacing values alone protects too little",
            )
        if not isinstance(self.objective, Objective):
            problems.add("objective must be an Objective")
        elif self.objective.relative:
            problems.between(1e-9, 1e15, floor=self.floor)
        elif self.floor is not None:
            problems.add("floor goes only with a relative error")
        problems.raise_if_any()

    @cached_property
    def unit_noise(self) -> float:
        """Noise scale at sensitivity 1: b of Laplace, standard deviation of Gaussian noise."""
        return noise_error.unit_scale(self.noise, self.epsilon, self.delta)

    @property
    def _replaced(self) -> float:
        """Sensitivity under these neighbours over that of adding or removing one user.

        One vector of non-negative amounts goes and another comes. They differ most where they share no group: then
        L1 norms add up (factor 2), squares of L2 norms add up (factor sqrt 2); in a shared group the change is
        the difference of two amounts, no more than the larger.
        """
        if self.neighbours is Neighbours.ADD_OR_REMOVE_USER:
            return 1.0
        return 2.0 if self.noise is NoiseKind.LAPLACE else math.sqrt(2.0)

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


@dataclass(frozen=True, eq=False)
class PerGroupProblem:
    """The question on given pairs; the list of groups is public.

    Attributes:
        pairs: Who contributes how much to which group.
        parameters: What is asked.

    Raises:
        InvalidInput: A sum is asked for where there is none, or where one is negative; or it is 0 everywhere.
    """

    pairs: UserGroupPairs
    parameters: PerGroupParameters

    def __post_init__(self) -> None:
        problems = Problems()
        if not isinstance(self.pairs, UserGroupPairs):
            problems.add("pairs must be UserGroupPairs")
        if not isinstance(self.parameters, PerGroupParameters):
            problems.add("parameters must be PerGroupParameters")
        elif isinstance(self.pairs, UserGroupPairs) and self.parameters.statistic is Statistic.SUM:
            if self.pairs.sums is None:
                problems.add(
                    "the pairs hold no sums", remedy="Choose rows or distinct users, or add a column up"
                )
            elif float(self.pairs.sums.min()) < 0.0:
                negative = int(np.sum(self.pairs.sums < 0.0))
                problems.add(
                    f"{negative:,} of {self.pairs.num_pairs:,} sums of a user in a group are negative",
                    remedy="The methods here bound amounts of at least 0",
                )
        problems.raise_if_any()

    @cached_property
    def amounts(self) -> FloatArray:
        """What each pair adds to its group, at least 0, shape (num_pairs,)."""
        statistic = self.parameters.statistic
        if statistic is Statistic.USERS:
            return np.ones(self.pairs.num_pairs)
        if statistic is Statistic.ROWS:
            return self.pairs.rows.astype(np.float64)
        assert self.pairs.sums is not None
        return self.pairs.sums

    @cached_property
    def totals(self) -> FloatArray:
        """True value of every group, shape (num_groups,)."""
        return self.per_group(self.amounts)

    @cached_property
    def weights(self) -> FloatArray:
        """Weight of each group, shape (num_groups,): of its RMSE where the objective is rooted, else of its MSE."""
        p, number = self.parameters, self.pairs.num_groups
        if not p.objective.relative:
            return np.full(number, 1.0 / number)
        assert p.floor is not None
        size = np.maximum(self.totals, p.floor)
        return 1.0 / (number * (size if p.objective.rooted else size**2))

    @cached_property
    def noise_weight(self) -> float:
        """Error of all groups together per unit standard deviation of noise, where there is nothing but noise."""
        total = float(self.weights.sum())
        return total if self.parameters.objective.rooted else math.sqrt(total)

    @property
    def whole(self) -> bool:
        """Whether L-infinity is a whole number: that of a count is."""
        return self.parameters.statistic is not Statistic.SUM

    def per_group(self, of_pairs: FloatArray) -> FloatArray:
        """Sums over each group's pairs, shape (num_groups,)."""
        number = self.pairs.num_groups
        return np.bincount(self.pairs.group_codes, weights=of_pairs, minlength=number).astype(np.float64)

    def error(self, mean_squares: FloatArray) -> float:
        """The objective at given mean squared errors of the groups, shape (num_groups,)."""
        if self.parameters.objective.rooted:
            return float(np.sqrt(mean_squares) @ self.weights)
        return math.sqrt(float(mean_squares @ self.weights))

    @cached_property
    def error_of_nothing(self) -> float:
        """What it costs to publish 0 for every group without looking at the data."""
        return self.error(self.totals**2)
