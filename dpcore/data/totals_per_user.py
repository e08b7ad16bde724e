"""The amounts that a user adds: totals per user, and the amounts that a private selection reads."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore import contributions
from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_entered
from dpcore.contributions import MAX_USERS, ByDigest, ContributionHistogram, FloatArray, IntArray, read_only
from dpcore.data.column_names import and_more
from dpcore.data.tables import TableLayout
from dpcore.data.task_facets import Pairs, PairSizes
from dpcore.dataset import Contribution, Dataset, Totals, Values

SIGNED_REMEDY = "Clip every total to [L, U]; with L < 0 the noise must cover the larger of |L| and |U|"


def _read_numbers(number_entries: object, argument_name: str, problems: Problems) -> FloatArray:
    """Convert entries to a one-dimensional array of finite numbers; if that fails, add a problem and return none."""
    try:
        number_array = np.asarray(number_entries, dtype=np.float64)
    except (TypeError, ValueError):
        problems.add(f"{argument_name} must be numbers")
        return np.zeros(0)
    if number_array.ndim != 1 or number_array.size == 0:
        problems.add(f"{argument_name} must be one-dimensional and not empty; got shape {number_array.shape}")
        return np.zeros(0)
    if (bad_mask := ~np.isfinite(number_array)).any():
        index = int(np.argmax(bad_mask))
        problems.add(f"{argument_name} must be finite numbers; entry {index + 1} is {number_array[index]!s}")
        return np.zeros(0)
    return number_array


def _read_table(totals: object, users_per_total: object, problems: Problems) -> tuple[FloatArray, FloatArray]:
    """Convert totals and numbers of users to arrays; add problems if they are invalid or differ in length."""
    value_array = _read_numbers(totals, "values", problems)
    user_counts = _read_numbers(users_per_total, "users", problems)
    if np.any((user_counts < 1) | (user_counts > MAX_USERS) | (user_counts != np.floor(user_counts))):
        problems.add(f"users must be whole numbers from 1 to {MAX_USERS:,}")
    if value_array.size and user_counts.size and value_array.shape != user_counts.shape:
        two_lengths_text = f"{value_array.size} and {user_counts.size}"
        problems.add(f"values and users must have the same length; got {two_lengths_text}")
    return value_array, user_counts


@dataclass(frozen=True, eq=False)
class Amounts(ByDigest):
    """Distinct totals per user, and the number of users of each. Users with a total of 0 count.

    Everything costs what the distinct totals cost. Immutable; equal and hashed by content.

    Attributes:
        values: x, finite, at least 0, strictly ascending, shape (k,), float64, in the total's own unit
            (rows where rows are counted).
        users: Users with exactly that total, whole numbers from 1 to 1e12, shape (k,), int64.

    Raises:
        InvalidInput: Anything else; all problems at once, with a remedy for negative totals.

    Examples:
        >>> amounts = Amounts.from_totals([2.5, 0, 2.5])
        >>> print(amounts.values, amounts.users)
        [0.  2.5] [1 2]

    Source: the x_i of Amin et al. 2019, section 3, grouped by value.
    """

    values: FloatArray
    users: IntArray

    def __post_init__(self) -> None:
        problems = Problems()
        totals, users = _read_table(self.values, self.users, problems)
        if (totals < 0.0).any():
            index, num_negatives = int(np.argmax(totals < 0.0)), int((totals < 0.0).sum())
            entry_text = f"entry {index + 1} is {format_entered(totals[index])}{and_more(num_negatives - 1)}"
            problems.add(f"a total must not be negative; {entry_text}", remedy=SIGNED_REMEDY)
        if np.any(np.diff(totals) <= 0):
            problems.add("values must be distinct and ascending", remedy="Use Amounts.from_table")
        if not math.isfinite(float(np.abs(totals).max(initial=0.0)) * float(users.sum())):
            problems.add("the totals add up to more than float64 holds", remedy="Use a larger unit")
        problems.raise_if_any()
        # + 0.0 turns -0.0 into 0.0, so that equal content has equal bytes.
        for field_name, field_array in (("values", totals + 0.0), ("users", users.astype(np.int64))):
            object.__setattr__(self, field_name, read_only(field_array))

    @classmethod
    def from_totals(cls, totals: Totals | npt.ArrayLike) -> Amounts:
        """Build from one total per user, in any order, or from a facet of totals.

        Args:
            totals: The facet, or finite numbers of at least 0, shape (num_users,).
        """
        if isinstance(totals, Totals) and totals.users is not None:
            return cls.from_table(totals.totals, totals.users)
        with Problems() as problems:
            totals = totals.totals if isinstance(totals, Totals) else totals
            distinct_totals, users = np.unique(_read_numbers(totals, "totals", problems), return_counts=True)
        return cls(distinct_totals, users)

    @classmethod
    def from_table(cls, values: npt.ArrayLike, users: npt.ArrayLike) -> Amounts:
        """Build from (total, users) rows in any order; rows with equal totals are added up."""
        with Problems() as problems:
            row_totals, row_users = _read_table(values, users, problems)
        distinct_totals, total_indices = np.unique(row_totals, return_inverse=True)
        return cls(distinct_totals, np.bincount(total_indices, weights=row_users))

    @classmethod
    def from_histogram(cls, histogram: ContributionHistogram) -> Amounts:
        """Build totals that are numbers of rows (or of distinct tasks); users without rows are not included."""
        return cls(histogram.sizes.astype(np.float64), histogram.users)

    def __repr__(self) -> str:
        return f"Amounts({self.num_users:,} users, total {format_entered(self.total)}, {self.values.size:,} distinct)"

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the content, hexadecimal; it is as private as the data."""
        hasher = hashlib.sha256(b"amounts/1")
        hasher.update(self.values.tobytes())
        hasher.update(self.users.tobytes())
        return hasher.hexdigest()

    @property
    def num_users(self) -> int:
        """Return the number of users, including those with a total of 0."""
        return int(self._users_at_or_above[0])

    @property
    def total(self) -> float:
        """Return the sum of x over all users."""
        return float(self._totals_at_or_above[0])

    @property
    def largest(self) -> float:
        """Return the largest total of one user."""
        return float(self.values[-1])

    # Suffix sums, entry j over values[j:]; the last entry is 0. float64, since totals are.
    @cached_property
    def _users_at_or_above(self) -> FloatArray:
        """Return the number of users with at least each distinct total, then a 0, shape (k + 1,)."""
        return contributions.sum_suffixes(self.users.astype(np.float64))

    @cached_property
    def _totals_at_or_above(self) -> FloatArray:
        """Return the sum of the totals of users with at least each distinct total, then a 0, shape (k + 1,)."""
        return contributions.sum_suffixes(self.values * self.users)

    @cached_property
    def _excess_above(self) -> FloatArray:
        """Return the sum over users of what they have above each distinct total, then a 0, shape (k + 1,)."""
        return contributions.sum_excesses(self.values, self._users_at_or_above)

    def count_users_above(self, bounds: npt.ArrayLike) -> FloatArray:
        """Return the number of users with x > T, float64 of the shape of ``bounds``."""
        return self._users_at_or_above[np.searchsorted(self.values, bounds, side="right")]

    def sum_above(self, bounds: npt.ArrayLike) -> FloatArray:
        """Return the sum of x over users with x > T, float64 of the shape of ``bounds``."""
        return self._totals_at_or_above[np.searchsorted(self.values, bounds, side="right")]

    def sum_excess(self, bounds: npt.ArrayLike) -> FloatArray:
        """Return the sum of max(x - T, 0) over users: what a bound T on totals cuts off, shape of ``bounds``.

        Args:
            bounds: T >= 0 in the totals' unit, any shape.
        """
        t = np.asarray(bounds, dtype=np.float64)
        j = np.searchsorted(self.values, t, side="right")
        # After the last total there are no users above, so the value has no effect. (A copy of all totals with a 0 at
        # the end would take 8 of the 9 ms of a call on a million distinct totals.)
        next_gaps = self.values[np.minimum(j, self.values.size - 1)] - t
        return np.asarray(next_gaps * self._users_at_or_above[j] + self._excess_above[j])

    def find_total_at_rank(self, rank: float) -> float:
        """Return the rank-th largest total (rank 1 is the largest); 0 if there are fewer users."""
        if rank > self.num_users:
            return 0.0
        # The last index whose suffix contains at least `rank` users.
        return float(
            self.values[int(np.searchsorted(-self._users_at_or_above, -max(rank, 1.0), side="right")) - 1]
        )

    def find_quantile(self, user_share: float) -> float:
        """Return the smallest total that at least this share of the users, 0 to 1, do not exceed."""
        users_up_to = self._users_at_or_above[0] - self._users_at_or_above[1:]
        # 0.07 * 100 is 7.000000000000001 in float64: without the slack it would require 8 users.
        num_needed = user_share * self._users_at_or_above[0] * (1.0 - 1e-12)
        return float(self.values[min(int(np.searchsorted(users_up_to, num_needed)), self.values.size - 1)])


