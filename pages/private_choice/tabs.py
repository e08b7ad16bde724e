"""The tabs below the answer of Choose privately."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from pages.private_choice import actions, answer, cached, card, methods, report, work
from pages.private_choice import figures as private_charts
from pages.private_choice.answer import Copies, PrivateView
from pages.shared.card import cards
from pages.shared.fields import jobs
from pages.shared.figures import figures
from pages.shared.report import take_away
from pages.shared.session import session

PROGRESS_HEIGHT = 44
"""In pixels: kept free for a line of progress, so that nothing moves when it comes and goes."""


def behind(view: PrivateView, answer_card: Answer) -> None:
    """What the two ways are, what either costs, and what is assumed."""
    st.markdown(
        f"- **Private copy.** {actions.COPY_IS}\n- **Direct choice.** {actions.choice_is(view.parameters.wanted)}"
    )
    cards.behind(answer_card)


def leak(view: PrivateView, data: Dataset) -> None:
    """Why a bound chosen in the clear leaks."""
    released = data.release is not None
    found = cached.leak(data.digest, answer.without_budget(view.parameters), data)
    st.markdown(
        f"{card.leak_sentence(view, found, released)} The ε of the release does not cover that: there are two "
        "remedies, and each costs an ε of its own."
    )
    figures.show_picture(private_charts.leak_picture(found, data.provenance, released))
    cards.label(data.provenance)


def over_users(view: PrivateView, data: Dataset) -> None:
    """What either way would cost with fewer users or more."""
    st.markdown("Every user is taken so many times: shares stay, noise matters less.")
    found = cached.over_users(data.digest, view.parameters, data)
    copies = work.over_users(data, view.parameters)
    figures.show_picture(private_charts.over_users_picture(view, found, copies, data.provenance))
    show_progress(work.USERS.key, copies)
    cards.label(data.provenance)


def show_progress(key: str, copies: Copies) -> None:
    """How far the simulation is, in one line that is always there."""
    with st.container(height=PROGRESS_HEIGHT, border=False):
        doing = "Simulating private copies" + ("; pale: settings before" if copies.earlier else "")
        if not jobs.watch(key, doing) and copies.cancelled:
            st.caption("The simulation of private copies was stopped early.")


def files(view: PrivateView, data: Dataset, copies: Copies) -> None:
    """The whole answer, with what was drawn."""
    drawn, ledger, source = actions.choices(), session.ledger(), take_away.source()
    take_away.draw(
        "private",
        data.provenance,
        lambda: report.private_report(view, data, copies, drawn, ledger, source),
        methods.methods(view, data, drawn, ledger),
    )
