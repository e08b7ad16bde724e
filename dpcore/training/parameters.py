"""The question of the page *Classifier* as one validated object: for pages, links and files."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refuse
from dpcore.common.privacy import Neighbours
from dpcore.common.text_fields import build_from
from dpcore.training import experiment
from dpcore.training.experiment import Experiment
from dpcore.training.generator import TrainingGenerator
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Average, Mechanism, Pace
from dpcore.training.pace import apply_rule
from dpcore.training.rows import ClassifierRows, hold_out
from dpcore.training.weighting import Cell, Method

MAX_ROWS = 200_000
"""Rows that a page trains on: 20 runs of 36 cells take about ten minutes on one core, a first look a second."""
MAX_SPLITS = 50

GENERATOR_FIELDS = ("num_users", "exponent", "max_rows", "informative", "signal", "user_effect", "data_seed")
"""What data are generated from."""


class DataSource(enum.Enum):
    """The source of features, labels and owners."""

    SAMPLE = "sample"
    GENERATED = "generated"
    UPLOAD = "upload"


@dataclass(frozen=True)
class TrainingParameters:
    """The question as a person enters it; it has no value that was computed from data.

    Attributes:
        epsilon: Of a whole training.
        delta: Likewise.
        neighbours: Which data sets are neighbours; it also says whether counts are public.
        loss: Of a row.
        positive_above: A label above it is 1, any other -1, in the labels' unit; public.
        bounded_by: What keeps a user within the bound in a release.
        bound: h of a release, in rows; not asked of a bound that follows the users. Below one row, weights and caps
            shorten every row's gradient to it.
        pace: Steps and step size by a rule that looks at no data, or as entered in the next four.
        steps: T, of the descent; see `Mechanism` for this and the next four.
        step_size: In units of 1 / (smoothness of the loss).
        average: Which iterates the model is the mean of.
        radius: Of the ball that the model is kept in.
        sampled: Share of the users that takes part in a step.
        runs: Of each method at each bound, 2 to `experiment.MAX_RUNS`.
        splits: Of the users, into those trained on and those held out; the runs go round them. 1 to `MAX_SPLITS`.
        held_out: Share of the users that models are judged on, 0.05 to 0.9.
        seed: Of the splits and of all runs.
        source: The sample, generated data or an upload. Of data that are given it is the last.
        num_users: m of generated data; see `TrainingGenerator` for this and what follows.
        exponent: alpha of the law of rows per user of generated data.
        max_rows: Most rows that a generated user has.
        informative: Generated features beside the intercept.
        signal: Size of each generated coefficient.
        user_effect: Spread between the generated users.
        data_seed: Seed of the generator.

    Raises:
        InvalidInput: A field is out of its range; all problems at once.
    """

    epsilon: float
    delta: float = 1e-5
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    loss: LossKind = LossKind.LOGISTIC
    positive_above: float = 0.5
    bounded_by: Method = Method.FOLLOWED
    bound: float = 1.0
    pace: Pace = Pace.RULE
    steps: int = Mechanism.steps
    step_size: float = Mechanism.step_size
    average: Average = Average.LAST_HALF
    radius: float = Mechanism.radius
    sampled: float = 1.0
    runs: int = 20
    splits: int = 5
    held_out: float = 0.25
    seed: int = 0
    source: DataSource = DataSource.SAMPLE
    num_users: int = TrainingGenerator.num_users
    exponent: float = TrainingGenerator.exponent
    max_rows: int = TrainingGenerator.max_rows
    informative: int = TrainingGenerator.informative
    signal: float = TrainingGenerator.signal
    user_effect: float = TrainingGenerator.user_effect
    data_seed: int = TrainingGenerator.seed

    def __post_init__(self) -> None:
        with Problems() as problems:
            # One by one: what else is wrong is said even where the budget is.
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.finite(positive_above=self.positive_above)
            if problems.between(1e-6, 1e9, bound=self.bound) and (
                self.bounded_by is Method.CAP and self.bound > 1.0 and self.bound % 1.0
            ):
                problems.add(
                    f"a release under a cap draws a whole number of rows; the bound is {self.bound:g}"
                )
            if self.bounded_by is Method.OUTPUT and self.pace is Pace.ENTERED:
                problems.add(
                    "a release by output perturbation has its penalty by the rule",
                    remedy="Take steps by the rule, or another method",
                )
            problems.whole(2, experiment.MAX_RUNS, runs=self.runs)
            problems.whole(1, MAX_SPLITS, splits=self.splits)
            problems.between(0.05, 0.9, held_out=self.held_out)
            problems.whole(0, 2**31, seed=self.seed)
            with problems.collecting():
                _ = build_from(Mechanism, self, epsilon=1.0)
            with problems.collecting():
                _ = self.generator

    @property
    def mechanism(self) -> Mechanism:
        """Return the mechanism of the training."""
        mechanism: Mechanism = build_from(Mechanism, self)
        return apply_rule(mechanism) if self.pace is Pace.RULE else mechanism

    @property
    def release_cell(self) -> Cell:
        """Return the method and the bound of a release."""
        if self.bounded_by is Method.FOLLOWED:
            return Cell(Method.FOLLOWED)
        if self.bounded_by in (Method.SMOOTH, Method.CAP) and self.bound < 1.0:
            return Cell(self.bounded_by, 1.0, self.bound)
        return Cell(self.bounded_by, self.bound)

    @property
    def generator(self) -> TrainingGenerator:
        """Return the generator of the data."""
        return build_from(TrainingGenerator, self, seed=self.data_seed)

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return the methods to compare; output perturbation only if the loss has a bounded slope."""
        has_bounded_slope = self.loss.has_bounded_slope
        return tuple(method for method in Method if has_bounded_slope or method is not Method.OUTPUT)

    def list_cells(self, max_size: int) -> tuple[Cell, ...]:
        """List the methods and bounds to compare if the largest user has so many rows."""
        if self.pace is Pace.RULE:
            return experiment.list_doubled_cells(max_size, self.loss.has_bounded_slope)
        bounds = experiment.list_bounds(max_size)
        return (
            Cell(Method.FOLLOWED),
            *(
                Cell(method, bound)
                for method in self.methods
                if method is not Method.FOLLOWED
                for bound in bounds
            ),
        )

    def make_experiment(self, rows: ClassifierRows, max_runs: int = experiment.MAX_RUNS) -> Experiment:
        """Make the experiment on these rows.

        Args:
            rows: All users.
            max_runs: Fewer runs are made where more are asked for.

        Raises:
            InvalidInput: Fewer than two users, or all labels on one side of the threshold.
        """
        if np.unique(rows.signs).size < 2:
            label_text = "1" if rows.signs[0] > 0.0 else "not 1"
            raise refuse(
                f"every label is {label_text}: there is nothing to tell apart",
                remedy="Choose a threshold, or what counts as 1, that leaves labels on both sides",
            )
        first_split, *further_splits = (
            hold_out(rows, self.held_out, self.seed + split) for split in range(self.splits)
        )
        cells = self.list_cells(int(rows.sizes.max()))
        return Experiment(
            *first_split, self.mechanism, cells, min(self.runs, max_runs), self.seed, tuple(further_splits)
        )


