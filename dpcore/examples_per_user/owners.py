"""Records with several owners: keep the most of them with at most k per user, and bound how many there can be.

A choice of most edges of a hypergraph within capacities of its nodes (a b-matching) is NP-hard. Two orders are
tried, each taking a record where all its owners have room: fewest owners first, and the order of the linear
program's solution. The bound comes from that program's prices alone, in integers.

The records that are kept depend on other users. So a user's presence is not protected: who owns which record is
public, and the contents of one user's records are protected (Ganesh et al. 2025, arXiv 2503.03622, of which the
abstract was read; orders, bound and noise are derived here).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray, IntArray

PRICE_UNIT = 2**20
"""Prices are multiples of 1 / this, as rounded floats prove nothing."""
MAX_PAIRS = 1_000_000
"""Most pairs of record and owner: more take minutes."""

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ownership:
    """Pairs of a record and one of its owners, sorted by record and then by owner.

    Attributes:
        record_codes: Codes 0 .. num_records - 1, ascending, shape (pairs,), int64.
        user_codes: Codes 0 .. num_users - 1, ascending within a record, shape (pairs,), int64; no pair stands twice.
    """

    record_codes: IntArray
    user_codes: IntArray

    @classmethod
    def from_pairs(cls, record_names: npt.ArrayLike, owner_names: npt.ArrayLike) -> Ownership:
        """Build from the record and the owner in each line, names or codes; repeated lines count once.

        Args:
            record_names: Shape (lines,).
            owner_names: Likewise; None, NaN or an empty text is no owner.

        Raises:
            InvalidInput: Shapes differ, nothing is there, a record without an owner, or more than `MAX_PAIRS`.
        """
        import pandas as pd

        record_series, user_series = pd.Series(np.asarray(record_names)), pd.Series(np.asarray(owner_names))
        with Problems() as problems:
            if record_series.shape != user_series.shape or not record_series.size:
                problems.add("records and users must have the same length, and not be empty")
                return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
            if record_series.size > MAX_PAIRS:
                problems.add(f"there are {record_series.size:,} pairs; at most {MAX_PAIRS:,} are searched")
            unnamed_mask = user_series.isna() | (user_series.astype(str).str.strip() == "")
            if unnamed_mask.any():
                problems.add(
                    f"{int(unnamed_mask.sum()):,} of the records' owners are empty",
                    f"line {int(np.argmax(unnamed_mask.to_numpy())) + 1}",
                    "Name each owner",
                )
            if record_series.isna().any():
                problems.add("a line names no record")
        code_arrays = (pd.factorize(series, sort=True)[0] for series in (record_series, user_series))
        code_pairs = np.unique(np.column_stack(list(code_arrays)), axis=0)
        return cls(code_pairs[:, 0].astype(np.int64), code_pairs[:, 1].astype(np.int64))

    @property
    def num_records(self) -> int:
        """Return the number of records."""
        return int(self.record_codes[-1]) + 1

    @property
    def num_users(self) -> int:
        """Return the number of distinct owners."""
        return int(self.user_codes.max()) + 1

    @property
    def owner_counts(self) -> IntArray:
        """Return the number of owners of each record, shape (num_records,)."""
        return np.bincount(self.record_codes)


@dataclass(frozen=True, eq=False)
class RecordSelection:
    """The records that are kept, with a bound on any other selection.

    Attributes:
        ownership: Of all records, kept or not.
        bound: k, records per user.
        kept_mask: Whether each record is, shape (num_records,).
        max_records: No choice keeps more; proved by ``prices``.
        prices: y of each user in units of 1 / `PRICE_UNIT`, at least 0, shape (num_users,), int64.
        order_name: The order in which records were taken, in words.
    """

    ownership: Ownership
    bound: int
    kept_mask: BoolArray
    max_records: int
    prices: IntArray
    order_name: str

    @property
    def num_kept(self) -> int:
        """Return the number of records kept."""
        return int(self.kept_mask.sum())

    @property
    def gap(self) -> float:
        """Return the number of further records that might be kept, as a share of those kept; 0 if proved maximal."""
        return (self.max_records - self.num_kept) / max(self.num_kept, 1)


def select_most_records(ownership: Ownership, bound: int) -> RecordSelection:
    """Select records, at most k of each owner, in two orders; return the larger selection with an upper bound on any.

    Args:
        ownership: Who owns what.
        bound: k, at least 1.

    Raises:
        InvalidInput: The bound is no whole number of at least 1.
    """
    with Problems() as problems:
        problems.whole(1, 10**12, **{"the bound on records per user": bound})
    shuffled_records = np.random.default_rng(0).permutation(ownership.num_records)  # Ties are settled by lot.
    fewest_first = shuffled_records[np.argsort(ownership.owner_counts[shuffled_records], kind="stable")]
    record_shares, prices = _solve_relaxation(ownership, bound)
    orders_by_name = {
        "fewest owners first": fewest_first,
        "the linear program's order": fewest_first[np.argsort(-record_shares[fewest_first], kind="stable")],
    }
    kept_masks_by_name = {
        order_name: _select_in_order(ownership, bound, o) for order_name, o in orders_by_name.items()
    }
    best_name = max(kept_masks_by_name, key=lambda name: int(kept_masks_by_name[name].sum()))
    max_records = min(bound_selection(ownership, bound, prices), ownership.num_records)
    return RecordSelection(ownership, bound, kept_masks_by_name[best_name], max_records, prices, best_name)


def bound_selection(ownership: Ownership, records_per_owner: int, price_of_owner: IntArray) -> int:
    """Compute an upper bound on the number of records of any selection, from any prices y ≥ 0 of users.

    The bound is k Σ y plus the sum over records of max(1 − Σ y of its owners, 0), rounded down. It holds because a
    kept record uses one of the k places of each owner: the records kept are worth 1 each, and their places cost at
    most k Σ y in all.

    Args:
        ownership: Who owns what.
        records_per_owner: k.
        price_of_owner: In units of 1 / `PRICE_UNIT`, shape (num_users,).

    Raises:
        InvalidInput: A price is below 0.
    """
    if price_of_owner.min(initial=0) < 0:
        raise refuse("prices must be at least 0")
    owner_prices = np.zeros(ownership.num_records, np.int64)
    np.add.at(owner_prices, ownership.record_codes, price_of_owner[ownership.user_codes])
    remaining_worth_sum = int(np.maximum(PRICE_UNIT - owner_prices, 0).sum())
    return (int(records_per_owner) * int(price_of_owner.sum()) + remaining_worth_sum) // PRICE_UNIT


def _solve_relaxation(ownership: Ownership, records_per_owner: int) -> tuple[FloatArray, IntArray]:
    """Solve the linear program in which a record may be kept in part.

    Returns the share of each record that is kept, and the users' prices as integers, in 1 / `PRICE_UNIT`. All are 0
    if the solver fails.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    ones, coordinates = np.ones(ownership.record_codes.size), (ownership.user_codes, ownership.record_codes)
    use_matrix = csr_matrix((ones, coordinates), shape=(ownership.num_users, ownership.num_records))
    capacities = np.full(ownership.num_users, float(records_per_owner))
    program_result = linprog(
        -np.ones(ownership.num_records), A_ub=use_matrix, b_ub=capacities, bounds=(0.0, 1.0), method="highs"
    )  # type: ignore[call-overload]
    if program_result.x is None or program_result.ineqlin is None:
        return np.zeros(ownership.num_records), np.zeros(ownership.num_users, np.int64)
    # Any prices of at least 0 prove a bound: rounded ones do, and so do those of a program that was solved badly.
    owner_prices = np.rint(np.clip(-program_result.ineqlin.marginals, 0.0, 1.0) * PRICE_UNIT).astype(np.int64)
    return np.asarray(program_result.x), owner_prices


