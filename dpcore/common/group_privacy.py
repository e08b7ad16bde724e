"""The guarantee for several units of one person together, from the guarantee for one unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.common.privacy import format_rounded_up, round_up_to_float

_ORDERS = 1.0 + np.geomspace(1e-4, 1e6, 20_000)
"""Orders alpha at which rho is converted: each gives a bound, so that the smallest is one, too."""


@dataclass(frozen=True)
class PersonPrice:
    """The guarantee for a whole person.

    Attributes:
        epsilon: Never less than proven.
        delta: Likewise; 1 at most, where nothing is guaranteed.
        rho: Of zero-concentrated DP, where it gives epsilon at delta; 0 where it does not.
    """

    epsilon: float
    delta: float
    rho: float = 0.0

    @property
    def text(self) -> str:
        """Return epsilon, and delta and rho if above 0, as text, rounded up."""
        price_text = f"ε = {format_rounded_up(self.epsilon, 4)}"
        price_text += f", δ = {format_rounded_up(self.delta, 4)}" if self.delta else ""
        return price_text + (f" (ρ = {format_rounded_up(self.rho, 4)})" if self.rho else "")


def price_person(
    epsilon: float, delta: float, num_units: int, num_releases: int = 1, release_rho: float = 0.0
) -> PersonPrice:
    """Compute the guarantee for a person who is some units of each of some releases: group privacy, then composition.

    With k units of one release, epsilon becomes k epsilon and delta becomes (e^(k epsilon) - 1) / (e^epsilon - 1)
    delta. With one unit of k releases, they become k epsilon and k delta. A rho above 0 becomes k^2 rho or k rho,
    which is converted to epsilon at ``delta``; for one unit of one release it is not used.

    Args:
        epsilon: Of one release for one unit, above 0.
        delta: Likewise, at least 0.
        num_units: Units of the person in each release, at least 1.
        num_releases: At least 1.
        release_rho: Of zero-concentrated DP of one release for one unit, if it has it; else 0.

    Source: Dwork, Roth 2014, theorem 2.2 and its (epsilon, delta) form, and theorem 3.16; Bun, Steinke 2016,
        proposition 1.9 and lemma 1.7, for rho; Canonne, Kamath, Steinke 2020, proposition 7, for its conversion, solved
        for epsilon at each order.
    """
    if release_rho and num_units * num_releases > 1:
        person_rho = num_units**2 * num_releases * release_rho
        epsilons = person_rho * _ORDERS + np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS * delta) / (_ORDERS - 1.0)
        return PersonPrice(max(float(epsilons.min()) * (1.0 + 1e-9), 0.0), delta, person_rho)
    person_delta = 0.0
    if delta:
        # e^(k epsilon) can be beyond float64. The last factor covers rounding.
        log_delta = math.log(delta * num_releases) + _log_expm1(num_units * epsilon) - _log_expm1(epsilon)
        person_delta = math.exp(log_delta) * (1.0 + 1e-13) if log_delta < 0.0 else 1.0
    return PersonPrice(round_up_to_float(num_units * num_releases * Fraction(epsilon)), person_delta)


def _log_expm1(x: float) -> float:
    """Return log(e^x - 1) for any x above 0, without overflow."""
    return x + math.log(-math.expm1(-x))
