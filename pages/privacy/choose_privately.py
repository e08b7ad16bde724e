"""Choose privately: a private copy or a direct choice, and what either costs."""

import streamlit as st

from dpcore.errors import InvalidInput
from dpcore.private import comparison, conditions
from dpcore.private.comparison import CopyCurves
from dpcore.private.parameters import PrivateParameters
from pages.parts import (
    cached,
    cards,
    figures,
    jobs,
    keys,
    private_actions,
    private_charts,
    private_inputs,
    private_view,
    session,
)
from pages.parts.private_formula import FORMULA
from pages.parts.text import plain

data = session.dataset()
st.title("Choose privately")
words, picture = st.columns([5, 6])
words.markdown(
    "The best bound depends on the data, so publishing it, or a release made with it, tells something about the users "
    "in them: **one user more, and the bound moves.** The ε of the release does not cover that.\n\n"
    "There are two remedies, and each costs an ε of its own: a **private copy** of the contribution histogram, to "
    "explore for ever, or the **direct choice** of one number."
)


def curves_of(parameters: PrivateParameters) -> CopyCurves | None:
    """Simulated copies for the figures: started by itself, None until it is done."""
    asked = (data.digest, parameters)
    job = st.session_state.get(keys.PRIVATE_CURVES_JOB)
    if job is None or job.question != asked:
        histogram = data.histogram
        jobs.start(
            keys.PRIVATE_CURVES_JOB,
            asked,
            lambda progress, should_stop: comparison.copy_curves(
                parameters, histogram, progress, should_stop
            ),
        )
    done = jobs.result_of(keys.PRIVATE_CURVES_JOB)
    return done[1] if done is not None and done[0] == asked else None


def draw_regret(view: private_view.PrivateView, curves: CopyCurves | None, over_users: bool) -> None:
    """One of the two figures of costs."""
    name = "private_regret_users" if over_users else "private_regret_epsilon"
    heading = (
        "Cost over the number of users, each taken so many times"
        if over_users
        else "Cost over ε of the choice"
    )
    st.markdown(f"**{heading}**")
    figures.show(
        private_charts.regret_figure(view, curves, over_users),
        name,
        private_charts.regret_alt(view, over_users),
        private_view.curve_columns(view, curves, over_users),
        data.provenance,
    )


def draw(parameters: PrivateParameters) -> None:
    """Everything that depends on the inputs."""
    with st.spinner("Computing what either way costs"):
        view = cached.private_answer(data.digest, parameters, data)
    with picture:
        figures.show(
            private_charts.leak_figure(view),
            "private_leak",
            private_charts.leak_alt(view, data.release is not None),
            {"rows_of_added_user": view.added, "chosen_with": view.moved},
            data.provenance,
        )
    with words:
        st.caption(private_view.leak_sentence(view, data.release is not None))
        cards.label(data.provenance)
    curves = curves_of(parameters)
    answer, costs = st.columns([5, 6])
    with answer:
        cards.show(private_view.card(view, data), key="private_card")
    with costs:
        draw_regret(view, curves, over_users=False)
        draw_regret(view, curves, over_users=True)
        if curves is not None and curves.cancelled:
            st.caption("The simulation of copies was stopped early.")
        jobs.watch(keys.PRIVATE_CURVES_JOB, "Simulating private copies")
    private_actions.offer(parameters, data)
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(FORMULA)


chosen = private_inputs.read()
private_actions.released(data)
if chosen is not None:
    st.session_state[keys.PAGE_PARAMETERS] = chosen
    try:
        conditions.checked_users(session.original().dataset.histogram)
        conditions.checked_users(data.histogram)
    except InvalidInput as refused:
        st.error("\n".join(f"- {plain(p.sentence, 300)}" for p in refused.problems), icon=":material/error:")
    else:
        draw(chosen)
