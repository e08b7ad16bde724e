"""Noise that is really released, drawn by OpenDP; every other module only computes with noise."""

from __future__ import annotations

import importlib
import math
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
