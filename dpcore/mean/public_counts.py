"""A mean from users with several rows each: the best cap, the best smooth weights, and the error of each.

Setting (Epasto et al. 2020, section 3): contribution counts are public; values lie in [0, B] with variance
sigma^2 and are independent; neighbours differ in one user's values; the release adds Laplace noise for
epsilon-DP. All errors here are variances in (unit of the values)^2.

`MeanProblem.target` and the fields after it choose the target and the model of users; the defaults are the paper's.
The other models are those of `dpcore.mean.models` and `dpcore.mean.table_values`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common import weights
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import LaplaceNoise, Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.mean.curves import BoundOptimum, interval_around
from dpcore.mean.models import CountsOnly, Growth, Model, Population, Target
from dpcore.mean.table_values import KnownValues, TableValues

NEIGHBOURS = Neighbours.REPLACE_VALUES
"""The relation of the guarantee of this setting."""
ASSUMPTIONS = (
    "How many rows each user has is public, and so is a bound chosen from it; only their values are private. "
    "For most people's data the counts are private too: then the bound chosen here leaks",
    "Neighbouring data sets differ in the values of one user's rows, not in the user's presence",
    "Rows are independent draws with one variance, also those of one user",
    "Values are clamped to the stated bounds, which come from knowledge of the quantity, not from the data",
    "Noise is Laplace noise with scale B × (largest weight of a user) / ε",
)
"""Assumptions of this module; sentences without their full stop."""


@dataclass(frozen=True)
class MeanProblem:
    """The problem of releasing the mean of all rows with epsilon-DP.

    Attributes:
        histogram: Rows per user; public in this setting.
        epsilon: Privacy budget, above 0.
        value_bound: B, the length of the interval that values are clamped to, above 0, in the values' unit.
        value_variance: sigma^2, the variance of one row, at least 0, in the values' unit squared. Values in
            [0, B] cannot vary by more than B^2 / 4; larger figures are allowed, since the formulas are.
        target: The mean that the release estimates.
        user_share: rho in [0, 1], the share of sigma^2 that lies between users; at 0 rows are independent.
        table: The values themselves, if the target is their mean: the error then assumes nothing about users and does
            not use sigma^2 and rho. None if the values must not be used.

    Raises:
        InvalidInput: A parameter is not finite or out of its range; all problems at once.
    """

    histogram: ContributionHistogram
    epsilon: float
    value_bound: float
    value_variance: float
    target: Target = field(default=Target.POPULATION, kw_only=True)
    user_share: float = field(default=0.0, kw_only=True)
    table: TableValues | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.positive(epsilon=self.epsilon, value_bound=self.value_bound)
            problems.non_negative(value_variance=self.value_variance)
            problems.of_kind(Target, target=self.target)
            problems.between(0.0, 1.0, user_share=self.user_share)
            if self.table is not None and self.target is not Target.TABLE:
                problems.add("values are read where the target is the mean of this table, and only there")
        # Every optimum depends on the parameters through this ratio alone; beyond float64 it would be 0, inf or NaN.
        if not (0.0 < self._unit_noise < math.inf and self.trade_off <= weights.MAX_TRADE_OFF):
            raise refuse(
                "epsilon, value_bound and value_variance are so far apart that their ratio leaves float64",
                remedy="Express the values in another unit",
            )

    @cached_property
    def _unit_noise(self) -> float:
        """Return 2 (B / epsilon)^2, the variance of the noise if one user holds all the weight."""
        return LaplaceNoise.for_release(self.value_bound, self.epsilon).variance

    @cached_property
    def model(self) -> Model | None:
        """Return the model of users, or None for the paper's independent rows."""
        if self.table is not None:
            return KnownValues(self.table, self._unit_noise)
        if self.target is Target.TABLE:
            return CountsOnly(self.histogram, self._unit_noise, self.value_variance, self.user_share)
        if self.user_share == 0.0:
            return None
        return Population(self.histogram, self._unit_noise, self.value_variance, self.user_share)

    @cached_property
    def trade_off(self) -> float:
        """Return A = sigma^2 / (2 (B / epsilon)^2), the trade-off of `dpcore.common.weights`."""
        return self.value_variance / self._unit_noise


