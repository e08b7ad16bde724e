"""Keeps the browser's address in step with the page, so that a reload finds the question again.

Streamlit's own `st.query_params` adds an entry to the browser's history for every change: after twenty steps of a
slider, *Back* would have to be pressed twenty times. This replaces the entry.
"""

from __future__ import annotations

import streamlit as st

_SCRIPT = """
export default ({ data }) => {
  const { pathname, search } = window.location;
  const wanted = data ? `?${data}` : "";
  if (search !== wanted) window.history.replaceState(window.history.state, "", pathname + wanted);
};
"""

_mount = st.components.v2.component("sweetspot_address", js=_SCRIPT, isolate_styles=False)


def follow(query: str) -> None:
    """Make this the query of the browser's address.

    Args:
        query: Without its question mark; it must hold nothing that was computed from private data.
    """
    _mount(key="address", data=query, height=1)
