"""A run of a page: what it has drawn so far, and its dialogs.

A run of a page: how it is presented, and what it has drawn so far, for what the machinery makes of them.

Pages say nothing of it: the main figure is the first one that stands in the place of the main figure, and the card the
first one that is shown.

Dialogs that work beside the page does not close.

A run of the whole app closes the dialog that is open, as Streamlit 1.67 keeps only those that the run calls. Work that
ends, or has more to show, asks for such a run: it waits until nobody reads a dialog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from pages.shared.base import keys
from pages.shared.base.question import Question

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


PRESENT_MARK = "present"
"""Field of the address; any link takes it along."""
TYPE_SIZE, USUAL_SIZE = 22, 16
"""Type size of the page's root, in pixels, on a projector and else: nearly all that Streamlit draws is measured in it,
and figures follow."""


@dataclass(eq=False)
class Drawn:
    """One run of a page.

    Attributes:
        question: Of the page.
        tabs: What the machinery adds to the page's tabs, by name; emptied where they are drawn.
        before: The tab of the page's own that they stand before.
        in_main: Whether what is drawn now stands in the place of the main figure.
        figure: The main figure as the page made it; None before it was drawn.
        card: The answer card; None before it was shown.
        shown: The card in its place, where a number that was drawn privately stands in it; else the answer card.
        key: Of that card.
        lacks: Label of the field that a private draw of the bound waits for; empty for none.
        way: The card, and the way in which its bound can be drawn privately; None before anyone asks.
        invented: Whether the answer is about invented data, in place of data in use that lack what it needs.
        private: Whether the data in use are private: no bound is drawn of others.
        own: Data that the page has for itself, for what is compared on it; with ``digest`` and ``provenance``.
        answered: The parameters object that the answer in sight is for, where it may be that of the settings before;
            None for the page's.
    """

    question: Question
    tabs: dict[str, Callable[[], object]] = field(default_factory=dict)
    before: str = ""
    in_main: bool = False
    figure: go.Figure | None = None
    card: Any = None
    shown: Any = None
    key: str = ""
    lacks: str = ""
    way: tuple[Any, Any] | None = None
    invented: bool = False
    private: bool = False
    own: Any = None
    answered: Any = None

    def with_tabs(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the page's tabs with those of the machinery, which a page that has one of that name keeps as
        its own.
        """
        added = {name: draw for name, draw in self.tabs.items() if name not in own}
        self.tabs = {}
        names = list(own)
        at = names.index(self.before) if self.before in names else len(names)
        return {n: own[n] for n in names[:at]} | added | {n: own[n] for n in names[at:]}


def is_presented() -> bool:
    """Return whether this session shows the app on a projector, with larger type and no sidebar.

    ``?present=1`` in the address, or a button, sets it. To be asked first by the script: navigation takes the mark out
    of the address. What comes later in the run finds it under `keys.PRESENTING`.
    """
    if PRESENT_MARK in st.query_params and keys.PRESENTING not in st.session_state:
        st.session_state[keys.PRESENTING] = st.query_params[PRESENT_MARK] == "1"
    return bool(st.session_state.get(keys.PRESENTING))


_NOW: ContextVar[Drawn | None] = ContextVar("drawn", default=None)


def begin(run: Drawn | None) -> None:
    """A run of a page begins, or has ended."""
    _NOW.set(run)


def now() -> Drawn | None:
    """Return the run of the page that is drawn now; None outside of pages."""
    return _NOW.get()


def compares(own: Any) -> None:
    """A page's own data, on which the tab *Compare* is to answer; with ``digest`` and ``provenance``."""
    if (run := now()) is not None:
        run.own = own


def answers(parameters: Any) -> None:
    """What the answer in sight is for, where a page goes on showing one while another is looked for.

    Files and pins then name these settings, and not those that were entered since.
    """
    if (run := now()) is not None:
        run.answered = parameters


def answers_on_invented_data() -> None:
    """The answer is not about the data in use, which lack what the page needs."""
    if (run := now()) is not None:
        run.invented = True


class MainPlace:
    """The place of the main figure: a container, used in ``with``, that lets figures know that they stand in it."""

    def __init__(self, place: DeltaGenerator) -> None:
        self._place = place

    def __enter__(self) -> DeltaGenerator:
        if (run := now()) is not None:
            run.in_main = True
        self._place.__enter__()
        return self._place

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.__exit__(kind, error, trace)
        if (run := now()) is not None:
            run.in_main = False


def ask(dialog: Callable[..., None], *arguments: Any) -> None:
    """Let this run of the app open a dialog; for callbacks."""
    st.session_state[keys.DIALOG_ASKED] = dialog, arguments


def open_asked() -> None:
    """Open the dialog that was asked for; to be called outside of every fragment.

    Streamlit 1.67 keeps a wrapper for what a fragment writes elsewhere. With a dialog opened in a page's fragment,
    a run of that fragment just before one of the whole app left the browser with an empty page, once in some runs.
    """
    asked = st.session_state.pop(keys.DIALOG_ASKED, None)
    if asked is not None:
        dialog, arguments = asked
        st.session_state[keys.DIALOG_OPEN] = True
        dialog(*arguments)


def is_asked() -> bool:
    """Return whether a dialog waits to be opened."""
    return keys.DIALOG_ASKED in st.session_state


def in_sight() -> bool:
    """Return whether one is open, or about to be."""
    return is_asked() or bool(st.session_state.get(keys.DIALOG_OPEN))


def closed() -> None:
    """No dialog is open: a person closed it, or the page begins anew."""
    st.session_state.pop(keys.DIALOG_OPEN, None)
