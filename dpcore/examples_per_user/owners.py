"""Records with several owners: keep the most of them with at most k per user, and prove how many there can be.

A choice of most edges of a hypergraph within capacities of its nodes (a b-matching) is NP-hard. Two orders are tried,
each taking a record where all its owners have room: fewest owners first, and the order of the linear program's
solution. What is proved comes from that program's prices alone, in whole numbers.

Which records are kept depends on other users. So this is no protection of a user's presence: who owns what is public,
and what is protected is the contents of one user's records (Ganesh et al. 2025, arXiv 2503.03622, of which the abstract
was read; orders, bound and noise are derived here).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.contributions import FloatArray, IntArray

PRICE_UNIT = 2**20
"""Prices are multiples of 1 / this: in floats the bound of a sum of prices fell below choices that exist."""
MOST_PAIRS = 1_000_000
"""Of record and owner: more take minutes."""

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ownership:
    """Who owns which record.

    Attributes:
        record: Codes 0 .. num_records - 1, ascending, shape (pairs,), int64.
        user: Codes 0 .. num_users - 1, ascending within a record, shape (pairs,), int64; no pair stands twice.
    """

    record: IntArray
    user: IntArray

    @classmethod
    def from_pairs(cls, records: npt.ArrayLike, users: npt.ArrayLike) -> Ownership:
        """From names or codes; a pair that stands several times counts once.

        Args:
            records: Shape (lines,).
            users: Likewise; None, NaN or an empty text is no owner.

        Raises:
            InvalidInput: Shapes differ, nothing is there, a record without an owner, or more than `MOST_PAIRS`.
        """
        import pandas as pd

        record, user = pd.Series(np.asarray(records)), pd.Series(np.asarray(users))
        with Problems() as problems:
            if record.shape != user.shape or not record.size:
                problems.add("records and users must be of the same length, and not empty")
                return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
            if record.size > MOST_PAIRS:
                problems.add(f"there are {record.size:,} lines; at most {MOST_PAIRS:,} are searched")
            nobody = user.isna() | (user.astype(str).str.strip() == "")
            if nobody.any():
                first = int(np.argmax(nobody.to_numpy()))
                problems.add(
                    f"{int(nobody.sum()):,} of the records' owners are empty",
                    f"line {first + 1}",
                    "Name each owner",
                )
            if record.isna().any():
                problems.add("a line names no record")
        pairs = np.unique(np.c_[pd.factorize(record, sort=True)[0], pd.factorize(user, sort=True)[0]], axis=0)
        return cls(pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64))

    @property
    def num_records(self) -> int:
        """How many records there are."""
        return int(self.record[-1]) + 1

    @property
    def num_users(self) -> int:
        """How many owners."""
        return int(self.user.max()) + 1

    @property
    def owners(self) -> IntArray:
        """Number of owners of each record, shape (num_records,)."""
        return np.bincount(self.record)


@dataclass(frozen=True, eq=False)
class Kept:
    """Which records are kept.

    Attributes:
        ownership: Of whom.
        bound: k, records per user.
        kept: Whether each record is, shape (num_records,).
        at_most: No choice keeps more; proved by ``prices``.
        prices: y of each user in units of 1 / `PRICE_UNIT`, at least 0, shape (num_users,), int64.
        order: Which order found it.
    """

    ownership: Ownership
    bound: int
    kept: BoolArray
    at_most: int
    prices: IntArray
    order: str

    @property
    def count(self) -> int:
        """Records kept."""
        return int(self.kept.sum())

    @property
    def gap(self) -> float:
        """How much more there might be, as a share of what is kept; 0 is proved to be the most."""
        return (self.at_most - self.count) / max(self.count, 1)

    def by_owners(self) -> dict[str, IntArray]:
        """Columns ``owners``, ``records`` and ``kept``: a line per number of owners that occurs, ascending."""
        owners = self.ownership.owners
        distinct = np.unique(owners)
        return {
            "owners": distinct.astype(np.int64),
            "records": np.array([int((owners == one).sum()) for one in distinct]),
            "kept": np.array([int(self.kept[owners == one].sum()) for one in distinct]),
        }


def keep_most(of: Ownership, bound: int) -> Kept:
    """Keep as many records as the better of two orders finds, with the proof of how many there can be.

    Args:
        of: Who owns what.
        bound: k, at least 1.

    Raises:
        InvalidInput: The bound is no whole number of at least 1.
    """
    with Problems() as problems:
        problems.whole(1, 10**12, **{"the bound on records per user": bound})
    shuffled = np.random.default_rng(0).permutation(of.num_records)  # Ties are settled by lot.
    fewest = shuffled[np.argsort(of.owners[shuffled], kind="stable")]
    values, prices = _relaxed(of, bound)
    orders = {
        "fewest owners first": fewest,
        "the linear program's order": fewest[np.argsort(-values[fewest], kind="stable")],
    }
    found = {name: _in_order(of, bound, order) for name, order in orders.items()}
    best = max(found, key=lambda name: int(found[name].sum()))
    proved = min(at_most(of, bound, prices), of.num_records)
    return Kept(of, bound, found[best], proved, prices, best)


def at_most(of: Ownership, bound: int, prices: IntArray) -> int:
    """What no choice exceeds, for any prices y of at least 0: k Σ y + Σ over records of (1 − Σ y of its owners)₊.

    Every kept record pays for its owners' places out of its worth of 1: with at most k places sold per user, places
    cost at most k Σ y. Whole numbers until the end, then rounded down.

    Args:
        of: Who owns what.
        bound: k.
        prices: In units of 1 / `PRICE_UNIT`, shape (num_users,).

    Raises:
        InvalidInput: A price is below 0.
    """
    if prices.min(initial=0) < 0:
        raise refusal("prices must be at least 0")
    paid = np.zeros(of.num_records, np.int64)
    np.add.at(paid, of.record, prices[of.user])
    left = int(np.maximum(PRICE_UNIT - paid, 0).sum())
    return (int(bound) * int(prices.sum()) + left) // PRICE_UNIT


def _relaxed(of: Ownership, bound: int) -> tuple[FloatArray, IntArray]:
    """The linear program's shares of records, and users' prices; no prices where it was not solved."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    shape = (of.num_users, of.num_records)
    uses = csr_matrix((np.ones(of.record.size), (of.user, of.record)), shape=shape)
    room = np.full(of.num_users, float(bound))
    solved = linprog(-np.ones(of.num_records), A_ub=uses, b_ub=room, bounds=(0.0, 1.0), method="highs")  # type: ignore[call-overload]
    if solved.x is None or solved.ineqlin is None:
        return np.zeros(of.num_records), np.zeros(of.num_users, np.int64)
    # Any prices of at least 0 prove a bound: rounded ones do, and so do those of a program that was solved badly.
    prices = np.rint(np.clip(-solved.ineqlin.marginals, 0.0, 1.0) * PRICE_UNIT).astype(np.int64)
    return np.asarray(solved.x), prices


def _in_order(of: Ownership, bound: int, order: IntArray) -> BoolArray:
    """Take each record where all its owners have room."""
    starts = np.searchsorted(of.record, np.arange(of.num_records + 1)).tolist()
    users, room = of.user.tolist(), [bound] * of.num_users
    kept = np.zeros(of.num_records, np.bool_)
    for record in order.tolist():
        owners = users[starts[record] : starts[record + 1]]
        if all(room[owner] for owner in owners):
            for owner in owners:
                room[owner] -= 1
            kept[record] = True
    return kept


def invented(records: int = 20_000, users: int = 3_000, seed: int = 0) -> Ownership:
    """Records of invented users: one to five owners each, users of uneven activity."""
    rng = np.random.default_rng(seed)
    owners = rng.choice([1, 2, 3, 4, 5], size=records, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    weight = 1.0 / (np.arange(users) + 10.0)
    user = rng.choice(users, size=int(owners.sum()), p=weight / weight.sum())
    return Ownership.from_pairs(np.repeat(np.arange(records), owners), user)
