"""What a person enters to ask the question, as one validated object: for pages, links and files."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.privacy import Neighbours
from dpcore.common.text_fields import built_from
from dpcore.training import experiment
from dpcore.training.experiment import Experiment
from dpcore.training.generator import TrainingGenerator
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Average, Mechanism
from dpcore.training.rows import ClassifierRows, hold_out
from dpcore.training.weighting import RELEASED, Cell, Method

MAX_ROWS = 200_000
"""Rows that a page trains on: 50 runs of 20 bounds take about three minutes on one core."""


GENERATOR_FIELDS = ("num_users", "exponent", "max_rows", "informative", "signal", "user_effect", "data_seed")
"""What data are generated from."""


class DataSource(enum.Enum):
    """Where features, labels and owners come from."""

    SAMPLE = "sample"
    GENERATED = "generated"
    UPLOAD = "upload"


class OtherMethods(enum.Enum):
    """What is tried beside smooth weights and caps."""

    OUTPUT = "output-perturbation"
    CLIPPED_SUMS = "clipped-sums"
    NOTHING = "nothing"


@dataclass(frozen=True)
class TrainingParameters:
    """The question as a person enters it; holds nothing that was computed from data.

    Attributes:
        epsilon: Of a whole training.
        delta: Likewise.
        neighbours: Which data sets are neighbours; it also says whether counts are public.
        loss: Of a row.
        positive_above: A label above it is 1, any other -1, in the labels' unit; public.
        bound: h that a release on the page is trained with, in rows.
        bounded_by: Smooth weights or a cap, for a release.
        steps: T, of the descent; see `Mechanism` for this and the next four.
        step_size: In units of 1 / (smoothness of the loss).
        average: Which iterates the model is the mean of.
        radius: Of the ball that the model is kept in.
        sampled: Share of the users that takes part in a step.
        runs: Of each method at each bound, 2 to `experiment.MAX_RUNS`.
        held_out: Share of the users that models are judged on, 0.05 to 0.9.
        seed: Of the split and of all runs.
        others: What is tried beside smooth weights and caps.
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
    bound: float = 1.0
    bounded_by: Method = Method.SMOOTH
    steps: int = Mechanism.steps
    step_size: float = Mechanism.step_size
    average: Average = Average.LAST_HALF
    radius: float = Mechanism.radius
    sampled: float = 1.0
    runs: int = 50
    held_out: float = 0.25
    seed: int = 0
    others: OtherMethods = OtherMethods.OUTPUT
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
                self.bounded_by is Method.CAP and (self.bound < 1.0 or self.bound % 1.0)
            ):
                problems.add(
                    f"a release under a cap draws a whole number of rows, at least 1; the bound is {self.bound:g}"
                )
            if self.bounded_by not in RELEASED:
                problems.add(f"a release has smooth weights or a cap; got {self.bounded_by.value}")
            problems.whole(2, experiment.MAX_RUNS, runs=self.runs)
            problems.between(0.05, 0.9, held_out=self.held_out)
            problems.whole(0, 2**31, seed=self.seed)
            with problems.collecting():
                _ = built_from(Mechanism, self, epsilon=1.0)
            with problems.collecting():
                _ = self.generator

    @property
    def mechanism(self) -> Mechanism:
        """What is trained and how."""
        return built_from(Mechanism, self)

    @property
    def released(self) -> Cell:
        """What a release bounds users by."""
        return Cell(self.bounded_by, self.bound)

    @property
    def generator(self) -> TrainingGenerator:
        """What generates the data."""
        return built_from(TrainingGenerator, self, seed=self.data_seed)

    @property
    def methods(self) -> tuple[Method, ...]:
        """What is tried; output perturbation only where the loss has a bounded slope."""
        found = [Method.SMOOTH, Method.CAP]
        if self.others is OtherMethods.CLIPPED_SUMS:
            found.append(Method.CLIPPED_SUM)
        elif self.others is OtherMethods.OUTPUT and self.loss.has_bounded_slope:
            found.append(Method.OUTPUT)
        return tuple(found)

    def experiment(self, rows: ClassifierRows, most_runs: int = experiment.MAX_RUNS) -> Experiment:
        """The question on these rows.

        Args:
            rows: All users.
            most_runs: Fewer runs are made where more are asked for.

        Raises:
            InvalidInput: Fewer than two users.
        """
        train, test = hold_out(rows, self.held_out, self.seed)
        tried = experiment.bounds(int(train.sizes.max()))
        cells = tuple(Cell(method, h) for method in self.methods for h in tried)
        return Experiment(train, test, self.mechanism, cells, min(self.runs, most_runs), self.seed)


def assumptions(parameters: TrainingParameters) -> tuple[str, ...]:
    """What the answers rest on, sentences without their full stop."""
    counts = {
        Neighbours.ADD_OR_REMOVE_USER: "Nobody's number of rows is public: the sum of weights gets noise of its own, "
        "for 5 % of the budget",
        Neighbours.REPLACE_USER: "The number of users is public, nobody's number of rows is: the sum of weights gets "
        "noise of its own, for 5 % of the budget, but for averages, where it is the number of users",
        Neighbours.REPLACE_VALUES: "Everybody's number of rows is public, and so is the sum of weights; neighbours "
        "need twice the noise of one user who comes or goes",
    }[parameters.neighbours]
    return (
        f"Neighbouring data sets differ thus: {parameters.neighbours.value}",
        counts,
        "Features are brought to norm 1 by ranges that are public, and each row's gradient is clipped to norm 1",
        f"The noise of all {parameters.steps} steps is that of one Gaussian mechanism, exactly"
        if parameters.sampled == 1.0
        else f"Each step has a random share of the users, {parameters.sampled:g} of them; dp-accounting composes the "
        "privacy losses, rounded upwards",
        "Bound, steps and step size are taken as public. Chosen by looking at these curves they are not, and ε does "
        "not cover that choice",
        "Curves are simulated on these users: intervals say how noise and drawn rows vary, not how other users would",
        "Models learn from one part of the users and are judged on the users held out",
        "No bound takes the largest user of these data as if it were public",
    )
