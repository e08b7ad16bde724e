"""Labelled records of several owners: handwritten digits, generated records, and their allocation to owners."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.design_matrix import INTERCEPT
from dpcore.data.samples import FOLDER
from dpcore.dataset import Dataset

DIGITS = FOLDER / "digits.csv.gz"
"""1,797 handwritten digits, 8 x 8 grey values from 0 to 16; origin and licence in sample_data/README.md."""
TEST_SHARE = 0.2
MAX_CLASSES, MAX_TABLE_OWNERS, MAX_ROWS = 20, 1_000, 50_000
"""Rows of a table of one's own that are trained on while somebody waits."""
MAX_ENTRIES = 30_000_000
"""Numbers of all owners' records, each owner's padded to the largest: 240 MB."""
LARGEST_FEATURE = 1e150
"""Largest absolute value of a feature: no record's norm overflows, which would make the record a zero."""
CONSTANT = 0.2
"""The constant feature of a record of norm 1: a larger one leaves less of the norm, and of the gradient, to others."""


@dataclass(frozen=True, eq=False)
class LabelledRecords:
    """Records with a class; a selection may be empty, such as the records that small owners hold back.

    Attributes:
        features: Each record of Euclidean norm at most 1, so that gradients are bounded; shape (records, features).
        labels: Classes 0 .. classes - 1, shape (records,).
        num_classes: Their number, at least 2.
        name: What they are, for a person.
        groups: Which of the generated populations a record is from, shape (records,); None where there are none.
        owners: Codes 0 .. num_owners - 1 of whose record it is, shape (records,); None where records are dealt out.
        num_owners: Their number, with those who have no record in this part.

    Raises:
        InvalidInput: Shapes do not fit, or a norm above 1.
    """

    features: FloatArray
    labels: IntArray
    num_classes: int
    name: str
    groups: IntArray | None = None
    owners: IntArray | None = None
    num_owners: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
                problems.add("features must have one row per label")
            elif self.labels.min(initial=0) < 0 or self.labels.max(initial=0) >= self.num_classes:
                problems.add("labels must be classes from 0 on")
            elif np.linalg.norm(self.features, axis=1).max(initial=0.0) > 1.0 + 1e-9:
                problems.add("every record must have norm 1 at most")

    def select(self, rows: IntArray) -> LabelledRecords:
        """Select some of the records."""
        groups = None if self.groups is None else self.groups[rows]
        owners = None if self.owners is None else self.owners[rows]
        return replace(
            self, features=self.features[rows], labels=self.labels[rows], groups=groups, owners=owners
        )


def scale_records(features: FloatArray) -> FloatArray:
    """Add a constant feature and scale each record to norm 1: no record depends on another."""
    scale = np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    remaining_norm = np.sqrt(1.0 - CONSTANT**2)
    return np.asarray(np.c_[remaining_norm * features / scale, np.full(features.shape[0], CONSTANT)])


@functools.cache
def load_digits() -> LabelledRecords:
    """Load the handwritten digits of sample_data."""
    rows = np.loadtxt(DIGITS, delimiter=",", skiprows=1, dtype=np.int64)
    return LabelledRecords(
        scale_records(rows[:, :-1].astype(np.float64)), rows[:, -1], 10, "handwritten digits"
    )


