"""The frame around every page: styles, the data in use, whether they are private, and what is wrong with a link.

Streamlit has no option for the styles, which leave more of the window for figures and answers.
Streamlit leaves 80 pixels free on either side of a wide page, a fifth of what a window of 1280 has beside the sidebar,
and 96 above it. Here it is half of that, and the page begins right below its header. The sidebar's links take 34
pixels each, which would push the last pages out of a window 800 high. Here they take 26, and are themselves 24 high,
as WCAG 2.2 asks; so are small buttons, which have 16 in Streamlit. Names of pages start where the headings above them
start, so that the longest fits.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common.checks import InputProblem
from dpcore.common.wording import escape_text
from dpcore.common.workspace import remove_abandoned
from pages.shared.base import keys, page_run
from pages.shared.base.catalogue import FOLDED_GROUPS, PAGES
from pages.shared.base.question import Question
from pages.shared.card import cards, releases
from pages.shared.fields import fields
from pages.shared.screen import data_line
from pages.shared.server import server
from pages.shared.session import links, session, session_file

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

# Streamlit's own rules have one class each, so that two conditions go before them. On paper its own hold.
STYLE_SHEET = """<style>
.stMain [data-testid="stMainBlockContainer"] { padding-top: 3.75rem; }
@media screen and (min-width: 736px) {
  .stMain [data-testid="stMainBlockContainer"] { padding-inline: 2.5rem; }
  .st-key-navigation [data-testid="stPageLink-NavLink"] { margin-block: 0; height: 1.5rem; min-height: 1.5rem; }
  .stSidebar [data-testid="stSidebarHeader"] { height: 2.5rem; margin-bottom: 0; }
  .stSidebar [data-testid="stSidebarUserContent"] { padding-top: 0; }
}
@media screen and (max-width: 640px) {
  .st-key-answer_beside_figure > * > [data-testid="stHorizontalBlock"] > :first-child { order: 1; }
}
.stTooltipIcon button[aria-label^="Help"], .stMain a[aria-label="Link to heading"] {
  box-sizing: content-box; padding: 0.25rem; margin: -0.25rem;
}
.stCheckbox label, [data-testid="stNumberInputClearButton"] { min-height: 1.5rem; }
[data-testid="stTabsScrollRight"], [data-testid="stTabsScrollLeft"] { min-width: 1.5rem; }
.st-key-navigation [data-testid="stPageLink-NavLink"] { margin-inline: -0.5rem; width: calc(100% + 1rem); }
.st-key-navigation [data-testid="stElementContainer"] { margin-block: 1px; }
.st-key-navigation [data-testid="stVerticalBlock"] { gap: 0; }
.st-key-navigation [data-testid="stCaptionContainer"] { margin-top: 0.5rem; }
.st-key-navigation [data-testid="stExpander"] details { border: none; }
.st-key-navigation [data-testid="stExpander"] summary { padding: 0.25rem 0; border: none; background: none; }
.st-key-navigation [data-testid="stExpanderDetails"] { padding: 0; }
</style>"""

_mount_navigation = st.components.v2.component(
    "sweetspot_navigation",
    js=Path(__file__).with_name("navigation.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


@st.cache_resource(show_spinner=False)
def freeze_memory() -> bool:
    """Freeze what was imported, once per process: a full collection then takes 6 to 14 ms instead of 130 to 215.

    Also remove files that an app left behind when it was killed.
    """
    remove_abandoned()
    # No first figure needs it, and nearly every page does: 0.2 s that the next visit does not wait for.
    importlib.import_module("pandas")
    server.freeze_objects()
    # Else what is frozen outlives the interpreter, and DuckDB prints a page of "nanobind: leaked".
    atexit.register(gc.unfreeze)
    return True


def is_presented() -> bool:
    """Return True if this session shows the app on a projector, with larger type and no sidebar.

    ``?present=1`` in the address, or a button, sets it. To be asked first by the script: navigation takes the mark out
    of the address. Later code of the run reads `keys.IS_PRESENTING`.
    """
    if page_run.PRESENT_MARK in st.query_params and keys.IS_PRESENTING not in st.session_state:
        st.session_state[keys.IS_PRESENTING] = st.query_params[page_run.PRESENT_MARK] == "1"
    return bool(st.session_state.get(keys.IS_PRESENTING))


def show_shell(question: Question) -> None:
    """Apply the session's link, and draw styles, the sidebar with data and links, and the link's problems."""
    # Before anything is drawn; a style takes no place itself.
    st.html(STYLE_SHEET)
    links.apply_once(question)
    st.session_state[keys.PAGE_PARAMETERS] = None
    dataset, current_tour, ledger = session.get_dataset(), session.get_tour(), session.get_ledger()
    is_lost_at_reload = session.came_from_file() or dataset.release is not None
    with st.sidebar, st.container(key="shell_data", gap="xsmall"):
        data_line.draw_data_line(question)
        draw_save_button()
        if current_tour is not None:
            data_name = current_tour.saved_state.loaded_data.dataset.name
            st.caption(f"For the tour. *End* brings back: {escape_text(data_name)}")
        if is_lost_at_reload:
            st.caption("Here until this page is closed or loaded anew. *Save session* keeps them as a file.")
        if ledger.releases:
            st.caption(f"{ledger.sentence} {releases.WINDOW_SENTENCE}")
    draw_navigation(question)
    if problems := st.session_state.get(keys.LINK_PROBLEMS):
        _show_link_problems(problems)


def draw_navigation(open_question: Question) -> None:
    """Draw links to all pages in their groups; a group of `FOLDED_GROUPS` is closed unless a page of it is open."""
    with st.sidebar, st.container(key="navigation", gap=None):
        for group_title, questions in itertools.groupby(
            PAGES, key=lambda question: question.navigation_group
        ):
            is_folded = group_title in FOLDED_GROUPS
            if group_title and not is_folded:
                st.caption(group_title)
            group_container: DeltaGenerator = (
                st.expander(group_title, expanded=open_question.navigation_group == group_title)
                if is_folded
                else st.container(gap=None)
            )
            for question in questions:
                group_container.page_link(
                    question.page_path, label=question.title, icon=question.icon, width="stretch"
                )
        _mount_navigation(data={"title": open_question.title}, key="navigation_script")


def draw_save_button() -> None:
    """Draw the button that saves the session as a file."""
    snapshot = session_file.update_snapshot()
    disclosure = snapshot.content.disclosure
    cards.draw_file_button(
        "Save session",
        "session.json",
        disclosure,
        # Not what stands there now: fields move while the sidebar stays, and each run of the page leaves them anew.
        lambda: session_file.write_file(snapshot.content),
        button_key="save_session",
        is_quiet=True,
        help_text=f"Settings, pins, reduced data and accounts: {disclosure.label}. *Data*, *Session*, opens the file.",
    )


def _show_link_problems(problems: Sequence[InputProblem]) -> None:
    """Show the problems of a link, or what a reload has lost, with a button that dismisses them."""
    heading_text = "The link could not be followed in full; the rest is as usual."
    if all(problem.message in links.RELOAD_PROBLEMS for problem in problems):
        heading_text = "This page was loaded anew."
    line_texts = [heading_text, *(f"- {escape_text(problem.sentence, 300)}" for problem in problems)]
    with st.container(key="link_problems"):
        st.warning("\n".join(line_texts), icon=":material/link_off:")
        dismiss_problems = functools.partial(st.session_state.update, {keys.LINK_PROBLEMS: ()})
        fields.draw_button("Dismiss", "dismiss_link_problems", "close", dismiss_problems, type="tertiary")
