"""Dialogs that work beside the page does not close.

A run of the whole app closes the dialog that is open, as Streamlit 1.67 keeps only those that the run calls. Work that
ends, or has more to show, asks for such a run: it waits until nobody reads a dialog.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.shared.base import keys


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
