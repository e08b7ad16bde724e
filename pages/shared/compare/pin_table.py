"""Builds the pin that a page offers, and draws the table of all pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from dpcore.answer import Answer
from dpcore.code.choice import PER_GROUP, Choice
from dpcore.common import wording
from dpcore.common.privacy import find_strictest
from dpcore.common.text_fields import to_text
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.report import document
from pages.shared.base import page_run, tables
from pages.shared.base.question import Facet, Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.figures import pins
from pages.shared.figures.pins import Pin

NONE_YET = (
    "Nothing is pinned yet. *Pin this*, under the main figure, keeps its answer, to be compared with those of other "
    "data and settings."
)
HALF_OR_DOUBLE = "Half or double"
"""The fact of a card that says what half and double of the bound cost."""


# --- What can be pinned -----------------------------------------------------------------------------------------------


def build_pin(run: page_run.Drawn, data: Dataset, parameters: Any | None) -> Pin | None:
    """Return the page's answer as a pin; None if the page shows no answer.

    Args:
        run: What the page drew.
        data: The session's.
        parameters: The parameters object that the answer is for.
    """
    card: Answer | None = run.card
    if run.figure is None or card is None or parameters is None:
        return None
    question = run.question
    is_on_session_data = not question.own_data and can_answer(question, data)
    epsilon = getattr(parameters, "epsilon", None)
    name = f"{question.title}: data of its own" if question.own_data else "Demonstration"
    if is_on_session_data:
        name = data.name
    numbers = [(number.label, number.text) for number in card.numbers[:2]]
    number, error = [*numbers, ("", ""), ("", "")][:2]
    budget = "" if epsilon is None else f", ε = {wording.entered(epsilon)}"
    return Pin(
        question=question.name,
        name=(name if len(name) <= 28 else name[:27] + "…") + budget,
        data=name,
        epsilon=epsilon,
        bound=number,
        error=error,
        rows_lost=_compute_lost_share(card, data) if is_on_session_data else None,
        half_or_double=card.facts.get(HALF_OR_DOUBLE, ""),
        settings=tuple(_list_settings(question, parameters)),
        disclosure=card.disclosure,
    )


def can_answer(question: Question, data: Dataset) -> bool:
    """Return True if the data have what the question needs; if not, its page shows a demonstration."""
    available = {
        Facet.ROWS: True,
        Facet.VALUES: data.values is not None,
        Facet.GROUPS: data.task_sizes is not None,
    }
    return not question.answers_from or any(available[facet] for facet in question.answers_from)


def _compute_lost_share(card: Answer, data: Dataset) -> float | None:
    """Return the share of rows that a cap on rows leaves out; None for other bounds."""
    forms = card.code.forms if card.code is not None else ()
    choice = forms[0][1] if forms else None
    if not isinstance(choice, Choice) or choice.quantity in PER_GROUP or choice.max_rows is None:
        return None
    return float(data.histogram.excess(choice.max_rows)) / data.histogram.num_rows


def _list_settings(question: Question, parameters: Any) -> list[tuple[str, str]]:
    """Return label and value of each field that is not at its initial value."""
    changed = []
    for name, field in question.fields.items():
        value = getattr(parameters, name)
        if value is None or value == field.initial:
            continue
        if field.options is not None and value in field.options:
            text = field.options[value]
        else:
            text = wording.entered(value) if type(value) in (int, float) else to_text(value)
        changed.append((field.report_label or field.label or name, text))
    return changed


# --- The list ---------------------------------------------------------------------------------------------------------


def show(question: Question) -> None:
    """Show the pins of a question as a table, with buttons to rename, remove, copy and download them."""
    listed_pins = pins.list_pins(question.name)
    if not listed_pins:
        st.markdown(NONE_YET)
        return
    import pandas as pd

    frame = pd.DataFrame([pins.tabulate_pin(pin) for pin in listed_pins]).map(escape_formula)
    frame = frame.loc[:, (frame != "").any()]
    tables.show(frame, "The pinned answers, a line each", height="content")
    disclosure = find_strictest(pin.disclosure for pin in listed_pins)
    if len(pins.all_pins()) >= pins.MAX_PINS:
        st.caption(f"All {pins.MAX_PINS} places are taken: one more, and the oldest goes.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _edit_pins(question, listed_pins)
        with st.popover("Copy", icon=":material/content_copy:", key=f"{question.name}_pins_copy"):
            st.markdown("The table for a spreadsheet. Use the copy button in the corner of the box.")
            st.code(frame.to_csv(index=False, sep="\t"), language=None)
        cards.file_button(
            "Pins (CSV)",
            f"{question.name}_pins.csv",
            disclosure,
            lambda: as_csv(listed_pins),
            key=f"{question.name}_pins_file",
        )
    cards.label(disclosure)


def as_csv(listed_pins: tuple[Pin, ...]) -> str:
    """Return the pins as a CSV file; the last column is the label of the whole file."""
    rows = [pins.tabulate_pin(pin) for pin in listed_pins]
    columns: Mapping[str, npt.ArrayLike] = {
        name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]
    }
    return document.write_columns(columns, find_strictest(pin.disclosure for pin in listed_pins))


def _edit_pins(question: Question, listed_pins: tuple[Pin, ...]) -> None:
    """Draw the fields that rename a pin, and the buttons that remove pins."""
    names = [pin.name for pin in listed_pins]
    selected_key = f"{question.name}_pin_chosen"
    if st.session_state.get(selected_key) not in names:
        st.session_state[selected_key] = names[-1]
    selected_name = st.selectbox("Pin", names, key=selected_key, width=260)
    name_key = f"{question.name}_pin_name"
    # What was typed into it before, `_rename` has taken: callbacks come before the run.
    st.session_state[name_key] = selected_name
    st.text_input(
        "New name",
        key=name_key,
        max_chars=60,
        on_change=_rename,
        args=(question.name, selected_name, name_key),
        width=260,
    )
    fields.button("Remove", f"{question.name}_pin_remove", "delete", _remove, question.name, selected_name)
    st.button(
        "Remove all",
        key=f"{question.name}_pins_remove",
        on_click=_remove,
        args=(question.name, ""),
        type="tertiary",
    )


def _rename(question: str, selected_name: str, key: str) -> None:
    """Give the selected pin the name in the field, made unique."""
    new_name = str(st.session_state.get(key) or "").strip()
    if new_name and new_name != selected_name:
        name = pins.find_free_name(question, new_name)
        pins.store_pins(
            replace(pin, name=name) if (pin.question, pin.name) == (question, selected_name) else pin
            for pin in pins.all_pins()
        )
        st.session_state[f"{question}_pin_chosen"] = name


def _remove(question: str, pin_name: str) -> None:
    """Remove one pin of a question, or all of them if the name is empty."""
    pins.store_pins(
        pin for pin in pins.all_pins() if pin.question != question or (pin_name and pin.name != pin_name)
    )
