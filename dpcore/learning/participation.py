"""A population of users whose chance to contribute the next row follows a power law.

Row i comes from user J_i, drawn independently with P(J_i = j) = p_j, p_j = j^-(1 + alpha) / zeta(1 + alpha),
j = 1, 2, ... Small alpha spreads rows over many users; large alpha gives nearly all to a few.
What happens in a sample of n rows is in `dpcore.learning.participation_sample`.

Source: Amin et al. 2019, sections 5 to 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import refuse, require
from dpcore.contributions import FloatArray, Pieces

ALPHA_RANGE = (0.05, 10.0)
"""Below, single users' shares fall so slowly that float64 runs out of user numbers."""

FRACTION_RANGE = (1e-15, 1.0)

TABLE = 4096
"""Powers up to here are summed one by one; beyond, by Euler and Maclaurin."""


@dataclass(frozen=True)
class PowerLaw:
    """Participation p_j proportional to j^-(1 + alpha), j = 1, 2, ...

    Attributes:
        alpha: Between 0.05 and 10.

    Raises:
        InvalidInput: ``alpha`` is out of its range.

    Source: Amin et al. 2019, section 7 ("Pareto distributions").
    """

    alpha: float

    def __post_init__(self) -> None:
        require.between(*ALPHA_RANGE, alpha=self.alpha)

    @property
    def exponent(self) -> float:
        """Return 1 + alpha."""
        return 1.0 + self.alpha

    @cached_property
    def normaliser(self) -> float:
        """zeta(1 + alpha), the sum of j^-(1 + alpha)."""
        return float(self._zeta_from(np.array(1.0)))

    @property
    def largest(self) -> float:
        """Return p_1, the share of the heaviest user."""
        return 1.0 / self.normaliser

    def probability(self, users: npt.ArrayLike) -> FloatArray:
        """Return p_j at user numbers j >= 1, any shape (real numbers allowed, for integrals)."""
        return np.asarray(np.asarray(users, dtype=np.float64) ** -self.exponent / self.normaliser)

    def _zeta_from(self, first: FloatArray) -> FloatArray:
        """Return the Hurwitz zeta function: the sum over j >= first of j^-(1 + alpha)."""
        from scipy.special import zeta

        return np.asarray(zeta(self.exponent, first))

    def tail(self, users: npt.ArrayLike) -> FloatArray:
        """Return the mass of all users beyond number K, the sum over j > K of p_j; K whole, any shape."""
        return self._zeta_from(np.asarray(users, dtype=np.float64) + 1.0) / self.normaliser

    def users_above(self, share: npt.ArrayLike) -> FloatArray:
        """Return K(share), the number of users with p_j > share, for share > 0 of any shape; float64, whole."""
        h = np.asarray(share, dtype=np.float64)
        count = np.floor((h * self.normaliser) ** (-1.0 / self.exponent))
        # The root is rounded; ask the probabilities themselves on either side.
        count = np.where(self.probability(count + 1.0) > h, count + 1.0, count)
        inside = self.probability(np.maximum(count, 1.0)) > h
        return np.asarray(np.where((count > 0.0) & ~inside, count - 1.0, count))

    def uncapped_mass(self, fractions: npt.ArrayLike) -> FloatArray:
        """Return the sum of p_j over users with p_j <= tau_0, by Hurwitz zeta.

        Args:
            fractions: tau_0 above 0, any shape.

        Source: Amin et al. 2019, figure 2.
        """
        return self.tail(self.users_above(fractions))

    def kept_share(self, fractions: npt.ArrayLike) -> FloatArray:
        """Return the sum over j of min(p_j, tau_0), to which n_tau / n tends as n grows.

        The paper's text keeps only the uncapped mass; capped users keep tau_0 each.

        Source: Amin et al. 2019, proposition 5, Q(tau_0).
        """
        tau_0 = np.asarray(fractions, dtype=np.float64)
        users_above = self.users_above(tau_0)
        return np.asarray(self.tail(users_above) + tau_0 * users_above)

    def pieces(self, share: npt.ArrayLike) -> Pieces:
        """Return the sums over users at or below, and above, a share: mass, number, and sum of 1 / p_j.

        The counterpart of `ContributionHistogram.pieces` in shares; ``rows_at_or_below`` is a mass.
        """
        users_above = self.users_above(share)
        return Pieces(
            self.tail(users_above), users_above, np.asarray(self.normaliser * self._power_sum(users_above))
        )

    @cached_property
    def _powers(self) -> FloatArray:
        steps = np.arange(1.0, TABLE + 1.0) ** self.exponent
        return np.concatenate(([0.0], np.cumsum(steps)))

    def _power_sum(self, count: FloatArray) -> FloatArray:
        """Return the sum over j <= K of j^s, s = 1 + alpha, K whole.

        Beyond the table sum_{j=J+1}^K j^s = [x^(s+1) / (s+1) + x^s / 2 + s x^(s-1) / 12]_J^K - ..., the next
        term s (s-1) (s-2) x^(s-3) / 720 being below 1e-11 of the first.
        """
        s = self.exponent

        def primitive(x: FloatArray) -> FloatArray:
            return np.asarray(x ** (s + 1.0) / (s + 1.0) + x**s / 2.0 + s * x ** (s - 1.0) / 12.0)

        beyond = np.maximum(count, float(TABLE))
        start = np.array(float(TABLE))
        small = self._powers[np.minimum(count, TABLE).astype(np.int64)]
        return np.asarray(small + (primitive(beyond) - primitive(start)))


def checked_fractions(fractions: npt.ArrayLike) -> FloatArray:
    """Return tau_0 as float64, refused outside [1e-15, 1]."""
    tau_0 = np.asarray(fractions, dtype=np.float64)
    if not np.all((tau_0 >= FRACTION_RANGE[0]) & (tau_0 <= FRACTION_RANGE[1])):
        raise refuse(
            f"tau_0 must lie between {wording.entered(FRACTION_RANGE[0])} and {wording.entered(FRACTION_RANGE[1])}"
        )
    return tau_0


def checked_rows(num_rows: int, max_rows: int) -> int:
    """Return a number of rows n as int, refused outside [1, most]."""
    require.whole(1, max_rows, num_rows=num_rows)
    return math.floor(num_rows)
