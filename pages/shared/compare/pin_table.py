"""What a page offers to pin, and the tab that lists what was pinned."""

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
from dpcore.report import csv_files
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


def offered(run: page_run.Drawn, data: Dataset, parameters: Any | None) -> Pin | None:
    """Return the answer that a page shows, as a pin; None where it shows none.

    Args:
        run: What the page drew.
        data: The session's.
        parameters: The parameters object that the answer is for.
    """
    card: Answer | None = run.card
    if run.figure is None or card is None or parameters is None:
        return None
    of = run.question
    on_these = not of.own_data and answers_from(of, data)
    epsilon = getattr(parameters, "epsilon", None)
    name = data.name if on_these else f"{of.title}: data of its own" if of.own_data else "Demonstration"
    numbers = [(number.label, number.text) for number in card.numbers[:2]]
    number, error = [*numbers, ("", ""), ("", "")][:2]
    budget = "" if epsilon is None else f", ε = {wording.entered(epsilon)}"
    return Pin(
        question=of.name,
        name=(name if len(name) <= 28 else name[:27] + "…") + budget,
        data=name,
        epsilon=epsilon,
        bound=number,
        error=error,
        rows_lost=_rows_lost(card, data) if on_these else None,
        half_or_double=card.facts.get(HALF_OR_DOUBLE, ""),
        settings=tuple(_settings(of, parameters)),
        disclosure=card.disclosure,
    )


def answers_from(of: Question, data: Dataset) -> bool:
    """Return whether the data have what the question answers from; else its page shows something invented."""
    held = {
        Facet.ROWS: True,
        Facet.VALUES: data.values is not None,
        Facet.GROUPS: data.task_sizes is not None,
    }
    return not of.answers_from or any(held[facet] for facet in of.answers_from)


def _rows_lost(card: Answer, data: Dataset) -> float | None:
    """Share of all rows that a cap on rows leaves out; None for other bounds."""
    forms = card.code.forms if card.code is not None else ()
    choice = forms[0][1] if forms else None
    if not isinstance(choice, Choice) or choice.quantity in PER_GROUP or choice.max_rows is None:
        return None
    return float(data.histogram.excess(choice.max_rows)) / data.histogram.num_rows


def _settings(of: Question, parameters: Any) -> list[tuple[str, str]]:
    """(what, value) of the fields that are not as at first."""
    changed = []
    for name, field in of.fields.items():
        value = getattr(parameters, name)
        if value is None or value == field.initial:
            continue
        if field.options is not None and value in field.options:
            words = field.options[value]
        else:
            words = wording.entered(value) if type(value) in (int, float) else to_text(value)
        changed.append((field.report_label or field.label or name, words))
    return changed


# --- The list ---------------------------------------------------------------------------------------------------------


def show(of: Question) -> None:
    """The pins of a question: the table, and what can be done with them."""
    held = pins.of(of.name)
    if not held:
        st.markdown(NONE_YET)
        return
    import pandas as pd

    frame = pd.DataFrame([pins.said(pin) for pin in held]).map(escape_formula)
    frame = frame.loc[:, (frame != "").any()]
    tables.show(frame, "The pinned answers, a line each", height="content")
    disclosure = find_strictest(pin.disclosure for pin in held)
    if len(pins.all_pins()) >= pins.MOST:
        st.caption(f"All {pins.MOST} places are taken: one more, and the oldest goes.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _change(of, held)
        with st.popover("Copy", icon=":material/content_copy:", key=f"{of.name}_pins_copy"):
            st.markdown("The table for a spreadsheet. Use the copy button in the corner of the box.")
            st.code(frame.to_csv(index=False, sep="\t"), language=None)
        cards.file_button(
            "Pins (CSV)", f"{of.name}_pins.csv", disclosure, lambda: as_csv(held), key=f"{of.name}_pins_file"
        )
    cards.label(disclosure)


def as_csv(held: tuple[Pin, ...]) -> str:
    """Return the table as a file; the last column is the label of all of it."""
    rows = [pins.said(pin) for pin in held]
    columns: Mapping[str, npt.ArrayLike] = {
        name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]
    }
    return csv_files.write_columns(columns, find_strictest(pin.disclosure for pin in held))


def _change(of: Question, held: tuple[Pin, ...]) -> None:
    """Rename a pin, or remove it."""
    names = [pin.name for pin in held]
    chosen_key = f"{of.name}_pin_chosen"
    if st.session_state.get(chosen_key) not in names:
        st.session_state[chosen_key] = names[-1]
    chosen = st.selectbox("Pin", names, key=chosen_key, width=260)
    name_key = f"{of.name}_pin_name"
    # What was typed into it before, `_rename` has taken: callbacks come before the run.
    st.session_state[name_key] = chosen
    st.text_input(
        "New name", key=name_key, max_chars=60, on_change=_rename, args=(of.name, chosen, name_key), width=260
    )
    fields.button("Remove", f"{of.name}_pin_remove", "delete", _remove, of.name, chosen)
    st.button(
        "Remove all", key=f"{of.name}_pins_remove", on_click=_remove, args=(of.name, ""), type="tertiary"
    )


def _rename(question: str, chosen: str, key: str) -> None:
    wanted = str(st.session_state.get(key) or "").strip()
    if wanted and wanted != chosen:
        name = pins.free_name(question, wanted)
        pins.keep(
            replace(pin, name=name) if (pin.question, pin.name) == (question, chosen) else pin
            for pin in pins.all_pins()
        )
        st.session_state[f"{question}_pin_chosen"] = name


def _remove(question: str, chosen: str) -> None:
    """Remove one pin of a question, or all of them where none is named."""
    pins.keep(pin for pin in pins.all_pins() if pin.question != question or (chosen and pin.name != chosen))
