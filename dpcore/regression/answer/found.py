"""The solution of a linear regression, built once for a question and a data set."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.checks import InvalidInput, refuse
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression import naive, sample_limiting, working_set
from dpcore.regression.estimate import LinearEstimate, UserWeights, user_weights
from dpcore.regression.parameters import DataSource, RegressionParameters, ResidualVarianceSource
from dpcore.regression.prediction import PredictionError, ordinary_residual_variance, prediction_error
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
        remedy = "Build them from a table: dpcore.regression.design_matrix.build"
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
    no_cap = naive.all_rows(problem)
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
        averages = naive.user_averages(problem)
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
