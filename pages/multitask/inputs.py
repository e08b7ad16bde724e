"""What a person enters on the page Many tasks, as one validated parameters object."""

from __future__ import annotations

import zlib

import streamlit as st

from dpcore.common import wording
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import MultitaskParameters
from pages.multitask.answer import MultitaskView
from pages.multitask.question import QUESTION, generator_fields
from pages.shared import fields, layout

STEP = 0.025
"""Of the slider of mu: every mu that the curve tries is one of its steps, so that the best one can be set."""
IN_TABS = (
    "count_share",
    "count_max_tasks",
    "count_seed",
    "experiment_epsilons",
    "experiment_users",
    "experiment_repeats",
    "experiment_seed",
)
"""Fields that stand in tabs, which a refused question does not show."""


def read(places: layout.Places) -> MultitaskParameters | None:
    """Show the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    with places.line:
        fields.draw(QUESTION, "delta")
        _show_exponent()
    with places.more("tasks_more"):
        source = fields.draw(QUESTION, "source")
        for name in generator_fields(source):
            fields.draw(QUESTION, name)
        fields.draw(QUESTION, "loss")
        if fields.draw(QUESTION, "fit") is BudgetFit.LOGARITHMIC:
            fields.draw(QUESTION, "log_constant")
        fields.draw(QUESTION, "max_tasks")
    with places.notes:
        found: MultitaskParameters | None = fields.build(QUESTION, aside=("max_tasks", *IN_TABS))
    return found


def _show_exponent() -> None:
    declared = QUESTION.field("exponent")
    st.slider(
        declared.label,
        0.0,
        1.0,
        step=STEP,
        format="%.3g",
        key=QUESTION.key("exponent"),
        persist_state="session",
        help=declared.help,
        width=declared.width or "stretch",
    )


def offer_exponent(exponent: float) -> None:
    """A button that takes this exponent in place of the one that was chosen."""
    st.button(
        f"Use μ = {wording.entered(exponent)}",
        key="tasks_use_best",
        icon=":material/check:",
        on_click=_use,
        args=(exponent,),
    )


def _use(exponent: float) -> None:
    st.session_state[QUESTION.key("exponent")] = exponent


def axis_version(view: MultitaskView) -> str:
    """Names the axes' ranges: they are offered anew with other tasks, another loss or another fit."""
    rule = view.rule.with_exponent(0.0)
    return f"{zlib.crc32(repr((view.tasks.key, view.problem.loss, rule)).encode()):08x}"


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
