"""What every question shows beside and below its main figure: the answer card, and the tabs."""

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
"""What a tab holds: something that draws, or tabs of its own, by name."""


def show(
    places: layout.Places,
    of: Question,
    answer: Answer,
    tabs: Mapping[str, Content],
    files: Callable[[], object],
    *,
    used: Callable[[], str | None] | None = None,
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
        tabs: The question's own tabs, which stand between those that every question has. Six in all is what fits and
            is read, so that a page with more folds its own: a tab may hold tabs.
        files: Draws the downloads.
        used: What the answer was computed from, a text below what stands behind it; None where it was drawn.
        behind: Draws what stands behind the answer.
        formula: The file that says how it is computed.
        remembered: Under which name the session remembers the open tab.
        key: Of the card; by default the question's name, and ``_card``.
        own: The fields for a bound of the person's own; by default those that the question declares.
    """

    def first() -> None:
        if _drawn_instead(answer):
            st.markdown(READ_OFF)
        behind(answer)
        _offer_plan(of, answer, key or f"{of.name}_card")
        if used is not None and (text := used()):
            st.caption(text)

    with places.answer:
        cards.answer(answer, key or f"{of.name}_card")
        _compare(of, answer, of.own if own is None else own)
    contents: dict[str, Content] = {layout.BEHIND: first, **tabs, layout.DOWNLOADS: files}
    contents[layout.COMPUTED] = lambda: st.markdown(of.formula(formula))
    with places.below:
        draw_tabs(contents, of.key(remembered))


READ_OFF = (
    "**This tab is about the bound that was read off the private data**, not about the one that was drawn. Do not "
    "publish it."
)


def _drawn_instead(answer: Answer) -> bool:
    """Return whether the card shows a bound that was drawn in place of that of the answer."""
    run = page_run.now()
    shown = None if run is None or run.card is not answer else run.shown
    return (
        shown is not None
        and isinstance(shown.disclosure, ReleaseFacts)
        and answer.disclosure != shown.disclosure
    )


def _offer_plan(of: Question, answer: Answer, key: str) -> None:
    """On the pages beside it, the way of their release into the plan."""
    plan = catalogue.PLANNING
    if plan is not None and of is not plan and of.group == plan.group:
        importlib.import_module(f"pages.{plan.name}.on_card").draw(answer, key)


def draw_tabs(contents: Mapping[str, Content], key: str) -> None:
    """Draw tabs under the session key ``key``, of which only the open one is drawn: what the others hold costs nothing.

    The first ones of a page are its own; those of the machinery stand among them. Whoever puts the name of a tab into
    the session (a tour, a link) need not know in which other tab it lies.
    """
    if (run := page_run.now()) is not None:
        contents = run.with_tabs(contents)
    wanted = st.session_state.get(key)
    for name, content in contents.items():
        if not callable(content) and wanted in content:
            st.session_state[key], st.session_state[_inner(key, name)] = name, wanted
    _draw(contents, key)


def _draw(contents: Mapping[str, Any], key: str) -> None:
    """Only the open one; a tab that holds tabs draws its own open one."""
    for tab, (name, content) in zip(
        st.tabs(list(contents), key=key, on_change="rerun"), contents.items(), strict=True
    ):
        if tab.open:
            with tab:
                if callable(content):
                    content()
                else:
                    _draw(content, _inner(key, name))


def _inner(key: str, name: str) -> str:
    """Return where the session keeps which tab within the tab ``name`` is open."""
    return f"{key}_{re.sub('[^a-z]+', '_', name.lower())}"


def _compare(of: Question, answer: Answer, own: Sequence[str]) -> None:
    """People come with a number, their library's default, say: what it costs stands right under it."""
    if not own:
        return
    fields.draw_row(of, *own)
    for name, sentence in answer.facts.items():
        if name.startswith("Your "):
            st.caption(f"{name}: {sentence}")
