"""The error of means and variances among the lines of a plan, as *Mean* has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dpcore.common.checks import refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.contributions import FloatArray
from dpcore.data import binned_values
from dpcore.dataset import Dataset
from dpcore.mean import MeanError, private_counts, public_counts, variance
from dpcore.mean.moved_mean import find_mean, move_error, move_users_error
from dpcore.mean.parameters import USERS_CLAMPED_ASSUMPTION, Clamp, VarianceSource, list_user_assumptions
from dpcore.mean.private_counts import ReleasedSums
from dpcore.mean.table_values import ValueSummary
from dpcore.mean.user_model import MODEL_ASSUMPTION, UserModel
from dpcore.plan import curves
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import PlanParameters

MAX_CAPS = 2**17
"""Candidate bounds on rows; log-spaced if a user has more rows."""


def make_spread_curve(
    dataset: Dataset, parameters: PlanParameters, statistic: LineStatistic
) -> tuple[curves.BoundCurve, float, tuple[str, ...]]:
    """Make the curve of a variance or standard deviation, and return it with its value and its assumptions."""
    problem, _, value_summary = build_mean_problem(dataset, parameters)
    assert dataset.values is not None
    bounds, has_all_bounds = curves.list_caps(dataset.histogram.max_size, MAX_CAPS)
    mechanism, is_root = parameters.budget.mechanism, statistic is LineStatistic.DEVIATION
    reference_value, measure_release = variance.measure_variance(dataset.values), None
    if is_root and reference_value == 0.0:
        raise refuse(
            "all values are the same, so that the error of a standard deviation is not known",
            remedy="Ask for the variance instead, with a target error in its unit: variance within 10",
        )
    if parameters.variance_source is VarianceSource.FROM_VALUES:
        values_and_bounds = dataset.values, value_summary.clamped_values, bounds
        kept_rows = variance.KeptRows.from_values(problem, *values_and_bounds)
        spread_error = kept_rows.linearise(mechanism, NoiseKind.LAPLACE.unit_variance)
        measure_release = partial(_measure_release, kept_rows, mechanism, is_root)
    else:
        spread_error = variance.measure_worst_error(problem, bounds)
    if is_root:
        spread_error, reference_value = variance.take_root(spread_error, reference_value)
    alpha, beta = split_mean_error(spread_error, mechanism)
    user_sentences = (
        sentence.replace("the mean of", "the variance of") for sentence in list_user_assumptions(problem)
    )
    assumptions = (*user_sentences, *binned_values.list_assumptions(dataset))
    curve = curves.BoundCurve(
        alpha, beta, bounds, has_all_bounds=has_all_bounds, measure_release=measure_release
    )
    return curve, reference_value, assumptions


def _measure_release(
    kept_rows: variance.KeptRows, mechanism: NoiseKind, is_root: bool, bounds: FloatArray, v: FloatArray
) -> FloatArray:
    """Measure the squared error of a release under each bound, at its v."""
    bounds_and_scales = zip(bounds.tolist(), np.sqrt(v).tolist(), strict=True)
    return np.array([kept_rows.measure_release(*each, mechanism, is_root) for each in bounds_and_scales])


def list_mean_assumptions(
    problem: private_counts.PrivateCountsProblem, parameters: PlanParameters, dataset: Dataset
) -> tuple[str, ...]:
    """List what the error of a mean assumes of users and of binned values; sentences without their full stop."""
    user_sentences = list_user_assumptions(problem)
    if parameters.clamp is Clamp.USERS:
        user_sentences = (
            *user_sentences[: None if problem.table_values is None else 1],
            USERS_CLAMPED_ASSUMPTION,
        )
        user_sentences += (MODEL_ASSUMPTION,) * (parameters.variance_source is VarianceSource.ENTERED)
    return user_sentences + binned_values.list_assumptions(dataset)


def measure_mean(
    problem: private_counts.PrivateCountsProblem,
    value_summary: ValueSummary,
    parameters: PlanParameters,
    bounds: FloatArray,
) -> MeanError:
    """Compute the error of a mean at bounds: on rows, or on smooth weights if users are clamped."""
    if parameters.clamp is Clamp.ROWS:
        return public_counts.compute_capped_error(problem, bounds)
    if parameters.variance_source is VarianceSource.ENTERED:
        return UserModel(replace(problem, mean_above_lower=problem.value_bound / 2.0)).compute_error(bounds)
    if problem.table_values is not None:
        return value_summary.user_deviations.compute_error(
            bounds, float(problem.noise.compute_variance(1.0)), True
        )
    return public_counts.compute_smooth_error(problem, bounds)


def make_moved_error(
    problem: private_counts.PrivateCountsProblem,
    value_summary: ValueSummary,
    parameters: PlanParameters,
    noise_factor: float,
) -> Callable[..., FloatArray] | None:
    """Make a function that returns the squared error of a mean after it is moved into its range.

    Args:
        problem: The problem of the line at epsilon 1.
        value_summary: Summary of the values.
        parameters: The settings.
        noise_factor: Variance of the noise over that at v in the error of `measure_mean`.

    Returns:
        A function of bounds and v, and of ``rows_v_factor`` if the mean shares a count of rows. None if the error does
        not depend on the mean: then the error before the step is an upper bound.
    """
    if parameters.clamp is Clamp.USERS and parameters.variance_source is VarianceSource.ENTERED:
        problem = replace(problem, mean_above_lower=problem.value_bound / 2.0)
    if find_mean(problem) is None:
        return None
    kind_problem = problem
    if parameters.budget.mechanism is NoiseKind.GAUSSIAN:
        kind_problem = replace(problem, mechanism=NoiseKind.GAUSSIAN, delta=parameters.budget.delta)

    def square_moved(bounds: FloatArray, v: FloatArray, rows_v_factor: float | None = None) -> FloatArray:
        """Return the squared error after the step, of the shape of both.

        ``rows_v_factor`` is v of a shared count over v of the sum around the middle; None for a pair of sums.
        """
        mean_error = measure_mean(problem, value_summary, parameters, bounds)
        if rows_v_factor is not None:
            deviations = bounds / problem.histogram.count_kept_rows(bounds) * (problem.value_bound / 2.0)
            sum_noise_variances = kind_problem.noise.kind.unit_variance * deviations**2 * v
            shared_problem = replace(kind_problem, released_sums=ReleasedSums.CENTRED_SPLIT)
            return move_error(
                shared_problem,
                mean_error,
                bounds,
                sum_noise_variances=sum_noise_variances,
                rows_noise_factor=rows_v_factor**0.5,
            ).squared_error
        noise_variances = split_mean_error(mean_error, parameters.budget.mechanism)[1] * noise_factor * v
        line_error = replace(mean_error, privacy_variance=noise_variances)
        if parameters.clamp is Clamp.ROWS:
            return move_error(kind_problem, line_error, bounds).squared_error
        has_user_deviations = (
            parameters.variance_source is not VarianceSource.ENTERED and problem.table_values is not None
        )
        user_deviations = value_summary.user_deviations if has_user_deviations else None
        return move_users_error(kind_problem, line_error, bounds, user_deviations).squared_error

    return square_moved


def split_mean_error(mean_error: MeanError, mechanism: NoiseKind) -> tuple[FloatArray, FloatArray]:
    """Return the squared error of a mean without noise, and the variance of its noise at v = 1.

    ``mean_error`` is that at epsilon 1.
    """
    # At epsilon = 1 and Laplace noise the privacy variance is that of v = 1.
    noise_variance_at_1 = mean_error.privacy_variance * (
        mechanism.unit_variance / NoiseKind.LAPLACE.unit_variance
    )
    return mean_error.sampling_variance + mean_error.shift**2, noise_variance_at_1


def build_mean_problem(
    dataset: Dataset, parameters: PlanParameters
) -> tuple[private_counts.PrivateCountsProblem, float, ValueSummary]:
    """Build the problem of a mean line at epsilon 1; return it with the mean and a summary of the values.

    The mean is that of the rows before clamping if the error is about these rows, else that after clamping.
    """
    mean_parameters = parameters.mean_parameters
    value_summary = ValueSummary.from_dataset(dataset, mean_parameters.lower, mean_parameters.upper)
    assert value_summary is not None
    problem = mean_parameters.build_problem(dataset.histogram, value_summary)
    assert isinstance(problem, private_counts.PrivateCountsProblem)
    # Some libraries give half of the line's budget to the sum around the middle and half to the number of rows. With
    # Laplace noise that doubles the variance of the pair. With Gaussian noise it does not: half of rho each is sqrt(2)
    # sigma on half of the range, (B h / 2)^2 2 sigma^2 (1 + (2 p - 1)^2) = (B h sigma)^2 (p^2 + (1 - p)^2), the pair's.
    halves_budget = parameters.program in (Program.PIPELINEDP, Program.TUMULT, Program.BIGQUERY)
    has_centred_split = halves_budget and parameters.budget.mechanism is NoiseKind.LAPLACE
    released_sums = ReleasedSums.CENTRED_SPLIT if has_centred_split else ReleasedSums.PAIR
    clamped_values = value_summary.clamped_values
    estimated_mean = clamped_values.mean if problem.table_values is None else clamped_values.unclamped_mean
    return replace(problem, released_sums=released_sums), estimated_mean, value_summary
