"""Choose privately: a private copy or a direct choice, and what either costs."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.private_choice import comparison
from dpcore.private_choice.comparison import CopyCurves
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice import actions, cached, card, inputs, report
from pages.private_choice import answer as private_view
from pages.private_choice import figures as private_charts
from pages.private_choice.formula import FORMULA
from pages.private_choice.question import QUESTION
from pages.shared import cards, figures, jobs, keys, session, take_away
from pages.shared.text import plain

PROGRESS_HEIGHT = 44
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
    job = st.session_state.get(QUESTION.key("curves_job"))
    if job is None or job.question != asked:
        histogram = data.histogram
        jobs.start(
            QUESTION.key("curves_job"),
            asked,
            lambda progress, should_stop: comparison.copy_curves(
                parameters, histogram, progress, should_stop
            ),
        )
    done = jobs.result_of(QUESTION.key("curves_job"))
    return done[1] if done is not None and done[0] == asked else None


def draw_regret(view: private_view.PrivateView, curves: CopyCurves | None, over_users: bool) -> None:
    """One of the two figures of costs."""
    name = "private_regret_users" if over_users else "private_regret_epsilon"
    st.markdown(f"**{private_charts.REGRET_TITLES[over_users]}**")
    figures.show(
        private_charts.regret_figure(view, curves, over_users),
        name,
        private_charts.regret_alt(over_users),
        private_view.curve_columns(view, curves, over_users),
        data.provenance,
    )


def draw(parameters: PrivateParameters) -> tuple[private_view.PrivateView, CopyCurves | None]:
    """What either way costs; returns what it shows."""
    with st.spinner("Computing what either way costs"):
        view = cached.private_answer(data.digest, parameters, data)
    with picture:
        figures.show(
            private_charts.leak_figure(view),
            "private_leak",
            private_charts.leak_alt(view, data.release is not None),
            private_view.leak_columns(view),
            data.provenance,
        )
    with words:
        st.caption(card.leak_sentence(view, data.release is not None))
        cards.label(data.provenance)
    curves = curves_of(parameters)
    answer, costs = st.columns([5, 6])
    with answer:
        cards.show(card.card(view, data), key="private_card")
    with costs:
        draw_regret(view, curves, over_users=False)
        draw_regret(view, curves, over_users=True)
        # As high as the progress bar, so that what stands below stays where it is when that goes.
        with st.container(height=PROGRESS_HEIGHT, border=False):
            if not jobs.watch(QUESTION.key("curves_job"), "Simulating private copies") and curves is not None:
                early = ", stopped early" if curves.cancelled else ""
                st.caption(f"Private copies: {comparison.RUNS} simulated at each point{early}.")
    return view, curves


def draw_files(view: private_view.PrivateView, curves: CopyCurves | None) -> None:
    """The whole answer, with what was drawn."""
    drawn, ledger, source = actions.choices(), session.ledger(), take_away.source()
    st.subheader("Downloads")
    take_away.draw(
        "private",
        data.provenance,
        data.digest,
        lambda: report.private_report(view, data, curves, drawn, ledger, source),
    )


chosen, asked, shown = inputs.read(), None, None
if chosen is not None:
    st.session_state[keys.PAGE_PARAMETERS] = chosen
    try:
        checked_users(session.original().dataset.histogram)
        checked_users(data.histogram)
    except InvalidInput as refused:
        st.error("\n".join(f"- {plain(p.sentence, 300)}" for p in refused.problems), icon=":material/error:")
    else:
        shown = draw(chosen)
        asked = chosen
actions.offer(asked, data)
if shown is not None:
    draw_files(*shown)
with st.expander("How this is computed", icon=":material/function:"):
    st.markdown(FORMULA)
