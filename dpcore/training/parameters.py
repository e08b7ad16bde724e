"""The question of the page *Classifier* as one validated object: for pages, links and files."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.parameters import LINE, SOURCE, Option, Parameters, of_data, public
from dpcore.common.privacy import Neighbours
from dpcore.common.text_fields import build_from
from dpcore.common.wording import format_count
from dpcore.training import account, experiment
from dpcore.training.account import Cell, Method
from dpcore.training.experiment import Experiment
from dpcore.training.mechanism import Average, LossKind, Mechanism, Pace, apply_rule
from dpcore.training.rows import ClassifierRows, hold_out
from dpcore.training.training_data import TrainingGenerator

MAX_SPLITS = 50

GENERATOR_FIELDS = ("num_users", "exponent", "max_rows", "informative", "signal", "user_effect", "data_seed")
"""The settings of generated data."""


class DataSource(Option):
    """The source of features, labels and owners."""

    SAMPLE = "sample", "Sample"
    GENERATED = "generated", "Generate"
    UPLOAD = "upload", "Upload a table"


LABEL_BY_RELATION = {
    Neighbours.ADD_OR_REMOVE_USER: "Add or remove a user",
    Neighbours.REPLACE_USER: "Replace a user",
    Neighbours.REPLACE_VALUES: "Change a user's values",
}


@dataclass(frozen=True)
class TrainingParameters(Parameters):
    """The question as a person enters it; it has no value that was computed from data.

    The page has data of its own: "of_data" is about these. `Mechanism` and `TrainingGenerator` check the fields that
    have no range here.
    """

    delta: float = public.number(1e-5, "δ", name="δ", width=110, place=LINE)
    """The probability with which ε may fail to hold. Choose it well below 1 / (number of users)."""
    neighbours: Neighbours = public.choice(
        Neighbours.ADD_OR_REMOVE_USER,
        "Neighbouring data",
        LABEL_BY_RELATION,
        uses_select_box=True,
        width=190,
        place=LINE,
    )
    """The part of a user's data that privacy hides. Row counts of users are public only if neighbours change values."""
    loss: LossKind = public.choice(LossKind.LOGISTIC, "Loss", uses_select_box=True)
    """The loss of a row, whose mean the training minimises."""
    positive_above: float = of_data.number(
        0.5, "A label is 1 above", name="the threshold of the label", is_renewed=True
    )
    """A label above this public threshold counts as 1, any other as −1."""
    bounded_by: Method = of_data.choice(
        Method.FOLLOWED,
        "A release bounds users by",
        name="what a release bounds users by",
        uses_select_box=True,
    )
    """Clipped sums shorten a user's gradient, weights count heavy users' rows less, a cap draws rows. ε covers a bound
    that follows the users."""
    bound: float = of_data.number(1.0, "Bound h of a release", (1e-6, 1e9))
    """The most rows that a user may count for. Choose it without a look at the curves: 1 needs none."""
    pace: Pace = public.choice(Pace.RULE, "Steps and step size", uses_select_box=True)
    """The rule reads nothing but the released number of users. A bound that follows the users and output perturbation
    always have it."""
    average: Average = public.choice(
        Average.LAST_HALF, "The model is the mean of", name="iterates averaged", uses_select_box=True
    )
    """The iterates of the descent whose mean is the model. All choices are equally private."""
    steps: int = public.number(Mechanism.steps, "Steps T", name="the number of steps")
    """The steps of the descent, 1 to 1,000. More steps need no more budget, as all of them share it."""
    step_size: float = public.number(Mechanism.step_size, "Step size", step=0.1)
    """In units of 1 / (smoothness of the loss), above 0 and below 2."""
    radius: float = public.number(Mechanism.radius, "Radius of the ball")
    """The model θ stays in this ball around 0."""
    sampled: float = public.number(1.0, "Share of users in a step", step=0.1)
    """Below 1, each user takes part by a random draw, which needs neighbours that add or remove a user."""
    runs: int = public.number(20, "Runs", (2, experiment.MAX_RUNS), name="the number of runs")
    """The trainings of each method at each bound."""
    splits: int = public.number(5, "Splits of the users", (1, MAX_SPLITS), name="the number of splits")
    """The splits into users to train on and users held out."""
    held_out: float = public.number(0.25, "Share of users held out", (0.05, 0.9), step=0.05)
    """The users on whom models are judged, and not trained."""
    seed: int = public.number(0, "Seed of splits and runs", (0, 2**31))
    """The same seed gives the same numbers."""
    source: DataSource = of_data.choice(DataSource.SAMPLE, "Data of this page", place=SOURCE)
    """The sample, generated data, or a table that you upload."""
    num_users: int = of_data.number(TrainingGenerator.num_users, "Users m", name="users m", place=SOURCE)
    """The users that are generated, 10 to 50,000."""
    exponent: float = of_data.number(TrainingGenerator.exponent, "Exponent α of rows per user", place=SOURCE)
    """A user has more than $k$ rows with probability $(k + 1)^{-\\alpha}$. A smaller α is more uneven."""
    max_rows: int = of_data.number(TrainingGenerator.max_rows, "Rows of a user, at most", place=SOURCE)
    """The largest number of rows of one user, 1 to 10,000."""
    informative: int = of_data.number(TrainingGenerator.informative, "Features", place=SOURCE)
    """The features on which labels depend, 1 to 20, beside an intercept."""
    signal: float = of_data.number(TrainingGenerator.signal, "Size of each coefficient", place=SOURCE)
    """A larger size makes labels easier to predict."""
    user_effect: float = of_data.number(TrainingGenerator.user_effect, "Spread between users", place=SOURCE)
    """The standard deviation of the users' own effects. Above 0, heavy users differ from light ones."""
    data_seed: int = of_data.number(TrainingGenerator.seed, "Seed of the data", place=SOURCE)
    """The same seed generates the same data."""

    def _check_together(self, problems: Problems) -> None:
        """Add problems of a cap that is above 1 and not whole, and all that `Mechanism` or the generator refuses."""
        problems.finite(positive_above=self.positive_above)
        if self.bounded_by is Method.CAP and self.bound > 1.0 and self.bound % 1.0:
            problems.add(f"a release under a cap draws a whole number of rows; the bound is {self.bound:g}")
        with problems.collecting():
            _ = build_from(Mechanism, self, epsilon=1.0)
        with problems.collecting():
            _ = self.generator

    @property
    def mechanism(self) -> Mechanism:
        """Return the mechanism of the training; by the rule, the entered steps and step size do not count."""
        mechanism: Mechanism = build_from(Mechanism, self)
        return apply_rule(mechanism) if self.pace is Pace.RULE else mechanism

    @property
    def release_cell(self) -> Cell:
        """Return the cell of a release; for weights and caps a bound below one row becomes bound 1 with that clip."""
        if self.bounded_by is Method.FOLLOWED:
            return Cell(Method.FOLLOWED)
        if self.bounded_by in (Method.SMOOTH, Method.CAP) and self.bound < 1.0:
            return Cell(self.bounded_by, 1.0, self.bound)
        return Cell(self.bounded_by, self.bound)

    @property
    def generator(self) -> TrainingGenerator:
        """Return the generator of the data; its fields are checked whatever the source of the data."""
        return build_from(TrainingGenerator, self, seed=self.data_seed)

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return the methods to compare; output perturbation only if the loss has a bounded slope."""
        has_perturbation = self.loss.has_bounded_slope
        return tuple(method for method in Method if has_perturbation or method is not Method.OUTPUT)

    def list_cells(self, max_size: int) -> tuple[Cell, ...]:
        """List the cells to compare: bounds that double by the rule, else integer bounds, up to ``max_size`` rows."""
        if self.pace is Pace.RULE:
            return account.list_doubled_cells(max_size, self.loss.has_bounded_slope)
        fixed_methods = [method for method in self.methods if method is not Method.FOLLOWED]
        whole_bounds = account.list_bounds(max_size)
        return (
            Cell(Method.FOLLOWED),
            *itertools.starmap(Cell, itertools.product(fixed_methods, whole_bounds)),
        )

    def make_experiment(self, rows: ClassifierRows, max_runs: int = experiment.MAX_RUNS) -> Experiment:
        """Split the users into training and test, and list the cells and runs to make; nothing is trained.

        Args:
            rows: All users.
            max_runs: Fewer runs are made where more are asked for.

        Raises:
            InvalidInput: Fewer than two users, or all labels on one side of the threshold.
        """
        if np.unique(rows.signs).size < 2:
            raise refuse(
                f"every label is {'1' if rows.signs[0] > 0.0 else 'not 1'}: there is nothing to tell apart",
                remedy="Choose a threshold or class that leaves labels on both sides",
            )
        splits = tuple(hold_out(rows, self.held_out, self.seed + i) for i in range(self.splits))
        cells, num_runs = self.list_cells(int(rows.sizes.max())), min(self.runs, max_runs)
        return Experiment(splits, self.mechanism, cells, num_runs, self.seed)


def list_assumptions(parameters: TrainingParameters) -> tuple[str, ...]:
    """List the assumptions of the answers, sentences without their full stop."""
    doubled_noise_clause = "the noise is twice that for adding or removing a user"
    mechanism, has_rule = parameters.mechanism, parameters.pace is Pace.RULE
    counts_sentence = {
        Neighbours.ADD_OR_REMOVE_USER: "The rows per user and the number of users are protected; the latter costs 3 to "
        "5 % of the budget",
        Neighbours.REPLACE_USER: f"The rows per user are protected, the number of users is public; "
        f"{doubled_noise_clause}",
        Neighbours.REPLACE_VALUES: f"The rows per user are public; {doubled_noise_clause}",
    }[parameters.neighbours]
    return (
        f"Neighbouring relation: {parameters.neighbours.value}",
        counts_sentence,
        "Features are scaled to norm 1 by public ranges; each row's gradient is clipped to norm 1",
        f"The noise of all {mechanism.steps} steps is that of one Gaussian mechanism, exactly"
        if mechanism.sampled == 1.0
        else f"Each step has a random share {mechanism.sampled:g} of the users; dp-accounting composes the privacy "
        "losses, rounded upwards",
        "Steps and step size follow from ε, δ, the number of features and the released number of users"
        if has_rule
        else "Steps and step size are public",
        f"ε covers an adaptive bound. It does not cover choosing a fixed bound{'' if has_rule else ', steps,'} or a "
        "method by these curves",
        f"Curves are simulated, over {format_count(parameters.splits, 'split')} of the users",
        "*No bound* treats the size of the largest user as public",
    )
