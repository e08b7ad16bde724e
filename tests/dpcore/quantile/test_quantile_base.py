"""Base distributions: masses, means and draws against quadrature, far into the tails."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpcore.common.checks import InvalidInput
from dpcore.quantile.base_distribution import HistogramBase, NormalBase, build_uniform_base

HISTOGRAM = HistogramBase([0.0, 1.0, 4.0, 6.0], [1.0, 0.0, 3.0])


def tail_mass(a, b):
    """Log of the normal mass of [a, b] and the mean there, by quadrature relative to the larger end."""
    top = min(abs(a), abs(b))

    def density(x):
        return math.exp((top - x) * (top + x) / 2.0)

    mass = quad(density, a, b, epsabs=0.0, epsrel=1e-12, limit=400)[0]
    mean = quad(lambda x: x * density(x), a, b, epsabs=0.0, epsrel=1e-12, limit=400)[0] / mass
    return math.log(mass) - top * top / 2.0 - math.log(2.0 * math.pi) / 2.0, mean


@pytest.mark.thinned
@pytest.mark.parametrize("a", [0.0, 0.3, 2.0, 9.0, 35.0, 1000.0])
@pytest.mark.parametrize("width", [1e-9, 1e-4, 0.0999, 0.101, 0.7, 3.0])
def test_normal_masses_and_means_are_the_integrals(a, width):
    b = a + width
    reach = min(b, a + 60.0 / max(a, 1.0))  # Beyond it the density adds nothing.
    log_mass, mean = tail_mass(a, reach)
    base = NormalBase(10.0, 2.0)
    for low, high, sign in ((a, b, 1.0), (-b, -a, -1.0)):
        low, high = 10.0 + 2.0 * low, 10.0 + 2.0 * high
        # The ends themselves are rounded: 1e-15 of 10 over a width of 1e-9.
        slack = 4e-15 * (10.0 + 2.0 * b) / width + 1e-10 * max(1.0, a)
        assert float(base.log_mass(low, high)) == pytest.approx(log_mass, rel=1e-13, abs=slack)
        mean_found = (float(base.mean_between(low, high)) - 10.0) / 2.0
        assert mean_found == pytest.approx(sign * mean, rel=1e-9, abs=1e-9)


def test_normal_masses_add_up():
    base = NormalBase(-3.0, 0.5)
    ends = np.concatenate(([-np.inf], np.linspace(-6.0, 0.0, 1001), [np.inf]))  # -3 is one of them.
    assert np.exp(base.log_mass(ends[:-1], ends[1:])).sum() == pytest.approx(1.0, abs=1e-13)
    assert float(base.log_mass(-1e300, -1e299)) < -1e290
    assert float(base.log_mass(1.0, 1.0)) == -np.inf


def test_normal_density():
    y = np.array([-50.0, 0.0, 3.0])
    assert NormalBase(1.0, 2.0).log_density(y) == pytest.approx(stats.norm(1.0, 2.0).logpdf(y))


@pytest.mark.parametrize(
    ("low", "high"), [(-np.inf, -2.0), (-2.0, 0.0), (0.0, 0.01), (3.0, np.inf), (20.0, 21.0)]
)
def test_normal_draws_sit_at_their_share_of_the_mass(low, high):
    base = NormalBase(0.0, 1.0)
    u = np.linspace(0.01, 0.99, 25)
    y = base.find_points_at_shares(np.full(25, low), np.full(25, high), u)
    log_mass, whole = base.log_mass(np.full(25, low), y), base.log_mass(low, high)
    assert np.exp(log_mass - whole) == pytest.approx(u, rel=1e-8)


def test_histogram_masses():
    low, high = np.array([-np.inf, 0.0, 1.0, 4.0, 4.5, 6.0]), np.array([0.0, 1.0, 4.0, 4.5, 6.0, np.inf])
    assert np.exp(HISTOGRAM.log_mass(low, high)) == pytest.approx([0.0, 0.25, 0.0, 0.1875, 0.5625, 0.0])
    assert np.exp(HISTOGRAM.log_density([0.5, 2.0, 5.0, 7.0, -1.0])) == pytest.approx([0.25, 0, 0.375, 0, 0])
    assert HISTOGRAM.find_points_at_shares([4.0], [6.0], [0.25]).tolist() == [4.5]
    assert HISTOGRAM.mean_between([-np.inf, 4.0], [0.0, 6.0]).tolist() == [0.0, 5.0]


def test_tiny_intervals_keep_their_precision():
    # As a difference of distribution functions this would be 0 or 1e-16.
    assert float(build_uniform_base(0.0, 1e6).log_mass(999_999.0, 999_999.0 + 2.0**-30)) == pytest.approx(
        math.log(2.0**-30 / 1e6), rel=1e-14
    )


@pytest.mark.parametrize(
    "build",
    [
        lambda: build_uniform_base(2.0, 2.0),
        lambda: build_uniform_base(math.nan, 2.0),
        lambda: build_uniform_base(-1.7e308, 1.7e308),
        lambda: NormalBase(0.0, 0.0),
        lambda: HistogramBase([0.0, 1.0], [0.0]),
        lambda: HistogramBase([0.0, 1.0], [-1.0]),
        lambda: HistogramBase([1.0, 0.0], [1.0]),
        lambda: HistogramBase([0.0, 1.0], [1.0, 1.0]),
    ],
)
def test_refuses_what_is_no_distribution(build):
    with pytest.raises(InvalidInput):
        build()
