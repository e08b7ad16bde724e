"""How useful a mean is, and whether smooth weights have less error than the best bound."""

from __future__ import annotations

from dpcore.answer.answer import Alternative, RelativeError
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean.answer.solution import MeanSolution
from dpcore.mean.parameters import MeanParameters

MIN_GAIN = 0.02
"""Least share of the cap's error that smooth weights must save to stand on the card."""


def find_alternative(solution: MeanSolution) -> Alternative | None:
    """Return smooth weights if they save enough error; None if not."""
    error, cap_error = solution.smooth_choice.standard_error, solution.cap_choice.standard_error
    if error > (1.0 - MIN_GAIN) * cap_error:
        return None
    bound_text = wording.number(solution.smooth_choice.threshold)
    sentence = f"Smooth weights, bound {bound_text}: error {wording.number(error)}, {wording.change(error, cap_error)}."
    return Alternative(sentence, "Smooth weights")


def measure_relative_error(
    dataset: Dataset, solution: MeanSolution, error: float, parameters: MeanParameters
) -> RelativeError:
    """Return the error over the mean; over half the range where the mean is 0, unknown or must not be read."""
    may_read = dataset.values is not None and (parameters.reads_values or not dataset.is_private)
    if may_read and solution.clamped_values is not None and (abs_mean := abs(solution.clamped_values.mean)):
        return RelativeError(error / abs_mean, "the mean")
    return RelativeError(error / (solution.problem.value_bound / 2.0), "half the range")
