"""The file of a distribution of pairs: what is written is read, and what no data can have is said."""

import copy
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import group_pairs, samples
from dpcore.data.group_pairs import build_pairs
from dpcore.dataset import Contribution, Dataset

# Three users: one with 3 rows in each of two groups, one with 1 row in one group and 2 without any, one without any.
GOOD = {
    "schema": group_pairs.SCHEMA,
    "label": "public input",
    "group_columns": ["product", "day"],
    "counted": "rows",
    "users": {"rows": [6, 1, 3], "users": [1, 1, 1]},
    "pairs": {"groups": [2, 1], "rows": [3, 1], "pairs": [2, 1]},
    "groups": {"rows": [3, 4], "users": [1, 2], "groups": [1, 1]},
}


def read_content(content: object, disclosure: Disclosure = Disclosure.PRIVATE) -> Dataset:
    return group_pairs.read_distribution(json.dumps(content).encode(), "pairs.json", disclosure)


def test_what_is_written_by_hand_is_read() -> None:
    content = read_content(GOOD, Disclosure.PUBLIC)
    assert content.histogram == ContributionHistogram([1, 3, 6], [1, 1, 1])
    assert content.disclosure is Disclosure.PUBLIC
    assert content.pairs is None
    assert content.pair_sizes.label == "product × day"
    assert content.pair_sizes.task_rows.tolist() == [3, 4]
    assert content.tasks.users.tolist() == [1, 2]
    assert "not the users of each group" in content.notes[0]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 5)), min_size=1, max_size=120).filter(
        lambda rows: any(group >= 0 for _, group in rows)
    ),
    distinct=st.booleans(),
)
def test_a_distribution_is_what_counting_by_hand_gives_and_comes_back(rows, distinct) -> None:
    number = {group: node for node, group in enumerate(sorted({g for _, g in rows if g >= 0}))}
    users, groups = np.array([u for u, _ in rows]), np.array([number.get(g, -1) for _, g in rows])
    pairs = build_pairs(users, groups, len(number), "shop")
    of_pairs = Counter((u, g) for u, g in rows if g >= 0)
    width = Counter(u for u, _ in of_pairs)
    counts = width if distinct else Counter(users.tolist())
    data = Dataset(
        "made", "made", Disclosure.PRIVATE, ContributionHistogram.from_counts(list(counts.values())),
        contribution=Contribution.DISTINCT_TASKS if distinct else Contribution.ROWS, pairs=pairs,
    )  # fmt: skip
    back = group_pairs.read_distribution(
        group_pairs.write_distribution(data).encode(), "made", Disclosure.PRIVATE
    )
    assert back.histogram == data.histogram
    assert back.contribution is data.contribution
    sizes = back.pair_sizes
    found = zip(sizes.groups.tolist(), sizes.rows.tolist(), sizes.pairs.tolist(), strict=True)
    assert {(g, r): n for g, r, n in found} == Counter((width[u], n) for (u, _), n in of_pairs.items())
    per_group = Counter(g for _, g in rows if g >= 0), Counter(g for _, g in of_pairs)
    truth = Counter((per_group[0][g], per_group[1][g]) for g in per_group[0])
    assert Counter(zip(sizes.task_rows.tolist(), sizes.task_users.tolist(), strict=True)) == truth
    # A distribution that was read is written as it was.
    assert json.loads(group_pairs.write_distribution(back)) == json.loads(
        group_pairs.write_distribution(data)
    )


def changed(*changes: tuple[tuple[str, ...], object]) -> dict[str, object]:
    """The good file with something else in these places."""
    content = copy.deepcopy(GOOD)
    for (*keys, last_key), value in changes:
        node = content
        for name in keys:
            node = node[name]
        node[last_key] = value
    return content


HOSTILE = [
    ([], "this must be an object"),
    (changed((("schema",), "sweetspot/pair-distribution/9")), "this must be sweetspot/pair-distribution/1"),
    (changed((("more",), 1)), "'more' is not known here"),
    (changed((("group_columns",), [])), "at least one column names a group"),
    (changed((("group_columns",), ["\ud800"])), "whole characters"),
    (changed((("counted",), "persons")), "this must be one of rows, distinct tasks, total of a column"),
    (changed((("users", "rows"), [6, 1])), "rows, users must have the same length"),
    (changed((("users", "rows"), [6, 1, 1])), "a number of rows stands twice"),
    (changed((("pairs", "rows"), [3, True])), "pairs, rows, entry 2"),
    (changed((("pairs", "rows"), [3, 1.0])), "pairs, rows, entry 2"),
    (changed((("pairs", "rows"), [3, -1])), "a whole number from 1 to 1,000,000,000,000"),
    (changed((("pairs", "rows"), [])), "a list of 1 to 1,000,000 entries"),
    (changed((("pairs", "rows"), [3, 10**400])), "a whole number from 1 to"),
    (changed((("groups", "groups"), [1, 10**12])), "1,000,000,000,001 groups; at most 5,000,000"),
    (changed((("users", "rows"), [10**12, 1, 3]), (("users", "users"), [10**6, 1, 1])), "users have more than"),
    (changed((("groups", "users"), [1, 5])), "a group has more users than rows"),
    (changed((("groups", "users"), [3, 1])), "pairs must be as many"),
    (changed((("groups", "rows"), [3, 5])), "pairs and groups must have the same rows in all"),
    (changed((("pairs", "groups"), [3, 1])), "a user is in more groups than there are"),
    (changed((("pairs", "groups"), [2, 2])), "users in 2 groups each cannot have 3 pairs"),
    (changed((("users", "rows"), [6]), (("users", "users"), [1])), "2 users have pairs, and there are 1"),
    (changed((("users", "rows"), [2, 1, 3])), "pairs have more rows than users do"),
    (changed((("counted",), "distinct tasks")), "users and pairs must have the same number of tasks"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "says"), HOSTILE)
def test_what_no_data_can_have_is_refused_in_sentences(content, says) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_content(content)
    message = " ".join(problem.sentence for problem in refused.value.problems)
    assert says.lower() in message.lower()


def test_several_problems_are_said_at_once_and_other_files_are_not_meant() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_content(changed((("pairs", "rows"), "many"), (("counted",), 3), (("users", "users"), [0, 1, 1])))
    assert len(refused.value.problems) == 3
    for content in (
        b"",
        b"[",
        b"{",
        b'{"schema": NaN}',
        b"\xff{",
        b'{"schema": 1, "schema": 2}',
        b"[" * 10**5,
    ):
        with pytest.raises(InvalidInput):
            group_pairs.read_distribution(content, "x", Disclosure.PRIVATE)
    text = json.dumps(GOOD).encode()
    assert group_pairs.has_schema(text)
    assert group_pairs.has_schema(b"\xef\xbb\xbf\n  " + text)
    assert not group_pairs.has_schema(b'{"user": "a", "count": 3}\n')
    assert not group_pairs.has_schema(b"user,count\nsweetspot/pair-distribution/1,3\n")


def test_what_has_no_room_or_no_groups_is_not_written(monkeypatch) -> None:
    shop = samples.load("shop-events")
    with pytest.raises(InvalidInput, match="needs a column of groups"):
        group_pairs.write_distribution(replace(shop, pairs=None))
    monkeypatch.setattr(group_pairs, "MAX_GROUPS", 3)
    with pytest.raises(InvalidInput, match="distribution has more than"):
        group_pairs.write_distribution(shop)
