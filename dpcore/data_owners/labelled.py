"""Labelled records of several owners: handwritten digits, generated ones, and how records are dealt to owners."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.samples import FOLDER

DIGITS = FOLDER / "digits.csv.gz"
"""1,797 handwritten digits, 8 x 8 grey values from 0 to 16; origin and licence in sample_data/README.md."""
TEST_SHARE = 0.2
CONSTANT = 0.2
"""The constant feature of a record of norm 1: a larger one leaves less of the norm, and of the gradient, to others."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Records with a class.

    Attributes:
        features: Each record of Euclidean norm at most 1, so that gradients are bounded; shape (records, features).
        labels: Classes 0 .. classes - 1, shape (records,).
        classes: Their number, at least 2.
        name: What they are, for a person.
        groups: Which of the generated populations a record is from, shape (records,); None where there are none.

    Raises:
        InvalidInput: Shapes do not fit, or a norm above 1.
    """

    features: FloatArray
    labels: IntArray
    classes: int
    name: str
    groups: IntArray | None = None

    def __post_init__(self) -> None:
        problems = Problems()
        if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
            problems.add("features must have one row per label")
        elif not self.labels.size or self.labels.min() < 0 or self.labels.max() >= self.classes:
            problems.add("labels must be classes from 0 on")
        elif np.linalg.norm(self.features, axis=1).max() > 1.0 + 1e-9:
            problems.add("every record must have norm 1 at most")
        problems.raise_if_any()

    def part(self, rows: IntArray) -> Labelled:
        """Some of the records."""
        groups = None if self.groups is None else self.groups[rows]
        return Labelled(self.features[rows], self.labels[rows], self.classes, self.name, groups)


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
    means[1] = 0.7 * means[0] + 0.7 * means[1]
    values = means[groups, labels] + 2.0 * rng.standard_normal((records, features))
    return Labelled(unit_records(values), labels, classes, "generated records", groups)


def split(data: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """(records to learn from, records to test on), drawn at random."""
    order = np.random.default_rng(seed).permutation(data.labels.size)
    cut = round(TEST_SHARE * order.size)
    return data.part(order[cut:]), data.part(order[:cut])


def deal(data: Labelled, owners: int, seed: int) -> IntArray:
    """An owner for every record, nearly equally many each; every owner lacks a fifth of the classes, as in the paper.

    The classes that an owner lacks depend on the seed and the owner alone, so that learning and test records that are
    dealt with one seed go to owners of the same classes. Of two populations every other owner has one.

    Args:
        data: The records.
        owners: At least 2.
        seed: Of the draws.

    Returns:
        Codes 0 .. owners - 1, or -1 for a record that no owner can have, shape (records,). Section 4.1 of the paper:
        at most 8 of 10 classes.
    """
    rng = np.random.default_rng((seed, owners))
    classes, labels = data.classes, data.labels
    groups = np.zeros_like(labels) if data.groups is None else data.groups
    populations = int(groups.max()) + 1
    lacking = max(classes // 5, 1)
    names = rng.permutation(classes)
    every = np.arange(owners)
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
