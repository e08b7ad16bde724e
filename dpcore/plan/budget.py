"""The noise of a program for a share of (epsilon, delta), and the epsilon of a plan.

With Laplace noise epsilons add up: a share s of epsilon has scale 1 / (s epsilon) at sensitivity 1. With
Gaussian noise squares of sensitivity over sigma add up: a share s has sigma / sqrt(s), with sigma that of a
single release at (epsilon, delta) as the program's own accountant has it.
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
from dpcore.common.privacy import compute_gaussian_epsilon
from dpcore.contributions import FloatArray

MAX_AMOUNT = 2e3
"""mu^2 beyond which no epsilon is said: it would be above 1,000."""


class Program(enum.Enum):
    """The library whose noise is computed."""

    PYTHON = "plain Python"
    OPENDP = "OpenDP"
    PIPELINEDP = "PipelineDP"
    TUMULT = "Tumult"


@dataclass(frozen=True)
class Budget:
    """One budget that is divided.

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
        """Return P in v(s) = v(1) / s^P."""
        return 2 if self.noise is NoiseKind.LAPLACE else 1

    @property
    def full_v(self) -> float:
        """Return v of a line that takes all of the budget: the square of its noise scale at sensitivity 1."""
        return compute_unit_scale(self.epsilon, self.noise, self.delta) ** 2

    def divide(self, shares: npt.ArrayLike) -> FloatArray:
        """Compute v of shares in [0, 1]; infinite at 0."""
        s = np.asarray(shares, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(self.full_v / s**self.power)

    def compute_amount(self, v: npt.ArrayLike) -> FloatArray:
        """Compute the amount of the additive budget that a line with this v takes: epsilon, or mu^2 = 1 / v."""
        return np.asarray(np.asarray(v, dtype=np.float64) ** (-1.0 / self.power))

    def convert_to_epsilon(self, amount: float) -> float:
        """Convert an amount of the additive budget to epsilon."""
        return convert_to_epsilon(amount, self.noise, self.delta)

    @property
    def exact_epsilon(self) -> float:
        """Compute the epsilon that is really spent at delta, if all noise were continuous and nothing rounded."""
        if self.noise is NoiseKind.LAPLACE:
            return self.epsilon
        assert self.delta is not None
        return compute_gaussian_epsilon(math.sqrt(self.full_v), self.delta)


def compute_unit_scale(epsilon: float, noise: NoiseKind, delta: float | None) -> float:
    """Compute the noise scale at sensitivity 1 of the programs: OpenDP's own if it is Gaussian.

    OpenDP accounts by rho-zCDP and converts it at the given delta: 6.5 to 8.7 % above the exact sigma at delta
    = 1e-6 where epsilon is from 0.1 to 3, and a plan with quantiles among its lines may use it.
    """
    if noise is NoiseKind.LAPLACE:
        return noise_error.compute_unit_scale(noise, epsilon, None)
    assert delta is not None
    return mechanisms.find_gaussian_scale(1, float(epsilon), float(delta))


@functools.lru_cache(maxsize=4096)
def convert_to_epsilon(amount: float, noise: NoiseKind, delta: float | None) -> float:
    """Convert an amount (mu^2 with Gaussian noise) to the epsilon of a plan; infinite if there is none."""
    if noise is NoiseKind.LAPLACE or not 0.0 < amount < MAX_AMOUNT:
        return amount if noise is NoiseKind.LAPLACE or amount == 0.0 else math.inf
    assert delta is not None
    return mechanisms.compute_gaussian_epsilon(amount**-0.5, float(delta))
