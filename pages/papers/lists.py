"""The lists of Reproduce: all figures with small pictures, and all items of a paper."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpcore.answer.paper_figure import FigureRuns, PaperFigure
from dpcore.common import wording
from dpcore.papers.items import Paper
from pages.papers import opening
from pages.shared.base import tables

THUMBNAILS = ("Ours", "Theirs")


def show_figures(computed: Sequence[tuple[PaperFigure, FigureRuns]]) -> None:
    """Show a row for each figure: largest difference, small pictures of its main line, and its page."""
    figures = [figure for figure, _ in computed]
    destinations = [(figure.page, figure.tab) for figure in figures]
    st.dataframe(
        {
            "Figure": [figure.name for figure in figures],
            **_list_comparisons(computed),
            "Open": opening.list_labels(destinations),
            "What it shows": [figure.title for figure in figures],
            "Line": [figure.lines[-1].name for figure in figures],
        },
        hide_index=True,
        column_config=_configure_columns("figures", destinations),
        placeholder=tables.MISSING,
        height="content",
        alt="All figures with their largest difference from the paper's",
    )


def show_items(paper: Paper, computed: Sequence[tuple[PaperFigure, FigureRuns]]) -> None:
    """Show for each numbered item of the paper where it stands, and for figures how near ours is."""
    st.markdown(paper.introduction.replace("\n", " "))
    destinations = [item.first_place for item in paper.items]
    # An item that has several figures gets the first.
    by_item = {(pair[0].paper, re.split(" [(]|, ", pair[0].item)[0]): pair for pair in reversed(computed)}
    figures = [
        next(
            (by_item[paper.title, name] for name in item.items.split(", ") if (paper.title, name) in by_item),
            None,
        )
        for item in paper.items
    ]
    st.dataframe(
        {
            "Item": [item.items for item in paper.items],
            "What it says": [_remove_markup(item.says) for item in paper.items],
            "Open": opening.list_labels(destinations),
            **_list_comparisons(figures),
            "State": [item.state for item in paper.items],
            "What differs": [_remove_markup(item.differs) for item in paper.items],
            "Page, tab": [_remove_markup(item.places) for item in paper.items],
        },
        hide_index=True,
        column_config=_configure_columns("items", destinations),
        placeholder=tables.MISSING,
        alt="Every numbered item of the paper with where it stands",
        height="content",
    )


def _configure_columns(name: str, destinations: Sequence[opening.Destination | None]) -> dict[str, Any]:
    thumbnails = {title: st.column_config.LineChartColumn(title, width=90) for title in THUMBNAILS}
    return {**thumbnails, "Open": opening.build_column(name, destinations)}


def _list_comparisons(computed: Sequence[tuple[PaperFigure, FigureRuns] | None]) -> dict[str, list[Any]]:
    """Return three columns: the largest difference, and small pictures of the last line, ours and theirs."""
    return {
        "Largest difference": [None if pair is None else _write_difference(*pair) for pair in computed],
        "Ours": [None if pair is None else _drop_missing(pair[1].summary.mean[-1]) for pair in computed],
        "Theirs": [
            None if pair is None else _drop_missing(pair[0].lines[-1].paper_values) for pair in computed
        ],
    }


def _write_difference(figure: PaperFigure, runs: FigureRuns) -> str:
    difference = figure.compute_largest_difference(runs)
    if difference is None:
        return "no numbers printed"
    return "within" if difference == 0.0 else wording.percent(difference)


def _drop_missing(values: Sequence[float | None]) -> list[float]:
    return [float(x) for x in values if x is not None and math.isfinite(x)]


def _remove_markup(text: str) -> str:
    return re.sub(r"[*`]", "", text)
