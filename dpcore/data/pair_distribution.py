"""How pairs of user and group are distributed, as a file: made by an engine or by hand, and read as any upload.

A file of whole numbers, in lists of equal length under three headings, with no user and no group named:

- ``users``: how many ``users`` have so many ``rows`` (what a contribution is says ``counted``);
- ``pairs``: how many ``pairs`` have so many ``rows``, of users in so many ``groups``;
- ``groups``: how many ``groups`` have so many ``rows``, of so many ``users``.

The three tell of the same data, so that they must agree; what no data can have is refused in sentences. That a file
agrees with itself does not make it true: nothing can check that.
"""

from __future__ import annotations

import json
import os

import numpy as np

from dpcore.common import strict_json, wording
from dpcore.common.errors import refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import JsonValue
from dpcore.contributions import MAX_SIZE, ContributionHistogram, IntArray
from dpcore.dataset import Contribution, Dataset, Pairs, PairSizes, TaskSizes

SCHEMA = "sweetspot/pair-distribution/1"
MOST_BYTES = 50_000_000
"""A longer file is refused unread: a million different sizes in each list take about 40 MB."""
MOST_ENTRIES = 1_000_000
"""Entries of a list."""
MOST_GROUPS = 5_000_000
"""Groups that a file may tell of: each takes 24 bytes here."""
MOST_ROWS = 10**15
"""Rows in all: sums of whole numbers are exact below."""
_HEAD = 2_000
"""Bytes at the beginning of a file in which its schema must stand to be known."""
_LISTS = {
    "users": ("rows", "users"),
    "pairs": ("groups", "rows", "pairs"),
    "groups": ("rows", "users", "groups"),
}
_COUNTED = {kind.value: kind for kind in Contribution}


def is_one(beginning: bytes) -> bool:
    """Return True if a file says that it is such a distribution, by its first bytes."""
    start = beginning[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"{") and b'"sweetspot/pair-distribution/' in start


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return True if the file at this path says that it is such a distribution."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return is_one(file.read(_HEAD))
    except OSError:  # Whoever reads the file says why it cannot be read.
        return False


def sizes_of(pairs: Pairs) -> PairSizes:
    """Return the distribution of pairs that are known one by one; they must have rows."""
    assert pairs.rows is not None
    users, at = np.unique(pairs.user_codes, return_inverse=True)
    groups = np.bincount(at, minlength=users.size)[at]
    sizes, times = np.unique(np.stack([groups, pairs.rows]), axis=1, return_counts=True)
    held, of = np.unique(pairs.task_codes, return_inverse=True)
    rows = np.zeros(held.size, dtype=np.int64)
    np.add.at(rows, of, pairs.rows)
    per_group = np.stack([rows, np.bincount(of)])[:, np.lexsort((np.bincount(of), rows))]
    return PairSizes(
        sizes[0], sizes[1], times, per_group[0], per_group[1], pairs.column, pairs.further_columns
    )


def fits(sizes: PairSizes) -> bool:
    """Return True if a file holds so many sizes and groups."""
    return sizes.pairs.size <= MOST_ENTRIES and sizes.task_rows.size <= MOST_GROUPS


