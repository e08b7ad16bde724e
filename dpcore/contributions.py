"""How many users contribute how many rows: the one thing most questions depend on."""

from __future__ import annotations

import hashlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, quote

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
NumSizes = IntArray | slice
"""Numbers of distinct sizes at or below bounds, any shape, or a slice of all such numbers."""
Entry = TypeVar("Entry", bound=np.generic)

MAX_SIZE = 10**12
"""Largest number of rows one user may have (float64 still holds every whole number far above it)."""
MAX_USERS = 10**12
"""Largest number of users that may share one size."""
BLOCK_SIZE = 16_384
"""Sizes looked at together: what a formula holds meanwhile stays in the processor's cache. A million sizes at once take
three times as long."""


class SumsAtBounds(NamedTuple):
    """Sums over users on either side of a bound h; each field has the shape of h.

    Attributes:
        rows_at_or_below: sum of s_l over users with s_l <= h.
        users_above: number of users with s_l > h.
        inverse_above: sum of 1 / s_l over users with s_l > h.
    """

    rows_at_or_below: FloatArray
    users_above: FloatArray
    inverse_above: FloatArray


@dataclass(frozen=True)
class Summary:
    """Figures that describe a contribution histogram.

    Attributes:
        median: Median rows per user (mean of the two middle users where their number is even).
        mean: Mean rows per user.
        top_percent_share: Share of all rows held by the heaviest 1 % of users (rounded up to whole users).
        gini: Gini coefficient of rows per user: 0 where all have equally many, toward 1 where one has all.
    """

    median: float
    mean: float
    top_percent_share: float
    gini: float


NO_INTEGERS: IntArray = np.zeros(0, dtype=np.int64)


def _list_entries(values: object) -> npt.NDArray[Any]:
    """Return numbers as an array of numbers, and anything else as an array of objects, each as it was entered."""
    with suppress(ValueError):
        number_array = np.asarray(values)
        if number_array.dtype.kind in "iuf":
            return number_array
    with suppress(ValueError):  # In an array of its own type, one text would make texts of all numbers.
        return np.asarray(values, dtype=object)
    return np.asarray(None)


def _convert_entry(entry: object) -> float:
    """Return an entry as a number, at most the largest of float64 in magnitude; NaN if it is none."""
    if isinstance(entry, bool) or not isinstance(entry, Real | Decimal):
        return math.nan
    try:
        return float(entry)
    except OverflowError:
        return math.copysign(sys.float_info.max, -1.0 if entry < 0.0 else 1.0)


def _read_integers(values: object, argument_name: str, max_integer: int, problems: Problems) -> IntArray:
    """Convert a vector of whole numbers in [1, max_integer] to int64.

    If it is none, add a problem for each requirement that it breaks, and return an empty array.
    """
    numbers = entries = _list_entries(values)
    is_object = entries.dtype.kind == "O"
    if is_object and entries.ndim == 0:
        problems.add(f"{argument_name} must be numbers")
        return NO_INTEGERS
    if entries.ndim != 1 or entries.size == 0:
        problems.add(f"{argument_name} must be one-dimensional and not empty; got shape {entries.shape}")
        return NO_INTEGERS
    if is_object:
        numbers = np.array([_convert_entry(entry) for entry in entries])
    elif entries.dtype.kind == "f":  # Also float16, which cannot be compared with 1e12.
        numbers = entries.astype(np.float64)
    with np.errstate(invalid="ignore"):
        fault_masks_by_requirement = {
            "numbers": np.isnan(numbers) & is_object,
            "a finite number": ~np.isfinite(numbers),
            "at least 1 (leave out users who contribute nothing)": numbers < 1,
            f"at most {max_integer:,}": numbers > max_integer,
            "whole": numbers != np.floor(numbers),
        }
    valid_mask = np.ones(numbers.shape, bool)
    for requirement, fault_mask in fault_masks_by_requirement.items():
        first_fault_mask = fault_mask & valid_mask
        valid_mask &= ~fault_mask
        if first_fault_mask.any():
            first_index, num_further = int(np.argmax(first_fault_mask)), int(first_fault_mask.sum()) - 1
            further_text = f" (and {num_further:,} more)" if num_further else ""
            entry = entries[first_index]
            entry_text = quote(entry.item() if isinstance(entry, np.generic) else entry)
            first_fault_text = f"entry {first_index + 1} is {entry_text}{further_text}"
            problems.add(f"{argument_name} must be {requirement}; {first_fault_text}")
    return numbers.astype(np.int64) if valid_mask.all() else NO_INTEGERS


