"""The data that a classifier is trained on: the sample, generated rows, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpcore.common.checks import InputProblem, Problems, refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.wording import choose_word, format_count, format_entered
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.counting.text import read_table
from dpcore.data import design_matrix
from dpcore.data.cell_numbers import read_numbers
from dpcore.data.column_names import shorten
from dpcore.data.design_matrix import Design, Feature, FeatureKind
from dpcore.data.samples import FOLDER
from dpcore.data.tables import Table
from dpcore.dataset import Dataset, LabelledRows
from dpcore.training.rows import Scaling, list_numeric_columns, make_scaling

MAX_ROWS = 200_000
"""Most rows to train on: 20 runs of 36 cells take about ten minutes on one core."""
SAMPLE_FILE = "support_tickets.csv"
SAMPLE_TITLE = "Support tickets (invented)"
DESIGN = Design(
    label="escalated",
    user="customer",
    features=(
        Feature("words"),
        Feature("hours_waited"),
        Feature("years"),
        Feature("channel", FeatureKind.CATEGORIES, "email"),
    ),
)
SAMPLE_RANGES = {"words": (0.0, 400.0), "hours_waited": (0.0, 48.0), "years": (0.0, 10.0)}
"""Limits that the help desk sets, in words, hours and years."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """A table with its design and scaling.

    Attributes:
        dataset: With the facet `table`.
        account: Whose rows they are: releases from the same rows add up, whatever was made of them. Empty where
            nothing is released.
        design: What the columns meant, where they come from a table.
        scaling: How features are brought to norm 1, as `dpcore.training.rows.make_scaling` has it; None as long as
            ranges are missing.
        ranges: Of the columns that enter as numbers, by name.
    """

    dataset: Dataset
    account: str = ""
    design: Design | None = None
    scaling: Scaling | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return a digest of the training rows: the table, and how features are scaled."""
        return f"{self.dataset.digest} {self.scaling!r}"

    @property
    def provenance(self) -> Provenance:
        """Return the label of numbers computed from the data."""
        return self.dataset.provenance

    @property
    def numeric_columns(self) -> tuple[str, ...]:
        """Return the columns that enter as numbers and need a range."""
        return () if self.design is None else list_numeric_columns(self.design)


def read_labelled_table(
    table: Table,
    design: Design,
    disclosure: Disclosure,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    positive: str | float | None = None,
) -> TrainingData:
    """Read a table for training.

    Args:
        table: As `dpcore.counting.read_table` gives it.
        design: What its columns mean; of private rows the levels of categories are listed.
        disclosure: Of the rows.
        ranges: The public range of each column that enters as a number.
        positive: The class of the label that counts as 1, all others as -1, as its cells have it; by default that of
            ``design``.

    Raises:
        InvalidInput: The table cannot be read so; ranges or levels are missing; or the label is words and no class is
            named.
    """
    if positive is not None:
        design = replace(design, positive=str(positive).strip())
    ranges_by_column = {column: (float(low), float(high)) for column, (low, high) in (ranges or {}).items()}
    numeric_columns = list_numeric_columns(design)
    range_problems = [
        InputProblem(
            f"the range of {shorten(column)} is missing: ranges={{{column[:40]!r}: (lowest, highest)}}"
        )
        for column in numeric_columns
        if column not in ranges_by_column
    ]
    range_problems += [
        InputProblem(f"ranges names {shorten(column)}, which is no feature that enters as a number")
        for column in ranges_by_column
        if column not in numeric_columns
    ]
    dataset = build_dataset(table, design, disclosure, range_problems)
    scaling = make_scaling(dataset, design, ranges_by_column)
    return TrainingData(dataset, dataset.digest, design, scaling, ranges_by_column)


def build_dataset(
    table: Table, design: Design, disclosure: Disclosure, range_problems: Sequence[InputProblem] = ()
) -> Dataset:
    """Build the dataset of a table whose columns have a meaning.

    Raises:
        InvalidInput: The table cannot be trained on, or ``range_problems`` are given.
    """
    with Problems() as problems:
        problems.extend(find_unnamed_class(table, design))
        problems.extend(find_unlisted_levels(design) if disclosure is Disclosure.PRIVATE else [])
        problems.extend(range_problems)
    return design_matrix.build_dataset(table, design, disclosure, check_rows)


