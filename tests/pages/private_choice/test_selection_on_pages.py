"""Private selections on the pages: no user decides whether there is one, what it says, or what it may select."""

from __future__ import annotations

import json
import re
import unittest.mock
from typing import Any

import pandas as pd
import pytest
import streamlit as st

import dpcore as ss
from dpcore.common import mechanisms
from dpcore.common.privacy import Disclosure
from dpcore.counting.count import to_dataset
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import Objective, Statistic
from dpcore.total.parameters import Summed
from pages.shared.session import session_file
from tests.cells import leave_repeats
from tests.pages.driving import (
    check,
    confirm,
    open_app,
    read_address,
    read_card_texts,
    read_shown_link,
    shown_texts,
    use_dataset,
)

BASE = [("a", 1.0, "x"), ("b", 2.0, "x"), ("a", 3.0, "y"), ("c", 4.0, "x")]
USERS = {
    "a negative amount": [("z", -500.0, "x")],
    "one more group": [("z", 1.0, "q")],
    "a huge total": [("z", 1e100, "x"), ("z", 1e100, "y")],
    "one more row": [("z", 1.0, "x")],
}
"""Rows of one more user."""
PAIR = {"per_group.num_groups": 2.0, "private_choice.pair_unit": 1.0, "private_choice.pair_largest": 50.0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "sum": ("total", {"total.summed": Summed.VALUES, "total.highest_total": 100.0}),
    "groups": ("per_group", PAIR),
    "large groups": (
        "per_group",
        {**PAIR, "per_group.objective": Objective.LARGE_GROUPS, "per_group.floor": 4.0},
    ),
    "sums of groups": ("per_group", {**PAIR, "per_group.statistic": Statistic.SUM}),
    "learner": ("learning", {"learning.public_rows": 30.0}),
    "mean": ("mean", {"mean.lower": 0.0, "mean.upper": 10.0}),
}
DROPPED = {
    "sum": {"", "totals below 0: 1"},
    "groups": {"", "groups beyond the list: 1"},
    "large groups": {"", "groups beyond the list: 1"},
    "sums of groups": {"", "amounts below 0: 1", "groups beyond the list: 1"},
}
"""What the owner is told of the data, by kind."""
TITLES = {
    "total": "Sum and count",
    "per_group": "Group by",
    "learning": "Bias curves over τ₀",
    "mean": "Mean",
}


def table(rows: list[tuple[str, float, str]]) -> Dataset:
    frame = pd.DataFrame(rows, columns=["who", "amount", "place"])
    return to_dataset(frame, user="who", value="amount", group="place", disclosure=Disclosure.PRIVATE)


def form(text: str) -> str:
    return re.sub(r"\b(row|group)s\b", r"\1", re.sub(r"[0-9][0-9.,e+-]*", "#", text))


@pytest.mark.long
@pytest.mark.parametrize("kind", leave_repeats(KINDS, lambda kind: KINDS[kind][0]))
def test_no_user_decides_whether_a_page_selects_and_what_it_says(kind: str, monkeypatch) -> None:
    name, state = KINDS[kind]

    class Selected:
        index, epsilon = 0, 0.1

    monkeypatch.setattr(
        mechanisms, "exponential_mechanism", lambda *given: (given[-1] and given[-1](0.1, 0.0)) or Selected
    )
    seen, counts = set(), set()
    app = open_app(TITLES[name])
    for rows in ([], *USERS.values()):
        use_dataset(app, table(BASE + rows))
        for key, value in state.items():
            app.session_state[key] = value
        check(app.run())
        check(app.button(key=f"{name}_card_draw").click().run())
        before = [one.label for one in app.button if one.key == f"{name}_card_draw_confirm"]
        counts.add(dropped(app))
        assert before, f"no selection: {shown_texts(app)[:600]}"
        confirm(app, f"{name}_card_draw")
        (((_, drawn),),) = app.session_state["private_choice.choices"].values()
        seen.add((*before, form(str(drawn.problem)), drawn.facts.label, form(str(read_card_texts(app)[:1]))))
        app.session_state["private_choice.choices"] = {}
    assert len(seen) == 1, seen
    assert counts == DROPPED.get(kind, {""})


def dropped(app: Any) -> str:
    """What the page tells the owner of the data before ε is spent."""
    told = [text.value for text in app.markdown if "Private, do not publish" in text.value]
    return told[0].partition("these: ")[2].partition(".")[0] if told else ""


def test_the_owner_sees_what_is_dropped_and_no_file_or_link_holds_it() -> None:
    rows = [("z", -500.0, "x"), (None, 7.0, "x")]
    app = use_dataset(open_app("Sum and count"), table(BASE + rows))
    app.session_state["total.summed"] = Summed.VALUES
    app.session_state["total.highest_total"] = 100.0
    check(app.run())
    check(app.button(key="total_card_draw").click().run())
    told = [text.value for text in app.markdown if "Private, do not publish" in text.value]
    assert len(told) == 1
    assert "totals below 0: 1" in told[0]
    assert "1 row without a user was left out" in told[0]
    assert "below 0: 1" not in read_shown_link(app) + str(read_address(app))
    with unittest.mock.patch.object(st, "session_state", app.session_state):
        session = session_file.read_session()
    assert "totals below 0" not in json.dumps(session.values_by_key, default=str)
    answer = ss.sum_bound(table(BASE + rows), epsilon=1, highest_total=100)
    figure = answer.draw(1.0)
    for text in (figure.to_json(), figure.code("python"), str(figure)):
        assert "below 0: 1" not in text


def test_python_counts_what_a_selection_drops() -> None:
    frame = pd.DataFrame(
        {
            "who": ["a", None, "b", "b", "c"],
            "amount": ["1", "2", "-5", "abc", ""],
            "place": ["x", "x", "y", "z", "z"],
        }
    )
    settings = {"user": "who", "value": "amount", "epsilon": 1}
    assert ss.dropped_cells("sum_bound", frame, {**settings, "highest_total": 9}) == {
        "rows without a user": 1,
        "cells without a number": 2,
        "totals below 0": 1,
    }
    groups = {**settings, "group": "place", "num_groups": 2, "statistic": "sum"}
    assert ss.dropped_cells("group_bounds", frame, groups, unit=1, highest_amount=9) == {
        "rows without a user": 1,
        "cells without a number": 2,
        "amounts below 0": 1,
        "groups beyond the list": 1,
    }
    assert ss.dropped_cells("count_bound", frame, {"user": "who", "epsilon": 1}) == {"rows without a user": 1}
