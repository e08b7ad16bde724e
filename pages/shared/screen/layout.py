"""The page of every question: title, inputs, the figure with the answer beside it, the tabs below.

The page of every question: title and one sentence, the inputs in a line, the figure with the answer beside it.

Everything a question draws stands in one fragment: a moved slider runs the question again, not the whole app.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore.answer import section
from dpcore.answer.against import SLIDER_EPSILONS
from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.wording import format_entered
from pages.shared import speed, streamlit_internals
from pages.shared.base import cache, catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields, setting
from pages.shared.screen import compare_tab, data_line, tour_bar
from pages.shared.session import links, session, session_file

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


_ADDRESS_SCRIPT = Path(__file__).with_name("address.js").read_text(encoding="utf-8")
_mount_address = st.components.v2.component(
    "sweetspot_address",
    js=_ADDRESS_SCRIPT.replace("HEADER]", f'"{speed.TOKEN_HEADER}"]'),
    isolate_styles=False,
)

FIGURE_AND_ANSWER_SHARES = (5, 3)
"""How the figure and the answer beside it share the width."""
BEHIND, DOWNLOADS, COMPUTED = section.BEHIND, section.DOWNLOADS, "How this is computed"
"""Tabs that every question has: the first one, and the last two."""
_TEXT_BY_EPSILON = {step: format_entered(step) for step in SLIDER_EPSILONS}


@dataclass(frozen=True)
class PageSlots:
    """The containers of a question's page.

    Attributes:
        line: The inputs that matter most; the privacy budget stands there already.
        notes: What is wrong with the inputs, and what they leave out: right below them.
        figure: The main figure, on the left; it is drawn before any other.
        answer: The answer card, on the right.
        bottom: Everything else, as wide as the page.
        intro: Right below the page's question; None during the tour.
    """

    line: DeltaGenerator
    notes: DeltaGenerator
    figure: DeltaGenerator
    answer: DeltaGenerator
    bottom: DeltaGenerator
    intro: DeltaGenerator | None = None


def show_page(
    question: Question,
    draw_content: Callable[[PageSlots], None],
    *,
    has_budget: bool = True,
    runs_alone: bool = True,
) -> None:
    """Draw a question's page around its content, as a fragment if it runs alone; then the dialog that was requested.

    Args:
        question: The question.
        draw_content: Draws the question's own content into the page's containers.
        has_budget: True if the shared epsilon stands first in the line of inputs.
        runs_alone: True if an input runs only this page again; False if inputs change what the shell shows.
    """
    data_slot = data_line.DATA_SLOT.get()

    @cache.RUNNING_PAGES.count_run()  # Before light work.
    def draw_page() -> None:
        """Draw everything of the page in one run."""
        state = st.session_state
        if keys.REQUESTED_DIALOG in state and streamlit_internals.is_fragment_run():
            st.rerun()  # Its dialog is opened below, outside of the fragment.
        state.pop(keys.IS_DIALOG_OPEN, None)  # Whoever moves something on the page reads none.
        if keys.TOUR_DESTINATION in state:
            st.switch_page(state.pop(keys.TOUR_DESTINATION))
        state[keys.PAGE_PARAMETERS] = None
        loaded_data, current_tour = session.get_loaded(), session.get_tour()
        dataset = loaded_data.dataset
        title_row = st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
        )
        title_row.title(question.page_heading or question.title, width="content")
        link_container = title_row.container(width="content", key="shell_link", horizontal=True)
        # What the page is about, the question of a tour's step says.
        intro_slot = st.container(key=f"{question.name}_intro" if current_tour is None else "tour_bar")
        if current_tour is None:
            intro_slot.markdown(question.lead_text)
        line_slot = st.container(horizontal=True, vertical_alignment="bottom", key=f"{question.name}_inputs")
        if has_budget:
            with line_slot:
                _draw_epsilon(question.name)
        notes_slot = st.container(key=f"{question.name}_notes")
        with st.container(key="answer_beside_figure"):
            figure_slot, answer_slot = st.columns(FIGURE_AND_ANSWER_SHARES, gap="medium")
        bottom_slot = st.container()
        run = page_run.PageRun(question, has_private_data=dataset.is_private)
        run.shown_data_name = question.shown_data_name or None
        page_run.CURRENT_RUN.set(run)
        try:
            draw_content(
                PageSlots(
                    line_slot,
                    notes_slot,
                    figure_slot,
                    answer_slot,
                    bottom_slot,
                    intro_slot if current_tour is None else None,
                )
            )
        finally:
            page_run.CURRENT_RUN.set(None)
        if run.shown_data_name is not None:
            data_line.correct_data_line(question, data_slot, run.shown_data_name)
        if run.answer_card is not None:
            answer_slot.space(
                "medium"
            )  # The card ends where the figure does, above the figure's own buttons.
        if current_tour is not None:
            with intro_slot:  # Last, as it goes by what was entered.
                tour_bar.draw_tour_bar(question, current_tour)
        if run.main_figure is not None and not run.has_tabs:
            with bottom_slot:
                compare_tab.show_below(run)
        # It is made when *Pin this* is pressed, not at every run.
        parameters = run.answered_parameters or state.get(keys.PAGE_PARAMETERS)
        state[keys.PIN_BUILDER] = functools.partial(compare_tab.build_pin, run, dataset, parameters)
        permanent_link, query_text = links.write_current_link(question)
        is_presented = bool(state.get(keys.IS_PRESENTING))
        # Not in the popover, whose content the browser makes only once it is opened.
        _set_address(query_text, f"{page_run.PRESENTED_TYPE_PIXELS}px" if is_presented else "")
        omitted_phrase = session.NOT_IN_LINKS.get(loaded_data.origin.name, "")
        _draw_link_popover(question, link_container, permanent_link, omitted_phrase, is_presented)
        session_file.update_snapshot()

    (st.fragment(draw_page) if runs_alone else draw_page)()
    page_run.open_requested_dialog()


def _draw_epsilon(page_name: str) -> None:
    """Draw the shared epsilon: a slider over round values, and a field for any other, kept in step.

    Args:
        page_name: The page that it stands on.
    """
    state = st.session_state
    epsilon = state.setdefault(keys.EPSILON, setting.DEFAULT_EPSILON)
    nearest_step = find_nearest_step(setting.DEFAULT_EPSILON if epsilon is None else float(epsilon))
    # The widgets of every page are others, though their keys are the same, and Streamlit 1.67 gives the value of those
    # of the last page to these on the second run only: the field would stand empty on the first.
    if state.get(keys.EPSILON_PAGE) != page_name:
        state[keys.EPSILON_PAGE], state[keys.EPSILON], state[keys.EPSILON_SLIDER] = (
            page_name,
            epsilon,
            nearest_step,
        )
    # Only where it differs: every assignment is sent to the browser, and one that comes late undoes a key press.
    elif state.get(keys.EPSILON_SLIDER) != nearest_step:
        state[keys.EPSILON_SLIDER] = nearest_step
    container = st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", width="content", key="epsilon_control"
    )
    container.select_slider(
        "Privacy budget ε",
        SLIDER_EPSILONS,
        # The default as well: only the first run of a page sends what the session holds, and what it says is dropped
        # where another run begins at once, as after an upload. The slider then stood at its least value.
        nearest_step,
        key=keys.EPSILON_SLIDER,
        format_func=_TEXT_BY_EPSILON.__getitem__,
        on_change=_apply_slider,
        help="Smaller values mean more privacy and more noise. Each release spends it. From 0.000001 to 1000.",
        width=fields.scale_width(190),
    )
    with container:
        fields.draw_number("ε, exactly", keys.EPSILON, width=110)


def _apply_slider() -> None:
    """Set epsilon to the slider's value; leave it if the slider is no longer drawn."""
    # A late press of the page before finds no slider.
    if (step := st.session_state.get(keys.EPSILON_SLIDER)) is not None:
        st.session_state[keys.EPSILON] = step


