"""The best range [L, U] for the values of a table, as plots and sentences. As private as the values.

The error adds the bias of clamping and the bias of weighting without letting them cancel, under smooth weights
(`dpcore.mean.value_range`). The exact error is smallest for a range that would reveal the mean, so it is not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Mark, Plot, Scale, Style
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import value_range
from dpcore.mean.answer.found import MeanSolution
from dpcore.mean.answer.plots import labelled
from dpcore.mean.answer.words import UNIT
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.value_range import RangeChoice, RangeParts, ValueRangeProblem, WeightedRows

POINTS = 120
"""Candidate ends on a curve."""
MAX_VALUE = 1e100
"""Largest magnitude of values for which a range is computed."""
_SPAN = 1e-4
"""Width of the narrowest plotted range, relative to the widest."""
PRIVATE_COUNTS = (
    " With private counts the noise is the most that it can be, which it is for a mean at L or U."
)
SEPARATE = "Clamping and bounding are counted without cancelling, noise as its standard deviation."


@dataclass(frozen=True, eq=False)
class Ranges:
    """The best ranges at one bound, beside the range in use.

    Attributes:
        rows: The rows with their smooth weights at that bound.
        lower: L in use, in the values' unit.
        upper: U in use.
        best_range: The best range at this bound.
        best_upper: The best range with the L in use; None if no value lies above that L.
        has_private_counts: True if contribution counts are private too.
        equal_tails: (L, U) of equal tails: beyond each end lies the weight of 1 / epsilon users at the bound. This
            range is optimal if noise is measured by its mean size, not by its standard deviation.
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
        """Return the weight of the rows above the best U, in users at the bound."""
        largest = self.rows.noise * self.rows.problem.epsilon / math.sqrt(2.0)
        return self.rows.weight_above(self.best_range.upper - self.rows.problem.mean) / largest


def has_range_choice(data: Dataset) -> bool:
    """Return True if the data have values that are not all equal and whose squares stay finite."""
    if data.values is None:
        return False
    low, high = float(data.values.values.min()), float(data.values.values.max())
    return low < high and max(-low, high) <= MAX_VALUE


def choose_ranges(data: Dataset, solution: MeanSolution, parameters: MeanParameters) -> Ranges:
    """Compute the best ranges at the bound of the best smooth weights; requires `has_range_choice`."""
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
    """Return True if a range can be used for a release: its width is positive and it holds half of the weight.

    With very large noise a single value would be best. Such a range would reveal the middle of the values.
    """
    if not choice.upper - choice.lower > 1e-9 * max(abs(choice.lower), abs(choice.upper)):
        return False
    rows = WeightedRows(problem, choice.threshold)
    return (
        rows.weight_above(choice.upper - problem.mean) + rows.weight_below(choice.lower - problem.mean) <= 0.5
    )


def round_outward(choice: RangeChoice) -> tuple[float, float]:
    """Return the range with both ends rounded outward, to a power of ten near a hundredth of its width."""
    step = 10.0 ** math.floor(math.log10(choice.upper - choice.lower) - 2.0)
    low, high = math.floor(choice.lower / step) * step, math.ceil(choice.upper / step) * step
    # A multiple of 0.01 has digits behind the second only by rounding.
    digits = max(-math.floor(math.log10(step)), 0)
    return round(low, digits), round(high, digits)


def plot_over_upper(ranges: Ranges, data: Dataset) -> Plot:
    """Plot the error over U at the L in use."""
    lowest = max(ranges.lower, float(np.median(ranges.rows.problem.values.values)))
    highest = max(float(ranges.rows.problem.values.values.max()), ranges.upper)
    highest = max(highest, ranges.lower + 1e-9 * max(abs(ranges.lower), 1.0))
    ends = _candidate_ends(ranges.lower, min(lowest, highest), highest, ranges.upper, ranges.best_upper)
    error_parts = ranges.rows.error_parts(ranges.lower, ends)
    best = (
        ranges.best_upper
        if ranges.best_upper is not None and is_usable(ranges.rows.problem, ranges.best_upper)
        else None
    )
    marks = [] if best is None else [("Best U", best.upper, best.error, Style.TOTAL, "diamond")]
    return _plot_errors(
        "mean-range-upper",
        "Error over U",
        "U",
        "upper",
        ends,
        error_parts,
        ranges,
        data,
        ranges.upper,
        marks,
        best,
    )


