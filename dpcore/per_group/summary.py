"""Bounds per group from the distribution of pairs alone.

The pairs themselves are then not known (see `PairSizes`). The numbers of pairs of each size (rows of the pair, groups
of its user) and the rows and users of every group are known, but not which pairs lie in which group.
These determine the sum of all groups' biases, the sum of their sampling variances, and the noise. They do not
determine how the bias is spread over groups: it is taken to be proportional to their sizes, as if every group had the
same mixture of pairs.

The root mean square over groups has limits for any mixture. With B the sum of biases, the sum of their squares is
smallest, B^2 / G, if all groups have the same bias, and largest if the largest groups lose everything, as no group's
bias exceeds its size.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.data.task_facets import PairSizes
from dpcore.per_group.pair_of_bounds import PairChoice, search_pairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic

APPROXIMATION_TEXT = (
    "Sampling, noise and the sum of biases are exact; each group's bias is taken in proportion to its size."
)
GRID_SHAPE = 60, 30
"""Points of the first grid."""


class SummaryProblem:
    """The problem on a distribution of pairs.

    Args:
        pair_sizes: The distribution.
        parameters: The parameters: rows or distinct users, a public list of groups.

    Raises:
        InvalidInput: The parameters need the pairs themselves.
    """

    def __init__(self, pair_sizes: PairSizes, parameters: PerGroupParameters) -> None:
        with Problems() as problems:
            if parameters.statistic not in (Statistic.ROWS, Statistic.USERS):
                problems.add("sums and means need the pairs themselves", remedy="Choose rows or users")
            if parameters.selection.is_private:
                problems.add("private groups need the pairs themselves", remedy="Choose a public list")
            if parameters.listed_groups[0]:
                no_names_sentence = (
                    "a distribution of pairs has no names of groups, so that a list cannot be "
                    "compared with it"
                )
                problems.add(no_names_sentence, remedy="Enter how many groups are on the list instead")
            num_occupied_groups = pair_sizes.task_rows.size
            if parameters.num_groups is not None and parameters.num_groups < num_occupied_groups:
                groups_text = f"{num_occupied_groups:,} groups, more than the {parameters.num_groups:,}"
                problems.add(f"the data hold {groups_text} entered")
        self.pair_sizes, self.parameters = pair_sizes, parameters
        num_listed = num_occupied_groups if parameters.num_groups is None else parameters.num_groups
        self.num_empty_groups = num_listed - num_occupied_groups
        parameters.check_sizes(self.totals)

    @cached_property
    def amounts(self) -> FloatArray:
        """Return the amount of a pair of each size, shape (num_sizes,)."""
        pair_rows = self.pair_sizes.rows.astype(np.float64)
        return np.ones_like(pair_rows) if self.parameters.statistic is Statistic.USERS else pair_rows

    @cached_property
    def totals(self) -> FloatArray:
        """Return the true value of every group with rows, shape (num_occupied_groups,)."""
        counts_users = self.parameters.statistic is Statistic.USERS
        return (self.pair_sizes.task_users if counts_users else self.pair_sizes.task_rows).astype(np.float64)

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list, including groups without rows."""
        return self.totals.size + self.num_empty_groups

    @cached_property
    def _merged_totals(self) -> tuple[FloatArray, FloatArray]:
        """Return the distinct totals (0 for empty groups), and the weight of all groups with each."""
        all_totals = np.r_[self.totals, np.zeros(min(self.num_empty_groups, 1))]
        distinct_totals, total_counts = np.unique(all_totals, return_counts=True)
        group_counts = total_counts.astype(np.float64)
        if self.num_empty_groups:
            group_counts[0] = self.num_empty_groups
        return distinct_totals, group_counts * self.parameters.compute_group_weights(
            distinct_totals, group_counts
        )

    def _compute_sums(self, max_groups: int, max_amount: float) -> tuple[float, float, float]:
        """Return bias and sampling variance, each added up over all groups, and the noise variance of one group."""
        kept_shares = np.minimum(1.0, max_groups / self.pair_sizes.groups)
        kept_amounts = kept_shares * np.minimum(self.amounts, max_amount)
        bias_sum = float(self.pair_sizes.pairs @ (self.amounts - kept_amounts))
        variance_sum = float(self.pair_sizes.pairs @ ((1.0 / kept_shares - 1.0) * kept_amounts**2))
        noise_variance = float(self.parameters.compute_pair_noise_std(max_groups, max_amount)) ** 2
        return bias_sum, variance_sum, noise_variance

    def compute_error(self, max_groups: int, max_amount: float) -> float:
        """Return the objective under a pair of bounds, as if every group had the same mixture of pairs."""
        return self.compute_error_parts(max_groups, max_amount)[0]

    def compute_error_parts(self, max_groups: int, max_amount: float) -> tuple[float, float, float]:
        """Return the objective and its sampling and noise parts, as if every group had the same mixture of pairs.

        Args:
            max_groups: L0, whole, at least 1.
            max_amount: L-infinity in rows, above 0.
        """
        bias_sum, variance_sum, noise_variance = self._compute_sums(max_groups, max_amount)
        distinct_totals, total_weights = self._merged_totals
        total_shares = distinct_totals / float(self.totals.sum())
        mean_squares = (total_shares * bias_sum) ** 2 + total_shares * variance_sum + noise_variance
        weights_of_squares = self.parameters.divide_weights(mean_squares, total_weights)
        sampling_part = float((total_shares * variance_sum) @ weights_of_squares)
        noise_part = noise_variance * float(weights_of_squares.sum())
        return self.parameters.combine_errors(mean_squares, total_weights), sampling_part, noise_part

    @property
    def error_of_nothing(self) -> float:
        """Return the objective for publishing 0 in every group."""
        distinct_totals, total_weights = self._merged_totals
        return self.parameters.combine_errors(distinct_totals**2, total_weights)

    def compute_limits(self, max_groups: int, max_amount: float) -> tuple[float, float] | None:
        """Return the least and largest root mean square error for any mixture of pairs, in rows or users.

        None for other objectives.
        """
        if self.parameters.objective is not Objective.ROOT_MEAN_SQUARE:
            return None
        bias_sum, variance_sum, noise_variance = self._compute_sums(max_groups, max_amount)
        known_variance = variance_sum / self.num_groups + noise_variance
        # Smallest if all groups lose the same, largest if the largest groups lose everything.
        largest_biases = np.diff(np.minimum(np.cumsum(np.sort(self.totals)[::-1]), bias_sum), prepend=0.0)
        sums_of_squared_biases = bias_sum**2 / self.totals.size, float(largest_biases @ largest_biases)
        lowest_error, highest_error = (
            math.sqrt(square_sum / self.num_groups + known_variance) for square_sum in sums_of_squared_biases
        )
        return lowest_error, highest_error


def find_best_summary_pair(problem: SummaryProblem) -> PairChoice:
    """Return the best pair that a search finds for a distribution, without a proof; 0 and 0 to release nothing."""
    max_bounds = int(problem.pair_sizes.groups.max()), int(problem.amounts.max())
    errors_by_pair, _ = search_pairs(problem.compute_error, max_bounds, GRID_SHAPE, 1.3)
    best_bounds = min(errors_by_pair, key=errors_by_pair.__getitem__)
    max_groups, max_amount = best_bounds if errors_by_pair[best_bounds] < problem.error_of_nothing else (0, 0)
    best_error = min(errors_by_pair[best_bounds], problem.error_of_nothing)
    stop_reason = f"Best of {len(errors_by_pair):,} pairs tried, without a proof. {APPROXIMATION_TEXT}"
    return PairChoice(max_groups, float(max_amount), best_error, None, len(errors_by_pair), stop_reason)
