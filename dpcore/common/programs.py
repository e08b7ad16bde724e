"""The noise that the programs draw: what each library makes of epsilon and delta.

Error models and the templates of `dpcore.code` both read it, so that the number on a page is that of the program.
Checked against OpenDP 0.16.0, PipelineDP 0.3.1 and Tumult Analytics 0.21.0, which the tests run, and against the source
of ZetaSQL, whose privacy clause BigQuery has; nobody ran BigQuery.

| | Laplace | Gaussian | counts |
|---|---|---|---|
| OpenDP, Tumult | b = 1 / epsilon | sigma by way of zero-concentrated DP | whole noise |
| PipelineDP, plain Python | b = 1 / epsilon | exact sigma | real noise |
| BigQuery | b = (aggregates + 1) / epsilon | draws Laplace noise | rounded |
"""

from __future__ import annotations

import enum
import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common import mechanisms, noise_error
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.wording import format_percent
from dpcore.contributions import FloatArray


class Program(enum.Enum):
    """The program whose noise an error is of, or the least noise known (`BEST`); its value is its name for people."""

    OPENDP = "OpenDP"
    PIPELINEDP = "PipelineDP"
    TUMULT = "Tumult"
    BIGQUERY = "BigQuery"
    PYTHON = "plain Python"
    BEST = "best known mechanism"


MEAN_SPLITTING_PROGRAMS = (Program.PIPELINEDP, Program.TUMULT, Program.BIGQUERY)
"""Programs that divide the budget of a mean between a sum around the middle of the range and the number of rows. The
others release two sums with one budget."""
LARGEST_GAIN = 1.0 / math.sqrt(6.0)
"""Largest reduction of E|a + noise| and E|noise| by whole noise, against noise of real numbers at the same scale. The
square of it is the largest reduction of variances. Laplace noise of scale b gains b - 1 / sinh(1 / b) in E|noise|
and 2 b^2 - 1 / (2 sinh(1 / 2b)^2) in the variance. A discrete Gaussian gains less."""
_WHOLE_COUNT_PROGRAMS = (Program.OPENDP, Program.TUMULT, Program.BEST)
"""They draw whole noise for users and rows."""
_PIPELINEDP_EXCESS = 5e-4
"""PipelineDP stops its search for sigma at 0.1 %; measured, it draws up to 0.05 % more than the exact noise."""


