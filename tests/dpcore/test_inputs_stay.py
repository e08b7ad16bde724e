"""No call changes its input, whether it answers or refuses."""

import copy

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcore as ss
from dpcore import questions
from dpcore.common.checks import InvalidInput

ROWS = 24
CELLS = {
    "user": np.arange(ROWS) % 5,
    "value": 1.0 + np.arange(ROWS) % 7,
    "group": np.arange(ROWS) % 3,
    "label": np.arange(ROWS) % 2,
}
ENDS = {"lower": 0, "upper": 10}
FAST = {
    "mean_bound": ENDS,
    "examples_bound": {"batch_size": 4, "steps": 2, "dimension": 2},
    "quantile_bound": ENDS,
    "variance_bound": ENDS,
    "plan_bounds": {"lines": "users; rows"},
    "training_bound": {"runs": 2, "splits": 1, "pace": "entered", "steps": 2, "ranges": {"value": [0, 10]}},
    "regression_weights": ENDS,
    "rating_weights": {"repeats": 1, "sweeps": 1, "train_epsilons": "1", **ENDS},
}
"""Settings with which a call takes little time."""


def frame_with(names):
    frame = pd.DataFrame(CELLS)
    frame.columns = names
    return frame


INPUTS = {
    "text columns": (lambda: pd.DataFrame(CELLS), list(CELLS)),
    "whole-number columns": (lambda: frame_with(range(4)), ["0", "1", "2", "3"]),
    "two-level columns": (
        lambda: frame_with(pd.MultiIndex.from_product([["a"], CELLS], names=["x", "y"])),
        [f"('a', '{name}')" for name in CELLS],
    ),
    "named index": (lambda: pd.DataFrame(CELLS).set_index("user"), list(CELLS)),
    "Arrow": (lambda: pa.table(CELLS), list(CELLS)),
    "dictionary": (lambda: {name: cells.copy() for name, cells in CELLS.items()}, list(CELLS)),
    "array": (lambda: np.array([3, 1, 2, 2, 1]), None),
    "series": (lambda: pd.Series([3, 1, 2, 2, 1]), None),
    "list": (lambda: [3, 1, 2, 2, 1], None),
}


def refuse_difference(before, after):
    assert type(after) is type(before)
    if isinstance(after, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before, check_exact=True, check_column_type=True)
        assert type(after.columns) is type(before.columns)
        assert after.columns.names == before.columns.names
        assert after.columns.dtype == before.columns.dtype
    elif isinstance(after, pd.Series):
        pd.testing.assert_series_equal(after, before)
    elif isinstance(after, pa.Table):
        assert after.equals(before, check_metadata=True)
    elif isinstance(after, np.ndarray):
        np.testing.assert_array_equal(after, before, strict=True)
        assert after.flags.writeable
    elif isinstance(after, dict):
        assert list(after) == list(before)
        for name, cells in after.items():
            refuse_difference(before[name], cells)
    else:
        assert after == before


def settings_of(call, names):
    """Return valid settings for a table with these columns, or for counts without any."""
    asked, settings = questions.QUESTIONS[call], {"epsilon": 1, **FAST.get(call, {})}
    settings.pop("ranges", None)
    if names is not None:
        roles = dict(zip(CELLS, names, strict=True))
        settings |= {name: column for name, column in roles.items() if name in asked.column_arguments}
        if "features" in asked.column_arguments:
            settings |= {"features": [roles["value"]], "levels": {}}
        if "ranges" in asked.column_arguments:
            settings["ranges"] = {roles["value"]: [0, 10]}
    return settings


def call_and_compare(call, kind, settings):
    """Return True if the call answers; input and settings must be what they were, whatever it does."""
    data, before = INPUTS[kind][0](), copy.deepcopy(settings)
    try:
        getattr(ss, call)(data, **settings)
    except InvalidInput:
        return False
    finally:
        refuse_difference(INPUTS[kind][0](), data)
        assert settings == before
    return True


@pytest.mark.few(3)
@pytest.mark.long_for(
    "rating_weights",
    "plan_bounds",
    "training_bound",
    "examples_bound",
    "group_bounds",
    "quantile_bound",
    "variance_bound",
    "private_bound",
    "owners",
    "regression_weights",
    "sum_bound",
)
@pytest.mark.parametrize("call", questions.QUESTIONS)
def test_no_call_changes_its_input(call):
    for kind, (_, names) in INPUTS.items():
        settings = settings_of(call, names)
        # The data are read before a wrong setting is refused.
        assert not call_and_compare(call, kind, settings | {"epsilon": -1})
        if names is not None:
            assert not call_and_compare(call, kind, settings | {"user": "nobody"})
    assert call_and_compare(call, "two-level columns", settings_of(call, INPUTS["two-level columns"][1]))


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_stays_where_a_call_answers(kind):
    answered = call_and_compare("count_bound", kind, settings_of("count_bound", INPUTS[kind][1]))
    # Names that are numbers are taken for cells, and a dictionary is no table.
    assert answered == (kind not in ("whole-number columns", "dictionary"))
