"""The contents of the page Paper comparison: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpcore.answer.paper_figure import FigureRuns, PaperFigure, abbreviate_difference
from dpcore.papers.items import Paper
from pages.papers.question import QUESTION
from pages.shared.base import catalogue, keys
from pages.shared.figures.figures import MISSING_TEXT

Destination = tuple[str, str]
"""Title of a page, and a tab of it; empty for the first screen."""


def open_page(page_title: str, tab_name: str) -> None:
    """Have the app open a page in this run, at a tab if one is named; for callbacks."""
    page = catalogue.find_page(page_title)
    if tab_name:
        st.session_state[page.get_key("tabs")] = tab_name
    st.session_state[keys.TOUR_DESTINATION] = page.page_path


def list_labels(destinations: Sequence[Destination | None]) -> list[str | None]:
    """Return the label of the button to each destination: ``page, tab``, or ``page`` alone; None for no destination."""
    return [None if d is None else ", ".join(filter(None, d)) for d in destinations]


def _open_clicked_page(click_key: str, destinations: tuple[Destination | None, ...]) -> None:
    """Open the destination of the row whose button was pressed; do nothing if it has none."""
    click = st.session_state.get(click_key)
    if click is not None and (destination := destinations[click["row"]]) is not None:
        open_page(*destination)


def show_figures(figures_with_runs: Sequence[tuple[PaperFigure, FigureRuns]]) -> None:
    """Show a row for each figure: claims, largest difference, small pictures of its main line, and its page."""
    paper_figures = [figure for figure, _ in figures_with_runs]
    columns_by_heading: dict[str, list[Any]] = {
        "Figure": [figure.name for figure in paper_figures],
        "Claims that hold": [_count_claims(*figure_and_runs) for figure_and_runs in figures_with_runs],
        **_build_comparison_columns(figures_with_runs),
        "Open": [],
        "What it shows": [figure.title for figure in paper_figures],
        "Line": [figure.lines[-1].name for figure in paper_figures],
    }
    destinations = [(figure.page_title, figure.tab_name) for figure in paper_figures]
    alt_text = "All figures with their largest difference from the paper's"
    _show_table("figures", columns_by_heading, destinations, alt_text)


def show_items(paper: Paper, figures_with_runs: Sequence[tuple[PaperFigure, FigureRuns]]) -> None:
    """Show for each numbered item of the paper where it stands, and for figures how near ours is."""
    st.markdown(paper.introduction.replace("\n", " "))
    # An item that has several figures gets the first.
    figures_of_paper = [f for f in figures_with_runs if f[0].paper_name == paper.title]
    figure_by_item = {f[0].main_item: f for f in reversed(figures_of_paper)}
    figures_of_items = [
        next(filter(None, map(figure_by_item.get, i.items.split(", "))), None) for i in paper.items
    ]
    columns_by_heading: dict[str, list[Any]] = {
        "Item": [item.items for item in paper.items],
        "What it says": [_remove_markup(item.says) for item in paper.items],
        "Open": [],
        **_build_comparison_columns(figures_of_items),
        "State": [item.state for item in paper.items],
        "What differs": [_remove_markup(item.differs) for item in paper.items],
        "Page, tab": [_remove_markup(item.places) for item in paper.items],
    }
    destinations = [item.first_place for item in paper.items]
    _show_table(
        "items", columns_by_heading, destinations, "Every numbered item of the paper with where it stands"
    )


def _show_table(
    table_name: str,
    columns_by_heading: dict[str, list[Any]],
    destinations: Sequence[Destination | None],
    alt_text: str,
) -> None:
    """Show a table with a column of buttons, one for each destination; ``table_name`` makes their key unique."""
    click_key = QUESTION.get_key(f"open_{table_name}")
    table_options: dict[str, Any] = {"on_click": _open_clicked_page, "args": (click_key, tuple(destinations))}
    open_column = st.column_config.ButtonColumn(
        "Open", type="tertiary", alignment="left", key=click_key, **table_options
    )
    column_by_heading = {
        paper_title: st.column_config.LineChartColumn(paper_title, width=90)
        for paper_title in ("Ours", "Theirs")
    }
    st.dataframe(
        columns_by_heading | {"Open": list_labels(destinations)},
        hide_index=True,
        column_config=column_by_heading | {"Open": open_column},
        placeholder=MISSING_TEXT,
        height="content",
        alt=alt_text,
    )


def _build_comparison_columns(
    figures_with_runs: Sequence[tuple[PaperFigure, FigureRuns] | None],
) -> dict[str, list[Any]]:
    """Return three columns by heading, a row for each figure; a row without a figure holds None.

    The columns are the largest difference as text, and lists of the numbers of the figure's last line, ours and theirs.
    """
    figure_rows: list[tuple[Any, ...]] = []
    for figure, runs in (f or (None, None) for f in figures_with_runs):
        if figure is None or runs is None:
            figure_rows.append((None, None, None))
        else:
            our_and_paper_values = (runs.summary.means[-1], figure.lines[-1].paper_values)
            figure_rows.append(
                (abbreviate_difference(figure, runs), *map(_list_finite, our_and_paper_values))
            )
    columns = map(list, zip(*figure_rows, strict=True))
    return dict(zip(("Largest difference", "Ours", "Theirs"), columns, strict=True))


def _count_claims(figure: PaperFigure, runs: FigureRuns) -> str | None:
    """Write how many claims of the paper's text our numbers agree with; None if it makes none."""
    claim_results = [checked.holds for checked in figure.check_claims(runs)]
    return f"{sum(claim_results)} of {len(claim_results)}" if claim_results else None


def _list_finite(values: Sequence[float | None]) -> list[float]:
    """Return the finite values."""
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def _remove_markup(text: str) -> str:
    """Remove asterisks and backquotes from Markdown."""
    return re.sub(r"[*`]", "", text)
