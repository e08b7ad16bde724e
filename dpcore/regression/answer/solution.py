"""The solution for a linear regression on data, and its words."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.answer import Number
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.answer.stage import Stage
from dpcore.code.choice import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common import noise_error, wording
from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.privacy import Neighbours, format_rounded_up
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.estimate import (
    LinearEstimate,
    PredictionError,
    UserWeights,
    ordinary_residual_variance,
    prediction_error,
    user_weights,
)
from dpcore.regression.parameters import DataSource, RegressionParameters, ResidualVarianceSource
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapCurve, CapDraws, CapOptions

PROVED = 1e-6
"""Relative gap below which the answer is taken as the best."""
DRAWS, DRAWS_OF_MANY_ROWS, MANY_ROWS = 10, 3, 50_000
"""Draws per cap, and per cap where there are many rows: they hardly differ then, and cost more."""


class ErrorOf(enum.Enum):
    """The quantity whose errors are shown."""

    COEFFICIENTS = "coefficients"
    PREDICTIONS = "predictions"


@dataclass(frozen=True)
class Method:
    """One row of the table of methods; errors are roots.

    Attributes:
        name: In words.
        coefficients: Root of the total variance of the coefficients; NaN where there is no estimate.
        predictions: Root of the expected squared error of the prediction.
        noise_share: Share of the total variance that is privacy noise.
        note: What there is to say.
    """

    name: str
    coefficients: float
    predictions: float
    noise_share: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class RegressionSolution:
    """Everything that words and plots are made of.

    Attributes:
        data: With the facet `table`.
        parameters: What was entered.
        problem: The question.
        labels: y, clipped.
        spread: Standard deviation of the clipped labels.
        best_estimate: The best C found.
        prediction: Its prediction error.
        no_cap: Ordinary least squares on all rows.
        caps: What every cap costs; None where the trial was stopped before its first round.
        draws: The draws behind it.
        methods: All methods side by side.
        at_limit: Users who carry the largest weight that any user carries under ours.
        stage: Whether it is for the question as it is asked now, and whether more is still to come.
    """

    data: Dataset
    parameters: RegressionParameters
    problem: RegressionProblem
    labels: FloatArray
    spread: float
    best_estimate: LinearEstimate
    prediction: PredictionError
    no_cap: LinearEstimate
    caps: CapCurve | None
    draws: CapDraws
    methods: tuple[Method, ...]
    at_limit: int
    stage: Stage = Stage.FINAL

    @property
    def unit(self) -> str:
        """Return the name of the label, which stands for its unit."""
        return table_of(self.data).label

    @property
    def mean_square(self) -> float:
        """Return tr(X^T X) / n, which noise of variance 1 on each coefficient adds to the prediction error."""
        return float(np.sum(self.problem.whitened.units**2))

    @property
    def has_caps(self) -> bool:
        """Return True if there is a cap at which every draw gave an estimate."""
        caps = self.caps
        return caps is not None and bool(np.any((caps.rank_deficient == 0) & (caps.num_used > 0)))

    @property
    def near_optimal_caps(self) -> tuple[int, int] | None:
        """Return the smallest and largest cap tried, around the best, within 5 % of its standard error."""
        if self.caps is None or not self.has_caps:
            return None
        is_near = (self.caps.rank_deficient == 0) & (self.caps.num_used > 0)
        is_near &= np.sqrt(self.caps.variance) <= 1.05 * math.sqrt(float(self.caps.variance[self.caps.best]))
        low = high = self.caps.best
        while low > 0 and is_near[low - 1]:
            low -= 1
        while high < is_near.size - 1 and is_near[high + 1]:
            high += 1
        return int(self.caps.caps[low]), int(self.caps.caps[high])

    @property
    def variance_is_private(self) -> bool:
        """Return True if sigma^2 was read from private labels."""
        return self.parameters.variance_source is ResidualVarianceSource.ORDINARY and self.data.is_private

    def weights(self, method: str) -> UserWeights | None:
        """Return each user's weights under ``ours`` or ``no bound``, or else under one draw of the best cap."""
        if method == "ours":
            return user_weights(self.problem, self.best_estimate)
        if method == "no bound":
            return user_weights(self.problem, self.no_cap)
        if self.caps is None or not self.has_caps:
            return None
        return user_weights(self.problem, sample_limiting.draw(self.problem, self.caps.max_contributions))


def table_of(data: Dataset) -> LabelledRows:
    """Return the labels, features and owners.

    Raises:
        InvalidInput: The data have none.
    """
    if data.table is None:
        remedy = "Pass the table itself, and name its columns"
        raise refuse("the data have no labels and features", remedy=remedy)
    return data.table


