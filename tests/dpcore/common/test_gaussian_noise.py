"""The exact Gaussian scale: checked by the hockey-stick integral and by inverting it; never too little."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpcore.common import privacy
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import GaussianNoise, compute_gaussian_epsilon
from dpcore.multitask import problem

CASES = [(e, d) for e in (1e-3, 0.1, 1.0, 5.0, 50.0) for d in (1e-12, 1e-6, 1e-2, 0.5)]


def spent_delta(sigma: float, epsilon: float) -> float:
    """Integral of (p - e^epsilon q)_+ for p = N(1, sigma^2), q = N(0, sigma^2): delta by its definition."""
    # log(p / q) is (2 x - 1) / (2 sigma^2); with z = (x - 1) / sigma it exceeds epsilon from z0 on.
    z0 = sigma * epsilon - 0.5 / sigma

    def integrand(z: float) -> float:
        ratio = (z + 0.5 / sigma) / sigma
        return math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi) * -math.expm1(epsilon - ratio)

    pieces = [z0, z0 + 0.5, z0 + 2.0, z0 + 6.0, max(z0, 0.0) + 40.0]
    return math.fsum(
        quad(integrand, a, b, epsabs=0.0, epsrel=1e-11, limit=200)[0] for a, b in itertools.pairwise(pieces)
    )


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_spends_no_more_than_delta_and_hardly_less(epsilon, delta):
    sigma = GaussianNoise.for_release(1.0, epsilon, delta).scale
    assert spent_delta(sigma, epsilon) <= delta * (1.0 + 1e-10)
    assert spent_delta(sigma * (1.0 - 1e-6), epsilon) > delta


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_inverse_never_exceeds_epsilon(epsilon, delta):
    sigma = GaussianNoise.for_release(1.0, epsilon, delta).scale
    assert compute_gaussian_epsilon(sigma, delta) <= epsilon


def test_scales_with_the_sensitivity():
    unit_noise = GaussianNoise.for_release(1.0, 1.0, 1e-6)
    assert GaussianNoise.for_release(250.0, 1.0, 1e-6).scale == pytest.approx(
        250.0 * unit_noise.scale, rel=1e-15
    )
    assert unit_noise.variance == unit_noise.scale**2
    assert GaussianNoise.for_release(0.0, 1.0, 1e-6).scale == 0.0


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta"),
    [(-1.0, 1.0, 0.1), (1.0, 0.0, 0.1), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (1.0, math.nan, 2.0)],
)
def test_refuses_what_has_no_meaning(sensitivity, epsilon, delta):
    with pytest.raises(InvalidInput):
        GaussianNoise.for_release(sensitivity, epsilon, delta)


def test_what_dp_accounting_warns_of_on_some_processors_stays_inside(monkeypatch):
    # An AMD EPYC warns at log1p(-1) for about a third of all pairs with a small epsilon; here each call does.
    import dp_accounting

    for name in ("get_sigma_gaussian", "get_epsilon_gaussian"):
        exact = getattr(dp_accounting, name)

        def warns(first, second, exact=exact):
            assert np.log1p(np.float64(-1.0)) == -np.inf
            return exact(first, second)

        monkeypatch.setattr(dp_accounting, name, warns)
    privacy._compute_unit_sigma.cache_clear()
    assert GaussianNoise.for_release(1.0, 1.25e-5, 1e-6).scale > 0.0
    target = problem.PrivacyTarget(1.25e-5, 1e-6)
    assert problem.compute_epsilon(problem.compute_exact_budget(target), target.delta) <= target.epsilon
