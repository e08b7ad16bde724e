"""The facet of users and groups, against dictionaries over the rows."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.counting import build_dataset, read_table
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.group_pairs import NO_GROUP, build_pairs
from dpcore.data.task_facets import Pairs


def test_rows_become_pairs_with_rows_sums_and_squares() -> None:
    rng = np.random.default_rng(3)
    users, groups = rng.integers(0, 30, 500), rng.integers(-1, 6, 500)
    values = rng.normal(0.0, 10.0, 500)
    expected: dict[tuple[int, int], list[float]] = defaultdict(list)
    for u, g, v in zip(users.tolist(), groups.tolist(), values.tolist(), strict=True):
        if g != NO_GROUP:
            expected[u, g].append(v)
    pairs: Any = build_pairs(users, groups, 7, "city", values, "amount")
    assert list(zip(pairs.user_codes.tolist(), pairs.task_codes.tolist(), strict=True)) == sorted(expected)
    assert pairs.rows.tolist() == [len(expected[key]) for key in sorted(expected)]
    assert pairs.sums == pytest.approx([sum(expected[key]) for key in sorted(expected)])
    squares = [sum(v * v for v in expected[key]) for key in sorted(expected)]
    assert pairs.sums_of_squares == pytest.approx(squares)
    assert pairs.value_range == (values[groups >= 0].min(), values[groups >= 0].max())
    assert (pairs.num_tasks, pairs.column, pairs.value_column) == (7, "city", "amount")
    assert pairs.rows_without_group == int(np.sum(groups == NO_GROUP))
    assert build_pairs(users, np.full(500, NO_GROUP), 0, "city") is None
    plain: Any = build_pairs(users, groups, 7, "city")
    assert (plain.sums, plain.sums_of_squares, plain.value_range, plain.value_column) == (
        None,
        None,
        None,
        "",
    )
    huge: Any = build_pairs(users, groups, 7, "city", values * 1e200, "amount")
    assert huge.sums is None  # Their squares are beyond float64.


CITY_DAY = Roles(TableKind.EVENTS, user="user", task="city", further_task=("day",), value="amount")


def city_days() -> list[tuple[str, str, str, float]]:
    """Rows of user, city, day and amount; some name no day."""
    rng = np.random.default_rng(8)
    columns = rng.zipf(1.6, 300) % 20, rng.integers(0, 3, 300), rng.integers(0, 3, 300), np.arange(300.0)
    return [(f"u{u}", "abc"[c], ["mon", "tue", ""][d], float(v)) for u, c, d, v in zip(*columns, strict=True)]


@pytest.mark.long
def test_several_columns_name_a_group_in_files() -> None:
    cells = city_days()
    text = "user,city,day,amount\n" + "".join(",".join(map(str, row)) + "\n" for row in cells)
    named = [(u, (c, d), v) for u, c, d, v in cells if d]
    data = build_dataset(read_table(text.encode(), "t.csv"), CITY_DAY, Disclosure.PUBLIC)
    pairs: Any = data.pairs
    assert (pairs.column, pairs.further_columns, pairs.label) == ("city", ("day",), "city × day")
    assert "task = city, task (column 2) = day" in data.source
    assert pairs.num_tasks == len({group for _, group, _ in named}) == 6
    # Users and groups are numbered as they come.
    users = {u: index for index, u in enumerate(dict.fromkeys(u for u, _, _, _ in cells))}
    groups = {g: index for index, g in enumerate(dict.fromkeys(g for _, g, _ in named))}
    expected: dict[tuple[int, int], list[float]] = defaultdict(list)
    for u, group, v in named:
        expected[users[u], groups[group]].append(v)
    assert list(zip(pairs.user_codes.tolist(), pairs.task_codes.tolist(), strict=True)) == sorted(expected)
    assert pairs.rows.tolist() == [len(expected[key]) for key in sorted(expected)]
    assert pairs.sums == pytest.approx([sum(expected[key]) for key in sorted(expected)])
    assert pairs.rows_without_group == sum(not d for _, _, d, _ in cells)
    assert any("without a task" in note for note in data.notes)
    twice = replace(CITY_DAY, further_task=("city",))
    with pytest.raises(InvalidInput, match="chosen for"):
        build_dataset(read_table(text.encode(), "t.csv"), twice, Disclosure.PUBLIC)


def test_amounts_that_cannot_be_are_refused_together() -> None:
    with pytest.raises(
        InvalidInput, match=r"(?is)rows must have one entry.*sums go with rows.*rows_without_group"
    ):
        Pairs([0, 0], [0, 1], 2, rows=[1], sums=[1.0, 2.0], sums_of_squares=[1.0, 4.0], rows_without_group=-1)
    with pytest.raises(InvalidInput, match="Sums go with rows"):
        Pairs([0, 0], [0, 1], 2, sums=[1.0, 2.0])
    with pytest.raises(InvalidInput, match="at least one row"):
        Pairs([0, 0], [0, 1], 2, rows=[1, 0])
    with pytest.raises(InvalidInput, match="finite"):
        Pairs([0], [0], 1, rows=[1], sums=[np.inf], sums_of_squares=[1.0], value_range=(0.0, 1.0))
