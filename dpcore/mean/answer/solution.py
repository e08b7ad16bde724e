"""Solve a mean on a data set: the best choices and their error curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import axes
from dpcore.answer.against import BoundComparison
from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program, find_noise
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import worst_values
from dpcore.mean.answer.users_solution import UsersSolution, solve_users
from dpcore.mean.models import find_interval_around
from dpcore.mean.moved_mean import find_mean, measure_caps, measure_weights
from dpcore.mean.parameters import MeanParameters, VarianceSource
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from dpcore.mean.table_values import ClampedValues, ValueSummary

MAX_LISTED_INTERVALS = 4


@dataclass(frozen=True)
class SplitRelease:
    """The usual release of a private mean, to compare with ours: numerator and denominator, half of epsilon each.

    Attributes:
        cap_choice: The best cap of that release.
        capped_errors: The error of that release over the ``bounds`` of the solution.
    """

    cap_choice: mean.CapChoice
    capped_errors: mean.MeanError


@dataclass(frozen=True)
class WorstCaseErrors:
    """The worst-case error about the mean of this table over all values in [L, U]; root mean square.

    With private counts the ratio is linearised, so these errors are approximations like the expected error.

    Attributes:
        cap_error_bound: Upper bound on the error of the best bound, which keeps rows at random.
        smooth_error: Error of the best smooth weights.
        best_weights_error: Smallest worst-case error of any weights of users; some smooth weights have it.
    """

    cap_error_bound: float
    smooth_error: float
    best_weights_error: float


@dataclass(frozen=True, eq=False)
class MeanSolution:
    """The best cap and the best smooth weights with their error curves; it does not depend on the user's own cap.

    Errors are those after a mean outside [L, U] is moved into it, by `dpcore.mean.moved_mean`. Choices are the best,
    and stretches near-optimal, before that step.

    Attributes:
        problem: The problem on these data.
        cap_choice: The best cap.
        smooth_choice: The best smooth weights.
        stretches: Smallest and largest cap of each stretch within 5 % of the best error, from 1 to s_m, ascending.
        bounds: Bounds of the curves in rows per user, ascending, shape (points,).
        capped_errors: Error over ``bounds`` when capping.
        smooth_errors: Error over ``bounds`` under smooth weights.
        cap_error: Error of the best cap.
        smooth_error: Error of the best smooth weights.
        split_release: The usual release of a numerator and a denominator, if counts are private; None if they are
            public.
        value_summary: Summary of the values, clamped to [L, U]; None if the data have no values.
        worst_case_errors: The worst-case errors; None if the target is not the mean of this table.
        users_solution: The best smooth weights if users are clamped in place of rows; None for programs that cannot.
    """

    problem: mean.MeanProblem
    cap_choice: mean.CapChoice
    smooth_choice: mean.SmoothChoice
    stretches: tuple[tuple[int, int], ...]
    bounds: FloatArray
    capped_errors: mean.MeanError
    smooth_errors: mean.MeanError
    cap_error: mean.MeanError
    smooth_error: mean.MeanError
    split_release: SplitRelease | None = None
    value_summary: ValueSummary | None = None
    worst_case_errors: WorstCaseErrors | None = None
    users_solution: UsersSolution | None = None

    @cached_property
    def clamped_values(self) -> ClampedValues | None:
        """Return the values clamped to [L, U], per user, or None if the data have no values."""
        return None if self.value_summary is None else self.value_summary.clamped_values

    @cached_property
    def near_optimal(self) -> tuple[int, int]:
        """Return the interval (smallest, largest) of caps around the best cap whose error is within 5 % of the best."""
        smallest_cap, largest_cap = find_interval_around(self.stretches, self.cap_choice.max_contributions)
        return int(smallest_cap), int(largest_cap)

    @cached_property
    def is_about_table(self) -> bool:
        """Return True if the error is about the mean of this table, not about a population."""
        return self.problem.target is mean.Target.TABLE

    @cached_property
    def has_private_counts(self) -> bool:
        """Return True if contribution counts are private too; all errors are then delta-method approximations."""
        return self.split_release is not None

    @cached_property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation of the release: the user comes or goes if counts are private."""
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
        return math.sqrt(self.problem._unit_noise_variance) / self.problem.histogram.num_users

    @cached_property
    def includes_step(self) -> bool:
        """Return True if errors count that a mean is moved into its range; False if they are upper bounds."""
        return find_mean(self.problem) is not None

    @property
    def cap_standard_error(self) -> float:
        """Return the root mean square error of the best cap, in the values' unit."""
        return math.sqrt(float(self.cap_error.squared_error))

    @property
    def smooth_standard_error(self) -> float:
        """Return the root mean square error of the best smooth weights, in the values' unit."""
        return math.sqrt(float(self.smooth_error.squared_error))

    def compute_standard_errors(self, caps: npt.ArrayLike) -> FloatArray:
        """Return the root mean square errors at caps, in the values' unit, of the shape of ``caps``."""
        return np.sqrt(measure_caps(self.problem, caps).squared_error)


