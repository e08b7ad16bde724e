"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

import streamlit as st

from dpcore.dataset import Dataset
from pages.start import figures


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def start_tradeoff(digest: str, epsilon: float, _dataset: Dataset) -> figures.Tradeoff:
    """The Start page's curves and their sweet spot."""
    return figures.tradeoff(_dataset.histogram, epsilon)
