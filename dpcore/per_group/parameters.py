"""The settings of a release per group, and the problem that they pose on given pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.common.parameters import (
    OWN,
    Option,
    Parameters,
    gaussian_delta,
    noise_kind,
    of_data,
    program_choice,
    public,
    range_end,
)
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import DrawnNoise, Program, find_noise
from dpcore.common.wording import format_count, format_number
from dpcore.contributions import MAX_SIZE, FloatArray
from dpcore.data import group_list
from dpcore.data.bin_edges import MAX_EDGE_CHARACTERS
from dpcore.per_group.pairs import MAX_GROUPS
from dpcore.per_group.selection_rules import SelectionRule

DEFAULT_SELECTION_SHARE = 0.5
"""Libraries split epsilon evenly."""


class Statistic(Option):
    """The statistic that is released for every group."""

    ROWS = "rows", "Rows"
    USERS = "users", "Users"
    SUM = "sum", "Sum"
    SIGNED_SUM = "signed sum", "Signed sum"
    MEAN = "mean", "Mean"

    @classmethod
    def _missing_(cls, value: object) -> Statistic | None:
        """Return the member of a former value, which earlier links and session files have; None for other values."""
        member_by_former_value = {
            "distinct users": cls.USERS,
            "sum of a column": cls.SUM,
            "sum of a column of any sign": cls.SIGNED_SUM,
            "mean of a column": cls.MEAN,
        }
        return member_by_former_value.get(str(value).lower())

    @property
    def is_non_negative(self) -> bool:
        """Return True if amounts of at least 0 are added up, so that for every pair a cap errs no more in any group."""
        return self in (Statistic.ROWS, Statistic.USERS, Statistic.SUM)

    @property
    def is_integer(self) -> bool:
        """Return True if L-infinity is a whole number: of rows, users and means, in rows of a mean."""
        return self not in (Statistic.SUM, Statistic.SIGNED_SUM)


class Objective(Option):
    """The error of all groups together; t is a group's true value, RMSE its root mean squared error."""

    ROOT_MEAN_SQUARE = "root mean squared error over the groups", "Typical (RMS)"
    MEAN_RMSE = "mean of the groups' root mean squared errors", "Mean over groups"
    RELATIVE_ROOT_MEAN_SQUARE = "root mean square of RMSE / max(t, floor)", "Relative (RMS)"
    MEAN_RELATIVE = "mean of RMSE / max(t, floor)", "Relative, mean"
    LARGE_GROUPS = "root mean squared error over the groups with t of at least the floor", "Large groups"

    @property
    def needs_floor(self) -> bool:
        """Return True if the error needs a floor."""
        return self.is_relative or self is Objective.LARGE_GROUPS

    @property
    def is_relative(self) -> bool:
        """Return True if a group's error is divided by its size, or by the floor if that is larger."""
        return self in (Objective.RELATIVE_ROOT_MEAN_SQUARE, Objective.MEAN_RELATIVE)

    @property
    def is_rooted(self) -> bool:
        """Return True if the root is taken group by group, before the mean."""
        return self in (Objective.MEAN_RMSE, Objective.MEAN_RELATIVE)


LABEL_BY_RELATION = {
    Neighbours.ADD_OR_REMOVE_USER: "Add or remove a user",
    Neighbours.REPLACE_USER: "Replace a user",
}
IF_MEAN = ("statistic", (Statistic.MEAN,))
IF_FLOORED = ("objective", [objective for objective in Objective if objective.needs_floor])
IF_PUBLIC_LIST = ("selection", (SelectionRule.PUBLIC_LIST,))
IF_PRIVATE_GROUPS = ("selection", [rule for rule in SelectionRule if rule.is_private])
OWN_BOUND_OPTIONS: dict[str, Any] = {
    "is_renewed": True,
    "placeholder": "optional",
    "width": 160,
    "place": OWN,
}
RANGE_OPTIONS: dict[str, Any] = {"limits": (-1e15, 1e15), "width": 86, "only_with": IF_MEAN}
LIST_OPTIONS: dict[str, Any] = {"is_published": True, "only_with": IF_PUBLIC_LIST}
SELECTION_OPTIONS: dict[str, Any] = {"width": 180, "only_with": IF_PRIVATE_GROUPS}
IF_NON_NEGATIVE = ("statistic", [statistic for statistic in Statistic if statistic.is_non_negative])


