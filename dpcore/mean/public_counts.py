"""A mean from users with several rows each: the best cap, the best smooth weights, and what each costs.

Setting (Epasto et al. 2020, section 3): contribution counts are public; values lie in [0, B] with variance
sigma^2 and are independent; neighbours differ in one user's values; the release adds Laplace noise for
epsilon-DP. All errors here are variances in (unit of the values)^2.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common import weights, wording
from dpcore.common.certificate import Certificate
from dpcore.common.checks import EPSILON_RANGE, VALUE_BOUND_RANGE, Problems
from dpcore.common.privacy import LaplaceNoise, Neighbours
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray

NEIGHBOURS = Neighbours.REPLACE_VALUES
"""What the guarantee of this setting covers."""
ASSUMPTIONS = (
    "How many rows each user has is public, and so is a bound chosen from it; only their values are private. "
    "For most people's data the counts are private too: then the bound chosen here leaks",
    "Neighbouring data sets differ in the values of one user's rows, not in the user's presence",
    "Rows are independent draws with one variance, also those of one user",
    "Values are clamped to the stated bounds, which come from knowledge of the quantity, not from the data",
    "Noise is Laplace noise with scale B × (largest weight of a user) / ε",
)
"""What the answers of this module rest on; sentences without their full stop."""


@dataclass(frozen=True)
class MeanProblem:
    """The question: release the mean of all rows with epsilon-DP.

    Attributes:
        histogram: Rows per user; public in this setting.
        epsilon: Privacy budget, above 0.
        value_bound: B, the length of the interval that values are clamped to, above 0, in the values' unit.
        noise_variance: sigma^2, the variance of one row, at least 0, in the values' unit squared. Values in
            [0, B] cannot vary by more than B^2 / 4; larger figures are allowed, since the formulas are.

    Raises:
        InvalidInput: A parameter is not finite or out of its range; all problems at once.
    """

    histogram: ContributionHistogram
    epsilon: float
    value_bound: float
    noise_variance: float

    def __post_init__(self) -> None:
        problems = Problems()
        problems.positive(epsilon=self.epsilon, value_bound=self.value_bound)
        problems.non_negative(noise_variance=self.noise_variance)
        problems.raise_if_any()
        if not (0.0 < self._unit_noise < math.inf and self.trade_off <= weights.MAX_TRADE_OFF):
            problems.add(
                "epsilon, value_bound and noise_variance are so far apart that their ratio leaves float64",
                remedy="Express the values in another unit",
            )
        problems.raise_if_any()

    @property
    def _unit_noise(self) -> float:
        """2 (B / epsilon)^2: variance of the noise for a user who holds all the weight."""
        return LaplaceNoise.for_release(self.value_bound, self.epsilon).variance

    @property
    def trade_off(self) -> float:
        """A = sigma^2 / (2 (B / epsilon)^2), the trade-off of `dpcore.common.weights`."""
        return self.noise_variance / self._unit_noise


@dataclass(frozen=True)
class MeanError:
    """Expected squared error of the released mean, in its parts, at given bounds.

    Attributes:
        sampling_variance: Variance of the (weighted) mean before noise, (unit of the values)^2.
        privacy_variance: Variance of the Laplace noise, (unit of the values)^2.
    """

    sampling_variance: FloatArray
    privacy_variance: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Both parts together."""
        return np.asarray(self.sampling_variance + self.privacy_variance)


@dataclass(frozen=True)
class _Choice:
    sampling_variance: float
    privacy_variance: float
    certificate: Certificate
    ended: str

    @property
    def variance(self) -> float:
        """Expected squared error, (unit of the values)^2."""
        return self.sampling_variance + self.privacy_variance

    @property
    def standard_error(self) -> float:
        """Square root of `variance`, in the values' unit."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class SmoothChoice(_Choice):
    """The best smooth weights.

    Attributes:
        threshold: Real-valued h in rows per user: lighter users' rows all weigh the same, heavier users
            share the weight of h such rows among all of theirs.
        sampling_variance: Part of the expected squared error due to sampling.
        privacy_variance: Part due to privacy noise.
        certificate: The variance beside a dual lower bound for *all* weights.
        ended: How the search ended, a sentence.
    """

    threshold: float


@dataclass(frozen=True)
class CapChoice(_Choice):
    """The best cap.

    Attributes:
        max_contributions: Whole h: at most so many rows of each user are kept, all weighing the same.
        sampling_variance: Part of the expected squared error due to sampling.
        privacy_variance: Part due to privacy noise.
        certificate: The variance beside a lower bound for all whole caps.
        ended: How the search ended, a sentence.
    """

    max_contributions: int


def _error(problem: MeanProblem, losses: weights.Losses) -> MeanError:
    return MeanError(
        sampling_variance=np.asarray(problem.noise_variance * losses.squared_weights),
        privacy_variance=np.asarray(problem._unit_noise * losses.largest_weight**2),
    )


def smooth_error(problem: MeanProblem, thresholds: npt.ArrayLike) -> MeanError:
    """Both parts of v(h); shapes and source as `smooth_variance`."""
    return _error(problem, weights.smooth_losses(problem.histogram, thresholds))


def capped_error(problem: MeanProblem, caps: npt.ArrayLike) -> MeanError:
    """Both parts of v'(h); shapes and source as `capped_variance`."""
    return _error(problem, weights.capped_losses(problem.histogram, caps))


