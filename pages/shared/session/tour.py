"""A tour over the pages: each step is a page in a state of its own, with a question that one slider or field answers.

A question with a module ``tour`` declares its step there, as ``STEP``; the tour visits them in the order of the
sidebar, on data of its own. The person's data and settings return at its end, or when they bring other data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import streamlit as st

from dpcore.common.checks import InvalidInput, Problems
from dpcore.dataset import Dataset
from pages.shared.base import catalogue, keys
from pages.shared.base.cache import cache_for_session
from pages.shared.base.question import Question
from pages.shared.fields import setting
from pages.shared.session import session
from pages.shared.session.session import SavedState, Tour

MARK, DATA_MARK = "tour", "before"
"""Fields of the address: the step, and how a link names the data that return at the end; ``before.`` begins these."""


@dataclass(frozen=True)
class Step:
    """A state of a page, and the tour's question about it.

    Attributes:
        origin: The data in use.
        parameters: The page's parameters object to begin with.
        field_name: The parameter to be moved.
        goal_value: The value to move it to.
        is_far_enough: Returns True if a value of the field is far enough from the first one.
        question_sentence: One short question.
        instruction: What to do to see its answer, an imperative without its full stop.
        write_answer: Writes the core's answer in one or two sentences, from the data and the parameters as they stand.
    """

    origin: session.Origin
    parameters: Any
    field_name: str
    goal_value: Any
    is_far_enough: Callable[[Any], bool]
    question_sentence: str
    instruction: str
    write_answer: Callable[[Dataset, Any], str]

    def parameters_at(self, field_value: Any) -> Any:
        """Return the parameters object with the field at a value."""
        return replace(self.parameters, **{self.field_name: field_value})


def list_questions() -> tuple[Question, ...]:
    """Return the questions that the tour visits, in order."""
    return tuple(q for q in catalogue.PAGES if find_spec(f"pages.{q.name}.tour") is not None)


def import_step(question: Question) -> Step:
    """Import the step that a question declares in its module ``tour``."""
    step: Step = importlib.import_module(f"pages.{question.name}.tour").STEP
    return step


def begin_tour() -> None:
    """Put the session aside and go to the first step."""
    enter_step(1, session.put_session_aside(session.get_loaded()))


def go_to_step(step_number: int) -> None:
    """Go to the beginning of a step; nothing without a tour."""
    if (tour := session.get_tour()) is not None:  # It may have ended in another run of the page.
        enter_step(step_number, tour.saved_state)


def enter_step(step_number: int, saved_state: SavedState) -> None:
    """Put a step's data and settings in use and go to its page; call it before any widget, as from a callback."""
    state, question = st.session_state, list_questions()[step_number - 1]
    step = import_step(question)
    session.clear_question(question)
    session.put_in_use(session.LoadedData(step.origin.load(), step.origin))
    for field_name, widget_key in question.widget_keys.items():
        state[widget_key] = getattr(step.parameters, field_name)
    setting.forget_entries()
    setting.note_proposed_values()
    state[keys.EPSILON_PAGE] = None
    state[keys.TOUR] = Tour(step_number, saved_state)
    state[keys.TOUR_DESTINATION] = question.page_path


def request_answer() -> None:
    """Have the bar show the answer of the step without a move; nothing without a tour."""
    if (tour := session.get_tour()) is not None:
        st.session_state[keys.TOUR] = replace(tour, is_answer_requested=True)


def end_tour() -> None:
    """Restore the data and settings from before, and return to the first page; nothing without a tour."""
    if session.end_tour():
        st.session_state[keys.TOUR_DESTINATION] = catalogue.PAGES[0].page_path


def has_step_data(step: Step) -> bool:
    """Return True if the step's own data are in use; other data have other answers."""
    return session.get_loaded().origin == step.origin


def write_answer(step: Step, tour: Tour, parameters: Any | None) -> str:
    """Return the answer to the step's question; empty on other data, or until its field was moved or it was asked for.

    Args:
        step: The step.
        tour: The tour.
        parameters: The page's parameters object as it stands; None if its fields are refused.
    """
    if not has_step_data(step):
        return ""
    moved_value = None if parameters is None else getattr(parameters, step.field_name)
    is_moved = moved_value is not None and step.is_far_enough(moved_value)
    if not is_moved and not tour.is_answer_requested:
        return ""
    dataset, shown_parameters = (
        session.get_dataset(),
        step.parameters_at(moved_value if is_moved else step.goal_value),
    )
    question_name = list_questions()[tour.step_number - 1].name
    answer_text = _write_cached_answer(question_name, dataset.digest, shown_parameters, dataset)
    return (
        f"{answer_text} {OTHER_SETTINGS_NOTE}" if is_moved and parameters != shown_parameters else answer_text
    )


OTHER_SETTINGS_NOTE = "(This is with the step's other settings.)"


@cache_for_session(max_entries=16)
def _write_cached_answer(question_name: str, digest: str, parameters: Any, _data: Dataset) -> str:
    """Return the answer of a question's step, cached: the page is drawn at every movement."""
    return import_step(catalogue.QUESTION_BY_NAME[question_name]).write_answer(_data, parameters)


# --- The address ------------------------------------------------------------------------------------------------------


def list_address_fields(tour: Tour) -> dict[str, str]:
    """Return the fields of the address that bring a reloaded page back to the step, texts by name."""
    origin: session.Origin = tour.saved_state.loaded_data.origin
    address_fields = {MARK: str(tour.step_number), DATA_MARK: origin.name}
    return address_fields | {
        f"{DATA_MARK}.{setting_name}": setting_text
        for setting_name, setting_text in origin.generator_texts.items()
    }


def is_address_field(address_field_name: str) -> bool:
    """Return True if a field of an address belongs to the tour."""
    return address_field_name in (MARK, DATA_MARK) or address_field_name.startswith(DATA_MARK + ".")


def resume_tour(texts_by_name: Mapping[str, str], is_link_applied: bool, problems: Problems) -> None:
    """Resume the tour that an address names, if it names one; to be called once, before any widget.

    Args:
        texts_by_name: The texts of the address, by field.
        is_link_applied: True if they set a page with its data, which is left as it is: a step with a slider moved.
        problems: Takes the problems.
    """
    if MARK not in texts_by_name:
        return
    step_text, num_steps = texts_by_name[MARK], len(list_questions())
    saved_state = SavedState(_load_data_before(texts_by_name), setting.DEFAULT_EPSILON, is_named_only=True)
    if step_text not in map(str, range(1, num_steps + 1)):
        problem_sentence = f"the tour has {num_steps} steps, and none is called {step_text[:20]!r}"
        problems.add(problem_sentence, remedy="Begin it on Home")
    elif is_link_applied:
        st.session_state[keys.TOUR] = Tour(int(step_text), saved_state)
    else:
        enter_step(int(step_text), saved_state)


def _load_data_before(texts_by_name: Mapping[str, str]) -> session.LoadedData:
    """Load the data that an address names as those before the tour; the default sample if there are no such data."""
    origin_prefix = DATA_MARK + "."
    generator_texts = {
        n.removeprefix(origin_prefix): setting_text
        for n, setting_text in texts_by_name.items()
        if n.startswith(origin_prefix)
    }
    origin = session.Origin(texts_by_name.get(DATA_MARK, session.DEFAULT_SAMPLE), generator_texts)
    try:
        return session.LoadedData(origin.load(), origin)
    except InvalidInput:
        origin = session.Origin(session.DEFAULT_SAMPLE)
        return session.LoadedData(origin.load(), origin)