def plot_over_lower(ranges: Ranges, data: Dataset) -> Plot:
    """Plot the error over L at the U in use."""
    values = ranges.rows.problem.values.values
    # As for U, with distances measured from U downward.
    widest = max(ranges.upper - min(float(values.min()), ranges.lower), 1e-9 * max(abs(ranges.upper), 1.0))
    narrowest = min(max(ranges.upper - float(np.median(values)), _SPAN * widest), widest)
    ends = _candidate_ends(
        -ranges.upper, -ranges.upper + narrowest, -ranges.upper + widest, -ranges.lower, None
    )
    ends = 0.0 - ends[::-1]  # No −0.
    error_parts = ranges.rows.error_parts(ends, ranges.upper)
    return _plot_errors(
        "mean-range-lower",
        "Error over L",
        "L",
        "lower",
        ends,
        error_parts,
        ranges,
        data,
        ranges.lower,
        [],
        None,
    )


def _candidate_ends(
    fixed: float, lowest: float, highest: float, current: float, best: RangeChoice | None
) -> FloatArray:
    """Return candidate ends from ``lowest`` to ``highest``, log-spaced by their distance above the fixed end."""
    widest = highest - fixed
    narrow = max(lowest - fixed, _SPAN * widest)
    best_ends = [] if best is None else [best.upper]
    ends = np.concatenate((fixed + np.geomspace(narrow, widest, POINTS), [current], best_ends))
    return np.unique(ends[ends > fixed])


def _plot_errors(
    key: str,
    title: str,
    end: str,
    column: str,
    ends: FloatArray,
    error_parts: RangeParts,
    ranges: Ranges,
    data: Dataset,
    current: float,
    marks: list[tuple[str, float, float, Style, str]],
    best: RangeChoice | None,
) -> Plot:
    columns: dict[str, npt.ArrayLike] = {
        column: ends,
        "error": error_parts.error,
        "clamping": error_parts.clamping,
        "bounding": error_parts.bounding,
        "noise": error_parts.noise,
    }
    error = float(ranges.error_parts.error)
    items: list[Item] = [
        Curve("Together", column, "error", Style.TOTAL),
        Curve("Clamping", column, "clamping", Style.BIAS),
        Curve("Bounding", column, "bounding", Style.SAMPLING),
        Curve("Noise", column, "noise", Style.PRIVACY),
        Mark(f"{end} in use", current, error, Style.ENTERED, "square"),
        *(Mark(*mark) for mark in marks),
    ]
    fixed_end = "L" if end == "U" else "U"
    sentence = f"The error over {end}, with {fixed_end} as entered and the bound of the best smooth weights."
    if best is not None:
        sentence = (
            f"With L as entered the error is least at U = {wording.number(best.upper)}, {wording.number(best.error)}; "
            f"in use it is {wording.number(error)}. {best.certificate.sentence}"
        )
    highest = 1.5 * max(float(error_parts.error.max()), error)
    scale = Scale.LOG if ends[0] > 0.0 and ends[-1] > 20.0 * ends[0] else Scale.LINEAR
    return Plot(
        key,
        title,
        f"{sentence} {SEPARATE}",
        Axis(end, UNIT, _limits(ends), scale, number_format=",.3~g"),
        Axis("error without cancelling", UNIT, (highest / 1e4, highest)),
        labelled(columns, ranges.has_private_counts),
        tuple(items),
        data.provenance,
    )


def _limits(ends: FloatArray) -> tuple[float, float]:
    low, high = float(ends[0]), float(ends[-1])
    return low, high if high > low else low + max(abs(low), 1.0)


def build_table(ranges: Ranges, joint: RangeChoice | None) -> dict[str, list[object]]:
    """Build the table of the range in use and the best ranges, one row each."""
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
    choices = [
        (name, choice)
        for name, choice in lines
        if choice is not None and is_usable(ranges.rows.problem, choice)
    ]
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
    """Describe the error of the range in use, the rule of equal tails, and the certificates."""
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