def against_epsilon(data: Dataset, parameters: RegressionParameters) -> str:
    """Say where errors over epsilon are found: each takes a search, so that they have a tab of their own."""
    return "The tab *Against ε* has the best weights and bounds at other ε: each is a search of its own."


def options(problem: RegressionProblem) -> CapOptions:
    """Return the caps to try and the number of draws for each: fewer where there are many rows."""
    return CapOptions(draws=DRAWS if problem.num_rows <= MANY_ROWS else DRAWS_OF_MANY_ROWS)


def solve(data: Dataset | None, parameters: RegressionParameters) -> RegressionSolution:
    """Search for the best weights, and for the error of every cap.

    Args:
        data: With the facet `table`; None where the parameters say how it is generated.
        parameters: The question.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.
    """
    if data is None:
        if parameters.source is not DataSource.GENERATED:
            raise refuse("no data were given, and the settings name a table of one's own")
        data, _ = parameters.generator.dataset()
    else:
        parameters = replace(parameters, source=DataSource.UPLOAD)
    table = table_of(data)
    labels = parameters.clipped(table)
    variance = parameters.residual_variance
    if variance is None:
        variance = ordinary_residual_variance(table.features, labels)
    problem = parameters.problem(table, variance)
    draws = sample_limiting.study(problem, options(problem), labels)
    return compute(data, parameters, problem, working_set.solve(problem), draws)


def compute(
    data: Dataset,
    parameters: RegressionParameters,
    problem: RegressionProblem,
    best_estimate: LinearEstimate,
    draws: CapDraws,
    stage: Stage = Stage.FINAL,
) -> RegressionSolution:
    """Build the solution from the results of the searches."""
    labels = parameters.clipped(table_of(data))
    caps = sample_limiting.curve(problem, draws) if draws.num_draws else None
    no_cap = sample_limiting.all_rows(problem)
    totals = user_weights(problem, best_estimate).total
    return RegressionSolution(
        data=data,
        parameters=parameters,
        problem=problem,
        labels=labels,
        spread=float(np.std(labels)),
        best_estimate=best_estimate,
        prediction=prediction_error(problem, best_estimate, labels),
        no_cap=no_cap,
        caps=caps,
        draws=draws,
        methods=_list_methods(problem, best_estimate, no_cap, caps, labels),
        at_limit=int(np.count_nonzero(totals >= best_estimate.largest_user_weight * (1.0 - 1e-6))),
        stage=stage,
    )


def _list_methods(
    problem: RegressionProblem,
    best_estimate: LinearEstimate,
    no_cap: LinearEstimate,
    caps: CapCurve | None,
    labels: FloatArray,
) -> tuple[Method, ...]:
    methods = [
        _method(
            "Best weights", problem, best_estimate, labels, "the least variance that any unbiased one has"
        )
    ]
    if caps is not None:
        best = caps.best
        if caps.rank_deficient[best] == 0 and caps.num_used[best]:
            note = f"at most {wording.counted(caps.max_contributions, 'row')} per user"
            methods.append(_cap_method("Best bound", caps, best, note))
    methods.append(_method("No bound", problem, no_cap, labels, "ordinary least squares on all rows"))
    if caps is not None:
        lost = int(caps.rank_deficient[0])
        note = (
            f"{lost} of {lost + int(caps.num_used[0])} draws had dependent rows" if lost else "a bound of 1"
        )
        methods.append(_cap_method("One row per user", caps, 0, note))
    try:
        averages = sample_limiting.user_averages(problem)
        methods.append(_method("User averages", problem, averages, labels, "one averaged row per user"))
    except InvalidInput:
        note = "not defined: the averages are linearly dependent"
        methods.append(Method("User averages", math.nan, math.nan, math.nan, note))
    return tuple(methods)


def _method(
    name: str, problem: RegressionProblem, estimate: LinearEstimate, y: FloatArray, note: str
) -> Method:
    error = prediction_error(problem, estimate, y).total
    share = estimate.privacy_variance / estimate.variance if estimate.variance > 0.0 else math.nan
    return Method(name, math.sqrt(estimate.variance), math.sqrt(error), share, note)


def _cap_method(name: str, caps: CapCurve, index: int, note: str) -> Method:
    variance = float(caps.variance[index])
    share = float(caps.privacy_variance[index]) / variance if variance > 0.0 else math.nan
    return Method(name, math.sqrt(variance), math.sqrt(float(caps.prediction_error[index])), share, note)


_TOGETHER = (
    "Root of the total variance of the released coefficients: sampling error and privacy noise of all "
    "coefficients together, each in units of the label per unit of its feature."
)


