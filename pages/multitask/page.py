"""Many tasks: who gets a user's privacy budget when one model per task is trained."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from pages.multitask import answer, cached, card, code, counts, experiment, inputs, optimum, tabs
from pages.multitask import figures as multitask_charts
from pages.multitask.question import QUESTION
from pages.shared import cards, fields, figures, keys, layout, lazy_tabs, missing, ranges, session

NO_TASKS = (
    "The data in use do not say who contributes to which task: that needs a table with one row per contribution and "
    "a task column. Or choose generated tasks under *More settings*."
)
NO_TASKS_RELEASED = (
    "A DP release holds only how many users have how many rows, not who contributes to which task. Choose generated "
    "tasks under *More settings*, or bring data with tasks."
)

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    with places.notes:
        view = load(parameters)
    said = None if view is None else answer_of(view, parameters)
    if view is not None and said is not None:
        with places.figure:  # First, so that the browser draws it while the rest is on its way.
            show_buckets(view, cached.budget(parameters.target).exact)
        with places.answer:
            cards.answer(said, key="tasks_card")
            # In the field it would be one of the settings, which links, reports and scripts hold: of private data the
            # best exponent is no setting, and whoever takes it over types it.
            is_private = view.tasks.disclosure is Disclosure.PRIVATE
            if view.recommended[0] != view.rule.exponent and not is_private:
                inputs.offer_exponent(view.recommended[0])
    with places.below:
        show_tabs(view, parameters, said)


def load(parameters: MultitaskParameters) -> answer.MultitaskView | None:
    """The answer; sentences on the page where there is none, or where its tasks are not the data's."""
    try:
        view = cached.answer(data.digest, parameters, data)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None
    if view is None:
        st.info(NO_TASKS if data.release is None else NO_TASKS_RELEASED, icon=":material/info:")
    if data.pairs is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            if view is not None:
                has_none = "A DP release has" if data.release is not None else "The data in use have"
                st.caption(f"{has_none} no tasks, so these are generated.", width="content")
            missing.bring("Bring data with tasks")
    return view


def answer_of(view: answer.MultitaskView, parameters: MultitaskParameters) -> Answer:
    """The card with the code to take away."""
    budgets, optima = cached.budget(parameters.target), optimum.known_optima(view)
    own = data if parameters.source is TaskSource.DATA else None
    return replace(
        card.card(view, budgets, optima),
        code=code.of_tasks(view, parameters.epsilon, parameters.delta, budgets.exact, own),
    )


def show_buckets(view: answer.MultitaskView, budget: float) -> None:
    """The main figure: error bounds from tail to head."""
    limits = multitask_charts.bucket_limits(view.curve, [multitask_charts.uniform_sampling(view)])
    note = "The axis stays put while you move μ, so that figures can be compared."
    with ranges.under_figure("tasks_ranges", "Axis range", note) as (chart, below):
        errors = ranges.range_control(
            "Error bound (1 = uniform weights)", f"tasks_errors_{inputs.axis_version(view)}", *limits
        )
    figures.show_picture(multitask_charts.bucket_picture(view, budget, errors), below, chart)


def show_tabs(
    view: answer.MultitaskView | None, parameters: MultitaskParameters, said: Answer | None
) -> None:
    """What stands behind the answer, and the other figures; the experiment needs no tasks of the data's."""
    of: dict[str, Callable[[], object]] = {}
    if view is not None and said is not None:
        of = {
            layout.BEHIND: lambda: tabs.show_behind(view, parameters, said),
            "Weights": lambda: tabs.show_weights(view),
            "Users and tasks": lambda: tabs.show_users_and_tasks(view, parameters),
            "Exact optimum": lambda: optimum.show_optimum(view),
            "Private counts": lambda: counts.show_counts(view, parameters),
        }
    of["Budget"] = lambda: tabs.show_budget(parameters)
    of["Experiment"] = lambda: experiment.show(parameters)
    if view is not None:
        of[layout.DOWNLOADS] = lambda: tabs.show_files(view, parameters)
    of[layout.COMPUTED] = lambda: st.markdown(QUESTION.formula())
    lazy_tabs.draw(of, QUESTION.key("tabs"))


layout.show(QUESTION, body)
