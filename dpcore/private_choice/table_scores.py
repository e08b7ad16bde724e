"""Scores for the bound of a mean of the rows in this very table, where rows of one user are alike.

The counts of the table are all that is known; sigma^2 and rho, the share of it between users, are public. The error
of a cap h about the mean of the rows at hand is that of `dpcore.mean.models`. With S and S2 the sums of s and s^2
over users at or below h, q the users above, E = sum_l (s_l - h)_+ the rows that are cut, n = n_h + E, and A as in
`dpcore.private_choice.scores`, its derivative in h is

    F' n_h^3 / 2 = h S - A rho E (S^2 + q S2) / n - A (1 - rho) q n_h / 2.

No rule that keeps to this condition can be steady. E and n have the weight of a user's rows, without a limit. One user
with 10,000 rows among 1,000 with ten makes up half of the table, and the best cap is then that of another table. So two
public functions of one user's count take the place of what is not bounded.

- A user counts as having at most `MAX_SIZE_OVER_CANDIDATE` h rows where a candidate h is looked at.
- Where weights are not scaled so that they sum to 1 again (u_l = min(h, s_l) / n), (S^2 + q S2) / (n S) and n_h / S are
  1, and n has cancelled: F' = 0 where

      sum_l g(s_l) = h / A,    g(s) = rho (s - h)_+ + [s > h] (1 - rho) / 2 for a cap,
                               g(s) = (s - h)_+ / x(s) for smooth weights, x(s) = s / (1 + (s - 1) rho).

  For a user who counts as having at most 2 h rows both are at most D_h = rho h + (1 - rho) / 2. Over D_h, a user adds
  between 0 and 1 to a query whose target h / (A D_h) is public.

The two err on different sides, and together by little. Over the six samples and two larger tables, of 100 to 100,000
users each, the best bound by this condition has at most 1.28 times the error of the best bound. A condition that takes
rows as independent has up to 4.4 times. The costs of draws, and other reaches, are in `benchmarks/private.py`.

Smooth weights are the plain ones, min(h, s) / n_h. The best weights of all have a constant beside the threshold, which
is as private as it is; see `dpcore.mean.models.CountsOnly.coefficients`.

Source: ours, from the model of `dpcore.mean.models`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.common import weights
from dpcore.common.checks import Problems
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, NumSizes
from dpcore.mean.models import BoundCurve, CountsOnly, Numerators
from dpcore.private_choice.scores import RESOLUTION, CountCondition, MeanCondition, SumsOverUsers, to_steps

MAX_SIZE_OVER_CANDIDATE = 2
"""A user counts as having at most so many times the candidate. At 4 and 10 draws at an epsilon of 0.5 cost up to ten
times as much: fewer users move the sum as far."""

PRIOR_POWER_OF_TABLE = 2.5
"""Power of the weights of small candidates, `dpcore.private_choice.choice.SmallFirst`. It is larger than for other
bounds, as fewer users move the sum far. Above 2 the mean square of the error is finite for every public maximum. Mean
error above the least, in the samples, at an epsilon of the choice of 0.1 and 0.5:

    1,000 users, power of 2.5   7 %  3 %
    1,000 users, power of 1.5  16 %  8 %
    100 users, power of 2.5    21 %  4 %
    100 users, power of 1.5    16 %  7 %"""


@dataclass(frozen=True)
class TableCondition(MeanCondition, SumsOverUsers):
    """A bound of the mean of a table; ``user_share`` is the share of the variance between users."""

    user_share: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(0.0, 1.0, user_share=self.user_share)
            with problems.collecting():
                super().__post_init__()

    @abstractmethod
    def _compute_additions(self, sizes: FloatArray, h: float) -> FloatArray:
        """Compute g(s) of the module, what a user of s rows adds at h, for s from h to `MAX_SIZE_OVER_CANDIDATE` h."""

    def compute_sums(self, histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
        """Compute sum_l g(s_l) / D_h at each candidate, in steps, shape (1, c); users' shares are rounded down."""
        sizes, num_users_per_size = histogram.sizes, histogram.users
        step_sums = np.zeros((1, candidates.size), dtype=np.int64)
        for j, h in enumerate(candidates.tolist()):
            # Whoever has more than `MAX_SIZE_OVER_CANDIDATE` h rows counts as having so many, where g is D_h, and adds
            # 1. The others' shares are rounded down one by one, before they are added up.
            first_above_index, first_full_index = np.searchsorted(
                sizes, [h, MAX_SIZE_OVER_CANDIDATE * h], side="right"
            )
            partial_slice = slice(first_above_index, first_full_index)
            added_shares = self._compute_additions(
                sizes[partial_slice].astype(np.float64), h
            ) / self._compute_max_addition(h)
            added_steps = np.floor(np.clip(added_shares, 0.0, 1.0) * RESOLUTION).astype(np.int64)
            num_full = int(num_users_per_size[first_full_index:].sum())
            step_sums[0, j] = np.dot(num_users_per_size[partial_slice], added_steps) + RESOLUTION * num_full
        return step_sums

    def _compute_max_addition(self, h: float) -> float:
        """Return D_h, the most that one user adds to the sum at candidate h."""
        return self.user_share * (MAX_SIZE_OVER_CANDIDATE - 1.0) * h + (1.0 - self.user_share) / 2.0

    def compute_targets(self, candidates: FloatArray) -> IntArray:
        """Compute h / (A D_h) in steps, shape (c,)."""
        target_fractions = (
            Fraction(h) / (Fraction(self.trade_off) * Fraction(self._compute_max_addition(h)))
            for h in candidates.tolist()
        )
        return np.array([to_steps(num_users_above) for num_users_above in target_fractions])

    def _build_model(self, histogram: ContributionHistogram, multiple: float = 1.0) -> CountsOnly:
        """Build the model of the error, with every user ``multiple`` times there."""
        # With every user so many times there, the variance of the noise falls by the square, the other by the number.
        return CountsOnly(histogram, 1.0, self.trade_off * multiple, self.user_share)