def list_assumptions(parameters: TrainingParameters) -> tuple[str, ...]:
    """List the assumptions of the answers, sentences without their full stop."""
    counts_text = {
        Neighbours.ADD_OR_REMOVE_USER: "Nobody's number of rows is public, nor is the number of users: it gets noise "
        "of its own, for 3 to 5 % of the budget",
        Neighbours.REPLACE_USER: "The number of users is public, nobody's number of rows is; neighbours need twice the "
        "noise of one user who comes or goes",
        Neighbours.REPLACE_VALUES: "Everybody's number of rows is public; neighbours need twice the noise of one user "
        "who comes or goes",
    }[parameters.neighbours]
    return (
        f"Neighbouring data sets differ thus: {parameters.neighbours.value}",
        counts_text,
        "Features are brought to norm 1 by ranges that are public, and each row's gradient is clipped to norm 1",
        f"The noise of all {parameters.mechanism.steps} steps is that of one Gaussian mechanism, exactly"
        if parameters.mechanism.sampled == 1.0
        else f"Each step has a random share of the users, {parameters.sampled:g} of them; dp-accounting composes the "
        "privacy losses, rounded upwards",
        "Steps and step size follow from ε, δ, the number of features, and the number of users as it is released"
        if parameters.pace is Pace.RULE
        else "Steps and step size are public",
        "A bound that follows the users is covered by ε. Choosing a fixed one"
        f"{'' if parameters.pace is Pace.RULE else ', steps,'} or a method by these curves is not",
        f"Curves are simulated, over {wording.counted(parameters.splits, 'split')} of the users into those trained on "
        "and those held out",
        "No bound takes the largest user of these data as if it were public",
    )
