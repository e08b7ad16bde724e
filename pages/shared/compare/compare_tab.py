"""The tab *Compare* of every question: pinned answers, and bounds and methods over ε."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import streamlit as st

from dpcore.answer import against
from dpcore.answer.against import BoundComparison, BoundCurves, MethodComparison, MethodCurves
from dpcore.answer.answer import Answer
from dpcore.answer.section import Cached
from dpcore.code.choice import PER_GROUP, Choice
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Provenance, find_strictest
from dpcore.common.text_fields import to_text
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.report import content
from pages.shared.base import keys, page_run
from pages.shared.base.question import Facet, Question
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.figures.figures import Pin
from pages.shared.session import session

KEY_EPSILON = 1.0
"""The ε of the key under which functions of ε are kept: they do not depend on the one in use."""


Comparison = BoundComparison | MethodComparison | str
"""A comparison over ε, or a sentence on why there is none."""


def find_comparison_function(question: Question) -> Callable[[Any, Any], Comparison] | None:
    """Return the function ``against_epsilon`` of the question's answer; None if it has none."""
    compare: Callable[[Any, Any], Comparison] | None
    compare = getattr(_import_answer_module(question.name), "against_epsilon", None)
    return compare


def _import_answer_module(name: str) -> Any:
    """Return the module that answers a question, from the core or beside its page; None if there is none."""
    packages = (f"dpcore.{name}", f"pages.{name}")
    # Asked of the folder first: `find_spec` raises where that is not there.
    modules = (f"{name}.answer" for name in packages if find_spec(name) and find_spec(f"{name}.answer"))
    return next(map(importlib.import_module, modules), None)


def build_cache_key(question: Question, parameters: Any) -> Any:
    """Return the parameters at one ε and without what no comparison depends on: the cache key of a comparison.

    Raises:
        InvalidInput: The parameters are not valid at that ε.
    """
    names = getattr(_import_answer_module(question.name), "NOT_COMPARED", ())
    return replace(parameters.without(*names), epsilon=KEY_EPSILON)


NONE_YET = (
    "Nothing is pinned yet. *Pin this*, under the main figure, keeps its answer, to be compared with those of other "
    "data and settings."
)
HALF_OR_DOUBLE = "Half or double"
"""The fact of a card that says what half and double of the bound cost."""


# --- What can be pinned -----------------------------------------------------------------------------------------------


def build_pin(run: page_run.PageRun, dataset: Dataset, parameters: Any | None) -> Pin | None:
    """Return the page's answer as a pin; None if the page shows no answer.

    Args:
        run: What the page drew.
        dataset: The session's.
        parameters: The parameters object that the answer is for.
    """
    card: Answer | None = run.card
    if run.figure is None or card is None or parameters is None:
        return None
    question = run.question
    is_on_session_data = not question.own_data and can_answer(question, dataset)
    name = f"{question.title}: data of its own" if question.own_data else "Demonstration"
    if is_on_session_data:
        name = dataset.name
    number, error, *_ = [*((number.label, number.text) for number in card.numbers), ("", ""), ("", "")]
    epsilon = parameters.epsilon
    return Pin(
        question=question.name,
        name=f"{name if len(name) <= 28 else name[:27] + '…'}, ε = {wording.entered(epsilon)}",
        data=name,
        epsilon=epsilon,
        bound=number,
        error=error,
        rows_lost=_compute_lost_share(card, dataset) if is_on_session_data else None,
        half_or_double=card.facts.get(HALF_OR_DOUBLE, ""),
        settings=tuple(_list_settings(question, parameters)),
        disclosure=card.disclosure,
    )


def can_answer(question: Question, dataset: Dataset) -> bool:
    """Return True if the data have what the question needs; if not, its page shows a demonstration."""
    facets = {Facet.ROWS: dataset, Facet.VALUES: dataset.values, Facet.GROUPS: dataset.task_sizes}
    return not question.answers_from or any(facets[facet] is not None for facet in question.answers_from)


def _compute_lost_share(card: Answer, dataset: Dataset) -> float | None:
    """Return the share of rows that a cap on rows leaves out; None for other bounds."""
    choice = card.code.forms[0][1] if card.code is not None and card.code.forms else None
    if not isinstance(choice, Choice) or choice.quantity in PER_GROUP or choice.max_rows is None:
        return None
    return float(dataset.histogram.excess(choice.max_rows)) / dataset.histogram.num_rows


def _list_settings(question: Question, parameters: Any) -> list[tuple[str, str]]:
    """Return label and value of each field that is not at its initial value."""
    changed = []
    for name, field in question.fields.items():
        value = getattr(parameters, name)
        if value is None or value == field.initial:
            continue
        text = wording.entered(value) if type(value) in (int, float) else to_text(value)
        text = (field.options or {}).get(value, text)
        changed.append((field.report_label or field.label or name, text))
    return changed


# --- The list ---------------------------------------------------------------------------------------------------------


def show_pins(question: Question) -> None:
    """Show the pins of a question as a table, with buttons to rename, remove, copy and download them."""
    listed_pins = figures.list_pins(question.name)
    if not listed_pins:
        st.markdown(NONE_YET)
        return
    import pandas as pd

    frame = pd.DataFrame([figures.tabulate_pin(pin) for pin in listed_pins]).map(escape_formula)
    frame = frame.loc[:, (frame != "").any()]
    figures.show_table(frame, "The pinned answers, a line each", height="content")
    disclosure = find_strictest(pin.disclosure for pin in listed_pins)
    if len(figures.all_pins()) >= figures.MAX_PINS:
        st.caption(f"All {figures.MAX_PINS} places are taken: one more, and the oldest goes.")
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
    rows = [figures.tabulate_pin(pin) for pin in listed_pins]
    columns = {name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]}
    return content.write_columns(columns, find_strictest(pin.disclosure for pin in listed_pins))


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
        name = figures.find_free_name(question, new_name)
        figures.store_pins(
            replace(pin, name=name) if (pin.question, pin.name) == (question, selected_name) else pin
            for pin in figures.all_pins()
        )
        st.session_state[f"{question}_pin_chosen"] = name


