"""The noise of one release, as its program reports it beside the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dpcore.code.release_spec import GROUP_QUANTITIES, SPREAD_QUANTITIES, Quantity, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS, DrawnNoise, Program, find_noise

COVERAGE = 0.95
_COUNT_QUANTITIES = (Quantity.COUNT, Quantity.GROUP_COUNTS, Quantity.GROUP_ROWS)
_NOISY_QUANTITIES = (
    *_COUNT_QUANTITIES,
    Quantity.SUM,
    Quantity.MEAN,
    *SPREAD_QUANTITIES,
    Quantity.GROUP_SUMS,
    Quantity.GROUP_MEANS,
)
"""Releases of numbers whose noise their program reports."""


@dataclass(frozen=True)
class ReleaseNoise:
    """The noise on each released number.

    Attributes:
        deviation: Its standard deviation, in the unit of the number; of a mean that of each noisy sum,
            and of a variance, whose sums count rows.
        half_width: The noise is within this in 95 of 100 runs.
        row_count_deviation: That of the number of rows of a mean if it has noise of its own; else 0.
    """

    deviation: float
    half_width: float
    row_count_deviation: float = 0.0

    @property
    def half_width_in_deviations(self) -> float:
        """Return the half-width divided by the standard deviation."""
        return self.half_width / self.deviation


def compute_sensitivity(spec: ReleaseSpec, noise_kind: NoiseKind) -> float:
    """Compute by how much one user changes what gets noise: in L1 for Laplace noise, in L2 for Gaussian."""
    if spec.max_norm is not None:
        return spec.max_norm
    max_groups = float(spec.max_groups or 1)
    sensitivity_in_groups = max_groups if noise_kind is NoiseKind.LAPLACE else math.sqrt(max_groups)
    max_amount_in_group = 1.0 if spec.max_rows is None else float(spec.max_rows)
    if spec.max_total is not None:
        max_amount_in_group = max(abs(spec.min_total), abs(spec.max_total))
    if spec.threshold is not None:
        max_amount_in_group = spec.threshold
    if spec.quantity in (Quantity.MEAN, Quantity.GROUP_MEANS):
        max_amount_in_group *= (spec.upper or 0.0) - (spec.lower or 0.0)
    return sensitivity_in_groups * max_amount_in_group


def has_whole_numbers(spec: ReleaseSpec) -> bool:
    """Return True if the release counts users or rows, without a bound on a norm: then its noise may be whole."""
    return spec.quantity in _COUNT_QUANTITIES and spec.max_norm is None


def count_aggregates(spec: ReleaseSpec) -> int:
    """Return the number of noisy numbers of a release, or of each group: 2 for a mean with private counts, else 1."""
    is_of_two_numbers = spec.quantity is Quantity.MEAN and not spec.has_public_counts
    return 2 if is_of_two_numbers or spec.quantity is Quantity.GROUP_MEANS else 1


def protect_replaced_user(spec: ReleaseSpec, library: Program) -> ReleaseSpec:
    """Return a release per group, for replacing users, with an add-or-remove epsilon of as much noise.

    Other releases are returned unchanged. A replacement moves a release per group further than a removal: twice in L1
    and sqrt 2 times in L2, as two users without a common group differ most. If amounts may have any sign, it is twice
    in L2 too. A library, which protects a user added or removed, draws noise for that at a smaller epsilon, by its
    own relation of the two.
    """
    is_converted = spec.replacement_epsilon is not None
    if (
        spec.neighbours is not Neighbours.REPLACE_USER
        or spec.quantity not in GROUP_QUANTITIES
        or is_converted
    ):
        return spec
    epsilon = spec.epsilon
    program_epsilon, factor = epsilon / 2.0, 2.0 if spec.min_total < 0.0 else math.sqrt(2.0)
    if spec.noise is NoiseKind.GAUSSIAN and library is not Program.BIGQUERY:
        from scipy.optimize import brentq

        target_scale = factor * find_noise(library, spec.noise, epsilon, spec.delta).unit_scale

        def find_log_ratio(trial_epsilon: float) -> float:
            """Return the logarithm of (noise scale at an epsilon / wanted scale)."""
            trial_noise = find_noise(library, spec.noise, trial_epsilon, spec.delta)
            return math.log(trial_noise.unit_scale / target_scale)

        # The scale falls at least as the root of epsilon. The result is rounded to the safe side.
        program_epsilon = brentq(find_log_ratio, epsilon / (2.0 * factor**2), epsilon, rtol=1e-11) * (
            1.0 - 1e-10
        )
    return replace(spec, epsilon=float(program_epsilon), replacement_epsilon=epsilon)


def find_release_noise(
    spec: ReleaseSpec, program: Program, noise: DrawnNoise | None = None, rows_noise: DrawnNoise | None = None
) -> ReleaseNoise | None:
    """Find the noise on the numbers that a program releases.

    None for quantiles, models and weights, whose programs report none.

    Args:
        spec: The release.
        program: The program.
        noise: Its noise at sensitivity 1, if it is not that of the release's own budget.
        rows_noise: The noise at sensitivity 1 of a count under the same bound, if a mean divides a sum around the
            middle of its range by that.
    """
    if spec.quantity not in _NOISY_QUANTITIES:
        return None
    is_of_two_numbers = count_aggregates(spec) == 2
    splits_budget = is_of_two_numbers and program in MEAN_SPLITTING_PROGRAMS
    count_options: dict[str, Any] = {"is_of_counts": has_whole_numbers(spec)}
    count_options["num_aggregates"] = count_aggregates(spec)
    noise = noise or find_noise(program, spec.noise, spec.epsilon, spec.delta, **count_options)
    sensitivity = compute_sensitivity(spec, noise.kind)
    if rows_noise is not None:
        rows_deviation = math.sqrt(rows_noise.compute_variance(float(spec.max_rows or 0)))
        half_width = noise.find_half_width(COVERAGE, sensitivity / 2.0)
        return ReleaseNoise(math.sqrt(noise.compute_variance(sensitivity / 2.0)), half_width, rows_deviation)
    if not splits_budget:
        half_width = noise.find_half_width(COVERAGE, sensitivity)
        return ReleaseNoise(math.sqrt(noise.compute_variance(sensitivity)), half_width)
    # Half of the budget for each; BigQuery's shares are in its scale already. Half of rho is sqrt(2) sigma, half of
    # epsilon 2 b. The sum is around the middle of the range, so that it moves by half of the range.
    split_noise_factor = 2.0 if noise.kind is NoiseKind.LAPLACE else math.sqrt(2.0)
    split_noise_factor = 1.0 if program is Program.BIGQUERY else split_noise_factor
    range_width = (spec.upper or 0.0) - (spec.lower or 0.0)
    noise_deviation = split_noise_factor * math.sqrt(noise.compute_variance(sensitivity / 2.0))
    half_width = split_noise_factor * noise.find_half_width(COVERAGE, sensitivity / 2.0)
    return ReleaseNoise(noise_deviation, half_width, 2.0 * noise_deviation / range_width)
