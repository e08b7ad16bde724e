"""The solution for a linear regression: the best weights beside every other method, and the search for it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.axes import OutsideCounts
from dpcore.answer.section import Cached, Search, SearchResult, Solver
from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.progress import Stage
from dpcore.common.wording import format_count
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression import estimate as estimation
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.estimate import ErrorTarget, LinearEstimate, estimate_residual_variance
from dpcore.regression.parameters import DataSource, RegressionParameters, ResidualVarianceSource
from dpcore.regression.problem import RegressionProblem, build_unit_problem
from dpcore.regression.sample_limiting import CapCurve, CapDraws

PROVED_GAP = 1e-6
"""Relative gap below which the answer is taken as the best."""
NUM_DRAWS, NUM_DRAWS_OF_MANY_ROWS, MIN_MANY_ROWS = 10, 3, 50_000
"""Draws per cap, fewer where there are many rows: they hardly differ then."""
MAX_SECONDS_TO_WAIT = 0.25
"""How long a page waits for a first answer: a key press is answered within 0.4 s."""
NUM_CACHED, MAX_CACHED_ENTRIES = 32, 200_000
"""Solutions that are kept, and the entries of the largest C of them: 1.6 MB."""


@dataclass(frozen=True)
class Method:
    """One row of the table of methods; all numbers are NaN where there is no estimate.

    Attributes:
        name: In words.
        note: What there is to say.
        variance: Total variance of the coefficients, (label unit / feature unit)^2.
        noise_variance: The part of it that is privacy noise.
        squared_error: Expected squared error of the prediction, label unit squared.
    """

    name: str
    note: str
    variance: float = math.nan
    noise_variance: float = math.nan
    squared_error: float = math.nan

    @property
    def noise_share(self) -> float:
        """Return the share of the total variance that is privacy noise; NaN if there is none."""
        return self.noise_variance / self.variance if self.variance > 0.0 else math.nan

    def compute_error(self, target: ErrorTarget = ErrorTarget.COEFFICIENTS) -> float:
        """Return the square root of the total variance, or of the squared error of predictions."""
        return math.sqrt(self.variance if target is ErrorTarget.COEFFICIENTS else self.squared_error)

    def compute_error_ratio(self, baseline: Method, target: ErrorTarget = ErrorTarget.COEFFICIENTS) -> float:
        """Return the error divided by that of another method; NaN if the other's is 0."""
        other_error = baseline.compute_error(target)
        return self.compute_error(target) / other_error if other_error > 0.0 else math.nan


@dataclass(frozen=True, eq=False)
class RegressionSolution:
    """The best weights, and all other methods.

    Attributes:
        dataset: With the facet `table`.
        parameters: The parameters.
        problem: The problem on these data.
        best_estimate: The best C found.
        uncapped_estimate: Ordinary least squares on all rows.
        cap_curve: What every cap costs; None where the trial was stopped before its first round.
        cap_draws: The draws behind it.
        methods_by_key: All methods side by side: ``ours``, ``best bound`` (if bounds were tried), ``no bound`` ...
        stage: Whether it is for the present parameters, and whether more is still to come.
        target: The error that figures show.
    """

    dataset: Dataset
    parameters: RegressionParameters
    problem: RegressionProblem
    best_estimate: LinearEstimate
    uncapped_estimate: LinearEstimate
    cap_curve: CapCurve | None
    cap_draws: CapDraws
    methods_by_key: Mapping[str, Method]
    stage: Stage = Stage.FINAL
    target: ErrorTarget = ErrorTarget.PREDICTIONS

    @property
    def labels(self) -> FloatArray:
        """Return the labels, clipped, as they enter the release."""
        return self.parameters.clip_labels(get_table(self.dataset))

    @property
    def unit(self) -> str:
        """Return the name of the label's column, which is shown as its unit."""
        return get_table(self.dataset).label

    @property
    def num_users_at_limit(self) -> int:
        """Return the number of users whose weight under the best weights is the largest."""
        user_weights = estimation.compute_user_weights(self.problem, self.best_estimate)
        return int(np.count_nonzero(user_weights >= self.best_estimate.largest_user_weight * (1.0 - 1e-6)))

    @property
    def near_optimal_caps(self) -> tuple[int, int] | None:
        """Return the ends of the interval of caps around the best with a standard error within 5 % of its.

        None if no cap was tried.
        """
        if self.cap_curve is None:
            return None
        cap_curve, best_index = self.cap_curve, self.cap_curve.best_index
        standard_errors = np.sqrt(cap_curve.variances)
        near_optimal_mask = cap_curve.valid_mask & (standard_errors <= 1.05 * standard_errors[best_index])
        excluded_indices = np.flatnonzero(~near_optimal_mask)
        first_near_index = excluded_indices[excluded_indices < best_index].max(initial=-1) + 1
        last_near_index = (
            excluded_indices[excluded_indices > best_index].min(initial=standard_errors.size) - 1
        )
        return int(cap_curve.caps[first_near_index]), int(cap_curve.caps[last_near_index])

    @property
    def variance_is_estimated(self) -> bool:
        """Return True if sigma^2 was read from the labels."""
        return self.parameters.variance_source is ResidualVarianceSource.ORDINARY

    @property
    def variance_is_private(self) -> bool:
        """Return True if sigma^2 was read from private labels."""
        return self.variance_is_estimated and self.dataset.is_private


