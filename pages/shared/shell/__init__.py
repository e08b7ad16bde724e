"""The frame around every page: which data are in use, whether they are private, and what is wrong with a link."""

from __future__ import annotations

import atexit
import gc
import importlib
from collections.abc import Sequence

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import InputProblem
from dpcore.common.privacy import Disclosure, format_rounded_up
from dpcore.common.workspace import remove_abandoned
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.card import cards, releases
from pages.shared.server import server
from pages.shared.session import links, session, session_file, shelf
from pages.shared.shell import room

DATA_LABELS = {
    Disclosure.PUBLIC: "public data",
    Disclosure.PRIVATE: "private data",
    Disclosure.DP_RELEASE: "DP release",
}


@st.cache_resource(show_spinner=False)
def freeze_memory() -> bool:
    """Freeze what was imported, once per process: a full collection then takes 6 to 14 ms instead of 130 to 215.

    Also remove files that an app left behind when it was killed.
    """
    remove_abandoned()
    # No first figure needs it, and nearly every page does: 0.2 s that the next visit does not wait for.
    importlib.import_module("pandas")
    server.freeze()
    # Else what is frozen outlives the interpreter, and DuckDB prints a page of "nanobind: leaked".
    atexit.register(gc.unfreeze)
    return True


def show(question: Question) -> None:
    """Draw the sidebar with the data in use, and the problems of a link."""
    # Before anything is drawn; a style takes no place itself.
    st.html(room.STYLE + room.PRESENTING if st.session_state.get(keys.PRESENTING) else room.STYLE)
    links.apply_once(question)
    st.session_state[keys.PAGE_PARAMETERS] = None
    data = session.dataset()
    with st.sidebar, st.container(key="shell_data", gap="xsmall"):
        st.markdown(f"**Data:** {wording.plain(data.name)}")
        st.caption(
            f"{wording.counted(data.histogram.num_users, 'user')}, "
            f"{wording.counted(data.histogram.num_rows, 'row')}"
        )
        budget = "" if data.release is None else f", ε = {format_rounded_up(data.release.epsilon)}"
        cards.label(data.provenance, text=f"{DATA_LABELS[data.disclosure]}{budget}")
        save_session()
        touring: shelf.Tour | None = st.session_state.get(keys.TOUR)
        if touring is not None:
            st.caption(
                f"For the tour. *End* brings back: {wording.plain(touring.saved_state.loaded_data.dataset.name)}"
            )
        if session.is_file():
            st.caption("Here until this page is closed or loaded anew. *Save session* keeps them as a file.")
        elif data.release is not None:
            st.caption(
                "Release and account are here until this page is closed or loaded anew. *Save session* keeps both."
            )
        if session.get_ledger().releases:
            st.caption(f"{session.get_ledger().sentence} {releases.IN_THIS_WINDOW}")
        if question.own_data:
            st.caption(f"Not used here: {question.title} has data of its own.")
    if problems := st.session_state.get(keys.LINK_PROBLEMS):
        _show_link_problems(problems)


def save_session() -> None:
    """Draw the button that saves the session as a file."""
    snapshot = session_file.update_snapshot()
    disclosure = snapshot.content.disclosure
    cards.file_button(
        "Save session",
        "session.json",
        disclosure,
        # Not what stands there now: fields move while the sidebar stays, and each run of the page leaves them anew.
        lambda: session_file.write_file(snapshot.content),
        key="save_session",
        quiet=True,
        help="One file with all settings, pins, the data in use as they were reduced, and the account of what was "
        f"released: {disclosure.label}. *Your data*, *Session*, brings it back.",
    )


def _show_link_problems(problems: Sequence[InputProblem]) -> None:
    is_reload = all(problem.message in links.RELOAD_PROBLEMS for problem in problems)
    heading = (
        "This page was loaded anew."
        if is_reload
        else "The link could not be followed in full; the rest is as usual."
    )
    with st.container(key="link_problems"):
        st.warning(
            f"{heading}\n" + "\n".join(f"- {wording.plain(problem.sentence, 300)}" for problem in problems),
            icon=":material/link_off:",
        )
        is_dismissed = {keys.LINK_PROBLEMS: ()}
        st.button(
            "Dismiss",
            key="dismiss_link_problems",
            on_click=st.session_state.update,
            args=(is_dismissed,),
            type="tertiary",
        )
