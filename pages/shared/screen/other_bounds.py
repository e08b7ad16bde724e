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
from pages.shared.fields import field_values, searches, setting
from pages.shared.session import session


def draw_other_bounds(question: Question, card: Answer) -> None:
    """Draw a line with the bounds of other quick pages, each a link; nothing without one, or below a released bound.

    Under a bound that was chosen with DP there is none: these are computed from the private data themselves.
    """
    dataset = session.get_dataset()
    if dataset.is_private and isinstance(card.disclosure, ReleaseFacts):
        return
    # A page with the same bound, such as Sum and count on Home, says nothing new.
    card_bound = card.numbers[0].text if card.numbers else ""
    pages_and_texts = [
        (other_page, text) for other_page, text in _list_bounds(question, dataset) if text != card_bound
    ]
    if not pages_and_texts:
        return
    warning_text = " (do not publish)" if dataset.is_private else ""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"{question.name}_others"
    ):
        st.caption(f"Best bound of other releases{warning_text}:", width="content")
        for other_page, bound_text in pages_and_texts:
            st.page_link(other_page.page_path, label=f"{other_page.title}: {bound_text}", width="content")


def _list_bounds(question: Question, dataset: Dataset) -> Iterator[tuple[Question, str]]:
    """Yield the other quick pages, each with its best bound as text; a page whose settings are refused is left out."""
    for other_page in catalogue.PAGES:
        if not other_page.is_quick_to_answer or other_page is question:
            continue
        try:
            yield other_page, build_answer(other_page, dataset).numbers[0].text
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
    solution = searches.run_solver(solver, question, dataset, session.is_same_for_all())[0].value
    answer: Answer = answer_module.build_answer(dataset, parameters, solution)
    return answer


def _read_parameters(question: Question) -> object:
    """Build the parameters of a page as it would open now.

    Raises:
        InvalidInput: The page would ask for something first, or refuse its settings.
    """
    assert question.parameters_type is not None
    state = st.session_state
    values_by_field = {"epsilon": state.get(keys.EPSILON, setting.DEFAULT_EPSILON)}
    for field_name, field in question.fields.items():
        is_set = question.widget_keys[field_name] in state
        values_by_field[field_name] = setting.read_value(question, field_name) if is_set else field.initial
    unused_names = list_unused(question.declarations, values_by_field, question.get_initial_value)
    used_values_by_field = {
        field_name: field_value
        for field_name, field_value in values_by_field.items()
        if field_name not in unused_names
    }
    required_label_by_field = {
        field_name: field.name for field_name, field in question.declarations.items() if field.is_required
    }
    parameters, problems = field_values.build_parameters(
        question.parameters_type,
        used_values_by_field,
        required_label_by_field,
        subjects_by_field=question.subjects_by_field,
    )
    if parameters is None:
        raise InvalidInput(problems)
    return parameters
