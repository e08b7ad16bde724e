"""The release sheet: noise by closed form, the budget in all, and nothing that private data decide."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.code.forms import OfferedPrograms
from dpcore.code.release_spec import Quantity, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.plan.answer import build_answer as build_plan_answer
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.report.release_sheet import NOT_STATED, build_sheet


def make_table(sizes, seed=0):
    users = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    columns = {
        "who": users,
        "amount": rng.uniform(0.0, 90.0, users.size),
        "shop": rng.integers(0, 4, users.size),
    }
    return to_dataset(pd.DataFrame(columns), user="who", value="amount", group="shop")


def answer_all(dataset):
    """Answer every question whose release can be stated, at settings that do not depend on the data."""
    range_options = {"lower": 0.0, "upper": 100.0}
    lines = "users; rows; sum; mean; median; rows per group"
    replies = {
        "mean": ss.mean_bound(dataset, epsilon=1, **range_options),
        "count": ss.count_bound(dataset, epsilon=1),
        "sum": ss.sum_bound(dataset, epsilon=1, mechanism="gaussian", delta=1e-6),
        "groups": ss.group_bounds(dataset, epsilon=1),
        "quantile": ss.quantile_bound(dataset, epsilon=1, quantiles="0.5, 0.9", **range_options),
        "plan": ss.plan_bounds(dataset, epsilon=1, lines=lines, **range_options),
    }
    return {name: reply.answer for name, reply in replies.items()}


@pytest.mark.long
def test_two_private_tables_have_one_sheet():
    """A large table, one whose best release is nothing, and one of a heavy user: what differs is in no sheet."""
    tables = (make_table([3] * 300), make_table([1], 1), make_table([1] * 30 + [400], 2))
    sheets_of_tables = []
    for table in tables:
        assert table.disclosure is Disclosure.PRIVATE
        sheets = {
            name: build_sheet(name, answer, answer, Ledger()) for name, answer in answer_all(table).items()
        }
        sheets_of_tables.append(
            {name: sheet.write_html({}) + sheet.write_markdown({}) for name, sheet in sheets.items()}
        )
    assert sheets_of_tables[0] == sheets_of_tables[1] == sheets_of_tables[2]
    assert all(NOT_STATED in text and "who" not in text.split() for text in sheets_of_tables[0].values())
    # The least ε of private data is computed from them.
    least = build_plan_answer(tables[0], PlanParameters(1.0, lines="users", objective=Objective.REACH))
    assert build_sheet("plan", least, least, Ledger()) is None


def test_the_noise_of_public_data_is_that_of_its_closed_form():
    table = replace(make_table([3] * 300), disclosure=Disclosure.PUBLIC)
    options = {"epsilon": 0.5, "program": Program.PYTHON}
    count = ss.count_bound(table, **options).answer
    sheet = build_sheet("count", count, count, Ledger())
    ((name, noise_text, bound_text),) = sheet.statistics
    assert float(noise_text.replace(",", "")) == pytest.approx(
        math.sqrt(2.0) * count.numbers[0].value / 0.5, rel=1e-3
    )
    assert bound_text == f"at most {count.numbers[0].value:.0f} rows per user"
    assert sheet.facts["ε in all"] == "0.5"
    # Each line of a plan has its share: the deviation of Laplace noise is the root of 2 over that, times the bound.
    plan = ss.plan_bounds(table, lines="users; rows; median; mean", lower=0, upper=100, **options).answer
    noise_texts = {
        name: noise_text for name, noise_text, _ in build_sheet("plan", plan, plan, Ledger()).statistics
    }
    for line in plan.solution.lines[:2]:
        deviation = math.sqrt(2.0) * line.bound / (0.5 * line.share)
        assert float(noise_texts[line.label].replace(",", "")) == pytest.approx(deviation, rel=1e-3)
    assert noise_texts["median"] == "none"
    assert "program prints" in noise_texts["mean"]
    for name, answer in answer_all(table).items():
        sheet = build_sheet(name, answer, answer, Ledger())
        assert sheet.code.text in sheet.write_markdown({})
        assert NOT_STATED not in sheet.write_markdown({})


def test_a_bound_that_was_chosen_with_dp_is_stated_with_all_that_was_spent_and_without_names():
    answer = ss.count_bound(make_table([3] * 300), epsilon=1, program=Program.PYTHON).answer
    facts = ReleaseFacts(0.25, 0.0, Neighbours.ADD_OR_REMOVE_USER, "exponential mechanism")
    names = {"file": "secret.csv", "privacy_unit": ("ward",), "has_known_columns": True}
    choice = ReleaseSpec(Quantity.COUNT, 1.0, facts, max_rows=5, noise=NoiseKind.LAPLACE, **names)
    card = replace(answer, disclosure=facts, code=OfferedPrograms((("Bound", choice),), Program.PYTHON))
    spent = Ledger().add(facts).add(facts)  # It was drawn twice.
    sheet = build_sheet("count", answer, card, spent)
    assert sheet.facts["ε in all"] == "1.5 (1 for this release)"
    assert build_sheet("count", answer, card, Ledger()).facts["ε in all"].startswith("1.25")
    text = sheet.write_markdown({"count of rows": "a|<b>1"})
    for stated in (
        "at most 5 rows per user",
        "7.071",
        "epsilon = 0.25",
        "drawn with Sweet Spot",
        "MAX_ROWS = 5",
    ):
        assert stated in text
    assert not re.search(r"secret|ward\b|private data", text)
    page = sheet.write_html({"count of rows": "a|<b>1"})
    assert "a|&lt;b&gt;1" in page
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link)\b", page)
