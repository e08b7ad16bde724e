"""Labelled records of several owners: handwritten digits, generated ones, and how records are dealt to owners."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.design_matrix import INTERCEPT
from dpcore.data.samples import FOLDER
from dpcore.dataset import Dataset

DIGITS = FOLDER / "digits.csv.gz"
"""1,797 handwritten digits, 8 x 8 grey values from 0 to 16; origin and licence in sample_data/README.md."""
TEST_SHARE = 0.2
MOST_CLASSES, MOST_TABLE_OWNERS, MOST_ROWS = 20, 1_000, 50_000
"""Rows of a table of one's own that are trained on while somebody waits."""
MOST_ENTRIES = 30_000_000
"""Numbers of all owners' records, each owner's padded to the largest: 240 MB."""
LARGEST = 1e150
"""Largest absolute value of a feature: no record's norm overflows, which would make the record a zero."""
CONSTANT = 0.2
"""The constant feature of a record of norm 1: a larger one leaves less of the norm, and of the gradient, to others."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Records with a class; a part may have none, as what owners of few records hold back.

    Attributes:
        features: Each record of Euclidean norm at most 1, so that gradients are bounded; shape (records, features).
        labels: Classes 0 .. classes - 1, shape (records,).
        classes: Their number, at least 2.
        name: What they are, for a person.
        groups: Which of the generated populations a record is from, shape (records,); None where there are none.
        owners: Codes 0 .. num_owners - 1 of whose record it is, shape (records,); None where records are dealt out.
        num_owners: Their number, with those who have no record in this part.

    Raises:
        InvalidInput: Shapes do not fit, or a norm above 1.
    """

    features: FloatArray
    labels: IntArray
    classes: int
    name: str
    groups: IntArray | None = None
    owners: IntArray | None = None
    num_owners: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
                problems.add("features must have one row per label")
            elif self.labels.min(initial=0) < 0 or self.labels.max(initial=0) >= self.classes:
                problems.add("labels must be classes from 0 on")
            elif np.linalg.norm(self.features, axis=1).max(initial=0.0) > 1.0 + 1e-9:
                problems.add("every record must have norm 1 at most")

    def part(self, rows: IntArray) -> Labelled:
        """Some of the records."""
        groups = None if self.groups is None else self.groups[rows]
        owners = None if self.owners is None else self.owners[rows]
        return replace(
            self, features=self.features[rows], labels=self.labels[rows], groups=groups, owners=owners
        )


def unit_records(features: FloatArray) -> FloatArray:
    """Records with a constant feature, scaled to norm 1 one by one: no record depends on another."""
    scale = np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    rest = np.sqrt(1.0 - CONSTANT**2)
    return np.asarray(np.c_[rest * features / scale, np.full(features.shape[0], CONSTANT)])


@functools.cache
def digits() -> Labelled:
    """The handwritten digits of sample_data."""
    rows = np.loadtxt(DIGITS, delimiter=",", skiprows=1, dtype=np.int64)
    return Labelled(unit_records(rows[:, :-1].astype(np.float64)), rows[:, -1], 10, "handwritten digits")


@functools.lru_cache(maxsize=4)
def generated(seed: int, records: int = 4000, features: int = 30, classes: int = 10) -> Labelled:
    """Normal records around a mean per class; half of each class lies around another mean, of a second population.

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
    return Labelled(unit_records(values), labels, classes, "generated records", groups)


def of_table(data: Dataset) -> Labelled:
    """The rows of a table, each user an owner; every different label is a class.

    Raises:
        InvalidInput: There is one owner or one class, too many of either, or too many rows.
    """
    table = data.table
    assert table is not None
    names, labels = np.unique(table.labels, return_inverse=True)
    owners = np.unique(table.user_codes, return_inverse=True)[1]
    count = int(owners.max()) + 1
    with Problems() as problems:
        if not 2 <= names.size <= MOST_CLASSES:
            problems.add(
                f"the label has {names.size:,} different values; 2 to {MOST_CLASSES} classes are told apart",
                remedy="Choose a column of classes as the label",
            )
        if not 2 <= count <= MOST_TABLE_OWNERS:
            problems.add(f"training takes 2 to {MOST_TABLE_OWNERS:,} owners; got {count:,}")
        if labels.size > MOST_ROWS:
            problems.add(f"training takes at most {MOST_ROWS:,} rows; got {labels.size:,}")
        if np.abs(table.features).max(initial=0.0) > LARGEST:
            problems.add(
                f"a feature is beyond {LARGEST:g}, where the norm of its record leaves float64",
                remedy="Express it in a larger unit",
            )
        padded = count * int(np.bincount(owners).max()) * (table.features.shape[1] + names.size)
        if padded > MOST_ENTRIES:
            problems.add(
                f"the owner with most rows has {int(np.bincount(owners).max()):,}, too many beside {count:,} owners",
                remedy="Keep fewer rows of the largest owners",
            )
    kept = [i for i, name in enumerate(table.feature_names) if name != INTERCEPT]
    if not kept:
        raise refusal("no feature is left besides the intercept")
    features = unit_records(table.features[:, kept])
    return Labelled(
        features, labels.astype(np.int64), int(names.size), data.name, None, owners.astype(np.int64), count
    )


def split(data: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """(records to learn from, records to test on), drawn at random; of two records one each."""
    order = np.random.default_rng(seed).permutation(data.labels.size)
    cut = max(round(TEST_SHARE * order.size), 1)
    return data.part(order[cut:]), data.part(order[:cut])


def deal(data: Labelled, owners: int, seed: int) -> IntArray:
    """An owner for every record, nearly equally many each; every owner lacks a fifth of the classes, as in the paper.

    Records that have owners keep them. The classes that an owner lacks depend on the seed and the owner alone, so that
    learning and test records that are dealt with one seed go to owners of the same classes. Of two populations every
    other owner has one.

    Args:
        data: The records.
        owners: At least 2.
        seed: Of the draws.

    Returns:
        Codes 0 .. owners - 1, or -1 for a record that no owner can have, shape (records,). Section 4.1 of the paper:
        at most 8 of 10 classes.
    """
    if data.owners is not None:
        return data.owners
    rng = np.random.default_rng((seed, owners))
    classes, labels = data.classes, data.labels
    groups = np.zeros_like(labels) if data.groups is None else data.groups
    populations = int(groups.max()) + 1
    lacking = max(classes // 5, 1)
    names = rng.permutation(classes)
    every = np.arange(owners)
    # In turn over a shuffled list: every class is lacked by about as many owners.
    lacks = np.zeros((owners, classes), dtype=bool)
    for step in range(lacking):
        lacks[every, names[(lacking * (every // populations) + step) % classes]] = True
    found = np.empty(labels.size, dtype=np.int64)
    for group in range(populations):
        own = every % populations == group
        for label in range(classes):
            rows = rng.permutation(np.flatnonzero((labels == label) & (groups == group)))
            able = np.flatnonzero(own & ~lacks[:, label])
            # With one owner of a population nobody else could have the class: those records stay out.
            found[rows] = np.resize(rng.permutation(able), rows.size) if able.size else -1
    return found
