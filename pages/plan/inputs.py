"""The inputs of Plan, as one validated parameters object; the lines stand in a table."""

from __future__ import annotations

import re

import pandas as pd
import streamlit as st

from dpcore import questions
from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.dataset import Dataset
from dpcore.mean import Target, VarianceSource
from dpcore.plan import lines
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import PlanParameters
from dpcore.report import script
from pages.plan.question import ENDS, OF_MEAN, QUESTION
from pages.shared.screen import inputs, layout

RELEASE, QUANTILE, WANTED_ERROR, WEIGHT = "Release", "q", "Wanted error", "Weight"
FIELDS_OF_MEAN = (*OF_MEAN, "value_variance", "user_share")
EDITOR_WIDTH = 480
"""Pixels, for all four columns: what lies in the popover makes it wide, and a table alone does not."""


def read_inputs(slots: layout.PageSlots) -> PlanParameters | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused."""
    state, key = st.session_state, QUESTION.key

    def is_hidden(name: str) -> bool:
        parsed_lines = lines.parse_lines(state[key("lines")], Problems())
        if name in ENDS:
            return not any(line.statistic.needs_range for line in parsed_lines)
        has_mean = any(line.statistic is LineStatistic.MEAN for line in parsed_lines)
        of_table = state[key("target")] is Target.TABLE
        reads_table = of_table and state[key("variance_source")] is VarianceSource.FROM_VALUES
        return name in FIELDS_OF_MEAN and (
            not has_mean or (reads_table and name in ("likeness", "user_share"))
        )

    def draw_editor() -> None:
        with st.popover("Numbers to release", icon=":material/table_rows:", key="plan_lines"):
            _editor()

    parameters: PlanParameters | None = inputs.read_inputs(
        QUESTION, slots, hidden=is_hidden, widgets={"lines": draw_editor}
    )
    return parameters


def _editor() -> None:
    """Draw the lines as a table; its content becomes their text, which the link carries."""
    state = st.session_state
    text, written_text = state[QUESTION.key("lines")], state.get(QUESTION.key("written"))
    if text != written_text or QUESTION.key("editor_round") not in state:
        # They were set elsewhere: by a link, by new data, by another page. The editor starts afresh.
        state[QUESTION.key("editor_round")] = state.get(QUESTION.key("editor_round"), 0) + 1
    key = f"{QUESTION.key('editor_')}{state[QUESTION.key('editor_round')]}"
    if key not in state:
        # The editor forgets its edits where it is not drawn; then it starts from what they led to.
        state[QUESTION.key("editor_base")] = text
    edited = st.data_editor(
        frame_of(state[QUESTION.key("editor_base")]),
        num_rows="dynamic",
        hide_index=True,
        width=EDITOR_WIDTH,
        placeholder="",
        key=key,
        column_config={
            RELEASE: st.column_config.SelectboxColumn(
                options=[statistic.value for statistic in LineStatistic], required=True
            ),
            QUANTILE: st.column_config.NumberColumn(
                help="Which quantile; 0.5, the median, where empty", format="%g", width=70
            ),
            WANTED_ERROR: st.column_config.TextColumn(
                help="5% of the value (of a quantile: of the rows), or 12 in its own unit; 5% where empty",
                width=120,
            ),
            WEIGHT: st.column_config.NumberColumn(
                help="How much its squared error counts; 1 where empty", format="%g", width=90
            ),
        },
        alt="The numbers that are released, with the wanted error and the weight of each",
    )
    st.caption(
        f"At most {lines.MAX_LINES} lines. The last, empty row adds one. 5 % is wanted where nothing is said."
    )
    state[QUESTION.key("lines")] = state[QUESTION.key("written")] = text_of(edited)


def frame_of(text: str) -> pd.DataFrame:
    """Return the table of lines; a line that cannot be read stays as it was entered."""
    rows = [
        (statistic, q, wanted_error or None, None if weight == 1.0 else weight)
        for statistic, q, wanted_error, weight in lines.tabulate_lines(text)
    ]
    frame = pd.DataFrame(rows, columns=[RELEASE, QUANTILE, WANTED_ERROR, WEIGHT])
    return frame.astype({RELEASE: object, QUANTILE: float, WANTED_ERROR: object, WEIGHT: float})


def text_of(frame: pd.DataFrame) -> str:
    """Return the lines of a table as text, without rows that name no release; other faults stay for the check."""
    texts = []
    for row in frame.to_dict("records"):
        statistic = row[RELEASE]
        if not isinstance(statistic, str) or not statistic:
            continue
        words = [statistic]
        if statistic == LineStatistic.QUANTILE.value:
            q = 0.5 if pd.isna(row[QUANTILE]) else float(row[QUANTILE])
            words = ["median" if q == 0.5 else f"quantile {wording.digits(q)}"]
        if isinstance(row[WANTED_ERROR], str) and row[WANTED_ERROR].strip():
            wanted_error = re.sub(r"[;\s]+", " ", row[WANTED_ERROR]).strip()
            words.append(f"within {wanted_error}")
        if not pd.isna(row[WEIGHT]) and row[WEIGHT] != 1.0:
            words.append(f"weight {wording.digits(float(row[WEIGHT]))}")
        texts.append(" ".join(words))
    return "; ".join(texts)


def write_settings(data: Dataset, answer: Answer) -> str:
    """Return the settings as a file for the command."""
    call = questions.call_with(QUESTION.name, answer.parameters)
    assert call is not None
    name, settings = call
    by_line = {"lines": [line.text for line in answer.parameters.parsed_lines]}
    return script.write_settings(
        (name, settings | by_line), questions.command_of(name), data, questions.QUESTIONS[name].columns
    )
