"""Private draws with a public list or a rule for missing values, and bins of the column that is added up."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import private_selection
from dpcore.common.checks import InvalidInput
from dpcore.counting.count import to_dataset
from dpcore.private_choice.answer import selection

RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "user": RNG.integers(0, 40, 600).astype(str),
        "product": RNG.integers(0, 9, 600),
        "amount": RNG.integers(0, 20, 600),
    }
)
SETTINGS = {"user": "user", "value": "amount", "group": "product", "epsilon": 1.0, "statistic": "sum"}
OPTIONS = {"unit": 1.0, "highest_amount": 100.0, "largest": 100, "margin": 0.0}


def list_users(rows):
    """Return of each user the group, rows and sum of each pair, whatever the codes of users are."""
    return sorted(rows[rows[:, 0] == user, 1:].tolist() for user in np.unique(rows[:, 0]))


def build_pairs(data, **settings):
    """Return the pairs that a draw sees, as `list_users` does; None for none."""
    _, request, amounts, _ = private_selection._pose_question(
        "group_bounds", data, {**SETTINGS, **settings}, 0.1, OPTIONS
    )
    pairs = selection._build_pairs(request.problem, amounts)
    return pairs and list_users(np.c_[pairs.user_codes, pairs.group_codes, pairs.rows, pairs.sums])


@pytest.mark.long_but("file")
@pytest.mark.parametrize("holds", ["frame", "file", "dataset"])
def test_a_draw_sees_the_groups_of_the_public_list_alone(holds, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    data = {"frame": FRAME, "file": str(tmp_path / "t.csv")}.get(holds)
    if holds == "dataset":
        data = to_dataset(FRAME, user="user", value="amount", group="product")
    names = ["5", "1", "no such product"]
    for settings, codes in (
        ({"groups": names}, FRAME["product"].map({5: 0, 1: 1})),
        ({"edges": "1, 3, 8"}, pd.cut(FRAME["product"], [1, 3, 8], right=False, labels=False)),
    ):
        rows = FRAME.assign(code=codes).dropna(subset="code")
        sums = rows.assign(user=rows.user.astype(int)).groupby(["user", "code"]).amount.agg(["size", "sum"])
        assert build_pairs(data, **settings) == list_users(sums.reset_index().to_numpy(float))
    assert build_pairs(data, groups=["none of them"]) is None  # and no error, which would tell of the data


def test_a_range_follows_the_rule_for_missing_values(monkeypatch):
    frame = FRAME.assign(amount=[None, *FRAME.amount[1:]])
    seen = []
    original = private_selection.choose_range

    def look(problem, values, *others):
        seen.append((values.values.size, values.values.sum()))
        return original(problem, values, *others)

    monkeypatch.setattr(private_selection, "choose_range", look)
    for rule in (None, "drop", 50.0):
        ss.select_range(
            frame, user="user", value="amount", epsilon=1.0, unit=1.0, largest=100.0, missing=rule
        )
    total = FRAME.amount[1:].sum()
    assert seen == [(600, total), (599, total), (600, total + 50)]


@pytest.mark.long_but("python")
@pytest.mark.parametrize("library", ["python", "opendp"])
def test_bins_of_the_column_that_is_added_up(library, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("t.csv", index=False)
    # The noise has a scale of at most 2: it is off by 200 with probability e^-100.
    reply = ss.group_bounds(
        "t.csv", user="user", value="amount", group="amount", edges="0, 5, 20", statistic="sum", epsilon=1000.0,
        disclosure="public", own_groups=2, own_amount=1_000.0,
    )  # fmt: skip
    exec(compile(reply.code(library), "program", "exec"), {})
    (released, *_) = (
        entry for entry in json.loads(capsys.readouterr().out).values() if isinstance(entry, dict)
    )
    expected = FRAME.groupby(FRAME.amount >= 5).amount.sum()
    assert [released["[0, 5)"], released["[5, 20)"]] == pytest.approx(expected.tolist(), abs=200)
    settings = {"user": "user", "value": "amount", "group": "amount", "statistic": "sum", "epsilon": 1.0}
    with pytest.raises(InvalidInput, match="a column of groups beside that of the values"):
        ss.group_bounds(FRAME, **settings, groups=["3", "7"]).code("bigquery")
