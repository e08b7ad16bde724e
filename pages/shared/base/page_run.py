"""A run of a page: how it is presented, what it has drawn so far, and its dialogs.

Pages say nothing of it: the main figure is the first one that is drawn, and the card the first one that is shown.

A run of the whole app closes the dialog that is open, as Streamlit 1.67 keeps only those that the run calls. Work that
ends, or has more to show, asks for such a run: it waits until nobody reads a dialog.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.shared.base import keys
from pages.shared.base.question import Question

PRESENT_MARK = "present"
"""Field of the address; any link takes it along."""
PRESENTED_TYPE_PIXELS, USUAL_TYPE_PIXELS = 22, 16
"""Type size of the page's root, in pixels, on a projector and else: nearly all that Streamlit draws is measured in it,
and figures follow."""


@dataclass(eq=False)
class PageRun:
    """One run of a page.

    Attributes:
        question: Of the page.
        has_tabs: True once the page has drawn its tabs, *Compare* among them.
        main_figure: The main figure as the page made it; None before it was drawn.
        answer_card: The answer card; None before it was shown.
        shown_card: The card that is shown: with the privately selected bound if there is one, else the answer card.
        card_and_selection: The answer card with its ``BoundSelection`` or None; None before that was looked for.
        selected_bound_excess: Share by which the privately selected bound errs more than the best one of the main
            figure, as private as the data; None for none.
        has_private_data: True if the data in use are private; only then a bound is selected privately.
        own_data: The page's own data, which the tab *Compare* uses; with ``digest`` and ``provenance``.
        shown_data_name: Name of the data that the page shows; empty for those in use, None if the page has not said so.
        answered_parameters: The parameters of the answer in sight, if these may be earlier ones; None for the page's.
    """

    question: Question
    has_tabs: bool = False
    main_figure: go.Figure | None = None
    answer_card: Any = None
    shown_card: Any = None
    card_and_selection: tuple[Any, Any] | None = None
    selected_bound_excess: float | None = None
    has_private_data: bool = False
    own_data: Any = None
    shown_data_name: str | None = None
    answered_parameters: Any = None


CURRENT_RUN: ContextVar[PageRun | None] = ContextVar("drawn", default=None)
"""The run of the page that is drawn now; None outside of pages."""


def request_dialog(show_dialog: Callable[..., None], *arguments: Any) -> None:
    """Have this run of the app open a dialog with these arguments; for callbacks."""
    st.session_state[keys.REQUESTED_DIALOG] = show_dialog, arguments


def open_requested_dialog() -> None:
    """Open the dialog that was requested, if any; to be called outside of every fragment.

    Streamlit 1.67 keeps a wrapper for what a fragment writes elsewhere. With a dialog opened in a page's fragment,
    a run of that fragment just before one of the whole app left the browser with an empty page, once in some runs.
    """
    dialog_request = st.session_state.pop(keys.REQUESTED_DIALOG, None)
    if dialog_request is not None:
        show_dialog, arguments = dialog_request
        st.session_state[keys.IS_DIALOG_OPEN] = True
        show_dialog(*arguments)


def open_as_dialog(dialog_title: str, icon_name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a decorator whose function opens a wide dialog with a Material icon; its closing by a person is noted."""
    return st.dialog(
        dialog_title, width="large", icon=f":material/{icon_name}:", on_dismiss=note_dialog_closed
    )


def is_dialog_open_or_requested() -> bool:
    """Return True if a dialog is open, or about to be."""
    return keys.REQUESTED_DIALOG in st.session_state or bool(st.session_state.get(keys.IS_DIALOG_OPEN))


def note_dialog_closed() -> None:
    """Note that no dialog is open: a person closed it, or the page begins again."""
    st.session_state.pop(keys.IS_DIALOG_OPEN, None)
