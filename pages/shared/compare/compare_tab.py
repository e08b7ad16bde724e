"""The tab *Compare* of every question: what was pinned, the best bound or way over ε, usual bounds."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.answer import Plot, against, epsilon_plots
from dpcore.answer.against import BoundComparison, BoundCurves, MethodComparison, MethodCurves
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
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


def show_below(run: page_run.Drawn) -> None:
    """Compare below everything else, on a page that has drawn no tabs."""
    if run.figure is None:
        return
    declared = comparisons.declared_by(run.question) is not None
    if not declared and not pins.of(run.question.name):
        return
    folded = st.expander(TITLE, icon=":material/keep:", key=f"{run.question.name}_pinned", on_change="rerun")
    if folded.open:  # What stands in it costs nothing while it is closed.
        with folded:
            show(run.question)


def show(of: Question) -> None:
    """Everything that compares."""
    pin_table.show(of)
    parameters = st.session_state.get(keys.PAGE_PARAMETERS)
    if parameters is None or comparisons.declared_by(of) is None:
        return
    run = page_run.now()
    own = None if run is None else run.own
    if of.own_data and own is None:
        return
    data = session.dataset() if pin_table.answers_from(of, session.dataset()) else stand_ins.demonstration()
    try:
        show_over_epsilon(of, data if own is None else own, parameters)
    except InvalidInput as refused:  # What holds at the ε in use need not hold at every other.
        fields.say(refused.problems)


def show_over_epsilon(of: Question, data: Any, parameters: Any) -> None:
    """What the question compares over ε, and the bounds that people take; or why it does not."""
    compared = comparisons.compared(of, parameters, data)
    if isinstance(compared, str):
        st.caption(compared)
        return
    kind: Provenance = compared.provenance or data.provenance
    asked, epsilon = (data.digest, comparisons.asked(of, parameters)), parameters.epsilon
    ways = compared if isinstance(compared, MethodComparison) else compared.methods
    if ways is not None:
        show_ways(of, asked, ways, epsilon, kind)
    if isinstance(compared, BoundComparison):
        show_curves(of, asked, compared, epsilon, kind)
        if compared.compute_errors is not None:
            show_candidates(compared, epsilon, kind)


def _draw(plot: Plot) -> None:
    key = plot.key.replace("-", "_")
    figures.show(plotly_figures.draw(plot), key, plot.alt, plot.columns, plot.disclosure)


@cached(max_entries=8)
def _ways(name: str, asked: tuple[str, Any], _of: MethodComparison) -> MethodCurves:
    return against.compute_method_curves(_of)


def show_ways(
    of: Question, asked: tuple[str, Any], ways: MethodComparison, epsilon: float, kind: Provenance
) -> None:
    """What each way costs over ε, and at the ε in use."""
    st.markdown(f"**Against ε:** {ways.sentence}")
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with left:
        curves = _ways(of.name, asked, ways)
        _draw(epsilon_plots.plot_methods(of.name, ways, curves, epsilon, kind))
    with right:
        st.markdown(f"At ε = {wording.entered(epsilon)}, and the change against *{ways.names[0].lower()}*:")
        tables.show(
            against.tabulate_methods(ways, epsilon), "What each way costs at this ε", height="content"
        )
        cards.label(kind)


@cached(max_entries=8)
def _curves(name: str, asked: tuple[str, Any], _of: BoundComparison) -> BoundCurves:
    return against.compute_bound_curves(_of)


def show_curves(
    of: Question, asked: tuple[str, Any], compared: BoundComparison, epsilon: float, kind: Provenance
) -> None:
    """The best bound and its error over ε, with the ε in use."""
    st.markdown("**Against ε:** the best bound, and the error that it reaches")
    if compared.is_slow:
        curves = _worked_out(of, asked, compared)
        now = None
    else:
        curves = _curves(of.name, asked, compared)
        now = compared.compute_best(epsilon)
    if curves is None or curves.epsilons.size == 0:
        return
    both = epsilon_plots.plot_best(of.name, compared, curves, epsilon, now, kind)
    for place, plot in zip(st.columns(2, gap="medium"), both, strict=True):
        with place:
            _draw(plot)


def _worked_out(of: Question, question: tuple[str, Any], compared: BoundComparison) -> BoundCurves | None:
    """Return the curves of work beside the page, which a button starts; None until there are some."""
    key = f"{of.name}_against_job"
    if jobs.watch(key, "Looking for the best bound at each ε"):
        return None
    done = jobs.result_of(key)
    if done is not None and done[0] == question:
        curves: BoundCurves = done[1]
        return curves
    fields.button("Compute over ε", f"{of.name}_against", "play_arrow", _start, key, question, compared)
    st.caption(
        f"The best bound is looked for at {len(against.COARSE_EPSILONS)} values of ε, which takes a while."
    )
    return None


def _start(key: str, question: tuple[str, Any], compared: BoundComparison) -> None:
    jobs.start(
        key, question, lambda tell, stop: against.compute_bound_curves(compared, tell, stop), heavy=True
    )


def show_candidates(compared: BoundComparison, epsilon: float, kind: Provenance) -> None:
    """Round bounds and quantiles beside the best one."""
    st.markdown("**Bounds that people take**, beside the best one at this ε")
    rows = against.tabulate_candidates(against.list_candidates(compared, epsilon), compared)
    tables.show(rows, "Candidate bounds with their errors", height="content")
    error = compared.candidate_error_note or compared.error_axis
    axes = f"{compared.bound_axis}; {error[0].lower()}{error[1:]}."
    st.caption(f"{axes} {compared.caption}".strip())
    cards.label(kind)
