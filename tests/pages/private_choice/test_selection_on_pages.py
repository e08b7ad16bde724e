"""Private selections on the pages: no user decides whether there is one, what it says, or what it may select."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from dpcore.common import mechanisms
from dpcore.common.privacy import Disclosure
from dpcore.counting.frames import to_dataset
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import Objective, Statistic
from dpcore.total.parameters import Summed
from tests.pages.driving import fine, open_app, shown_texts, with_data, words_of_numbers

BASE = [("a", 1.0, "x"), ("b", 2.0, "x"), ("a", 3.0, "y"), ("c", 4.0, "x")]
USERS = {
    "a negative amount": [("z", -500.0, "x")],
    "one more group": [("z", 1.0, "q")],
    "a total beyond all numbers": [("z", 1e308, "x"), ("z", 1e308, "y")],
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
TITLES = {
    "total": "Sum and count",
    "per_group": "Per group",
    "learning": "Learning under a bound",
    "mean": "Mean",
}


def table(rows: list[tuple[str, float, str]]) -> Dataset:
    frame = pd.DataFrame(rows, columns=["who", "amount", "place"])
    return to_dataset(frame, user="who", value="amount", group="place", disclosure=Disclosure.PRIVATE)


def form(text: str) -> str:
    return re.sub(r"\b(row|group)s\b", r"\1", re.sub(r"[0-9][0-9.,e+-]*", "#", text))


@pytest.mark.parametrize("kind", KINDS)
def test_no_user_decides_whether_a_page_selects_and_what_it_says(kind: str, monkeypatch) -> None:
    name, state = KINDS[kind]

    class Selected:
        index, epsilon = 0, 0.1

    monkeypatch.setattr(
        mechanisms, "exponential_mechanism", lambda *given: (given[-1] and given[-1](0.1, 0.0)) or Selected
    )
    seen = set()
    at = open_app(TITLES[name])
    for rows in ([], *USERS.values()):
        if kind == "sums of groups" and rows == USERS["a total beyond all numbers"]:
            continue  # Such cells have no sums per group: see docs/privacy.md.
        with_data(at, table(BASE + rows))
        for key, value in state.items():
            at.session_state[key] = value
        fine(at.run())
        before = [one.label for one in at.button if one.key == f"{name}_card_draw"]
        assert before, f"no selection: {shown_texts(at)[:600]}"
        fine(at.button(key=f"{name}_card_draw").click().run())
        (((_, drawn),),) = at.session_state["private_choice.choices"].values()
        seen.add((*before, form(str(drawn.problem)), drawn.facts.label, form(str(words_of_numbers(at)[:1]))))
        at.session_state["private_choice.choices"] = {}
    assert len(seen) == 1, seen
