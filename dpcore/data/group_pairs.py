"""Pairs of users and groups: from columns, and as a file of their distribution.

An engine count or a person writes the file. It has integers in lists of equal length under three headings, without
names of users and groups:

- ``users``: the number of ``users`` for each number of ``rows`` (``counted`` is the unit of a contribution);
- ``pairs``: the number of ``pairs`` for each number of ``rows`` and of ``groups`` of their user;
- ``groups``: the number of ``groups`` for each number of ``rows`` and of ``users``.

The three lists describe the same data, so they must be consistent; impossible data are refused. Consistency does not
prove that a file is true, which cannot be checked.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common import strict_json
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import JsonValue
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, IntArray
from dpcore.data.task_facets import Pairs, PairSizes, TaskSizes
from dpcore.dataset import Contribution, Dataset

NO_GROUP = -1
"""Code of a row that names no group."""


def build_pairs(
    user_codes: npt.ArrayLike,
    group_codes: npt.ArrayLike,
    num_groups: int,
    group_column: str,
    values: FloatArray | None = None,
    value_column: str = "",
) -> Pairs | None:
    """Build the facet of pairs from one entry per row; rows without a group are left out and counted.

    Args:
        user_codes: Integers of at least 0, shape (num_rows,). Never ids.
        group_codes: 0 .. num_groups - 1, or `NO_GROUP`, shape (num_rows,).
        num_groups: Number of groups in the data.
        group_column: Name of the group column; the caller joins several names.
        values: Values that are summed per user and group, finite, shape (num_rows,); None for rows alone.
        value_column: Name of the column of values.

    Returns:
        `Pairs` with rows. If values are given and their squares can be summed in float64, also with sums, sums of
        squares and the range of values. None if no row names a group.
    """
    row_users, row_groups = np.asarray(user_codes, dtype=np.int64), np.asarray(group_codes, dtype=np.int64)
    named_mask = row_groups >= 0
    if not named_mask.any():
        return None
    row_users, row_groups = row_users[named_mask], row_groups[named_mask]
    pair_codes = row_users * num_groups + row_groups  # At most rows squared, far below 2^63.
    # A stable sort of whole numbers is a radix sort, about twice as fast as the default one on millions.
    row_order = np.argsort(pair_codes, kind="stable")
    pair_codes = pair_codes[row_order]
    pair_starts = np.flatnonzero(np.r_[True, pair_codes[1:] != pair_codes[:-1]])
    pair_fields: dict[str, Any] = {}
    if (
        values is not None
        and np.abs(grouped_row_values := np.asarray(values, np.float64)[named_mask]).max() <= 1e100
    ):
        pair_fields = {
            "sums": np.add.reduceat(grouped_row_values[row_order], pair_starts),
            "sums_of_squares": np.add.reduceat(grouped_row_values[row_order] ** 2, pair_starts),
            "value_column": value_column,
            "value_range": (float(grouped_row_values.min()), float(grouped_row_values.max())),
        }
    first_rows, rows_per_pair = row_order[pair_starts], np.diff(np.r_[pair_starts, pair_codes.size])
    pair_fields |= {"rows": rows_per_pair, "rows_without_group": int(named_mask.size - named_mask.sum())}
    return Pairs(row_users[first_rows], row_groups[first_rows], num_groups, group_column, **pair_fields)


SCHEMA = "sweetspot/pair-distribution/1"
MAX_BYTES = 50_000_000
"""Largest file that is read: a million different sizes in each list take about 40 MB."""
MAX_ENTRIES = 1_000_000
"""Largest number of entries of a list."""
MAX_GROUPS = 5_000_000
"""Largest number of groups of a file: each takes 24 bytes in memory."""
MAX_ROWS = 10**15
"""Largest total number of rows, below which sums of integers are exact."""
_HEAD_BYTES = 2_000
"""Bytes at the beginning of a file that must contain its schema."""
_NAMES_BY_LIST = {
    "users": ("rows", "users"),
    "pairs": ("groups", "rows", "pairs"),
    "groups": ("rows", "users", "groups"),
}
_CONTRIBUTIONS_BY_NAME = {contribution.value: contribution for contribution in Contribution}


def has_schema(first_bytes: bytes, schema: str = SCHEMA) -> bool:
    """Return True if the beginning of a file states a schema, by default that of pairs, in any version."""
    stripped_bytes = first_bytes[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    return stripped_bytes.startswith(b"{") and f'"{schema.rpartition("/")[0]}/'.encode() in stripped_bytes


def summarise_pairs(pairs: Pairs) -> PairSizes:
    """Compute the distribution of pairs over sizes, without codes of users and groups.

    The pairs must have rows.
    """
    assert pairs.rows is not None
    distinct_users, user_indices = np.unique(pairs.user_codes, return_inverse=True)
    groups_per_pair = np.bincount(user_indices, minlength=distinct_users.size)[user_indices]
    combinations, pair_counts = np.unique(np.stack([groups_per_pair, pairs.rows]), axis=1, return_counts=True)
    group_codes, group_indices = np.unique(pairs.task_codes, return_inverse=True)
    rows_per_group = np.zeros(group_codes.size, dtype=np.int64)
    np.add.at(rows_per_group, group_indices, pairs.rows)
    users_per_group = np.bincount(group_indices)
    group_order = np.lexsort((users_per_group, rows_per_group))
    pair_lists = combinations[0], combinations[1], pair_counts
    group_lists = rows_per_group[group_order], users_per_group[group_order]
    return PairSizes(*pair_lists, *group_lists, pairs.column, pairs.further_columns)


def fits_in_file(pair_sizes: PairSizes) -> bool:
    """Return True if a distribution of pairs has no more entries and groups than a file may have."""
    return pair_sizes.pairs.size <= MAX_ENTRIES and pair_sizes.task_rows.size <= MAX_GROUPS


def write_distribution(dataset: Dataset) -> str:
    """Return the distribution of a dataset's pairs as the text of a JSON file.

    Args:
        dataset: A dataset with pairs that have rows, or with their distribution.

    Raises:
        InvalidInput: It has neither, or it is too long for `read`.
    """
    pair_sizes = dataset.pair_sizes
    if pair_sizes is None and dataset.pairs is not None and dataset.pairs.rows is not None:
        pair_sizes = summarise_pairs(dataset.pairs)
    if pair_sizes is None:
        raise refuse("a distribution of pairs needs a column of groups")
    if not fits_in_file(pair_sizes):
        raise refuse(f"the distribution has more than {MAX_ENTRIES:,} sizes or {MAX_GROUPS:,} groups")
    rows_and_users = np.stack([pair_sizes.task_rows, pair_sizes.task_users])
    combinations, group_counts = np.unique(rows_and_users, axis=1, return_counts=True)
    json_members = {
        "schema": SCHEMA,
        "label": dataset.provenance.label,
        "group_columns": [pair_sizes.column, *pair_sizes.further_columns],
        "counted": dataset.contribution.value,
        "users": {"rows": dataset.histogram.sizes.tolist(), "users": dataset.histogram.users.tolist()},
        "pairs": {
            list_name: getattr(pair_sizes, list_name).tolist() for list_name in _NAMES_BY_LIST["pairs"]
        },
        "groups": dict(
            zip(_NAMES_BY_LIST["groups"], [*combinations.tolist(), group_counts.tolist()], strict=True)
        ),
    }
    return json.dumps(json_members, ensure_ascii=False) + "\n"


def read_distribution(json_bytes: bytes, file_name: str, disclosure: Disclosure) -> Dataset:
    """Build a dataset from a file that `write_distribution` or an engine count wrote.

    Args:
        json_bytes: The file.
        file_name: Name of the dataset.
        disclosure: Public or private, as the user states.

    Returns:
        The dataset, with histogram, distribution of pairs and users per group.

    Raises:
        InvalidInput: The file has another format, or describes impossible data; all problems at once.
    """
    document = strict_json.load_json(json_bytes, MAX_BYTES, "the file")
    members = document.get_members(["schema", "group_columns", "counted", *_NAMES_BY_LIST], ["label"])
    group_columns: list[str | None] = []
    arrays_by_list: dict[str, dict[str, IntArray] | None] = {}
    contribution = None
    if members is not None:
        if members["schema"].value != SCHEMA:
            members["schema"].add_type_problem(SCHEMA)
        group_columns = [entry.get_text(500) for entry in members["group_columns"].get_entries(20) or ()]
        if not group_columns and isinstance(members["group_columns"].value, list):
            members["group_columns"].refuse("at least one column names a group")
        contribution = members["counted"].choose(_CONTRIBUTIONS_BY_NAME)
        if "label" in members:
            members["label"].get_text(500)
        arrays_by_list = {
            list_name: _read_lists(members[list_name], array_names)
            for list_name, array_names in _NAMES_BY_LIST.items()
        }
    document.problems.raise_if_any()
    user_arrays, pair_arrays, group_arrays = (arrays_by_list[list_name] or {} for list_name in _NAMES_BY_LIST)
    assert contribution is not None
    _check_agreement(user_arrays, pair_arrays, group_arrays, contribution, document)
    document.problems.raise_if_any()
    group_column, *further_group_columns = (group_column or "" for group_column in group_columns)
    size_order = np.argsort(user_arrays["rows"])
    group_counts = group_arrays["groups"]
    users_per_group = np.repeat(group_arrays["users"], group_counts)
    return Dataset(
        name=file_name,
        source=f"File {file_name}, a distribution of pairs of user and group.",
        disclosure=disclosure,
        histogram=ContributionHistogram(user_arrays["rows"][size_order], user_arrays["users"][size_order]),
        contribution=contribution,
        tasks=TaskSizes(users_per_group, group_column, tuple(further_group_columns)),
        pair_sizes=PairSizes(
            pair_arrays["groups"], pair_arrays["rows"], pair_arrays["pairs"],
            np.repeat(group_arrays["rows"], group_counts), users_per_group, group_column, tuple(further_group_columns),
        ),
        notes=("The file has the distribution of pairs of user and group, not the users of each group.",),
    )  # fmt: skip


def _read_lists(node: JsonValue, array_names: tuple[str, ...]) -> dict[str, IntArray] | None:
    """Read one list of integers of at least 1 by each name, all of one length; None, with problems, if that fails."""
    members = node.get_members(array_names)
    if members is None:
        return None
    arrays_or_none = {
        array_name: member_node.get_numbers(MAX_ENTRIES, (1, MAX_SIZE), is_integer=True)
        for array_name, member_node in members.items()
    }
    arrays_by_name = {array_name: array for array_name, array in arrays_or_none.items() if array is not None}
    if len(arrays_by_name) < len(array_names):
        return None
    if len({array.size for array in arrays_by_name.values()}) > 1:
        node.refuse(f"{', '.join(array_names)} must have the same length")
        return None
    return arrays_by_name


def _check_agreement(
    user_arrays: dict[str, IntArray],
    pair_arrays: dict[str, IntArray],
    group_arrays: dict[str, IntArray],
    contribution: Contribution,
    document: JsonValue,
) -> None:
    """Add problems to the document if its three lists cannot describe the same data."""
    arrays_by_list = {"users": user_arrays, "pairs": pair_arrays, "groups": group_arrays}
    num_rows_by_list = {
        list_name: _sum_products(arrays_of_list["rows"], arrays_of_list[list_name])
        for list_name, arrays_of_list in arrays_by_list.items()
    }
    num_users, num_groups = sum(user_arrays["users"].tolist()), sum(group_arrays["groups"].tolist())
    num_pairs = sum(pair_arrays["pairs"].tolist())
    # Numbers of pairs by the number of groups of their user.
    pairs_by_num_groups: Counter[int] = Counter()
    for groups_per_user, pair_count in np.c_[pair_arrays["groups"], pair_arrays["pairs"]].tolist():
        pairs_by_num_groups[groups_per_user] += pair_count
    num_paired_users = sum(count // groups_per_user for groups_per_user, count in pairs_by_num_groups.items())
    tasks_disagree = contribution is Contribution.DISTINCT_TASKS and num_pairs != num_rows_by_list["users"]
    user_sizes, counts_rows = user_arrays["rows"], contribution is Contribution.ROWS
    total_group_users = _sum_products(group_arrays["users"], group_arrays["groups"])
    problem_checks = [
        *(
            (num_rows > MAX_ROWS, f"{list_heading} have more than {MAX_ROWS:,} rows in all")
            for list_heading, num_rows in num_rows_by_list.items()
        ),
        (num_groups > MAX_GROUPS, f"there are {num_groups:,} groups; at most {MAX_GROUPS:,} are taken"),
        (np.unique(user_sizes).size < user_sizes.size, "under users, a number of rows stands twice"),
        (np.any(group_arrays["users"] > group_arrays["rows"]), "a group has more users than rows"),
        (group_arrays["users"].max() > num_users, "a group has more users than there are"),
        (pair_arrays["groups"].max() > num_groups, "a user is in more groups than there are"),
        (num_pairs != total_group_users, "pairs must be as many as the users of all groups together"),
        (
            num_rows_by_list["pairs"] != num_rows_by_list["groups"],
            "pairs and groups must have the same rows in all",
        ),
        *(
            (
                pair_count % groups_per_user > 0,
                f"users in {groups_per_user:,} groups each cannot have {pair_count:,} pairs",
            )
            for groups_per_user, pair_count in pairs_by_num_groups.items()
        ),
        (num_paired_users > num_users, f"{num_paired_users:,} users have pairs, and there are {num_users:,}"),
        (
            counts_rows and num_rows_by_list["pairs"] > num_rows_by_list["users"],
            "pairs have more rows than users do",
        ),
        (tasks_disagree, "users and pairs must have the same number of tasks"),
    ]
    for is_problem, disagreement in problem_checks:
        if is_problem:
            document.refuse(disagreement)


def _sum_products(first_factors: IntArray, second_factors: IntArray) -> int:
    """Compute the sum of products of two arrays as an exact integer."""
    return sum(a * b for a, b in zip(first_factors.tolist(), second_factors.tolist(), strict=True))
