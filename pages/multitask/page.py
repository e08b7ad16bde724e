"""Many tasks: who gets a user's privacy budget when one model per task is trained."""

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.multitask.answer import MultitaskSolution, build_answer
from dpcore.multitask.parameters import MultitaskParameters
from pages.multitask import cached
from pages.multitask import contents as multitask_contents
from pages.multitask.question import QUESTION
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import inputs, layout, plots
from pages.shared.session import session

NO_TASKS = (
    "The data in use do not say who contributes to which task: that needs a table with one row per contribution and "
    "a task column. Or choose generated tasks under *More settings*."
)
NO_TASKS_RELEASED = (
    "A DP release holds only how many users have how many rows, not who contributes to which task. Choose generated "
    "tasks under *More settings*, or bring data with tasks."
)

data = session.dataset()


def body(slots: layout.PageSlots) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read_inputs(QUESTION, slots, draw_more=lambda: fields.draw(QUESTION, "max_tasks"))
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    with slots.notes:
        solution = load(parameters)
    answer = None if solution is None else build_answer(data, parameters, solution)
    if answer is not None:
        with slots.figure:  # First, so that the browser draws it while the rest is on its way.
            plots.show(answer.plots["many-tasks-buckets"]())
        with slots.answer:
            cards.answer(answer, key="tasks_card")
            best, _ = answer.solution.comparison.recommendation
            # Links, reports and scripts hold the field. The best exponent for private data is computed from them, so
            # that users type it if they want it there.
            if best != parameters.exponent and answer.disclosure is not Disclosure.PRIVATE:
                label = f"Use μ = {wording.entered(best)}"
                fields.button(label, "tasks_use_best", "check", use_exponent, best)
    with slots.bottom:
        show_tabs(answer, parameters)


def use_exponent(exponent: float) -> None:
    """Take this exponent in place of the one that was chosen."""
    st.session_state[QUESTION.key("exponent")] = exponent


def load(parameters: MultitaskParameters) -> MultitaskSolution | None:
    """Return the solution; None, with the reason on the page, if there are no tasks or they are refused."""
    try:
        solution = cached.solve(data.digest, parameters, data)
    except InvalidInput as refused:
        fields.show_problems(refused.problems)
        return None
    if solution is None:
        st.info(NO_TASKS if data.release is None else NO_TASKS_RELEASED, icon=":material/info:")
    if data.pairs is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            if solution is not None:
                has_none = "A DP release has" if data.release is not None else "The data in use have"
                st.caption(f"{has_none} no tasks, so these are generated.", width="content")
            session.draw_data_link("Bring data with tasks")
    return (
        None
        if solution is None
        else replace(solution, optima=multitask_contents.known_optima(solution.comparison))
    )


def show_tabs(answer: Answer | None, parameters: MultitaskParameters) -> None:
    """Draw the tabs below the answer; the studies need no tasks."""
    contents: dict[str, layout.Content] = {}
    studies = {
        "Budget": lambda: multitask_contents.show_budget(parameters),
        "Experiment": lambda: multitask_contents.show(parameters),
    }
    if answer is not None:
        solution = answer.solution
        contents = {
            layout.BEHIND: lambda: multitask_contents.show_behind(answer),
            "Tasks": {
                "Weights": lambda: plots.draw_beside(
                    answer.plots["many-tasks-exponents"](), answer.plots["many-tasks-weights"]()
                ),
                "Users and tasks": lambda: multitask_contents.show_users_and_tasks(solution),
                "Exact optimum": lambda: multitask_contents.show_optimum(solution.comparison),
                "Private counts": lambda: multitask_contents.show_counts(solution),
            },
        }
    contents["Studies"] = studies
    if answer is not None:
        contents[layout.DOWNLOADS] = lambda: multitask_contents.show_files(answer)
    contents[layout.COMPUTED] = lambda: st.markdown(QUESTION.formula())
    layout.draw_tabs(contents, QUESTION.key("tabs"))


layout.show(QUESTION, body)