@functools.lru_cache(maxsize=4)
def generate_records(
    seed: int, records: int = 4000, features: int = 30, classes: int = 10
) -> LabelledRecords:
    """Generate normal records around a mean per class; half of each class is from a second population.

    Args:
        seed: Of everything drawn.
        records: Their number.
        features: Their number, the constant one not counted.
        classes: Their number.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, records)
    groups = rng.integers(0, 2, records)
    means = rng.standard_normal((2, classes, features))
    # Nearly as long as before, with a correlation of 0.7 to the means of the first population.
    means[1] = 0.7 * means[0] + 0.7 * means[1]
    values = means[groups, labels] + 2.0 * rng.standard_normal((records, features))
    return LabelledRecords(scale_records(values), labels, classes, "generated records", groups)


def read_table(dataset: Dataset) -> LabelledRecords:
    """Read the rows of a table, with each user as an owner and every different label as a class.

    Raises:
        InvalidInput: There is one owner or one class, too many of either, or too many rows.
    """
    table = dataset.table
    assert table is not None
    names, labels = np.unique(table.labels, return_inverse=True)
    owners = np.unique(table.user_codes, return_inverse=True)[1]
    num_owners = int(owners.max()) + 1
    with Problems() as problems:
        if not 2 <= names.size <= MAX_CLASSES:
            problems.add(
                f"the label has {names.size:,} different values; 2 to {MAX_CLASSES} classes are told apart",
                remedy="Choose a column of classes as the label",
            )
        if not 2 <= num_owners <= MAX_TABLE_OWNERS:
            problems.add(f"training takes 2 to {MAX_TABLE_OWNERS:,} owners; got {num_owners:,}")
        if labels.size > MAX_ROWS:
            problems.add(f"training takes at most {MAX_ROWS:,} rows; got {labels.size:,}")
        if np.abs(table.features).max(initial=0.0) > LARGEST_FEATURE:
            problems.add(
                f"a feature is beyond {LARGEST_FEATURE:g}, where the norm of its record leaves float64",
                remedy="Express it in a larger unit",
            )
        largest_owner = int(np.bincount(owners).max())
        if num_owners * largest_owner * (table.features.shape[1] + names.size) > MAX_ENTRIES:
            problems.add(
                f"the owner with most rows has {largest_owner:,}, too many beside {num_owners:,} owners",
                remedy="Keep fewer rows of the largest owners",
            )
    feature_indices = [i for i, name in enumerate(table.feature_names) if name != INTERCEPT]
    if not feature_indices:
        raise refuse("no feature is left besides the intercept")
    features = scale_records(table.features[:, feature_indices])
    labels, owners = labels.astype(np.int64), owners.astype(np.int64)
    return LabelledRecords(features, labels, int(names.size), dataset.name, None, owners, num_owners)


def split_records(records: LabelledRecords, seed: int) -> tuple[LabelledRecords, LabelledRecords]:
    """Split records at random into (training, test); of two records one each."""
    order = np.random.default_rng(seed).permutation(records.labels.size)
    num_test = max(round(TEST_SHARE * order.size), 1)
    return records.select(order[num_test:]), records.select(order[:num_test])


def assign_owners(records: LabelledRecords, owners: int, seed: int) -> IntArray:
    """Assign an owner to every record, nearly equally many each; every owner lacks a fifth of the classes.

    Records that have owners keep them. The classes that an owner lacks depend on the seed and the owner alone,
    so that training and test records that are assigned with one seed go to owners of the same classes. With two
    populations, every other owner has one of them.

    Args:
        records: The records.
        owners: At least 2.
        seed: Of the draws.

    Returns:
        Codes 0 .. owners - 1, or -1 for a record that no owner can have, shape (records,). Section 4.1 of the paper:
        at most 8 of 10 classes.
    """
    if records.owners is not None:
        return records.owners
    rng = np.random.default_rng((seed, owners))
    classes, labels = records.num_classes, records.labels
    groups = np.zeros_like(labels) if records.groups is None else records.groups
    num_populations = int(groups.max()) + 1
    num_lacking = max(classes // 5, 1)
    names = rng.permutation(classes)
    owner_codes = np.arange(owners)
    # Classes are taken in turn from a shuffled list: about equally many owners lack each class.
    lacks_class = np.zeros((owners, classes), dtype=bool)
    for step in range(num_lacking):
        lacks_class[owner_codes, names[(num_lacking * (owner_codes // num_populations) + step) % classes]] = (
            True
        )
    assigned = np.empty(labels.size, dtype=np.int64)
    for group in range(num_populations):
        is_in_population = owner_codes % num_populations == group
        for label in range(classes):
            rows = rng.permutation(np.flatnonzero((labels == label) & (groups == group)))
            able_owners = np.flatnonzero(is_in_population & ~lacks_class[:, label])
            # With one owner of a population nobody else could have the class: those records stay out.
            assigned[rows] = np.resize(rng.permutation(able_owners), rows.size) if able_owners.size else -1
    return assigned
