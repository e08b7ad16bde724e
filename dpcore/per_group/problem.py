"""A question per group on given pairs: amounts, totals and weights of the groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.checks import refuse
from dpcore.common.wording import format_number
from dpcore.contributions import FloatArray
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic


@dataclass(frozen=True, eq=False)
class PerGroupProblem:
    """The question on given pairs; the parameters say if groups are listed in public or selected privately.

    Attributes:
        pairs: Who contributes how much to which group.
        parameters: The settings.

    Raises:
        InvalidInput: A sum is asked for where there is none, or where one is negative; values lie outside the range
            of a mean; or no group is large.
    """

    pairs: UserGroupPairs
    parameters: PerGroupParameters

    def __post_init__(self) -> None:
        parameters, pairs = self.parameters, self.pairs
        if parameters.statistic not in (Statistic.ROWS, Statistic.USERS):
            if pairs.sums is None:
                remedy_sentence = "Choose rows or distinct users, or add a column up"
                raise refuse("the pairs hold no sums", "", remedy_sentence)
            if parameters.statistic is Statistic.SUM and float(pairs.sums.min()) < 0.0:
                num_negative = int(np.sum(pairs.sums < 0.0))
                negative_sums_sentence = (
                    f"{num_negative:,} of {pairs.num_pairs:,} sums of a user in a group are negative"
                )
                raise refuse(negative_sums_sentence, "", "Choose the sum of any sign")
            if parameters.statistic is Statistic.MEAN:
                self._check_range()
        parameters.check_sizes(self.totals)

    def _check_range(self) -> None:
        """Raise `InvalidInput` if a mean's data have no squares or range, or values beyond the range entered."""
        if self.pairs.sums_of_squares is None or self.pairs.value_range is None:
            raise refuse("a mean needs sums of squares and a range")
        (smallest_value, largest_value), (lower, upper) = self.pairs.value_range, self.parameters.mean_range
        if smallest_value < lower or largest_value > upper:
            values_range_text = f"{format_number(smallest_value)} to {format_number(largest_value)}"
            beyond_range_sentence = f"values go from {values_range_text}, beyond lower or upper"
            raise refuse(beyond_range_sentence, "", "Widen the range, or clip the values first")

    @cached_property
    def amounts(self) -> FloatArray:
        """Return the amount of each pair, shape (num_pairs,): at least 0 but for sums of any sign; rows of a mean."""
        statistic = self.parameters.statistic
        if statistic is Statistic.USERS:
            return np.ones(self.pairs.num_pairs)
        if statistic in (Statistic.ROWS, Statistic.MEAN):
            return self.pairs.rows.astype(np.float64)
        assert self.pairs.sums is not None
        return self.pairs.sums

    @cached_property
    def totals(self) -> FloatArray:
        """Return the true value of every group, shape (num_entries,); of a mean its rows."""
        return self.sum_by_group(self.amounts)

    @cached_property
    def weights(self) -> FloatArray:
        """Return each entry's weight in the objective, shape (num_entries,).

        It is that of all groups of the entry together: of their RMSE if the objective is rooted, else of their MSE.
        """
        multiplicities = self.pairs.multiplicities
        return self.parameters.compute_group_weights(self.totals, multiplicities) * multiplicities

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list, or in the data if groups are selected privately."""
        return self.pairs.num_groups

    def sum_by_group(self, pair_amounts: FloatArray) -> FloatArray:
        """Add up the amounts of each group's pairs, shape (num_entries,)."""
        return np.bincount(self.pairs.group_codes, pair_amounts, self.pairs.num_entries).astype(np.float64)

    def combine_errors(self, mean_squares: FloatArray) -> float:
        """Return the objective, one number, at these mean squared errors of the groups, shape (num_entries,)."""
        return self.parameters.combine_errors(mean_squares, self.weights)

    @cached_property
    def error_of_nothing(self) -> float:
        """Return the objective if 0 is published for every group, or the middle of the range for a mean."""
        if self.parameters.statistic is Statistic.MEAN:
            return self.combine_errors(self.centred_means**2)
        return self.combine_errors(self.totals**2)

    @cached_property
    def range_middle(self) -> float:
        """Return the middle of the range of a mean's values."""
        lower, upper = self.parameters.mean_range
        return (lower + upper) / 2.0

    @cached_property
    def centred_means(self) -> FloatArray:
        """Return every group's true mean less the middle of the range, shape (num_entries,); 0 without rows."""
        assert self.pairs.sums is not None
        centred_sums = self.sum_by_group(self.pairs.sums - self.range_middle * self.pairs.rows)
        return centred_sums / np.maximum(self.totals, 1.0)
