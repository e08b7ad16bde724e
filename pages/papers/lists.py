"""The lists of Reproduce: all figures with small pictures, and all items of a paper."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import streamlit as st

from dpcore.answer.paper_figure import PaperFigure, Stored
from dpcore.common import wording
from dpcore.papers.items import Paper
from pages.shared.base import tables


def show_figures(known: Sequence[tuple[PaperFigure, Stored]]) -> None:
    """A row each: largest difference, and thumbnails of the line that the paper is about, ours and theirs."""
    apart = [of.largest_difference(found) for of, found in known]
    thumbnail = st.column_config.LineChartColumn
    st.dataframe(
        {
            "Figure": [f"{of.name}: {of.title}" for of, _ in known],
            "Largest difference": [
                "no numbers printed" if x is None else "within" if x == 0.0 else wording.percent(x)
                for x in apart
            ],
            "Ours": [_finite(found.over_runs.mean[-1]) for _, found in known],
            "Theirs": [_finite(of.lines[-1].theirs) for of, _ in known],
            "Line": [of.lines[-1].name for of, _ in known],
            "Page": [of.page for of, _ in known],
        },
        hide_index=True,
        column_config={"Ours": thumbnail("Ours"), "Theirs": thumbnail("Theirs")},
        placeholder=tables.MISSING,
        height="content",
        alt="All figures with their largest difference from the paper's",
    )


def show_items(paper: Paper) -> None:
    """Where each numbered item stands."""
    st.markdown(paper.introduction.replace("\n", " "))
    tables.show(
        {
            "Item": [item.items for item in paper.items],
            "What it says": [_plain(item.says) for item in paper.items],
            "State": [item.state for item in paper.items],
            "Page, tab": [_plain(item.places) for item in paper.items],
            "What differs": [_plain(item.differs) for item in paper.items],
        },
        "Every numbered item of the paper with where it stands",
        height="content",
    )


def _finite(values: Sequence[float | None]) -> list[float]:
    return [float(x) for x in values if x is not None and math.isfinite(x)]


def _plain(text: str) -> str:
    return re.sub(r"[*`]", "", text)
