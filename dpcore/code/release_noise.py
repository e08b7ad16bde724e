"""The noise of one release, as its program reports it beside the result."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcore.code.choice import Choice, Quantity
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import SPLITS_MEANS, Program, find_noise

COVERAGE = 0.95
_COUNTS = (Quantity.COUNT, Quantity.GROUP_COUNTS, Quantity.GROUP_ROWS)


@dataclass(frozen=True)
class ReleaseNoise:
    """The noise on each released number.

    Attributes:
        deviation: Its standard deviation, in the unit of the number; of a mean that of each noisy sum.
        half_width: It is within this in 95 of 100 runs.
        rows_deviation: That of the number of rows of a mean if it has noise of its own; else 0.
    """

    deviation: float
    half_width: float
    rows_deviation: float = 0.0

    @property
    def half_width_in_deviations(self) -> float:
        """Return the half-width in deviations; with two noises in one number it is that or less."""
        return self.half_width / self.deviation


def compute_sensitivity(choice: Choice, kind: NoiseKind) -> float:
    """Compute how far one user moves what gets noise: in L1 for Laplace noise, in L2 for Gaussian noise."""
    if choice.max_norm is not None:
        return choice.max_norm
    groups = float(choice.max_groups or 1)
    groups = groups if kind is NoiseKind.LAPLACE else math.sqrt(groups)
    amount = 1.0 if choice.max_rows is None else float(choice.max_rows)
    if choice.max_total is not None:
        amount = max(abs(choice.min_total), abs(choice.max_total))
    if choice.threshold is not None:
        amount = choice.threshold
    if choice.quantity in (Quantity.MEAN, Quantity.GROUP_MEANS):
        amount *= (choice.upper or 0.0) - (choice.lower or 0.0)
    return groups * amount


def find_release_noise(choice: Choice, program: Program) -> ReleaseNoise | None:
    """Find the noise of a release by its program; None for quantiles, models and weights, which report none."""
    if choice.quantity not in (
        *_COUNTS,
        Quantity.SUM,
        Quantity.MEAN,
        Quantity.GROUP_SUMS,
        Quantity.GROUP_MEANS,
    ):
        return None
    is_ratio = choice.quantity is Quantity.GROUP_MEANS or (
        choice.quantity is Quantity.MEAN and not choice.public_counts
    )
    is_split = is_ratio and program in SPLITS_MEANS
    noise = find_noise(
        program,
        choice.noise,
        choice.epsilon,
        choice.delta,
        of_counts=choice.quantity in _COUNTS and choice.max_norm is None,
        num_aggregates=2 if is_ratio else 1,
    )
    sensitivity = compute_sensitivity(choice, noise.kind)
    if not is_split:
        return ReleaseNoise(
            math.sqrt(noise.variance(sensitivity)), noise.interval_half_width(COVERAGE, sensitivity)
        )
    # Half of the budget for each; BigQuery's shares are in its scale already. Half of rho is sqrt(2) sigma, half of
    # epsilon 2 b. The sum is around the middle of the range, so that it moves by half of the range.
    factor = 2.0 if noise.kind is NoiseKind.LAPLACE else math.sqrt(2.0)
    factor = 1.0 if program is Program.BIGQUERY else factor
    width = (choice.upper or 0.0) - (choice.lower or 0.0)
    deviation = factor * math.sqrt(noise.variance(sensitivity / 2.0))
    half_width = factor * noise.interval_half_width(COVERAGE, sensitivity / 2.0)
    return ReleaseNoise(deviation, half_width, 2.0 * deviation / width)
