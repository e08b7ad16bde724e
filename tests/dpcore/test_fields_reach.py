"""Every setting of a release reaches its program, its methods text and its JSON, or a table says why not."""

from __future__ import annotations

import re
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
        "feature": USERS % 5 - 2.0,
    }
)
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
VALUE_QUANTITIES = {"value": "value", "lower": 0, "upper": 10}
POPULATION = {"target": "population", "variance_source": "worst", "likeness": "entered"}
NORMAL = {"base": "normal", "center": 5, "spread": 2, "lower": None, "upper": None}
HISTOGRAM = {"base": "histogram", "edges": "0, 5, 10", "masses": "1, 3", "lower": None, "upper": None}
GAUSSIAN_COPY = {"mechanism": "discrete gaussian", "delta": 1e-6}
SELECTED = {"selection": "laplace threshold", "selection_share": 0.5, "selection_delta": 1e-6}
PYTHON_ONLY = ("task_weights", "regression_weights", "training_bound")
MODEL = {"label": "value", "features": ["feature"]}
FEW_RUNS = {"runs": 2, "splits": 1}
FEW_SEEDS = {"repeats": 1, "train_epsilons": "1"}
ENTERED_PACE = {"pace": "entered", "bounded_by": "smooth weights"}
DESCENT = {"algorithm": "descent"}
CAP = {"purpose": "cap"}
COUNT = {"purpose": "sum"}
IN_A_PLAN: dict[str, tuple[dict[str, Any], Any]] = {
    "lower": ({}, -5),
    "upper": ({}, 20),
    "mechanism": ({}, GAUSSIAN),
    "delta": (GAUSSIAN, 1e-3),
    "program": ({}, "plain Python"),
    "target": (POPULATION, "table"),
    "variance_source": (POPULATION, "values"),
    "value_variance": (POPULATION | {"variance_source": "entered", "value_variance": 25.0}, 0.5),
    "likeness": (POPULATION | {"user_share": 0.9}, "none"),
    "user_share": (POPULATION, 0.9),
}

