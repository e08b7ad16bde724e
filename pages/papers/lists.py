"""The lists of Reproduce: all figures with small pictures, and all items of a paper."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpcore.answer.paper_figure import PaperFigure, StoredRuns
from dpcore.common import wording
from dpcore.papers.items import Paper
from pages.papers import opening
from pages.shared.base import tables

THUMBNAILS = ("Ours", "Theirs")


def show_figures(known: Sequence[tuple[PaperFigure, StoredRuns]]) -> None:
    """A row each: largest difference, thumbnails of the line that the paper is about, and the way to its page."""
    places = [(of.page, of.tab) for of, _ in known]
    st.dataframe(
        {
            "Figure": [of.name for of, _ in known],
            **_nearness(known),
            "Open": opening.labels(places),
            "What it shows": [of.title for of, _ in known],
            "Line": [of.lines[-1].name for of, _ in known],
        },
        hide_index=True,
        column_config=_config("figures", places),
        placeholder=tables.MISSING,
        height="content",
        alt="All figures with their largest difference from the paper's",
    )


def show_items(paper: Paper, known: Sequence[tuple[PaperFigure, StoredRuns]]) -> None:
    """Where each numbered item stands, with how near its figure is where it is one."""
    st.markdown(paper.introduction.replace("\n", " "))
    places = [item.first_place for item in paper.items]
    # Of several figures of one item the first.
    drawn = {(of.paper, re.split(" [(]|, ", of.item)[0]): (of, found) for of, found in reversed(known)}
    figures = [
        next(
            (drawn[paper.title, name] for name in item.items.split(", ") if (paper.title, name) in drawn),
            None,
        )
        for item in paper.items
    ]
    st.dataframe(
        {
            "Item": [item.items for item in paper.items],
            "What it says": [_plain(item.says) for item in paper.items],
            "Open": opening.labels(places),
            **_nearness(figures),
            "State": [item.state for item in paper.items],
            "What differs": [_plain(item.differs) for item in paper.items],
            "Page, tab": [_plain(item.places) for item in paper.items],
        },
        hide_index=True,
        column_config=_config("items", places),
        placeholder=tables.MISSING,
        alt="Every numbered item of the paper with where it stands",
        height="content",
    )


def _config(name: str, places: Sequence[opening.Place | None]) -> dict[str, Any]:
    thumbnails = {title: st.column_config.LineChartColumn(title, width=90) for title in THUMBNAILS}
    return {**thumbnails, "Open": opening.column(name, places)}


def _nearness(known: Sequence[tuple[PaperFigure, StoredRuns] | None]) -> dict[str, list[Any]]:
    """Three columns: the largest difference, and small pictures of the last line, ours and theirs."""
    return {
        "Largest difference": [None if one is None else _difference(*one) for one in known],
        "Ours": [None if one is None else _finite(one[1].summary.mean[-1]) for one in known],
        "Theirs": [None if one is None else _finite(one[0].lines[-1].paper_values) for one in known],
    }


def _difference(of: PaperFigure, found: StoredRuns) -> str:
    apart = of.compute_largest_difference(found)
    return "no numbers printed" if apart is None else "within" if apart == 0.0 else wording.percent(apart)


def _finite(values: Sequence[float | None]) -> list[float]:
    return [float(x) for x in values if x is not None and math.isfinite(x)]


def _plain(text: str) -> str:
    return re.sub(r"[*`]", "", text)