def get_table(dataset: Dataset) -> LabelledRows:
    """Return the table of labels, features and owners; raise InvalidInput if the data have none.

    Raises:
        InvalidInput: The data have none.
    """
    if dataset.table is None:
        remedy_sentence = "Pass the table itself, and name its columns"
        raise refuse("the data have no labels and features", remedy=remedy_sentence)
    return dataset.table


def count_clipped(dataset: Dataset, parameters: RegressionParameters) -> OutsideCounts:
    """Count the labels outside [L, U]."""
    labels = get_table(dataset).labels
    below_mask, above_mask = labels < parameters.lower, labels > parameters.upper
    return OutsideCounts(int(below_mask.sum()), int(above_mask.sum()), labels.size, "label")


def compare_over_epsilon(dataset: Dataset, parameters: RegressionParameters) -> str:
    """Return a sentence that points to the tab with errors over epsilon; both arguments are ignored."""
    return "The tab *Against ε* has the best weights and bounds at other ε."


def _choose_num_draws(problem: RegressionProblem) -> int:
    """Return the number of draws per cap: `NUM_DRAWS`, or `NUM_DRAWS_OF_MANY_ROWS` beyond `MIN_MANY_ROWS` rows."""
    return NUM_DRAWS if problem.num_rows <= MIN_MANY_ROWS else NUM_DRAWS_OF_MANY_ROWS


def estimate_variance(dataset: Dataset, lower: float, upper: float) -> float:
    """Estimate sigma^2 by ordinary least squares on the labels clipped to [lower, upper]."""
    labelled_rows = get_table(dataset)
    return estimate_residual_variance(labelled_rows.features, np.clip(labelled_rows.labels, lower, upper))


def solve(dataset: Dataset | None, parameters: RegressionParameters) -> RegressionSolution:
    """Search for the best weights, and try caps; return both with the other methods.

    Args:
        dataset: With the facet `table`; None where the parameters say how it is generated.
        parameters: The parameters.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the parameters.
    """
    if dataset is not None:
        parameters = replace(parameters, source=DataSource.UPLOAD)
    elif parameters.source is DataSource.GENERATED:
        dataset, _ = parameters.generator.build_dataset()
    else:
        raise refuse("no data were given, and the settings name a table of one's own")
    residual_variance = parameters.residual_variance
    if residual_variance is None:
        residual_variance = estimate_variance(dataset, parameters.lower, parameters.upper)
    problem = build_unit_problem(dataset).with_settings(
        parameters.epsilon, parameters.value_bound, residual_variance
    )
    clipped_labels = parameters.clip_labels(get_table(dataset))
    cap_draws = sample_limiting.try_caps(problem, clipped_labels, _choose_num_draws(problem))
    return build_solution(dataset, parameters, problem, working_set.solve(problem), cap_draws)


SENTENCE_BY_STAGE = {
    Stage.EARLIER: "Computing the answer for the new settings",
    Stage.FIRST: "First answer, being refined",
}
"""Progress texts beside an answer that stands in for the final one."""


