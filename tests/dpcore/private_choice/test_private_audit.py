"""An audit of the DP histogram: neighbouring histograms, many releases, and a lower bound on the real epsilon.

For an event E chosen beforehand, epsilon-DP says P(E | D) <= e^epsilon P(E | D'). Clopper-Pearson bounds P(E | D)
from below and P(E | D') from above: the log of their ratio bounds epsilon from below, wrongly with a chance of
`MISTAKE` per event and direction.

Many releases of a vector of k counts are drawn as one release of a vector of as many times k counts. That is the same
mechanism: noise is independent from entry to entry, and its scale depends on the sensitivity and epsilon, not on
the number of entries (`test_the_scale_does_not_depend_on_the_length`).
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import opendp.prelude as opendp
import pytest
from scipy.stats import beta, chisquare

from dpcore.common import mechanisms
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram
from dpcore.private_choice import comparison
from dpcore.private_choice.private_histogram import (
    HistogramNoise,
    HistogramParameters,
    PublicBins,
    add_noise,
    compute_noise_shape,
    release_histogram,
)

DRAWS = 100_000
"""For what noise follows which law."""
RELEASES = 20_000
"""The bound on an epsilon of 1 is then 0.80 to 0.92 on average, with a standard error of 0.03 at most."""
FEW = 10_000
"""Enough to see twice the epsilon: the bound on 2 is then about 1.8, with a standard error of 0.05."""
MISTAKE = 1e-7
BINS = PublicBins(exact_up_to=2, largest=2)
WITHOUT = ContributionHistogram([1], [5])
WITH = ContributionHistogram([1, 2], [5, 1])  # One user of two rows added.
REPLACED = ContributionHistogram([1, 2], [4, 1])  # A user of one row replaced by one of two.
Mechanism = Callable[[np.ndarray, HistogramParameters], np.ndarray]
Event = Callable[[np.ndarray], np.ndarray]

# Chosen before any release was looked at: half-lines and corners around the counts, on which Laplace noise
# reaches its epsilon.
EVENTS: dict[str, Event] = {
    "second count at least 1": lambda y: y[:, 1] >= 1,
    "second count at most 0": lambda y: y[:, 1] <= 0,
    "second count not 0": lambda y: y[:, 1] != 0,
    "first at most 4, second at least 1": lambda y: (y[:, 0] <= 4) & (y[:, 1] >= 1),
    "first at least 5, second at most 0": lambda y: (y[:, 0] >= 5) & (y[:, 1] <= 0),
    "second count at least 3": lambda y: y[:, 1] >= 3,
    "anybody at all": lambda y: y.sum(axis=1) >= 6,
}


def sound(counts: np.ndarray, parameters: HistogramParameters) -> np.ndarray:
    """What `release_histogram` does to the counts."""
    return add_noise(counts, parameters).values


def half_noise(counts: np.ndarray, parameters: HistogramParameters) -> np.ndarray:
    """Broken: noise for twice the epsilon."""
    return add_noise(
        counts, dataclasses.replace(parameters, epsilon_choice=2 * parameters.epsilon_choice)
    ).values


def empty_bins_left_out(counts: np.ndarray, parameters: HistogramParameters) -> np.ndarray:
    """Broken: noise only where there is somebody."""
    return np.where(counts > 0, add_noise(counts, parameters).values, 0)


def wrong_relation(counts: np.ndarray, parameters: HistogramParameters) -> np.ndarray:
    """Broken for replacing a user: noise for adding or removing one."""
    return add_noise(counts, dataclasses.replace(parameters, neighbours=Neighbours.ADD_OR_REMOVE_USER)).values


def many(
    mechanism: Mechanism, histogram: ContributionHistogram, parameters: HistogramParameters, releases: int
) -> np.ndarray:
    counts = BINS.count_users(histogram)
    return mechanism(np.tile(counts, releases), parameters).reshape(releases, counts.size)


def lower_bound(hits: int, others: int, releases: int, delta: float = 0.0) -> float:
    """Clopper-Pearson lower bound on ln((P - delta) / P') from hits of either among ``releases``."""
    low = beta.ppf(MISTAKE / 2, hits, releases - hits + 1) if hits else 0.0
    high = beta.ppf(1 - MISTAKE / 2, others + 1, releases - others) if others < releases else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def audited(
    mechanism: Mechanism,
    parameters: HistogramParameters,
    one: ContributionHistogram,
    other: ContributionHistogram,
    releases: int = RELEASES,
) -> float:
    """The largest lower bound on epsilon over all events and both directions."""
    first, second = (many(mechanism, histogram, parameters, releases) for histogram in (one, other))
    found = [-math.inf]
    for event in EVENTS.values():
        hits, others = int(event(first).sum()), int(event(second).sum())
        delta = parameters.delta or 0.0
        found += [lower_bound(hits, others, releases, delta), lower_bound(others, hits, releases, delta)]
    return max(found)


ADD = HistogramParameters(1.0, BINS)
REPLACE = HistogramParameters(1.0, BINS, neighbours=Neighbours.REPLACE_USER)
GAUSSIAN = HistogramParameters(1.0, BINS, noise=HistogramNoise.GAUSSIAN, delta=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "one", "other", "at_least"),
    [
        # Laplace noise reaches its epsilon on a half-line: the audit must come near, or it could not catch anything.
        (ADD, WITHOUT, WITH, 0.75),
        (REPLACE, WITH, ContributionHistogram([1], [6]), 0.65),
        (REPLACE, WITHOUT, REPLACED, 0.7),
        (GAUSSIAN, WITHOUT, WITH, 0.1),
    ],
    ids=["added", "replaced", "replaced too", "Gaussian"],
)
def test_the_copy_keeps_its_epsilon(parameters, one, other, at_least):
    found = audited(sound, parameters, one, other)
    assert at_least < found <= parameters.epsilon_choice


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "parameters", "one", "other"),
    [
        (half_noise, ADD, WITHOUT, WITH),
        (half_noise, REPLACE, WITHOUT, REPLACED),
        (empty_bins_left_out, ADD, WITHOUT, WITH),
        (wrong_relation, REPLACE, WITHOUT, REPLACED),
    ],
    ids=["half the noise", "half the noise, replace", "empty bins left out", "noise for the other relation"],
)
def test_the_audit_catches_a_broken_mechanism(mechanism, parameters, one, other):
    assert audited(mechanism, parameters, one, other, FEW) > 1.3 * parameters.epsilon_choice


