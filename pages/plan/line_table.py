"""The plan's lines as a table that is edited in place, and the buttons that add a line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.wording import capitalise, format_digits
from dpcore.dataset import Contribution, Dataset
from dpcore.plan import lines as plan_lines
from dpcore.plan.answer import words
from dpcore.plan.lines import Line, LineStatistic, list_missing_lines
from dpcore.plan.solution import PlanSolution
from pages.plan.question import QUESTION
from pages.shared.fields import fields
from pages.shared.session import session

_FILES = Path(__file__).parent
_mount_table = st.components.v2.component(
    "sweetspot_plan",
    css=(_FILES / "line_table.css").read_text(encoding="utf-8"),
    js=(_FILES / "line_table.js").read_text(encoding="utf-8"),
)
_TABLE_KEY = "plan_table"
EMPTY_PLAN_TEXT = (
    "## The plan is empty\n\nAdd every statistic that you will release. The plan then gives each one its share of ε, "
    "its bound and its error."
)
EXAMPLE_LINES = "users", "rows", "mean", "median"
"""Lines of the example, as far as the data have them."""
SPREAD_NAMES = LineStatistic.VARIANCE.value, LineStatistic.DEVIATION.value
"""Lines of which a plan has one for each column."""
LABEL_BY_LINE = {"users": "number of users", "rows": "number of rows"}
"""What is added, by lines whose text says too little."""


def draw_table(dataset: Dataset, solution: PlanSolution | None = None) -> None:
    """Draw the table, or what an empty plan can hold, and the buttons that add; without a solution targets alone."""
    lines_text = st.session_state[QUESTION.get_key("lines")] or ""
    labels_and_targets = plan_lines.split_lines(lines_text)
    if labels_and_targets:
        solution_rows = (
            words.tabulate_plan(solution) if solution is not None else [{}] * len(labels_and_targets)
        )
        plan_rows = [{"label": line_label, "target": target} for line_label, target in labels_and_targets]
        table_rows = [
            plan_cells | solution_cells
            for plan_cells, solution_cells in zip(plan_rows, solution_rows, strict=True)
        ]
        _mount_table(key=_TABLE_KEY, data=table_rows, height="content", on_edited_change=apply_edit)
        if solution is not None and (missed_text := words.describe_all_missed(solution)):
            st.markdown(missed_text)
    else:
        st.markdown(EMPTY_PLAN_TEXT)
        *first_lines, last_line = [
            line for line in EXAMPLE_LINES if line in list_offered_statistics(dataset)
        ] or [""]
        if first_lines:
            button_label = f"Start with an example: {', '.join(first_lines)} and {last_line}"
            example_lines = [*first_lines, last_line]
            fields.draw_button(
                button_label, "plan_example", "play_arrow", add_lines, example_lines, is_main=True
            )
    offered_lines = list_missing_lines(lines_text, list_offered_statistics(dataset))
    if any(line.label in SPREAD_NAMES for line in plan_lines.parse_lines(lines_text, Problems())):
        offered_lines = [line_text for line_text in offered_lines if line_text not in SPREAD_NAMES]
    _draw_add_buttons(offered_lines, dataset)
    missing_phrases = ["a sum, a mean or a quantile needs data with values"] * (dataset.values is None)
    missing_phrases += ["statistics per group need data with groups"] * (dataset.pairs is None)
    if missing_phrases and not labels_and_targets:
        st.caption(f"{capitalise('; '.join(missing_phrases))}.")
        session.draw_data_link("Upload data")


def list_offered_statistics(dataset: Dataset) -> list[str]:
    """List the names of the statistics that a plan on these data can hold; of quantiles only the median.

    The list is empty if what users contribute is not counted in rows.
    """
    if dataset.contribution is not Contribution.ROWS:
        return []
    has_sums = dataset.values is not None or (dataset.totals is not None and bool(dataset.totals.column))
    statistic_names = ["users", "rows"] + ["sum"] * has_sums
    if dataset.values is not None:
        statistic_names += ["mean", *SPREAD_NAMES, "median"]
    if dataset.pairs is not None:
        statistic_names += [LineStatistic.GROUP_USERS.value, LineStatistic.GROUP_ROWS.value]
        statistic_names += [LineStatistic.GROUP_SUMS.value] * (dataset.pairs.sums is not None)
    return statistic_names


def _draw_add_buttons(line_texts: Sequence[str], dataset: Dataset) -> None:
    """Draw a button per line that can be added, and forms for any quantile and column if there are such values."""
    with st.container(horizontal=True, key="plan_add"):
        for line_text in line_texts:
            button_key = f"plan_add_{line_text.replace(' ', '_')}"
            button_label = f"Add {LABEL_BY_LINE.get(line_text, line_text)}"
            fields.draw_button(button_label, button_key, "add", add_lines, [line_text])
        if dataset.further_datasets:
            with st.popover("Add another column", icon=":material/add:", key="plan_column_form"):
                _draw_column_form(dataset.value_columns[1:])
        if dataset.values is not None:
            with st.popover("Add a quantile", icon=":material/add:", key="plan_quantile_form"):
                q = st.number_input(
                    "Quantile, between 0 and 1", value=0.9, key="plan_quantile", format="%g", step=0.05
                )
                if 0.0 < q < 1.0:
                    add_line = partial(add_lines, [Line(LineStatistic.QUANTILE, q).text])
                    fields.draw_button(
                        f"Add quantile {format_digits(q)}", "plan_add_quantile", "add", add_line
                    )
                else:
                    st.caption(":material/error: A quantile lies between 0 and 1.")


def _draw_column_form(column_names: Sequence[str]) -> None:
    """Draw the form that adds a line about one of these columns, with a range of its own if the statistic needs one."""
    statistic_names = [LineStatistic.MEAN.value, LineStatistic.SUM.value, *SPREAD_NAMES]
    column = st.selectbox("Column", column_names, key="plan_column")
    statistic = LineStatistic(st.selectbox("Statistic", statistic_names, key="plan_column_statistic"))
    lower, upper = None, None
    if statistic.needs_range:
        lower = st.number_input("Lowest value", value=None, key="plan_column_lower", format="%g")
        upper = st.number_input("Highest value", value=None, key="plan_column_upper", format="%g")
        st.caption("From what the quantity is, not from data.")
    try:
        line_text = Line(statistic, column=column, lower=lower, upper=upper).text
    except InvalidInput:
        st.caption(":material/error: Enter a lowest value, and a highest one above it.")
    else:
        fields.draw_button("Add", "plan_add_column", "add", add_lines, [line_text])


def add_lines(line_texts: Sequence[str]) -> None:
    """Add the lines that the plan lacks to its text."""
    lines_key = QUESTION.get_key("lines")
    lines_text = (st.session_state.get(lines_key) or "").strip("; ")
    st.session_state[lines_key] = "; ".join(
        filter(None, [lines_text, *list_missing_lines(lines_text, line_texts)])
    )


def apply_edit() -> None:
    """Change the target of a line in the plan's text, or remove the line, as a person did in the table.

    It is called before the page runs. An edit of a line that has changed since is ignored.
    """
    table_edit, lines_key = st.session_state[_TABLE_KEY].edited, QUESTION.get_key("lines")
    lines_text = st.session_state[lines_key] or ""
    line_labels = [line_label for line_label, _ in plan_lines.split_lines(lines_text)]
    # The browser is not believed, and a press may be about a table that has changed since.
    line_index = table_edit.get("line") if isinstance(table_edit, dict) else None
    if (
        type(line_index) is not int
        or not 0 <= line_index < len(line_labels)
        or line_labels[line_index] != table_edit.get("label")
    ):
        return
    target_text = table_edit.get("target")
    if isinstance(target_text, str):
        st.session_state[lines_key] = plan_lines.change_target(lines_text, line_index, target_text[:60])
    else:
        st.session_state[lines_key] = plan_lines.remove_line(lines_text, line_index)
