"""The inputs of Plan, as one validated parameters object; the lines stand in a table."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore import questions
from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.dataset import Dataset
from dpcore.mean import Target, VarianceSource
from dpcore.plan import parameters as plan_parameters
from dpcore.plan.parameters import MEAN_FIELDS, LineStatistic, PlanParameters
from dpcore.report import script
from pages.plan.question import QUESTION, RANGE_FIELDS
from pages.shared.render import question_page
from pages.shared.screen import layout

RELEASE, QUANTILE, WANTED_ERROR, WEIGHT = COLUMN_NAMES = ["Release", "q", "Wanted error", "Weight"]
EDITOR_WIDTH = 480
"""Pixels: a table alone does not make the popover wide."""


def read_inputs(slots: layout.PageSlots) -> PlanParameters | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused."""
    state, key = st.session_state, QUESTION.key

    def is_hidden(name: str) -> bool:
        """Return True for fields that no line needs: the range, and settings of a mean."""
        parsed_lines = plan_parameters.parse_lines(state[key("lines")], Problems())
        if name in RANGE_FIELDS:
            return not any(line.statistic.needs_range for line in parsed_lines)
        if name not in MEAN_FIELDS:
            return False
        reads_table = (
            state[key("target")] is Target.TABLE
            and state[key("variance_source")] is VarianceSource.FROM_VALUES
        )
        has_mean = any(line.statistic is LineStatistic.MEAN for line in parsed_lines)
        return not has_mean or (reads_table and name in ("likeness", "user_share"))

    def draw_editor() -> None:
        """Draw the popover with the table of lines."""
        with st.popover("Numbers to release", icon=":material/table_rows:", key="plan_lines"):
            _draw_editor()

    parameters: PlanParameters | None = question_page.read_inputs(
        QUESTION, slots, is_hidden=is_hidden, widgets={"lines": draw_editor}
    )
    return parameters


def _draw_editor() -> None:
    """Draw the lines as a table; its content becomes their text, which the link carries."""
    state = st.session_state
    text, round_key, base_key = (QUESTION.key(name) for name in ("lines", "editor_round", "editor_base"))
    if state[text] != state.get(QUESTION.key("written")) or round_key not in state:
        # They were set elsewhere: by a link, by new data, by another page. The editor starts afresh.
        state[round_key] = state.get(round_key, 0) + 1
    editor_key = f"{QUESTION.key('editor_')}{state[round_key]}"
    if editor_key not in state:
        # The editor forgets its edits where it is not drawn; then it starts from what they led to.
        state[base_key] = state[text]
    edited_frame = st.data_editor(
        build_frame(state[base_key]),
        num_rows="dynamic",
        hide_index=True,
        width=EDITOR_WIDTH,
        placeholder="",
        key=editor_key,
        column_config={
            RELEASE: st.column_config.SelectboxColumn(
                options=[statistic.value for statistic in LineStatistic], required=True
            ),
            QUANTILE: st.column_config.NumberColumn(help="0.5, the median, if empty", format="%g", width=70),
            WANTED_ERROR: st.column_config.TextColumn(
                help="5% (of a quantile: of the rows), or 12 in its own unit; 5% where empty",
                width=120,
            ),
            WEIGHT: st.column_config.NumberColumn(
                help="Of its squared error; 1 where empty", format="%g", width=90
            ),
        },
        alt="Released numbers, wanted errors and weights",
    )
    st.caption("The last, empty row adds a line.")
    state[text] = state[QUESTION.key("written")] = write_lines(edited_frame)


def build_frame(text: str) -> pd.DataFrame:
    """Build the table of lines from their text; a line that cannot be read stays as it was entered."""
    rows = [
        (statistic, quantile, wanted_error or None, None if weight == 1.0 else weight)
        for statistic, quantile, wanted_error, weight in plan_parameters.tabulate_lines(text)
    ]
    types = dict(zip(COLUMN_NAMES, (object, float, object, float), strict=True))
    return pd.DataFrame(rows, columns=COLUMN_NAMES).astype(types)


def write_lines(frame: pd.DataFrame) -> str:
    """Return the lines of a table as text, without rows that name no release; other faults stay for the check."""
    texts = []
    for statistic, quantile, wanted_error, weight in frame[COLUMN_NAMES].itertuples(index=False, name=None):
        if not isinstance(statistic, str) or not statistic:
            continue
        text = statistic
        if statistic == LineStatistic.QUANTILE.value:
            is_median = pd.isna(quantile) or quantile == 0.5
            text = "median" if is_median else f"quantile {wording.digits(float(quantile))}"
        if isinstance(wanted_error, str) and (words := wanted_error.replace(";", " ").split()):
            text += f" within {' '.join(words)}"
        if not pd.isna(weight) and weight != 1.0:
            text += f" weight {wording.digits(float(weight))}"
        texts.append(text)
    return "; ".join(texts)


def write_settings(dataset: Dataset, answer: Answer) -> str:
    """Return the settings as a file for the command."""
    call = questions.call_with(QUESTION.name, answer.parameters)
    assert call is not None
    name, settings = call
    settings = settings | {"lines": [line.text for line in answer.parameters.parsed_lines]}
    return script.write_settings(
        (name, settings), questions.command_of(name), dataset, questions.QUESTIONS[name].column_arguments
    )
