"""Pairs from an engine: brought back on request, else how they are distributed, and bounds from that."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.counting import reduce
from dpcore.counting.__main__ import _build_parser, write_pairs_csv
from dpcore.counting.count import build_dataset
from dpcore.counting.text import read_table
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.task_facets import PairSizes
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.per_group.summary import SummaryProblem, find_best_summary_pair
from tests.dpcore.per_group.conftest import random_pairs

command = _build_parser()
ROLES = Roles(TableKind.EVENTS, user="who", task="city", further_task=("day",), value="amount")
# Ibis 12.0 still calls a function that DuckDB 2.0 renamed.
ibis_on_duckdb = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")


def cells() -> list[tuple[str, str, str, float]]:
    rng = np.random.default_rng(8)
    columns = rng.zipf(1.6, 400) % 20, rng.integers(0, 3, 400), rng.integers(0, 3, 400), np.arange(400.0)
    return [
        (f"u{u}" if u else "", "abc"[c], ["mon", "tue", ""][d], float(v))
        for u, c, d, v in zip(*columns, strict=True)
    ]


def from_engine(
    roles: Roles = ROLES, max_pairs: int | None = None, further: Sequence[tuple[str, str, str, float]] = ()
) -> Any:
    import duckdb
    import ibis

    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who VARCHAR, city VARCHAR, day VARCHAR, amount DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [*cells(), *further])
    table = ibis.duckdb.from_connection(connection).table("t")
    return counting.count_table(table, roles, Disclosure.PRIVATE, name="t", max_pairs=max_pairs).dataset


def expected(one_user: bool) -> Counter[tuple[str, tuple[str, str]]]:
    return Counter((u, (c, d)) for u, c, d, _ in cells() if d and (u or one_user))


@pytest.mark.long
@ibis_on_duckdb
def test_users_called_na_are_said_of_engines_as_of_files() -> None:
    further = [(name, "a", "mon", 1.0) for name in ("NA", "NA", "null", "Nadia", "none")]
    (note,) = [note for note in from_engine(further=further).notes if "called NA" in note]
    assert note.startswith("4 contributions")
    assert not [note for note in from_engine().notes if "called NA" in note]


@ibis_on_duckdb
def test_more_pairs_than_come_back_are_said_with_what_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce, "MAX_FETCHED_PAIRS", 10)
    (said,) = [note for note in from_engine().notes if "pairs of user and group" in note]
    assert "an engine returns at most 10" in said
    assert re.findall(r"--[a-z-]+", said) == ["--distribution-to"]
    assert "--distribution-to" in command.format_help()


@pytest.mark.long
@ibis_on_duckdb
def test_an_engine_says_how_many_pairs_there_are_and_how_they_are_distributed() -> None:
    data, rows = from_engine(), expected(False)
    assert data.pairs is None
    (said,) = [note for note in data.notes if f"There are {len(rows)} pairs of user and group" in note]
    assert f"--pairs-to and --max-pairs {len(rows)}" in said
    for option in re.findall(r"--[a-z-]+", said):  # What it names is there.
        assert option in command.format_help()
    pair_sizes = data.pair_sizes
    groups = Counter(u for u, _ in rows)
    truth = Counter((groups[u], n) for (u, _), n in rows.items())
    assert (
        dict(
            zip(
                zip(pair_sizes.groups.tolist(), pair_sizes.rows.tolist(), strict=True),
                pair_sizes.pairs.tolist(),
                strict=True,
            )
        )
        == truth
    )
    per_task = Counter[tuple[str, str]]()
    for (_, task), n in rows.items():
        per_task[task] += n
    users = Counter(task for _, task in rows)
    assert sorted(zip(pair_sizes.task_rows.tolist(), pair_sizes.task_users.tolist(), strict=True)) == sorted(
        (per_task[task], users[task]) for task in users
    )
    assert pair_sizes.label == "city × day"
    assert data.tasks.users.tolist() == sorted(users.values())


@pytest.mark.long
@ibis_on_duckdb
def test_pairs_come_back_as_codes_where_as_many_were_allowed() -> None:
    for one_user in (False, True):
        rows = expected(one_user)
        missing = MissingUsers.ONE_USER if one_user else MissingUsers.LEAVE_OUT
        roles = Roles(
            TableKind.EVENTS, "who", value="amount", task="city", further_task=("day",), missing_users=missing
        )
        assert from_engine(roles, len(rows) - 1).pairs is None
        pairs = from_engine(roles, len(rows)).pairs
        assert pairs.num_tasks == 6
        assert pairs.user_codes.min() == 0
        # Whatever the codes: the same table of rows by user and group, up to their order.
        table = np.zeros((pairs.user_codes.max() + 1, 6), dtype=int)
        table[pairs.user_codes, pairs.task_codes] = pairs.rows
        users, tasks = (sorted({key[number] for key in rows}) for number in (0, 1))
        truth = np.array([[rows[u, t] for t in tasks] for u in users])
        assert sorted(map(sorted, table.tolist())) == sorted(map(sorted, truth.tolist()))
        assert sorted(map(sorted, table.T.tolist())) == sorted(map(sorted, truth.T.tolist()))
        named_total = sum(v for u, _, d, v in cells() if d and (u or one_user))
        assert pairs.sums.sum() == pytest.approx(named_total)
        # What the shell writes is read as a table whose sum of rows is the rows.
        text = write_pairs_csv(pairs)
        dataset = build_dataset(
            read_table(text.encode(), "pairs.csv"),
            Roles(TableKind.EVENTS, user="user", task="group", value="rows"),
            Disclosure.PRIVATE,
        )
        assert sorted(dataset.pairs.sums.tolist()) == sorted(pairs.rows.tolist())


def summary_of(pairs: UserGroupPairs) -> PairSizes:
    groups = np.repeat(pairs.groups_per_user, pairs.groups_per_user)
    rows = np.bincount(pairs.group_codes, pairs.rows).astype(int)
    return PairSizes(
        groups,
        pairs.rows,
        np.ones(groups.size, int),
        rows[rows > 0],
        np.bincount(pairs.group_codes)[rows > 0],
    )


def same_mixture() -> UserGroupPairs:
    """Every user holds the same in each of the groups: every group has the same mixture of pairs."""
    users, groups = np.divmod(np.arange(40), 4)
    return UserGroupPairs(users, groups, np.repeat([1, 2, 2, 3, 5, 8, 8, 20, 40, 90], 4), 4)


def test_where_all_groups_have_the_same_mixture_the_distribution_says_all() -> None:
    pairs = same_mixture()
    for objective, statistic, noise in (
        (Objective.ROOT_MEAN_SQUARE, Statistic.ROWS, NoiseKind.LAPLACE),
        (Objective.MEAN_RMSE, Statistic.USERS, NoiseKind.GAUSSIAN),
        (Objective.MEAN_RELATIVE, Statistic.ROWS, NoiseKind.GAUSSIAN),
    ):
        parameters = PerGroupParameters(
            1.0,
            statistic,
            noise,
            1e-6 if noise is NoiseKind.GAUSSIAN else None,
            objective=objective,
            floor=3.0 if objective.needs_floor else None,
            num_groups=4 if objective is Objective.MEAN_RMSE else None,
        )
        exact, summed = PerGroupProblem(pairs, parameters), SummaryProblem(summary_of(pairs), parameters)
        assert summed.error_of_nothing == pytest.approx(exact.error_of_nothing)
        for l0, linf in ((1, 1.0), (2, 7.0), (3, 50.0), (4, 90.0)):
            assert summed.compute_error(l0, linf) == pytest.approx(
                compute_pair_error(exact, l0, linf), rel=1e-12
            )
        best = find_best_summary_pair(summed)
        every = {
            (l0, c): summed.compute_error(l0, c)
            for l0 in range(1, 5)
            for c in range(1, int(summed.amounts.max()) + 1)
        }
        assert best.error == pytest.approx(min([*every.values(), summed.error_of_nothing]), rel=1e-12)


def test_whatever_the_mixture_the_error_lies_within_the_limits() -> None:
    for seed in range(6):
        pairs = random_pairs(seed, users=40, groups=7, rows=400)
        asked = PerGroupParameters(2.0, num_groups=9)
        exact = PerGroupProblem(UserGroupPairs(pairs.user_codes, pairs.group_codes, pairs.rows, 9), asked)
        summed = SummaryProblem(summary_of(pairs), asked)
        assert summed.error_of_nothing == pytest.approx(exact.error_of_nothing)
        for l0, linf in ((1, 1.0), (2, 3.0), (6, 1.0), (6, 100.0)):
            limits = summed.compute_limits(l0, linf)
            assert limits[0] * (1 - 1e-12) <= compute_pair_error(exact, l0, linf) <= limits[1] * (1 + 1e-12)
            assert limits[0] * (1 - 1e-12) <= summed.compute_error(l0, linf) <= limits[1] * (1 + 1e-12)
    best = find_best_summary_pair(summed)
    limits = summed.compute_limits(best.max_groups, best.max_amount)
    assert limits[0] <= best.error <= limits[1]
    assert "in proportion" in best.stop_reason


def test_the_limits_are_those_of_the_extreme_mixtures() -> None:
    # Two groups of 10 rows; one user of 1 group with 10 rows in the one, ten users with 1 row in the other.
    pairs = UserGroupPairs(np.arange(11), np.r_[0, np.ones(10, int)], np.r_[10, np.ones(10, int)], 2)
    parameters = PerGroupParameters(1.0, program=Program.PYTHON)
    limits = SummaryProblem(summary_of(pairs), parameters).compute_limits(1, 1.0)
    # 9 of 20 rows are lost, all of one group, which is the worst; the best would be 4.5 in each; noise variance 2.
    assert limits == pytest.approx((math.sqrt(9.0**2 / 4.0 + 2.0), math.sqrt(81.0 / 2.0 + 2.0)))


def test_what_needs_the_pairs_is_refused() -> None:
    sizes = summary_of(same_mixture())
    for asked, words in (
        (PerGroupParameters(1.0, Statistic.SUM), "sums and means"),
        (PerGroupParameters(1.0, num_groups=2), "hold 4 groups"),
        (PerGroupParameters(1.0, objective=Objective.LARGE_GROUPS, floor=1e9), "least size"),
        (
            PerGroupParameters(
                1.0, selection=SelectionRule.LAPLACE, selection_share=0.5, selection_delta=1e-6
            ),
            "private groups",
        ),
    ):
        with pytest.raises(InvalidInput, match=f"(?i){words}"):
            SummaryProblem(sizes, asked)
    with pytest.raises(InvalidInput, match="same rows"):
        PairSizes([1], [2], [1], [3], [1])