# By call: the settings that a field needs beside it, and other values of the field, or several settings at once.
BASES: dict[str, dict[str, Any]] = {
    "mean_bound": VALUE_QUANTITIES,
    "count_bound": {},
    "sum_bound": {"value": "value"},
    "group_bounds": {"group": "group"},
    "quantile_bound": VALUE_QUANTITIES,
    "variance_bound": VALUE_QUANTITIES | {"epsilon": 30},  # Where noise is not all of the error.
    "plan_bounds": VALUE_QUANTITIES | {"group": "group", "lines": "users; mean"},
    "learning_bound": {},
    "examples_bound": {},
    "task_weights": {"group": "group", "delta": 1e-6},
    "owners": {"user": None, "disclosure": None},
    "weights_gain": {},
    "training_bound": MODEL
    | {"delta": 1e-5, "ranges": {"feature": (-3, 3)}, "positive_above": 4.0}
    | FEW_RUNS,
    "regression_weights": MODEL | {"lower": 0, "upper": 10},
    "rating_weights": {"group": "group", "value": "value", "lower": 1, "upper": 8} | FEW_SEEDS,
    "private_bound": {},
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
        "lower": (VALUE_QUANTITIES | {"statistic": "mean"}, -5),
        "upper": (VALUE_QUANTITIES | {"statistic": "mean"}, 20),
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
    "variance_bound": IN_A_PLAN,
    "plan_bounds": IN_A_PLAN
    | {
        "lines": ({}, "users"),
        "clamp": ({}, "users"),
        "objective": ({"lines": "users within 30; rows within 300"}, "least epsilon"),
        "groups": ({"lines": "rows per group"}, ["0", "1"]),
        "edges": ({"lines": "rows per group"}, [0, 2, 4]),
    },
}
VARIATIONS |= {
    "learning_bound": {
        "bias": ({}, "cut_share"),
        "loss_variance": ({"bias": "variance_kept"}, 0.2),
        "privacy_form": ({}, "linear"),
        "privacy_constant": ({}, 3.0),
        "privacy_power": ({"privacy_form": "own", "privacy_power": 2.0}, 3.0),
        "vc_dimension": ({}, 50),
        "finite_sample_constant": ({}, 2.0),
        "failure_probability": ({}, 0.3),
        "own_bound": ({}, 3),
        "public_rows": ({}, 100),
        "cap_unit": ({}, "rows"),
        "alpha": ({}, 2.0),
        "population_rows": ({}, 100),
        "draws": ({}, 5),
    },
    "examples_bound": {
        "delta": ({}, 1e-3),
        "batch_size": ({}, 7.0),
        "steps": ({}, 50),
        "sampling": ({"sampling": "users"}, "examples"),
        "dimension": ({}, 9),
        "gradient_similarity": ({}, 0.9),
        "own_bound": ({}, 3),
    },
    "task_weights": {
        "delta": ({}, 1e-3),
        "loss": ({}, "convex"),
        "exponent": ({}, 0.1),
        "fit": ({}, "full"),
        "log_constant": ({"fit": "logarithmic"}, 3.0),
        "max_tasks": ({}, 2),
        "count_share": ({}, 0.3),
        "count_max_tasks": ({}, 3),
        "count_covers": ({}, False),
        "count_seed": ({}, 4),
        "experiment_epsilons": ({}, "2"),
        "experiment_users": ({}, 200),
        "experiment_repeats": ({}, 2),
        "experiment_seed": ({}, 3),
    },
    "owners": {
        "owners": ({}, 50),
        "records": ({}, 3000),
        "shared": ({}, 4),
        "unit": ({}, {"unit": "user", "records_per_user": 4.0}),
        "records_per_user": ({"unit": "user", "records_per_user": 4.0}, 9.0),
        "delta": ({}, 1e-3),
        "personal_part": ({}, "conv1"),
        "personal": ({}, 5),
        "personal_diameter": ({}, 3.0),
        "shared_diameter": ({}, 3.0),
        "lipschitz": ({}, 2.0),
        "alone_constant": ({}, 2.0),
        "sampling_constant": ({}, 2.0),
        "privacy_constant": ({}, 2.0),
        "own_bound": ({}, 100),
        "x_axis": ({}, "records"),
        "y_axis": ({}, "epsilon"),
        "train_on": ({}, "generated"),
        "train_owners": ({}, "5"),
        "train_epsilons": ({}, "2"),
        "train_runs": ({}, 1),
        "train_seed": ({}, 3),
    },
}
VARIATIONS |= {
    "weights_gain": {
        "variance_source": ({}, {"variance_source": "entered", "value_variance": 0.1}),
        "value_variance": ({"variance_source": "entered", "value_variance": 0.1}, 0.01),
        "g": ({}, 20),
        "light_users": ({}, 20),
        "heavy_size": ({}, 20),
        "light_size": ({}, 2),
        "noise_per_user": ({}, 0.3),
        "example": ({}, 3),
        "regression_g": ({}, 3),
    },
    "training_bound": {
        "delta": ({}, 1e-3),
        "neighbours": ({}, "replace_user"),
        "loss": ({}, "squared"),
        "positive_above": ({}, 6.0),
        "bounded_by": ({}, "cap"),
        "bound": (ENTERED_PACE, 2.0),
        "pace": ({"bounded_by": "smooth weights"}, "entered"),
        "average": (ENTERED_PACE, "all"),
        "steps": (ENTERED_PACE, 20),
        "step_size": (ENTERED_PACE, 0.5),
        "radius": (ENTERED_PACE, 2.0),
        "sampled": (ENTERED_PACE, 0.5),
        "runs": ({}, 3),
        "splits": ({}, 2),
        "held_out": ({}, 0.5),
        "seed": ({}, 1),
    },
    "regression_weights": {
        "lower": ({}, -5),
        "upper": ({}, 20),
        "variance_source": ({}, {"variance_source": "entered", "residual_variance": 3.0}),
        "residual_variance": ({"variance_source": "entered", "residual_variance": 3.0}, 9.0),
    },
    "rating_weights": {
        "delta": ({}, 1e-3),
        "lower": ({}, 0),
        "upper": ({}, 10),
        "algorithm": ({}, "descent"),
        "steps": (DESCENT, 3),
        "gradient_bound": (DESCENT, 0.5),
        "max_items": ({}, 2),
        "exponent": ({}, 0.1),
        "count_share": ({}, 0.3),
        "dimension": ({}, 3),
        "sweeps": ({}, 1),
        "user_ridge": ({}, 5.0),
        "ridge_to_noise": ({}, 1.0),
        "train_epsilons": ({}, "2"),
        "repeats": ({}, 2),
        "train_seed": ({}, 2),
        "item": ({}, 2),
        "chosen_from": ({}, 50.0),
        "unobserved": ({}, 0.2),
    },
    "private_bound": {
        "purpose": ({}, "cap"),
        "selection_epsilon": ({}, 0.2),
        "is_total_epsilon": ({}, True),
        "largest": ({}, 100),
        "variance_share": (CAP, 0.1),
        "user_share": (CAP, 0.5),
        "margin": (COUNT, 3.0),
        "release_delta": (COUNT, 1e-6),
        "program": (COUNT | {"release_delta": 1e-6}, "plain Python"),
        "quantile": ({"purpose": "quantile"}, 0.5),
        "guess": ({}, {"guess": 3.0, "guess_factor": 2.0}),
        "guess_factor": ({"guess": 3.0, "guess_factor": 2.0}, 3.0),
        "neighbours": ({}, "replace"),
        "mechanism": ({}, GAUSSIAN_COPY),
        "delta": (GAUSSIAN_COPY, 1e-3),
    },
}
GENERATED = {
    "task_weights": "source num_users num_tasks tasks_per_user skew zipf_exponent user_spread graph_seed",
    "training_bound": "source num_users exponent max_rows informative signal user_effect data_seed",
    "regression_weights": "source num_rows informative uninformative label_noise exponent size_law seed",
    "rating_weights": "source num_users num_items ratings_per_user rank data_seed",
}
NOT_VARIED = {
    (call, field): "It is about generated data."
    for call, fields in GENERATED.items()
    for field in fields.split()
} | {("owners", "source"): "It says whether data are given."}
COMPARED = "It is only compared with the best bound."
IN_A_TAB = "It belongs to a simulation or a figure in a tab."
SELECTION = "It belongs to the private selection of a bound, which has a file of its own."
SAME_BOUND = "It changes what the error is about or made of, and the program only by way of the bound."
RELEASED_IN_TAB = "It is about the model that the page draws in its tab Release."
SIMULATED = (
    "It belongs to the simulation that compares methods: a program changes if another bound is the best."
)
BY_RULE = "The methods text is of the best method, which follows its own rule whatever is entered."
ITEM_MEANS = "No library fits a factorisation: programs release the items' means."
DRAWN = "Program and methods are of the bound that is drawn; before the draw there is none."
NO_PROGRAM = "No library trains with data of several owners."
IN_THE_BOUNDS = "It enters the bounds; the methods text names which form has the least, and that stays."
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
    ("learning_bound", "loss_variance"): ({"program", "methods"}, SAME_BOUND),
    ("learning_bound", "own_bound"): ({"program", "methods"}, COMPARED),
    ("learning_bound", "public_rows"): (set(TEXTS), SELECTION),
    **{
        ("learning_bound", field): (set(TEXTS), IN_A_TAB)
        for field in ("alpha", "population_rows", "draws", "cap_unit")
    },
    ("examples_bound", "dimension"): ({"program"}, SAME_BOUND),
    ("examples_bound", "own_bound"): ({"program", "methods"}, COMPARED),
    ("task_weights", "loss"): ({"program"}, SAME_BOUND),
    ("task_weights", "max_tasks"): ({"program", "methods"}, COMPARED),
    **{
        ("task_weights", field): ({"program", "methods"}, IN_A_TAB)
        for field in VARIATIONS["task_weights"]
        if field.startswith(("count_", "experiment_"))
    },
    **{("owners", field): ({"program"}, NO_PROGRAM) for field in ("epsilon", *VARIATIONS["owners"])},
    **{
        ("owners", field): ({"program", "methods"}, IN_THE_BOUNDS)
        for field in ("records_per_user", "shared_diameter", "lipschitz", "own_bound")
    },
    **{
        ("owners", field): ({"program", "methods"}, IN_A_TAB)
        for field in ("x_axis", "train_on", "train_owners", "train_epsilons", "train_seed")
    },
    **{("owners", field): (set(TEXTS), IN_A_TAB) for field in ("y_axis", "train_runs")},
    **{
        ("weights_gain", field): ({"program"}, "It compares errors; no program is written.")
        for field in ("epsilon", "variance_source", "value_variance")
    },
    **{("weights_gain", field): (set(TEXTS), IN_A_TAB) for field in list(VARIATIONS["weights_gain"])[2:]},
    **{
        ("training_bound", field): ({"program", "methods"}, RELEASED_IN_TAB)
        for field in ("bounded_by", "bound")
    },
    **{
        ("training_bound", field): ({"methods"}, BY_RULE)
        for field in ("pace", "average", "steps", "step_size", "sampled")
    },
    **{
        ("training_bound", field): ({"program"}, SIMULATED)
        for field in ("runs", "splits", "held_out", "seed")
    },
    **{
        ("rating_weights", field): ({"program"}, ITEM_MEANS)
        for field in list(VARIATIONS["rating_weights"])[3:]
    },
    ("rating_weights", "max_items"): (set(), ""),
    **{
        ("rating_weights", field): ({"program", "methods"}, IN_A_TAB)
        for field in ("train_epsilons", "item", "chosen_from", "unobserved")
    },
    **{
        ("private_bound", field): ({"program", "methods"}, DRAWN)
        for field in ("epsilon", *VARIATIONS["private_bound"])
    },
    ("quantile_bound", "masses"): (
        {"program", "methods"},
        "Programs lay their candidates evenly over the range of ν.",
    ),
}

