"""The facets of a dataset that tell of tasks: distinct pairs of user and task, or summaries of them.

A task is a group of a GROUP BY, a model, a product and the like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.array_facet import ArrayFacet


class _OfTasks(ArrayFacet):
    """A facet of tasks, which some columns name together."""

    column: str
    further_columns: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the names of the columns that name a task together, as in ``product × day``."""
        return " × ".join((self.column, *self.further_columns))


@dataclass(frozen=True, eq=False)
class Pairs(_OfTasks):
    """Distinct pairs of user and task (a task is a group of a GROUP BY, a model, a product ...).

    Attributes:
        user_codes: Codes 0 .. num_users - 1, ascending, shape (num_pairs,), int64.
        task_codes: Codes 0 .. num_tasks - 1, ascending within a user, shape (num_pairs,), int64.
        num_tasks: Number of tasks.
        column: Name of the column they came from.
        further_columns: Columns that only together with it name a task.
        rows: Rows of the user in the task, at least 1, shape (num_pairs,), int64; None where they were not counted.
        sums: Sum of ``value_column`` over these rows, finite, shape (num_pairs,), float64; only with ``rows``.
        sums_of_squares: Sum of its squares; only with ``sums``, and None where unknown.
        value_column: The column that was added up; empty where there is none.
        value_range: Its least and largest value in these rows; only with ``sums_of_squares``.
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

    def _check(self, problems: Problems) -> None:
        """Add problems for codes that are unsorted, repeated or out of range, and for wrong amounts."""
        user_codes, task_codes = self.user_codes, self.task_codes
        if user_codes.shape != task_codes.shape or user_codes.ndim != 1 or not user_codes.size:
            problems.add("user_codes and task_codes must be one-dimensional, of the same length, not empty")
        else:
            unsorted_mask = (user_codes[1:] == user_codes[:-1]) & (task_codes[1:] <= task_codes[:-1])
            if np.any(user_codes[1:] < user_codes[:-1]) or np.any(unsorted_mask):
                problems.add("pairs must be distinct and sorted by user, then task")
            if task_codes.min() < 0 or task_codes.max() >= self.num_tasks or user_codes[0] < 0:
                problems.add("a code is out of range")
        self._check_amounts(problems)

    def _check_amounts(self, problems: Problems) -> None:
        """Add problems for rows, sums and squares that have another shape, are wrong, or lack each other."""
        for field_name in ("rows", "sums", "sums_of_squares"):
            amount_array = getattr(self, field_name)
            if amount_array is not None and amount_array.shape != self.user_codes.shape:
                problems.add(f"{field_name} must have one entry per pair")
        if self.rows is not None and self.rows.size and self.rows.min() < 1:
            problems.add("a pair must have at least one row")
        has_squares, has_range = self.sums_of_squares is not None, self.value_range is not None
        sums_lack_rows = self.sums is not None and self.rows is None
        if has_squares != has_range or (has_squares and self.sums is None) or sums_lack_rows:
            problems.add("sums go with rows, and squares and the values' range with sums and each other")
        elif not all(x is None or np.all(np.isfinite(x)) for x in (self.sums, self.sums_of_squares)):
            problems.add("sums and sums of squares must be finite numbers")
        problems.whole(0, 10**15, rows_without_group=self.rows_without_group)


@dataclass(frozen=True, eq=False)
class TaskSizes(_OfTasks):
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

    def _check(self, problems: Problems) -> None:
        """Sort the users per task; add a problem if there is no task, or one without users."""
        object.__setattr__(self, "users", np.sort(self.users.ravel()))
        if self.users.size == 0 or self.users[0] < 1:
            problems.add("users must be whole numbers of at least 1, one per task")


@dataclass(frozen=True, eq=False)
class PairSizes(_OfTasks):
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

    def _check(self, problems: Problems) -> None:
        """Add problems for lists of different lengths, entries below 1, and totals that contradict each other."""
        for field_names in (("groups", "rows", "pairs"), ("task_rows", "task_users")):
            arrays = [getattr(self, field_name) for field_name in field_names]
            if arrays[0].size == 0 or any(list_array.shape != (arrays[0].size,) for list_array in arrays):
                problems.add(f"{', '.join(field_names)} must have the same length, at least 1")
            elif min(int(list_array.min()) for list_array in arrays) < 1:
                problems.add(f"{', '.join(field_names)} must be at least 1")
        if problems.entries:
            return
        has_equal_num_pairs = int(self.pairs.sum()) == int(self.task_users.sum())
        num_rows = float(self.rows.astype(np.float64) @ self.pairs)
        if not has_equal_num_pairs or num_rows != float(self.task_rows.sum(dtype=np.float64)):
            problems.add("pairs and tasks must add up to the same rows and pairs")
