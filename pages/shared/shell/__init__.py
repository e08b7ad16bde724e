"""What stands on every page: which data are loaded and whether they are private, epsilon, the link."""

from __future__ import annotations

import gc

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Sensitivity, rounded_up
from dpcore.dataset import Dataset
from pages.shared import cards, keys, links, ranges, session
from pages.shared.catalogue import PageSpec
from pages.shared.text import plain

DATA_LABELS = {
    Sensitivity.PUBLIC: "public data",
    Sensitivity.PRIVATE: "private data",
    Sensitivity.DP_RELEASE: "DP release",
}
NOT_CARRIED = {
    session.UPLOADED: "Uploaded data are not in the link, nor is any number computed from them.",
    session.RELEASED: "The DP release in use is not in the link, nor are the data it was made of: to share it, "
    "download its histogram in Your data.",
}


def data_label(data: Dataset) -> str:
    """What the data in use are, in the sidebar."""
    words = DATA_LABELS[data.sensitivity]
    return f"{words}, ε = {rounded_up(data.release.epsilon)}" if data.release is not None else words


@st.cache_resource(show_spinner=False)
def settle_memory() -> bool:
    """Once per process: every rerun ends in a full collection, which costs 130 to 215 ms over all that was
    imported, and 6 to 14 ms after this."""
    gc.collect()
    gc.freeze()
    return True


def begin(spec: PageSpec) -> st.delta_generator.DeltaGenerator:
    """Draw the shell; returns the place for the link, which is known only after the page has run."""
    links.apply_once(spec)
    links.mark_upload()
    st.session_state[keys.PAGE_PARAMETERS] = None
    data = session.dataset()
    with st.sidebar:
        with st.container(key="shell_data", gap="xsmall"):
            st.markdown(f"**Data:** {plain(data.name)}")
            st.caption(
                f"{wording.counted(data.histogram.num_users, 'user')}, "
                f"{wording.counted(data.histogram.num_rows, 'row')}"
            )
            cards.label(data.provenance, text=data_label(data))
            if session.is_file():
                st.caption("Here until this page is closed or loaded anew.")
            elif data.release is not None:
                st.caption(
                    "The release and the account of what was spent are here until this page is closed or loaded anew: "
                    "note ε, and download the histogram to keep it."
                )
            if session.ledger().releases:
                st.caption(session.ledger().sentence)
            if spec.own_data:
                st.caption(f"Not used here: {spec.title} has data of its own.")
        ranges.epsilon_control()
        place = st.container(key="shell_link")
    _say_link_problems()
    return place


def finish(spec: PageSpec, place: st.delta_generator.DeltaGenerator) -> None:
    """Fill in the link of the page as it now stands."""
    with place.popover("Copy link", icon=":material/link:", width="stretch", key="copy_link"):
        st.markdown("Opens this page with these settings. Use the copy button in the corner of the box.")
        st.code(links.current_link(spec), language=None, wrap_lines=True)
        if note := NOT_CARRIED.get(session.loaded().origin.kind):
            st.caption(note)


def _say_link_problems() -> None:
    problems = st.session_state.get(keys.LINK_PROBLEMS, ())
    if not problems:
        return
    anew = all(problem.what == links.RELOADED for problem in problems)
    heading = (
        "This page was loaded anew."
        if anew
        else "The link could not be followed in full; the rest is as usual."
    )
    with st.container(key="link_problems"):
        st.warning(
            f"{heading}\n" + "\n".join(f"- {plain(problem.sentence, 300)}" for problem in problems),
            icon=":material/link_off:",
        )
        st.button("Dismiss", key="dismiss_link_problems", on_click=_dismiss, type="tertiary")


def _dismiss() -> None:
    st.session_state[keys.LINK_PROBLEMS] = ()
