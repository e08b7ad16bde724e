"""What every question shows beside and below its main figure: the answer card, and the tabs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dpcore.answer import Answer
from pages.shared.base import page_run
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout


def show(
    places: layout.Places,
    of: Question,
    answer: Answer,
    tabs: Mapping[str, Callable[[], object]],
    files: Callable[[], object],
    *,
    used: Callable[[], str] | None = None,
    behind: Callable[[Answer], object] = cards.behind,
    formula: str = "formula",
    remembered: str = "tabs",
    key: str = "",
    own: Sequence[str] | None = None,
) -> None:
    """Draw them.

    Args:
        places: Of the page.
        of: The question.
        answer: Its answer.
        tabs: The question's own tabs, which stand between those that every question has.
        files: Draws the downloads.
        used: What the answer was computed from, a text below what stands behind it.
        behind: Draws what stands behind the answer.
        formula: The file that says how it is computed.
        remembered: Under which name the session remembers the open tab.
        key: Of the card; by default the question's name, and ``_card``.
        own: The fields for a bound of the person's own; by default those that the question declares.
    """

    def first() -> None:
        behind(answer)
        if used is not None:
            st.caption(used())

    with places.answer:
        cards.answer(answer, key or f"{of.name}_card")
        _compare(of, answer, of.own if own is None else own)
    contents = {layout.BEHIND: first, **tabs, layout.DOWNLOADS: files}
    contents[layout.COMPUTED] = lambda: st.markdown(of.formula(formula))
    with places.below:
        draw_tabs(contents, of.key(remembered))


def draw_tabs(contents: Mapping[str, Callable[[], object]], key: str) -> None:
    """Draw tabs under the session key ``key``, of which only the open one is drawn: what the others hold costs nothing.

    The first ones of a page are its own; those of the machinery stand among them.
    """
    if (run := page_run.now()) is not None:
        contents = run.with_tabs(contents)
    tabs = st.tabs(list(contents), key=key, on_change="rerun")
    for tab, content in zip(tabs, contents.values(), strict=True):
        if tab.open:
            with tab:
                content()


def _compare(of: Question, answer: Answer, own: Sequence[str]) -> None:
    """People come with a number, their library's default, say: what it costs stands right under it."""
    if not own:
        return
    fields.draw_row(of, *own)
    for name, sentence in answer.facts.items():
        if name.startswith("Your "):
            st.caption(f"{name}: {sentence}")
