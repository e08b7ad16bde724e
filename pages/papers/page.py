"""Reproduce: one figure of a paper, theirs and ours; all figures with their differences; all items of the papers."""

from __future__ import annotations

import streamlit as st

from dpcore.answer.paper_figure import PaperFigure, StoredRuns
from dpcore.answer.paper_plot import describe_difference, plot_figure
from dpcore.common import wording
from dpcore.papers import FIGURES, find_figure, items
from pages.papers import bring, lists, opening
from pages.papers.question import QUESTION
from pages.shared.base import catalogue
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout, paper, plots

NAMES = {of.key: f"{of.name}: {of.title}" for of in FIGURES}
PAPERS = {of.title: of.title for of in items.list_papers()}
FIRST = "amin-figure-3"
"""Shown first: the paper says numbers of it, and few curves tell whether ours agree."""


def body(places: layout.Places) -> None:
    """Read which figure is asked for, and draw it with how near it is; lists below."""
    chosen = QUESTION.key("figure")
    st.session_state.setdefault(chosen, FIRST)
    with places.line:
        asked = find_figure(fields.pick("Figure", NAMES, chosen, width=560))
    of, found = paper.known(asked)
    with places.figure:
        plots.draw(plot_figure(of, found))
    with places.answer:
        show_answer(asked, of, found)
    with places.below:
        paper.words(of, found)
        bring.show(asked)
        show_lists()


def show_answer(asked: PaperFigure, of: PaperFigure, found: StoredRuns) -> None:
    """How near ours are, the page for one's own data, and the button that computes it anew."""
    with st.container(key="papers_card"):
        st.markdown(f"## {of.item}, {of.paper}")
        apart = of.compute_largest_difference(found)
        if apart is not None and of.stated_range is None:
            cards.large(
                "Largest difference, ours to theirs", wording.percent(apart), "", f"{apart:.3g}", "papers"
            )
            st.markdown(f"{of.difference_note.partition('. ')[0]}.")
        else:
            st.markdown(describe_difference(of, found))
        there = catalogue.page(of.page)
        st.button(
            f"The same on {there.title}",
            key="papers_go",
            icon=there.icon,
            type=fields.main_button(),
            on_click=opening.go,
            args=(of.page, of.tab),
            help="Opens the page, and the tab that this figure stands in." if of.tab else "Opens the page.",
        )
        paper.compute_now(asked)


def show_lists() -> None:
    """All figures with small pictures of ours and theirs; then every item of one paper."""
    st.markdown("### All figures")
    known = [paper.known(of) for of in FIGURES]
    lists.show_figures(known)
    st.markdown("### Every item of a paper")
    chosen = QUESTION.key("paper")
    st.session_state.setdefault(chosen, next(iter(PAPERS)))
    title = fields.choice("Paper", PAPERS, chosen)
    lists.show_items(next(one for one in items.list_papers() if one.title == title), known)


layout.show(QUESTION, body, budget=False)