def test_what_is_audited_is_what_is_released():
    # `release_histogram` publishes exactly `add_noise`'s counts, empty bins included, then a function of them.
    histogram = release_histogram(WITHOUT, ADD)
    assert histogram.noisy_counts.shape == (2,)
    empty = np.array([release_histogram(WITHOUT, ADD).noisy_counts[1] for _ in range(200)])
    # P(noise = 0) = tanh(1/2) = 0.46 at scale 1: all of 200 being 0 has a chance of 1e-67.
    assert np.any(empty != 0)


@pytest.mark.parametrize("parameters", [ADD, REPLACE, GAUSSIAN])
def test_the_scale_does_not_depend_on_the_length(parameters):
    short = add_noise(np.zeros(2, dtype=np.int64), parameters)
    long = add_noise(np.zeros(1000, dtype=np.int64), parameters)
    assert short.scale == long.scale == parameters.scale
    assert short.epsilon == long.epsilon <= parameters.epsilon_choice


def pooled_chi_squared(
    noise: np.ndarray, probability: Callable[[np.ndarray], np.ndarray], reach: int
) -> float:
    """p-value of whole noise against a law, its tails beyond ``reach`` pooled."""
    inner = np.arange(-reach, reach + 1)
    expected = probability(inner)
    tail = (1.0 - expected.sum()) / 2.0
    counts = np.array([np.sum(noise == z) for z in inner])
    observed = np.concatenate(([np.sum(noise < -reach)], counts, [np.sum(noise > reach)]))
    law = np.concatenate(([tail], expected, [tail]))
    return float(chisquare(observed, law * noise.size).pvalue)