def solve(dataset: Dataset, parameters: MeanParameters, value_summary: ValueSummary | None) -> MeanSolution:
    """Solve for the best choices and evaluate their curves.

    Args:
        dataset: The data.
        parameters: The question.
        value_summary: Summary of the values, which does not depend on epsilon; None if the data have no values.

    Raises:
        InvalidInput: Counts are to be public, and values decide which rows count.
    """
    histogram = dataset.histogram
    if parameters.counts is mean.Counts.PUBLIC:
        dataset.refuse_public_counts()
    problem = parameters.build_problem(histogram, value_summary)
    cap_choice, smooth_choice = mean.find_best_cap(problem), mean.find_best_smooth(problem)
    best_bounds = [cap_choice.max_contributions, smooth_choice.threshold]
    bounds = np.unique(np.concatenate((axes.choose_curve_bounds(histogram), best_bounds)))
    split_release, worst_case_errors = None, None
    has_entered_variance = parameters.variance_source is VarianceSource.ENTERED
    if isinstance(problem, PrivateCountsProblem):
        split_problem = replace(problem, released_sums=ReleasedSums.SPLIT)
        split_release = SplitRelease(
            mean.find_best_cap(split_problem), mean.compute_capped_error(split_problem, bounds)
        )
    if problem.target is mean.Target.TABLE:
        user_weights = (
            mean.compute_row_weight(problem, smooth_choice.threshold, histogram.sizes) * histogram.sizes
        )
        worst_case_errors = WorstCaseErrors(
            worst_values.bound_worst_cap_error(problem, cap_choice.max_contributions),
            worst_values.compute_worst_error(problem, user_weights),
            worst_values.find_best_weights(problem).error,
        )
    return MeanSolution(
        problem=problem,
        cap_choice=cap_choice,
        smooth_choice=smooth_choice,
        stretches=mean.find_cap_stretches(problem, cap_choice=cap_choice),
        bounds=bounds,
        capped_errors=measure_caps(problem, bounds),
        smooth_errors=measure_weights(problem, bounds),
        cap_error=measure_caps(problem, cap_choice.max_contributions),
        smooth_error=measure_weights(problem, smooth_choice.threshold),
        split_release=split_release,
        value_summary=value_summary,
        worst_case_errors=worst_case_errors,
        users_solution=solve_users(problem, smooth_choice, bounds, value_summary, has_entered_variance),
    )


IGNORED_FIELD_NAMES = ("own_bound",)


def compare_over_epsilon(dataset: Dataset, parameters: MeanParameters) -> BoundComparison:
    """Build the comparison over epsilon: functions for the best cap with its error, and for errors at caps."""
    value_summary = ValueSummary.from_dataset(dataset, parameters.lower, parameters.upper)
    problem = parameters.build_problem(dataset.histogram, value_summary)

    def compute_best(epsilon: float) -> tuple[float, float]:
        """Return the best cap at one epsilon, and its error."""
        epsilon_problem = replace(problem, epsilon=epsilon)
        cap = float(mean.find_best_cap(epsilon_problem).max_contributions)
        return cap, math.sqrt(float(measure_caps(epsilon_problem, cap).squared_error))

    return BoundComparison(
        "Best bound (rows per user)",
        f"{'Error' if problem.target is mean.Target.TABLE else 'Standard error'} (unit of the values)",
        compute_best,
        lambda epsilon, caps: np.sqrt(measure_caps(replace(problem, epsilon=epsilon), caps).squared_error),
        dataset.histogram.sizes,
        dataset.histogram.users,
    )


LARGEST_STD_RATIO_OF_NOISES = 1.6
"""Noise by way of zero-concentrated DP over that of the exact mechanism, at most, for delta up to 1/2."""


def choose_error_limits(problem: mean.MeanProblem) -> tuple[float, float]:
    """Choose (lowest, highest) error of the axis, between which the best error lies at any epsilon and sigma^2."""
    histogram, library_program, std_factor = problem.histogram, problem.program, 1.0
    if problem.noise.kind is NoiseKind.GAUSSIAN:
        # A conversion takes a second at the ends of the range.
        library_program, std_factor = Program.PYTHON, LARGEST_STD_RATIO_OF_NOISES
    noise_variance_factor = problem.relative_noise / float(problem.noise.compute_variance(1.0))

    def compute_noise_deviation(epsilon: float) -> float:
        """Return the standard deviation of the noise at one epsilon if one user holds all the weight."""
        num_aggregates = problem.num_aggregates
        noise = find_noise(
            library_program, problem.mechanism, epsilon, problem.delta, num_aggregates=num_aggregates
        )
        return problem.value_bound * math.sqrt(noise_variance_factor * float(noise.compute_variance(1.0)))

    # Lowest without sampling error: every user weighs the same, and noise is the whole error, or half of its square if
    # the mean is an end of its range. Highest if all rows are kept and values have the largest variance, B^2 / 4:
    # claim 2.
    largest_noise = (
        compute_noise_deviation(EPSILON_RANGE[0]) * std_factor * histogram.max_size / histogram.num_rows
    )
    least_error = compute_noise_deviation(EPSILON_RANGE[1]) / histogram.num_users
    if find_mean(problem) is not None:
        least_error *= math.sqrt(0.5)
    return least_error, math.hypot(problem.value_bound / 2.0 / math.sqrt(histogram.num_rows), largest_noise)
