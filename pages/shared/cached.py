"""Calls of the core that a rerun repeats, cached by content.

Streamlit hashes only a sample of a large array, and heavy tails are exactly what a sample misses: so the key is
the data's digest and the frozen question, and the data themselves pass by as ``_argument``. Everything is kept
per session, since uploads are private to the person who made them, and as a resource, since answers are frozen
and pickling millions of users on every rerun would cost more than the answer.
"""

from __future__ import annotations

import streamlit as st

from dpcore.dataset import Values
from pages.shared.value_range import Outside


@st.cache_resource(max_entries=8, scope="session", show_spinner=False)
def values_outside(digest: str, lower: float, upper: float, _values: Values) -> Outside:
    """How many values lie outside [lower, upper]."""
    values = _values.values
    return Outside(int((values < lower).sum()), int((values > upper).sum()), values.size)
