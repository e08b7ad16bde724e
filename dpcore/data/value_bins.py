"""Public bins in which an engine counts the values of each user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.wording import format_count, format_entered, format_number
from dpcore.contributions import FloatArray
from dpcore.data.cell_numbers import MAX_NUMBER

MAX_BINS = 10_000
_SMALLEST_WIDTH = 1e-9
"""Least width of a bin, as a share of the largest edge: rounding moves no value by as much."""


@dataclass(frozen=True)
class ValueBins:
    """Bins of equal width in a public range, each without its upper edge; further bins hold all below and all above.

    Attributes:
        lower: Lowest edge, in the values' unit.
        upper: Highest edge.
        num_bins: Number of bins between them.

    Raises:
        InvalidInput: The edges are not in order or too large, or the number of bins is out of its range.
    """

    lower: float
    upper: float
    num_bins: int

    def __post_init__(self) -> None:
        with Problems() as problems:
            edges_by_phrase = {"the lowest edge of the bins": self.lower, "the highest edge": self.upper}
            are_valid = problems.ascending(**edges_by_phrase)
            are_valid &= problems.between(-MAX_NUMBER, MAX_NUMBER, **edges_by_phrase)
            are_valid &= problems.whole(1, MAX_BINS, **{"the number of bins": self.num_bins})
            if are_valid and self.width < _SMALLEST_WIDTH * max(abs(self.lower), abs(self.upper)):
                problems.add("the bins are too narrow for their edges", remedy="Take fewer bins")
        object.__setattr__(self, "num_bins", int(self.num_bins))

    @property
    def width(self) -> float:
        """Return the width of a bin, in the values' unit."""
        return (self.upper - self.lower) / self.num_bins

    def find_room(self, values: FloatArray) -> FloatArray:
        """Return the distance of each value to the nearer edge of its bin, shape of ``values``; 0 outside the bins."""
        positions = (values - self.lower) / self.width
        distances = np.minimum(positions - np.floor(positions), np.ceil(positions) - positions)
        return np.where((positions < 0.0) | (positions > self.num_bins), 0.0, distances * self.width)

    @property
    def text(self) -> str:
        """Return the bins as text, such as ``50 bins of width 2 from 0 to 100``."""
        low_text, high_text, width_text = map(format_entered, (self.lower, self.upper, self.width))
        return f"{format_count(self.num_bins, 'bin')} of width {width_text} from {low_text} to {high_text}"

    def describe_error(self, is_quantile: bool = False) -> str:
        """Write what a mean, or a quantile, of binned values is off by: a sentence without its full stop."""
        # A user's values in a bin [a, b] have the mean m. If U lies in it, the mean of min(y, U) falls short of
        # min(m, U) by at most (U - a) (b - U) / (b - a), reached with all values at a and b. Values count as clamped if
        # m lies beyond U, and else as they are, which is off by less than 0.39 (b - a) in root mean square.
        quarter_text, width_text = format_number(self.width / 4.0), format_number(self.width)
        error_text = (
            f"If L and U are edges of bins, means and variances are exact. If not, means are off by at most "
            f"{quarter_text}, and standard deviations by at most {width_text}"
        )
        if is_quantile:
            error_text = (
                "The ranks of edges are exact. Within a bin the rows of a user are spread around their mean"
            )
        return f"Values were counted in {self.text}. {error_text}"

    def refuse_range(self, lower: float, upper: float, min_mean: float, max_mean: float) -> None:
        """Raise InvalidInput if a range and values reach beyond the bins on one side.

        Args:
            lower: L of the range.
            upper: U.
            min_mean: Least mean of a user's values in a bin.
            max_mean: Largest such mean.
        """
        if (lower < self.lower and min_mean < self.lower) or (upper > self.upper and max_mean > self.upper):
            lowest_edge_text, highest_edge_text = format_entered(self.lower), format_entered(self.upper)
            raise refuse(
                f"values were counted in bins from {lowest_edge_text} to {highest_edge_text}, and this range "
                "reaches beyond them",
                remedy="Enter a range within the bins, or count again with other ones",
            )