LARGEST_CELL = 1e15
"""Magnitude to which cells are clamped, so that no sum overflows; it is also the largest bound."""


@dataclass(frozen=True, eq=False)
class UserAmounts:
    """What a private selection reads of data; as private as they are.

    Attributes:
        histogram: Numbers of users by size; empty for data that name no user.
        totals: Each user's sum of the values, of either sign, shape (num_users,); None if no values were read.
        pair_user_codes: Code of the user of every pair of user and group, ascending, shape (num_pairs,).
        pair_rows: Rows of every pair, likewise.
        pair_sums: Sum of the values of every pair, likewise; None if no values were read.
        pair_group_codes: Code of the group of every pair, likewise; None if each pair is of a group of its own.
        group_names: Name of each group by code, as `Dataset.task_names`; empty if it is not known.
        pair_sizes: Distribution of pairs, if the pairs themselves are not known.
        layout: Layout of the files; None for other data.
        name: Display name of the data.
        num_groups: Number of groups that the rows name; None if no groups were read.
        num_rows_without_user: Number of rows that name no user; None if it was not counted.
        num_cells_without_number: Number of value cells that count as 0; None if it was not counted.
    """

    histogram: ContributionHistogram
    totals: FloatArray | None = None
    pair_user_codes: IntArray | None = None
    pair_rows: IntArray | None = None
    pair_sums: FloatArray | None = None
    pair_group_codes: IntArray | None = None
    group_names: tuple[str, ...] = ()
    pair_sizes: PairSizes | None = None
    layout: TableLayout | None = None
    name: str = ""
    num_groups: int | None = None
    num_rows_without_user: int | None = None
    num_cells_without_number: int | None = None

    @property
    def dropped_counts_by_name(self) -> dict[str, int]:
        """Return by name the numbers of dropped rows, of cells and sums that count as 0, and of groups.

        Counts that are not known are left out. They are private.
        """
        counts_by_name = {
            "rows without a user": self.num_rows_without_user,
            "cells without a number": self.num_cells_without_number,
            "totals below 0": None if self.totals is None else int((self.totals < 0.0).sum()),
            "amounts below 0": None if self.pair_sums is None else int((self.pair_sums < 0.0).sum()),
            "groups": self.num_groups,
        }
        return {count_name: count for count_name, count in counts_by_name.items() if count is not None}