SAID_BY_LINE = "A line of the plan says it."
SAID_BESIDE_BUTTON = "The page says beside *Add to the plan* what is otherwise there."
ROOT_MEAN_SQUARE = "Errors of a plan are root mean squared."
# By call of a release that may be a line of a plan, and field: why the plan has no such field.
NOT_IN_A_PLAN: dict[str, dict[str, str]] = {
    "mean_bound": {"counts": SAID_BESIDE_BUTTON, "own_bound": COMPARED},
    "count_bound": {"summed": SAID_BY_LINE, "objective": ROOT_MEAN_SQUARE, "highest_total": SELECTION}
    | {"own_bound": COMPARED, "own_share": IN_A_TAB, "runs": IN_A_TAB, "seed": IN_A_TAB},
    "group_bounds": {"statistic": SAID_BY_LINE, "objective": ROOT_MEAN_SQUARE, "floor": ROOT_MEAN_SQUARE}
    | {
        "num_groups": "Groups without rows are on the public list.",
        "own_groups": COMPARED,
        "own_amount": COMPARED,
    }
    | dict.fromkeys(
        ("neighbours", "selection", "selection_share", "selection_delta", "min_users"), SAID_BESIDE_BUTTON
    ),
    "quantile_bound": {"quantiles": SAID_BY_LINE, "own_bound": COMPARED}
    | {"bound_from": "The bound is the best for the values, and the plan says that private ones leak."}
    | dict.fromkeys(
        ("weighting", "neighbours", "base", "center", "spread", "edges", "masses"), SAID_BESIDE_BUTTON
    )
    | dict.fromkeys(("alpha", "beta", "gamma", "population"), IN_A_TAB),
}


