"""What every question shows beside and below its main figure: the answer card, and the tabs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dpcore.answer import Answer
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout, lazy_tabs


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
        lazy_tabs.draw(contents, of.key(remembered))


def _compare(of: Question, answer: Answer, own: Sequence[str]) -> None:
    """People come with a number, their library's default, say: what it costs stands right under it."""
    if not own:
        return
    fields.draw_row(of, *own)
    for name, sentence in answer.facts.items():
        if name.startswith("Your "):
            st.caption(f"{name}: {sentence}")
