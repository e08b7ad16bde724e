"""The tab *Compare* of every question: pinned answers, and bounds and methods over ε."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import streamlit as st

from dpcore.answer import against
from dpcore.answer.answer import Answer
from dpcore.code.release_spec import GROUP_QUANTITIES, ReleaseSpec
from dpcore.common.privacy import find_strictest
from dpcore.common.text_fields import to_text
from dpcore.common.wording import format_entered
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.report import content as report_content
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.figures.figures import Pin
from pages.shared.screen.sections import Renderer
from pages.shared.session import session


def import_answer_module(question_name: str) -> Any:
    """Return the module that answers a question, from the core or beside its page; None if there is none."""
    packages = (f"dpcore.{question_name}", f"pages.{question_name}")
    # Asked of the folder first: `find_spec` raises where that is not there.
    module_names = (f"{p}.answer" for p in packages if find_spec(p) and find_spec(f"{p}.answer"))
    return next(map(importlib.import_module, module_names), None)


NO_PINS_TEXT = "No answer is pinned yet. *Pin this*, under the main figure, keeps the answer."
HALF_OR_DOUBLE_FACT = "Half or double"
"""The fact of a card that says what half and double of the bound cost."""


# --- What can be pinned -----------------------------------------------------------------------------------------------


def build_pin(run: page_run.PageRun, dataset: Dataset, parameters: Any | None) -> Pin | None:
    """Return the page's answer as a pin; None if the page shows no answer.

    Args:
        run: What the page drew.
        dataset: The session's.
        parameters: The parameters object that the answer is for.
    """
    card: Answer | None = run.answer_card
    if run.main_figure is None or card is None or parameters is None:
        return None
    question = run.question
    is_on_session_data = not question.has_own_data and question.can_answer(dataset)
    data_name = f"{question.title}: data of its own" if question.has_own_data else "Demonstration"
    if is_on_session_data:
        data_name = dataset.name
    bound_texts, error_texts = [
        *((number.label, number.text) for number in card.numbers),
        ("", ""),
        ("", ""),
    ][:2]
    if card.error is not None and card.numbers and card.numbers[0].value == card.error:
        # The large number is the error, and the choice stands in the instruction.
        bound_texts, error_texts = ("", card.headline), bound_texts
    epsilon, rows_lost = parameters.epsilon, None
    first_release = card.code.forms[0][1] if card.code is not None and card.code.forms else None
    rows_cap = (
        first_release.max_rows
        if isinstance(first_release, ReleaseSpec) and first_release.quantity not in GROUP_QUANTITIES
        else None
    )
    if is_on_session_data and rows_cap is not None:
        rows_lost = float(dataset.histogram.sum_excess(rows_cap)) / dataset.histogram.num_rows
    return Pin(
        question=question.name,
        name=f"{data_name if len(data_name) <= 28 else data_name[:27] + '…'}, ε = {format_entered(epsilon)}",
        data=data_name,
        epsilon=epsilon,
        bound=bound_texts,
        error=error_texts,
        rows_lost=rows_lost,
        half_or_double=card.facts.get(HALF_OR_DOUBLE_FACT, ""),
        settings=tuple(_list_settings(question, parameters)),
        disclosure=card.disclosure,
    )


def _list_settings(question: Question, parameters: Any) -> list[tuple[str, str]]:
    """Return label and value, as texts, of each field that is neither None nor at its initial value."""
    changed_settings = []
    for field_name, field in question.fields.items():
        setting_value = getattr(parameters, field_name)
        if setting_value is None or setting_value == field.initial:
            continue
        setting_text = (
            format_entered(setting_value) if type(setting_value) in (int, float) else to_text(setting_value)
        )
        setting_text = (field.options or {}).get(setting_value, setting_text)
        changed_settings.append((field.report_label or field.label or field_name, setting_text))
    return changed_settings


# --- The list ---------------------------------------------------------------------------------------------------------


def show_pins(question: Question) -> None:
    """Show the pins of a question as a table, with buttons to rename, remove, copy and download them."""
    listed_pins = figures.list_pins(question.name)
    if not listed_pins:
        st.markdown(NO_PINS_TEXT)
        return
    import pandas as pd

    frame = pd.DataFrame([figures.tabulate_pin(pin) for pin in listed_pins]).map(escape_formula)
    frame = frame.loc[:, (frame != "").any()]
    figures.show_table(frame, "The pinned answers, a line each", height="content")
    disclosure = find_strictest(pin.disclosure for pin in listed_pins)
    if len(figures.list_all_pins()) >= figures.MAX_PINS:
        st.caption(f"All {figures.MAX_PINS} places are taken: the next pin replaces the oldest.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _edit_pins(question, listed_pins)
        with st.popover("Copy", icon=":material/content_copy:", key=f"{question.name}_pins_copy"):
            st.markdown("The table for a spreadsheet.")
            st.code(frame.to_csv(index=False, sep="\t"), language=None)
        file_name = f"{question.name}_pins.csv"
        cards.draw_file_button("Pins (CSV)", file_name, disclosure, lambda: write_pins_csv(listed_pins))
    cards.draw_label(disclosure)


def write_pins_csv(listed_pins: tuple[Pin, ...]) -> str:
    """Return the pins as a CSV file; the last column is the label of the whole file."""
    table_rows = [figures.tabulate_pin(pin) for pin in listed_pins]
    columns_by_heading = {
        heading: np.array([row[heading] for row in table_rows], dtype=object) for heading in table_rows[0]
    }
    return report_content.write_columns(
        columns_by_heading, find_strictest(pin.disclosure for pin in listed_pins)
    )


def _edit_pins(question: Question, listed_pins: tuple[Pin, ...]) -> None:
    """Draw the fields that rename a pin, and the buttons that remove pins."""
    pin_names = [pin.name for pin in listed_pins]
    selected_key = f"{question.name}_pin_chosen"
    if st.session_state.get(selected_key) not in pin_names:
        st.session_state[selected_key] = pin_names[-1]
    selected_name = st.selectbox("Pin", pin_names, key=selected_key, width=260)
    name_key = f"{question.name}_pin_name"
    # What was typed into it before, `_rename_pin` has taken: callbacks come before the run.
    st.session_state[name_key] = selected_name
    rename_arguments = question.name, selected_name, name_key
    st.text_input(
        "New name", key=name_key, max_chars=60, on_change=_rename_pin, args=rename_arguments, width=260
    )
    fields.draw_button(
        "Remove", f"{question.name}_pin_remove", "delete", _remove_pins, question.name, selected_name
    )
    remove_all_key = f"{question.name}_pins_remove"
    fields.draw_button(
        "Remove all", remove_all_key, "delete_sweep", _remove_pins, question.name, "", type="tertiary"
    )


def _rename_pin(question_name: str, selected_name: str, name_key: str) -> None:
    """Give the selected pin the name in the field, made unique; nothing if that is empty or the same."""
    new_name = str(st.session_state.get(name_key) or "").strip()
    if new_name and new_name != selected_name:
        free_name = figures.find_free_name(question_name, new_name)
        figures.store_pins(
            replace(pin, name=free_name)
            if (pin.question, pin.name) == (question_name, selected_name)
            else pin
            for pin in figures.list_all_pins()
        )
        st.session_state[f"{question_name}_pin_chosen"] = free_name


def _remove_pins(question_name: str, pin_name: str) -> None:
    """Remove one pin of a question, or all of them if the name is empty."""
    pins = figures.list_all_pins()
    figures.store_pins(p for p in pins if p.question != question_name or (pin_name and p.name != pin_name))


TAB_NAME = "Compare"


def show_below(run: page_run.PageRun) -> None:
    """Show the comparison below the page, folded up, on a page that has drawn no tabs."""
    expander_key = f"{run.question.name}_pinned"
    expander = st.expander(TAB_NAME, icon=":material/keep:", key=expander_key, on_change="rerun")
    if expander.open:  # What stands in it costs nothing while it is closed.
        with expander:
            show_comparison(run)


def show_comparison(run: page_run.PageRun) -> None:
    """Show the pins of the page's question, and its comparison over ε if it has one and there are parameters."""
    question, compared_data = run.question, run.own_data
    show_pins(question)
    parameters, answer_module = (
        st.session_state.get(keys.PAGE_PARAMETERS),
        import_answer_module(question.name),
    )
    compare_over_epsilon = getattr(answer_module, "compare_over_epsilon", None)
    if (
        parameters is None
        or compare_over_epsilon is None
        or (question.has_own_data and compared_data is None)
    ):
        return
    if compared_data is None:
        dataset_in_use = session.get_dataset()
        compared_data = (
            dataset_in_use if question.can_answer(dataset_in_use) else session.load_demonstration()
        )
    ignored_names = getattr(answer_module, "IGNORED_FIELD_NAMES", ())
    # What holds at the ε in use need not hold at every other: the renderer says so.
    Renderer(question, run.answer_card, compared_data).show(
        lambda _, data: against.show_over_epsilon(
            question.name, compare_over_epsilon, ignored_names, data, parameters
        )
    )