def has_totals(dataset: Dataset) -> bool:
    """Return True if the data have a total per user of a column, not only bins of totals."""
    if dataset.totals is not None and dataset.totals.column:
        return dataset.totals.users is None
    return dataset.values is not None


def _read_totals(dataset: Dataset) -> FloatArray | None:
    """Return each user's total, shape (num_users,); None without values and for totals in bins.

    Values are clamped to `LARGEST_CELL`, unless the dataset has totals.
    """
    if not has_totals(dataset):
        return None
    if dataset.totals is not None and dataset.totals.column:
        return np.asarray(dataset.totals.totals, dtype=np.float64)
    assert dataset.values is not None
    clamped_values = np.clip(dataset.values.values, -LARGEST_CELL, LARGEST_CELL)
    return dataset.values.sum_per_user(clamped_values)


def get_user_amounts(dataset: Dataset) -> UserAmounts:
    """Collect from a dataset what a private selection reads; pairs without rows count as one row each."""
    user_amounts = UserAmounts(
        dataset.histogram, _read_totals(dataset), pair_sizes=dataset.pair_sizes, layout=dataset.layout,
        name=dataset.name,
    )  # fmt: skip
    if (pairs := dataset.pairs) is None:
        return user_amounts
    pair_rows = np.ones_like(pairs.user_codes) if pairs.rows is None else pairs.rows
    pair_fields: dict[str, Any] = {"pair_user_codes": pairs.user_codes, "pair_group_codes": pairs.task_codes}
    pair_fields |= {"pair_rows": pair_rows, "pair_sums": pairs.sums, "num_groups": pairs.num_tasks}
    return replace(user_amounts, group_names=dataset.task_names, **pair_fields)


