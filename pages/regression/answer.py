"""The Regression page's answer, put together once for a question and a data set, and put into words."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.contributions import FloatArray
from dpcore.regression import naive, sample_limiting
from dpcore.regression.estimate import Estimate, UserWeights, user_weights
from dpcore.regression.parameters import ASSUMPTIONS, NoiseSource, RegressionParameters
from dpcore.regression.prediction import PredictionError, prediction_error
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapCurve, CapDraws
from pages.regression.upload import Loaded
from pages.shared import code_choices
from pages.shared.cards import AnswerCard, Figure
from pages.shared.text import plain

PROVED = 1e-6
"""Relative gap below which the page takes the answer as the best."""


class ErrorOf(enum.Enum):
    """What errors are shown of."""

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
class RegressionView:
    """Everything the page shows that depends on data and question.

    Attributes:
        loaded: Data, with true coefficients where they were generated.
        parameters: What was entered.
        problem: The question.
        labels: y, clipped.
        spread: Standard deviation of the clipped labels.
        ours: The best C found.
        predicted: Its prediction error.
        no_cap: Ordinary least squares on all rows.
        caps: What every cap costs; None where the trial was stopped before its first round.
        draws: The draws behind it.
        methods: All methods side by side.
        at_limit: Users who carry the largest weight that any user carries under ours.
    """

    loaded: Loaded
    parameters: RegressionParameters
    problem: RegressionProblem
    labels: FloatArray
    spread: float
    ours: Estimate
    predicted: PredictionError
    no_cap: Estimate
    caps: CapCurve | None
    draws: CapDraws
    methods: tuple[Method, ...]
    at_limit: int

    @property
    def unit(self) -> str:
        """Name of the label, which stands for its unit."""
        table = self.loaded.dataset.table
        return table.label if table is not None else "label"

    @property
    def mean_square(self) -> float:
        """tr(X^T X) / n: what noise of variance 1 on each coefficient adds to the prediction error."""
        return float(np.sum(self.problem.whitened.units**2))

    @property
    def has_caps(self) -> bool:
        """Whether there is a cap at which every draw gave an estimate."""
        caps = self.caps
        return caps is not None and bool(np.any((caps.rank_deficient == 0) & (caps.used > 0)))

    @property
    def noise_is_private(self) -> bool:
        """Whether sigma^2 was read from private labels."""
        return self.parameters.noise is NoiseSource.ORDINARY and self.loaded.dataset.is_private

    def weights(self, method: str) -> UserWeights | None:
        """What each user's labels weigh under ``ours``, ``no cap`` or one draw of the ``best cap``."""
        if method == "ours":
            return user_weights(self.problem, self.ours)
        if method == "no cap":
            return user_weights(self.problem, self.no_cap)
        if self.caps is None or not self.has_caps:
            return None
        return user_weights(self.problem, sample_limiting.draw(self.problem, self.caps.max_contributions))


def compute(
    loaded: Loaded,
    parameters: RegressionParameters,
    problem: RegressionProblem,
    ours: Estimate,
    draws: CapDraws,
) -> RegressionView:
    """Put together what the searches found."""
    table = loaded.dataset.table
    assert table is not None
    labels = parameters.clipped(table)
    caps = sample_limiting.curve(problem, draws) if draws.num_draws else None
    no_cap = naive.all_rows(problem)
    totals = user_weights(problem, ours).total
    return RegressionView(
        loaded=loaded,
        parameters=parameters,
        problem=problem,
        labels=labels,
        spread=float(np.std(labels)),
        ours=ours,
        predicted=prediction_error(problem, ours, labels),
        no_cap=no_cap,
        caps=caps,
        draws=draws,
        methods=_methods(problem, ours, no_cap, caps, labels),
        at_limit=int(np.count_nonzero(totals >= ours.largest_user_weight * (1.0 - 1e-6))),
    )


def _methods(
    problem: RegressionProblem,
    ours: Estimate,
    no_cap: Estimate,
    caps: CapCurve | None,
    labels: FloatArray,
) -> tuple[Method, ...]:
    found = [
        _method("Ours: best weights", problem, ours, labels, "the least variance that any unbiased one has")
    ]
    if caps is not None:
        best = caps.best
        if caps.rank_deficient[best] == 0 and caps.used[best]:
            note = f"at most {wording.counted(caps.max_contributions, 'row')} per user"
            found.append(_of_cap("Best cap", caps, best, note))
    found.append(_method("No cap", problem, no_cap, labels, "ordinary least squares on all rows"))
    if caps is not None:
        lost = int(caps.rank_deficient[0])
        note = f"{lost} of {lost + int(caps.used[0])} draws had dependent rows" if lost else "a cap of 1"
        found.append(_of_cap("One row per user", caps, 0, note))
    try:
        averages = naive.user_averages(problem)
        found.append(_method("User averages", problem, averages, labels, "one averaged row per user"))
    except InvalidInput:
        note = "not defined: the averages are linearly dependent"
        found.append(Method("User averages", math.nan, math.nan, math.nan, note))
    return tuple(found)


def _method(name: str, problem: RegressionProblem, estimate: Estimate, y: FloatArray, note: str) -> Method:
    error = prediction_error(problem, estimate, y).total
    share = estimate.privacy_variance / estimate.variance if estimate.variance > 0.0 else math.nan
    return Method(name, math.sqrt(estimate.variance), math.sqrt(error), share, note)


def _of_cap(name: str, caps: CapCurve, at: int, note: str) -> Method:
    variance = float(caps.variance[at])
    share = float(caps.privacy_variance[at]) / variance if variance > 0.0 else math.nan
    return Method(name, math.sqrt(variance), math.sqrt(float(caps.prediction_error[at])), share, note)


