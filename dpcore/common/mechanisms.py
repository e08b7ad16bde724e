"""Noise of real releases, drawn by OpenDP; every other module only computes with noise."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import find_least_noise
from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.extras import import_extra
from dpcore.common.privacy import Disclosure, compute_gaussian_sigma, format_rounded_up
from dpcore.contributions import FloatArray, IntArray

ChargeBudget = Callable[[float, float], None]
"""Takes the epsilon and delta that a draw guarantees. Every function that draws calls it, if one is given, after all
checks and before there is any noise. So everything that happens afterwards has been paid for, an error too. If it
raises, nothing is drawn."""


@dataclass(frozen=True, eq=False)
class LaplaceRelease:
    """A vector with Laplace noise: an epsilon-DP release.

    Attributes:
        values: What may be published, in the unit of what was released.
        epsilon: The guarantee as OpenDP proves it: at most what was asked for.
        scale: b of the noise on each entry, same unit.
        sensitivity: L1 sensitivity that the guarantee rests on, same unit.
    """

    values: FloatArray
    epsilon: float
    scale: float
    sensitivity: float

    @property
    def label(self) -> str:
        """Return the label of the released numbers, with epsilon rounded up."""
        return f"{Disclosure.DP_RELEASE.value}, epsilon = {format_rounded_up(self.epsilon)}"


def release_laplace(
    values: npt.ArrayLike, sensitivity: float, epsilon: float, charge: ChargeBudget | None = None
) -> LaplaceRelease:
    """Add Laplace noise to a vector, by OpenDP's sampler, which is not open to floating-point attacks.

    Args:
        values: What to release, finite, shape (k,).
        sensitivity: The most that the values can move in L1 when one user's data change, above 0, rounding
            in their computation included.
        epsilon: Privacy budget.
        charge: Told the epsilon before anything is drawn.

    Returns:
        A fresh draw at every call; there is no seed.

    Raises:
        InvalidInput: Values not finite, not a vector, or a parameter out of range.

    Source: Dwork et al. 2006 (Epasto et al. 2020, theorem 1).
    """
    exact_values = np.asarray(values, dtype=np.float64)
    with Problems() as problems:
        if exact_values.ndim != 1 or exact_values.size == 0 or not np.all(np.isfinite(exact_values)):
            problems.add("values must be a vector of finite numbers")
        problems.positive(sensitivity=sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
    noise_scale = float(sensitivity) / float(epsilon)
    if not math.isfinite(noise_scale):
        raise refuse("sensitivity over epsilon leaves float64", remedy="Express the values in a larger unit")
    opendp = _load_opendp()
    vector_space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=exact_values.size)
    domain_and_metric = vector_space, opendp.l1_distance(T=float)

    def prove_epsilon(noise_scale: float) -> float:
        """Return the epsilon that OpenDP proves for noise of scale b."""
        return float(opendp.m.make_laplace(*domain_and_metric, scale=noise_scale).map(sensitivity))

    noise_scale = _raise_scale(prove_epsilon, noise_scale, epsilon)
    proven_epsilon = prove_epsilon(noise_scale)
    _require_proof(proven_epsilon <= epsilon, epsilon, noise_scale)
    if charge is not None:
        charge(proven_epsilon, 0.0)
    measurement = opendp.m.make_laplace(*domain_and_metric, scale=noise_scale)
    noisy_values = np.array(measurement(exact_values.tolist()), dtype=np.float64)
    return LaplaceRelease(noisy_values, proven_epsilon, noise_scale, sensitivity)


@dataclass(frozen=True, eq=False)
class IntegerRelease:
    """A vector of whole numbers with whole noise on each: an (epsilon, delta)-DP release.

    Attributes:
        values: What may be published, in the unit of what was released; may be negative.
        epsilon: The guarantee as OpenDP proves it: at most what was asked for.
        delta: 0 for discrete Laplace noise.
        scale: b of discrete Laplace noise, P(z) ~ exp(-|z| / b), or sigma of discrete Gaussian noise,
            P(z) ~ exp(-z^2 / (2 sigma^2)).
        mechanism: In words.
    """

    values: IntArray
    epsilon: float
    delta: float
    scale: float
    mechanism: str


DISCRETE_LAPLACE = "discrete Laplace"
DISCRETE_GAUSSIAN = "discrete Gaussian"
_MAX_INTEGER = 2**53
MAX_SQUARED = 10**18
"""Largest squared sensitivity of a sequence of vectors."""
_MAX_RAISED_FLOATS = 64


def release_discrete_laplace(
    values: npt.ArrayLike, sensitivity: int, epsilon: float, charge: ChargeBudget | None = None
) -> IntegerRelease:
    """Add discrete Laplace noise to a vector of whole numbers, by OpenDP's exact sampler.

    Args:
        values: What to release, whole numbers of at most 2^53 in magnitude, shape (k,).
        sensitivity: The most that the vector can move in L1 when one user's data change, at least 1.
        epsilon: Privacy budget.
        charge: Told the epsilon before anything is drawn.

    Returns:
        A fresh draw at every call; there is no seed.

    Raises:
        InvalidInput: Values not whole, not a vector, or a parameter out of range.

    Source: Ghosh, Roughgarden, Sundararajan 2012 (the geometric mechanism); sampled as Canonne, Kamath,
        Steinke 2020, section 5.2.
    """
    exact_values = _require_integers(values, sensitivity, epsilon)
    noise_scale = find_laplace_scale(sensitivity, epsilon)
    measurement = _make_laplace(exact_values.size, noise_scale)
    proven_epsilon = float(measurement.map(int(sensitivity)))
    _require_proof(proven_epsilon <= epsilon, epsilon, noise_scale)
    if charge is not None:
        charge(proven_epsilon, 0.0)
    noisy_values = np.array(measurement(exact_values.tolist()), dtype=np.int64)
    return IntegerRelease(noisy_values, proven_epsilon, 0.0, noise_scale, DISCRETE_LAPLACE)


def find_laplace_scale(sensitivity: int, epsilon: float) -> float:
    """Find the smallest scale near sensitivity / epsilon at which OpenDP proves epsilon; nothing is drawn."""
    integer_sensitivity = int(sensitivity)
    return _raise_scale(
        lambda b: float(_make_laplace(1, b).map(integer_sensitivity)), integer_sensitivity / epsilon, epsilon
    )


def _raise_scale(prove_epsilon: Callable[[float], float], least_scale: float, epsilon: float) -> float:
    """Return the first float at or above a scale at which epsilon is proved: OpenDP rounds up in the last digits.

    After `_MAX_RAISED_FLOATS` floats, the last one is returned without a proof.
    """
    for _ in range(_MAX_RAISED_FLOATS):
        if prove_epsilon(least_scale) <= epsilon:
            break
        least_scale = math.nextafter(least_scale, math.inf)
    return least_scale


def release_discrete_gaussian(
    values: npt.ArrayLike,
    squared_sensitivity: int,
    epsilon: float,
    delta: float,
    charge: ChargeBudget | None = None,
) -> IntegerRelease:
    """Add discrete Gaussian noise to a vector of whole numbers, by OpenDP's exact sampler.

    OpenDP proves rho-zCDP and converts it to (epsilon, delta) at the given delta. This takes a few per cent more noise
    than the exact privacy curve, but the guarantee comes from one place.

    Args:
        values: What to release, whole numbers of at most 2^53 in magnitude, shape (k,).
        squared_sensitivity: The most that the vector can move in L2 when one user's data change, squared:
            whole numbers move by whole numbers, so that it is whole and at least 1.
        epsilon: Privacy budget.
        delta: Strictly between 0 and 1.
        charge: Told the epsilon and delta before anything is drawn.

    Returns:
        A fresh draw at every call; there is no seed.

    Raises:
        InvalidInput: Values not whole, not a vector, or a parameter out of range.

    Source: Canonne, Kamath, Steinke 2020, The Discrete Gaussian for Differential Privacy, theorem 1 (also for
        vectors) and proposition 7.
    """
    exact_values = _require_integers(values, squared_sensitivity, epsilon, delta)
    scale = find_gaussian_scale(squared_sensitivity, epsilon, delta)
    measurement = _make_gaussian(exact_values.size, scale)
    proven_epsilon, proven_delta = _fix_delta(measurement, delta).map(_round_root_up(squared_sensitivity))
    _require_proof(proven_epsilon <= epsilon and proven_delta <= delta, epsilon, scale)
    if charge is not None:
        charge(float(proven_epsilon), float(proven_delta))
    noisy_values = np.array(measurement(exact_values.tolist()), dtype=np.int64)
    return IntegerRelease(noisy_values, float(proven_epsilon), float(proven_delta), scale, DISCRETE_GAUSSIAN)


@dataclass(eq=False)
class GaussianSteps:
    """Discrete Gaussian noise for vectors that are chosen one after another, each in the light of those before.

    Attributes:
        epsilon: The guarantee of all of them together, as OpenDP proves it: at most what was asked for.
        delta: Likewise.
        scale: sigma of the noise on every entry of every vector.
        remaining_squared_sensitivity: What is left of the sum of squared sensitivities that was paid for.
    """

    epsilon: float
    delta: float
    scale: float
    remaining_squared_sensitivity: int

    def release(self, values: npt.ArrayLike, squared_sensitivity: int) -> IntArray:
        """Release one more vector with noise; a fresh draw at every call.

        Args:
            values: Whole numbers of at most 2^53 in magnitude, shape (k,).
            squared_sensitivity: The most that this vector can move in L2 when one user's data change, squared, given
                what was released before; whole, at least 1.

        Raises:
            InvalidInput: Values not whole or not a vector, or more was asked than is left; nothing was drawn.
        """
        with Problems() as problems:
            exact_values = _check_integers(values, problems)
            if problems.whole(1, MAX_SQUARED, squared_sensitivity=squared_sensitivity) and (
                int(squared_sensitivity) > self.remaining_squared_sensitivity
            ):
                problems.add("this vector may move by more than is left of what was paid for")
        # Before the draw: if the sampler breaks off, noise may have been seen, and nothing may be paid back.
        self.remaining_squared_sensitivity -= int(squared_sensitivity)
        return np.array(_make_gaussian(exact_values.size, self.scale)(exact_values.tolist()), dtype=np.int64)


def start_gaussian_steps(
    squared_sensitivity: int, epsilon: float, delta: float, charge: ChargeBudget | None = None
) -> GaussianSteps:
    """Pay for a sequence of vectors at once; `GaussianSteps.release` then draws noise for each.

    With one sigma for all, vectors of squared sensitivities D_1, D_2 ... are (D_1 + D_2 + ...) / (2
    sigma^2)-zCDP together, just as one vector of the summed squared sensitivity is, for which OpenDP proves
    (epsilon, delta).

    Args:
        squared_sensitivity: The sum over all vectors, whole, at least 1.
        epsilon: Privacy budget of all of them together.
        delta: Strictly between 0 and 1, likewise.
        charge: Told the epsilon and delta before anything is drawn.

    Raises:
        InvalidInput: A parameter is out of range.

    Source: Canonne, Kamath, Steinke 2020, proposition 7; Bun, Steinke 2016, lemma 2.3, for the composition.
    """
    with Problems() as problems:
        problems.whole(1, MAX_SQUARED, squared_sensitivity=squared_sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
        problems.inside(0.0, 1.0, delta=delta)
    total_squared_sensitivity = int(squared_sensitivity)
    noise_scale = find_gaussian_scale(total_squared_sensitivity, epsilon, delta)
    approximate_measurement = _fix_delta(_make_gaussian(1, noise_scale), delta)
    proven_epsilon, proven_delta = approximate_measurement.map(_round_root_up(total_squared_sensitivity))
    _require_proof(proven_epsilon <= epsilon and proven_delta <= delta, epsilon, noise_scale)
    if charge is not None:
        charge(float(proven_epsilon), float(proven_delta))
    return GaussianSteps(float(proven_epsilon), float(proven_delta), noise_scale, total_squared_sensitivity)


@functools.lru_cache(maxsize=256)
def find_gaussian_scale(squared_sensitivity: int, epsilon: float, delta: float) -> float:
    """Find the smallest sigma at which OpenDP proves (epsilon, delta), from above, to a relative 1e-9."""
    sensitivity = _round_root_up(squared_sensitivity)

    def compute_epsilon(sigma: float) -> float:
        """Return the epsilon that OpenDP proves at sigma; infinite if it does not prove delta."""
        proven_epsilon, proven_delta = _fix_delta(_make_gaussian(1, sigma), delta).map(sensitivity)
        return float(proven_epsilon) if proven_delta <= delta else math.inf

    # OpenDP goes by way of zCDP, which takes a few per cent more noise than the exact analysis.
    first_sigma = 1.05 * sensitivity * compute_gaussian_sigma(epsilon, delta)
    return find_least_noise(compute_epsilon, epsilon, first_sigma, 1e-9)


@functools.lru_cache(maxsize=4096)
def compute_gaussian_epsilon(sigma: float, delta: float) -> float:
    """Compute the epsilon that OpenDP proves for Gaussian noise at sensitivity 1 and this delta; sigma is above 0."""
    return float(_fix_delta(_make_gaussian(1, sigma), delta).map(1.0)[0])


@functools.lru_cache(maxsize=256)
def compute_gaussian_rho(sigma: float) -> float:
    """Compute the rho that OpenDP proves for Gaussian noise at sensitivity 1; sigma is above 0."""
    return float(_make_gaussian(1, sigma).map(1.0))


def _round_root_up(square: int) -> float:
    """Return the square root of an integer, rounded up."""
    # Beyond 2^53 a whole number next to a square has the square's own root as a float, which is below its own.
    integer_root = math.isqrt(square)
    return float(integer_root) if integer_root**2 == square else math.nextafter(math.sqrt(square), math.inf)


def _require_proof(is_proven: bool, epsilon: float, scale: float) -> None:
    """Raise RuntimeError if OpenDP did not prove epsilon at this scale."""
    if not is_proven:
        refused_text = f"epsilon = {epsilon!r} at scale {scale!r}"
        raise RuntimeError(f"OpenDP does not grant {refused_text}; nothing was drawn")


def _require_integers(
    released_values: npt.ArrayLike, sensitivity: int, epsilon: float, delta: float | None = None
) -> IntArray:
    """Return a vector as int64; raise `InvalidInput` if it, or a parameter of its release, is not valid."""
    with Problems() as problems:
        integer_array = _check_integers(released_values, problems)
        problems.whole(1, 10**12, sensitivity=sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
        if delta is not None:
            problems.inside(0.0, 1.0, delta=delta)
    return integer_array.astype(np.int64)


def _check_integers(released_values: npt.ArrayLike, problems: Problems) -> npt.NDArray[Any]:
    """Return the values as an array, and add a problem unless they are a vector of integers up to 2^53 in size."""
    integer_array = np.asarray(released_values)
    if integer_array.ndim != 1 or integer_array.size == 0 or integer_array.dtype.kind not in "iu":
        problems.add("values must be a vector of whole numbers")
    elif max(abs(int(integer_array.min())), abs(int(integer_array.max()))) > _MAX_INTEGER:
        problems.add("values must be at most 2⁵³ in magnitude")
    return integer_array


@functools.cache
def _load_opendp() -> Any:
    """Load the parts of OpenDP that are called here, in a namespace with the names of `opendp.prelude`.

    The prelude itself is not imported: if scikit-learn or Polars is installed, it loads them, 1 s instead of 0.1
    until the first noise is drawn.
    """
    import_extra("opendp")
    module_names = ("mod", "combinators", "measurements", "domains", "metrics", "measures")
    modules = [importlib.import_module(f"opendp.{name}") for name in module_names]
    domain_module, combinators, measurements, *space_modules = modules
    domain_module.enable_features("contrib")
    space_members = {name: member for module in space_modules for name, member in vars(module).items()}
    return SimpleNamespace(**space_members | {"c": combinators, "m": measurements})


def _make_laplace(vector_size: int, scale: float) -> Any:
    """Build OpenDP's measurement that adds discrete Laplace noise to a vector of ``vector_size`` integers."""
    dp = _load_opendp()
    domain_and_metric = dp.vector_domain(dp.atom_domain(T="i64"), size=vector_size), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*domain_and_metric, scale=scale)