@dataclass(frozen=True)
class PerGroupParameters(Parameters):
    """The settings of the page *Group by*: everything but the data."""

    statistic: Statistic = public.choice(
        Statistic.ROWS, "Released", name="the statistic released per group", uses_select_box=True, width=126
    )
    """Rows, users, or sum or mean of the value column. A signed sum may have negative values."""
    mechanism: NoiseKind = noise_kind(former_name="noise")
    """Laplace for ε-DP, Gaussian for (ε, δ)-DP."""
    delta: float | None = gaussian_delta(None, "mechanism")
    """Probability that ε does not hold. Choose it well below 1 / (number of users)."""
    program: Program = program_choice(width=200)
    """The errors are those of its noise, and *Get code* opens with it."""
    neighbours: Neighbours = public.choice(
        Neighbours.ADD_OR_REMOVE_USER, "Neighbouring data", LABEL_BY_RELATION
    )
    """Add or remove one user, as libraries do, or replace one, which needs more noise."""
    objective: Objective = public.choice(
        Objective.ROOT_MEAN_SQUARE, "Error to minimise", uses_select_box=True, width=160
    )
    """*Mean* is as in PipelineDP's tuner. *Relative* divides an error by its group's size, at least the floor. *Large
    groups* reach the floor."""
    floor: float | None = of_data.number(
        None, "Floor", (1e-9, 1e15), initial=10.0, width=120, only_with=IF_FLOORED
    )
    """The smallest divisor of an error, or the smallest large group (of means, in rows). Public."""
    # Five fields, the button and their gaps fill the line.
    lower: float | None = range_end(None, "Lowest L", "lowest value L", shared="lower", **RANGE_OPTIONS)
    """Values below are raised to it. Take it from what you know, not from data."""
    upper: float | None = range_end(None, "Highest U", "highest value U", shared="upper", **RANGE_OPTIONS)
    """Values above are lowered to it. Take it from what you know, not from data."""
    # The number of groups should be public, but whoever copies the number that the data hold reads it off them.
    num_groups: int | None = of_data.number(
        None,
        "Groups on the list",
        (1, MAX_GROUPS),
        name="the number of groups on the public list",
        is_required=False,
        is_renewed=True,
        placeholder="as in the data",
        width=170,
        only_with=IF_PUBLIC_LIST,
    )
    """All groups, also those without rows, from a public list."""
    # Every release names its groups: they are published, and chosen from what is known, never off the data.
    groups: str | None = of_data.text(
        None,
        "Public list of groups",
        placeholder="one name a line",
        max_length=group_list.MAX_CHARACTERS,
        width=200,
        shared="groups",
        **LIST_OPTIONS,
    )
    """One name a line, from what you know, not from data. Rows of other groups are left out before anything is
    bounded. Empty: public data name their groups; for private data the program asks for the list. A list of more than
    4,000 characters is in session files and not in links. *More settings* takes their number in its place."""
    edges: str | None = of_data.text(
        None,
        "Or edges of bins",
        name="edges of bins",
        placeholder="0, 10, 20 or 2025-01-01 to 2026-01-01 by month",
        max_length=MAX_EDGE_CHARACTERS,
        shared="edges",
        **LIST_OPTIONS,
    )
    """Numbers or dates become groups by public edges, such as ``0 to 100 by 10``. A bin holds its left edge, and not
    its right one."""
    own_groups: int | None = of_data.number(
        None, "Your groups", (1, MAX_SIZE), name="your own bound on groups", **OWN_BOUND_OPTIONS
    )
    """Groups per user in the pair that you use today."""
    own_amount: float | None = of_data.number(
        None, "Your amount", name="your own bound in each", **OWN_BOUND_OPTIONS
    )
    """Rows, or amount, per user and group."""
    selection: SelectionRule = public.choice(
        SelectionRule.PUBLIC_LIST,
        "Groups",
        name="the groups that are released",
        uses_select_box=True,
        width=170,
        only_with=IF_NON_NEGATIVE,
    )
    """From a public list, or selected with DP by their number of users. The truncated geometric rule keeps most."""
    selection_share: float | None = public.number(
        None,
        "ε for selecting groups",
        (0.01, 0.99),
        name="the share of ε for selecting groups",
        initial=DEFAULT_SELECTION_SHARE,
        step=0.05,
        **SELECTION_OPTIONS,
    )
    """A share; the rest is for the noise. Libraries split evenly."""
    selection_delta: float | None = public.number(
        None,
        "δ for selecting groups",
        name="the δ for selecting groups",
        initial=DEFAULT_DELTA,
        **SELECTION_OPTIONS,
    )
    """It adds to the δ of Gaussian noise."""
    min_users: int | None = public.number(
        None,
        "At least so many users",
        (1, MAX_SIZE),
        name="the least number of users of a group",
        is_required=False,
        placeholder="no pre-threshold",
        **SELECTION_OPTIONS,
    )
    """The pre-threshold of PipelineDP and Google: groups of fewer users are never released. From what you know."""

    def _check_together(self, problems: Problems) -> None:
        """Add problems of fields together: deltas, range, private groups, program, public list and own pair."""
        for delta_name, delta in (("δ", self.delta), ("the δ for selecting groups", self.selection_delta)):
            if delta is not None:
                problems.inside(0.0, 1.0, **{delta_name: delta})
        if self.statistic is Statistic.MEAN:
            if None not in (self.lower, self.upper):
                problems.ascending(lower=self.lower, upper=self.upper)
            if self.objective.is_relative:
                problems.add("the error of a mean is not divided by a size", remedy="Choose another error")
        if self.selection.is_private and not self.statistic.is_non_negative:
            private_groups_sentence = "private groups go with rows, users and sums of amounts of at least 0"
            problems.add(private_groups_sentence, remedy="Choose one of these, or a public list")
        if self.selection.is_private and self.neighbours is Neighbours.REPLACE_USER:
            private_groups_sentence = "private groups go with adding or removing one user"
            problems.add(private_groups_sentence, remedy="Choose that, or a public list")
        has_big_query_rule = (self.selection, self.selection_share) == (SelectionRule.LAPLACE, 0.5)
        if self.program is Program.BIGQUERY and self.selection.is_private and not has_big_query_rule:
            private_groups_sentence = "BigQuery selects groups by a Laplace threshold, with half of ε"
            problems.add(private_groups_sentence, remedy="Choose that and a share of 0.5, or another program")
        num_listed = 0
        with problems.collecting():
            num_listed = len(self.listed_groups[0])
        if num_listed and self.num_groups not in (None, num_listed):
            groups_text = format_count(num_listed, "group")
            private_groups_sentence = (
                f"the public list has {groups_text}, and {self.num_groups:,} were entered"
            )
            problems.add(private_groups_sentence, remedy="Leave the number empty")
        if (self.own_groups is None) != (self.own_amount is None):
            problems.add("both bounds of your own pair go together", remedy="Enter both, or leave both empty")
        elif self.own_groups is not None:
            if self.statistic.is_integer:
                problems.whole(1, MAX_SIZE, **{"your own bound in each": self.own_amount})
            else:
                problems.between(1e-15, 1e15, **{"your own bound in each": self.own_amount})

    @cached_property
    def noise(self) -> DrawnNoise:
        """Return the noise under a pair of bounds: whole for counts where the program draws whole numbers."""
        return self._find_noise(is_of_counts=self.statistic in (Statistic.ROWS, Statistic.USERS))

    @cached_property
    def vector_noise(self) -> DrawnNoise:
        """Return the noise under a bound on whole vectors: of real numbers, as such a bound cuts counts anywhere."""
        return self._find_noise(is_of_counts=False)

    @property
    def norm_name(self) -> str:
        """Return L1 or L2, the norm of a user's whole vector that is bounded for the program's noise."""
        return "L1" if self.vector_noise.kind is NoiseKind.LAPLACE else "L2"

    def _find_noise(self, *, is_of_counts: bool) -> DrawnNoise:
        """Return the program's noise for the part of epsilon that amounts get, for counts or for real numbers."""
        # BigQuery's scale has the shares of its aggregates and of the hidden count, which selects groups.
        epsilon = self.epsilon if self.program is Program.BIGQUERY else self.amount_epsilon
        epsilon_and_delta = epsilon, self.delta
        num_aggregates = 2 if self.statistic is Statistic.MEAN else 1
        return find_noise(
            self.program,
            self.mechanism,
            *epsilon_and_delta,
            is_of_counts=is_of_counts,
            num_aggregates=num_aggregates,
        )

    @cached_property
    def listed_groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the groups of the public list, and the edges if they are bins; both empty without a list."""
        return group_list.find_groups(self.groups, self.edges)

    @property
    def num_listed_groups(self) -> int | None:
        """Return the number of groups on the public list, as it was entered; None if nobody entered it."""
        return len(self.listed_groups[0]) or self.num_groups

    @property
    def has_vectors(self) -> bool:
        """Return True if the program can bound the norm of a user's whole vector."""
        return self.program in (Program.OPENDP, Program.PYTHON, Program.BEST)

    @property
    def splits_means(self) -> bool:
        """Return True if the program gives a mean's sum and its number of rows a part of the budget each."""
        return self.program in (Program.PIPELINEDP, Program.TUMULT, Program.BIGQUERY)

    @property
    def amount_epsilon(self) -> float:
        """Return the part of epsilon that the noise spends: all of it for a public list."""
        return self.epsilon * (1.0 - (self.selection_share or 0.0))

    @property
    def selection_epsilon(self) -> float:
        """Return the part of epsilon that selecting groups spends: 0 for a public list."""
        return self.epsilon * (self.selection_share or 0.0)

    def compute_pair_norm(self, max_groups: npt.ArrayLike, max_amount: npt.ArrayLike) -> FloatArray:
        """Return the largest norm of the vector of a user who keeps L0 groups with at most L-infinity in each.

        Args:
            max_groups: L0, at least 0, any shape.
            max_amount: L-infinity, at least 0, in the statistic's unit, broadcast with it.

        Returns:
            L1 norm L0 * Linf with Laplace noise, L2 norm sqrt(L0) * Linf with Gaussian noise.
        """
        group_bounds = np.asarray(max_groups, dtype=np.float64)
        norm_per_amount = group_bounds if self.noise.kind is NoiseKind.LAPLACE else np.sqrt(group_bounds)
        return np.asarray(norm_per_amount * np.asarray(max_amount, dtype=np.float64))

    def compute_norm_sensitivity(self, max_norm: npt.ArrayLike) -> FloatArray:
        """Return the largest norm of the change of the release by one user whose whole vector has a norm of at most T.

        If a user is replaced, one vector goes and another comes. Vectors of at least 0 differ most if they share no
        group: then L1 norms add up (factor 2), and squares of L2 norms add up (factor sqrt 2). In a shared group the
        change is the difference of two amounts, no more than the larger. Amounts of any sign differ most in shared
        groups, by twice the larger each: then both norms double. As libraries do, this does not use that few groups
        leave no room for two disjoint sets of L0 groups.

        Args:
            max_norm: T >= 0, of the L1 norm with Laplace, of the L2 norm with Gaussian noise; any shape.
        """
        norm_factor = 1.0
        if self.neighbours is Neighbours.REPLACE_USER:
            is_disjoint = self.noise.kind is NoiseKind.GAUSSIAN and self.statistic is not Statistic.SIGNED_SUM
            norm_factor = math.sqrt(2.0) if is_disjoint else 2.0
        return np.asarray(norm_factor * np.asarray(max_norm, dtype=np.float64))

    def compute_norm_noise_std(self, max_norm: npt.ArrayLike) -> FloatArray:
        """Compute the standard deviation of each group's noise if every user's vector has a norm of at most T.

        The result has the shape of ``max_norm``.
        """
        return np.sqrt(self.vector_noise.compute_variance(self.compute_norm_sensitivity(max_norm)))

    def compute_pair_noise_std(self, max_groups: npt.ArrayLike, max_amount: npt.ArrayLike) -> FloatArray:
        """Compute the standard deviation of each group's noise under a pair of bounds L0 and L-infinity.

        The bounds may be arrays, and are broadcast.
        """
        return np.sqrt(self.noise.compute_variance(self.compute_pair_sensitivity(max_groups, max_amount)))

    def compute_pair_sensitivity(self, max_groups: npt.ArrayLike, max_amount: npt.ArrayLike) -> FloatArray:
        """Compute by how much one user can change the release at most, under a pair of bounds, as a norm.

        It is the L1 norm with Laplace noise and the L2 norm with Gaussian noise. The bounds may be arrays, and are
        broadcast.
        """
        return self.compute_norm_sensitivity(self.compute_pair_norm(max_groups, max_amount))

    @property
    def mean_range(self) -> tuple[float, float]:
        """Return (lower, upper) of a mean."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    def compute_mean_noise(self, max_groups: int, max_rows: int) -> tuple[float, float]:
        """Return the noise of a mean's sum, of values less the middle of their range, and of its rows.

        Both are standard deviations.

        OpenDP and plain Python release one vector with two entries per group: the kept rows' distances from ``lower``
        added up, and those from ``upper``. A user's n rows in a group add a, b >= 0 with a + b = n (upper - lower); so
        the vector of a user has entries of at least 0, an L1 norm of at most L0 * Linf * (upper - lower), and an L2
        norm of at most sqrt(L0) * Linf * (upper - lower), both reached where all values are at one end. Half the
        difference of the two noisy entries is the sum, their sum over (upper - lower) the number of rows; these two are
        uncorrelated.

        The other programs release sum and rows with a part of the budget each. Both are then independent. The noise is
        the same with Gaussian noise, whose accountants compose, and for Laplace noise sqrt 2 times it, as half of
        epsilon is left for each. In BigQuery the scale has the parts already.
        """
        lower, upper = self.mean_range
        sensitivity = self.compute_pair_sensitivity(max_groups, max_rows * (upper - lower))
        # The noises of both entries are uncorrelated: half their difference has 1 / sqrt 2 of one's deviation,
        # their sum sqrt 2.
        split_factor = 1.0
        if self.splits_means and self.noise.kind is NoiseKind.LAPLACE:
            split_factor = math.sqrt(0.5 if self.program is Program.BIGQUERY else 2.0)
        sum_noise_std = split_factor * float(np.sqrt(self.noise.compute_variance(sensitivity)))
        return sum_noise_std / math.sqrt(2.0), sum_noise_std * math.sqrt(2.0) / (upper - lower)

    def combine_errors(self, mean_squares: FloatArray, entry_weights: FloatArray) -> float:
        """Return the objective at these mean squared errors; a weight is that of all groups of its entry together."""
        if self.objective.is_rooted:
            return float(np.sqrt(mean_squares) @ entry_weights)
        return math.sqrt(float(mean_squares @ entry_weights))

    def divide_weights(self, mean_squares: FloatArray, entry_weights: FloatArray) -> FloatArray:
        """Return r such that the objective is the sum of r * mean_squares, which divides it into parts."""
        # The objective is sum w s / d, with d the root of each group's s, or of all of them together.
        rooted_squares = np.sqrt(mean_squares)
        if not self.objective.is_rooted:
            rooted_squares = np.asarray(self.combine_errors(mean_squares, entry_weights))
        roots = np.broadcast_to(rooted_squares, mean_squares.shape)
        return np.asarray(
            np.divide(entry_weights, roots, out=np.zeros(mean_squares.shape), where=roots > 0.0)
        )

    def check_sizes(self, totals: FloatArray) -> None:
        """Raise `InvalidInput` if the error is that of large groups and no group is large."""
        size_floor = self.floor or 0.0
        if self.objective is Objective.LARGE_GROUPS and not np.any(np.abs(totals) >= size_floor):
            raise refuse(f"no group reaches the least size of a large group, {format_number(size_floor)}")

    def compute_group_weights(self, totals: FloatArray, group_counts: FloatArray) -> FloatArray:
        """Return the weight of one group of each size: of its RMSE if the objective is rooted, else of its MSE.

        Args:
            totals: True values, shape (k,); of a mean its rows.
            group_counts: How many groups have each, likewise.
        """
        inclusion_factors: FloatArray = np.ones(totals.shape)
        if self.objective is Objective.LARGE_GROUPS:
            inclusion_factors = np.asarray(np.abs(totals) >= (self.floor or 0.0), dtype=np.float64)
        elif self.statistic is Statistic.MEAN:  # A group without rows has no mean.
            inclusion_factors = np.asarray(totals > 0.0, dtype=np.float64)
        elif self.objective.is_relative:
            assert self.floor is not None
            error_divisors = np.maximum(np.abs(totals), self.floor)
            error_divisors = error_divisors if self.objective.is_rooted else error_divisors**2
            return np.asarray(1.0 / (float(group_counts.sum()) * error_divisors))
        return np.asarray(inclusion_factors / float(group_counts @ inclusion_factors))