def list_numbers(solution: RegressionSolution) -> tuple[Number, ...]:
    """Return the error of the best weights and their noise, and the error of the best cap and of none."""
    estimate = solution.best_estimate
    figures = [
        _error("Standard error, total", math.sqrt(estimate.variance), ""),
        Number(
            "Laplace noise, scale b",
            wording.number(estimate.noise.scale),
            f"({_share(estimate)})",
            help="b = B × (largest weight of a user) / ε: what the release adds to each coefficient.",
            value=estimate.noise.scale,
        ),
    ]
    if solution.caps is not None and solution.has_caps:
        best = math.sqrt(float(solution.caps.variance[solution.caps.best]))
        cap = f"{wording.counted(solution.caps.max_contributions, 'row')} per user"
        figures.append(_error("Best bound, standard error", best, cap))
    figures += [
        _error("No bound, standard error", math.sqrt(solution.no_cap.variance), _share(solution.no_cap)),
        _error(
            f"Error in predicting {wording.plain(solution.unit, 20)}",
            math.sqrt(solution.prediction.total),
            f"labels spread by {wording.number(solution.spread)}",
            "Root of the expected squared error of the released model's predictions on these rows.",
            "error_in_predicting",
        ),
    ]
    return tuple(figures)


def _error(label: str, error: float, note: str, explanation: str = _TOGETHER, key: str = "") -> Number:
    return Number(label, wording.number(error), note, explanation, error, key=key)


def _times(other_error: float, best_error: float) -> str:
    # Errors may be 0: labels without noise, and a budget without bound.
    return f"{wording.number(other_error / best_error, 3) if best_error > 0.0 else '∞'} times"


def _compare_methods(solution: RegressionSolution) -> str:
    """Say how many times larger the error of the best cap and of equal weights is."""
    best_error, plain_error = math.sqrt(solution.best_estimate.variance), math.sqrt(solution.no_cap.variance)
    if solution.caps is None or not solution.has_caps:
        return f"With no bound and equal weights the error is {_times(plain_error, best_error)} as large."
    cap_error = math.sqrt(float(solution.caps.variance[solution.caps.best]))
    cap = wording.counted(solution.caps.max_contributions, "row")
    # Two lines beside the figure.
    equal_times = _times(plain_error, best_error)
    cap_times = _times(cap_error, best_error)
    return f"The best bound, {cap} per user, has {cap_times} this error; equal weights {equal_times}."


def describe_near_optimal(solution: RegressionSolution) -> str:
    """Say from which cap to which one the error stays near that of the best cap."""
    near_optimal = solution.near_optimal_caps
    if near_optimal is None:
        return ""
    low, high = near_optimal
    if low == high:
        which = f"only {wording.counted(low, 'row')} per user stays"
    else:
        which = f"{wording.number(low)} to {wording.counted(high, 'row')} per user stay"
    return f"where you must bound rows, {which} within 5{wording.PERCENT} of the best bound."


def _share(estimate: LinearEstimate) -> str:
    if estimate.variance <= 0.0:
        return "no error"
    return f"{wording.percent(estimate.privacy_variance / estimate.variance)} privacy noise"


def predicts_worse(solution: RegressionSolution) -> bool:
    """Return True if some cap predicts better than the best weights, which are best for coefficients only."""
    if solution.caps is None or not solution.has_caps:
        return False
    return float(solution.caps.prediction_error[solution.caps.best_prediction]) < solution.prediction.total


FIT = (
    "These weights are the best for the coefficients, under the model. Predictions also contain what the model misses; "
    "where it misses much (no intercept, say), a bound may predict better."
)


def write_detail(solution: RegressionSolution) -> str:
    """Say what the best weights gain, and how that must be qualified."""
    sentences = [_compare_methods(solution)]
    if solution.stage is Stage.EARLIER:
        sentences.insert(0, "**This is the answer for the settings before.**")
    elif solution.stage is Stage.FINAL and not solution.best_estimate.certificate.proves(PROVED):
        sentences.append(
            "**Not yet the best**: the search was stopped; see *Behind the answer* and *Search*."
        )
    if solution.variance_is_private:
        sentences.append(
            "σ² was read from private labels, and so the weights depend on them: enter σ² (*More settings*) before you "
            "release."
        )
    if math.sqrt(solution.prediction.total) > solution.spread:
        sentences.append(
            "**Too little budget**: the released model predicts these labels worse than their mean would. Raise ε, "
            "bring more users, or drop features."
        )
    if predicts_worse(solution):
        sentences.append("**In predictions a bound does better here.** " + FIT)
    if solution.problem.residual_variance == 0.0:
        sentences.append(
            "σ² is 0, so only privacy noise counts, and the best weights make that alone as small as it can be."
        )
    return " ".join(sentences)


def _count_share(num_users: int, everybody: int) -> str:
    if num_users == everybody:
        return f"all {wording.counted(everybody, 'user')}" if everybody > 1 else "the only user"
    return f"{wording.counted(num_users, 'user')} of {wording.number(everybody)}"


