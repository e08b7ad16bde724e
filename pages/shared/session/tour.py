"""A tour over the pages: each step is a page in a state of its own, with a question that one slider or field answers.

A question that has a room ``tour`` declares its step there, as ``STEP``; the tour goes through them in the order of the
sidebar. It shows data of its own. What the person had comes back at its end, or when they bring other data meanwhile.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import streamlit as st

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput
from dpcore.dataset import Dataset
from pages.shared.base import catalogue, keys
from pages.shared.base.cache import cached
from pages.shared.base.question import Question
from pages.shared.fields import setting
from pages.shared.session import session, shelf
from pages.shared.session.shelf import Before, Tour

MARK, BEFORE = "tour", "before"
"""Fields of the address: the step, and how a link names the data that return at the end; ``before.`` begins these."""


@dataclass(frozen=True)
class Step:
    """A state of a page, and what it asks.

    Attributes:
        origin: The data in use.
        parameters: The page's parameters object to begin with.
        field: Of these parameters, the one to be moved.
        goal: Where to.
        enough: Whether a value of the field is far enough from the first one.
        question: One short question.
        move: What to do to see its answer, an imperative without its full stop.
        answer: What the core answers, given the data and the parameters with the field as it stands: one or two
            sentences.
        tab: The tab that is open; empty for the first one.
    """

    origin: session.Origin
    parameters: Any
    field: str
    goal: Any
    enough: Callable[[Any], bool]
    question: str
    move: str
    answer: Callable[[Dataset, Any], str]
    tab: str = ""

    def parameters_at(self, value: Any) -> Any:
        """Return the parameters object with the field at a value."""
        return replace(self.parameters, **{self.field: value})


def stops() -> tuple[Question, ...]:
    """Return the questions that the tour visits, in order."""
    return tuple(q for q in catalogue.PAGES if find_spec(f"pages.{q.name}.tour") is not None)


def step_of(question: Question) -> Step:
    """Return the step that a question declares."""
    step: Step = importlib.import_module(f"pages.{question.name}.tour").STEP
    return step


def begin() -> None:
    """Put aside what the session holds, and go to the first step."""
    enter(1, shelf.take(session.loaded()))


def go(number: int) -> None:
    """To a step, as it begins."""
    tour = shelf.tour()
    if tour is not None:  # It may have ended in another run of the page.
        enter(number, tour.saved_state)


def enter(number: int, saved_state: Before) -> None:
    """Show a step. To be called before any widget that it sets, from a callback say."""
    state, question = st.session_state, stops()[number - 1]
    step = step_of(question)
    shelf.clear(question)
    session.put_in_use(step.origin.load(), step.origin)
    for name, key in question.widgets.items():
        state[key] = getattr(step.parameters, name)
    setting.forget()
    setting.begin()
    state[keys.EPSILON_PAGE] = None
    if step.tab:
        state[question.key("tabs")] = step.tab
    state[keys.TOUR] = Tour(number, saved_state)
    state[keys.TOUR_GOES_TO] = question.path


def ask() -> None:
    """Show the answer without moving anything."""
    tour = shelf.tour()
    if tour is not None:
        st.session_state[keys.TOUR] = replace(tour, is_answer_requested=True)


def end() -> None:
    """Put back the data and the settings from before, and return to the first page."""
    if session.end_tour():
        st.session_state[keys.TOUR_GOES_TO] = catalogue.PAGES[0].path


def follow() -> None:
    """To the page of the step that was asked for; to be called within a page, before its widgets."""
    path: str | None = st.session_state.pop(keys.TOUR_GOES_TO, None)
    if path is not None:
        st.switch_page(path)


def as_declared(step: Step) -> bool:
    """Return whether the step's own data are in use: others have other answers."""
    return session.loaded().origin == step.origin


def answer_now(step: Step, tour: Tour, parameters: Any | None) -> str:
    """Return the answer to the step's question; empty before anybody moved what it is about, or asked.

    Args:
        step: The step.
        tour: Where the tour is.
        parameters: The page's parameters object as it stands; None where its fields are refused.
    """
    if not as_declared(step):
        return ""
    value = None if parameters is None else getattr(parameters, step.field)
    is_moved = value is not None and step.enough(value)
    if not is_moved and not tour.is_answer_requested:
        return ""
    data, parameters_shown = session.dataset(), step.parameters_at(value if is_moved else step.goal)
    answer = _answer(stops()[tour.number - 1].name, data.digest, parameters_shown, data)
    return f"{answer} {OTHERWISE}" if is_moved and parameters != parameters_shown else answer


OTHERWISE = "(This is with the step's other settings.)"


@cached(max_entries=16)
def _answer(name: str, digest: str, parameters: Any, _data: Dataset) -> str:
    """Return the answer of a question's step, kept: the page is drawn at every movement."""
    question = catalogue.named(name)
    assert question is not None
    return step_of(question).answer(_data, parameters)


# --- The address ------------------------------------------------------------------------------------------------------


def marks(tour: Tour) -> dict[str, str]:
    """Return what the address holds of the tour, so that a page that is loaded anew comes back to the
    step.
    """
    origin: session.Origin = tour.saved_state.loaded.origin
    address_fields = {MARK: str(tour.number), BEFORE: origin.kind}
    return address_fields | {f"{BEFORE}.{name}": text for name, text in origin.fields.items()}


def is_mark(name: str) -> bool:
    """Return whether a field of an address is one of these."""
    return name in (MARK, BEFORE) or name.startswith(BEFORE + ".")


def resume(fields: Mapping[str, str], followed: bool, problems: Problems) -> None:
    """Take up the tour that an address names; to be called once, before any widget.

    Args:
        fields: The fields of the address.
        followed: Whether they set a page with its data, which is left as it is: a step with a slider moved.
        problems: Takes what is wrong.
    """
    if MARK not in fields:
        return
    step_text, num_steps = fields[MARK], len(stops())
    if step_text not in {str(number) for number in range(1, num_steps + 1)}:
        problems.add(
            f"the tour has {num_steps} steps, and none is called {step_text[:20]!r}",
            remedy="Begin it on Start",
        )
        return
    saved_state = Before(_origin_before(fields), setting.DEFAULT_EPSILON, named_only=True)
    if followed:
        st.session_state[keys.TOUR] = Tour(int(step_text), saved_state)
    else:
        enter(int(step_text), saved_state)


def _origin_before(fields: Mapping[str, str]) -> session.Loaded:
    """Return the data from before; the default sample where an address cannot name them."""
    address_fields = {name.removeprefix(BEFORE + "."): text for name, text in fields.items() if is_mark(name)}
    origin = session.Origin(
        address_fields.pop(BEFORE, session.DEFAULT_SAMPLE),
        {n: t for n, t in address_fields.items() if n != MARK},
    )
    try:
        return session.Loaded(origin.load(), origin)
    except InvalidInput:
        default_origin = session.Origin(session.DEFAULT_SAMPLE)
        return session.Loaded(default_origin.load(), default_origin)