@dataclass(frozen=True)
class MeanError:
    """Expected squared error of the released mean, in its parts, at given bounds.

    Attributes:
        sampling_variance: Variance of the (weighted) mean before noise, (unit of the values)^2.
        privacy_variance: Variance of the Laplace noise, (unit of the values)^2.
        shift: Bias before noise with its sign, in the values' unit; 0 where it is not known.
    """

    sampling_variance: FloatArray
    privacy_variance: FloatArray
    shift: FloatArray = field(default_factory=lambda: np.zeros(()))

    @property
    def variance(self) -> FloatArray:
        """Return the expected squared error, the sum of all parts with the shift squared."""
        return np.asarray(self.sampling_variance + self.privacy_variance + self.shift**2)


@dataclass(frozen=True)
class _Choice:
    sampling_variance: float
    privacy_variance: float
    certificate: Certificate
    stop_reason: str
    shift: float = field(default=0.0, kw_only=True)

    @cached_property
    def variance(self) -> float:
        """Return the expected squared error, (unit of the values)^2, with the shift squared."""
        return self.sampling_variance + self.privacy_variance + self.shift**2

    @cached_property
    def standard_error(self) -> float:
        """Return the square root of `variance`, in the values' unit."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class SmoothChoice(_Choice):
    """The best smooth weights.

    Attributes:
        threshold: Real-valued h in rows per user: lighter users' rows all weigh the same, heavier users
            share the weight of h such rows among all of theirs.
        sampling_variance: Part of the expected squared error due to sampling.
        privacy_variance: Part due to privacy noise.
        certificate: The variance and a dual lower bound for *all* weights; if values are used, a bound for all
            thresholds.
        ended: Sentence on how the search ended.
        shift: Part that is bias before noise, in the values' unit, with its sign; 0 where it is not known.
    """

    threshold: float


@dataclass(frozen=True)
class CapChoice(_Choice):
    """The best cap.

    Attributes:
        max_contributions: Integer h: at most h rows of each user are kept, with equal weights.
        sampling_variance: Part of the expected squared error due to sampling.
        privacy_variance: Part due to privacy noise.
        certificate: The variance and a lower bound for all integer caps.
        ended: Sentence on how the search ended.
        shift: Part that is bias before noise, in the values' unit, with its sign; 0 where it is not known.
    """

    max_contributions: int


def _error(problem: MeanProblem, losses: weights.Losses) -> MeanError:
    return MeanError(
        sampling_variance=np.asarray(problem.value_variance * losses.squared_weights),
        privacy_variance=np.asarray(problem._unit_noise * losses.largest_weight**2),
    )


def smooth_error(problem: MeanProblem, thresholds: npt.ArrayLike) -> MeanError:
    """Return all parts of v(h); shapes and source as `smooth_variance`."""
    if problem.model is not None:
        losses = problem.model.smooth(np.asarray(thresholds, dtype=np.float64))
        return MeanError(losses.sampling, problem._unit_noise * losses.largest_weight**2, losses.shift)
    return _error(problem, weights.smooth_losses(problem.histogram, thresholds))


def capped_error(problem: MeanProblem, caps: npt.ArrayLike) -> MeanError:
    """Return all parts of v'(h); shapes and source as `capped_variance`."""
    if problem.model is not None:
        losses = problem.model.capped(np.asarray(caps, dtype=np.float64))
        return MeanError(losses.sampling, problem._unit_noise * losses.largest_weight**2, losses.shift)
    return _error(problem, weights.capped_losses(problem.histogram, caps))


