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
        text = f"ε = {format_rounded_up(self.epsilon, 4)}"
        text += f", δ = {format_rounded_up(self.delta, 4)}" if self.delta else ""
        return text + (f" (ρ = {format_rounded_up(self.rho, 4)})" if self.rho else "")


def price_group(epsilon: float, delta: float, num_units: int, rho: float = 0.0) -> PersonPrice:
    """Compute the guarantee of one release for a person who is ``num_units`` of its units, by group privacy.

    That is k epsilon and (e^(k epsilon) - 1) / (e^epsilon - 1) delta. With rho it is k^2 rho, converted at ``delta``.

    Args:
        epsilon: For one unit, above 0.
        delta: Likewise, at least 0.
        num_units: k, at least 1.
        rho: Of zero-concentrated DP for one unit, if the release has it; else 0.

    Source: Dwork, Roth 2014, theorem 2.2 and its (epsilon, delta) form; Bun, Steinke 2016, proposition 1.9, for rho.
    """
    if rho and num_units > 1:
        return _price_rho(num_units**2 * rho, delta)
    group_delta = 0.0
    if delta:
        # e^(k epsilon) can be beyond float64. The factor covers rounding.
        log_factor = _log_expm1(num_units * epsilon) - _log_expm1(epsilon) if num_units > 1 else 0.0
        log_delta = math.log(delta) + log_factor
        group_delta = min(math.exp(log_delta) * (1.0 + 1e-9), 1.0) if log_delta < 0.0 else 1.0
    return PersonPrice(round_up_to_float(num_units * Fraction(epsilon)), group_delta)


def price_releases(epsilon: float, delta: float, num_releases: int, rho: float = 0.0) -> PersonPrice:
    """Compute the guarantee of several releases for a person who is one unit of each: k epsilon, k delta and k rho.

    Args:
        epsilon: Of one release, above 0.
        delta: Likewise, at least 0.
        num_releases: k, at least 1.
        rho: Of zero-concentrated DP of one release, if it has it; else 0.

    Source: Dwork, Roth 2014, theorem 3.16; Bun, Steinke 2016, lemma 1.7, for rho.
    """
    if rho and num_releases > 1:
        return _price_rho(num_releases * rho, delta)
    total_delta = round_up_to_float(min(num_releases * Fraction(delta), Fraction(1)))
    return PersonPrice(round_up_to_float(num_releases * Fraction(epsilon)), total_delta)


def _log_expm1(x: float) -> float:
    """Return log(e^x - 1) for any x above 0, without overflow."""
    return x + math.log(-math.expm1(-x))


def _price_rho(rho: float, delta: float) -> PersonPrice:
    """Convert rho of zero-concentrated DP to epsilon at ``delta``.

    Source: Canonne, Kamath, Steinke 2020, proposition 7, solved for epsilon at each order.
    """
    epsilons = rho * _ORDERS + np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS * delta) / (_ORDERS - 1.0)
    return PersonPrice(max(float(epsilons.min()) * (1.0 + 1e-9), 0.0), delta, rho)