def _check_lengths(sizes: IntArray, users: IntArray, problems: Problems) -> None:
    """Add a problem if sizes and users, where both are valid, have different lengths."""
    if sizes.size and users.size and sizes.shape != users.shape:
        problems.add(f"sizes and users must have the same length; got {sizes.size} and {users.size}")


def read_only(writable_array: npt.NDArray[Entry]) -> npt.NDArray[Entry]:
    """Return the array in one contiguous piece, copied only if needed, and read-only from now on."""
    writable_array = np.ascontiguousarray(writable_array)
    writable_array.flags.writeable = False
    return writable_array


def sum_suffixes(term_vector: FloatArray) -> FloatArray:
    """Compute for each term the sum of it and all later terms, with a 0 behind the last.

    Shape (k + 1,) for k terms.
    """
    return np.concatenate((np.cumsum(term_vector[::-1])[::-1], [0.0]))


def sum_excesses(ascending_values: FloatArray, users_at_or_above: FloatArray) -> FloatArray:
    """Compute sum_i (x_i - x_j)_+ over users, for each distinct x_j, with a 0 behind the last.

    Steps between neighbours times the users above them: terms of one sign, so that nothing cancels, where
    (sum of x above) - x_j * (users above) loses all digits once the largest values are close together.

    Args:
        ascending_values: Distinct x, ascending, shape (k,).
        users_at_or_above: Number of users with at least each x, and a 0, shape (k + 1,).
    """
    return np.append(sum_suffixes(np.diff(ascending_values) * users_at_or_above[1:-1]), 0.0)


