"""The inputs of Budget plan, as one validated parameters object; the lines stand in a table."""

from __future__ import annotations

from functools import partial

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
from pages.shared.data import group_list
from pages.shared.render import question_page
from pages.shared.screen import layout

RELEASE, QUANTILE, WANTED_ERROR, WEIGHT = COLUMN_NAMES = ["Release", "q", "Wanted error", "Weight"]
EDITOR_WIDTH = 480
"""Pixels: a table alone does not make the popover wide."""


def read_inputs(slots: layout.PageSlots) -> PlanParameters | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused."""
    state, make_key = st.session_state, QUESTION.key

    def is_hidden(name: str) -> bool:
        """Return True for fields that no line needs: the range, and settings of a mean."""
        parsed_lines = plan_parameters.parse_lines(state[make_key("lines")], Problems())
        if name in RANGE_FIELDS:
            return not any(line.statistic.needs_range for line in parsed_lines)
        if name in ("groups", "edges"):
            return not any(line.statistic.is_per_group for line in parsed_lines)
        if name not in MEAN_FIELDS:
            return False
        reads_values = state[make_key("variance_source")] is VarianceSource.FROM_VALUES
        reads_table = reads_values and state[make_key("target")] is Target.TABLE
        has_mean = any(line.statistic is LineStatistic.MEAN for line in parsed_lines)
        return not has_mean or (reads_table and name in ("likeness", "user_share"))

    parameters: PlanParameters | None = question_page.read_inputs(
        QUESTION,
        slots,
        is_hidden=is_hidden,
        widgets={"lines": _draw_editor, "groups": partial(group_list.draw, QUESTION)},
    )
    return parameters


def _draw_editor() -> None:
    """Draw a popover with the lines as a table; its content becomes their text, which the link carries."""
    state = st.session_state
    lines_key, round_key, base_key = map(QUESTION.key, ("lines", "editor_round", "editor_base"))
    if state[lines_key] != state.get(QUESTION.key("written")) or round_key not in state:
        # They were set elsewhere: by a link, by new data, by another page. The editor starts afresh.
        state[round_key] = state.get(round_key, 0) + 1
    editor_key = f"{QUESTION.key('editor_')}{state[round_key]}"
    if editor_key not in state:
        # The editor forgets its edits where it is not drawn; then it starts from what they led to.
        state[base_key] = state[lines_key]
    statistic_names = [statistic.value for statistic in LineStatistic]
    error_help = "5% (of a quantile: of the rows), or 12 in its own unit; 5% where empty"
    weight_help = "Of its squared error; 1 where empty"
    column_config = {
        RELEASE: st.column_config.SelectboxColumn(options=statistic_names, required=True),
        QUANTILE: st.column_config.NumberColumn(help="0.5, the median, if empty", format="%g", width=70),
        WANTED_ERROR: st.column_config.TextColumn(help=error_help, width=120),
        WEIGHT: st.column_config.NumberColumn(help=weight_help, format="%g", width=90),
    }
    with st.popover("Numbers to release", icon=":material/table_rows:", key="plan_lines"):
        edited_frame = st.data_editor(
            build_frame(state[base_key]),
            num_rows="dynamic",
            hide_index=True,
            width=EDITOR_WIDTH,
            placeholder="",
            key=editor_key,
            column_config=column_config,
            alt="Released numbers, wanted errors and weights",
        )
        st.caption("The last, empty row adds a line.")
    state[lines_key] = state[QUESTION.key("written")] = write_lines(edited_frame)


def build_frame(lines_text: str) -> pd.DataFrame:
    """Build the table of lines from their text; a line that cannot be read stays as it was entered."""
    table_rows = [
        (statistic_name, quantile, wanted_error or None, None if weight == 1.0 else weight)
        for statistic_name, quantile, wanted_error, weight in plan_parameters.tabulate_lines(lines_text)
    ]
    types_by_column = dict(zip(COLUMN_NAMES, (object, float, object, float), strict=True))
    return pd.DataFrame(table_rows, columns=COLUMN_NAMES).astype(types_by_column)


def write_lines(frame: pd.DataFrame) -> str:
    """Return the lines of a table as text, without rows that name no release; other faults stay for the check."""
    line_texts = []
    table_rows = frame[COLUMN_NAMES].itertuples(index=False, name=None)
    for statistic_name, quantile, wanted_error, weight in table_rows:
        if not isinstance(statistic_name, str) or not statistic_name:
            continue
        line_text = statistic_name
        if statistic_name == LineStatistic.QUANTILE.value:
            is_median = pd.isna(quantile) or quantile == 0.5
            line_text = "median" if is_median else f"quantile {wording.digits(float(quantile))}"
        if isinstance(wanted_error, str) and (error_words := wanted_error.replace(";", " ").split()):
            line_text += f" within {' '.join(error_words)}"
        if not pd.isna(weight) and weight != 1.0:
            line_text += f" weight {wording.digits(float(weight))}"
        line_texts.append(line_text)
    return "; ".join(line_texts)


def write_settings(dataset: Dataset, answer: Answer) -> str:
    """Return the settings as a file for the command."""
    call = questions.call_with(QUESTION.name, answer.parameters)
    assert call is not None
    name, settings = call
    settings = settings | {"lines": [line.text for line in answer.parameters.parsed_lines]}
    command, column_arguments = questions.command_of(name), questions.QUESTIONS[name].column_arguments
    return script.write_settings((name, settings), command, dataset, column_arguments)
