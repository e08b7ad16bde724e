"""Loss and accuracy of every method at every bound, over many runs: a table that fills while it is computed.

Each entry depends on the question, its method and bound, and the number of its run, on nothing else: what is stopped
goes on later where it was, with the same numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.over_runs import Summary, summary
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import descent, optimum, output
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows
from dpcore.training.scores import SHAPE, Measure, Over, constant_scores, scores
from dpcore.training.weighting import Cell, Method, random_ranks

MAX_RUNS = 500
BATCH = 10
"""Runs that are made at once: the first of them are shown while the others are made."""
_RANKS = 40_000_000
"""Ranks of rows under a cap that are kept for all caps at once, 320 MB; above, fewer runs are made at once."""


class Held:
    """Positions in the axis of a table that says on whom models were judged."""

    TRAINED, HELD_OUT = 0, 1


@dataclass(frozen=True, eq=False)
class Experiment:
    """The question that a table answers.

    Attributes:
        train: Users to train on.
        test: Users held out.
        mechanism: What is trained and how.
        cells: Methods and bounds.
        runs: Of each, 2 to `MAX_RUNS`.
        seed: Of all of them.

    Raises:
        InvalidInput: No cells, or ``runs`` or ``seed`` out of range.
    """

    train: ClassifierRows
    test: ClassifierRows
    mechanism: Mechanism
    cells: tuple[Cell, ...]
    runs: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.whole(2, MAX_RUNS, runs=self.runs)
            problems.whole(0, 2**31, seed=self.seed)
            if not self.cells:
                problems.add("there is no method to try")

    def empty(self) -> Table:
        """The table before the first run."""
        return Table(self, np.full((len(self.cells), self.runs, 2, *SHAPE), np.nan))

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What the table depends on, to tell whether one answers this question."""
        return (self.train.digest, self.test.digest, self.mechanism, self.cells, self.runs, self.seed)