def check_rows(features: FloatArray, user_codes: IntArray, feature_names: tuple[str, ...]) -> None:
    """Raise `InvalidInput` if there are too many rows, or only one user; the names of features are not read.

    Raises:
        InvalidInput: Too many rows, or one user.
    """
    if features.shape[0] > MAX_ROWS:
        raise refuse(f"there are {features.shape[0]:,} rows; at most {MAX_ROWS:,} are trained on")
    if np.unique(user_codes).size < 2:
        raise refuse("there is one user; at least two are needed, one to be held out")


def find_unlisted_levels(design: Design) -> list[InputProblem]:
    """List a problem for each column of categories whose levels are not listed.

    Levels taken from private rows would be released.
    """
    return [
        InputProblem(
            f"the levels of column {shorten(feature.column)} must be listed: a release of private rows names them",
            remedy="Write the public list, the reference level first, or leave the column out",
        )
        for feature in design.features
        if feature.encoding is FeatureKind.CATEGORIES and not feature.further_levels
    ]


def find_unnamed_class(table: Table, design: Design) -> list[InputProblem]:
    """List a problem if the label holds words and no class is named to count as 1; else an empty list."""
    if design.positive or design.label not in table.columns:
        return []
    text_row_indices = np.flatnonzero(read_numbers(table, design.label).text_mask)
    if not text_row_indices.size:
        return []
    line_numbers_text = ", ".join(f"{table.get_line_number(int(row)):,}" for row in text_row_indices[:3])
    line_numbers_text += f" and {text_row_indices.size - 3:,} more" if text_row_indices.size > 3 else ""
    line_or_lines = choose_word(text_row_indices.size, "line", "lines")
    label_name = shorten(design.label)
    problem_text = (
        f"the label {label_name} holds words ({line_or_lines} {line_numbers_text}): which one is 1?"
    )
    remedy_text = "Name the class that counts as 1 (positive), or correct these cells"
    return [InputProblem(problem_text, remedy=remedy_text)]


def describe_positive(data: TrainingData, positive_above: float) -> str:
    """Write which rows count as 1, which a score above 0 stands for: ``kind = cat`` or ``rating above 3``."""
    assert data.dataset.table is not None
    label_name = shorten(data.dataset.table.label)
    if data.design is not None and data.design.positive:
        return f"{label_name} = {shorten(data.design.positive)}"
    return f"{label_name} above {format_entered(positive_above)}"


def describe_label_rule(data: TrainingData, positive_above: float) -> str:
    """Describe which labels count as 1, without a full stop; empty for labels of at most two numbers.

    How many different labels there are is as private as the data.
    """
    labelled_rows = data.dataset.table
    assert labelled_rows is not None
    if data.design is not None and data.design.positive:
        return f"A row counts as 1 where {describe_positive(data, positive_above)}, else as −1"
    num_distinct = np.unique(labelled_rows.labels).size
    if num_distinct <= 2:
        return ""
    rule_text = f"those above {format_entered(positive_above)} count as 1"
    return f"The label {shorten(labelled_rows.label)} has {num_distinct:,} different values: {rule_text}"


def load_sample() -> TrainingData:
    """Load the sample, which is public.

    Raises:
        InvalidInput: Its file is missing.
    """
    sample_path = FOLDER / SAMPLE_FILE
    if not sample_path.is_file():
        raise refuse(f"the sample file {SAMPLE_FILE} is missing from the folder sample_data")
    dataset = build_dataset(read_table(sample_path.read_bytes(), SAMPLE_FILE), DESIGN, Disclosure.PUBLIC)
    source_sentence = (
        "Tickets of an invented help desk: was a ticket escalated? Made by docs/make_sample_tickets.py."
    )
    dataset = replace(dataset, name=SAMPLE_TITLE, source=source_sentence)
    return TrainingData(
        dataset, dataset.digest, DESIGN, make_scaling(dataset, DESIGN, SAMPLE_RANGES), SAMPLE_RANGES
    )


MAX_GENERATED_ROWS = 200_000
MAX_GENERATED_USERS = 50_000
MAX_INFORMATIVE_FEATURES = 20


