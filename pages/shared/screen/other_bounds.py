"""The best bounds of other releases of the same data at the same epsilon, in one line below a card."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.checks import InvalidInput
from dpcore.common.parameters import list_unused
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset
from pages.shared.base import catalogue, keys
from pages.shared.base.question import Question
from pages.shared.fields import fields, jobs, setting
from pages.shared.session import session


def draw(question: Question, card: Answer) -> None:
    """Draw a line with the bounds of other quick pages, each a link; nothing without one, or below a released bound.

    Under a bound that was chosen with DP there is none: these are computed from the private data themselves.
    """
    dataset = session.dataset()
    if dataset.is_private and isinstance(card.disclosure, ReleaseFacts):
        return
    # A page with the same bound, such as Sum and count on Home, says nothing new.
    card_bound = card.numbers[0].text if card.numbers else ""
    pages_and_texts = [(other, text) for other, text in _list_bounds(question, dataset) if text != card_bound]
    if not pages_and_texts:
        return
    warning = " (do not publish)" if dataset.is_private else ""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"{question.name}_others"
    ):
        st.caption(f"Best bound of other releases{warning}:", width="content")
        for other, bound_text in pages_and_texts:
            st.page_link(other.page_path, label=f"{other.title}: {bound_text}", width="content")


def _list_bounds(question: Question, dataset: Dataset) -> Iterator[tuple[Question, str]]:
    """Yield the other quick pages, each with its best bound as text; a page whose settings are refused is left out."""
    for other in catalogue.PAGES:
        if not other.is_quick_to_answer or other is question:
            continue
        try:
            yield other, build_answer(other, dataset).numbers[0].text
        except InvalidInput:
            continue


def build_answer(question: Question, dataset: Dataset) -> Answer:
    """Build the answer of a quick page as it would open now.

    Raises:
        InvalidInput: The page would ask for something first, or refuse its settings.
    """
    answer_module = importlib.import_module(f"dpcore.{question.name}.answer.answer")
    parameters = _read_parameters(question)
    solver = answer_module.solve_beside_page(dataset, parameters)
    solution = jobs.run_solver(solver, question, dataset, session.is_same_for_all())[0].value
    answer: Answer = answer_module.build_answer(dataset, parameters, solution)
    return answer


def _read_parameters(question: Question) -> object:
    """Build the parameters of a page as it would open now.

    Raises:
        InvalidInput: The page would ask for something first, or refuse its settings.
    """
    assert question.parameters_type is not None
    state = st.session_state
    values_by_name = {"epsilon": state.get(keys.EPSILON, setting.DEFAULT_EPSILON)}
    for name, field in question.fields.items():
        is_set = question.widget_keys[name] in state
        values_by_name[name] = setting.read_value(question, name) if is_set else field.initial
    unused_names = list_unused(question.declarations, values_by_name, question.get_initial_value)
    used_values = {name: value for name, value in values_by_name.items() if name not in unused_names}
    required_labels = {name: field.name for name, field in question.declarations.items() if field.is_required}
    parameters, problems = fields.build_parameters(
        question.parameters_type, used_values, required_labels, subjects=question.subjects_by_field
    )
    if parameters is None:
        raise InvalidInput(problems)
    return parameters
