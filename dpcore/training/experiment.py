"""Loss and accuracy of every method at every bound, over many runs: a table that fills while it is computed.

Each entry depends on the question, its method and bound, and the number of its run, on nothing else: what is stopped
goes on later where it was, with the same numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.over_runs import CONFIDENCE, Summary, summary
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import descent, optimum, output
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows, together
from dpcore.training.scores import SHAPE, Measure, Over, constant_scores, scores
from dpcore.training.user_sums import BLOCK
from dpcore.training.weighting import Cell, Method, random_ranks

MAX_RUNS = 500
BATCH = 10
"""Runs that are made at once: the first of them are shown while the others are made."""
LOOK_ROWS, LOOK_RUNS, LOOK_BOUND = 5_000, 5, 8.0
"""Rows to train on of a first look, its runs, and its largest bound: half a second until its first answer."""
CLOSE_RUNS, CLOSE_SPLITS, CLOSE_CELLS = 4, 4, 3
"""How many times as many runs decide between methods that a table does not tell apart, on how many times as many
splits, and between how many at most."""
FEWEST_SPLITS = 3
"""Below which splits say nothing of other users: of two, Student's interval is 13 times their spread."""
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
        further: More splits of the same users, (users to train on, users held out): run r is made on split r modulo
            their number, so that any few runs are on all splits.

    Raises:
        InvalidInput: No cells, or ``runs`` or ``seed`` out of range.
    """

    train: ClassifierRows
    test: ClassifierRows
    mechanism: Mechanism
    cells: tuple[Cell, ...]
    runs: int = 50
    seed: int = 0
    further: tuple[tuple[ClassifierRows, ClassifierRows], ...] = ()

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.whole(2, MAX_RUNS, runs=self.runs)
            problems.whole(0, 2**31, seed=self.seed)
            if not self.cells:
                problems.add("there is no method to try")

    @property
    def splits(self) -> tuple[tuple[ClassifierRows, ClassifierRows], ...]:
        """All splits, (users to train on, users held out)."""
        return ((self.train, self.test), *self.further)

    def empty(self) -> Table:
        """The table before the first run."""
        return Table(self, np.full((len(self.cells), self.runs, 2, *SHAPE), np.nan))

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What the table depends on, to tell whether one answers this question."""
        digests = tuple(side.digest for split in self.splits for side in split)
        return (digests, self.mechanism, self.cells, self.runs, self.seed)


