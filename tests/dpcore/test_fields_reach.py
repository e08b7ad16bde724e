"""Every setting of a release reaches its program, its methods text and its JSON, or a table says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import questions
from dpcore.common.parameters import declared_fields

TEXTS = ("program", "methods", "JSON")
NUM_ROWS = np.array([1] * 30 + [3] * 20 + [8] * 10 + [40] * 2)
USERS = np.repeat(np.arange(NUM_ROWS.size), NUM_ROWS)
ROWS = pd.DataFrame(
    {
        "user": USERS,
        "value": 1.0 + np.arange(USERS.size) * 7 % 8,
        "group": USERS % 7 % (1 + np.arange(USERS.size) % 3),
    }
)
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
OF_VALUES = {"value": "value", "lower": 0, "upper": 10}
POPULATION = {"target": "population", "variance_source": "worst", "likeness": "entered"}
NORMAL = {"base": "normal", "center": 5, "spread": 2, "lower": None, "upper": None}
HISTOGRAM = {"base": "histogram", "edges": "0, 5, 10", "masses": "1, 3", "lower": None, "upper": None}
SELECTED = {"selection": "laplace threshold", "selection_share": 0.5, "selection_delta": 1e-6}

# By call: the settings that a field needs beside it, and other values of the field, or several settings at once.
BASES: dict[str, dict[str, Any]] = {
    "mean_bound": OF_VALUES,
    "count_bound": {},
    "sum_bound": {"value": "value"},
    "group_bounds": {"group": "group"},
    "quantile_bound": OF_VALUES,
    "plan_bounds": OF_VALUES | {"group": "group", "lines": "users; mean"},
}
VARIATIONS: dict[str, dict[str, tuple[dict[str, Any], Any]]] = {
    "mean_bound": {
        "lower": ({}, -5),
        "upper": ({}, 20),
        "clamp": ({}, "users"),
        "target": ({"variance_source": "worst", "likeness": "entered"}, "population"),
        "counts": ({}, "private"),
        "mechanism": ({}, GAUSSIAN),
        "delta": (GAUSSIAN, 1e-3),
        "program": (GAUSSIAN, "plain Python"),
        "variance_source": (POPULATION, "values"),
        "value_variance": (POPULATION | {"variance_source": "entered", "value_variance": 25.0}, 0.5),
        "likeness": (POPULATION | {"user_share": 0.9}, "none"),
        "user_share": (POPULATION, 0.9),
        "own_bound": ({}, 3),
    },
    "count_bound": {
        "mechanism": ({}, GAUSSIAN),
        "delta": (GAUSSIAN, 1e-3),
        "objective": ({}, "bound"),
        "program": ({}, "plain Python"),
        "own_bound": ({}, 3),
        "own_share": ({}, 0.5),
        "runs": ({}, 10),
        "seed": ({}, 1),
        "highest_total": ({}, 100),
    },
    "sum_bound": {
        "lower": ({"signed": True, "lower": -10, "upper": 20}, -50),
        "upper": ({"signed": True, "lower": -10, "upper": 20}, 30),
    },
    "group_bounds": {
        "statistic": ({}, "users"),
        "program": (GAUSSIAN, "plain Python"),
        "mechanism": ({}, GAUSSIAN),
        "delta": (GAUSSIAN, 1e-3),
        "neighbours": ({}, "replace_user"),
        "objective": ({}, {"objective": "mean_relative", "floor": 1.0}),
        "floor": ({"objective": "large_groups", "floor": 1.0}, 100.0),
        "lower": (OF_VALUES | {"statistic": "mean"}, -5),
        "upper": (OF_VALUES | {"statistic": "mean"}, 20),
        "num_groups": ({}, 400),
        "groups": ({}, ["0", "1"]),
        "edges": ({}, [0, 2, 4]),
        "own_groups": ({"own_groups": 1, "own_amount": 2}, 2),
        "own_amount": ({"own_groups": 1, "own_amount": 2}, 3),
        "selection": ({}, SELECTED),
        "selection_share": (SELECTED, 0.9),
        "selection_delta": (SELECTED, 1e-3),
        "min_users": (SELECTED, 5),
    },
    "quantile_bound": {
        "quantiles": ({}, "0.9"),
        "program": ({}, "plain Python"),
        "weighting": ({"program": "plain Python", "weighting": "smooth"}, "cap"),
        "bound_from": ({"program": "plain Python", "neighbours": "add_or_remove_user"}, "counts"),
        "base": ({}, NORMAL),
        "lower": ({}, -5),
        "upper": ({}, 20),
        "center": (NORMAL, 6),
        "spread": (NORMAL, 3),
        "edges": (HISTOGRAM, "0, 4, 9"),
        "masses": (HISTOGRAM, "3, 1"),
        "neighbours": ({"program": "plain Python", "neighbours": "add_or_remove_user"}, "replace_values"),
        "own_bound": ({}, 3),
        "alpha": ({}, 0.1),
        "beta": ({}, 0.1),
        "gamma": ({}, 0.1),
        "population": ({}, True),
    },
    "plan_bounds": {
        "lines": ({}, "users"),
        "clamp": ({}, "users"),
        "lower": ({}, -5),
        "upper": ({}, 20),
        "mechanism": ({}, GAUSSIAN),
        "delta": (GAUSSIAN, 1e-3),
        "program": ({}, "plain Python"),
        "objective": ({"lines": "users within 30; rows within 300"}, "least epsilon"),
        "target": (POPULATION, "table"),
        "variance_source": (POPULATION, "values"),
        "value_variance": (POPULATION | {"variance_source": "entered", "value_variance": 25.0}, 0.5),
        "likeness": (POPULATION | {"user_share": 0.9}, "none"),
        "user_share": (POPULATION, 0.9),
        "groups": ({"lines": "rows per group"}, ["0", "1"]),
        "edges": ({"lines": "rows per group"}, [0, 2, 4]),
    },
}
COMPARED = "It is only compared with the best bound."
IN_A_TAB = "It belongs to a simulation or a figure in a tab."
SELECTION = "It belongs to the private selection of a bound, which has a file of its own."
SAME_BOUND = "It changes what the error is about or made of, and the program only by way of the bound."
# By call and field: what does not change, and why.
UNCHANGED: dict[tuple[str, str], tuple[set[str], str]] = {
    ("mean_bound", "target"): ({"program"}, SAME_BOUND),
    ("mean_bound", "own_bound"): ({"program", "methods"}, COMPARED),
    ("count_bound", "own_bound"): ({"program", "methods"}, COMPARED),
    **{("count_bound", field): (set(TEXTS), IN_A_TAB) for field in ("own_share", "runs", "seed")},
    ("count_bound", "highest_total"): (set(TEXTS), SELECTION),
    ("group_bounds", "own_groups"): (set(TEXTS), COMPARED),
    ("group_bounds", "own_amount"): (set(TEXTS), COMPARED),
    ("quantile_bound", "own_bound"): ({"program", "methods"}, COMPARED),
    **{
        ("quantile_bound", field): ({"program", "methods"}, IN_A_TAB)
        for field in ("alpha", "beta", "gamma", "population")
    },
    **{
        ("plan_bounds", field): ({"methods"}, "They name the lines; the program has the groups.")
        for field in ("groups", "edges")
    },
    ("quantile_bound", "masses"): (
        {"program", "methods"},
        "Programs lay their candidates evenly over the range of ν.",
    ),
}


def list_texts(call: str, settings: dict[str, Any]) -> dict[str, str]:
    """Write the three texts of a call on the rows above; with ``signed`` two thirds of the values are negated."""
    is_signed = settings.pop("signed", False)
    rows = ROWS.assign(value=ROWS["value"] * np.where(USERS % 3, 1, -1)) if is_signed else ROWS
    reply = getattr(ss, call)(rows, **{"user": "user", "epsilon": 1.0, "disclosure": "public"} | settings)
    program = reply.code() if reply.forms else ""
    return dict(zip(TEXTS, (program, str(reply.answer.methods), reply.answer.write_choice()), strict=True))


@pytest.mark.parametrize("call", BASES)
def test_a_field_changes_program_methods_and_json_or_the_table_says_why_not(call: str) -> None:
    question = questions.QUESTIONS[call]
    if call != "sum_bound":  # it has the fields of a count, and a range
        names = {field: setting for setting, field in question.fields_by_setting.items()}
        fields = {names.get(field, field) for field in declared_fields(questions.parameters_of(call))}
        of_a_sum = set(VARIATIONS["sum_bound"]) if call == "count_bound" else set()
        assert fields - set(question.fixed_settings) == set(VARIATIONS[call]) | of_a_sum
    for field, (beside, other) in {"epsilon": ({}, 0.3), **VARIATIONS[call]}.items():
        settings = BASES[call] | beside
        texts_before = list_texts(call, dict(settings))
        texts_after = list_texts(call, settings | (other if isinstance(other, dict) else {field: other}))
        unchanged = {name for name in TEXTS if texts_before[name] == texts_after[name]}
        assert unchanged == UNCHANGED.get((call, field), (set(), ""))[0], field