def find_nearest_step(epsilon: float) -> float:
    """Return the slider position nearest to epsilon on the log scale; every number that was typed has one."""
    clamped_epsilon = min(max(epsilon, EPSILON_RANGE[0]), EPSILON_RANGE[1])
    return min(SLIDER_EPSILONS, key=lambda step: abs(math.log(step / clamped_epsilon)))


def _set_address(query_text: str, type_size: str) -> None:
    """Set the query of the browser's address and the size of the page's type.

    Args:
        query_text: Without its question mark; it must hold nothing that was computed from private data.
        type_size: Of the type, in CSS; empty for the usual size.
    """
    root_path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    session_address = f"/{root_path}{speed.SESSION_PATH}" if root_path else speed.SESSION_PATH
    payload = {
        "query": query_text,
        "size": type_size,
        "token": speed.get_channel().token,
        "address": session_address,
    }
    _mount_address(key="address", data=payload, height=1)


def _draw_link_popover(
    question: Question,
    container: DeltaGenerator,
    permanent_link: str,
    omitted_phrase: str,
    is_presented: bool,
) -> None:
    """Draw the popover with the page's link; on the first page, the button that begins the tour before it."""
    with container:
        if question is catalogue.PAGES[0]:
            tour_bar.draw_begin_button()
        if is_presented:
            _draw_present_button("Leave presentation", "close_fullscreen")
    with container, st.popover("Copy link", icon=":material/link:", key="copy_link", type="tertiary"):
        st.markdown("Opens this page with these settings.")
        st.code(permanent_link, language=None, wrap_lines=True)
        if omitted_phrase:
            st.caption(f"It does not hold {omitted_phrase}, nor any number computed from private data.")
        if not is_presented:
            _draw_present_button("Present", "slideshow", help="Larger type and no sidebar, for a projector.")