def _make_gaussian(vector_size: int, scale: float) -> Any:
    """Build OpenDP's measurement that adds discrete Gaussian noise to a vector of ``vector_size`` integers."""
    dp = _load_opendp()
    domain_and_metric = dp.vector_domain(dp.atom_domain(T="i64"), size=vector_size), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*domain_and_metric, scale=scale)


def _fix_delta(zcdp_measurement: Any, delta: float) -> Any:
    """Convert a zero-concentrated DP measurement to one that states its epsilon at ``delta``."""
    opendp = _load_opendp()
    return opendp.c.make_fix_delta(opendp.c.make_zCDP_to_approxDP(zcdp_measurement), delta)


@dataclass(frozen=True)
class SelectionRelease:
    """The index of one candidate, drawn by an exponential mechanism: an epsilon-DP release.

    Attributes:
        index: Of the candidate; what may be published.
        epsilon: The guarantee: at most what was asked for.
        scale: b: the law is softmax(score / b); in the unit of the scores.
    """

    index: int
    epsilon: float
    scale: float


def exponential_mechanism(
    scores: Sequence[int], sensitivity: int, epsilon: float, charge: ChargeBudget | None = None
) -> SelectionRelease:
    """Draw a candidate with probability proportional to exp(epsilon score / (2 sensitivity)).

    OpenDP adds Gumbel noise to every score, on as many random bits as the comparison needs (no rounding), and
    reports the largest, which has exactly that law. It proves epsilon^2 / 8-zCDP, from which the scale is
    checked here; epsilon-DP of the same law is the theorem of McSherry and Talwar.

    Args:
        scores: Whole numbers that fit int64, one per candidate; larger is better.
        sensitivity: The most that one user can move any score, at least 1.
        epsilon: Privacy budget.
        charge: Told the epsilon before anything is drawn.

    Returns:
        A fresh draw at every call; there is no seed.

    Raises:
        InvalidInput: No scores, scores not whole or beyond int64, or a parameter out of range.

    Source: McSherry and Talwar 2007, theorem 6; Cesar and Rogers 2021 for zCDP.
    """
    are_integers = all(isinstance(score, int) and not isinstance(score, bool) for score in scores)
    are_valid = are_integers and all(abs(score) < 2**63 for score in scores)
    with Problems() as problems:
        if not scores or not are_valid:
            problems.add("scores must be whole numbers that fit 64 bits, at least one of them")
        problems.whole(1, 2**53, sensitivity=sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)

    def prove_epsilon(scale: float) -> float:
        """Compute the epsilon of pure DP from the rho that OpenDP proves at scale b."""
        # rho = epsilon^2 / 8, rounded up by OpenDP.
        return math.sqrt(8.0 * float(_make_noisy_max(scale).map(int(sensitivity))))

    gumbel_scale = _raise_scale(prove_epsilon, 2.0 * int(sensitivity) / epsilon, epsilon)
    proven_epsilon = prove_epsilon(gumbel_scale)
    _require_proof(proven_epsilon <= epsilon, epsilon, gumbel_scale)
    # Set up before the charge, so that what can fail has not cost anything.
    draw_candidate_index = make_selector(scores, gumbel_scale)
    if charge is not None:
        charge(proven_epsilon, 0.0)
    return SelectionRelease(draw_candidate_index(), proven_epsilon, gumbel_scale)


def make_selector(scores: Sequence[int], gumbel_scale: float) -> Callable[[], int]:
    """Return a function that draws an index with the law softmax(score / scale), exactly."""
    measurement, score_list = _make_noisy_max(gumbel_scale), list(scores)
    return lambda: int(measurement(score_list))


def _make_noisy_max(gumbel_scale: float) -> Any:
    """Build OpenDP's measurement that returns the index of the largest score after Gumbel noise."""
    dp = _load_opendp()
    domain_and_metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    return dp.m.make_noisy_max(*domain_and_metric, dp.zero_concentrated_divergence(), scale=gumbel_scale)