_TOGETHER = (
    "Root of the total variance of the released coefficients: sampling error and privacy noise of all "
    "coefficients together, each in units of the label per unit of its feature."
)


def card(view: RegressionView) -> AnswerCard:
    """The answer in words."""
    ours = math.sqrt(view.ours.variance)
    unit = plain(view.unit, 20)
    figures = [Figure("Ours", wording.number(ours), _share(view.ours), _TOGETHER)]
    against = "no cap"
    other = math.sqrt(view.no_cap.variance)
    proofs = [("Best weights C", view.ours.certificate, view.ours.ended)]
    if view.caps is not None and view.has_caps:
        other = math.sqrt(float(view.caps.variance[view.caps.best]))
        cap = wording.counted(view.caps.max_contributions, "row")
        against = f"the best cap, {cap} per user,"
        figures.append(Figure("Best cap", wording.number(other), f"{cap} per user", _TOGETHER))
    figures.append(
        Figure("No cap", wording.number(math.sqrt(view.no_cap.variance)), _share(view.no_cap), _TOGETHER)
    )
    figures.append(
        Figure(
            f"Ours, predicting {unit}",
            wording.number(math.sqrt(view.predicted.total)),
            f"labels spread by {wording.number(view.spread)}",
            "Root of the expected squared error of the released model's predictions on these rows.",
        )
    )
    # Errors may be 0: labels without noise, and a budget without bound.
    times = wording.number(other / ours, 3) if ours > 0.0 else "∞"
    return AnswerCard(
        headline=(
            f"Use the best weights: standard error {wording.number(ours)} over all coefficients; {against} has "
            f"{wording.number(other)}, {times} times as much."
        ),
        detail=" ".join(_detail(view)),
        figures=tuple(figures),
        facts=_facts(view),
        assumptions=ASSUMPTIONS,
        proofs=tuple(proofs),
        sensitivity=view.loaded.dataset.provenance,
        code=code_choices.of_regression(view),
    )


def _share(estimate: Estimate) -> str:
    if estimate.variance <= 0.0:
        return "no error"
    return f"{wording.percent(estimate.privacy_variance / estimate.variance)} privacy noise"


def predicting_worse(view: RegressionView) -> bool:
    """Whether a cap predicts better than ours, which is best for coefficients only."""
    if view.caps is None or not view.has_caps:
        return False
    return float(view.caps.prediction_error[view.caps.best_prediction]) < view.predicted.total


FIT = (
    "C is the best for the coefficients, under the model. Predictions also contain what the model misses; where "
    "it misses much (no intercept, say), a cap may predict better."
)


def _detail(view: RegressionView) -> list[str]:
    found = []
    if not view.ours.certificate.proves(PROVED):
        found.append("**Not yet the best**: the search ended early; see *How sure* and *Search*.")
    if view.noise_is_private:
        found.append(
            "σ² was read from private labels, and so C depends on them: enter σ² before you release."
        )
    if math.sqrt(view.predicted.total) > view.spread:
        found.append(
            "**Too little budget**: the released model predicts these labels worse than their mean would. Raise ε, "
            "bring more users, or drop features."
        )
    if predicting_worse(view):
        found.append("**In predictions a cap does better here.** " + FIT)
    if view.problem.noise_variance == 0.0:
        found.append("σ² is 0: only privacy noise counts, and the best C spreads it alone.")
    return found


def _who(some: int, everybody: int) -> str:
    if some == everybody:
        return f"all {wording.counted(everybody, 'user')}" if everybody > 1 else "the only user"
    return f"{wording.counted(some, 'user')} of {wording.number(everybody)}"


def _facts(view: RegressionView) -> tuple[tuple[str, str], ...]:
    ours, unit = view.ours, plain(view.unit, 20)
    largest_plain = view.no_cap.largest_user_weight / ours.largest_user_weight
    facts = [
        (
            "Noise",
            f"Laplace of scale {wording.number(ours.noise.scale)} on each coefficient; with no cap it would be "
            f"{wording.number(view.no_cap.noise.scale)}, since one user there weighs "
            f"{wording.number(largest_plain, 2)} times as much as anybody here.",
        ),
        (
            "Who sets the noise",
            f"{_who(view.at_limit, view.problem.num_users)} "
            f"{wording.agreeing(view.at_limit, 'has', 'share')} the largest weight; "
            f"{wording.percent(ours.non_zero / ours.matrix.size)} of C is not 0.",
        ),
    ]
    if view.caps is not None and view.has_caps:
        cap = math.sqrt(float(view.caps.prediction_error[view.caps.best_prediction]))
        none = math.sqrt(float(view.caps.prediction_error[-1]))
        facts.append(
            (
                f"Predicting {unit}",
                f"root mean squared error {wording.number(math.sqrt(view.predicted.total))}; best cap "
                f"{wording.number(cap)}; no cap {wording.number(none)}; σ is "
                f"{wording.number(math.sqrt(view.problem.noise_variance))}.",
            )
        )
        deficient = view.caps.caps[view.caps.rank_deficient > 0]
        if deficient.size:
            facts.append(
                (
                    "Caps without an estimate",
                    f"up to {wording.counted(int(deficient.max()), 'row')} per user, some draws kept linearly "
                    "dependent rows; these caps are not offered.",
                )
            )
    else:
        facts.append(("Caps", "the trial of caps was stopped, or no cap gave an estimate in every draw."))
    return tuple(facts)