def _draw_present_button(button_label: str, icon_name: str, **button_options: Any) -> None:
    """Draw the button that begins or leaves presentation mode."""
    if fields.draw_button(button_label, "present", icon_name, type="tertiary", **button_options):
        st.session_state[keys.IS_PRESENTING] = not st.session_state.get(keys.IS_PRESENTING)
        st.rerun()


Content = Callable[[], object] | Mapping[str, Callable[[], object]]
"""The content of a tab: a function that draws it, or inner tabs by name."""


def draw_tabs(content_by_tab: Mapping[str, Content], tabs_key: str) -> None:
    """Draw tabs under the session key ``tabs_key``, *Compare* among them if the page has parameters; fill the open one.

    *Compare* is added before the last two. Tabs that are closed cost nothing. Whoever puts the name of a tab into the
    session, such as a tour or a link, need not know in which other tab it lies.
    """
    if (run := page_run.CURRENT_RUN.get()) is not None and run.question.parameters_type is not None:
        run.has_tabs = True
        last_content_by_tab = {
            tab_name: content_by_tab[tab_name]
            for tab_name in (DOWNLOADS, COMPUTED)
            if tab_name in content_by_tab
        }
        own_content_by_tab = {
            tab_name: tab_content
            for tab_name, tab_content in content_by_tab.items()
            if tab_name not in last_content_by_tab
        }
        content_by_tab = {
            **own_content_by_tab,
            compare_tab.TAB_NAME: lambda: compare_tab.show_comparison(run),
            **last_content_by_tab,
        }
    open_tab = st.session_state.get(tabs_key)
    for tab_name, tab_content in content_by_tab.items():
        if not callable(tab_content) and open_tab in tab_content:
            st.session_state[tabs_key], st.session_state[_build_inner_key(tabs_key, tab_name)] = (
                tab_name,
                open_tab,
            )
    _draw_open_tab(content_by_tab, tabs_key)


def _draw_open_tab(content_by_tab: Mapping[str, Any], tabs_key: str) -> None:
    """Draw the row of tabs and the content of the open one, which may hold tabs itself."""
    tabs = st.tabs(list(content_by_tab), key=tabs_key, on_change="rerun")
    for tab_container, (tab_name, tab_content) in zip(tabs, content_by_tab.items(), strict=True):
        if tab_container.open:
            with tab_container:
                if callable(tab_content):
                    tab_content()
                else:
                    _draw_open_tab(tab_content, _build_inner_key(tabs_key, tab_name))


def _build_inner_key(tabs_key: str, tab_name: str) -> str:
    """Return the session key that remembers the open tab inside the tab ``tab_name``."""
    return f"{tabs_key}_{re.sub('[^a-z]+', '_', tab_name.lower())}"
