"""A sum of totals of either sign, clipped to [L, U]: what to offer where `dpcore.total` must refuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.programs import Program
from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.total import nonnegative
from dpcore.total.nonnegative import TotalErrors, TotalProblem


@dataclass(frozen=True)
class ClippedSum:
    """The error of sum_i clip(x_i, L, U) + noise, as an estimate of sum_i x_i. All in the totals' unit.

    Attributes:
        low: L.
        high: U.
        bias: sum_i clip(x_i, L, U) - x_i, of either sign: what is cut at one end may make up for the other.
        errors: The errors, each of shape (); they depend on the size of the bias alone, as the noise is symmetric.
        num_users_below: Users with less than L.
        num_users_above: Users with more than U.
    """

    low: float
    high: float
    bias: float
    errors: TotalErrors
    num_users_below: int
    num_users_above: int

    @property
    def sensitivity(self) -> float:
        """Return max(|L|, |U|), what adding or removing one user can change."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, eq=False)
class SignedProblem:
    """The problem of releasing the sum of one total per user, of either sign.

    Attributes:
        totals: One total per user, shape (num_users,).
        size_problem: The problem of the sizes |x_i|, by the paper's bound.
    """

    totals: FloatArray
    size_problem: TotalProblem

    @classmethod
    def from_totals(
        cls,
        totals: npt.ArrayLike,
        epsilon: float,
        mechanism: NoiseKind = NoiseKind.LAPLACE,
        delta: float | None = None,
        program: Program = Program.PYTHON,
    ) -> SignedProblem:
        """Build the problem from one total per user, of either sign.

        Raises:
            InvalidInput: A total is not finite, or epsilon or delta is out of its range.
        """
        x = np.asarray(totals, dtype=np.float64)
        amounts = Amounts.from_totals(np.abs(x))
        return cls(x, TotalProblem(amounts, epsilon, mechanism, delta, Measure.BOUND, program=program))

    def clip(self, lower: float, upper: float) -> ClippedSum:
        """Compute the error of clipping every total to [L, U]."""
        x = self.totals
        bias = float(np.sum(np.clip(x, lower, upper) - x))
        clipped_sum_errors = self._build_errors(max(abs(lower), abs(upper)), abs(bias))
        return ClippedSum(
            float(lower),
            float(upper),
            bias,
            clipped_sum_errors,
            int(np.sum(x < lower)),
            int(np.sum(x > upper)),
        )

    def propose_bound(self) -> float:
        """Propose T for a range [-T, T]: the one with the least sum_i max(|x_i| - T, 0) plus mean noise.

        What is cut at the two ends may cancel, so the error itself can be smaller; this bound does not count on it. T
        is rounded to few digits (`find_short_bound`), because the exact value equals one user's total.
        """
        best_bound = nonnegative.find_optimal_bound(self.size_problem)
        return nonnegative.find_short_bound(self.size_problem, best_bound)

    def compute_symmetric_errors(self, bounds: npt.ArrayLike) -> TotalErrors:
        """Compute the errors of clipping to [-T, T], for T >= 0 of any shape.

        Returns:
            `TotalErrors` with the size of the bias, whatever its sign. Cuts at the two ends may partly cancel,
            so the bias need not fall as T grows.
        """
        return self._build_errors(bounds, np.abs(self.compute_shortfall(bounds)))

    def compute_shortfall(self, bounds: npt.ArrayLike) -> FloatArray:
        """Compute the sum less the sum of totals clipped to [-T, T], shape of ``bounds``; it may be negative."""
        t = np.asarray(bounds, dtype=np.float64)
        # The sum lacks what is cut above T, and has too much by what is raised to -T.
        positive_amounts = Amounts.from_totals(np.maximum(self.totals, 0.0))
        negative_amounts = Amounts.from_totals(np.maximum(-self.totals, 0.0))
        return np.asarray(positive_amounts.sum_excess(t) - negative_amounts.sum_excess(t))

    def _build_errors(self, bounds: npt.ArrayLike, bias: npt.ArrayLike) -> TotalErrors:
        """Compute the errors of bounds T from the size of their bias."""
        return nonnegative.build_errors(self.size_problem.noise, bounds, bias)
