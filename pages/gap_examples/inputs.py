"""What a person enters on the page on the largest gap, step by step, as one validated parameters object."""

from __future__ import annotations

import dataclasses

import pandas as pd
import streamlit as st

from dpcore import mean
from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput
from dpcore.gap_examples.batch import worst_noise_ratio
from dpcore.gap_examples.compare import noise_ratio
from dpcore.gap_examples.parameters import (
    MAX_TABLE_SIZE,
    MAX_TABLE_USERS,
    GapParameters,
    table_histogram,
    table_text,
)
from dpcore.gap_examples.two_groups import supremum, theorem_2_problem
from pages.gap_examples.question import QUESTION
from pages.shared.fields import fields, jobs
from pages.shared.screen import layout
from pages.shared.session import stand_ins

SIZE_COLUMN, USERS_COLUMN = "Rows per user", "Users"


def read(places: layout.Places) -> GapParameters | None:
    """Show the main inputs. Returns None, with the sentences on the page, where they do not hold together.

    What stands in the tabs is set aside: a bad one is named, and the answer goes on without it.
    """
    fields.start(QUESTION)
    variance = QUESTION.key("value_variance")
    with places.line:
        source = fields.draw(QUESTION, "variance_source")
        entered = source is mean.VarianceSource.ENTERED
        if not entered:
            fields.refill(QUESTION, "value_variance")
        else:
            fields.draw(QUESTION, "value_variance")
    with places.notes:
        if entered:
            stand_ins.say_cleared({variance: "σ²"})
        parameters: GapParameters | None = fields.build(
            QUESTION,
            unused=() if entered else ("value_variance",),
            aside=[name for name in QUESTION.fields if name not in ("variance_source", "value_variance")],
        )
    return parameters


def with_table(chosen: GapParameters) -> GapParameters:
    """The question with the table as it was last edited, which is known only once the editor is drawn."""
    return dataclasses.replace(chosen, table=st.session_state[QUESTION.key("table")])


def two_groups() -> None:
    """The sliders of the step on two groups."""
    with st.grid(3, min_column_width=220):
        fields.draw_all(QUESTION, "light_users", "heavy_size", "light_size")


def search() -> bool:
    """Where the search looks and for how long; whether to start."""
    with st.grid(4, min_column_width=170):
        fields.draw_all(QUESTION, "num_groups", "evaluations", "seed")
        with st.container(height="stretch", vertical_alignment="bottom"):
            return st.button("Search", type=fields.main_button(), icon=":material/search:", key="gap_search")


def simulation() -> bool:
    """What to simulate and how often; whether to start."""
    with st.grid(3, min_column_width=220):
        fields.draw_all(QUESTION, "simulated", "runs")
        with st.container(height="stretch", vertical_alignment="bottom"):
            return st.button(
                "Simulate", type=fields.main_button(), icon=":material/casino:", key="gap_simulate"
            )


def table() -> None:
    """The editable table of one's own instance, its noise, and some to start from."""
    state = st.session_state
    times = state.setdefault(QUESTION.key("table_round"), 0)
    editor = f"{QUESTION.key('table_editor_')}{times}"
    if editor not in state:
        # The editor forgets its edits where it is not drawn; then it starts from what they led to.
        state[QUESTION.key("table_base")] = state[QUESTION.key("table")]
    base = table_histogram(state[QUESTION.key("table_base")])
    edited = st.data_editor(
        pd.DataFrame({SIZE_COLUMN: base.sizes, USERS_COLUMN: base.users}),
        num_rows="dynamic",
        hide_index=True,
        key=editor,
        column_config={
            SIZE_COLUMN: st.column_config.NumberColumn(
                min_value=1, max_value=MAX_TABLE_SIZE, step=1, required=True, format="localized"
            ),
            USERS_COLUMN: st.column_config.NumberColumn(
                min_value=1, max_value=MAX_TABLE_USERS, step=1, required=True, format="localized"
            ),
        },
        alt="Your instance: groups of users with their rows per user and their number",
    )
    try:
        state[QUESTION.key("table")] = _text(edited)
    except InvalidInput as refused:
        fields.say(refused.problems)
        st.caption("The figures beside are for the table as it last held together.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fields.draw(QUESTION, "table_noise_ratio")
        st.button(
            "Worst noise",
            on_click=_worst_noise,
            key="gap_worst_noise",
            icon=":material/vertical_align_top:",
            help="Set ρ where this table's ratio is largest.",
        )
    _starts()


def _text(edited: pd.DataFrame) -> str:
    filled = edited.dropna()
    if filled.empty:
        problems = Problems()
        problems.add("the table is empty", remedy="Give at least one group of users")
        problems.raise_if_any()
    return table_text(filled[SIZE_COLUMN].to_numpy(), filled[USERS_COLUMN].to_numpy())


def _worst_noise() -> None:
    histogram = table_histogram(st.session_state[QUESTION.key("table")])
    ratio = worst_noise_ratio(histogram.sizes, histogram.users)
    st.session_state[QUESTION.key("table_noise_ratio")] = float(f"{ratio:.9g}")


def _starts() -> None:
    problems = {
        "The paper's, g = 10": theorem_2_problem(10),
        "Nearly the largest": supremum().problem(),
    }
    done = jobs.result_of(QUESTION.key("search_job"))
    if done is not None:
        problems["What the search found"] = done[1].comparison.problem
    with st.container(horizontal=True):
        for i, (name, problem) in enumerate(problems.items()):
            st.button(name, key=f"gap_start_{i}", on_click=_fill, args=(problem,), icon=":material/input:")


def _fill(problem: mean.MeanProblem) -> None:
    histogram = problem.histogram
    st.session_state[QUESTION.key("table")] = table_text(histogram.sizes, histogram.users)
    st.session_state[QUESTION.key("table_noise_ratio")] = float(f"{noise_ratio(problem):.9g}")
    st.session_state[QUESTION.key("table_round")] += 1