@dataclass(frozen=True)
class TrainingGenerator:
    """The population from which rows are generated.

    Users' sizes follow a discrete Pareto law: P(s > k) = (k + 1)^-α, cut at ``max_rows``. Features are uniform
    on [-1, 1], beside an intercept. A label is 1 with probability 1 / (1 + e^-(θ*·x + u)), with x scaled to norm at
    most 1. All informative entries of θ* have the same size ``signal`` with alternating signs. A user's own effect u is
    normal of standard deviation ``user_effect``, times the square root of the user's size over the median size.

    Attributes:
        num_users: m, 10 to `MAX_GENERATED_USERS`.
        exponent: α, 0.5 to 5; smaller is more uneven.
        max_rows: Of one user, 1 to 10,000.
        informative: Features that labels depend on, 1 to `MAX_INFORMATIVE_FEATURES`.
        signal: Size of each entry of θ*, 0 to 100.
        user_effect: 0 to 10; above 0, heavy users differ from light ones.
        seed: At least 0.

    Raises:
        InvalidInput: A field is out of its range; all at once.
    """

    num_users: int = 600
    exponent: float = 1.1
    max_rows: int = 60
    informative: int = 6
    signal: float = 5.0
    user_effect: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.whole(10, MAX_GENERATED_USERS, num_users=self.num_users)
            problems.between(0.5, 5.0, exponent=self.exponent)
            problems.whole(1, 10_000, max_rows=self.max_rows)
            problems.whole(1, MAX_INFORMATIVE_FEATURES, informative=self.informative)
            problems.between(0.0, 100.0, signal=self.signal)
            problems.between(0.0, 10.0, user_effect=self.user_effect)
            problems.whole(0, 2**31, seed=self.seed)

    @property
    def theta(self) -> FloatArray:
        """Return θ* of the scaled features: without user effects the population's logistic loss is least there."""
        alternating_signs = np.where(np.arange(self.informative) % 2, -1.0, 1.0)
        return np.asarray(self.signal * np.concatenate(([0.5], alternating_signs)))

    def generate(self) -> TrainingData:
        """Generate the table, whose first feature is the intercept, and its public ranges.

        Raises:
            InvalidInput: The draw has more than `MAX_GENERATED_ROWS` rows.
        """
        rng = np.random.default_rng([self.seed, 20])
        pareto_draws = np.floor(rng.random(self.num_users) ** (-1.0 / self.exponent))
        rows_of_each_user = np.minimum(np.maximum(pareto_draws, 1.0), self.max_rows).astype(np.int64)
        num_rows = int(rows_of_each_user.sum())
        if num_rows > MAX_GENERATED_ROWS:
            raise refuse(
                f"these users have {num_rows:,} rows; at most {MAX_GENERATED_ROWS:,} are generated",
                remedy="Take fewer users, fewer rows of one user, or a larger exponent",
            )
        user_codes = rng.permutation(np.repeat(np.arange(self.num_users), rows_of_each_user))
        features = np.column_stack((np.ones(num_rows), rng.uniform(-1.0, 1.0, (num_rows, self.informative))))
        scaling = Scaling((None, *((-1.0, 1.0),) * self.informative), float(np.sqrt(1 + self.informative)))
        user_effects = self.user_effect * rng.standard_normal(self.num_users)
        user_effects *= np.sqrt(rows_of_each_user / np.median(rows_of_each_user))
        scores = scaling.apply(features) @ self.theta + user_effects[user_codes]
        labels = (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-scores))).astype(np.float64)
        feature_names = ("intercept", *(f"x{feature_index + 1}" for feature_index in range(self.informative)))
        source_sentence = (
            f"Generated: {format_count(self.num_users, 'user')} with Pareto sizes (exponent "
            f"{format_entered(self.exponent)}, at most {self.max_rows:,} rows), a logistic model with "
            f"{format_count(self.informative, 'feature')}, user effects of {format_entered(self.user_effect)}, "
            f"seed {self.seed}."
        )
        dataset = Dataset(
            name=f"Generated, {num_rows:,} rows",
            source=source_sentence,
            disclosure=Disclosure.PUBLIC,
            histogram=ContributionHistogram.from_counts(rows_of_each_user),
            table=LabelledRows(features, labels, user_codes, feature_names, "y"),
        )
        return TrainingData(dataset, dataset.digest, scaling=scaling)