def list_texts(call: str, settings: dict[str, Any]) -> dict[str, str]:
    """Write the programs of all forms, the methods and the JSON of a call on the rows above.

    With ``signed`` two thirds of the values are negated. The JSON is that of the choice, else of the report.
    """
    is_signed, library = settings.pop("signed", False), "python" if call in PYTHON_ONLY else ""
    rows = ROWS.assign(value=ROWS["value"] * np.where(USERS % 3, 1, -1)) if is_signed else ROWS
    settings = {"user": "user", "epsilon": 1.0, "disclosure": "public"} | settings
    data = () if settings["user"] is None else (rows,)
    settings = {
        name: setting
        for name, setting in settings.items()
        if setting is not None or name in ("lower", "upper")
    }
    reply = getattr(ss, call)(*data, **settings)
    program = "".join(reply.code(library, form if library else "") for form in reply.forms)
    json_text = reply.to_json() if reply.answer.write_json is None else reply.answer.write_json()
    json_text = re.sub(r'"made_at": ".*?"', "", json_text)
    return dict(zip(TEXTS, (program, str(reply.answer.methods), json_text), strict=True))


def list_fields(call: str) -> set[str]:
    """Return the names of all fields of a call's parameters, as its settings have them."""
    names = {field: setting for setting, field in questions.QUESTIONS[call].field_names_by_setting.items()}
    return {names.get(field, field) for field in declared_fields(questions.find_parameters_type(call))}