def _select_in_order(ownership: Ownership, records_per_owner: int, record_order: IntArray) -> BoolArray:
    """Take each record in this order if all its owners have room; return a mask of the taken records."""
    starts = np.searchsorted(ownership.record_codes, np.arange(ownership.num_records + 1)).tolist()
    user_codes, remaining_of_owner = ownership.user_codes.tolist(), [records_per_owner] * ownership.num_users
    kept_mask = np.zeros(ownership.num_records, np.bool_)
    for record_code in record_order.tolist():
        record_owners = user_codes[starts[record_code] : starts[record_code + 1]]
        if all(remaining_of_owner[owner_code] for owner_code in record_owners):
            for owner_code in record_owners:
                remaining_of_owner[owner_code] -= 1
            kept_mask[record_code] = True
    return kept_mask


def generate_ownership(num_records: int = 20_000, num_users: int = 3_000, seed: int = 0) -> Ownership:
    """Generate records with one to five owners each, some users being far more active than others."""
    rng = np.random.default_rng(seed)
    owner_counts = rng.choice([1, 2, 3, 4, 5], size=num_records, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    user_weights = 1.0 / (np.arange(num_users) + 10.0)
    user_codes = rng.choice(num_users, size=int(owner_counts.sum()), p=user_weights / user_weights.sum())
    return Ownership.from_pairs(np.repeat(np.arange(num_records), owner_counts), user_codes)
