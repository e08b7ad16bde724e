"""What a person enters on the page Many tasks, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import MultitaskParameters
from pages.multitask.question import QUESTION, generator_fields
from pages.shared.fields import fields
from pages.shared.screen import layout

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
        fields.draw_all(QUESTION, "delta", "exponent")
    with places.more("tasks_more"):
        source = fields.draw(QUESTION, "source")
        fields.draw_all(QUESTION, *generator_fields(source), "loss")
        if fields.draw(QUESTION, "fit") is BudgetFit.LOGARITHMIC:
            fields.draw(QUESTION, "log_constant")
        fields.draw(QUESTION, "max_tasks")
    with places.notes:
        parameters: MultitaskParameters | None = fields.build(QUESTION, optional=("max_tasks", *IN_TABS))
    return parameters


def offer_exponent(exponent: float) -> None:
    """A button that takes this exponent in place of the one that was chosen."""
    fields.button(f"Use μ = {wording.entered(exponent)}", "tasks_use_best", "check", _use, exponent)


def _use(exponent: float) -> None:
    st.session_state[QUESTION.key("exponent")] = exponent


def counts() -> None:
    """The fields of the private counts."""
    fields.columns(QUESTION, [3, 3, 4, 2], "count_share", "count_max_tasks", "count_covers", "count_seed")


def experiment() -> bool:
    """The fields of the experiment and its button; returns whether it was pressed."""
    names = ("experiment_epsilons", "experiment_users", "experiment_repeats", "experiment_seed")
    columns = fields.columns(QUESTION, [3, 3, 2, 2, 3], *names)
    with columns[4]:
        return fields.button("Run", "tasks_run", "play_arrow", width="stretch", is_main=True)
