"""The tab *Compare* of every question: what was pinned, two data sets, the best bound over ε, and usual bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.dataset import Dataset
from pages.shared import (
    against,
    against_figures,
    beside,
    cards,
    drawn,
    fields,
    figures,
    jobs,
    keys,
    missing,
    pin_table,
    pins,
    session,
)
from pages.shared.against import Against, OverEpsilon
from pages.shared.cache import cached
from pages.shared.question import Question

TITLE = "Compare"


def tabs(of: Question) -> dict[str, Callable[[], object]]:
    """What is added to the tabs of a question."""
    return {} if of.parameters is None else {TITLE: lambda: show(of)}


def finish(run: drawn.Drawn) -> None:
    """List the pins of a page that has no tabs, below everything else."""
    if TITLE in run.tabs and run.figure is not None and pins.of(run.question.name):
        with st.expander(TITLE, icon=":material/keep:", key=f"{run.question.name}_pinned"):
            pin_table.show(run.question)


def show(of: Question) -> None:
    """Everything that compares."""
    pin_table.show(of)
    parameters = st.session_state.get(keys.PAGE_PARAMETERS)
    if parameters is None or beside.declared_by(of) is None:
        return
    data = session.dataset() if pin_table.answers_from(of, session.dataset()) else missing.demonstration()
    asked = dataclasses.replace(parameters, epsilon=beside.AT_ONE)
    try:
        beside.show(of, data, parameters)
        compared = beside.compared(of, parameters, data)
        if compared is None:
            return
        show_curves(of, data, asked, compared, parameters.epsilon)
        if compared.error is not None:
            show_candidates(of, data, compared, parameters.epsilon)
    except InvalidInput as refused:  # What holds at the ε in use need not hold at every other.
        fields.say(refused.problems)


@cached(max_entries=8)
def _curves(name: str, digest: str, parameters: Any, _of: Against) -> OverEpsilon:
    return against.over_epsilon(_of)


def show_curves(of: Question, data: Dataset, asked: Any, compared: Against, epsilon: float) -> None:
    """The best bound and its error over ε, with the ε in use."""
    st.markdown("**Against ε:** the best bound, and the error that it reaches")
    if compared.slow:
        curves = _worked_out(of, (data.digest, asked), compared)
        now = None
    else:
        curves = _curves(of.name, data.digest, asked, compared)
        now = compared.best(epsilon)
    if curves is None or curves.epsilons.size == 0:
        return
    for place, picture in zip(
        st.columns(2, gap="medium"),
        against_figures.pictures(of.name, compared, curves, epsilon, now, data.provenance),
        strict=True,
    ):
        with place:
            figures.show_picture(picture)


def _worked_out(of: Question, question: tuple[str, Any], compared: Against) -> OverEpsilon | None:
    """The curves of work beside the page, which a button starts; None until there are some."""
    key = f"{of.name}_against_job"
    if jobs.watch(key, "Looking for the best bound at each ε"):
        return None
    done = jobs.result_of(key)
    if done is not None and done[0] == question:
        found: OverEpsilon = done[1]
        return found
    st.button(
        "Compute over ε",
        key=f"{of.name}_against",
        icon=":material/play_arrow:",
        on_click=_start,
        args=(key, question, compared),
    )
    st.caption(f"The best bound is looked for at {len(against.FEW)} values of ε, which takes a while.")
    return None


def _start(key: str, question: tuple[str, Any], compared: Against) -> None:
    jobs.start(key, question, lambda tell, stop: against.over_epsilon(compared, tell, stop), heavy=True)


def show_candidates(of: Question, data: Dataset, compared: Against, epsilon: float) -> None:
    """Round bounds and quantiles beside the best one."""
    st.markdown("**Bounds that people take**, beside the best one at this ε")
    rows = against.rows_of(against.candidates(compared, epsilon), compared)
    st.dataframe(
        pd.DataFrame(rows), hide_index=True, alt="Candidate bounds with their errors", height="content"
    )
    st.caption(f"{compared.bound_axis}; {compared.error_axis[0].lower()}{compared.error_axis[1:]}.")
    cards.label(data.provenance)
