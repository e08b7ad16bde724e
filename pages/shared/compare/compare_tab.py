"""The tab *Compare* of every question: pinned answers, the best bound or method over ε, common bounds."""

from __future__ import annotations

import functools
from typing import Any

import streamlit as st

from dpcore.answer import Plot, against
from dpcore.answer.against import BoundComparison, BoundCurves, MethodComparison, MethodCurves
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Provenance
from dpcore.report import plotly_figures
from pages.shared.base import keys, page_run, tables
from pages.shared.base.cache import cached
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.compare import comparisons, pin_table
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures, pins
from pages.shared.session import session, stand_ins

TITLE = "Compare"
Key = tuple[str, Any]
"""Key of cached curves: digest of the data, and parameters."""


def show_below(run: page_run.Drawn) -> None:
    """Show the comparison below the page, folded up, on a page that has drawn no tabs."""
    if run.figure is None:
        return
    is_compared = comparisons.find_comparison_function(run.question) is not None
    if not is_compared and not pins.list_pins(run.question.name):
        return
    folded = st.expander(TITLE, icon=":material/keep:", key=f"{run.question.name}_pinned", on_change="rerun")
    if folded.open:  # What stands in it costs nothing while it is closed.
        with folded:
            show(run.question)


def show(question: Question) -> None:
    """Show the pins of the question, and its comparison over ε."""
    pin_table.show(question)
    parameters = st.session_state.get(keys.PAGE_PARAMETERS)
    if parameters is None or comparisons.find_comparison_function(question) is None:
        return
    run = page_run.now()
    page_data = None if run is None else run.own
    if question.own_data and page_data is None:
        return
    data = session.dataset() if page_data is None else page_data
    if page_data is None and not pin_table.can_answer(question, data):
        data = stand_ins.load_demonstration()
    try:
        show_over_epsilon(question, data, parameters)
    except InvalidInput as refused:  # What holds at the ε in use need not hold at every other.
        fields.say(refused.problems)


def show_over_epsilon(question: Question, data: Any, parameters: Any) -> None:
    """Show what the question compares over ε and common bounds, or why it compares nothing."""
    comparison = comparisons.compute_comparison(question, parameters, data)
    if isinstance(comparison, str):
        st.caption(comparison)
        return
    provenance: Provenance = comparison.provenance or data.provenance
    cache_key, epsilon = (data.digest, comparisons.build_cache_key(question, parameters)), parameters.epsilon
    methods = comparison if isinstance(comparison, MethodComparison) else comparison.methods
    if methods is not None:
        show_methods(question, cache_key, methods, epsilon, provenance)
    if isinstance(comparison, BoundComparison):
        show_curves(question, cache_key, comparison, epsilon, provenance)
        if comparison.compute_errors is not None:
            show_candidates(comparison, epsilon, provenance)


def _draw(plot: Plot) -> None:
    key = plot.key.replace("-", "_")
    figures.show(plotly_figures.draw(plot), key, plot.alt, plot.columns, plot.disclosure)


@cached(max_entries=8)
def _compute_method_curves(name: str, cache_key: Key, _comparison: MethodComparison) -> MethodCurves:
    return against.compute_method_curves(_comparison)


def show_methods(
    question: Question, cache_key: Key, comparison: MethodComparison, epsilon: float, provenance: Provenance
) -> None:
    """Show the error of each method over ε, and at the ε in use."""
    st.markdown(f"**Against ε:** {comparison.sentence}")
    plot_column, table_column = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with plot_column:
        curves = _compute_method_curves(question.name, cache_key, comparison)
        _draw(against.plot_methods(question.name, comparison, curves, epsilon, provenance))
    with table_column:
        st.markdown(
            f"At ε = {wording.entered(epsilon)}, and the change against *{comparison.names[0].lower()}*:"
        )
        tables.show(
            against.tabulate_methods(comparison, epsilon), "What each way costs at this ε", height="content"
        )
        cards.label(provenance)


@cached(max_entries=8)
def _compute_bound_curves(name: str, cache_key: Key, _comparison: BoundComparison) -> BoundCurves:
    return against.compute_bound_curves(_comparison)


def show_curves(
    question: Question, cache_key: Key, comparison: BoundComparison, epsilon: float, provenance: Provenance
) -> None:
    """Show the best bound and its error over ε, with the ε in use marked."""
    st.markdown("**Against ε:** the best bound, and the error that it reaches")
    if comparison.is_slow:
        curves = _find_job_curves(question, cache_key, comparison)
        current_best = None
    else:
        curves = _compute_bound_curves(question.name, cache_key, comparison)
        current_best = comparison.compute_best(epsilon)
    if curves is None or curves.epsilons.size == 0:
        return
    best_plots = against.plot_best(question.name, comparison, curves, epsilon, current_best, provenance)
    for column, plot in zip(st.columns(2, gap="medium"), best_plots, strict=True):
        with column:
            _draw(plot)


def _find_job_curves(question: Question, cache_key: Key, comparison: BoundComparison) -> BoundCurves | None:
    """Return the curves of finished work; before that, show its progress or a button that starts it."""
    key = f"{question.name}_against_job"
    if jobs.watch(key, "Looking for the best bound at each ε"):
        return None
    done = jobs.result_of(key)
    if done is not None and done[0] == cache_key:
        curves: BoundCurves = done[1]
        return curves
    fields.button(
        "Compute over ε", f"{question.name}_against", "play_arrow", _start, key, cache_key, comparison
    )
    st.caption(
        f"The best bound is looked for at {len(against.COARSE_EPSILONS)} values of ε, which takes a while."
    )
    return None


def _start(key: str, cache_key: Key, comparison: BoundComparison) -> None:
    jobs.start(key, cache_key, functools.partial(against.compute_bound_curves, comparison), heavy=True)


def show_candidates(comparison: BoundComparison, epsilon: float, provenance: Provenance) -> None:
    """Show the errors of round bounds and quantiles beside that of the best bound."""
    st.markdown("**Bounds that people take**, beside the best one at this ε")
    rows = against.tabulate_candidates(against.list_candidates(comparison, epsilon), comparison)
    tables.show(rows, "Candidate bounds with their errors", height="content")
    error = comparison.candidate_error_note or comparison.error_axis
    axes = f"{comparison.bound_axis}; {error[0].lower()}{error[1:]}."
    st.caption(f"{axes} {comparison.caption}".strip())
    cards.label(provenance)
