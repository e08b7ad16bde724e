"""The noise of each program against sums over its law, against OpenDP's own scales, and against draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcore.common import mechanisms, programs
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.programs import DrawnNoise, Program, find_noise

SCALES = (1e-3, 0.05, 0.2, 1.0, 7.5, 49.0, 19.0, 21.0, 51.0, 400.0)


def law(noise: DrawnNoise, sensitivity: float) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers and their probabilities, by the definition."""
    scale = noise.unit_scale * sensitivity
    reach = math.ceil(60 * scale) + 3
    z = np.arange(-reach, reach + 1, dtype=float)
    exponent = np.abs(z) / scale if noise.kind is NoiseKind.LAPLACE else 0.5 * (z / scale) ** 2
    weights = np.exp(-np.minimum(exponent, 700.0))
    return z, weights / weights.sum()


@pytest.mark.parametrize("noise_kind", NoiseKind)
@pytest.mark.parametrize("scale", SCALES)
def test_moments_of_whole_noise_are_sums_over_its_law(noise_kind: NoiseKind, scale: float) -> None:
    noise = DrawnNoise(noise_kind, 1.0, is_discrete=True)
    z, probabilities = law(noise, scale)
    variance = float((z * z * probabilities).sum())
    assert float(noise.compute_variance(scale)) == pytest.approx(variance, rel=1e-9)
    assert float(noise.compute_mean_magnitude(scale)) == pytest.approx(
        float((abs(z) * probabilities).sum()), rel=1e-4
    )
    for shift in (0.0, 1.0, 4.0, 60.0):
        absolute = float((abs(shift + z) * probabilities).sum())
        assert float(noise.compute_mean_absolute(shift, scale)) == pytest.approx(absolute, rel=1e-6)
        root = math.sqrt(shift**2 + variance)
        assert float(noise.measure_error(Measure.RMSE, shift, scale)) == pytest.approx(root, rel=1e-9)
    for coverage in (0.5, 0.95, 0.999):
        half_width = noise.find_half_width(coverage, scale)
        assert probabilities[abs(z) <= half_width].sum() >= coverage - 1e-12
        assert half_width == 0.0 or probabilities[abs(z) <= half_width - 1.0].sum() < coverage


@pytest.mark.parametrize("noise_kind", NoiseKind)
def test_whole_noise_is_never_more_than_real_noise_and_hardly_less(noise_kind: NoiseKind) -> None:
    """Best bounds under whole noise rest on these limits: 1/6 for variances, 1 / sqrt(6) for magnitudes."""
    scales = np.geomspace(1e-3, 300.0, 400)
    drawn_noise, real = DrawnNoise(noise_kind, 1.0, True), DrawnNoise(noise_kind, 1.0)
    gaps = real.compute_variance(scales) - drawn_noise.compute_variance(scales)
    assert gaps.min() >= -1e-9 * 300.0**2
    assert gaps.max() <= 1.0 / 6.0 + 1e-6
    for shift in (0.0, 1.0, 5.0):
        gaps = real.compute_mean_absolute(shift, scales) - drawn_noise.compute_mean_absolute(shift, scales)
        assert gaps.min() >= -1e-9
        assert gaps.max() <= 1.0 / math.sqrt(6.0)


def test_scales_are_those_of_opendp() -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-5)):
        laplace = find_noise(Program.OPENDP, NoiseKind.LAPLACE, epsilon, is_of_counts=True)
        assert laplace.unit_scale == pytest.approx(mechanisms.find_laplace_scale(1, epsilon), rel=1e-12)
        gaussian = find_noise(Program.OPENDP, NoiseKind.GAUSSIAN, epsilon, delta, is_of_counts=True)
        assert gaussian.unit_scale == pytest.approx(
            mechanisms.find_gaussian_scale(1, epsilon, delta), rel=1e-9
        )
        exact = programs.find_exact_sigma(epsilon, delta)
        assert 1.05 < gaussian.unit_scale / exact < 1.08
        pipelinedp = find_noise(Program.PIPELINEDP, NoiseKind.GAUSSIAN, epsilon, delta, is_of_counts=True)
        assert not pipelinedp.is_discrete
        assert exact < pipelinedp.unit_scale <= 1.001 * exact
        for program in (Program.PYTHON, Program.BEST):
            assert find_noise(program, NoiseKind.GAUSSIAN, epsilon, delta).unit_scale == exact


def test_bigquery_gives_a_share_to_a_hidden_count_and_draws_laplace_noise() -> None:
    for noise_kind, delta in ((NoiseKind.LAPLACE, None), (NoiseKind.GAUSSIAN, 1e-6)):
        assert find_noise(Program.BIGQUERY, noise_kind, 1.0, delta) == DrawnNoise(NoiseKind.LAPLACE, 2.0)
        assert find_noise(Program.BIGQUERY, noise_kind, 1.0, delta, num_aggregates=2).unit_scale == 3.0


@pytest.mark.long
def test_the_error_of_users_at_epsilon_5_is_that_of_opendps_draws() -> None:
    """20,000 draws: the mean of squares is within 5 standard errors."""
    noise = find_noise(Program.OPENDP, NoiseKind.LAPLACE, 5.0, is_of_counts=True)
    variance = float(noise.compute_variance(1.0))
    assert math.sqrt(variance) == pytest.approx(0.117, abs=5e-4)
    drawn_values = mechanisms.release_discrete_laplace(np.zeros(20_000, dtype=np.int64), 1, 5.0 / 1.0).values
    fourth = 2.0 * sum(k**4 * math.exp(-5.0 * k) for k in range(1, 50)) * math.tanh(2.5)
    assert abs(float(np.mean(drawn_values**2)) - variance) <= 5.0 * math.sqrt((fourth - variance**2) / 20_000)


def test_the_best_known_mechanism_opens_the_library_whose_noise_is_nearest() -> None:
    for noise_kind, delta in ((NoiseKind.LAPLACE, None), (NoiseKind.GAUSSIAN, 1e-6)):
        best = find_noise(Program.BEST, noise_kind, 1.0, delta)
        library = programs.choose_library(Program.BEST, noise_kind)
        assert find_noise(library, noise_kind, 1.0, delta) == best
        scales = [find_noise(program, noise_kind, 1.0, delta).compute_variance(1.0) for program in Program]
        if noise_kind is NoiseKind.LAPLACE:
            assert best.compute_variance(1.0) == min(scales)
    text = programs.describe_program(Program.BEST, NoiseKind.LAPLACE, 1.0, None, is_of_counts=True)
    assert text == programs.describe_program(Program.OPENDP, NoiseKind.LAPLACE, 1.0, None, is_of_counts=True)
