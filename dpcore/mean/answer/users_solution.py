"""Solve a mean whose users' deviations are clamped: the best smooth weights and their error over bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS
from dpcore.contributions import FloatArray
from dpcore.mean.moved_mean import measure_reach, move_error, move_users_error
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.table_values import UserDeviations, ValueSummary
from dpcore.mean.user_model import UserModel

ErrorFunction = Callable[[npt.ArrayLike], mean.MeanError]


@dataclass(frozen=True, eq=False)
class UsersSolution:
    """The best smooth weights if users' deviations are clamped, and their error over bounds.

    Errors are those after a mean that no users can have is moved to the nearest that they can.

    Attributes:
        problem: The problem that the errors are of; in a model of users with private counts the mean is the middle.
        threshold: h, in rows per user.
        deviation_limit: T = h (U - L) / 2, in rows times the values' unit.
        mean_error: The error at h.
        mean_errors: The error at the bounds of the solution, an array for each part.
        compute_error: The error at bounds of any shape.
        rows_error: The least error of clamped rows with smooth weights, in the same model.
        rows_errors: The errors of clamped rows at the bounds of the solution.
        user_deviations: What each user of the table deviates; None if the error is that of a model without values.
        user_model: The model of users whose means are normal; None if the error is on the values, or of clamped rows.
    """

    problem: mean.MeanProblem
    threshold: float
    deviation_limit: float
    mean_error: mean.MeanError
    mean_errors: mean.MeanError
    compute_error: ErrorFunction
    rows_error: float
    rows_errors: FloatArray
    user_deviations: UserDeviations | None = None
    user_model: UserModel | None = None

    @property
    def standard_error(self) -> float:
        """Return the root mean square error at h, in the values' unit."""
        return math.sqrt(float(self.mean_error.squared_error))

    def compute_standard_errors(self, bounds: npt.ArrayLike) -> FloatArray:
        """Return the root mean square error at each bound."""
        return np.sqrt(self.compute_error(bounds).squared_error)

    @property
    def reach(self) -> float:
        """Return half of the range that a mean is moved into, over half of that of the values."""
        return float(measure_reach(self.problem, self.threshold))


def solve_users(
    problem: mean.MeanProblem,
    smooth_choice: mean.SmoothChoice,
    bounds: FloatArray,
    value_summary: ValueSummary | None,
    has_entered_variance: bool,
) -> UsersSolution | None:
    """Find the best smooth weights if users are clamped; None for programs that cannot clamp them.

    Args:
        problem: The problem of clamped rows.
        smooth_choice: Its best smooth weights, which are the answer without values.
        bounds: Where the error's curve is evaluated, in rows per user.
        value_summary: Summary of the values; None if there are none. Without `MeanProblem.table_values` it is not used.
        has_entered_variance: True if sigma^2 is that of values before clamping; False if it is of values in [L, U].
    """
    if problem.program in MEAN_SPLITTING_PROGRAMS:
        return None
    threshold, user_deviations, user_model = smooth_choice.threshold, None, None
    compute_error: ErrorFunction = partial(mean.compute_smooth_error, problem)
    rows_bound, rows_cut = smooth_choice.threshold, 0.0
    if has_entered_variance:
        if isinstance(problem, PrivateCountsProblem):
            problem = replace(problem, mean_above_lower=problem.value_bound / 2.0)
        user_model = UserModel(problem)
        compute_error = user_model.compute_error
        threshold = user_model.find_threshold(bounds, user_model.compute_error(bounds).squared_error)
        rows_bound, rows_cut = mean.find_best_smooth(problem).threshold, user_model.row_cut
    elif value_summary is not None and problem.table_values is not None:
        user_deviations = value_summary.user_deviations
        noise_arguments = float(problem.noise.compute_variance(1.0)), problem.num_aggregates == 2
        threshold = user_deviations.find_threshold(*noise_arguments)
        compute_error = partial(_measure_table_error, user_deviations, noise_arguments)
    measure_at = partial(_measure_users, problem, compute_error, user_deviations)
    rows_error, rows_errors = (
        np.sqrt(_measure_rows(problem, rows_cut, thresholds).squared_error)
        for thresholds in (rows_bound, bounds)
    )
    error_fields = measure_at(threshold), measure_at(bounds), measure_at, float(rows_error), rows_errors
    deviation_limit = threshold * problem.value_bound / 2.0
    return UsersSolution(problem, threshold, deviation_limit, *error_fields, user_deviations, user_model)


def _measure_rows(problem: mean.MeanProblem, row_cut: float, thresholds: npt.ArrayLike) -> mean.MeanError:
    """Return the error at thresholds if rows are clamped, which cuts ``row_cut`` of a row in expectation."""
    rows_error = mean.compute_smooth_error(problem, thresholds)
    if row_cut:
        shifts = np.full(np.shape(thresholds), row_cut)
        rows_error = mean.MeanError(rows_error.sampling_variance, rows_error.privacy_variance, shifts)
    return move_error(problem, rows_error, thresholds)


def _measure_table_error(
    user_deviations: UserDeviations, noise_arguments: tuple[float, bool], thresholds: npt.ArrayLike
) -> mean.MeanError:
    """Return the error about the mean of this table at thresholds of any shape, before the mean is moved."""
    return user_deviations.compute_error(thresholds, *noise_arguments)


def _measure_users(
    problem: mean.MeanProblem,
    compute_error: ErrorFunction,
    user_deviations: UserDeviations | None,
    thresholds: npt.ArrayLike,
) -> mean.MeanError:
    """Return the error at thresholds if users are clamped, after the mean is moved."""
    return move_users_error(problem, compute_error(thresholds), thresholds, user_deviations)
