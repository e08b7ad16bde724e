"""Exact errors of a biased noisy number, against numerical integration and finite differences."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpcore.common import noise_error
from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.noise_error import Measure, NoiseKind

LAW = {NoiseKind.LAPLACE: stats.laplace, NoiseKind.GAUSSIAN: stats.norm}
EACH_NOISE = pytest.mark.parametrize("noise", list(NoiseKind))
SHIFTS = [0.0, 1e-6, 0.3, 1.0, 7.0, 400.0]


def integral(noise, power, shift, scale):
    """E|a + noise|^power by quadrature on either side of the kinks at -a and 0."""
    ends = sorted({-shift - 60.0 * scale, -60.0 * scale, -shift, 0.0, 60.0 * scale})
    density = LAW[noise](scale=scale).pdf
    return math.fsum(
        quad(lambda x: abs(shift + x) ** power * density(x), a, b, epsabs=0.0, epsrel=1e-10, limit=400)[0]
        for a, b in itertools.pairwise(ends)
    )


@pytest.mark.long_for("400.0-NoiseKind.LAPLACE", "400.0-NoiseKind.GAUSSIAN", "7.0-NoiseKind.LAPLACE")
@EACH_NOISE
@pytest.mark.parametrize("shift", SHIFTS)
def test_expected_absolute_error_is_the_integral(noise, shift):
    for scale in (0.05, 2.0):
        exact = float(noise_error.compute_mean_absolute(noise, shift, scale))
        assert exact == pytest.approx(integral(noise, 1, shift, scale), rel=1e-8)


@EACH_NOISE
@pytest.mark.parametrize("shift", SHIFTS)
def test_rmse_is_the_integral(noise, shift):
    exact = float(noise_error.compute_rms(noise, shift, 2.0))
    assert exact**2 == pytest.approx(integral(noise, 2, shift, 2.0), rel=1e-8)


@EACH_NOISE
def test_without_noise_the_error_is_the_bias(noise):
    for measure in Measure:
        assert noise_error.measure_error(measure, noise, [3.0, 0.0], [0.0, 0.0]).tolist() == [3.0, 0.0]
    # A subnormal scale must not overflow the ratio into a NaN.
    assert float(noise_error.compute_mean_absolute(noise, 5.0, 5e-324)) == 5.0


@EACH_NOISE
@pytest.mark.parametrize("measure", list(Measure))
def test_slope_and_intercept_are_those_of_the_measure(noise, measure):
    shape = noise_error.make_perspective(noise, measure)
    r = np.array([0.01, 0.3, 1.0, 2.5, 6.0])
    step = 1e-5
    m = noise_error.measure_error(measure, noise, r, 1.0)
    up, down = (noise_error.measure_error(measure, noise, r + s, 1.0) for s in (step, -step))
    assert shape.compute_slope(r) == pytest.approx((up - down) / (2.0 * step), rel=1e-7, abs=1e-9)
    assert shape.compute_intercept(r) == pytest.approx(m - r * shape.compute_slope(r), rel=1e-9, abs=1e-12)


@EACH_NOISE
@pytest.mark.parametrize("measure", [Measure.ABSOLUTE, Measure.RMSE])
def test_no_noise_is_the_limit(noise, measure):
    shape = noise_error.make_perspective(noise, measure)
    infinite = np.array(math.inf)
    assert float(shape.compute_slope(infinite)) == pytest.approx(1.0, abs=1e-15)
    assert float(shape.compute_intercept(infinite)) == 0.0


def test_the_paper_bound_is_at_most_1_466_times_the_truth():
    # (r + 1) / (r + e^-r) is largest where e^r = r + 2: at r = 1.14619, 2.14619 / (1.14619 + 0.31785).
    r = np.linspace(0.0, 20.0, 200_001)
    ratio = (r + 1.0) / noise_error.compute_mean_absolute(NoiseKind.LAPLACE, r, 1.0)
    assert float(ratio.max()) == pytest.approx(1.466, abs=5e-4)
    assert math.exp(r[ratio.argmax()]) == pytest.approx(r[ratio.argmax()] + 2.0, rel=1e-3)


@EACH_NOISE
def test_magnitude_within_inverts_the_distribution(noise):
    for coverage in (0.0, 0.1, 0.5, 0.95, 0.999999):
        m = noise_error.find_magnitude(noise, coverage)
        assert 1.0 - 2.0 * LAW[noise].sf(m) == pytest.approx(coverage, abs=1e-12)
    with pytest.raises(InvalidInput, match="must be below 1"):
        noise_error.find_magnitude(noise, 1.0)


@EACH_NOISE
@pytest.mark.parametrize("measure", [Measure.ABSOLUTE, Measure.RMSE])
@pytest.mark.parametrize("pull", [1e-9, 1e-3, 1.0, 40.0, 1e12])
def test_balance_solves_its_equation(noise, measure, pull):
    shape = noise_error.make_perspective(noise, measure)
    r = np.array(noise_error.find_balance(shape, pull))
    # Where the intercept underflows toward 0 only its size relative to its slope in r is known.
    assert float(shape.compute_intercept(r)) == pytest.approx(pull * float(shape.compute_slope(r)), rel=1e-7)


def test_all_problems_with_a_noise_are_named_at_once():
    problems = Problems()
    noise_error.check_noise(problems, NoiseKind.GAUSSIAN, -1.0, None)
    noise_error.check_noise(problems, NoiseKind.LAPLACE, 1.0, 1e-6)
    noise_error.check_noise(problems, NoiseKind.GAUSSIAN, 1.0, 1.0)
    assert len(problems.entries) == 4