def laplace_law(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    # P(z) = (1 - q) / (1 + q) q^|z| with q = e^(-1 / scale).
    q = math.exp(-1.0 / scale)
    return lambda z: (1 - q) / (1 + q) * q ** np.abs(z)


def gaussian_law(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    # P(z) ~ exp(-z^2 / (2 scale^2)) over all whole z.
    whole = np.arange(-1000, 1001)
    total = np.exp(-0.5 * (whole / scale) ** 2).sum()
    return lambda z: np.exp(-0.5 * (z / scale) ** 2) / total


NOISES = [
    pytest.param(
        lambda n: mechanisms.release_discrete_laplace(n, 2, 0.5), laplace_law(4.0), 4.0, id="Laplace"
    ),
    pytest.param(
        lambda n: mechanisms.release_discrete_gaussian(n, 1, 1.0, 1e-3),
        gaussian_law(mechanisms.find_gaussian_scale(1, 1.0, 1e-3)),
        mechanisms.find_gaussian_scale(1, 1.0, 1e-3),
        id="Gaussian",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "law", "scale"), NOISES)
def test_the_noise_follows_its_law(mechanism, law, scale):
    drawn = mechanism(np.zeros(DRAWS, dtype=np.int64))
    assert drawn.scale == pytest.approx(scale, rel=1e-12)
    reach = math.ceil(3 * scale)
    assert pooled_chi_squared(drawn.values, law, reach) > 1e-6
    # The test has power: noise of a scale 5 % off fails it. The statistic then lies 6 standard deviations above the
    # bound (noncentral chi-squared, noncentrality about 100,000 * 0.05^2); at 3 % it was 2, and one run in 50 failed.
    off = (
        laplace_law(1.05 * scale)
        if drawn.mechanism == mechanisms.DISCRETE_LAPLACE
        else gaussian_law(1.05 * scale)
    )
    assert pooled_chi_squared(drawn.values, off, reach) < 1e-6


@pytest.mark.parametrize(
    ("kind", "law"), [(HistogramNoise.LAPLACE, laplace_law), (HistogramNoise.GAUSSIAN, gaussian_law)]
)
@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_simulated_noise_follows_the_same_law(kind, law, scale):
    noise = comparison.simulate_noise(kind, scale, (DRAWS,), np.random.default_rng(4))
    assert pooled_chi_squared(noise, law(scale), math.ceil(3 * scale)) > 1e-6
    variance = compute_noise_shape(kind, scale).variance
    if kind is HistogramNoise.LAPLACE:
        assert np.var(noise) == pytest.approx(variance, rel=0.05)
    else:
        assert np.var(noise) <= variance * 1.02


# Where delta is large, OpenDP proves an epsilon of 0 from some noise on.
@pytest.mark.long_for("7-1e-06-0.9")
@pytest.mark.parametrize(
    ("squared", "epsilon", "delta"),
    [(1, 1.0, 1e-6), (7, 1e-6, 0.9), (10**12, 1000.0, 1e-300), (2, 3.0, 0.999999), (5, 1e-6, 1e-12)],
)
def test_opendp_grants_the_gaussian_scale_and_nothing_below_it(squared, epsilon, delta):
    def granted(sigma: float) -> bool:
        space = opendp.vector_domain(opendp.atom_domain(T="i64"), size=1), opendp.l2_distance(T=float)
        made = opendp.c.make_fix_delta(
            opendp.c.make_zCDP_to_approxDP(opendp.m.make_gaussian(*space, scale=sigma)), delta
        )
        return made.check(math.nextafter(math.sqrt(squared), math.inf), (epsilon, delta))

    sigma = mechanisms.find_gaussian_scale(squared, epsilon, delta)
    assert granted(sigma * (1.0 + 1e-12))
    assert not granted(sigma * (1.0 - 2e-9))


@pytest.mark.parametrize(("squared", "epsilon", "delta"), [(1, 1.0, 1e-6), (2, 0.1, 1e-6), (2, 5.0, 1e-3)])
def test_gaussian_scale_is_enough_by_the_exact_privacy_curve(squared, epsilon, delta):
    # Canonne, Kamath, Steinke 2020, theorem 7, at the whole steps that one user can make: delta(epsilon) of
    # the pair N, N + 1 is P(Y > epsilon sigma^2 - 1/2) - e^epsilon P(Y > epsilon sigma^2 + 1/2). For a step in two
    # coordinates the same on the sum, here by brute force over the grid.
    sigma = mechanisms.find_gaussian_scale(squared, epsilon, delta)
    reach = math.ceil(14 * sigma)
    z = np.arange(-reach, reach + 1)
    p = np.exp(-0.5 * (z / sigma) ** 2)
    p /= p.sum()
    shifted = np.append(p[1:], 0.0)
    if squared == 1:
        exact = np.maximum(p - math.exp(epsilon) * shifted, 0.0).sum()
    else:
        joint, moved = np.outer(p, p), np.outer(shifted, shifted)
        exact = np.maximum(joint - math.exp(epsilon) * moved, 0.0).sum()
    assert exact <= delta
    # Not wastefully much: 25 % less noise would not do.
    discrete_gaussian = mechanisms.release_discrete_gaussian([0], squared, epsilon, delta)
    assert discrete_gaussian.epsilon <= epsilon
    assert discrete_gaussian.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert discrete_gaussian.delta == delta