@dataclass(frozen=True)
class TableCap(TableCondition):
    """The best cap of a mean of this table.

    Attributes:
        trade_off: A, as for `MeanCondition`.
        user_share: rho in [0, 1]; public.
    """

    is_integer = True

    def _compute_additions(self, sizes: FloatArray, h: float) -> FloatArray:
        """Compute g(s) of a cap at candidate h, for sizes from h to `MAX_SIZE_OVER_CANDIDATE` h."""
        return self.user_share * (sizes - h) + (1.0 - self.user_share) / 2.0

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute the root mean squared error of each cap, up to a factor, with every user ``multiple`` times there."""
        return np.sqrt(self._build_model(histogram, multiple).measure_capped(bounds).squared_error)

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the whole cap of least error, without privacy."""
        return self._build_model(histogram, multiple).cap_curve.minimise(is_integer=True).bound


@dataclass(frozen=True)
class TableSmooth(TableCondition):
    """The threshold of the best plain smooth weights, min(h, s) / n_h, of a mean of this table.

    Attributes:
        trade_off: A, as for `MeanCondition`.
        user_share: rho in [0, 1]; public.
    """

    is_integer = False

    def _compute_additions(self, sizes: FloatArray, h: float) -> FloatArray:
        """Compute g(s) of smooth weights at candidate h, for sizes from h to `MAX_SIZE_OVER_CANDIDATE` h."""
        return (sizes - h) * (self.user_share + (1.0 - self.user_share) / sizes)

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute the root mean squared error of each threshold, up to a factor, for ``multiple`` times the users."""
        return np.sqrt(self._build_curve(histogram, multiple).compute_errors(bounds))

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the threshold of least error, without privacy."""
        return self._build_curve(histogram, multiple).minimise(is_integer=False).bound

    def _build_curve(self, histogram: ContributionHistogram, multiple: float) -> BoundCurve:
        """Build the curve of the error over the threshold, from that of caps.

        It has sum_l k_l^2 / s_l in place of sum_l k_l, as no row is drawn.
        """
        model = self._build_model(histogram, multiple)
        row_variance_weight = self.trade_off * multiple * (1.0 - self.user_share)

        def compute_error(h: FloatArray, num_distinct_up_to: NumSizes) -> FloatArray:
            """Compute the squared error at each threshold, up to a factor."""
            squared_weights = weights.compute_smooth_losses(histogram, h).squared_weights
            return np.asarray(
                model.measure_capped(h, num_distinct_up_to).squared_error
                + row_variance_weight * (squared_weights - 1.0 / histogram.count_kept_rows(h))
            )

        cap_numerators, sums_at_sizes = model.cap_curve.numerators, histogram.compute_sums_at_sizes()
        num_users_above, inverse_sums = (
            sums_at_sizes.users_above[:-1],
            sums_at_sizes.inverse_above[:-1],
        )
        linear_terms = cap_numerators.linear_terms - row_variance_weight * num_users_above
        square_terms = cap_numerators.square_terms + row_variance_weight * inverse_sums
        smooth_numerators = Numerators(cap_numerators.constant_terms, linear_terms, square_terms)
        return BoundCurve(histogram, compute_error, smooth_numerators)


Condition = CountCondition | TableSmooth | TableCap
"""The condition that makes a number the best one."""


def compute_least_error(
    condition: Condition, histogram: ContributionHistogram, multiple: float = 1.0
) -> float:
    """Compute the least error of all bounds of the condition's kind, with every user ``multiple`` times there."""
    return float(
        condition.compute_errors(
            histogram, np.array([condition.find_best_bound(histogram, multiple)]), multiple
        )[0]
    )