def _remove(question: str, pin_name: str) -> None:
    """Remove one pin of a question, or all of them if the name is empty."""
    figures.store_pins(
        pin for pin in figures.all_pins() if pin.question != question or (pin_name and pin.name != pin_name)
    )


TITLE = "Compare"


def show_below(run: page_run.PageRun) -> None:
    """Show the comparison below the page, folded up, on a page that has drawn no tabs."""
    if run.figure is None:
        return
    if find_comparison_function(run.question) is None and not figures.list_pins(run.question.name):
        return
    folded = st.expander(TITLE, icon=":material/keep:", key=f"{run.question.name}_pinned", on_change="rerun")
    if folded.open:  # What stands in it costs nothing while it is closed.
        with folded:
            show(run.question)


def show(question: Question) -> None:
    """Show the pins of the question, and its comparison over ε."""
    show_pins(question)
    parameters = st.session_state.get(keys.PAGE_PARAMETERS)
    if parameters is None or find_comparison_function(question) is None:
        return
    run = page_run.CURRENT_RUN.get()
    page_data = None if run is None else run.own_data
    if question.own_data and page_data is None:
        return
    data = session.dataset() if page_data is None else page_data
    if page_data is None and not can_answer(question, data):
        data = session.load_demonstration()
    try:
        show_over_epsilon(question, data, parameters)
    except InvalidInput as refused:  # What holds at the ε in use need not hold at every other.
        fields.show_problems(refused.problems)


def show_over_epsilon(question: Question, data: Any, parameters: Any) -> None:
    """Show what the question compares over ε and common bounds, or why it compares nothing."""
    compare, epsilon = find_comparison_function(question), parameters.epsilon
    assert compare is not None
    comparison: Comparison = jobs.compute(
        Cached(compare, (data, build_cache_key(question, parameters)), kept=8)
    )
    if isinstance(comparison, str):
        st.caption(comparison)
        return
    provenance = comparison.provenance or data.provenance
    methods = comparison if isinstance(comparison, MethodComparison) else comparison.methods
    if methods is not None:
        show_methods(question, methods, epsilon, provenance)
    if isinstance(comparison, BoundComparison):
        show_curves(question, comparison, epsilon, provenance)
        if comparison.compute_errors is not None:
            show_candidates(comparison, epsilon, provenance)


def show_methods(
    question: Question, comparison: MethodComparison, epsilon: float, provenance: Provenance
) -> None:
    """Show the error of each method over ε, and at the ε in use."""
    st.markdown(f"**Against ε:** {comparison.sentence}")
    plot_column, table_column = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with plot_column:
        curves: MethodCurves = jobs.compute(Cached(against.compute_method_curves, (comparison,)))
        figures.draw(against.plot_methods(question.name, comparison, curves, epsilon, provenance))
    with table_column:
        st.markdown(
            f"At ε = {wording.entered(epsilon)}, and the change against *{comparison.names[0].lower()}*:"
        )
        figures.show_table(
            against.tabulate_methods(comparison, epsilon), "What each way costs at this ε", height="content"
        )
        cards.label(provenance)


def show_curves(
    question: Question, comparison: BoundComparison, epsilon: float, provenance: Provenance
) -> None:
    """Show the best bound and its error over ε, with the ε in use marked."""
    st.markdown("**Against ε:** the best bound, and the error that it reaches")
    curves: BoundCurves | None
    if comparison.is_slow:
        curves, current_best = _find_job_curves(question, comparison), None
    else:
        curves = jobs.compute(Cached(against.compute_bound_curves, (comparison,)))
        current_best = comparison.compute_best(epsilon)
    if curves is None or curves.epsilons.size == 0:
        return
    best_plots = against.plot_best(question.name, comparison, curves, epsilon, current_best, provenance)
    for column, plot in zip(st.columns(2, gap="medium"), best_plots, strict=True):
        with column:
            figures.draw(plot)


def _find_job_curves(question: Question, comparison: BoundComparison) -> BoundCurves | None:
    """Return the curves of finished work; before that, show its progress or a button that starts it."""
    key = f"{question.name}_against_job"
    if jobs.watch(key, "Looking for the best bound at each ε"):
        return None
    done = jobs.result_of(key)
    if done is not None and done[0] is comparison:
        curves: BoundCurves = done[1]
        return curves
    fields.button("Compute over ε", f"{question.name}_against", "play_arrow", _start, key, comparison)
    st.caption(
        f"The best bound is looked for at {len(against.COARSE_EPSILONS)} values of ε, which takes a while."
    )
    return None


def _start(key: str, comparison: BoundComparison) -> None:
    jobs.start(key, comparison, functools.partial(against.compute_bound_curves, comparison), heavy=True)


def show_candidates(comparison: BoundComparison, epsilon: float, provenance: Provenance) -> None:
    """Show the errors of round bounds and quantiles beside that of the best bound."""
    st.markdown("**Bounds that people take**, beside the best one at this ε")
    rows = against.tabulate_candidates(against.list_candidates(comparison, epsilon), comparison)
    figures.show_table(rows, "Candidate bounds with their errors", height="content")
    error = comparison.candidate_error_note or comparison.error_axis
    axes = f"{comparison.bound_axis}; {error[0].lower()}{error[1:]}."
    st.caption(f"{axes} {comparison.caption}".strip())
    cards.label(provenance)