def solve_beside_page(dataset: Dataset, parameters: RegressionParameters) -> Solver:
    """Search for the best weights and try caps, each in the background of the page.

    This is a generator for `Solver`: it yields what is to be cached or searched. Its value is the final answer, a
    first one, one for earlier settings, or None.
    """
    unit_problem = yield Cached(build_unit_problem, (dataset,), num_kept=2)
    residual_variance = parameters.residual_variance
    if residual_variance is None:
        residual_variance = yield Cached(estimate_variance, (dataset, parameters.lower, parameters.upper))
    problem = unit_problem.with_settings(parameters.epsilon, parameters.value_bound, residual_variance)
    label_range, num_draws = (parameters.lower, parameters.upper), _choose_num_draws(problem)
    clipped_labels = parameters.clip_labels(get_table(dataset))
    build_search = functools.partial(
        Search,
        progress_text="The answer is being computed",
        first_wait_seconds=MAX_SECONDS_TO_WAIT,
        later_wait_seconds=MAX_SECONDS_TO_WAIT,
        follows_slider=True,
    )
    weights_search: SearchResult = yield build_search(
        "solve",
        parameters,
        lambda tell, stop: working_set.solve(
            problem, progress=tell, should_stop=stop, on_first=lambda first: tell(None, first)
        ),
        is_complete=lambda estimate: estimate.certificate.proves(PROVED_GAP),
        settings=(parameters, problem, label_range),
        num_kept=NUM_CACHED if problem.features.size <= MAX_CACHED_ENTRIES else 0,
        progress_texts_by_stage=SENTENCE_BY_STAGE,
    )
    caps_search: SearchResult = yield build_search(
        "caps",
        label_range,
        lambda tell, stop: sample_limiting.try_caps(
            problem, clipped_labels, num_draws, progress=tell, should_stop=stop
        ),
        is_complete=lambda draws: draws.num_draws == num_draws,
        settings=label_range,
        num_kept=NUM_CACHED,
        progress_texts_by_stage=SENTENCE_BY_STAGE
        | {Stage.FIRST: "First answer: bounds are still being tried"},
    )
    if weights_search.value is None:
        return weights_search
    is_trying_caps = weights_search.stage is Stage.FINAL and caps_search.stage is not Stage.FINAL
    stage = Stage.FIRST if is_trying_caps else weights_search.stage
    answered_parameters, answered_problem, answered_range = weights_search.settings
    cap_draws = caps_search.value if caps_search.settings == answered_range else sample_limiting.NO_DRAWS
    solution_arguments = (answered_parameters, answered_problem, weights_search.value, cap_draws, stage)
    solution = yield Cached(build_solution, (dataset, *solution_arguments), num_kept=3)
    return SearchResult(solution, stage)


def build_solution(
    dataset: Dataset,
    parameters: RegressionParameters,
    problem: RegressionProblem,
    best_estimate: LinearEstimate,
    cap_draws: CapDraws,
    stage: Stage = Stage.FINAL,
) -> RegressionSolution:
    """Build the solution with all methods from what the searches found; without caps if none was drawn."""
    cap_curve = sample_limiting.average_draws(problem, cap_draws) if cap_draws.num_draws else None
    uncapped_fit = sample_limiting.estimate_on_all_rows(problem)
    labels = parameters.clip_labels(get_table(dataset))

    def build_method(method_name: str, note: str, estimate: LinearEstimate) -> Method:
        """Build the method of an estimate, with its variances and its error in predicting these labels."""
        squared_prediction_error = estimation.compute_squared_prediction_error(problem, estimate, labels)
        return Method(
            method_name, note, estimate.variance, estimate.privacy_variance, squared_prediction_error
        )

    note = "the least variance that any unbiased one has"
    methods_by_key = {"ours": build_method("Best weights", note, best_estimate)}
    if cap_curve is not None:
        note = f"at most {format_count(cap_curve.max_contributions, 'row')} per user"
        methods_by_key["best bound"] = Method("Best bound", note, *cap_curve.list_costs(cap_curve.best_index))
    methods_by_key["no bound"] = build_method("No bound", "ordinary least squares on all rows", uncapped_fit)
    if cap_curve is not None:
        num_lost = int(cap_curve.num_rank_deficient_draws[0])
        note = f"{num_lost} of {cap_draws.num_draws} draws had dependent rows" if num_lost else "a bound of 1"
        methods_by_key["one row"] = Method("One row per user", note, *cap_curve.list_costs(0))
    try:
        averages_estimate = sample_limiting.estimate_on_averages(problem)
        methods_by_key["averages"] = build_method(
            "User averages", "one averaged row per user", averages_estimate
        )
    except InvalidInput:
        note = "not defined: the averages are linearly dependent"
        methods_by_key["averages"] = Method("User averages", note)
    return RegressionSolution(
        dataset, parameters, problem, best_estimate, uncapped_fit, cap_curve, cap_draws, methods_by_key, stage
    )
