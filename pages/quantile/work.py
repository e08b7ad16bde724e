"""The answer on the page: a first one within the run, the exact one by a job beside the page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.quantile.parameters import QuantileParameters
from pages.quantile import answer, cached
from pages.quantile.answer import QuantileView
from pages.quantile.question import QUESTION
from pages.shared import jobs

JOB, EARLIER = QUESTION.key("search_job"), QUESTION.key("earlier")
AT_ONCE_SECONDS, FIRST_VISIT_SECONDS = 0.03, 0.4
"""What is done so soon is shown at once, without a first answer before it. Where nothing is shown yet, it may take
longer than after a slider has moved."""
KNOWN = 64
"""Searches whose best bounds are kept; each holds a few hundred numbers."""
FIRST = "A first answer, from fewer bounds and subsamples. The exact one follows"
BEFORE = "The answer for the settings before. The new one follows"


@dataclass(frozen=True)
class Found:
    """What there is to show.

    Attributes:
        view: The answer; None where there is none yet.
        doing: What still runs, in words; empty where the answer is exact.
    """

    view: QuantileView | None
    doing: str = ""


def find(data: Dataset, parameters: QuantileParameters) -> Found:
    """The exact answer where it is known or quickly found. Otherwise a job looks for it, and another stands in.

    That is a first answer where the rows are few enough to compute one, else the answer for the settings before.
    """
    assert data.values is not None
    p = parameters
    # All that sorting the rows depends on, and nothing that a slider moves.
    base = tuple(map(str, (p.base, p.low, p.high, p.center, p.spread, p.edges, p.masses)))
    whole, few = cached.quantile_rows(data.digest, base, p, data.values)
    known, searched = cached.known_choices(data.digest), answer.search_question(p)
    choices, question = known.get(searched), (data.digest, p)
    job: jobs.Job | None = st.session_state.get(JOB)
    if job is None or job.question != question:
        problem = whole.with_epsilon(p.epsilon)
        job = jobs.start(
            JOB,
            question,
            lambda tell, stop: answer.answer(p, problem, choices, tell, stop),
            FIRST_VISIT_SECONDS if job is None else AT_ONCE_SECONDS,
            light=choices is None,
        )
    if (done := jobs.result_of(JOB)) is not None:
        exact: QuantileView = done[1]
        if not exact.choices.cancelled:
            known[searched] = exact.choices
            while len(known) > KNOWN:
                del known[next(iter(known))]
        if few is None:  # Else nobody needs it, and it holds the distribution of the answer.
            st.session_state[EARLIER] = (data.digest, exact)
        return Found(exact)
    if few is not None:
        with_epsilon = few.with_epsilon(p.epsilon)
        return Found(cached.first_answer(data.digest, p, choices is not None, with_epsilon, choices), FIRST)
    digest, earlier = st.session_state.get(EARLIER, ("", None))
    if digest == data.digest:
        return Found(earlier, BEFORE)
    return Found(None, "Trying bounds on your values")


def again() -> None:
    """Let the next run search anew."""
    st.session_state[JOB] = None