def first_look(experiment: Experiment) -> Experiment | None:
    """The question on some of the users, with the noise that all of them would have; None where there are few rows.

    The noise of a mean gradient is that of the whole: what is left out is how sure the model without privacy is.
    """
    train = experiment.train
    if train.num_rows <= 2 * LOOK_ROWS:
        return None
    share = LOOK_ROWS / train.num_rows
    # The second number keeps this stream apart from those of the noise and of the splits.
    rng = np.random.default_rng([experiment.seed, 6])

    def some(rows: ClassifierRows) -> ClassifierRows:
        count = max(round(share * rows.num_users), 1)
        return rows.of_users(np.sort(rng.choice(rows.num_users, count, replace=False)))

    side = some(train)
    look = side.num_users / train.num_users
    cells = tuple(cell for cell in experiment.cells if cell.reach <= LOOK_BOUND)
    mechanism = replace(experiment.mechanism, look=look)
    return Experiment(
        side, some(experiment.test), mechanism, cells, min(LOOK_RUNS, experiment.runs), experiment.seed
    )


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

    def summary(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> OverSplits:
        """Means and their errors, one entry per cell."""
        return over_splits(self.of(measure, over, held), self.experiment)

    def of(self, measure: Measure, over: Over, held: int = Held.HELD_OUT) -> FloatArray:
        """One score of every run, shape (cells, runs)."""
        return np.asarray(self.scores[:, :, held, list(Over).index(over), list(Measure).index(measure)])

    def cells_of(self, method: Method) -> IntArray:
        """Positions of a method's cells, by bound."""
        found = [at for at, cell in enumerate(self.experiment.cells) if cell.method is method]
        return np.array(sorted(found, key=lambda at: self.experiment.cells[at].reach), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class OverSplits(Summary):
    """Means over runs on several splits of the users, and two kinds of doubt.

    ``standard_error``, ``half_width`` and ``spread`` are within the splits: how noise and drawn rows vary on these
    users. ``users_half_width`` says how far other users held out would move the mean.

    Attributes:
        degrees: Of freedom within the splits.
        users_half_width: Half of a 95 % interval over the splits; NaN with fewer than `FEWEST_SPLITS`.
    """

    degrees: IntArray
    users_half_width: FloatArray

    @property
    def half_width(self) -> FloatArray:
        """Half of a 95 % interval of the mean as noise varies, by Student's t; NaN without a degree of freedom."""
        return np.asarray(_student(self.degrees) * self.standard_error)


def _student(degrees: IntArray) -> FloatArray:
    from scipy.special import stdtrit

    found = stdtrit(np.maximum(degrees, 1), 0.5 + CONFIDENCE / 2.0)
    return np.asarray(np.where(degrees > 0, found, np.nan))


def _split_means(values: FloatArray, experiment: Experiment) -> FloatArray:
    """Mean of the runs on each split, the splits along the last axis; NaN where there is none."""
    splits = len(experiment.splits)
    parts = [summary(values[..., split::splits], axis=-1).mean for split in range(splits)]
    return np.stack(parts, axis=-1)


def over_splits(values: FloatArray, experiment: Experiment) -> OverSplits:
    """Summaries of values of every run, the runs along the last axis.

    The splits share users, so that their means are no independent draws: the variance of their mean is taken as
    (1/S + held out / trained on) times that between them.

    Source: Nadeau and Bengio 2003, Inference for the generalization error, equation 7, for the correction.
    """
    splits = len(experiment.splits)
    there = np.isfinite(values)
    runs = there.sum(axis=-1)
    of_split = _split_means(values, experiment)
    # From the mean of its own split: how splits differ is the doubt about users, not that about noise.
    off = np.where(there, values - of_split[..., np.arange(values.shape[-1]) % splits], 0.0)
    found = np.isfinite(of_split).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        # The mean of each split takes one.
        degrees = np.maximum(runs - found, 0)
        spread = np.sqrt((off * off).sum(axis=-1) / np.where(degrees > 0, degrees, np.nan))
        mean = np.where(there, values, 0.0).sum(axis=-1) / runs
        between = summary(of_split, axis=-1).spread
        held = experiment.test.num_users / experiment.train.num_users
        users = _student(found - 1) * between * np.sqrt(1.0 / np.maximum(found, 1) + held)
        users = np.where(found >= FEWEST_SPLITS, users, np.nan)
        return OverSplits(mean, spread / np.sqrt(runs), runs, spread, degrees, np.asarray(users))


@dataclass(frozen=True, eq=False)
class References:
    """What the table is compared with; scores have shape (splits, 2, 2, 2), the last three as in `Table.scores`.

    Attributes:
        no_privacy: All rows with weight 1, no noise, the same ball.
        guessing: The best score that is the same for every row.
        quiet: Followed clipped sums as trained, without their noise.
        unclipped: That without clipping, too: what is left is stopping early.
        certificate: Of the model without privacy, on the first split.
        theta: That model, shape (num_features,).
    """

    no_privacy: FloatArray
    guessing: FloatArray
    quiet: FloatArray
    unclipped: FloatArray
    certificate: Certificate
    theta: FloatArray

    def mean(self, of: FloatArray, held: int, over: Over, measure: Measure) -> float:
        """One score, the mean of the splits."""
        return float(of[:, held, list(Over).index(over), list(Measure).index(measure)].mean())


def references(experiment: Experiment, should_stop: ShouldStop = never) -> References | None:
    """The model without privacy, the best constant, and the descent without noise, on the users trained on.

    On a large table the latter is run on the first split alone, and what it loses there is taken for all.

    Returns:
        None where it was stopped.
    """
    mechanism = experiment.mechanism
    found: list[list[FloatArray]] = []
    first: optimum.Fit | None = None
    for train, test in experiment.splits:
        best = optimum.fit(
            train, mechanism.loss, np.ones(train.num_rows), mechanism.radius, should_stop=should_stop
        )
        still = []
        if first is None or train.num_rows <= 2 * LOOK_ROWS:
            still = [
                descent.without_noise(train, mechanism, clipped, should_stop) for clipped in (True, False)
            ]
        if should_stop() or any(theta is None for theta in still):
            return None
        first = first or best
        constant = optimum.best_constant(train, mechanism.loss)
        sides = (train, test)
        models = [best.theta[:, None], *(theta for theta in still if theta is not None)]
        of = [np.stack([scores(side, mechanism.loss, theta)[0] for side in sides]) for theta in models]
        # 0 is the model without privacy, 2 the descent without noise, 3 that without clipping as well.
        of += [of[0] + found[0][kind] - found[0][0] for kind in (2, 3)] if len(of) == 1 else []
        guess = np.stack([constant_scores(side, mechanism.loss, constant) for side in sides])
        found.append([of[0], guess, of[1], of[2]])
    assert first is not None
    every = [np.stack(part) for part in zip(*found, strict=True)]
    return References(every[0], every[1], every[2], every[3], first.certificate, first.theta)


def doubled_cells(max_size: int, with_output: bool) -> tuple[Cell, ...]:
    """All methods with the bounds of a descent by the rule: doubled each time, and below one row, too.

    A bound below one row shortens the gradient of every row for weights and caps, and a user's sum for clipped sums.
    """
    doubled = [2.0**k for k in range(max(math.ceil(math.log2(max(max_size, 1))), 0))] + [float(max_size)]
    below = (0.25, 0.5)
    found = [Cell(Method.FOLLOWED)]
    for method in (Method.SMOOTH, Method.CAP):
        found += [Cell(method, 1.0, clip) for clip in below] + [Cell(method, h) for h in doubled]
    found += [Cell(Method.CLIPPED_SUM, h) for h in (0.125, *below, *doubled)]
    if with_output:
        found += [Cell(Method.OUTPUT, h) for h in doubled]
    return tuple(found)


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

    Where somebody is told of more, all cells get their first `BATCH` runs before any gets others, so that there is a
    whole curve soon.

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
    order = _order(experiment, found, BATCH if on_more is not None else experiment.runs)
    left = sum(len(cells) * len(runs) for cells, runs in order)
    whole = found.shape[0] * found.shape[1]
    ranks: dict[range, IntArray] = {}
    for number, (cells, runs) in enumerate(order):
        stopped = False
        for split, (train, test) in enumerate(experiment.splits):
            mine = _of_split(runs, split, len(experiment.splits))
            if not mine:
                continue
            theta = _models(experiment, train, cells, mine, ranks, should_stop)
            if theta is None:
                # What earlier splits have stays: `_order` asks for the other runs alone.
                stopped = True
                break
            for held, side in enumerate((train, test)):
                of_models = scores(side, experiment.mechanism.loss, theta)
                found[cells, mine.start : mine.stop : mine.step, held] = of_models.reshape(
                    len(cells), len(mine), *SHAPE
                )
        if stopped:
            break
        left -= len(cells) * len(runs)
        progress(1.0 - left / whole)
        following = order[number + 1 : number + 2]
        method = experiment.cells[cells[0]].method
        ends = not following or experiment.cells[following[0][0][0]].method is not method
        if on_more is not None and (ends or following[0][1].start > runs.start):
            on_more(Table(experiment, found.copy()))
    return Table(experiment, found)


def _order(experiment: Experiment, found: FloatArray, batch: int) -> list[tuple[list[int], range]]:
    """Cells and runs that are missing, first the first ``batch`` of all, output perturbation last.

    Cells stand together that are trained together.
    """
    # All the others at once: larger matrices, and one set of ranks for all caps.
    rest = max(min(4 * BATCH * len(experiment.splits), _RANKS // experiment.train.num_rows), 1)
    cuts = [0, min(batch, rest, experiment.runs)]
    while cuts[-1] < experiment.runs:
        cuts.append(min(cuts[-1] + rest, experiment.runs))
    order: list[tuple[list[int], range]] = []
    for first, last in itertools.pairwise(cuts):
        for method in Method:
            for at, cell in enumerate(experiment.cells):
                if cell.method is method:
                    missing = np.flatnonzero(np.isnan(found[at, first:last, 0, 0, 0])) + first
                    for runs in _stretches(missing.tolist()):
                        if order and _joins(experiment, order[-1], at, runs):
                            order[-1][0].append(at)
                        else:
                            order.append(([at], runs))
    return order


def _joins(experiment: Experiment, before: tuple[list[int], range], at: int, runs: range) -> bool:
    """Whether a cell is trained together with those before: as long as a step fits into a core's own cache.

    Of few rows a step is mostly the calls of some thirty functions, which take as long for one bound as for all.
    """
    cells, same = before
    models = (len(cells) + 1) * -(-len(runs) // len(experiment.splits))
    return (
        runs == same
        and models * experiment.train.num_rows <= BLOCK
        and descent.are_trained_together(
            experiment.cells[cells[0]], experiment.cells[at], experiment.mechanism
        )
    )


def _of_split(runs: range, split: int, splits: int) -> range:
    """Those of the runs that are made on one of the splits."""
    first = runs.start + (split - runs.start) % splits
    return range(first, max(runs.stop, first), splits)


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
    train: ClassifierRows,
    cells: Sequence[int],
    runs: range,
    ranks: dict[range, IntArray],
    should_stop: ShouldStop,
) -> FloatArray | None:
    """θ of the runs at each bound in turn, shape (num_features, cells × runs)."""
    mechanism, seed = experiment.mechanism, experiment.seed
    of = [experiment.cells[at] for at in cells]
    if of[0].method is Method.OUTPUT:
        return output.perturb(train, mechanism, of[0], seed, runs, should_stop=should_stop)
    mine = None
    if of[0].method is Method.CAP:
        if runs not in ranks:
            if len(ranks) >= len(experiment.splits):
                ranks.clear()  # Those of one batch at a time: a run number is on one split only.
            ranks[runs] = random_ranks(train, seed, runs)
        mine = ranks[runs]
    if len(of) == 1:
        return descent.train(train, mechanism, of[0], seed, runs, ranks=mine, should_stop=should_stop)
    return descent.train_together(train, mechanism, of, seed, runs, ranks=mine, should_stop=should_stop)


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
    return _around(table, method, int(np.nanargmin(means)))


def _around(table: Table, method: Method, here: int) -> Best:
    """A bound by its place among those of its method, with the stretch around it."""
    cells = table.cells_of(method)
    means = table.summary(Measure.LOSS, Over.ROWS).mean[cells]
    near = means <= 1.05 * means[here]
    low = high = here
    while low > 0 and near[low - 1]:
        low -= 1
    while high < near.size - 1 and near[high + 1]:
        high += 1
    of = [experiment_cell.reach for experiment_cell in (table.experiment.cells[at] for at in cells)]
    return Best(int(cells[here]), of[low], of[high])


def close_call(table: Table) -> Experiment | None:
    """What more runs are to decide: the bound that follows, and the best cells that a table does not tell from it.

    Returns:
        The question for them, with noise of its own; None where the table is not finished, or nothing is open.
    """
    followed = best(table, Method.FOLLOWED)
    if followed is None or not table.finished:
        return None
    means = table.summary(Measure.LOSS, Over.ROWS).mean
    order = [int(at) for at in np.argsort(means)]
    # Two standard errors: about a 95 % interval of the difference.
    near = [at for at in order if _more(table, at, order[0])[0] <= 2.0 * _more(table, at, order[0])[1]]
    chosen = sorted({followed.at, order[0], *near[:CLOSE_CELLS]})
    if len(chosen) < 2 or followed.at not in near:
        return None
    asked = table.experiment
    # Other runs than those that chose the cells: the best of many looks better in its own runs than it is.
    seed = (asked.seed + 1_000_003) % 2**31
    runs = min(CLOSE_RUNS * asked.runs, MAX_RUNS)
    first, *further = _more_splits(asked, seed, runs)
    return Experiment(
        *first,
        asked.mechanism,
        tuple(asked.cells[at] for at in chosen),
        runs,
        seed,
        tuple(further),
    )


def _more_splits(asked: Experiment, seed: int, most: int) -> list[tuple[ClassifierRows, ClassifierRows]]:
    """New splits with as many users held out, nobody twice in one cut; those of before where there are many rows.

    At a large ε the users who are held out move a difference more than noise does, of few rows above all.
    """
    if asked.train.num_rows > 2 * LOOK_ROWS or len(asked.splits) < 2:
        return list(asked.splits)
    rows, held = together(asked.train, asked.test), asked.test.num_users
    parts = max(rows.num_users // held, 1)
    found: list[tuple[ClassifierRows, ClassifierRows]] = []
    for number in range(min(CLOSE_SPLITS * len(asked.splits), most)):
        cut, part = divmod(number, parts)
        order = np.random.default_rng([seed, 7, cut]).permutation(rows.num_users)
        out = np.arange(part * held, (part + 1) * held)
        found.append((rows.of_users(np.sort(np.delete(order, out))), rows.of_users(np.sort(order[out]))))
    return found


def answering(table: Table, close: Table | None = None, choice_is_free: bool = False) -> Best | None:
    """The method that answers, at its best bound; None before the first run.

    That of the least mean loss over all that were tried, unless followed clipped sums are within one standard error of
    it, run by run: they need no choice of a bound by these curves, which ε would not cover.

    Args:
        table: Of all methods.
        close: Of the question of `close_call`, which then decides; with whatever runs are done of all its cells.
        choice_is_free: The rows are public, so that a bound chosen by the curves costs nothing: what ``close`` finds
            best answers, by however little.
    """
    if close is not None and close.done.min() > 1:
        decided = (
            int(np.argmin(close.summary(Measure.LOSS, Over.ROWS).mean))
            if choice_is_free
            else _least(close, range(len(close.experiment.cells)))
        )
        cell = close.experiment.cells[decided]
        at = table.experiment.cells.index(cell)
        return _around(table, cell.method, table.cells_of(cell.method).tolist().index(at))
    found = [one for one in (best(table, method) for method in Method) if one is not None]
    if not found:
        return None
    at = _least(table, [one.at for one in found])
    return next(one for one in found if one.at == at)


def _least(table: Table, cells: Sequence[int]) -> int:
    """That of the least mean loss, or followed clipped sums where they are within one standard error of it."""
    means = table.summary(Measure.LOSS, Over.ROWS).mean
    least = min(cells, key=lambda at: means[at])
    for at in cells:
        if table.experiment.cells[at].method is Method.FOLLOWED:
            more, error = _more(table, at, least)
            # Before there is an error to tell by, the method that needs no choice answers.
            return at if not math.isfinite(error) or more <= error else least
    return least


def _more(table: Table, one: int, other: int) -> tuple[float, float]:
    """Mean of loss(one) - loss(other) on users held out, and its standard error, by noise or by splits."""
    values = table.of(Measure.LOSS, Over.ROWS)
    difference = values[one] - values[other]
    more = over_splits(difference, table.experiment)
    between = summary(_split_means(difference, table.experiment), axis=-1)
    return float(more.mean), float(np.fmax(more.standard_error, between.standard_error))


def paired_difference(table: Table, one: int, other: int) -> tuple[float, float]:
    """Mean of loss(one) - loss(other) on the users held out and half of its 95 % interval, run by run.

    Runs of the same number share their noise, so this is far surer than the difference of two means.
    """
    values = table.of(Measure.LOSS, Over.ROWS)
    found = over_splits(values[one] - values[other], table.experiment)
    if found.degrees < 1:
        return math.nan, math.nan
    return float(found.mean), float(found.half_width)


@dataclass(frozen=True)
class Verdict:
    """How a cell's loss compares with guessing's, on the same splits.

    Attributes:
        more: Mean of loss - loss of guessing; below 0 where training pays.
        half_width: Half of a 95 % interval, for other users held out; noise alone where splits are too few for that.
    """

    more: float
    half_width: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return bool(abs(self.more) > self.half_width)


def against_guessing(table: Table, known: References, at: int) -> Verdict:
    """Loss of a cell less that of guessing, over rows held out."""
    experiment = table.experiment
    splits = len(experiment.splits)
    guess = known.guessing[np.arange(experiment.runs) % splits, Held.HELD_OUT, 0, 0]
    found = over_splits(table.of(Measure.LOSS, Over.ROWS)[at] - guess, experiment)
    half = float(found.users_half_width)
    return Verdict(float(found.mean), half if math.isfinite(half) else float(found.half_width))
