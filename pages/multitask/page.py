"""Many tasks: who gets a user's privacy budget when one model per task is trained."""

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.multitask.answer import MultitaskSolution, build_answer
from dpcore.multitask.parameters import MultitaskParameters
from pages.multitask import cached, counts, experiment, inputs, optimum, tabs
from pages.multitask.question import QUESTION
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session, stand_ins

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
        found = load(parameters)
    answer = None if found is None else build_answer(data, parameters, found)
    if answer is not None:
        with places.figure:  # First, so that the browser draws it while the rest is on its way.
            plots.show(answer.plots["many-tasks-buckets"]())
        with places.answer:
            cards.answer(answer, key="tasks_card")
            # In the field it would be one of the settings, which links, reports and scripts hold: of private data the
            # best exponent is no setting, and whoever takes it over types it.
            is_private, (best, _) = (
                answer.disclosure is Disclosure.PRIVATE,
                answer.solution.comparison.recommendation,
            )
            if best != parameters.exponent and not is_private:
                inputs.offer_exponent(best)
    with places.below:
        show_tabs(answer, parameters)


def load(parameters: MultitaskParameters) -> MultitaskSolution | None:
    """What was found; sentences on the page where there is nothing, or where its tasks are not the data's."""
    try:
        found = cached.found(data.digest, parameters, data)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None
    if found is None:
        st.info(NO_TASKS if data.release is None else NO_TASKS_RELEASED, icon=":material/info:")
    if data.pairs is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            if found is not None:
                has_none = "A DP release has" if data.release is not None else "The data in use have"
                st.caption(f"{has_none} no tasks, so these are generated.", width="content")
            stand_ins.draw_data_link("Bring data with tasks")
    return None if found is None else replace(found, optima=optimum.known_optima(found.comparison))


def show_tabs(answer: Answer | None, parameters: MultitaskParameters) -> None:
    """What stands behind the answer, and the other figures; the experiment needs no tasks of the data's."""
    of: dict[str, answer_tabs.Content] = {}
    studies = {
        "Budget": lambda: tabs.show_budget(parameters),
        "Experiment": lambda: experiment.show(parameters),
    }
    if answer is not None:
        found = answer.solution
        of = {
            layout.BEHIND: lambda: tabs.show_behind(answer),
            "Tasks": {
                "Weights": lambda: plots.draw_beside(
                    answer.plots["many-tasks-exponents"](), answer.plots["many-tasks-weights"]()
                ),
                "Users and tasks": lambda: tabs.show_users_and_tasks(found),
                "Exact optimum": lambda: optimum.show_optimum(found.comparison),
                "Private counts": lambda: counts.show_counts(found),
            },
        }
    of["Studies"] = studies
    if answer is not None:
        of[layout.DOWNLOADS] = lambda: tabs.show_files(answer)
    of[layout.COMPUTED] = lambda: st.markdown(QUESTION.formula())
    answer_tabs.draw_tabs(of, QUESTION.key("tabs"))


layout.show(QUESTION, body)