@pytest.mark.parametrize("call", NOT_IN_A_PLAN)
def test_a_field_of_a_release_is_one_of_a_plan_or_the_table_says_why_not(call: str) -> None:
    missing = set(NOT_IN_A_PLAN[call])
    assert missing <= list_fields(call)
    assert list_fields(call) - missing <= list_fields("plan_bounds")


@pytest.mark.parametrize("call", [call for call in BASES if call != "sum_bound"])
def test_every_field_is_varied_or_the_table_says_why_not(call: str) -> None:
    """A sum has the fields of a count, and a range."""
    question, fields = questions.QUESTIONS[call], list_fields(call)
    of_a_sum = set(VARIATIONS["sum_bound"]) if call == "count_bound" else set()
    varied = set(VARIATIONS[call]) | of_a_sum | {field for name, field in NOT_VARIED if name == call}
    assert fields - set(question.fixed_settings) == varied


@pytest.mark.long_for(
    "group_bounds",
    "quantile_bound",
    "variance_bound",
    "private_bound",
    "plan_bounds",
    "examples_bound",
    "task_weights",
    "training_bound",
    "rating_weights",
    "learning_bound",
    "mean_bound",
    "owners",
    "sum_bound",
)
@pytest.mark.parametrize("call", BASES)
def test_a_field_changes_program_methods_and_json_or_the_table_says_why_not(call: str) -> None:
    texts_by_settings: dict[str, dict[str, str]] = {}

    def texts_of(settings: dict[str, Any]) -> dict[str, str]:
        if repr(settings) not in texts_by_settings:
            texts_by_settings[repr(settings)] = list_texts(call, dict(settings))
        return texts_by_settings[repr(settings)]

    assert texts_of(BASES[call]) == list_texts(call, dict(BASES[call]))
    for field, (beside, other) in {"epsilon": ({}, 0.3), **VARIATIONS[call]}.items():
        settings = BASES[call] | beside
        texts_before = texts_of(settings)
        texts_after = texts_of(settings | (other if isinstance(other, dict) else {field: other}))
        unchanged = {name for name in TEXTS if texts_before[name] == texts_after[name]}
        expected, reason = UNCHANGED.get((call, field), (set(), ""))
        assert unchanged | (expected if reason == SIMULATED else set()) == expected, field
