"""Many tasks: who gets a user's privacy budget when one model per task is trained."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpcore.common.errors import InvalidInput
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from pages.multitask import (
    answer,
    cached,
    card,
    counts,
    experiment,
    inputs,
    optimum,
    result_card,
)
from pages.multitask import (
    tabs as multitask_tabs,
)
from pages.multitask.formula import FORMULA
from pages.multitask.question import QUESTION
from pages.shared import fields, keys, lazy_tabs, session

NO_TASKS = (
    "The data in use do not say who contributes to which task: that needs a table with one row per contribution and "
    "a task column. Or choose generated tasks above."
)
NO_TASKS_RELEASED = (
    "A DP release holds only how many users have how many rows, not who contributes to which task. Choose generated "
    "tasks above, or bring data with tasks."
)

data = session.dataset()
st.title("Many tasks")
st.markdown(
    "You train one model per task (product, group, class …), and a user may contribute to many. All that a "
    "user adds is protected by one budget β. **Which tasks should get it?** Small tasks need it more, and "
    "giving it to them costs less."
)


def load(parameters: MultitaskParameters | None) -> answer.MultitaskView | None:
    """The answer; sentences on the page where there is none."""
    if parameters is None:
        return None
    try:
        view = cached.answer(data.digest, parameters, data)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None
    if view is None:
        st.info(NO_TASKS if data.release is None else NO_TASKS_RELEASED, icon=":material/info:")
        st.page_link(session.page_file("Your data"), label="Bring data with tasks", icon=":material/upload:")
    return view


def show_what_is_used(
    view: answer.MultitaskView, parameters: MultitaskParameters, place: DeltaGenerator
) -> None:
    """The graph and the budget in a line."""
    words = card.what_is_used(view.tasks, cached.budget(parameters.target))
    if parameters.source is not TaskSource.DATA and data.pairs is None:
        has_none = "A DP release has" if data.release is not None else "The data in use have"
        words += f" {has_none} no tasks, so these are generated."
    place.caption(words)


def divide(parameters: MultitaskParameters | None) -> None:
    """The first tab: everything on the tasks in use."""
    with st.container(border=True, key="tasks_inputs"):
        inputs.question(data)
        used = st.container()
    view = load(parameters)
    if view is not None and parameters is not None:
        show_what_is_used(view, parameters, used)
        result_card.show(view, parameters)
    tabs = {
        "Sizes and μ": lambda: multitask_tabs.when_there(view, multitask_tabs.show_sizes),
        "Users": lambda: multitask_tabs.when_there(view, multitask_tabs.show_users),
        "Tasks": lambda: multitask_tabs.when_there(view, multitask_tabs.show_table),
        "Exact optimum": lambda: multitask_tabs.when_there(view, optimum.show_optimum),
        "Private counts": lambda: counts.show_counts(view, parameters),
        "Budget": lambda: multitask_tabs.show_budget(parameters),
        "Downloads": lambda: multitask_tabs.when_there(
            view, lambda there: multitask_tabs.show_files(there, parameters)
        ),
        "How computed": lambda: st.markdown(FORMULA),
    }
    lazy_tabs.draw(tabs, QUESTION.key("parts"))


fields.start(QUESTION)
problems = st.container()
tasks_tab, experiment_tab = st.tabs(
    ["Divide the budget", "The paper's experiment"], key=QUESTION.key("tabs"), on_change="rerun"
)
with problems:
    chosen = inputs.read()
st.session_state[keys.PAGE_PARAMETERS] = chosen
if tasks_tab.open:
    with tasks_tab:
        divide(chosen)
if experiment_tab.open:
    with experiment_tab:
        experiment.show(chosen)
