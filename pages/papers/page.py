"""Paper comparison: one figure of a paper beside ours, all figures with their differences, all items of the papers."""

from __future__ import annotations

import streamlit as st

from dpcore.answer.paper_figure import FigureRuns, PaperFigure, build_plot, describe_difference
from dpcore.common.wording import format_percent
from dpcore.papers import FIGURES, find_figure, items
from pages.papers import contents
from pages.papers.question import QUESTION
from pages.shared.base import catalogue
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.screen import layout, sections

LABEL_BY_FIGURE_KEY = {figure.key: f"{figure.name}: {figure.title}" for figure in FIGURES}
PAPER_BY_TITLE = {paper.title: paper for paper in items.list_papers()}
FIRST_FIGURE = "epasto-table-1-drugs"
"""Shown first: the paper prints its numbers, and ours are within a few per cent of them."""


def draw_body(slots: layout.PageSlots) -> None:
    """Draw the chosen figure with its answer, and the lists below."""
    widget_key = QUESTION.get_key("figure")
    st.session_state.setdefault(widget_key, FIRST_FIGURE)
    with slots.line:
        figure = find_figure(fields.draw_select_box("Figure", LABEL_BY_FIGURE_KEY, widget_key, width=560))
    figure_runs = sections.find_newest_runs(figure)
    with slots.figure:
        figures.draw_plot(build_plot(figure, figure_runs))
    with slots.answer:
        show_answer(figure, figure_runs)
    with slots.bottom:
        sections.describe_paper_figure(figure, figure_runs)
        show_lists()


def show_answer(figure: PaperFigure, runs: FigureRuns) -> None:
    """Show how near our results are, a button to the page for one's own data, and one that computes the figure anew."""
    with st.container(key="papers_card"):
        figure_name = f"{figure.paper_name}, {figure.item_name[:1].lower()}{figure.item_name[1:]}"
        difference = figure.compute_largest_difference(runs)
        if difference is not None and figure.stated_range is None:
            difference_text = format_percent(difference)
            st.markdown(f"## Our numbers differ from the paper's by at most {difference_text}.")
            cards.draw_number(figure_name, difference_text, "", f"{difference:.3g}", "papers")
            st.markdown(f"{figure.difference_note.partition('. ')[0]}.")
        else:
            st.markdown(f"## {figure_name}")
            st.markdown(describe_difference(figure, runs))
        page = catalogue.find_page(figure.page_title)
        st.button(
            f"Open {page.title}",
            key="papers_go",
            icon=page.icon,
            type=fields.choose_main_button_type(),
            on_click=contents.open_page,
            args=(figure.page_title, figure.tab_name),
            help=f"Opens the page{', and the tab that this figure stands in' if figure.tab_name else ''}.",
        )
        sections.draw_compute_button(figure)


def show_lists() -> None:
    """Show all figures with small pictures of ours and theirs; then every item of one paper."""
    st.markdown("### All figures")
    figures_with_runs = [(figure, sections.find_newest_runs(figure)) for figure in FIGURES]
    contents.show_figures(figures_with_runs)
    st.markdown("### Every item of a paper")
    widget_key = QUESTION.get_key("paper")
    st.session_state.setdefault(widget_key, next(iter(PAPER_BY_TITLE)))
    paper_title = fields.draw_choice(
        "Paper", {paper_title: paper_title for paper_title in PAPER_BY_TITLE}, widget_key
    )
    contents.show_items(PAPER_BY_TITLE[paper_title], figures_with_runs)


layout.show_page(QUESTION, draw_body, has_budget=False)