def list_facts(solution: RegressionSolution) -> dict[str, str]:
    """Explain the noise, who sets it and the bounds in sentences, each under its heading."""
    estimate, unit = solution.best_estimate, wording.plain(solution.unit, 20)
    largest_plain = solution.no_cap.largest_user_weight / estimate.largest_user_weight
    sentences = {
        "Noise": (
            f"Laplace of scale {wording.number(estimate.noise.scale)} on each coefficient; with no bound it would be "
            f"{wording.number(solution.no_cap.noise.scale)}, since one user there weighs "
            f"{wording.number(largest_plain, 2)} times as much as anybody here."
        ),
        "Who sets the noise": (
            f"{_count_share(solution.at_limit, solution.problem.num_users)} "
            f"{wording.agreeing(solution.at_limit, 'has', 'share')} the largest weight; "
            f"{wording.percent(estimate.non_zero / estimate.matrix.size)} of the weights are not 0."
        ),
    }
    effect = noise_error.weighted_effect(estimate.matrix, solution.problem.user_codes)
    error = math.sqrt(effect * estimate.sampling_variance + estimate.privacy_variance)
    sentences[noise_error.NAME] = (
        "errors of the model are taken as independent, those of one user, too. If a share "
        f"ρ = {noise_error.ASSUMED_SHARE} of σ² lies between users, the sampling variance is {wording.number(effect)} "
        "times "
        f"as large and the standard error {wording.number(error)} instead of "
        f"{wording.number(math.sqrt(estimate.variance))}; for users with s rows of equal weight the factor is 1 + (s − "
        "1)ρ."
    )
    if solution.caps is not None and solution.has_caps:
        cap = math.sqrt(float(solution.caps.prediction_error[solution.caps.best_prediction]))
        none = math.sqrt(float(solution.caps.prediction_error[-1]))
        sentences[f"Predicting {unit}"] = (
            f"root mean squared error {wording.number(math.sqrt(solution.prediction.total))}; best bound "
            f"{wording.number(cap)}; no bound {wording.number(none)}; σ is "
            f"{wording.number(math.sqrt(solution.problem.residual_variance))}."
        )
        deficient = solution.caps.caps[solution.caps.rank_deficient > 0]
        if deficient.size:
            sentences["Bounds without an estimate"] = (
                f"up to {wording.counted(int(deficient.max()), 'row')} per user, some draws kept linearly "
                "dependent rows; these bounds are not offered."
            )
    elif solution.stage is Stage.FINAL:
        why = (
            "the trial of bounds was stopped."
            if solution.caps is None
            else "none gave an estimate in every draw, since the rows that it kept were linearly dependent."
        )
        sentences["Bounds"] = why
    return sentences


NEIGHBOURS = (
    "if they differ in the labels of one user's rows; the features, and whose rows they are, are treated as "
    "public"
)


def write_methods(solution: RegressionSolution) -> Methods:
    """State the best weights with their noise, and the error of the coefficients."""
    p, estimate = solution.parameters, solution.best_estimate
    clipped = (
        f"Labels were clipped to [{wording.entered(p.lower)}, {wording.entered(p.upper)}], which is treated as "
        "public. The coefficients are the product of a matrix C with the labels, where C times the features "
        f"is the identity [@epasto2020, section 5], and {cite_noise('Laplace')} was added to each of them"
    )
    # A search that goes on, or was stopped, has not reached the minimum.
    proved = "" if estimate.certificate.proves(PROVED) else f" {estimate.certificate.sentence}"
    return Methods(
        guarantee=write_guarantee("The coefficients of a linear model were released", p.epsilon, NEIGHBOURS),
        sentences=f"{clipped}, of scale {format_rounded_up(estimate.noise.scale)}. The root of the total variance of "
        f"the coefficients, privacy noise included, is {wording.number(math.sqrt(estimate.variance))}.{proved}",
        public_sentences=f"{clipped}.",
        disclosure=solution.data.provenance,
        rule="C was chosen to minimise the total variance of the released coefficients under the linear "
        "model, over all "
        "such matrices; no bound on rows per user was set.",
        subject="The matrix",
    )


def write_forms(solution: RegressionSolution) -> CodeChoice | None:
    """Describe the best weights for programs; only plain Python has them."""
    base = fields_of_data(solution.data) | {
        **ROWS_OF_THE_FILE,
        "lower": solution.parameters.lower,
        "upper": solution.parameters.upper,
        "value_column": solution.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": solution.best_estimate.largest_user_weight,
        "coefficients": solution.problem.num_features,
    }
    return build_forms(solution.problem.epsilon, base, [("Weights", Quantity.COEFFICIENTS, {})])