@dataclass(frozen=True)
class DrawnNoise:
    """The noise that a program adds to a number.

    Attributes:
        kind: Laplace or Gaussian.
        unit_scale: Its scale (b or sigma) at sensitivity 1.
        is_discrete: True if it is a whole number: discrete Laplace, P(z) ~ exp(-|z| / b), or discrete Gaussian,
            P(z) ~ exp(-z^2 / (2 sigma^2)).
    """

    kind: NoiseKind
    unit_scale: float
    is_discrete: bool = False

    def compute_variance(self, sensitivity: npt.ArrayLike) -> FloatArray:
        """Compute the variance of the noise at these sensitivities, same shape.

        Source: Canonne, Kamath, Steinke 2020, section 2, for the discrete laws.
        """
        scales = self.unit_scale * np.asarray(sensitivity, dtype=np.float64)
        if not self.is_discrete:
            return np.asarray(self.kind.unit_variance * scales**2)
        if self.kind is NoiseKind.LAPLACE:
            # 2 p / (1 - p)^2 at p = e^(-1/b), which is 2 b^2 - 1/6 + O(1 / b^2).
            return np.asarray(0.5 / np.sinh(_halve_inverse(scales)) ** 2)
        # Beyond 3 the variance is that of a Gaussian to all digits of float64.
        values, sigmas = np.arange(-30.0, 31.0), np.clip(scales, 1e-3, 3.0)[..., None]
        weights = np.exp(-0.5 * (values / sigmas) ** 2)
        return np.where(scales > 3.0, scales**2, (values**2 * weights).sum(axis=-1) / weights.sum(axis=-1))

    def compute_mean_magnitude(self, sensitivity: npt.ArrayLike) -> FloatArray:
        """Compute E|noise| at these sensitivities, same shape."""
        return self.compute_mean_absolute(0.0, sensitivity)

    def compute_mean_absolute(self, shift: npt.ArrayLike, sensitivity: npt.ArrayLike) -> FloatArray:
        """Compute E|a + noise| at shifts a >= 0; with discrete noise a is a whole number."""
        a = np.asarray(shift, dtype=np.float64)
        a, scales = np.broadcast_arrays(a, self.unit_scale * np.asarray(sensitivity, dtype=np.float64))
        if not self.is_discrete:
            return noise_error.compute_mean_absolute(self.kind, a, scales)
        if self.kind is NoiseKind.LAPLACE:
            # a + 2 E(-a - z)_+ is a + 2 p^(a + 1) / (1 - p^2) at p = e^(-1/b).
            half_inverse = _halve_inverse(scales)
            tail_powers = np.exp(-np.minimum(2.0 * a * half_inverse, 700.0))
            return np.asarray(a + tail_powers / np.sinh(2.0 * half_inverse))
        return _compute_gaussian_magnitudes(scales, a)

    def measure_error(self, measure: Measure, shift: npt.ArrayLike, sensitivity: npt.ArrayLike) -> FloatArray:
        """Compute the error of a release with bias ``shift``, by one measure."""
        a = np.asarray(shift, dtype=np.float64)
        if measure is Measure.RMSE:
            return np.hypot(a, np.sqrt(self.compute_variance(sensitivity)))
        if measure is Measure.BOUND:
            return np.asarray(a + self.compute_mean_magnitude(sensitivity))
        return self.compute_mean_absolute(a, sensitivity)

    def find_half_width(self, coverage: float, sensitivity: float) -> float:
        """Compute the smallest m with P(|noise| <= m) >= ``coverage``, which is in [0, 1)."""
        noise_scale = self.unit_scale * sensitivity
        if not self.is_discrete or noise_scale == 0.0:
            return noise_error.find_magnitude(self.kind, coverage) * noise_scale
        if self.kind is NoiseKind.LAPLACE:
            # P(|z| > m) = 2 p^(m + 1) / (1 + p).
            log_tail = math.log((1.0 - coverage) * (1.0 + math.exp(-1.0 / noise_scale)) / 2.0)
            return float(max(math.ceil(-noise_scale * log_tail - 1.0 - 1e-12), 0))
        values, probabilities = _list_gaussian(noise_scale)
        return float(values[values >= 0][np.argmax(_cumulate_magnitudes(values, probabilities) >= coverage)])


def _halve_inverse(noise_scale: FloatArray) -> FloatArray:
    """Return 1 / (2 b), limited to 350 so that its hyperbolic sine stays within float64."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(0.5 / noise_scale, 350.0))


def _list_gaussian(noise_scale: float) -> tuple[FloatArray, FloatArray]:
    """Return (whole numbers within 40 deviations, their probabilities under a discrete Gaussian)."""
    max_magnitude = math.ceil(40.0 * noise_scale) + 1
    whole_numbers = np.arange(-max_magnitude, max_magnitude + 1, dtype=np.float64)
    relative_weights = np.exp(-0.5 * (whole_numbers / noise_scale) ** 2)
    return whole_numbers, relative_weights / relative_weights.sum()


def _cumulate_magnitudes(whole_numbers: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Return P(|z| <= m) for m = 0, 1, 2 ..., from the probabilities of whole numbers around 0."""
    magnitude_probabilities = probabilities[whole_numbers >= 0].copy()
    magnitude_probabilities[1:] *= 2.0
    return np.cumsum(magnitude_probabilities)


_LARGE_SIGMA = 20.0
"""Beyond it the E|a + z| of a discrete Gaussian is that of a Gaussian to 1e-6, with the first Euler-Maclaurin term. The
kink of |a + z| at -a takes a sixth of the density there."""


