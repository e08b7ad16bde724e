"""What a person enters on the page Many tasks, as one validated parameters object."""

from __future__ import annotations

import zlib

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from pages.multitask.answer import MultitaskView
from pages.multitask.question import QUESTION, generator_fields
from pages.shared import fields, session

MARKS = {0.0: "0: uniform", 0.25: "1/4: convex", 0.5: "1/2: strongly convex", 1.0: "1"}
"""The exponents that the paper names."""
STEP = 0.05


def read() -> MultitaskParameters | None:
    """The parameters as entered. None, with the sentences on the page, where they do not fit together."""
    found: MultitaskParameters | None = fields.build(QUESTION, aside=("max_tasks",))
    return found


def question(data: Dataset) -> None:
    """The fields of the question: where the tasks come from, the loss, how weights are fitted, delta."""
    with fields.row():
        source = fields.draw(QUESTION, "source")
        fields.draw(QUESTION, "loss")
        fit = fields.draw(QUESTION, "fit")
        fields.draw(QUESTION, "delta")
        if fit is BudgetFit.LOGARITHMIC:
            fields.draw(QUESTION, "log_constant")
    if source is not TaskSource.DATA:
        _generator(source, link=data.pairs is None)


def _generator(source: TaskSource, link: bool) -> None:
    names = generator_fields(source)
    columns = st.columns(len(names) + link, vertical_alignment="bottom")
    for column, name in zip(columns, names, strict=False):
        with column:
            fields.draw(QUESTION, name)
    if link:
        with columns[-1]:
            st.page_link(
                session.page_file("Your data"),
                label="Bring data",
                icon=":material/upload:",
                help="Bring a table with one row per contribution, a user column and a task column.",
            )


def exponent_slider() -> None:
    """mu, with the values that the paper names as buttons."""
    declared = QUESTION.field("exponent")
    st.slider(
        declared.label,
        0.0,
        1.0,
        step=STEP,
        key=QUESTION.key("exponent"),
        persist_state="session",
        help=declared.help,
    )
    with st.container(horizontal=True, gap="small", key="tasks_marks"):
        for value, label in MARKS.items():
            st.button(label, key=f"tasks_mark_{value:g}", type="tertiary", on_click=_mark, args=(value,))


def axis_version(view: MultitaskView) -> str:
    """Names the axes' ranges: they are offered anew with other tasks, another loss or another fit."""
    rule = view.rule.with_exponent(0.0)
    return f"{zlib.crc32(repr((view.tasks.key, view.problem.loss, rule)).encode()):08x}"


def _mark(value: float) -> None:
    st.session_state[QUESTION.key("exponent")] = value


def counts() -> None:
    """The fields of the private counts."""
    columns = st.columns([3, 3, 4, 2], vertical_alignment="bottom")
    for column, name in (
        (columns[0], "count_share"),
        (columns[1], "count_max_tasks"),
        (columns[3], "count_seed"),
    ):
        with column:
            fields.draw(QUESTION, name)
    covers = QUESTION.field("count_covers")
    columns[2].toggle(
        covers.label, key=QUESTION.key("count_covers"), persist_state="session", help=covers.help
    )


def experiment() -> bool:
    """The fields of the experiment and its button; returns whether it was pressed."""
    columns = st.columns([3, 3, 2, 2, 3], vertical_alignment="bottom")
    epsilons = QUESTION.field("experiment_epsilons")
    columns[0].text_input(
        epsilons.label,
        key=QUESTION.key("experiment_epsilons"),
        persist_state="session",
        max_chars=60,
        help=epsilons.help,
    )
    names = ("experiment_users", "experiment_repeats", "experiment_seed")
    for column, name in zip(columns[1:4], names, strict=True):
        with column:
            fields.draw(QUESTION, name)
    with columns[4]:
        return st.button(
            "Run",
            type=fields.main_button(),
            icon=":material/play_arrow:",
            key="tasks_run",
            width="stretch",
        )
