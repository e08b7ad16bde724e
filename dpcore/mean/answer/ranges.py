"""Which range [L, U] the values at hand ask for: what is found, as figures and in words. As private as the values.

The error here counts what clamping cuts off and what weighing shifts without letting them cancel, and takes smooth
weights (`dpcore.mean.value_range`). The exact error has a minimum that is no answer and is never offered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.answer import Axis, Curve, Item, Mark, Plot, Scale, Style
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import value_range
from dpcore.mean.answer.found import MeanSolution
from dpcore.mean.answer.plots import add_setting
from dpcore.mean.answer.words import UNIT
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.value_range import RangeChoice, RangeParts, ValueRangeProblem, WeightedRows

POINTS = 120
"""Ends of a curve."""
MAX_VALUE = 1e100
"""Size of values up to which a range is looked for."""
_SPAN = 1e-4
"""Narrowest range that is drawn, over the widest."""
PRIVATE_COUNTS = (
    " With private counts the noise is the most that it can be, which it is for a mean at L or U."
)
SEPARATE = "Clamping and bounding are counted without cancelling, noise as its standard deviation."


@dataclass(frozen=True, eq=False)
class Ranges:
    """What is found for given L and U, at one bound.

    Attributes:
        of: The rows at that bound, with smooth weights.
        lower: L in use, in the values' unit.
        upper: U in use.
        both: The best range at this bound.
        upper_only: The best U for the L in use; None where no value lies above it.
        private_counts: Whether contribution counts are private too.
        rule: (L, U) beyond which lies, at either end, the weight of 1 / epsilon users at the bound: best where the mean
            size of the noise counts in the place of its standard deviation.
    """

    rows: WeightedRows
    lower: float
    upper: float
    best_range: RangeChoice
    best_upper: RangeChoice | None
    has_private_counts: bool
    equal_tails: tuple[float, float]

    @property
    def error_parts(self) -> RangeParts:
        """Return the error of the range in use, in its parts."""
        return self.rows.error_parts(self.lower, self.upper)

    @property
    def users_beyond(self) -> float:
        """Return how many users at the bound weigh as much as the rows above the U of the best range."""
        largest = self.rows.noise * self.rows.problem.epsilon / math.sqrt(2.0)
        return self.rows.weight_above(self.best_range.upper - self.rows.problem.mean) / largest


def has_range_choice(data: Dataset) -> bool:
    """Return True if there are values, not all the same, whose squares are numbers."""
    if data.values is None:
        return False
    low, high = float(data.values.values.min()), float(data.values.values.max())
    return low < high and max(-low, high) <= MAX_VALUE


def choose_ranges(data: Dataset, solution: MeanSolution, parameters: MeanParameters) -> Ranges:
    """Return the best ranges at the bound of the best smooth weights, for data on which they are `offered`."""
    assert data.values is not None
    problem = ValueRangeProblem(data.values, parameters.epsilon)
    rows, best_upper = WeightedRows(problem, max(solution.smooth.threshold, 1.0)), None
    if float(data.values.values.max()) > parameters.lower:
        best_upper = value_range.best_range(problem, rows.threshold, parameters.lower)
    # The largest weight of a user is noise * epsilon / sqrt(2); 1 / epsilon users weigh that over epsilon.
    low, high = rows.range_at_quantile(min(rows.noise / math.sqrt(2.0), 0.5), None)
    return Ranges(
        rows,
        parameters.lower,
        parameters.upper,
        value_range.best_range(problem, rows.threshold),
        best_upper,
        solution.has_private_counts,
        (low + problem.mean, high + problem.mean),
    )


def is_usable(problem: ValueRangeProblem, choice: RangeChoice) -> bool:
    """Return True if a release can use a range: it is wider than nothing, and half of the weight lies within it.

    Where noise is very large a single value would be best, which publishes the middle of the values as a bound.
    """
    if not choice.upper - choice.lower > 1e-9 * max(abs(choice.lower), abs(choice.upper)):
        return False
    rows = WeightedRows(problem, choice.threshold)
    return (
        rows.weight_above(choice.upper - problem.mean) + rows.weight_below(choice.lower - problem.mean) <= 0.5
    )


def round_outward(choice: RangeChoice) -> tuple[float, float]:
    """Return the range with ends rounded outward, to a hundredth of its width or somewhat more."""
    step = 10.0 ** math.floor(math.log10(choice.upper - choice.lower) - 2.0)
    low, high = math.floor(choice.lower / step) * step, math.ceil(choice.upper / step) * step
    # A multiple of 0.01 has digits behind the second only by rounding.
    digits = max(-math.floor(math.log10(step)), 0)
    return round(low, digits), round(high, digits)


def plot_upper(ranges: Ranges, dataset: Dataset) -> Plot:
    """Plot the error over U at the L in use."""
    values = ranges.rows.problem.values.values
    largest = max(float(values.max()), ranges.upper, ranges.lower + 1e-9 * max(abs(ranges.lower), 1.0))
    smallest = min(max(ranges.lower, float(np.median(values))), largest)
    ends = _choose_ends(ranges.lower, smallest, largest, ranges.upper, ranges.best_upper)
    best = ranges.best_upper
    if best is not None and not is_usable(ranges.rows.problem, best):
        best = None
    return _plot("upper", ends, ranges.rows.error_parts(ranges.lower, ends), ranges, dataset, best)


def plot_lower(ranges: Ranges, dataset: Dataset) -> Plot:
    """Plot the error over L at the U in use."""
    values, upper = ranges.rows.problem.values.values, ranges.upper
    # The same seen from above: distances from U.
    largest = max(upper - min(float(values.min()), ranges.lower), 1e-9 * max(abs(upper), 1.0))
    smallest = min(max(upper - float(np.median(values)), _SPAN * largest), largest)
    ends = _choose_ends(-upper, -upper + smallest, -upper + largest, -ranges.lower, None)
    ends = 0.0 - ends[::-1]  # No −0.
    return _plot("lower", ends, ranges.rows.error_parts(ends, upper), ranges, dataset, None)


def _choose_ends(
    fixed_end: float, smallest: float, largest: float, current: float, best: RangeChoice | None
) -> FloatArray:
    """Choose ends to plot, their distances from the fixed one log-spaced, with the current and the best one."""
    widest = largest - fixed_end
    narrowest = max(smallest - fixed_end, _SPAN * widest)
    more_ends = [] if best is None else [best.upper]
    spaced_ends = fixed_end + np.geomspace(narrowest, widest, POINTS)
    ends = np.concatenate((spaced_ends, [current], more_ends))
    return np.unique(ends[ends > fixed_end])


def _plot(
    side: str,
    ends: FloatArray,
    error_parts: RangeParts,
    ranges: Ranges,
    dataset: Dataset,
    best: RangeChoice | None,
) -> Plot:
    """Plot the error over one end of the range; ``side`` is upper or lower."""
    end, other_end, current = ("U", "L", ranges.upper) if side == "upper" else ("L", "U", ranges.lower)
    columns = {
        side: ends,
        "error": error_parts.error,
        "clamping": error_parts.clamping,
        "bounding": error_parts.bounding,
        "noise": error_parts.noise,
    }
    error = float(ranges.error_parts.error)
    items: list[Item] = [
        Curve("Together", ends, error_parts.error, Style.TOTAL),
        Curve("Clamping", ends, error_parts.clamping, Style.BIAS),
        Curve("Bounding", ends, error_parts.bounding, Style.SAMPLING),
        Curve("Noise", ends, error_parts.noise, Style.PRIVACY),
        Mark(f"{end} in use", current, error, Style.ENTERED, "square"),
    ]
    alt = f"The error over {end}, with {other_end} as entered and the bound of the best smooth weights."
    if best is not None:
        items.append(Mark("Best U", best.upper, best.error, Style.TOTAL))
        alt = (
            f"With L as entered the error is least at U = {wording.number(best.upper)}, {wording.number(best.error)}; "
            f"in use it is {wording.number(error)}. {best.certificate.sentence}"
        )
    low, high = float(ends[0]), float(ends[-1])
    limits = low, high if high > low else low + max(abs(low), 1.0)
    scale = Scale.LOG if low > 0.0 and high > 20.0 * low else Scale.LINEAR
    max_error = 1.5 * max(float(error_parts.error.max()), error)
    return Plot(
        f"mean-range-{side}",
        f"Error over {end}",
        f"{alt} {SEPARATE}",
        Axis(end, UNIT, limits, scale, number_format=",.3~g"),
        Axis("error without cancelling", UNIT, (max_error / 1e4, max_error)),
        items,
        dataset.provenance,
        add_setting(columns, ranges.has_private_counts),
    )


def build_table(ranges: Ranges, joint: RangeChoice | None) -> dict[str, list[object]]:
    """Return the range in use beside the best ones, a line each."""
    error_parts = ranges.error_parts
    current = RangeChoice(
        ranges.lower,
        ranges.upper,
        ranges.rows.threshold,
        clamping=float(error_parts.clamping),
        bounding=float(error_parts.bounding),
        noise=float(error_parts.noise),
        error=float(error_parts.error),
        certificate=ranges.best_range.certificate,
    )
    lines = [
        ("In use", current),
        ("Best U for this L", ranges.best_upper),
        ("Best range at this bound", ranges.best_range),
        ("Best range and bound", joint),
    ]
    problem = ranges.rows.problem
    choices = [(name, choice) for name, choice in lines if choice is not None and is_usable(problem, choice)]
    format_number = wording.number
    return {
        "": [name for name, _ in choices],
        "L": [format_number(one.lower) for _, one in choices],
        "U": [format_number(one.upper) for _, one in choices],
        "Bound, rows": [format_number(one.threshold) for _, one in choices],
        "Clamping": [format_number(one.clamping) for _, one in choices],
        "Bounding": [format_number(one.bounding) for _, one in choices],
        "Noise": [format_number(one.noise) for _, one in choices],
        "Error": [format_number(one.error) for _, one in choices],
    }


def describe_ranges(ranges: Ranges, joint: RangeChoice | None) -> list[str]:
    """Return what the range costs, the rule of equal tails, and what is proved; a sentence or two each."""
    rows, number = ranges.rows, wording.number
    error_parts = ranges.error_parts
    sentences = [
        f"The range in use costs {number(float(error_parts.error))}: clamping {number(float(error_parts.clamping))}, "
        f"bounding {number(float(error_parts.bounding))}, noise {number(float(error_parts.noise))}, at the bound of "
        f"the best smooth weights, {number(rows.threshold)}. "
        f"{SEPARATE}{PRIVATE_COUNTS if ranges.has_private_counts else ''}"
    ]
    low, high = ranges.equal_tails
    epsilon = rows.problem.epsilon
    users = f"1/ε = {number(1.0 / epsilon)} {'user' if epsilon == 1.0 else 'users'} at the bound"
    sentences.append(
        f"**Equal tails**, a simple rule: the rows above U together weigh as much as {users}, and so do the rows below "
        f"L. That gives L = {number(low)} and U = {number(high)}. By the mean size of the noise, cutting more costs "
        f"more than it saves. By the root mean square, as the errors here, the best range cuts off "
        f"{number(ranges.users_beyond)} such users at each end."
    )
    if not is_usable(ranges.rows.problem, ranges.best_range):
        sentences.append(
            "At this ε no range of these values pays: the best would be next to a single value, which publishes the "
            "middle of the values as a bound. Take a range from knowledge, or more ε."
        )
        return sentences
    sentences.append(f"**Best range at this bound:** {ranges.best_range.certificate.sentence}")
    if joint is not None:
        sentences.append(f"**Best range and bound:** {joint.certificate.sentence}")
    return sentences