def smooth_variance(problem: MeanProblem, thresholds: npt.ArrayLike) -> FloatArray:
    """v(h), expected squared error of the mean under smooth weights with threshold h.

    Args:
        problem: The question.
        thresholds: h > 0 in rows per user, any shape. The noise is that for a user with h rows, so above
            s_m it is more than any user needs.

    Returns:
        Variances in (unit of the values)^2, float64, of the shape of ``thresholds``.

    Source: Epasto et al. 2020, claim 1:
        v(h) = sigma^2 sum_l s_l (min(h, s_l) / (n_h s_l))^2 + 2 (B h / (eps n_h))^2.
    """
    return smooth_error(problem, thresholds).variance


def capped_variance(problem: MeanProblem, caps: npt.ArrayLike) -> FloatArray:
    """v'(h), expected squared error of the mean when at most h rows of each user are kept.

    Args:
        problem: The question.
        caps: h > 0 in rows per user, any shape.

    Returns:
        Variances in (unit of the values)^2, float64, of the shape of ``caps``.

    Source: Epasto et al. 2020, claim 2: v'(h) = sigma^2 / n_h + 2 (B h / (eps n_h))^2.
    """
    return capped_error(problem, caps).variance


def best_smooth(problem: MeanProblem) -> SmoothChoice:
    """The best weights of all, exactly, with a certificate; see `dpcore.common.weights.best_smooth`."""
    best = weights.best_smooth(problem.histogram, problem.trade_off)
    return SmoothChoice(**_in_units(problem, best), threshold=best.bound)


def best_cap(problem: MeanProblem) -> CapChoice:
    """The best whole cap between s_1 and s_m, exactly, with a certificate; see `dpcore.common.weights.best_cap`."""
    best = weights.best_cap(problem.histogram, problem.trade_off)
    return CapChoice(**_in_units(problem, best), max_contributions=int(best.bound))


def _in_units(problem: MeanProblem, best: weights.Optimum) -> dict[str, Any]:
    """The fields of `_Choice`: the optimum of `dpcore.common.weights` in (unit of the values)^2."""
    error = _error(problem, best.losses)
    bound = problem._unit_noise * best.certificate.lower_bound
    return {
        "sampling_variance": float(error.sampling_variance),
        "privacy_variance": float(error.privacy_variance),
        "certificate": Certificate(float(error.variance), bound, best.certificate.argument),
        "ended": best.ended,
    }


def user_weight(problem: MeanProblem, threshold: float, sizes: npt.ArrayLike) -> FloatArray:
    """Weight of one data point of a user of each size.

    Args:
        problem: The question.
        threshold: h > 0 in rows per user.
        sizes: Rows per user, at least 1, any shape.

    Returns:
        min(h, s) / (s n_h), float64 of the shape of ``sizes``; over all rows of all users they sum to 1.

    Source: Epasto et al. 2020, lemma 3.
    """
    s = np.asarray(sizes, dtype=np.float64)
    return np.asarray(np.minimum(threshold, s) / s / problem.histogram.kept_rows(threshold))


def caps_within(problem: MeanProblem, excess: float = 0.05) -> tuple[int, int]:
    """The caps whose standard error is at most (1 + ``excess``) times that of the best cap.

    Returns:
        (smallest, largest) such cap from 1 to s_m, in rows per user; an interval: v' is quasi-convex on [s_1, s_m]
        and falls below s_1, where only the sampling error changes. A cap above s_m keeps no more rows than s_m.
    """
    best = best_cap(problem)
    low, high = weights.stretch_within(
        lambda h: float(capped_variance(problem, h)),
        best=float(best.max_contributions),
        low=1.0,
        high=float(problem.histogram.max_size),
        limit=best.variance * (1.0 + excess) ** 2,
        whole=True,
    )
    return int(low), int(high)


