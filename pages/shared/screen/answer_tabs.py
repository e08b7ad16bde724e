"""The answer card beside the main figure of every question, and the tabs below it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.privacy import ReleaseFacts
from pages.shared.base import catalogue, page_run
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout

Content = Callable[[], object] | Mapping[str, Callable[[], object]]
"""The content of a tab: a function that draws it, or inner tabs by name."""


def show(
    places: layout.Places,
    question: Question,
    answer: Answer,
    tabs: Mapping[str, Content],
    draw_downloads: Callable[[], object],
    *,
    describe_basis: Callable[[], str | None] | None = None,
    draw_behind: Callable[[Answer], object] = cards.behind,
    formula: str = "formula",
    tabs_name: str = "tabs",
    key: str = "",
    bound_fields: Sequence[str] | None = None,
) -> None:
    """Draw the answer card and the tabs.

    Args:
        places: Of the page.
        question: The question.
        answer: Its answer.
        tabs: The question's own tabs, which stand between those that every question has. No more than six fit and are
            read, so a page with more folds its own: a tab may hold tabs.
        draw_downloads: Draws the downloads.
        describe_basis: Writes what the answer was computed from, below the first tab's content; None if
            it drew that itself.
        draw_behind: Draws what stands behind the answer.
        formula: Name of the text on how the answer is computed.
        tabs_name: Name under which the session remembers the open tab.
        key: Of the card; by default the question's name, and ``_card``.
        bound_fields: The fields for a bound of the person's own; by default those that the question declares.
    """

    def draw_first_tab() -> None:
        if _shows_private_draw(answer):
            st.markdown(READ_OFF)
        draw_behind(answer)
        _offer_plan(question, answer, key or f"{question.name}_card")
        if describe_basis is not None and (text := describe_basis()):
            st.caption(text)

    with places.answer:
        cards.answer(answer, key or f"{question.name}_card")
        _show_own_bound(question, answer, question.own if bound_fields is None else bound_fields)
    contents: dict[str, Content] = {layout.BEHIND: draw_first_tab, **tabs, layout.DOWNLOADS: draw_downloads}
    contents[layout.COMPUTED] = lambda: st.markdown(question.formula(formula))
    with places.below:
        draw_tabs(contents, question.key(tabs_name))


READ_OFF = (
    "**This tab is about the bound that was read off the private data**, not about the one that was drawn. Do not "
    "publish it."
)


def _shows_private_draw(answer: Answer) -> bool:
    """Return True if the card shows a privately drawn bound in place of the answer's bound."""
    run = page_run.now()
    shown_answer = None if run is None or run.card is not answer else run.shown
    return (
        shown_answer is not None
        and isinstance(shown_answer.disclosure, ReleaseFacts)
        and answer.disclosure != shown_answer.disclosure
    )


def _offer_plan(question: Question, answer: Answer, key: str) -> None:
    """Draw the button that takes the release into the plan, on pages of the plan's group."""
    plan = catalogue.PLANNING
    if plan is not None and question is not plan and question.group == plan.group:
        importlib.import_module(f"pages.{plan.name}.on_card").draw(answer, key)


def draw_tabs(contents: Mapping[str, Content], key: str) -> None:
    """Draw tabs under the session key ``key``; only the open one is drawn, so the others cost nothing.

    The page's first tabs come first; the machinery's tabs are added among them. Whoever puts the name of a tab into the
    session, such as a tour or a link, need not know in which other tab it lies.
    """
    if (run := page_run.now()) is not None:
        contents = run.with_tabs(contents)
    open_tab = st.session_state.get(key)
    for name, content in contents.items():
        if not callable(content) and open_tab in content:
            st.session_state[key], st.session_state[_build_inner_key(key, name)] = name, open_tab
    _draw_open_tab(contents, key)


def _draw_open_tab(contents: Mapping[str, Any], key: str) -> None:
    """Draw the row of tabs and the content of the open one, which may hold tabs itself."""
    for tab, (name, content) in zip(
        st.tabs(list(contents), key=key, on_change="rerun"), contents.items(), strict=True
    ):
        if tab.open:
            with tab:
                if callable(content):
                    content()
                else:
                    _draw_open_tab(content, _build_inner_key(key, name))


def _build_inner_key(key: str, name: str) -> str:
    """Return the session key that remembers the open tab inside the tab ``name``."""
    return f"{key}_{re.sub('[^a-z]+', '_', name.lower())}"


def _show_own_bound(question: Question, answer: Answer, bound_fields: Sequence[str]) -> None:
    """Draw the fields for the person's own bound and what it costs, right below the card."""
    if not bound_fields:
        return
    fields.draw_row(question, *bound_fields)
    for name, sentence in answer.facts.items():
        if name.startswith("Your "):
            st.caption(f"{name}: {sentence}")
