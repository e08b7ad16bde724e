"""The contents of the page Reproduce: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpcore.answer.paper_figure import FigureRuns, PaperFigure
from dpcore.common import wording
from dpcore.papers.items import Paper
from pages.papers.question import QUESTION
from pages.shared.base import catalogue, keys, tables

Destination = tuple[str, str]
"""Title of a page, and a tab of it; empty for the first screen."""


def open_page(page: str, tab: str) -> None:
    """Open the page at that tab."""
    question = catalogue.page(page)
    if tab:
        st.session_state[question.key("tabs")] = tab
    st.session_state[keys.TOUR_GOES_TO] = question.path


def build_column(name: str, destinations: Sequence[Destination | None]) -> Any:
    """Return a column of buttons for a table, one for each destination; ``name`` makes its key unique."""
    key = QUESTION.key(f"open_{name}")
    return st.column_config.ButtonColumn(
        "Open",
        type="tertiary",
        alignment="left",
        key=key,
        on_click=_open_pressed,
        args=(key, tuple(destinations)),
    )


def list_labels(destinations: Sequence[Destination | None]) -> list[str | None]:
    """Return the labels of the buttons; None for no button."""
    return [
        None if destination is None else ", ".join(filter(None, destination)) for destination in destinations
    ]


def _open_pressed(key: str, destinations: tuple[Destination | None, ...]) -> None:
    click = st.session_state.get(key)
    if click is not None and (destination := destinations[click["row"]]) is not None:
        open_page(*destination)


THUMBNAILS = ("Ours", "Theirs")


def show_figures(computed: Sequence[tuple[PaperFigure, FigureRuns]]) -> None:
    """Show a row for each figure: largest difference, small pictures of its main line, and its page."""
    figures = [figure for figure, _ in computed]
    destinations = [(figure.page, figure.tab) for figure in figures]
    st.dataframe(
        {
            "Figure": [figure.name for figure in figures],
            **_list_comparisons(computed),
            "Open": list_labels(destinations),
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
            "Open": list_labels(destinations),
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


def _configure_columns(name: str, destinations: Sequence[Destination | None]) -> dict[str, Any]:
    thumbnails = {title: st.column_config.LineChartColumn(title, width=90) for title in THUMBNAILS}
    return {**thumbnails, "Open": build_column(name, destinations)}


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
