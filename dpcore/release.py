"""Noise that is really released, drawn by OpenDP; every other module only computes with noise."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.checks import EPSILON_RANGE, Problems
from dpcore.contributions import FloatArray
from dpcore.privacy import Sensitivity


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
        """The label that stands beside the numbers."""
        return f"{Sensitivity.DP_RELEASE.value}, epsilon = {self.epsilon:g}"


def laplace(values: npt.ArrayLike, sensitivity: float, epsilon: float) -> LaplaceRelease:
    """Add Laplace noise to a vector, by OpenDP's sampler, which is not open to floating-point attacks.

    Args:
        values: What to release, finite, shape (k,).
        sensitivity: The most that the values can move in L1 when one user's data change, above 0, rounding
            in their computation included.
        epsilon: Privacy budget.

    Returns:
        A fresh draw at every call; there is no seed.

    Raises:
        InvalidInput: Values not finite, not a vector, or a parameter out of range.

    Source: Dwork et al. 2006 (Epasto et al. 2020, theorem 1).
    """
    exact = np.asarray(values, dtype=np.float64)
    problems = Problems()
    if exact.ndim != 1 or exact.size == 0 or not np.all(np.isfinite(exact)):
        problems.add("values must be a vector of finite numbers")
    problems.positive(sensitivity=sensitivity)
    problems.between(*EPSILON_RANGE, epsilon=epsilon)
    problems.raise_if_any()
    dp: Any = importlib.import_module("opendp.prelude")  # Heavy, and only partly typed.
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=exact.size), dp.l1_distance(T=float)
    scale = sensitivity / epsilon
    measurement = dp.m.make_laplace(*space, scale=scale)
    for _ in range(8):
        if measurement.map(sensitivity) <= epsilon:
            break
        scale = math.nextafter(scale, math.inf)  # OpenDP rounds up: one or two last digits are missing.
        measurement = dp.m.make_laplace(*space, scale=scale)
    if measurement.map(sensitivity) > epsilon:
        raise RuntimeError(
            f"OpenDP does not grant epsilon = {epsilon!r} at scale {scale!r}; nothing was drawn"
        )
    noisy = np.array(measurement(exact.tolist()), dtype=np.float64)
    return LaplaceRelease(noisy, float(measurement.map(sensitivity)), scale, sensitivity)


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


def exponential_mechanism(scores: Sequence[int], sensitivity: int, epsilon: float) -> SelectionRelease:
    """Draw a candidate with probability proportional to exp(epsilon score / (2 sensitivity)).

    OpenDP adds Gumbel noise to every score, on as many random bits as the comparison needs (no rounding), and
    reports the largest, which has exactly that law. It proves epsilon^2 / 8-zCDP, from which the scale is
    checked here; epsilon-DP of the same law is the theorem of McSherry and Talwar.

    Args:
        scores: Whole numbers that fit int64, one per candidate; larger is better.
        sensitivity: The most that one user can move any score, at least 1.
        epsilon: Privacy budget.

    Returns:
        A fresh draw at every call; there is no seed.

    Raises:
        InvalidInput: No scores, scores not whole or beyond int64, or a parameter out of range.

    Source: McSherry and Talwar 2007, theorem 6; Cesar and Rogers 2021 for zCDP.
    """
    problems = Problems()
    whole = all(isinstance(s, int) and not isinstance(s, bool) and abs(s) < 2**63 for s in scores)
    if not scores or not whole:
        problems.add("scores must be whole numbers that fit 64 bits, at least one of them")
    problems.whole(1, 2**53, sensitivity=sensitivity)
    problems.between(*EPSILON_RANGE, epsilon=epsilon)
    problems.raise_if_any()
    dp: Any = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    scale = 2.0 * int(sensitivity) / epsilon
    for _ in range(64):
        measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        # rho = epsilon^2 / 8; a relative 1e-15 is OpenDP's rounding upward of rho, not of the noise.
        proven = math.sqrt(8.0 * float(measurement.map(int(sensitivity))))
        if proven <= epsilon:
            break
        scale = math.nextafter(scale, math.inf)
    if proven > epsilon:
        raise RuntimeError(
            f"OpenDP does not grant epsilon = {epsilon!r} at scale {scale!r}; nothing was drawn"
        )
    return SelectionRelease(int(measurement(list(scores))), proven, scale)
