"""The one thing a session keeps about data: a histogram, and the facets that some questions need."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.array_facet import ArrayFacet
from dpcore.data.periods import Periods
from dpcore.data.tables import FileLayout, TableLayout
from dpcore.data.task_facets import Pairs, PairSizes, TaskSizes
from dpcore.data.value_bins import ValueBins

MAX_VALUES = 20_000_000
"""Entries that the facet `Values` may hold: 16 bytes each, 320 MB."""
MAX_TOTALS = 20_000_000
"""Users that the facet `Totals` may hold: 8 bytes each, 160 MB."""
MAX_PAIRS = 20_000_000
"""User-task pairs that the facet `Pairs` may hold: 16 bytes each, 24 with rows, 40 with sums, at most 800 MB."""

MAX_TABLE_ENTRIES = 30_000_000
"""Rows times features that the facet `LabelledRows` may hold: 8 bytes each, 240 MB."""


class Contribution(enum.Enum):
    """The unit that counts as one contribution."""

    ROWS = "rows"
    DISTINCT_TASKS = "distinct tasks"
    TOTAL = "total of a column"


@dataclass(frozen=True, eq=False)
class Values(ArrayFacet):
    """One value per row, or the mean of a user's rows in each public bin, sorted by user.

    Attributes:
        user_codes: Codes 0 .. num_users - 1, ascending, shape (num_entries,), int64. Never ids.
        values: Finite values, shape (num_entries,), float64, in the column's own unit.
        column: Name of the column they came from.
        num_rows_each: Rows of each entry, at least 1, shape (num_entries,), int64; None where each is one row.
        standard_deviations: Of the values of these rows, divisor num_rows_each, likewise; 0 outside the bins.
        bins: The public bins; None where each entry is one row.

    Raises:
        InvalidInput: Shapes differ, codes not ascending, values not finite, an entry without rows.
    """

    user_codes: IntArray
    values: FloatArray
    column: str = "value"
    num_rows_each: IntArray | None = None
    standard_deviations: FloatArray | None = None
    bins: ValueBins | None = None

    def _check(self, problems: Problems) -> None:
        """Add a problem for no values, other shapes, unsorted codes, values not finite and entries without rows."""
        if self.user_codes.shape != self.values.shape or self.values.ndim != 1 or self.values.size == 0:
            problems.add("user_codes and values must be one-dimensional, of the same length, not empty")
        elif np.any(self.user_codes[1:] < self.user_codes[:-1]):
            problems.add("user_codes must be ascending")
        if not np.all(np.isfinite(self.values)):
            problems.add("values must be finite numbers")
        for optional_array, least_allowed in ((self.num_rows_each, 1), (self.standard_deviations, 0)):
            if optional_array is not None and (
                optional_array.shape != self.values.shape or not np.all(optional_array >= least_allowed)
            ):
                problems.add(
                    "num_rows_each and standard_deviations need one number per value, at least 1 and at least 0"
                )

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return self.values.size if self.num_rows_each is None else int(self.num_rows_each.sum())

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest value; for binned values, the outer ends of the public bins."""
        if self.bins is not None:
            return self.bins.lower, self.bins.upper
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def first_entries(self) -> IntArray:
        """Return the index of the first entry of each user, shape (num_users,)."""
        return np.flatnonzero(np.concatenate(([True], np.diff(self.user_codes) > 0)))

    @cached_property
    def rows_per_user(self) -> IntArray:
        """Return the number of rows of each user, shape (num_users,)."""
        if self.num_rows_each is None:
            return np.diff(np.append(self.first_entries, self.values.size))
        return np.add.reduceat(self.num_rows_each, self.first_entries)

    def weigh(self, terms_per_entry: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return each entry's term times the number of rows that the entry stands for, shape of ``terms_per_entry``."""
        return terms_per_entry if self.num_rows_each is None else terms_per_entry * self.num_rows_each

    def sum_per_user(self, terms_per_entry: FloatArray) -> FloatArray:
        """Compute for each user the sum of a term over their rows, shape (num_users,).

        ``terms_per_entry`` has one number per entry; an entry of several rows counts once for each of them.
        """
        return np.asarray(np.add.reduceat(self.weigh(terms_per_entry), self.first_entries))


@dataclass(frozen=True, eq=False)
class Totals(ArrayFacet):
    """One non-negative total per user, zeros allowed; or the totals that occur with the users who have each.

    Attributes:
        totals: Ascending, shape (num_users,), float64, in the column's own unit. Where ``users`` is given, one entry
            per total that occurs (rows), or the mean totals of bins (a column of too many users to keep).
        column: Name of the column that was added up; empty where rows were counted.
        users: How many users each entry stands for, at least 1, shape of ``totals``; None for one total per user.

    Raises:
        InvalidInput: Empty, negative or not finite; users that do not fit.
    """

    totals: FloatArray | IntArray
    column: str = ""
    users: IntArray | None = None

    @classmethod
    def of_contributions(cls, histogram: ContributionHistogram) -> Totals:
        """Build totals that are numbers of contributions: an entry per size with its users."""
        return cls(histogram.sizes, "", histogram.users)

    def _check(self, problems: Problems) -> None:
        """Sort the totals, with their users if they have some; add problems for wrong entries."""
        total_array = np.asarray(self.totals, dtype=np.float64).ravel()
        if self.users is not None:
            ascending_order = np.argsort(total_array, kind="stable")
            total_array, users_per_total = total_array[ascending_order], self.users.ravel()
            if users_per_total.shape != total_array.shape or (users_per_total < 1).any():
                problems.add("users must be whole numbers of at least 1, one per bin of totals")
            else:
                object.__setattr__(self, "users", users_per_total[ascending_order])
        elif not np.all(total_array[1:] >= total_array[:-1]):  # millions that come in order need no sorting
            total_array = np.sort(total_array)
        object.__setattr__(self, "totals", total_array)
        if total_array.size == 0 or not np.all(np.isfinite(total_array)) or total_array[0] < 0:
            problems.add("totals must be finite numbers of at least 0, one per user")


MAX_TASK_NAMES = 100_000
"""Tasks whose names are kept, each cut to `LONGEST_TASK_NAME`."""
LONGEST_TASK_NAME = 100


@dataclass(frozen=True, eq=False)
class LabelledRows(ArrayFacet):
    """Features, a label and an owner per row, for models.

    Attributes:
        features: Finite, shape (num_rows, num_features), float64, each column in its own unit.
        labels: Finite, shape (num_rows,), float64, in the label's unit.
        user_codes: Who owns each row, codes 0 .. num_users - 1 in any order, shape (num_rows,). Never ids.
        feature_names: One different name per column.
        label: Name of the label.

    Raises:
        InvalidInput: Shapes do not fit, numbers not finite, names not different, or too many entries.
    """

    features: FloatArray
    labels: FloatArray
    user_codes: IntArray
    feature_names: tuple[str, ...]
    label: str = "label"

    def _check(self, problems: Problems) -> None:
        """Add problems for shapes that differ, repeated names, too many entries, and numbers that are not finite."""
        rows_shape, feature_names = self.labels.shape, self.feature_names
        if self.features.ndim != 2 or self.features.size == 0 or self.features.shape[:1] != rows_shape:
            problems.add("features must have one row per label and at least one column")
        elif self.user_codes.shape != rows_shape or self.user_codes.min() < 0:
            problems.add("user_codes must name one owner per row, 0 or above")
        elif not len(set(feature_names)) == len(feature_names) == self.features.shape[1]:
            problems.add("feature_names must be one different name per column of features")
        if self.features.size > MAX_TABLE_ENTRIES:
            problems.add(f"{self.features.size:,} entries; at most {MAX_TABLE_ENTRIES:,} fit")
        if not (np.all(np.isfinite(self.features)) and np.all(np.isfinite(self.labels))):
            problems.add("features and labels must be finite numbers")


@dataclass(frozen=True, eq=False)
class Dataset:
    """The summaries of data that a browser session keeps. Raw files are dropped after reduction.

    Attributes:
        name: What a person calls it.
        source: Where it came from, a sentence for a person (file name, sample with origin, generator with
            its parameters).
        disclosure: Public, private, or a DP release; every number computed from it inherits this.
        histogram: Contributions per user.
        privacy_unit: Columns that together identify a user; empty where it was a histogram from the start.
        contribution: What was counted as one contribution.
        values: One value per row, where a value column was chosen.
        totals: One total per user, where a column could be added up.
        pairs: Distinct user-task pairs, where a task column was chosen; with rows and sums where they were counted.
        tasks: Users per task, where a task column was chosen and there are no pairs.
        table: Features, label and owner per row, where they were chosen for a model.
        pair_sizes: How pairs are distributed, where a task column was chosen and there are no pairs.
        notes: What a person should know of the reduction (rows left out, facets too large ...), sentences.
        release: What a DP release guarantees; given exactly where ``disclosure`` is a DP release. Such data
            hold a histogram and nothing else.
        layout: How the files were read, for programs; no part of what the data are. None where there are none.
        task_names: What each task of ``pairs`` is called in the rows, in the order of codes; empty where that was not
            kept. No part of the digest, and of no file: who reads private rows may find a name that one user alone
            wrote, so that names of private data are shown only where a public list has them.
        further_datasets: The same table with each of its further value columns in place of the first, without tasks.

    Raises:
        InvalidInput: A facet contradicts the histogram, or a DP release has no facts or a facet beside it.

    Examples:
        >>> from dpcore.common.privacy import Disclosure
        >>> from dpcore.contributions import ContributionHistogram
        >>> shop = Dataset("Shop", "typed", Disclosure.PRIVATE, ContributionHistogram.from_counts([1, 1, 4]))
        >>> print(shop.is_private, shop.provenance.label)
        True computed from private data (do not publish)
    """

    name: str
    source: str
    disclosure: Disclosure
    histogram: ContributionHistogram
    privacy_unit: tuple[str, ...] = ()
    contribution: Contribution = Contribution.ROWS
    values: Values | None = None
    totals: Totals | None = None
    pairs: Pairs | None = None
    tasks: TaskSizes | None = None
    table: LabelledRows | None = None
    notes: tuple[str, ...] = ()
    release: ReleaseFacts | None = None
    pair_sizes: PairSizes | None = None
    layout: TableLayout | None = None
    task_names: tuple[str, ...] = ()
    further_datasets: tuple[Dataset, ...] = ()

    def __post_init__(self) -> None:
        problems = Problems()
        if self.pairs is None:
            object.__setattr__(self, "task_names", ())
        elif self.task_names and len(self.task_names) != self.pairs.num_tasks:
            problems.add("task_names must have one name per task of the pairs")
        if (self.release is not None) != (self.disclosure is Disclosure.DP_RELEASE):
            problems.add("data are a DP release exactly where it is said what the release guarantees")
        if self.release is not None and any(facet is not None for facet in self._facets):
            problems.add("a DP release holds only how many users have how many rows, no further facet")
        if any(
            (each.provenance, each.privacy_unit, each.periods)
            != (self.provenance, self.privacy_unit, self.periods)
            for each in self.further_datasets
        ):
            problems.add("further columns must be of the same table, with the same label and privacy unit")
        for facet_name, facet in (("values", self.values), ("table", self.table)):
            if facet is None or self.contribution is not Contribution.ROWS:
                continue
            rows_per_user = np.bincount(facet.user_codes, getattr(facet, "num_rows_each", None))
            if ContributionHistogram.from_counts(rows_per_user[rows_per_user > 0]) != self.histogram:
                problems.add(f"the {facet_name} facet does not have the histogram's rows per user")
        problems.raise_if_any()

    @cached_property
    def digest(self) -> str:
        """Return a SHA-256 hash of what answers depend on: histogram, facets, label, unit and rule for missing values.

        It is as private as the data.
        """
        hasher = hashlib.sha256(self.histogram.digest.encode())
        hasher.update(f"{self.provenance.label}/{self.contribution.value}".encode())
        for facet in self._facets:
            hasher.update(facet.digest.encode() if facet is not None else b"-")
        for further_dataset in self.further_datasets:
            hasher.update(further_dataset.digest.encode())
        if (layout := self.layout) is not None:
            if layout.has_missing_rule:  # Programs follow it.
                hasher.update(f"{layout.dropped_column}/{layout.missing_constant}".encode())
            reading_rules = layout.yes_text, layout.periods, layout.filters
            if any(reading_rules):  # Programs and guarantees follow these.
                hasher.update(repr(reading_rules).encode())
        return hasher.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and (self.name, self.digest) == (other.name, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    @property
    def has_shares(self) -> bool:
        """Return True if the values were read as yes or no, that is as 1 or 0, so that their mean is a share."""
        return self.layout is not None and bool(self.layout.share_column)

    @property
    def share_phrase(self) -> str:
        """Return the words for a mean of yes-or-no values, as in ``share of rows with Y in ok``.

        Empty for other values.
        """
        if self.layout is None or not self.layout.share_column:
            return ""
        return f"share of rows with {self.layout.yes_text or 'yes'} in {self.layout.share_column}"

    @property
    def periods(self) -> Periods | None:
        """Return the periods of time that divide a user into several units of privacy.

        None if the user is the unit.
        """
        return None if self.layout is None else self.layout.periods

    def in_periods(self, periods: Periods) -> Dataset:
        """Return these counts as those of users in periods, for data that have no rows."""
        layout = self.layout or TableLayout((FileLayout.by_name("events.csv"),))
        return replace(self, layout=replace(layout, periods=periods))

    @property
    def unit_noun(self) -> str:
        """Return the name of one unit of privacy: ``user``, or with several periods ``user-month`` and the like."""
        periods = self.periods
        return f"user-{periods.noun}" if periods is not None and periods.num_periods > 1 else "user"

    @property
    def user_columns(self) -> tuple[str, ...]:
        """Return the columns of the privacy unit that name the person: all but the last if that names the period."""
        return self.privacy_unit[: -1 if self.periods is not None else None]

    @property
    def drops_missing(self) -> bool:
        """Return True if values decide which rows count, as rows without a number are left out."""
        return self.layout is not None and bool(self.layout.dropped_column)

    def refuse_public_counts(self) -> None:
        """Raise InvalidInput if values decide which rows count, so that numbers of rows are as private as values."""
        if self.drops_missing:
            raise refuse(
                "rows without a value are left out, so one user's values decide how many rows they have, and numbers "
                "of rows cannot be public",
                remedy="Protect a user who is added or removed, or refuse missing values or replace them when you load "
                "the data",
            )

    @property
    def _facets(self) -> tuple[ArrayFacet | None, ...]:
        """Return all facets in a fixed order, None for each that is missing."""
        return (self.values, self.totals, self.pairs, self.tasks, self.table, self.pair_sizes)

    @cached_property
    def provenance(self) -> Provenance:
        """Return the facts of the DP release that the data are, or else the disclosure: public or private.

        Its ``label`` stands beside every number that is computed from the data.
        """
        return self.release if self.release is not None else self.disclosure

    @cached_property
    def is_private(self) -> bool:
        """Return True if numbers computed from the dataset must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def value_column(self) -> str:
        """Return the name of the column that the values, or else the totals, were read from; empty without both."""
        if self.values is not None:
            return self.values.column
        return "" if self.totals is None else self.totals.column

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Return the names of all columns of values: the first one, then the further ones; empty for none."""
        return tuple(
            filter(None, (self.value_column, *(further.value_column for further in self.further_datasets)))
        )

    def find_column(self, column: str) -> Dataset:
        """Return the dataset whose values are those of a column, this one for an empty name.

        Raises:
            InvalidInput: No such column was read.
        """
        for dataset in (self, *self.further_datasets):
            if column in ("", dataset.value_column):
                return dataset
        raise refuse(
            f"no column of values {column!r} was read; there are {', '.join(self.value_columns) or 'none'}",
            remedy="Name it as a further value column, under Data",
        )

    @property
    def task_sizes(self) -> IntArray | None:
        """Return the number of users of each task, shape (num_tasks,); None without tasks."""
        if self.pairs is None:
            return self.tasks.users if self.tasks is not None else None
        return np.bincount(self.pairs.task_codes, minlength=self.pairs.num_tasks).astype(np.int64)