class NoiseSource(enum.Enum):
    """Where sigma^2, the variance of one row's value, is taken from."""

    WORST_CASE = "worst"
    FROM_VALUES = "values"
    ENTERED = "entered"


class Counts(enum.Enum):
    """Whether the number of rows of each user is public."""

    PUBLIC = "public"
    PRIVATE = "private"


@dataclass(frozen=True)
class MeanParameters:
    """What a person chooses on the Mean page: everything but the data.

    Attributes:
        epsilon: Privacy budget, in `dpcore.checks.EPSILON_RANGE`.
        lower: L, values below are raised to it, in the values' unit.
        upper: U > L, values above are lowered to it. B = U - L.
        noise: Where sigma^2 comes from.
        noise_variance: sigma^2 where it is entered, at most B^2 / 4, in the values' unit squared.
        own_cap: A cap to compare with the best one, in rows per user.
        counts: Whether contribution counts are public (this module's setting) or private too (that of
            `dpcore.mean.private_counts`).

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    lower: float = 0.0
    upper: float = 1.0
    noise: NoiseSource = NoiseSource.WORST_CASE
    noise_variance: float | None = None
    own_cap: int | None = None
    counts: Counts = Counts.PUBLIC

    def __post_init__(self) -> None:
        problems = Problems()
        problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
        if problems.finite(lower=self.lower, upper=self.upper):
            if self.lower >= self.upper:
                problems.add(
                    "the lower value bound must lie below the upper one; "
                    f"got {wording.entered(self.lower)} and {wording.entered(self.upper)}"
                )
            else:
                problems.between(*VALUE_BOUND_RANGE, **{"upper − lower": self.value_bound})
                self._check_noise(problems)
        if self.own_cap is not None:
            problems.whole(1, MAX_SIZE, **{"your own cap": self.own_cap})
        if not isinstance(self.counts, Counts):
            problems.add("counts must be a Counts")
        problems.raise_if_any()

    def _check_noise(self, problems: Problems) -> None:
        if self.noise is not NoiseSource.ENTERED:
            if self.noise_variance is not None:
                problems.add("a variance goes only with entered noise")
            return
        if self.noise_variance is None:
            problems.add("enter the variance of one row's value")
        elif problems.non_negative(noise_variance=self.noise_variance):
            most = self.largest_variance
            if self.noise_variance > most * (1.0 + 1e-12):
                low, high = wording.entered(self.lower), wording.entered(self.upper)
                problems.add(
                    f"values between {low} and {high} cannot vary by more than "
                    f"(upper − lower)²/4 = {wording.entered(most)}; got {wording.entered(self.noise_variance)}"
                )

    @property
    def value_bound(self) -> float:
        """B = U - L, in the values' unit."""
        return self.upper - self.lower

    @property
    def largest_variance(self) -> float:
        """B^2 / 4, which no values in [L, U] can exceed (Popoviciu's inequality)."""
        return self.value_bound * self.value_bound / 4.0  # 1e300**2 raises, 1e300 * 1e300 is infinite

    def problem(
        self,
        histogram: ContributionHistogram,
        values_variance: float | None = None,
        values_mean: float | None = None,
    ) -> MeanProblem:
        """The question on given data.

        Args:
            histogram: Rows per user.
            values_variance: Variance of the clamped values, for `NoiseSource.FROM_VALUES`; where it is
                missing the worst case stands in.
            values_mean: Mean of the clamped values, for the same; it matters only where counts are private.

        Returns:
            A `dpcore.mean_private.PrivateCountsProblem` where counts are private.
        """
        variance = self.largest_variance
        if self.noise is NoiseSource.ENTERED and self.noise_variance is not None:
            variance = self.noise_variance
        elif self.noise is NoiseSource.FROM_VALUES and values_variance is not None:
            variance = min(values_variance, variance)
        if self.counts is Counts.PUBLIC:
            return MeanProblem(histogram, self.epsilon, self.value_bound, variance)
        from dpcore.mean.private_counts import (
            PrivateCountsProblem,  # Here, since that module builds on this one.
        )

        expected = None
        if self.noise is NoiseSource.FROM_VALUES and values_mean is not None:
            expected = min(max(values_mean - self.lower, 0.0), self.value_bound)
        return PrivateCountsProblem(histogram, self.epsilon, self.value_bound, variance, expected)
