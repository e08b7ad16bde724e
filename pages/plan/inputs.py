"""The inputs of Budget plan, as one validated parameters object; the lines stand in a table."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import streamlit as st

from dpcore import questions
from dpcore.answer import Answer
from dpcore.common.checks import Problems
from dpcore.dataset import Dataset
from dpcore.mean import Target, VarianceSource
from dpcore.plan import lines as plan_lines
from dpcore.plan.parameters import FIELDS_OF_MEAN_LINES, PlanParameters
from dpcore.report import settings_file
from pages.plan.question import QUESTION, RANGE_FIELDS
from pages.shared.data import group_list
from pages.shared.render import question_page
from pages.shared.screen import layout


def read_inputs(slots: layout.PageSlots, dataset: Dataset) -> PlanParameters | None:
    """Draw the inputs and return the parameters.

    Return None, with sentences on the page, if they are refused or a range that a line needs is missing.
    """
    state, get_key = st.session_state, QUESTION.get_key

    def needs_range() -> bool:
        """Return True if a line needs the range of the values, and names none of its own."""
        parsed_lines = plan_lines.parse_lines(state[get_key("lines")], Problems())
        return any(line.statistic.needs_range and line.lower is None for line in parsed_lines)

    def ask_range(unused_names: Collection[str]) -> bool:
        """Ask for L and U and return True if a line needs them and they must be entered; else return False."""
        end_name_by_key = {get_key("lower"): "L", get_key("upper"): "U"}
        return needs_range() and question_page.ask_for_range(dataset, end_name_by_key)

    def is_hidden(field_name: str) -> bool:
        """Return True for fields that no line needs: the range, the groups, and settings of a mean.

        Likeness and user share of a mean are hidden, too, if the values of the table tell them.
        """
        parsed_lines = plan_lines.parse_lines(state[get_key("lines")], Problems())
        if field_name in RANGE_FIELDS:
            return not needs_range()
        if field_name in ("groups", "edges"):
            return not any(line.statistic.is_per_group for line in parsed_lines)
        if field_name not in FIELDS_OF_MEAN_LINES:
            return False
        reads_values = state[get_key("variance_source")] is VarianceSource.FROM_VALUES
        reads_table = reads_values and state[get_key("target")] is Target.TABLE
        has_mean = any(line.statistic.has_mean_settings for line in parsed_lines)
        return not has_mean or (reads_table and field_name in ("likeness", "user_share"))

    parameters: PlanParameters | None = question_page.read_inputs(
        QUESTION,
        slots,
        is_hidden=is_hidden,
        ask_first=ask_range,
        # Lines stand in the table.
        widgets_by_field={"lines": lambda: None, "groups": partial(group_list.draw_group_list, QUESTION)},
    )
    return parameters


def write_settings(dataset: Dataset, answer: Answer) -> str:
    """Write the settings as a TOML file for the command, with the columns of the data."""
    call_with_settings = questions.find_call(QUESTION.name, answer.parameters)
    assert call_with_settings is not None
    call_name, settings = call_with_settings
    if "lines" in settings:
        settings = settings | {"lines": [line.text for line in answer.parameters.parsed_lines]}
    command_name, column_arguments = (
        questions.name_command(call_name),
        questions.QUESTIONS[call_name].column_arguments,
    )
    return settings_file.write_settings((call_name, settings), command_name, dataset, column_arguments)
