"""What is found for a classifier: put together once for a question, its data, and the runs that are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.against import Against, remembered
from dpcore.answer.stage import Stage
from dpcore.common import weights
from dpcore.common.errors import refusal
from dpcore.common.text_fields import built_from
from dpcore.common.weights import smooth_losses
from dpcore.contributions import FloatArray
from dpcore.training import excess, experiment
from dpcore.training.excess import TheoryBound
from dpcore.training.experiment import Best, Held, OverSplits, References, Table, Verdict
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource, TrainingParameters
from dpcore.training.rows import ClassifierRows, prepare
from dpcore.training.scores import Measure, Over
from dpcore.training.training_data import TrainingData, generated, sample
from dpcore.training.weighting import Cell, Method


@dataclass(frozen=True, eq=False)
class Runs:
    """What training many times has found.

    Attributes:
        table: With the runs that are done.
        known: What it is compared with.
        look: Share of the users that they are made on, for a first look; 1 for all of them.
        close: More runs of methods that those of the table do not tell apart; None where there are none.
    """

    table: Table
    known: References
    look: float = 1.0
    close: Table | None = None


@dataclass(frozen=True, eq=False)
class TrainingFound:
    """Everything that words and plots are made of.

    Attributes:
        data: With a scaling.
        parameters: What was entered.
        table: With the runs that are done.
        known: Without privacy, and guessing.
        best: The method that answers, at its best bound; None before the first run.
        best_of: The best bound of every method of which there are runs.
        calibrated: The bound by a trade-off whose constants are computed.
        theorem: The bound by theorem 4 with constant 1.
        stage: Whether it is for the question as it is asked now, and whether more is to come.
        verdict: The answer's loss beside that of guessing; None before the first run.
        look: Share of the users that the runs are made on, for a first look; 1 for all of them.
        close: More runs of methods that those of the table do not tell apart, which decide; None where there are none.
    """

    data: TrainingData
    parameters: TrainingParameters
    table: Table
    known: References
    best: Best | None
    best_of: Mapping[Method, Best]
    calibrated: TheoryBound
    theorem: TheoryBound
    stage: Stage
    verdict: Verdict | None = None
    look: float = 1.0
    close: Table | None = None

    def bounds(self, method: Method) -> FloatArray:
        """The bounds of a method, ascending: how far a user moves a step's sum, in rows."""
        cells = self.table.experiment.cells
        return np.array([cells[at].reach for at in self.table.cells_of(method)])

    def summary(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> OverSplits:
        """Means and their errors, one entry per cell."""
        return self.table.summary(measure, over, held)

    def reference(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> tuple[float, float]:
        """(without privacy, guessing), the mean of the splits."""
        known = self.known
        return known.mean(known.no_privacy, held, over, measure), known.mean(
            known.guessing, held, over, measure
        )

    def quiet(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> tuple[float, float]:
        """(followed clipped sums without noise, without clipping, too), the mean of the splits; not private."""
        known = self.known
        return known.mean(known.quiet, held, over, measure), known.mean(known.unclipped, held, over, measure)

    def cell(self, at: int) -> Cell:
        """The cell at a position."""
        return self.table.experiment.cells[at]

    @property
    def largest_weight(self) -> FloatArray:
        """W of each cell: share of the heaviest user in all weights at its bound; of a bound that follows, NaN."""
        experiment = self.table.experiment
        bounds = np.array([max(cell.bound, 1e-9) for cell in experiment.cells])
        found = smooth_losses(experiment.train.histogram, np.minimum(bounds, experiment.train.sizes.max()))
        follows = np.array([cell.method is Method.FOLLOWED for cell in experiment.cells])
        return np.where(follows, np.nan, found.largest_weight)

    @property
    def runs(self) -> tuple[int, int]:
        """(fewest, most) runs done of all methods."""
        done = self.table.done
        return int(done.min()), int(done.max())

    @property
    def is_useless(self) -> bool:
        """Whether even the best that was tried clearly does no better than guessing."""
        return self.verdict is not None and self.verdict.clear and self.verdict.more > 0.0

    @property
    def is_unclear(self) -> bool:
        """Whether the runs do not tell the best that was tried from guessing."""
        return self.verdict is not None and not self.verdict.clear


NOT_COMPARED = ("bound", "bounded_by", "pace", "runs", "splits", "radius", *GENERATOR_FIELDS, "source")


def against_epsilon(data: TrainingData, parameters: TrainingParameters) -> Against:
    """The bound that the trade-off with computed constants calls for, and the excess that it predicts, at any epsilon.

    Curves from runs would be simulations, one training of all bounds for every ε; theory answers at once.
    """
    train = parameters.experiment(rows_of(data, parameters.positive_above)).train
    mechanism = descent_of_theory(parameters)
    eigenvalues, histogram = excess.public_hessian(train, mechanism), train.histogram

    @remembered
    def parts(epsilon: float) -> tuple[float, float]:
        return excess.calibrated_parts(eigenvalues, replace(mechanism, epsilon=epsilon))

    def best(epsilon: float) -> tuple[float, float]:
        sampling, noise = parts(epsilon)
        found = weights.best_smooth(histogram, sampling / noise if noise > 0.0 else 0.0).bound
        return found, float(excess.predicted_excess(histogram, np.array(found), (sampling, noise)))

    return Against(
        "Best bound h (rows per user)",
        "Predicted excess of the loss",
        best,
        # Accounting for a share of the users in a step takes seconds for one ε: no table follows the slider then.
        None
        if mechanism.sampled < 1.0
        else lambda epsilon, bounds: excess.predicted_excess(histogram, bounds, parts(epsilon)),
        histogram.sizes,
        histogram.users,
        cut="Rows above the bound",
        whole=False,
        slow=mechanism.sampled < 1.0,
        caption="What noise and sampling cost with smooth weights, predicted with the constants of plain descent near "
        "its minimum, as in the tab Theory, for the users "
        "trained on; it looks at features and knows nothing of clipping, of steps too few, or of heavy users who "
        "differ. The main figure has what training measured at the ε in use.",
    )


def descent_of_theory(parameters: TrainingParameters) -> Mechanism:
    """The plain descent that theory is about: steps and step size as entered, whatever the page trains with."""
    return built_from(Mechanism, parameters, pace=Pace.ENTERED)


def rows_of(data: TrainingData, positive_above: float) -> ClassifierRows:
    """Rows scaled and sorted by user; a label above the threshold is 1, any other -1.

    Raises:
        InvalidInput: The data have no labels and features, or no ranges.
    """
    if data.dataset.table is None or data.scaling is None:
        remedy = "See dpcore.training.training_data.TrainingData"
        raise refusal("the data have no labels and features, or their ranges are missing", remedy=remedy)
    return prepare(data.dataset.table, data.scaling, positive_above)


def find(data: TrainingData | None, parameters: TrainingParameters) -> TrainingFound:
    """Train as often as is asked for, with every method at every bound.

    Args:
        data: With a scaling; None where the parameters name the sample, or say how the data are generated.
        parameters: The question.

    Raises:
        InvalidInput: The data have no labels, features or ranges, or do not fit the question.
    """
    if data is None:
        if parameters.source is DataSource.UPLOAD:
            raise refusal("no data were given, and the settings name a table of one's own")
        data = sample() if parameters.source is DataSource.SAMPLE else generated(parameters.generator)
    else:
        parameters = replace(parameters, source=DataSource.UPLOAD)
    question = parameters.experiment(rows_of(data, parameters.positive_above))
    known = experiment.references(question)
    assert known is not None
    table = experiment.fill(question.empty())
    asked = experiment.close_call(table)
    close = None if asked is None else experiment.fill(asked.empty())
    return compute(data, parameters, Runs(table, known, close=close))


def compute(
    data: TrainingData, parameters: TrainingParameters, runs: Runs, stage: Stage = Stage.FINAL
) -> TrainingFound:
    """Put together what was found."""
    question = runs.table.experiment
    train, mechanism = question.train, descent_of_theory(parameters)
    best = experiment.answering(runs.table, runs.close, not data.dataset.is_private)
    of = {method: experiment.best(runs.table, method) for method in Method}
    if best is not None:
        of[question.cells[best.at].method] = best
    hessian = excess.public_hessian(train, mechanism)
    histogram = train.histogram
    return TrainingFound(
        data=data,
        parameters=parameters,
        table=runs.table,
        known=runs.known,
        best=best,
        best_of={method: one for method, one in of.items() if one is not None},
        calibrated=excess.theory_bound(histogram, excess.calibrated_trade_off(hessian, mechanism)),
        theorem=excess.theory_bound(
            histogram, excess.theorem_trade_off(histogram, train.num_features, mechanism)
        ),
        stage=stage,
        verdict=None if best is None else experiment.against_guessing(runs.table, runs.known, best.at),
        look=runs.look,
        close=runs.close,
    )