@dataclass(frozen=True, eq=False)
class Table:
    """Scores of every run.

    Attributes:
        experiment: The question.
        scores: Shape (cells, runs, 2, 2, 2): users trained on and held out; over rows and over users; loss and
            accuracy. NaN where a run is not done.
    """

    experiment: Experiment
    scores: FloatArray

    @property
    def done(self) -> IntArray:
        """Runs done, of each cell."""
        return np.asarray(np.isfinite(self.scores[:, :, 0, 0, 0]).sum(axis=1))

    @property
    def finished(self) -> bool:
        """Whether every run is done."""
        return bool((self.done == self.experiment.runs).all())

    def summary(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> Summary:
        """Means and their errors, one entry per cell."""
        return summary(self.of(measure, over, held))

    def of(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> FloatArray:
        """One score of every run, shape (cells, runs)."""
        return np.asarray(self.scores[:, :, held, list(Over).index(over), list(Measure).index(measure)])

    def cells_of(self, method: Method) -> IntArray:
        """Positions of a method's cells, by bound."""
        found = [at for at, cell in enumerate(self.experiment.cells) if cell.method is method]
        return np.array(sorted(found, key=lambda at: self.experiment.cells[at].bound), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class References:
    """What the table is compared with; scores have shape (2, 2, 2) as in `Table.scores`.

    Attributes:
        no_privacy: All rows with weight 1, no noise, the same ball.
        guessing: The best score that is the same for every row.
        certificate: Of the model without privacy.
        theta: That model, shape (num_features,).
    """

    no_privacy: FloatArray
    guessing: FloatArray
    certificate: Certificate
    theta: FloatArray


def references(experiment: Experiment) -> References:
    """The model without privacy and the best constant, both made on the users trained on."""
    train, mechanism = experiment.train, experiment.mechanism
    best = optimum.fit(train, mechanism.loss, np.ones(train.num_rows), mechanism.radius)
    constant = optimum.best_constant(train, mechanism.loss)
    sides = (train, experiment.test)
    return References(
        np.stack([scores(side, mechanism.loss, best.theta[:, None])[0] for side in sides]),
        np.stack([constant_scores(side, mechanism.loss, constant) for side in sides]),
        best.certificate,
        best.theta,
    )


def bounds(max_size: int, most: int = 9) -> tuple[int, ...]:
    """Whole bounds to try, about evenly apart in their logarithm: 1, 2, 3 … up to the largest user."""
    spaced = np.round(np.geomspace(1.0, max(max_size, 1), most))
    first = np.arange(1, min(max_size, 4) + 1)
    return tuple(int(h) for h in np.unique(np.concatenate((first, spaced))))


def fill(
    table: Table,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    on_more: Callable[[Table], None] | None = None,
) -> Table:
    """Make the runs that a table lacks.

    All cells get their first `BATCH` runs before any gets more, so that there is a whole curve soon.

    Args:
        table: What there is already.
        progress: Told the share of runs done.
        should_stop: Asked between steps; what is done by then is in the table.
        on_more: Given the table whenever all bounds of a method have more runs.

    Returns:
        The table with what was made; the one given stays as it is.
    """
    experiment = table.experiment
    found = table.scores.copy()
    order = _order(experiment, found)
    left = sum(len(runs) for _, runs in order)
    whole = found.shape[0] * found.shape[1]
    ranks: dict[range, IntArray] = {}
    for number, (at, runs) in enumerate(order):
        cell = experiment.cells[at]
        theta = _models(experiment, cell, runs, ranks, should_stop)
        if theta is None:
            break
        for held, side in enumerate((experiment.train, experiment.test)):
            found[at, runs.start : runs.stop, held] = scores(side, experiment.mechanism.loss, theta)
        left -= len(runs)
        progress(1.0 - left / whole)
        following = order[number + 1 : number + 2]
        ends = not following or experiment.cells[following[0][0]].method is not cell.method
        if on_more is not None and (ends or following[0][1].start > runs.start):
            on_more(Table(experiment, found.copy()))
    return Table(experiment, found)


def _order(experiment: Experiment, found: FloatArray) -> list[tuple[int, range]]:
    """Cells and runs that are missing, first the first runs of all, output perturbation last."""
    batch = min(BATCH, max(_RANKS // experiment.train.num_rows, 1))
    # All the others at once: larger matrices, and one set of ranks for all caps.
    rest = max(min(4 * BATCH, _RANKS // experiment.train.num_rows), batch)
    cuts = [0, min(batch, experiment.runs)]
    while cuts[-1] < experiment.runs:
        cuts.append(min(cuts[-1] + rest, experiment.runs))
    order = []
    for first, last in itertools.pairwise(cuts):
        for method in Method:
            for at, cell in enumerate(experiment.cells):
                if cell.method is method:
                    missing = np.flatnonzero(np.isnan(found[at, first:last, 0, 0, 0])) + first
                    order += [(at, runs) for runs in _stretches(missing.tolist())]
    return order


def _stretches(numbers: Sequence[int]) -> list[range]:
    """Ascending numbers as ranges."""
    found: list[range] = []
    for number in numbers:
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


def _models(
    experiment: Experiment,
    cell: Cell,
    runs: range,
    ranks: dict[range, IntArray],
    should_stop: ShouldStop,
) -> FloatArray | None:
    if cell.method is Method.OUTPUT:
        return output.perturb(
            experiment.train, experiment.mechanism, cell, experiment.seed, runs, should_stop=should_stop
        )
    mine = None
    if cell.method is Method.CAP:
        if runs not in ranks:
            ranks.clear()  # Those of one batch at a time.
            ranks[runs] = random_ranks(experiment.train, experiment.seed, runs)
        mine = ranks[runs]
    return descent.train(
        experiment.train,
        experiment.mechanism,
        cell,
        experiment.seed,
        runs,
        ranks=mine,
        should_stop=should_stop,
    )


@dataclass(frozen=True)
class Best:
    """The bound of least mean loss among those tried, by the table itself.

    Attributes:
        at: Position of its cell.
        low: Smallest bound of the stretch around it whose mean loss is within 5 % of it.
        high: Largest.
    """

    at: int
    low: float
    high: float


def best(table: Table, method: Method) -> Best | None:
    """The best bound of a method on the users held out; None where nothing of it is done."""
    cells = table.cells_of(method)
    if not cells.size:
        return None
    means = table.summary(Measure.LOSS, Over.ROWS).mean[cells]
    if not np.isfinite(means).any():
        return None
    here = int(np.nanargmin(means))
    near = means <= 1.05 * means[here]
    low = high = here
    while low > 0 and near[low - 1]:
        low -= 1
    while high < near.size - 1 and near[high + 1]:
        high += 1
    of = [experiment_cell.bound for experiment_cell in (table.experiment.cells[at] for at in cells)]
    return Best(int(cells[here]), of[low], of[high])


def paired_difference(table: Table, one: int, other: int) -> tuple[float, float]:
    """Mean of loss(one) - loss(other) on the users held out and half of its 95 % interval, run by run.

    Runs of the same number share their noise, so this is far surer than the difference of two means.
    """
    values = table.of(Measure.LOSS, Over.ROWS)
    found = summary(values[one] - values[other], axis=0)
    if found.runs < 2:
        return math.nan, math.nan
    return float(found.mean), float(found.half_width)
