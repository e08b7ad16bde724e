"""What the mathematics finds for a mean on a data set: the choices, their curves, and where these are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore import mean
from dpcore.answer import axes
from dpcore.answer.against import BoundComparison
from dpcore.common.checks import EPSILON_RANGE
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.curves import holding
from dpcore.mean.read_values import ReadValues
from dpcore.mean.user_effects import Clamped

Limits = tuple[tuple[float, float], tuple[float, float]]
"""(from, to) of the bound's axis and of the error's."""


@dataclass(frozen=True)
class UsualRoute:
    """A private numerator and a private denominator, half of epsilon each, beside our pair of sums.

    Attributes:
        problem: The same question with the usual release.
        cap: Its own best cap.
        capped: Its error over the view's ``bounds``.
        centred: The best cap of the release that centres the values first.
    """

    problem: private_counts.PrivateCountsProblem
    cap: mean.CapChoice
    capped: mean.MeanError
    centred: mean.CapChoice


@dataclass(frozen=True, eq=False)
class MeanFound:
    """All that depends on data and question, but not on a cap of the person's own.

    Attributes:
        problem: The question on these data.
        cap: The best cap.
        smooth: The best smooth weights.
        stretches: Smallest and largest cap of each stretch within 5 % of the best error, from 1 to s_m, ascending.
        bounds: Bounds of the curves in rows per user, ascending, shape (points,).
        capped: Error over ``bounds`` when capping.
        smoothed: Error over ``bounds`` under smooth weights.
        usual: Where counts are private too, what the usual route reaches, numerator and denominator released with
            half of epsilon each; None where they are public.
        read: What the values say, forced into [L, U]; None where the data have none.
    """

    problem: mean.MeanProblem
    cap: mean.CapChoice
    smooth: mean.SmoothChoice
    stretches: tuple[tuple[int, int], ...]
    bounds: FloatArray
    capped: mean.MeanError
    smoothed: mean.MeanError
    usual: UsualRoute | None = None
    read: ReadValues | None = None

    @cached_property
    def clamped(self) -> Clamped | None:
        """Return the values forced into [L, U], per user, or None if the data have none."""
        return None if self.read is None else self.read.clamped

    @cached_property
    def within(self) -> tuple[int, int]:
        """Return the stretch that holds the best cap."""
        low, high = holding(self.stretches, self.cap.max_contributions)
        return int(low), int(high)

    @cached_property
    def of_table(self) -> bool:
        """Return True if the error is that about the mean of this very table."""
        return self.problem.target is mean.Target.TABLE

    @cached_property
    def private_counts(self) -> bool:
        """Return True if contribution counts are private too; all errors are then delta-method approximations."""
        return self.usual is not None

    @cached_property
    def error_name(self) -> str:
        """Return what the error is called within a sentence: a standard error covers no shift."""
        return "error" if self.of_table else "standard error"

    def standard_errors(self, caps: Sequence[float]) -> list[float]:
        """Roots of the expected squared error at any caps, in the values' unit."""
        return [math.sqrt(one) for one in mean.capped_variance(self.problem, caps).tolist()]


def read_values(data: Dataset, parameters: mean.MeanParameters) -> ReadValues | None:
    """Return what the values say, forced into [L, U], or None if the data have none."""
    return ReadValues.of(data, parameters.lower, parameters.upper)


def find(data: Dataset, parameters: mean.MeanParameters, read: ReadValues | None) -> MeanFound:
    """Solve and evaluate; ``read`` is `read_values`, which does not depend on epsilon."""
    histogram = data.histogram
    problem = parameters.problem(histogram, read=read)
    if isinstance(problem, private_counts.PrivateCountsProblem):
        cap, smooth = private_counts.best_cap(problem), private_counts.best_smooth(problem)
    else:
        cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)
    bounds = np.unique(
        np.concatenate((axes.choose_curve_bounds(histogram), [cap.max_contributions, smooth.threshold]))
    )
    return MeanFound(
        problem=problem,
        cap=cap,
        smooth=smooth,
        stretches=mean.cap_stretches(problem, best=cap),
        bounds=bounds,
        capped=mean.capped_error(problem, bounds),
        smoothed=mean.smooth_error(problem, bounds),
        usual=_usual(problem, bounds),
        read=read,
    )


def _usual(problem: mean.MeanProblem, bounds: FloatArray) -> UsualRoute | None:
    if not isinstance(problem, private_counts.PrivateCountsProblem):
        return None
    split = replace(problem, release=private_counts.Release.SPLIT)
    centred = replace(problem, release=private_counts.Release.CENTRED_SPLIT)
    return UsualRoute(
        problem=split,
        cap=private_counts.best_cap(split),
        capped=mean.capped_error(split, bounds),
        centred=private_counts.best_cap(centred),
    )


NOT_COMPARED = ("own_cap",)


def against_epsilon(data: Dataset, parameters: mean.MeanParameters) -> BoundComparison:
    """Return the best cap and its error at any epsilon."""
    values = read_values(data, parameters)
    problem = parameters.problem(data.histogram, read=values)

    def choice(epsilon: float) -> mean.CapChoice:
        at = replace(problem, epsilon=epsilon)
        if isinstance(at, private_counts.PrivateCountsProblem):
            return private_counts.best_cap(at)
        return mean.best_cap(at)

    def best(epsilon: float) -> tuple[float, float]:
        found = choice(epsilon)
        return float(found.max_contributions), found.standard_error

    return BoundComparison(
        "Best bound (rows per user)",
        f"{'Error' if problem.target is mean.Target.TABLE else 'Standard error'} (unit of the values)",
        best,
        lambda epsilon, caps: np.sqrt(mean.capped_variance(replace(problem, epsilon=epsilon), caps)),
        data.histogram.sizes,
        data.histogram.users,
    )


def offered_errors(histogram: ContributionHistogram, value_bound: float) -> tuple[float, float]:
    """Return (from, to) that the error's axis offers: no best point at any epsilon and sigma^2 lies outside."""
    least_epsilon, most_epsilon = EPSILON_RANGE
    # Without sampling error every user weighs the same, and noise is all there is.
    low = math.sqrt(2.0) * value_bound / (most_epsilon * histogram.num_users)
    return low, _unbounded(histogram, value_bound, least_epsilon)


def _unbounded(histogram: ContributionHistogram, value_bound: float, epsilon: float) -> float:
    """Return the standard error where all rows are kept and values vary as much as they can: claim 2 of the paper."""
    weight = histogram.max_size / histogram.num_rows
    return math.hypot(
        value_bound / 2.0 / math.sqrt(histogram.num_rows), math.sqrt(2.0) * value_bound / epsilon * weight
    )