def get_role_columns(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset's columns by role: tuples for ``user`` and ``group``, a text or None for ``value``."""
    value_column = dataset.value_column or None
    if dataset.totals is not None and dataset.totals.column:
        value_column = dataset.totals.column
    pairs_or_sizes = dataset.pairs or dataset.pair_sizes
    group_columns = () if pairs_or_sizes is None else (pairs_or_sizes.column, *pairs_or_sizes.further_columns)
    return {"user": dataset.user_columns, "value": value_column, "group": group_columns}


def build_dummy_dataset(
    role_columns: Mapping[str, Any],
    disclosure: Disclosure,
    contribution: Contribution,
    user_amounts: UserAmounts | None = None,
    task_names: tuple[str, ...] = (),
) -> Dataset:
    """Build a made-up dataset of three users with the given columns.

    If there is a column of groups, all users are in one, whose name ``task_names`` may hold. Name and layout are
    those of the given amounts.
    """
    value_column, group_columns, sizes = role_columns["value"], role_columns["group"], np.array([1, 2, 3])
    dummy_pairs, values, histogram = None, None, ContributionHistogram.from_counts(sizes)
    totals_facet = Totals.of_contributions(histogram)
    pair_fields: dict[str, Any] = {}
    if value_column is not None:
        values = Values(np.repeat(np.arange(3), sizes), np.ones(6), value_column)
        totals_facet = Totals(sizes, value_column)
        pair_fields = {"sums": sizes, "sums_of_squares": sizes, "value_column": value_column}
        pair_fields["value_range"] = (1.0, 1.0)
    if group_columns:
        group_column, further_columns = group_columns[0], group_columns[1:]
        pair_fields |= {"rows": sizes, "further_columns": further_columns}
        dummy_pairs = Pairs(np.arange(3), np.zeros(3, dtype=np.int64), 1, group_column, **pair_fields)
    data_name, table_layout = ("", None) if user_amounts is None else (user_amounts.name, user_amounts.layout)
    unit_columns = role_columns["user"]
    if table_layout is not None and table_layout.periods is not None:
        unit_columns = (*unit_columns, table_layout.periods.unit_column)
    return Dataset(
        data_name or "data", "A made-up table.", disclosure, histogram, unit_columns, contribution, values,
        totals_facet, dummy_pairs, layout=table_layout, task_names=task_names,
    )  # fmt: skip