def _compute_gaussian_magnitudes(noise_scales: FloatArray, shifts: FloatArray) -> FloatArray:
    """Compute E|shift + z| for a discrete Gaussian z of each scale; all shapes are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        densities = np.exp(-0.5 * (shifts / noise_scales) ** 2) / (noise_scales * math.sqrt(2.0 * math.pi))
    continuous_means = noise_error.compute_mean_absolute(NoiseKind.GAUSSIAN, shifts, noise_scales)
    means = np.where(noise_scales > _LARGE_SIGMA, continuous_means - densities / 6.0, continuous_means)
    for shift_index in map(tuple, np.argwhere((noise_scales > 0.0) & (noise_scales <= _LARGE_SIGMA))):
        whole_numbers, probabilities = _list_gaussian(float(noise_scales[shift_index]))
        means[shift_index] = float((np.abs(whole_numbers + shifts[shift_index]) * probabilities).sum())
    return means


def find_noise(
    program: Program,
    noise_kind: NoiseKind,
    epsilon: float,
    delta: float | None = None,
    *,
    is_of_counts: bool = False,
    num_aggregates: int = 1,
) -> DrawnNoise:
    """Find the noise that a program draws for a release.

    Args:
        program: The program.
        noise_kind: The noise that is asked for; BigQuery draws Laplace noise whatever it is.
        epsilon: Budget of the release, above 0.
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        is_of_counts: True if whole numbers are released: users or rows.
        num_aggregates: Aggregates of BigQuery's query, which gives each an even share and one more to a hidden count
            of users.
    """
    if program is Program.BIGQUERY:
        return DrawnNoise(NoiseKind.LAPLACE, (num_aggregates + 1.0) / epsilon)
    is_discrete = is_of_counts and program in _WHOLE_COUNT_PROGRAMS
    if noise_kind is NoiseKind.LAPLACE:
        return DrawnNoise(noise_kind, 1.0 / epsilon, is_discrete)
    assert delta is not None
    if program in (Program.OPENDP, Program.TUMULT):
        return DrawnNoise(noise_kind, math.sqrt(0.5 / convert_to_rho(epsilon, delta)), is_discrete)
    sigma = noise_error.compute_unit_scale(noise_kind, epsilon, delta)
    sigma_excess_share = _PIPELINEDP_EXCESS if program is Program.PIPELINEDP else 0.0
    # A discrete Gaussian of the exact sigma is private to less than float64 tells; no library draws it.
    return DrawnNoise(noise_kind, sigma * (1.0 + sigma_excess_share), is_discrete)


def find_share_noise(
    program: Program,
    noise_kind: NoiseKind,
    epsilon: float,
    delta: float | None = None,
    budget_share: float = 1.0,
    *,
    has_quantile: bool = False,
    is_of_counts: bool = False,
    num_aggregates: int = 1,
) -> DrawnNoise:
    """Find the noise that a program draws for one of several releases from one budget.

    With Laplace noise epsilons add up. With Gaussian noise 1 / sigma^2 at sensitivity 1 adds up, which is twice the rho
    of zero-concentrated DP; plain Python and PipelineDP account for it exactly. The exponential mechanism has no exact
    account beside Gaussian noise: a plan with a quantile is accounted for by rho.

    Args:
        program: The program.
        noise_kind: As in `find_noise`, like the other arguments.
        epsilon: Budget of all releases, above 0.
        delta: Likewise.
        budget_share: Share of the budget, in (0, 1].
        has_quantile: True if a quantile is among the releases.
        is_of_counts: True if this release is of whole numbers.
        num_aggregates: Aggregates of this release in BigQuery, which gets a query of its own.

    Source: Dong, Roth, Su 2022, corollary 3.3; Bun and Steinke 2016, lemma 2.3 and proposition 1.6.
    """
    accountant = Program.OPENDP if has_quantile and noise_kind is NoiseKind.GAUSSIAN else program
    undivided_noise = find_noise(accountant, noise_kind, epsilon, delta, num_aggregates=num_aggregates)
    scale_divisor = budget_share if undivided_noise.kind is NoiseKind.LAPLACE else math.sqrt(budget_share)
    is_discrete = is_of_counts and program in _WHOLE_COUNT_PROGRAMS
    return DrawnNoise(undivided_noise.kind, undivided_noise.unit_scale / scale_divisor, is_discrete)


def find_total_budget(
    program: Program, kind: NoiseKind, epsilon: float, delta: float | None, *, has_quantile: bool = False
) -> float:
    """Compute the budget that releases divide: epsilon, or with Gaussian noise rho = 1 / (2 sigma^2) of one release.

    It has 32 binary digits, rounded down, so that its parts of 2^20 and their sums are exact in float64. Arguments
    are those of `find_share_noise`.
    """
    undivided_noise = find_share_noise(program, kind, epsilon, delta, has_quantile=has_quantile)
    epsilon_or_rho = epsilon
    if undivided_noise.kind is NoiseKind.GAUSSIAN:
        # The search for sigma ends at 1e-9 of it: what is lost here keeps rho on its safe side.
        epsilon_or_rho = 0.5 / undivided_noise.unit_scale**2 * (1.0 - 2.0**-32)
    binary_mantissa, binary_exponent = math.frexp(epsilon_or_rho)
    return math.ldexp(math.floor(binary_mantissa * 2.0**32), binary_exponent - 32)


def choose_library(program: Program, noise_kind: NoiseKind) -> Program:
    """Return the program itself, or for the best known mechanism the library whose noise comes nearest."""
    if program is not Program.BEST:
        return program
    return Program.OPENDP if noise_kind is NoiseKind.LAPLACE else Program.PYTHON


def describe_program(
    program: Program,
    noise_kind: NoiseKind,
    epsilon: float,
    delta: float | None,
    *,
    is_of_counts: bool = False,
    num_aggregates: int = 1,
) -> str:
    """Write a phrase on the noise that a program draws, for which errors are computed.

    The arguments are those of `find_noise`, which computes the noise itself.
    """
    if program is Program.BIGQUERY:
        noise_phrase = ", whatever noise is chosen" if noise_kind is NoiseKind.GAUSSIAN else ""
        epsilon_share = {1: "half", 2: "two thirds"}[num_aggregates]
        return (
            f"Laplace, as BigQuery draws it{noise_phrase}, with {epsilon_share} of ε; the rest goes to a hidden count "
            "of users. It was read in the source of ZetaSQL; nobody ran BigQuery."
        )
    if program is Program.BEST and noise_kind is NoiseKind.GAUSSIAN and is_of_counts:
        return "exact Gaussian, in whole numbers. No library draws it; plain Python's is in real numbers."
    program = choose_library(program, noise_kind)
    if noise_kind is NoiseKind.LAPLACE or delta is None:
        return f"{noise_kind.value}, as {program.value} draws it."
    sigma = find_noise(program, noise_kind, epsilon, delta).unit_scale
    sigma_excess_share = sigma / find_exact_sigma(epsilon, delta) - 1.0
    if sigma_excess_share < 1e-3:
        return f"exact Gaussian, as {program.value} draws it."
    excess_text = format_percent(sigma_excess_share)
    return f"Gaussian, as {program.value} draws it: {excess_text} above the exact mechanism."


@functools.lru_cache(maxsize=256)
def convert_to_rho(epsilon: float, delta: float) -> float:
    """Convert (epsilon, delta) to the largest rho of zero-concentrated DP that OpenDP converts back to it.

    The noise is 6 to 8 % above that of the exact Gaussian mechanism for epsilon from 0.1 to 3.

    Args:
        epsilon: Above 0.
        delta: Strictly between 0 and 1.

    Source: Canonne, Kamath, Steinke 2020, proposition 7, by OpenDP.
    """
    scale = mechanisms.find_gaussian_scale(1, epsilon, delta)
    return mechanisms.compute_gaussian_rho(scale)


def find_exact_sigma(epsilon: float, delta: float) -> float:
    """Compute the standard deviation at which Gaussian noise on sensitivity 1 is (epsilon, delta)-DP, rounded up.

    Source: Balle and Wang 2018, theorem 8.
    """
    return noise_error.compute_unit_scale(NoiseKind.GAUSSIAN, epsilon, delta)