class ByDigest(ABC):
    """Base of classes whose instances are equal where class and content are."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Return the SHA-256 hash of the content, hexadecimal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByDigest) and type(self) is type(other) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, eq=False)
class ContributionHistogram(ByDigest):
    """Distinct numbers of rows per user, and how many users have each.

    Everything costs what the distinct sizes cost: a billion users with a thousand distinct sizes are a
    thousand entries. Immutable; equal and hashed by content, so it can be part of a cache key.

    Attributes:
        sizes: Rows per user, whole numbers from 1 to 1e12, strictly ascending, shape (k,), int64.
        users: Users who have exactly that many rows, whole numbers from 1 to 1e12, shape (k,), int64.

    Raises:
        InvalidInput: Anything else; all problems at once.

    Examples:
        >>> histogram = ContributionHistogram.from_counts([1, 4, 1])
        >>> print(histogram.sizes, histogram.users)
        [1 4] [2 1]

    Source: s_l and m of Epasto et al. 2020, section 2.2, grouped by value.
    """

    sizes: IntArray
    users: IntArray

    def __post_init__(self) -> None:
        with Problems() as problems:
            sizes = _read_integers(self.sizes, "sizes", MAX_SIZE, problems)
            users = _read_integers(self.users, "users", MAX_USERS, problems)
            if (fall_mask := np.diff(sizes) <= 0).any():
                fall_position = int(np.argmax(fall_mask)) + 2
                problems.add(
                    f"sizes must be distinct and ascending; entry {fall_position} is not above the last"
                )
            _check_lengths(sizes, users, problems)
        object.__setattr__(self, "sizes", read_only(sizes))
        object.__setattr__(self, "users", read_only(users))

    @classmethod
    def nobody(cls) -> ContributionHistogram:
        """Build the histogram of no users, which the class itself refuses.

        Only a private selection takes it: ``min_size``, ``max_size`` and `summary` fail on it.
        """
        histogram = object.__new__(cls)
        for field_name in ("sizes", "users"):
            object.__setattr__(histogram, field_name, read_only(NO_INTEGERS))
        return histogram

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike) -> ContributionHistogram:
        """Build the histogram from one number of rows per user.

        Args:
            counts: Rows of each user, whole numbers from 1 to 1e12, shape (num_users,).

        Raises:
            InvalidInput: Empty, not whole, below 1 or above 1e12.
        """
        with Problems() as problems:
            checked_counts = _read_integers(counts, "counts", MAX_SIZE, problems)
        sizes, users = np.unique(checked_counts, return_counts=True)
        return cls(sizes=sizes, users=users)

    @classmethod
    def from_table(cls, sizes: npt.ArrayLike, users: npt.ArrayLike) -> ContributionHistogram:
        """Build from (size, users) rows in any order; rows with equal sizes are added up.

        Raises:
            InvalidInput: As the class; also where the users of one size add up to more than 1e12.
        """
        with Problems() as problems:
            row_sizes = _read_integers(sizes, "sizes", MAX_SIZE, problems)
            row_users = _read_integers(users, "users", MAX_USERS, problems)
            _check_lengths(row_sizes, row_users, problems)
        distinct_sizes, size_indices = np.unique(row_sizes, return_inverse=True)
        # float64 first: int64 could wrap around before the class's own limit is checked.
        users_per_size = np.bincount(size_indices, weights=row_users.astype(np.float64))
        return cls(sizes=distinct_sizes, users=users_per_size)

    def __repr__(self) -> str:
        sizes_text = f"{self.sizes.size:,} distinct sizes"
        return f"ContributionHistogram({self.num_users:,} users, {self.num_rows:,} rows, {sizes_text})"

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 hash of the content, hexadecimal. It comes from the data: as private as they are."""
        hasher = hashlib.sha256(b"contributions/1")
        hasher.update(self.sizes.tobytes())
        hasher.update(self.users.tobytes())
        return hasher.hexdigest()

    @cached_property
    def num_users(self) -> int:
        """Return m, the number of users."""
        # int64 is exact up to 9.2e18; a float64 sum tells whether it is enough.
        return int(self.users.sum()) if self._users_from[0] < 9e18 else int(self._users_from[0])

    @cached_property
    def num_rows(self) -> int:
        """Return n, the sum of s_l; exact below 2^53, rounded to float64 above."""
        return int(self._rows_before[-1])

    @cached_property
    def min_size(self) -> int:
        """Return s_1, the rows of the lightest user."""
        return int(self.sizes[0])

    @cached_property
    def max_size(self) -> int:
        """Return s_m, the rows of the heaviest user."""
        return int(self.sizes[-1])

    # Sums are float64 because 1e9 users times 1e12 rows overflows int64. The suffix sums run from the
    # large sizes down, so that the small terms 1/s are added before the large ones.
    @cached_property
    def _rows_before(self) -> FloatArray:
        """Return for each distinct size the number of rows of all users with fewer rows.

        The last entry counts all rows. Shape (k + 1,), float64.
        """
        return np.concatenate(([0.0], np.cumsum(self.sizes.astype(np.float64) * self.users)))

    @cached_property
    def _users_from(self) -> FloatArray:
        """Return for each distinct size the number of users with at least so many rows, with a 0 behind the last.

        Shape (k + 1,), float64.
        """
        return sum_suffixes(self.users.astype(np.float64))

    @cached_property
    def _inverse_from(self) -> FloatArray:
        """Return for each distinct size the sum of 1/s over the users with at least so many rows, and a 0 at the end.

        Shape (k + 1,).
        """
        return sum_suffixes(self.users / self.sizes)

    @cached_property
    def _rows_from(self) -> FloatArray:
        """Return for each distinct size the number of rows of all users with that many or more, and a 0 at the end.

        Shape (k + 1,), float64.
        """
        return sum_suffixes(self.sizes.astype(np.float64) * self.users)

    @cached_property
    def _excess_from(self) -> FloatArray:
        """Return for each distinct size the number of rows that a cap at it cuts in all, with a 0 behind the last.

        Shape (k + 1,), float64.
        """
        return sum_excesses(self.sizes.astype(np.float64), self._users_from)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Return slices that divide the distinct sizes, in order, into blocks of `BLOCK_SIZE`.

        The last block may be shorter.
        """
        num_sizes = self.sizes.size
        first_indices = range(0, num_sizes, BLOCK_SIZE)
        return tuple(
            slice(first_index, min(first_index + BLOCK_SIZE, num_sizes)) for first_index in first_indices
        )

    def count_rows_above(self, h: npt.ArrayLike) -> FloatArray:
        """Compute how many rows the users with more than h rows have together, without a cap.

        The result has the shape of ``h``, and is exact to rounding.
        """
        return self._rows_from[np.searchsorted(self.sizes, np.asarray(h, dtype=np.float64), side="right")]

    def sum_excess(self, h: npt.ArrayLike, num_distinct_up_to: NumSizes | None = None) -> FloatArray:
        """Compute how many rows a cap of h rows per user cuts in all: sum_l (s_l - h)_+.

        The result has the shape of ``h``, and is exact to rounding. ``num_distinct_up_to`` is the number of
        distinct sizes at or below each h, if the caller knows it.
        """
        h = np.asarray(h, dtype=np.float64)
        k = self.count_sizes_up_to(h) if num_distinct_up_to is None else num_distinct_up_to
        gaps_to_next = np.append(self.sizes, 0)[k] - h  # Behind the last size nobody is left to count it.
        return np.asarray(gaps_to_next * self._users_from[k] + self._excess_from[k])

    def compute_sums_at(self, h: npt.ArrayLike) -> SumsAtBounds:
        """Compute the sums over the users at or below, and above, each bound in ``h``.

        Args:
            h: Bounds in rows per user, any shape.

        Returns:
            `SumsAtBounds`, each field of the shape of ``h``; O(log k) per bound.
        """
        return self.compute_sums_after(self.count_sizes_up_to(h))

    def count_sizes_up_to(self, h: npt.ArrayLike) -> IntArray:
        """Count the distinct sizes at or below each bound; of the shape of ``h``."""
        return np.asarray(np.searchsorted(self.sizes, np.asarray(h, dtype=np.float64), side="right"))

    def compute_sums_after(self, num_distinct_up_to: NumSizes) -> SumsAtBounds:
        """Compute the sums of `compute_sums_at` from the number of sizes at or below each bound, without a search."""
        k = num_distinct_up_to
        return SumsAtBounds(self._rows_before[k], self._users_from[k], self._inverse_from[k])

    def compute_sums_at_sizes(self) -> SumsAtBounds:
        """Compute the sums of `compute_sums_at` at every distinct size, each field of shape (k,), without a search."""
        return self.compute_sums_after(slice(1, None))

    def count_kept_rows(self, h: npt.ArrayLike) -> FloatArray:
        """Compute n_h, the rows that a cap h keeps: the sum over users of min(h, s_l).

        Args:
            h: Bounds in rows per user, at least 0, any shape.

        Returns:
            Rows kept (real where h is), float64 of the shape of ``h``.
        """
        rows_below, users_above, _ = self.compute_sums_at(h)
        return rows_below + np.asarray(h, dtype=np.float64) * users_above

    def count_users_above(self, h: float) -> int:
        """Return the number of users with more than ``h`` rows."""
        return int(self.compute_sums_at(h).users_above)

    def list_heaviest_sizes(self, max_users: int) -> IntArray:
        """Return the numbers of rows of the ``max_users`` heaviest users, or of all if they are fewer, descending."""
        user_counts = np.minimum(self.users[::-1][:max_users], max_users)
        return np.repeat(self.sizes[::-1][:max_users], user_counts)[:max_users]

    def find_quantile(self, user_share: float) -> int:
        """Return the smallest size s such that at least ``user_share`` of the users have at most s rows."""
        size_position = int(
            np.searchsorted(self.num_users - self._users_from[1:], user_share * self.num_users)
        )
        return int(self.sizes[min(size_position, self.sizes.size - 1)])

    def compute_heaviest_share(self, shares: npt.ArrayLike) -> FloatArray:
        """Compute the share of all rows held by the heaviest users, for each share of users.

        Args:
            shares: Shares of users in [0, 1], any shape; taken as whole users, rounded up.

        Returns:
            Shares of rows, float64 of the shape of ``shares``.
        """
        # 0.07 * 100 is a rounding above 7: two units in the last place are taken off before rounding up.
        user_counts = np.ceil(np.asarray(shares, dtype=np.float64) * self.num_users * (1.0 - 2.0**-51))
        # Users counted from the heaviest; sizes descending. The last size that is needed only in part is
        # taken in part.
        cumulative_users = np.concatenate(([0.0], np.cumsum(self.users[::-1].astype(np.float64))))
        rows_per_size = (self.sizes.astype(np.float64) * self.users)[::-1]
        cumulative_rows = np.concatenate(([0.0], np.cumsum(rows_per_size)))
        return np.asarray(np.interp(user_counts, cumulative_users, cumulative_rows) / cumulative_rows[-1])

    def summarise(self) -> Summary:
        """Compute median, mean and Gini coefficient of rows per user, and the heaviest users' share of all rows.

        The heaviest are 1 % of the users.
        """
        m, n = float(self.num_users), float(self._rows_before[-1])
        users_up_to = m - self._users_from[1:]
        middle_ranks = [math.floor((m + 1) / 2), math.ceil((m + 1) / 2)]
        median = float(np.mean(self.sizes[np.searchsorted(users_up_to, middle_ranks)]))
        users, sizes = self.users.astype(np.float64), self.sizes.astype(np.float64)
        # Sum over ranks r of (2 r - m - 1) s_r / (m n), the ranks of one size summed in one go.
        lighter_users = np.concatenate(([0.0], users_up_to[:-1]))
        gini = float(np.sum(sizes * users * (2.0 * lighter_users + users - m)) / (m * n))
        return Summary(median, n / m, float(self.compute_heaviest_share(0.01)), max(gini, 0.0))


def rank_within_users(user_codes: npt.NDArray[np.signedinteger[Any]], sort_keys: npt.ArrayLike) -> IntArray:
    """Rank the rows of each user 0, 1, 2 … by a key per row, smallest first.

    The ranks stand in the order of the rows, which need not be sorted; shape of ``user_codes``.
    """
    row_order = np.lexsort((np.asarray(sort_keys), user_codes))
    sorted_codes = user_codes[row_order]
    ranks_within_users = np.empty(user_codes.size, dtype=np.int64)
    ranks_within_users[row_order] = np.arange(user_codes.size) - np.searchsorted(sorted_codes, sorted_codes)
    return ranks_within_users


def build_log_grid(
    lowest: float, highest: float, num_points: int, extra_points: Sequence[float] = ()
) -> FloatArray:
    """Build ascending log-spaced numbers from ``lowest`` to ``highest``, both included, with the extra points between.

    Args:
        lowest: Lower end, above 0.
        highest: Upper end, at least ``lowest``.
        num_points: How many before duplicates fall together, at least 2.
        extra_points: Further numbers; those outside [low, high] are left out.
    """
    log_grid = np.geomspace(lowest, highest, num_points) if highest > lowest else np.array([float(lowest)])
    inner_points = [x for x in extra_points if lowest <= x <= highest]
    return np.unique(np.concatenate((np.clip(log_grid, lowest, highest), [lowest, highest], inner_points)))