def to_text(dataset: Dataset) -> str:
    """Return the distribution of a data set as such a file.

    Args:
        dataset: With pairs that have rows, or their distribution.

    Raises:
        InvalidInput: It has neither, or it is longer than what `read` takes.
    """
    sizes = dataset.pair_sizes
    if sizes is None and dataset.pairs is not None and dataset.pairs.rows is not None:
        sizes = sizes_of(dataset.pairs)
    if sizes is None:
        raise refuse("a distribution of pairs needs a column of groups")
    if not fits(sizes):
        raise refuse(
            f"the distribution has {sizes.pairs.size:,} sizes of pairs and {sizes.task_rows.size:,} groups; a file "
            f"holds at most {MOST_ENTRIES:,} and {MOST_GROUPS:,}"
        )
    totals, groups = np.unique(np.stack([sizes.task_rows, sizes.task_users]), axis=1, return_counts=True)
    content = {
        "schema": SCHEMA,
        "label": dataset.provenance.label,
        "group_columns": [sizes.column, *sizes.further_columns],
        "counted": dataset.contribution.value,
        "users": {"rows": dataset.histogram.sizes.tolist(), "users": dataset.histogram.users.tolist()},
        "pairs": {name: getattr(sizes, name).tolist() for name in _LISTS["pairs"]},
        "groups": {"rows": totals[0].tolist(), "users": totals[1].tolist(), "groups": groups.tolist()},
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def read(content: bytes, name: str, disclosure: Disclosure) -> Dataset:
    """Return the data set that such a file tells of.

    Args:
        content: The file.
        name: What to call the data.
        disclosure: Public or private, as the person says.

    Returns:
        With histogram, distribution of pairs and users per group.

    Raises:
        InvalidInput: The file is none, or says what no data can have; all problems at once.
    """
    whole = strict_json.load_json(content, MOST_BYTES, "the file")
    members = whole.get_members(["schema", "group_columns", "counted", *_LISTS], ["label"])
    columns: list[str | None] = []
    lists: dict[str, dict[str, IntArray] | None] = {}
    contribution = None
    if members is not None:
        if members["schema"].value != SCHEMA:
            members["schema"].must_be(SCHEMA)
        columns = [entry.get_text(500) for entry in members["group_columns"].get_entries(20) or ()]
        if not columns and isinstance(members["group_columns"].value, list):
            members["group_columns"].refuse("at least one column names a group")
        contribution = members["counted"].choose(_COUNTED)
        if "label" in members:
            members["label"].get_text(500)
        lists = {heading: _lists(members[heading], names) for heading, names in _LISTS.items()}
    whole.problems.raise_if_any()
    assert contribution is not None
    users, pairs, groups = (lists[heading] for heading in _LISTS)
    assert users is not None
    assert pairs is not None
    assert groups is not None
    _agree(users, pairs, groups, contribution, whole)
    whole.problems.raise_if_any()
    column, *further = (column or "" for column in columns)
    order = np.argsort(users["rows"])
    times = groups["groups"]
    task_users = np.repeat(groups["users"], times)
    return Dataset(
        name=name,
        source=f"File {name}, a distribution of pairs of user and group.",
        disclosure=disclosure,
        histogram=ContributionHistogram(users["rows"][order], users["users"][order]),
        contribution=contribution,
        tasks=TaskSizes(task_users, column, tuple(further)),
        pair_sizes=PairSizes(
            pairs["groups"], pairs["rows"], pairs["pairs"],
            np.repeat(groups["rows"], times), task_users, column, tuple(further),
        ),
        notes=("Only how pairs of user and group are distributed is known, not which lie in which group.",),
    )  # fmt: skip


def _lists(part: JsonValue, names: tuple[str, ...]) -> dict[str, IntArray] | None:
    """Whole numbers of at least 1 under each name, all of one length."""
    members = part.get_members(names)
    if members is None:
        return None
    arrays: dict[str, IntArray] = {}
    for name, entry in members.items():
        values = entry.value
        if not isinstance(values, list) or not 0 < len(values) <= MOST_ENTRIES:
            entry.must_be(f"a list of 1 to {MOST_ENTRIES:,} entries")
            continue
        bad = next((at for at, x in enumerate(values) if type(x) is not int or not 1 <= x <= MAX_SIZE), None)
        if bad is None:
            arrays[name] = np.array(values, dtype=np.int64)
        else:
            _entry(entry, bad).get_integer(1, MAX_SIZE)
    if len(arrays) < len(names):
        return None
    if len({array.size for array in arrays.values()}) > 1:
        part.refuse(f"{', '.join(names)} must have the same length")
        return None
    return arrays


def _entry(part: JsonValue, at: int) -> JsonValue:
    return JsonValue(part.value[at], f"{part.location}, entry {at + 1:,}", part.problems)


def _agree(
    users: dict[str, IntArray],
    pairs: dict[str, IntArray],
    groups: dict[str, IntArray],
    contribution: Contribution,
    whole: JsonValue,
) -> None:
    """Note where the three lists cannot tell of the same data."""
    rows = {
        "users": _product(users["rows"], users["users"]),
        "pairs": _product(pairs["rows"], pairs["pairs"]),
        "groups": _product(groups["rows"], groups["groups"]),
    }
    for heading, total in rows.items():
        if total > MOST_ROWS:
            whole.refuse(f"{heading} have more than {MOST_ROWS:,} rows in all")
    num_users, num_groups = sum(users["users"].tolist()), sum(groups["groups"].tolist())
    num_pairs = sum(pairs["pairs"].tolist())
    if num_groups > MOST_GROUPS:
        whole.refuse(f"there are {num_groups:,} groups; at most {MOST_GROUPS:,} are taken")
    if np.unique(users["rows"]).size < users["rows"].size:
        whole.refuse("under users, a number of rows stands twice")
    if np.any(groups["users"] > groups["rows"]):
        whole.refuse("a group has more users than rows")
    if int(groups["users"].max()) > num_users:
        whole.refuse("a group has more users than there are")
    if int(pairs["groups"].max()) > num_groups:
        whole.refuse("a user is in more groups than there are")
    if num_pairs != _product(groups["users"], groups["groups"]):
        whole.refuse("pairs must be as many as the users of all groups together")
    if rows["pairs"] != rows["groups"]:
        whole.refuse("pairs and groups must have the same rows in all")
    widths, at = np.unique(pairs["groups"], return_inverse=True)
    of = [0] * widths.size
    for width, number in zip(at.tolist(), pairs["pairs"].tolist(), strict=True):
        of[width] += number
    in_groups = 0
    for width, number in zip(widths.tolist(), of, strict=True):
        if number % width:
            whole.refuse(f"users in {width:,} groups each cannot have {number:,} pairs: it is no multiple")
        in_groups += number // width
    if in_groups > num_users:
        whole.refuse(
            f"{in_groups:,} users have pairs, and there {wording.agreeing(num_users, 'is', 'are')} "
            f"{wording.counted(num_users, 'user')}"
        )
    if contribution is Contribution.ROWS and rows["pairs"] > rows["users"]:
        whole.refuse("pairs have more rows than users do")
    if contribution is Contribution.DISTINCT_TASKS and num_pairs != rows["users"]:
        whole.refuse("users of distinct tasks must have as many of them as there are pairs")


def _product(left: IntArray, right: IntArray) -> int:
    """Return their inner product, as a whole number of any length."""
    return sum(a * b for a, b in zip(left.tolist(), right.tolist(), strict=True))