def smooth_variance(problem: MeanProblem, thresholds: npt.ArrayLike) -> FloatArray:
    """Return v(h), expected squared error of the mean under smooth weights with threshold h.

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
    """Return v'(h), expected squared error of the mean when at most h rows of each user are kept.

    Args:
        problem: The question.
        caps: h > 0 in rows per user, any shape.

    Returns:
        Variances in (unit of the values)^2, float64, of the shape of ``caps``.

    Source: Epasto et al. 2020, claim 2: v'(h) = sigma^2 / n_h + 2 (B h / (eps n_h))^2.
    """
    return capped_error(problem, caps).variance


def best_smooth(problem: MeanProblem) -> SmoothChoice:
    """Return the best of all weights, exactly, with a certificate; see `dpcore.common.weights.best_smooth`.

    If the problem has the values, the best of all thresholds.
    """
    if problem.model is not None:
        optimum = problem.model.best_smooth()
        return SmoothChoice(
            **_choice_fields(smooth_error(problem, optimum.bound), optimum), threshold=optimum.bound
        )
    best = weights.best_smooth(problem.histogram, problem.trade_off)
    return SmoothChoice(**_scaled_choice_fields(problem, best), threshold=best.bound)


def best_cap(problem: MeanProblem) -> CapChoice:
    """Return the best integer cap in [s_1, s_m], exactly, with a certificate; see `dpcore.common.weights.best_cap`."""
    if problem.model is not None:
        optimum = problem.model.best_cap()
        error = capped_error(problem, optimum.bound)
        return CapChoice(**_choice_fields(error, optimum), max_contributions=int(optimum.bound))
    best = weights.best_cap(problem.histogram, problem.trade_off)
    return CapChoice(**_scaled_choice_fields(problem, best), max_contributions=int(best.bound))


def _scaled_choice_fields(problem: MeanProblem, best: weights.Optimum) -> dict[str, Any]:
    """Return the fields of `_Choice` for an optimum of `dpcore.common.weights`, scaled to (unit of the values)^2."""
    # Both sides are recomputed from the losses: the value by the formula of the error, the bound by its own scale.
    error = _error(problem, best.losses)
    bound = problem._unit_noise * best.certificate.lower_bound
    return {
        "sampling_variance": float(error.sampling_variance),
        "privacy_variance": float(error.privacy_variance),
        "certificate": Certificate(float(error.variance), bound, best.certificate.argument),
        "stop_reason": best.stop_reason,
    }


def _choice_fields(error: MeanError, best: BoundOptimum) -> dict[str, Any]:
    """Return the fields of `_Choice` for the optimum of a model."""
    return {
        "sampling_variance": float(error.sampling_variance),
        "privacy_variance": float(error.privacy_variance),
        "shift": float(error.shift),
        "certificate": best.certificate,
        "stop_reason": best.stop_reason,
    }


def growth(problem: MeanProblem, threshold: float) -> Growth:
    """Describe the growth of a user's weight with their rows below a threshold; above it, it is constant."""
    return Growth() if problem.model is None else problem.model.growth(threshold)


def user_weight(problem: MeanProblem, threshold: float, sizes: npt.ArrayLike) -> FloatArray:
    """Return the weight of one row of a user of each size.

    Args:
        problem: The question.
        threshold: h > 0 in rows per user.
        sizes: Rows per user, at least 1, any shape.

    Returns:
        min(h, s) / (s n_h), float64 of the shape of ``sizes``; over all rows of all users they sum to 1. Where users
        differ, `Growth` of min(h, s) in the place of min(h, s).

    Source: Epasto et al. 2020, lemma 3.
    """
    s = np.asarray(sizes, dtype=np.float64)
    weight_growth = growth(problem, threshold)
    if weight_growth.is_plain:
        return np.asarray(np.minimum(threshold, s) / s / problem.histogram.kept_rows(threshold))
    histogram = problem.histogram
    total = weight_growth.user_weights(
        np.minimum(threshold, histogram.sizes.astype(np.float64))
    ) @ histogram.users.astype(np.float64)
    return np.asarray(weight_growth.user_weights(np.minimum(threshold, s)) / s / total)


def cap_stretches(
    problem: MeanProblem, excess: float = 0.05, best: CapChoice | None = None
) -> tuple[tuple[int, int], ...]:
    """Return the intervals of caps whose error is at most (1 + ``excess``) times that of the best cap.

    Returns:
        (smallest, largest) cap of each interval from 1 to s_m, in rows per user, ascending. For independent rows there
        is one: v' is quasi-convex on [s_1, s_m] and falls below s_1, where only the sampling error changes. A cap
        above s_m keeps no more rows than s_m.
    """
    best = best_cap(problem) if best is None else best
    # The excess is relative to the standard error; the limit is a variance.
    limit = best.variance * (1.0 + excess) ** 2
    if problem.model is not None:
        intervals = problem.model.cap_curve().intervals_within(limit, is_integer=True)
        return tuple((int(low), int(high)) for low, high in intervals)
    low, high = weights.find_interval_within(
        lambda caps: capped_variance(problem, caps),
        minimiser=float(best.max_contributions),
        low=1.0,
        high=float(problem.histogram.max_size),
        limit=limit,
        is_integer=True,
    )
    return ((int(low), int(high)),)


def caps_within(problem: MeanProblem, excess: float = 0.05) -> tuple[int, int]:
    """Return the interval of `cap_stretches` that contains the best cap."""
    best = best_cap(problem)
    low, high = interval_around(cap_stretches(problem, excess, best), best.max_contributions)
    return int(low), int(high)
