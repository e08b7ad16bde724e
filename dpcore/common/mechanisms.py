"""Noise that is really released, drawn by OpenDP; every other module only computes with noise."""

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

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refusal
from dpcore.common.least_noise import least_noise
from dpcore.common.privacy import Disclosure, gaussian_sigma, rounded_up
from dpcore.contributions import FloatArray, IntArray

Charge = Callable[[float, float], None]
"""Takes the epsilon and delta that a draw guarantees. Every function that draws calls it, where one is given, when
all checks have passed and before there is any noise: what happens afterwards, an error too, has been paid for. Where
it raises, nothing is drawn."""


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
        """The label that stands beside the numbers; its epsilon is never rounded down."""
        return f"{Disclosure.DP_RELEASE.value}, epsilon = {rounded_up(self.epsilon)}"


def laplace(
    values: npt.ArrayLike, sensitivity: float, epsilon: float, charge: Charge | None = None
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
    exact = np.asarray(values, dtype=np.float64)
    with Problems() as problems:
        if exact.ndim != 1 or exact.size == 0 or not np.all(np.isfinite(exact)):
            problems.add("values must be a vector of finite numbers")
        problems.positive(sensitivity=sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
    scale = float(sensitivity) / float(epsilon)
    if not math.isfinite(scale):
        raise refusal("sensitivity over epsilon leaves float64", remedy="Express the values in a larger unit")
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=exact.size), dp.l1_distance(T=float)
    measurement = dp.m.make_laplace(*space, scale=scale)
    for _ in range(8):
        if measurement.map(sensitivity) <= epsilon:
            break
        scale = math.nextafter(scale, math.inf)  # OpenDP rounds up: one or two last digits are missing.
        measurement = dp.m.make_laplace(*space, scale=scale)
    proven = float(measurement.map(sensitivity))
    _require(proven <= epsilon, epsilon, scale)
    if charge is not None:
        charge(proven, 0.0)
    noisy = np.array(measurement(exact.tolist()), dtype=np.float64)
    return LaplaceRelease(noisy, proven, scale, sensitivity)


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
_WHOLE = 2**53
MAX_SQUARED = 10**18
"""Largest squared sensitivity of a sequence of vectors."""
_SAFE_STEPS = 64


def discrete_laplace(
    values: npt.ArrayLike, sensitivity: int, epsilon: float, charge: Charge | None = None
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
    exact = _checked_whole(values, sensitivity, epsilon)
    scale = laplace_scale(sensitivity, epsilon)
    measurement = _laplace_measurement(exact.size, scale)
    proven = float(measurement.map(int(sensitivity)))
    _require(proven <= epsilon, epsilon, scale)
    if charge is not None:
        charge(proven, 0.0)
    noisy = np.array(measurement(exact.tolist()), dtype=np.int64)
    return IntegerRelease(noisy, proven, 0.0, scale, DISCRETE_LAPLACE)


def laplace_scale(sensitivity: int, epsilon: float) -> float:
    """The smallest scale near sensitivity / epsilon at which OpenDP proves epsilon; nothing is drawn."""
    scale = int(sensitivity) / epsilon
    for _ in range(_SAFE_STEPS):
        if _laplace_measurement(1, scale).map(int(sensitivity)) <= epsilon:
            break
        scale = math.nextafter(scale, math.inf)  # OpenDP rounds up: one or two last digits are missing.
    return scale


def discrete_gaussian(
    values: npt.ArrayLike,
    squared_sensitivity: int,
    epsilon: float,
    delta: float,
    charge: Charge | None = None,
) -> IntegerRelease:
    """Add discrete Gaussian noise to a vector of whole numbers, by OpenDP's exact sampler.

    OpenDP proves rho-zCDP and converts it to (epsilon, delta) at the delta given: a few per cent more noise
    than the exact privacy curve would ask for, and a guarantee that comes from one place.

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
    exact = _checked_whole(values, squared_sensitivity, epsilon, delta)
    scale = gaussian_scale(squared_sensitivity, epsilon, delta)
    measurement = _gaussian_measurement(exact.size, scale)
    proven, at = _fixed(measurement, delta).map(_root_above(squared_sensitivity))
    _require(proven <= epsilon and at <= delta, epsilon, scale)
    if charge is not None:
        charge(float(proven), float(at))
    noisy = np.array(measurement(exact.tolist()), dtype=np.int64)
    return IntegerRelease(noisy, float(proven), float(at), scale, DISCRETE_GAUSSIAN)


@dataclass(eq=False)
class GaussianSteps:
    """Discrete Gaussian noise for vectors that are chosen one after another, each in the light of those before.

    Attributes:
        epsilon: The guarantee of all of them together, as OpenDP proves it: at most what was asked for.
        delta: Likewise.
        scale: sigma of the noise on every entry of every vector.
        left: What is left of the sum of squared sensitivities that was paid for.
    """

    epsilon: float
    delta: float
    scale: float
    left: int

    def release(self, values: npt.ArrayLike, squared_sensitivity: int) -> IntArray:
        """One more vector with noise; a fresh draw at every call.

        Args:
            values: Whole numbers of at most 2^53 in magnitude, shape (k,).
            squared_sensitivity: The most that this vector can move in L2 when one user's data change, squared, given
                what was released before; whole, at least 1.

        Raises:
            InvalidInput: Values not whole or not a vector, or more was asked than is left; nothing was drawn.
        """
        with Problems() as problems:
            exact = _whole_vector(values, problems)
            if problems.whole(1, MAX_SQUARED, squared_sensitivity=squared_sensitivity) and (
                int(squared_sensitivity) > self.left
            ):
                problems.add("this vector may move by more than is left of what was paid for")
        # Before the draw: if the sampler breaks off, noise may have been seen, and nothing may be paid back.
        self.left -= int(squared_sensitivity)
        return np.array(_gaussian_measurement(exact.size, self.scale)(exact.tolist()), dtype=np.int64)


def discrete_gaussian_steps(
    squared_sensitivity: int, epsilon: float, delta: float, charge: Charge | None = None
) -> GaussianSteps:
    """Pay for a sequence of vectors at once; they are released as they are found.

    With one sigma for all, vectors of squared sensitivities D_1, D_2 ... are (D_1 + D_2 + ...) / (2 sigma^2)-zCDP
    together, just as one vector of the summed squared sensitivity is, for which OpenDP proves (epsilon, delta).

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
    total = int(squared_sensitivity)
    scale = gaussian_scale(total, epsilon, delta)
    proven, at = _fixed(_gaussian_measurement(1, scale), delta).map(_root_above(total))
    _require(proven <= epsilon and at <= delta, epsilon, scale)
    if charge is not None:
        charge(float(proven), float(at))
    return GaussianSteps(float(proven), float(at), scale, total)


@functools.lru_cache(maxsize=256)
def gaussian_scale(squared_sensitivity: int, epsilon: float, delta: float) -> float:
    """The smallest sigma, to 1e-9 of it and from above, at which OpenDP proves (epsilon, delta)."""
    step = _root_above(squared_sensitivity)

    def spent(sigma: float) -> float:
        proven, at = _fixed(_gaussian_measurement(1, sigma), delta).map(step)
        return float(proven) if at <= delta else math.inf

    # OpenDP goes by way of zCDP, which takes a few per cent more noise than the exact analysis.
    return least_noise(spent, epsilon, 1.05 * step * gaussian_sigma(epsilon, delta), 1e-9)


@functools.lru_cache(maxsize=4096)
def gaussian_epsilon(sigma: float, delta: float) -> float:
    """The epsilon that OpenDP proves at sensitivity 1 with delta; sigma is above 0."""
    return float(_fixed(_gaussian_measurement(1, sigma), delta).map(1.0)[0])


def _root_above(squared: int) -> float:
    # Beyond 2^53 a whole number next to a square has the square's own root as a float, which is below its own.
    whole = math.isqrt(squared)
    return float(whole) if whole**2 == squared else math.nextafter(math.sqrt(squared), math.inf)


def _require(granted: bool, epsilon: float, scale: float) -> None:
    if not granted:
        raise RuntimeError(
            f"OpenDP does not grant epsilon = {epsilon!r} at scale {scale!r}; nothing was drawn"
        )


def _checked_whole(
    values: npt.ArrayLike, sensitivity: int, epsilon: float, delta: float | None = None
) -> IntArray:
    with Problems() as problems:
        whole = _whole_vector(values, problems)
        problems.whole(1, 10**12, sensitivity=sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
        if delta is not None:
            problems.inside(0.0, 1.0, delta=delta)
    return whole.astype(np.int64)


def _whole_vector(values: npt.ArrayLike, problems: Problems) -> npt.NDArray[Any]:
    """The values; a problem where they are no vector of whole numbers that float64 holds."""
    vector = np.asarray(values)
    if vector.ndim != 1 or vector.size == 0 or vector.dtype.kind not in "iu":
        problems.add("values must be a vector of whole numbers")
    elif max(abs(int(vector.min())), abs(int(vector.max()))) > _WHOLE:
        problems.add("values must be at most 2⁵³ in magnitude")
    return vector


@functools.cache
def _opendp() -> Any:
    """What of OpenDP is called here, by the names that `opendp.prelude` has for it; only partly typed.

    Not the prelude itself: where scikit-learn or Polars is installed, it loads them, 1 s in place of 0.1 until the
    first noise is drawn.
    """
    names = ("mod", "combinators", "measurements", "domains", "metrics", "measures")
    mod, combinators, measurements, *spaces = (importlib.import_module(f"opendp.{name}") for name in names)
    mod.enable_features("contrib")
    of_spaces = {name: what for module in spaces for name, what in vars(module).items()}
    return SimpleNamespace(**of_spaces | {"c": combinators, "m": measurements})


def _laplace_measurement(size: int, scale: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=size), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


def _gaussian_measurement(size: int, scale: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=size), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=scale)


def _fixed(measurement: Any, delta: float) -> Any:
    dp = _opendp()
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta)


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
    scores: Sequence[int], sensitivity: int, epsilon: float, charge: Charge | None = None
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
    whole = all(isinstance(s, int) and not isinstance(s, bool) and abs(s) < 2**63 for s in scores)
    with Problems() as problems:
        if not scores or not whole:
            problems.add("scores must be whole numbers that fit 64 bits, at least one of them")
        problems.whole(1, 2**53, sensitivity=sensitivity)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
    scale = 2.0 * int(sensitivity) / epsilon
    for _ in range(_SAFE_STEPS):
        # rho = epsilon^2 / 8, rounded up by OpenDP.
        proven = math.sqrt(8.0 * float(_noisy_max(scale).map(int(sensitivity))))
        if proven <= epsilon:
            break
        scale = math.nextafter(scale, math.inf)
    _require(proven <= epsilon, epsilon, scale)
    # Set up before the charge, so that what can fail has not cost anything.
    draw_one = selection(scores, scale)
    if charge is not None:
        charge(proven, 0.0)
    return SelectionRelease(draw_one(), proven, scale)


def selection(scores: Sequence[int], scale: float) -> Callable[[], int]:
    """Draws from softmax(score / scale), exactly; for `exponential_mechanism` and for tests of its law."""
    measurement, found = _noisy_max(scale), list(scores)
    return lambda: int(measurement(found))


def _noisy_max(scale: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    return dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
