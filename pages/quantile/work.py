"""The answer on the page: a first one within the run, the exact one by a job beside the page."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpcore.common.progress import ShouldStop
from dpcore.dataset import Dataset
from dpcore.quantile.answer import QuantileFound
from dpcore.quantile.answer import found as core
from dpcore.quantile.parameters import QuantileParameters
from pages.quantile import cached
from pages.quantile.question import QUESTION
from pages.shared.base import cache
from pages.shared.fields import jobs

JOB, EARLIER = QUESTION.key("search_job"), QUESTION.key("earlier")
AT_ONCE_SECONDS, FIRST_VISIT_SECONDS = 0.03, 0.4
"""What is done so soon is shown at once, without a first answer before it. Where nothing is shown yet, it may take
longer than after a slider has moved."""
AT_ONCE_ROWS = 500
"""Up to so many rows a search ends so soon: 6 ms of processor time for 30 rows, 17 for 300, 160 for the shop purchases.
Of more rows it is not waited for where a first answer can be computed."""
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

    view: QuantileFound | None
    doing: str = ""


def search_question(parameters: QuantileParameters) -> QuantileParameters:
    """The parameters with all that the search does not depend on set to one value."""
    default = QuantileParameters(1.0)
    same = ("weighting", "bound_from", "own_bound", "alpha", "beta", "gamma", "population")
    return replace(parameters, **{name: getattr(default, name) for name in same})


def find(data: Dataset, parameters: QuantileParameters, for_all: bool) -> Found:
    """The exact answer where it is known or quickly found. Otherwise a job looks for it, and another stands in.

    That is a first answer where the rows are few enough to compute one, else the answer for the settings before.
    ``for_all``: whether the data are a sample or generated, so that what one session finds serves all.
    """
    assert data.values is not None
    p = parameters
    # All that sorting the rows depends on, and nothing that a slider moves.
    base = tuple(map(str, (p.base, p.low, p.high, p.center, p.spread, p.edges, p.masses)))
    whole, few = cached.quantile_rows(data.digest, base, p, data.values)
    known, searched = cache.answers(JOB, for_all, KNOWN), (data.digest, search_question(p))
    choices, question = known.known(searched), (data.digest, p)
    job: jobs.Job | None = st.session_state.get(JOB)
    if job is None or job.question != question:
        problem = whole.with_epsilon(p.epsilon)

        def compute(tell: jobs.Tell, stop: ShouldStop) -> QuantileFound:
            def search() -> core.Choices:
                return core.search(problem, p.asked, tell, stop)

            return core.compute(p, problem, known.found(searched, search, lambda found: not found.cancelled))

        if job is None:
            seconds = FIRST_VISIT_SECONDS
        else:
            brief = choices is not None or few is None or data.values.values.size <= AT_ONCE_ROWS
            seconds = AT_ONCE_SECONDS if brief else 0.0
        job = jobs.start(JOB, question, compute, seconds, light=choices is None)
    if (done := jobs.result_of(JOB)) is not None:
        exact: QuantileFound = done[1]
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
