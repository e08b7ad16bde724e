"""How much noise a program draws for a share of (epsilon, delta), and what a plan spends.

With Laplace noise epsilons add up: a share s of epsilon has scale 1 / (s epsilon) at sensitivity 1. With Gaussian noise
squares of sensitivity over sigma add up: a share s has sigma / sqrt(s), with sigma that of a single release at
(epsilon, delta) as the program's own accountant has it.
"""

from __future__ import annotations

import enum
import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common import mechanisms, noise_error
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import gaussian_epsilon
from dpcore.contributions import FloatArray

MOST_AMOUNT = 2e3
"""mu^2 beyond which no epsilon is said: it would be above 1,000."""


class Program(enum.Enum):
    """Which library draws the noise."""

    PYTHON = "plain Python"
    OPENDP = "OpenDP"
    PIPELINEDP = "PipelineDP"
    TUMULT = "Tumult"


@dataclass(frozen=True)
class Budget:
    """One budget and how it is divided.

    Attributes:
        epsilon: Of the whole plan.
        noise: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: None with Laplace noise.
    """

    epsilon: float
    noise: NoiseKind
    delta: float | None = None

    @property
    def power(self) -> int:
        """P in v(s) = v(1) / s^P."""
        return 2 if self.noise is NoiseKind.LAPLACE else 1

    @property
    def whole(self) -> float:
        """v of a line that takes all of the budget: the square of its noise scale at sensitivity 1."""
        return unit_scale(self.epsilon, self.noise, self.delta) ** 2

    def v(self, shares: npt.ArrayLike) -> FloatArray:
        """v of shares in [0, 1]; infinite at 0."""
        s = np.asarray(shares, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(self.whole / s**self.power)

    def amount(self, v: npt.ArrayLike) -> FloatArray:
        """What a line with this v takes of what adds up: epsilon, or mu^2 = 1 / v."""
        return np.asarray(np.asarray(v, dtype=np.float64) ** (-1.0 / self.power))

    def epsilon_of(self, amount: float) -> float:
        """Epsilon of a plan that takes so much in all."""
        return epsilon_of(amount, self.noise, self.delta)

    @property
    def spent(self) -> float:
        """Epsilon that is really spent at delta, where all noise were continuous and nothing rounded."""
        if self.noise is NoiseKind.LAPLACE:
            return self.epsilon
        assert self.delta is not None
        return gaussian_epsilon(math.sqrt(self.whole), self.delta)


def unit_scale(epsilon: float, noise: NoiseKind, delta: float | None) -> float:
    """Scale of the noise at sensitivity 1 that the programs draw: OpenDP's own where it is Gaussian.

    OpenDP accounts by rho-zCDP and converts it at the given delta: 6.5 to 8.7 % above the exact sigma at delta = 1e-6
    where epsilon is from 0.1 to 3, and it is what may be drawn for a plan, quantiles among its lines.
    """
    if noise is NoiseKind.LAPLACE:
        return noise_error.unit_scale(noise, epsilon, None)
    assert delta is not None
    return mechanisms.gaussian_scale(1, float(epsilon), float(delta))


@functools.lru_cache(maxsize=4096)
def epsilon_of(amount: float, noise: NoiseKind, delta: float | None) -> float:
    """Epsilon for which a plan may take so much in all: mu^2 with Gaussian noise, infinite where none is found."""
    if noise is NoiseKind.LAPLACE or not 0.0 < amount < MOST_AMOUNT:
        return amount if noise is NoiseKind.LAPLACE or amount == 0.0 else math.inf
    assert delta is not None
    return mechanisms.gaussian_epsilon(amount**-0.5, float(delta))
