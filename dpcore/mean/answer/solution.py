"""Solve a mean on a data set: the best choices, their error curves, and the limits of the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore import mean
from dpcore.answer import axes
from dpcore.answer.against import BoundComparison
from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import private_counts, worst_values
from dpcore.mean.models import interval_around
from dpcore.mean.table_values import Clamped, ValueSummary


@dataclass(frozen=True)
class SplitRelease:
    """The usual release of a private mean, to compare with ours: numerator and denominator, half of epsilon each.

    Attributes:
        cap: The best cap of that release.
        capped: The error of that release over the ``bounds`` of the solution.
        centred: The best cap of the release that centres the values first.
    """

    cap: mean.CapChoice
    capped: mean.MeanError
    centred: mean.CapChoice


@dataclass(frozen=True)
class WorstCaseErrors:
    """The worst-case error about the mean of this table over all values in [L, U]; root mean square.

    With private counts the ratio is linearised, so these errors are approximations like the expected error.

    Attributes:
        cap: Error of the best bound, which keeps rows at random.
        smooth: Error of the best smooth weights.
        any_weights: Smallest worst-case error of any weights of users; some smooth weights have it.
    """

    cap: float
    smooth: float
    any_weights: float


@dataclass(frozen=True, eq=False)
class MeanSolution:
    """The best cap and the best smooth weights with their error curves; it does not depend on the user's own cap.

    Attributes:
        problem: The problem on these data.
        cap: The best cap.
        smooth: The best smooth weights.
        stretches: Smallest and largest cap of each stretch within 5 % of the best error, from 1 to s_m, ascending.
        bounds: Bounds of the curves in rows per user, ascending, shape (points,).
        capped: Error over ``bounds`` when capping.
        smoothed: Error over ``bounds`` under smooth weights.
        split_release: The usual release of a numerator and a denominator, if counts are private; None if they are
            public.
        values: Summary of the values, clamped to [L, U]; None if the data have no values.
        worst_case: The worst-case errors; None if the target is not the mean of this table.
    """

    problem: mean.MeanProblem
    cap: mean.CapChoice
    smooth: mean.SmoothChoice
    stretches: tuple[tuple[int, int], ...]
    bounds: FloatArray
    capped: mean.MeanError
    smoothed: mean.MeanError
    split_release: SplitRelease | None = None
    values: ValueSummary | None = None
    worst_case: WorstCaseErrors | None = None

    @cached_property
    def clamped(self) -> Clamped | None:
        """Return the values clamped to [L, U], per user, or None if the data have no values."""
        return None if self.values is None else self.values.clamped

    @cached_property
    def near_optimal(self) -> tuple[int, int]:
        """Return the interval (smallest, largest) of caps around the best cap whose error is within 5 % of the best."""
        low, high = interval_around(self.stretches, self.cap.max_contributions)
        return int(low), int(high)

    @cached_property
    def is_about_table(self) -> bool:
        """Return True if the error is about the mean of this table, not about a population."""
        return self.problem.target is mean.Target.TABLE

    @cached_property
    def has_private_counts(self) -> bool:
        """Return True if contribution counts are private too; all errors are then delta-method approximations."""
        return self.split_release is not None

    @property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation of the release."""
        return Neighbours.ADD_OR_REMOVE_USER if self.has_private_counts else Neighbours.REPLACE_VALUES

    @cached_property
    def error_name(self) -> str:
        """Return the name of the error within a sentence; a *standard error* includes no bias."""
        return "error" if self.is_about_table else "standard error"

    @property
    def error_over_users(self) -> float:
        """Return the error of a release of the mean over users; each user has one value, their mean.

        No rows are left out, so all of the error is noise: sqrt(2) B / (epsilon m) where counts are public. Clamping is
        not included. Keeping fewer rows of each user would not reduce the noise, as a user's mean may lie anywhere from
        L to U.
        """
        # Every user weighs 1 / m; the unit noise is that for a user who holds all the weight.
        return math.sqrt(self.problem._unit_noise) / self.problem.histogram.num_users

    def standard_error(self, cap: float) -> float:
        """Return the root mean square error at a cap, in the values' unit."""
        return math.sqrt(mean.capped_variance(self.problem, cap))


def solve(dataset: Dataset, parameters: mean.MeanParameters, values: ValueSummary | None) -> MeanSolution:
    """Solve for the best choices and evaluate their curves.

    Args:
        dataset: The data.
        parameters: The question.
        values: Summary of the values, which does not depend on epsilon; None if the data have no values.
    """
    histogram = dataset.histogram
    problem = parameters.problem(histogram, values)
    cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)
    bounds = np.unique(
        np.concatenate((axes.choose_curve_bounds(histogram), [cap.max_contributions, smooth.threshold]))
    )
    split_release = worst_case = None
    if isinstance(problem, private_counts.PrivateCountsProblem):
        split = replace(problem, release=private_counts.Release.SPLIT)
        centred = mean.best_cap(replace(problem, release=private_counts.Release.CENTRED_SPLIT))
        split_release = SplitRelease(mean.best_cap(split), mean.capped_error(split, bounds), centred)
    if problem.target is mean.Target.TABLE:
        user_weights = mean.user_weight(problem, smooth.threshold, histogram.sizes) * histogram.sizes
        worst_case = WorstCaseErrors(
            float(worst_values.caps_error_bound(problem, float(cap.max_contributions))),
            worst_values.any_weights_error(problem, user_weights),
            worst_values.best_weights(problem).error,
        )
    return MeanSolution(
        problem=problem,
        cap=cap,
        smooth=smooth,
        stretches=mean.cap_stretches(problem, best=cap),
        bounds=bounds,
        capped=mean.capped_error(problem, bounds),
        smoothed=mean.smooth_error(problem, bounds),
        split_release=split_release,
        values=values,
        worst_case=worst_case,
    )


NOT_COMPARED = ("own_bound",)


def against_epsilon(dataset: Dataset, parameters: mean.MeanParameters) -> BoundComparison:
    """Compare the best cap and its error over epsilon."""
    values = ValueSummary.from_dataset(dataset, parameters.lower, parameters.upper)
    problem = parameters.problem(dataset.histogram, values)

    def best(epsilon: float) -> tuple[float, float]:
        cap = mean.best_cap(replace(problem, epsilon=epsilon))
        return float(cap.max_contributions), cap.standard_error

    return BoundComparison(
        "Best bound (rows per user)",
        f"{'Error' if problem.target is mean.Target.TABLE else 'Standard error'} (unit of the values)",
        best,
        lambda epsilon, caps: np.sqrt(mean.capped_variance(replace(problem, epsilon=epsilon), caps)),
        dataset.histogram.sizes,
        dataset.histogram.users,
    )


def offered_errors(histogram: ContributionHistogram, value_bound: float) -> tuple[float, float]:
    """Return (from, to) of the error's axis, which contains the best error at any epsilon and sigma^2."""
    noise = [math.sqrt(2.0) * value_bound / epsilon for epsilon in EPSILON_RANGE]
    # Lowest without sampling error: every user weighs the same, and noise is the whole error. Highest if all rows are
    # kept and values have the largest variance, B^2 / 4: claim 2.
    sampling = value_bound / 2.0 / math.sqrt(histogram.num_rows)
    high = math.hypot(sampling, noise[0] * histogram.max_size / histogram.num_rows)
    return noise[1] / histogram.num_users, high
