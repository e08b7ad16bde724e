"""The one thing a session keeps about data: a histogram, and the facets that some questions need."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray

MAX_VALUES = 20_000_000
"""Rows that the facet `Values` may hold: 16 bytes each, 320 MB."""
MAX_TOTALS = 20_000_000
"""Users that the facet `Totals` may hold: 8 bytes each, 160 MB."""
MAX_PAIRS = 20_000_000
"""User-task pairs that the facet `Pairs` may hold: 16 bytes each, 24 with rows, 40 with sums, at most 800 MB."""

MAX_TABLE_ENTRIES = 30_000_000
"""Rows times features that the facet `LabelledRows` may hold: 8 bytes each, 240 MB."""


class Contribution(enum.Enum):
    """What is counted as one contribution."""

    ROWS = "rows"
    DISTINCT_TASKS = "distinct tasks"
    TOTAL = "total of a column"


class _Facet:
    """Arrays that become read-only and are compared by content."""

    def _settle(self, problems: Problems) -> None:
        problems.raise_if_any()
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, hexadecimal. Computed from the data: as private as they are."""
        content = hashlib.sha256(type(self).__name__.encode())
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            content.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        return content.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Facet) and type(self) is type(other) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _codes(values: npt.ArrayLike) -> IntArray:
    return np.array(values, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Values(_Facet):
    """One value per row, sorted by user.

    Attributes:
        user_codes: Codes 0 .. num_users - 1, ascending, shape (num_rows,), int64. Never ids.
        values: Finite values, shape (num_rows,), float64, in the column's own unit.
        column: Name of the column they came from.

    Raises:
        InvalidInput: Shapes differ, codes not ascending, values not finite.
    """

    user_codes: IntArray
    values: FloatArray
    column: str = "value"

    def __post_init__(self) -> None:
        object.__setattr__(self, "user_codes", _codes(self.user_codes))
        object.__setattr__(self, "values", np.array(self.values, dtype=np.float64))
        problems = Problems()
        if self.user_codes.shape != self.values.shape or self.values.ndim != 1 or self.values.size == 0:
            problems.add("user_codes and values must be one-dimensional, of the same length, not empty")
        elif np.any(np.diff(self.user_codes) < 0):
            problems.add("user_codes must be ascending")
        if not np.all(np.isfinite(self.values)):
            problems.add("values must be finite numbers")
        self._settle(problems)


@dataclass(frozen=True, eq=False)
class Totals(_Facet):
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
        """Contributions as totals, exactly: as many entries as there are sizes, whatever the number of users."""
        return cls(histogram.sizes, "", histogram.users)

    def __post_init__(self) -> None:
        problems = Problems()
        totals = np.array(self.totals, dtype=np.float64).ravel()
        order = np.argsort(totals, kind="stable") if self.users is not None else None
        if order is not None:
            totals = totals[order]
        elif not np.all(totals[1:] >= totals[:-1]):  # millions that come in order need no sorting
            totals = np.sort(totals)
        object.__setattr__(self, "totals", totals)
        if self.users is not None and order is not None:
            users = np.array(self.users, dtype=np.int64).ravel()
            if users.shape != totals.shape or (users < 1).any():
                problems.add("users must be whole numbers of at least 1, one per bin of totals")
            else:
                object.__setattr__(self, "users", users[order])
        if self.totals.size == 0 or not np.all(np.isfinite(self.totals)) or self.totals[0] < 0:
            problems.add("totals must be finite numbers of at least 0, one per user")
        self._settle(problems)


@dataclass(frozen=True, eq=False)
class Pairs(_Facet):
    """Distinct pairs of user and task (a task is a group of a GROUP BY, a model, a product ...).

    Attributes:
        user_codes: Codes 0 .. num_users - 1, ascending, shape (num_pairs,), int64.
        task_codes: Codes 0 .. num_tasks - 1, ascending within a user, shape (num_pairs,), int64.
        num_tasks: Number of tasks.
        column: Name of the column they came from.
        further_columns: Columns that only together with it name a task.
        rows: Rows of the user in the task, at least 1, shape (num_pairs,), int64; None where they were not counted.
        sums: Sum of ``value_column`` over these rows, finite, shape (num_pairs,), float64; only with ``rows``.
        sums_of_squares: Sum of its squares; only with ``sums``.
        value_column: The column that was added up; empty where there is none.
        value_range: Its least and largest value in these rows; only with ``sums``.
        rows_without_group: Rows that name no task and are in no pair.

    Raises:
        InvalidInput: Shapes differ, a pair stands twice, pairs not sorted, a code or an entry out of range.
    """

    user_codes: IntArray
    task_codes: IntArray
    num_tasks: int
    column: str = "task"
    rows: IntArray | None = None
    sums: FloatArray | None = None
    sums_of_squares: FloatArray | None = None
    value_column: str = ""
    value_range: tuple[float, float] | None = None
    rows_without_group: int = 0
    further_columns: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What tasks are called: their columns, ``product × day``."""
        return " × ".join((self.column, *self.further_columns))

    def __post_init__(self) -> None:
        for name in ("user_codes", "task_codes", "rows"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _codes(getattr(self, name)))
        for name in ("sums", "sums_of_squares"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        problems = Problems()
        if (
            self.user_codes.shape != self.task_codes.shape
            or self.user_codes.ndim != 1
            or not self.user_codes.size
        ):
            problems.add("user_codes and task_codes must be one-dimensional, of the same length, not empty")
        else:
            step, task_step = np.diff(self.user_codes), np.diff(self.task_codes)
            if np.any(step < 0) or np.any((step == 0) & (task_step <= 0)):
                problems.add("pairs must be distinct and sorted by user, then task")
            if self.task_codes.min() < 0 or self.task_codes.max() >= self.num_tasks or self.user_codes[0] < 0:
                problems.add("a code is out of range")
        self._check_amounts(problems)
        self._settle(problems)

    def _check_amounts(self, problems: Problems) -> None:
        for name in ("rows", "sums", "sums_of_squares"):
            array = getattr(self, name)
            if array is not None and array.shape != self.user_codes.shape:
                problems.add(f"{name} must have one entry per pair")
        if self.rows is not None and self.rows.size and self.rows.min() < 1:
            problems.add("a pair must have at least one row")
        given = [x is not None for x in (self.sums, self.sums_of_squares, self.value_range)]
        if any(given) != all(given) or (any(given) and self.rows is None):
            problems.add("sums, their squares and the values' range go together, and with rows")
        elif not all(np.all(np.isfinite(x)) for x in (self.sums, self.sums_of_squares) if x is not None):
            problems.add("sums and sums of squares must be finite numbers")
        problems.whole(0, 10**15, rows_without_group=self.rows_without_group)


@dataclass(frozen=True, eq=False)
class TaskSizes(_Facet):
    """Users per task, where the pairs themselves were too many or stayed in the engine.

    Attributes:
        users: Users of each task, at least 1, ascending, shape (num_tasks,), int64.
        column: Name of the column the tasks come from.
        further_columns: Columns that only together with it name a task.

    Raises:
        InvalidInput: Empty, or a task without users.
    """

    users: IntArray
    column: str = "task"
    further_columns: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What tasks are called: their columns, ``product × day``."""
        return " × ".join((self.column, *self.further_columns))

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", np.sort(_codes(self.users).ravel()))
        problems = Problems()
        if self.users.size == 0 or self.users[0] < 1:
            problems.add("users must be whole numbers of at least 1, one per task")
        self._settle(problems)


@dataclass(frozen=True, eq=False)
class PairSizes(_Facet):
    """How pairs of user and task are distributed, where the pairs themselves were too many or stayed in the engine.

    Attributes:
        groups: Tasks of the user, shape (num_sizes,), int64; a pair of this and ``rows`` may stand more than once.
        rows: Rows of the user in the task, likewise.
        pairs: How many pairs have both, likewise.
        task_rows: Rows of each task, shape (num_tasks,), int64, in no order.
        task_users: Users of each task, in the same order.
        column: Name of the column the tasks come from.
        further_columns: Columns that only together with it name a task.

    Raises:
        InvalidInput: Shapes differ, an entry is below 1, or both do not add up to the same rows and pairs.
    """

    groups: IntArray
    rows: IntArray
    pairs: IntArray
    task_rows: IntArray
    task_users: IntArray
    column: str = "task"
    further_columns: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What tasks are called: their columns, ``product × day``."""
        return " × ".join((self.column, *self.further_columns))

    def __post_init__(self) -> None:
        problems = Problems()
        for names in (("groups", "rows", "pairs"), ("task_rows", "task_users")):
            for name in names:
                object.__setattr__(self, name, _codes(getattr(self, name)).ravel())
            arrays = [getattr(self, name) for name in names]
            if arrays[0].size == 0 or any(array.shape != arrays[0].shape for array in arrays):
                problems.add(f"{', '.join(names)} must have the same length, at least 1")
            elif min(int(array.min()) for array in arrays) < 1:
                problems.add(f"{', '.join(names)} must be at least 1")
        if not problems.found and (
            int(self.pairs.sum()) != int(self.task_users.sum())
            or float(self.rows.astype(np.float64) @ self.pairs) != float(self.task_rows.sum(dtype=np.float64))
        ):
            problems.add("pairs and tasks must add up to the same rows and pairs")
        self._settle(problems)


@dataclass(frozen=True, eq=False)
class LabelledRows(_Facet):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", np.array(self.features, dtype=np.float64, order="C"))
        object.__setattr__(self, "labels", np.array(self.labels, dtype=np.float64))
        object.__setattr__(self, "user_codes", _codes(self.user_codes))
        problems = Problems()
        rows = self.labels.shape
        if self.features.ndim != 2 or self.features.size == 0 or self.features.shape[:1] != rows:
            problems.add("features must have one row per label and at least one column")
        elif self.user_codes.shape != rows or self.user_codes.min() < 0:
            problems.add("user_codes must name one owner per row, 0 or above")
        elif len(set(self.feature_names)) != len(self.feature_names) or self.features.shape[1] != len(
            self.feature_names
        ):
            problems.add("feature_names must be one different name per column of features")
        if self.features.size > MAX_TABLE_ENTRIES:
            problems.add(f"{self.features.size:,} entries; at most {MAX_TABLE_ENTRIES:,} fit")
        if not (np.all(np.isfinite(self.features)) and np.all(np.isfinite(self.labels))):
            problems.add("features and labels must be finite numbers")
        self._settle(problems)


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a browser session keeps about data. Raw files are dropped after reduction.

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

    Raises:
        InvalidInput: A facet contradicts the histogram, or a DP release has no facts or a facet beside it.
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

    def __post_init__(self) -> None:
        problems = Problems()
        if (self.release is not None) != (self.disclosure is Disclosure.DP_RELEASE):
            problems.add("data are a DP release exactly where it is said what the release guarantees")
        if self.release is not None and any(facet is not None for facet in self._facets):
            problems.add("a DP release holds only how many users have how many rows, no further facet")
        if self.values is not None:
            per_user = np.bincount(self.values.user_codes)
            of_values = ContributionHistogram.from_counts(per_user[per_user > 0])
            if self.contribution is Contribution.ROWS and of_values != self.histogram:
                problems.add("the values facet does not have the histogram's rows per user")
        if self.table is not None and self.contribution is Contribution.ROWS:
            per_user = np.bincount(self.table.user_codes)
            if ContributionHistogram.from_counts(per_user[per_user > 0]) != self.histogram:
                problems.add("the table facet does not have the histogram's rows per user")
        problems.raise_if_any()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over histogram, facets and label: the cache key. As private as the data."""
        content = hashlib.sha256(self.histogram.digest.encode())
        content.update(f"{self.provenance.label}/{self.contribution.value}".encode())
        for facet in self._facets:
            content.update(facet.digest.encode() if facet is not None else b"-")
        return content.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and (self.name, self.digest) == (other.name, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    @property
    def _facets(self) -> tuple[_Facet | None, ...]:
        return (self.values, self.totals, self.pairs, self.tasks, self.table, self.pair_sizes)

    @property
    def provenance(self) -> Provenance:
        """What a number computed from these data is; its ``label`` stands beside the number."""
        return self.release if self.release is not None else self.disclosure

    @property
    def is_private(self) -> bool:
        """Whether numbers computed from it must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def task_sizes(self) -> IntArray | None:
        """Users per task, shape (num_tasks,), where a task column was chosen; one pair is one user."""
        if self.pairs is None:
            return self.tasks.users if self.tasks is not None else None
        return np.bincount(self.pairs.task_codes, minlength=self.pairs.num_tasks).astype(np.int64)
