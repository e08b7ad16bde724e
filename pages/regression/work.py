"""The Regression page's searches, beside the page: what is found soon is shown soon, and refined when more is known.

A run of the page waits a moment for the searches. What ends by then is the answer. Else the best C so far is shown if
it is proved good enough, and until then the answer of before; a line says so, and the page runs again when there is
more. Nothing is taken away meanwhile, so the page keeps its height and its place. What was stopped is a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.answer import RegressionFound
from dpcore.regression.answer.found import PROVED, Stage, options, table_of
from dpcore.regression.estimate import LinearEstimate, Step
from dpcore.regression.parameters import DataSource, RegressionParameters
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapDraws
from pages.regression import cached, inputs
from pages.regression.question import QUESTION
from pages.regression.upload import RegressionData
from pages.shared.base import dialogs
from pages.shared.fields import fields, jobs, kept_work

SOON_SECONDS = 0.25
"""How long a run of the page waits. With its other work, 50 to 100 ms, a key press is answered within 0.4 s. Streamlit
lets nothing that a person does interrupt the run of a fragment, so this is also what a press of Stop waits at most."""
FIRST_SECONDS = 0.03
"""How long it waits for the end of the searches where a first answer is there already, so that one is shown that will
be refined. At 3,000 rows of 10 features a first answer takes 0.03 s of processor time, the whole search 0.03 to 0.2."""
LOOK_SECONDS = 0.005
KEPT_CELLS = 200_000
"""Entries of the largest C that is kept for when it is asked for again: 1.6 MB."""
SOLVE, CAPS, SO_FAR, SHOWN = (QUESTION.key(name) for name in ("solve", "caps", "so_far", "shown"))


@dataclass(eq=False)
class SoFar:
    """What a search has told until now; its thread writes, the page reads.

    Attributes:
        steps: The gap as it closes.
        first: The first C that is proved good enough to be shown.
    """

    steps: list[Step] = field(default_factory=list)
    first: LinearEstimate | None = None

    def take(self, first: LinearEstimate) -> None:
        """Keep the first answer."""
        self.first = first


Shown = tuple[RegressionData, RegressionFound]
"""Data, and what was found for them."""


def find(loaded: RegressionData, parameters: RegressionParameters) -> Shown | None:
    """What is found so far; of before where nothing is yet. None where that is nothing, or a search failed, said here.

    With it come the data that it is for, which are those of before, too, where that is.
    """
    data, state = loaded.dataset, st.session_state
    variance = inputs.residual_variance(loaded, parameters)
    problem = parameters.asked_of(cached.regression_rows(data.digest, table_of(data)), variance)
    asked = (data.digest, parameters.epsilon, parameters.value_bound, variance)
    drawn = (data.digest, parameters.lower, parameters.upper)
    _start(loaded, parameters, problem, asked, drawn)
    failed = [key for key in (SOLVE, CAPS) if jobs.say_failure(key)]
    if failed:
        return None
    solved, tried = _result(SOLVE, asked), _result(CAPS, drawn)
    ours = solved or so_far().first
    if ours is None:
        before: Shown | None = state.get(SHOWN)
        return None if before is None else (before[0], replace(before[1], stage=Stage.EARLIER))
    assert isinstance(ours, LinearEstimate)
    stage = Stage.FIRST if solved is None or tried is None else Stage.FINAL
    draws = tried if isinstance(tried, CapDraws) else sample_limiting.no_draws()
    known = (asked, drawn, stage, ours.certificate.value, ours.certificate.lower_bound, draws.num_draws)
    found = cached.regression_found(known, parameters, stage, data, problem, ours, draws)
    state[SHOWN] = loaded, found
    return loaded, found


def _start(
    loaded: RegressionData,
    parameters: RegressionParameters,
    problem: RegressionProblem,
    asked: Hashable,
    drawn: Hashable,
) -> None:
    """Start what has not been asked before, and wait a moment for it."""
    small = problem.num_rows * problem.num_features <= KEPT_CELLS
    if _differs(SOLVE, asked):
        found = st.session_state[SO_FAR] = (
            SoFar()
        )  # Looked up here: a thread cannot reach the session's state.
        _begin(
            SOLVE,
            asked,
            lambda p, s: working_set.solve(
                problem, progress=p, should_stop=s, on_step=found.steps.append, on_first=found.take
            ),
            lambda ours: small and ours.certificate.proves(PROVED),
        )
    if _differs(CAPS, drawn):
        labels, how = parameters.clipped(table_of(loaded.dataset)), options(problem)
        _begin(
            CAPS,
            drawn,
            lambda p, s: sample_limiting.study(problem, how, labels, progress=p, should_stop=s),
            lambda drawn: drawn.num_draws == how.draws,
        )
    began = time.monotonic()
    while (at_work := running()) and time.monotonic() - began < SOON_SECONDS:
        if so_far().first is not None and time.monotonic() - began >= FIRST_SECONDS:
            return
        at_work[0].wait(LOOK_SECONDS)


def again() -> None:
    """Forget what was found, so that the next run of the page searches anew."""
    for key in (SOLVE, CAPS):
        st.session_state.pop(key, None)


def running() -> list[jobs.Job]:
    """The searches that are at work."""
    found = [st.session_state.get(key) for key in (SOLVE, CAPS)]
    return [job for job in found if job is not None and job.running]


def so_far() -> SoFar:
    """What the search for the best C has told until now."""
    found: SoFar = st.session_state.setdefault(SO_FAR, SoFar())
    return found


def _differs(key: str, question: object) -> bool:
    job: jobs.Job | None = st.session_state.get(key)
    return job is None or job.question != question


def _begin(key: str, question: Hashable, work: jobs.Work, whole: Callable[[Any], bool]) -> None:
    """Start work, of which `_start` waits for all together."""
    for_all = st.session_state[QUESTION.key("source")] is DataSource.GENERATED
    kept_work.start(key, question, for_all, work, whole)


def _result(key: str, question: object) -> object | None:
    done = jobs.result_of(key)
    return done[1] if done is not None and done[0] == question else None


def show_state(found: RegressionFound | None) -> None:
    """One line: how sure the answer is, or how far the search for it is, with Stop.

    A search that has ended since the answer was taken lets the page run again: else its first answer would stand as if
    the search had been stopped there.
    """
    for key in (SOLVE, CAPS):
        jobs.rerun_if_ended(key)
    if running():
        _show_progress(None if found is None else found.stage)
        return
    if found is None:
        return
    certificate = found.ours.certificate
    if not certificate.proves(PROVED):
        words = f"The search was stopped: {_to_save(certificate.relative_gap)}."
    elif not found.draws.num_draws:
        words = "The trial of caps was stopped."
    else:
        st.caption(":material/verified: Proved best; the proof is in *Behind the answer*.")
        return
    st.caption(f":material/pan_tool: {words}")
    fields.button("Search again", "regression_search_again", "replay", again, type="tertiary")


@st.fragment(run_every=jobs.POLL_SECONDS)
def _show_progress(shown: Stage | None) -> None:
    """How far the searches are. The page runs again when there is more to show."""
    at_work, found = running(), so_far()
    if not at_work or (found.first is not None and shown is not Stage.FIRST):
        if dialogs.in_sight():
            return
        st.rerun()
    if shown is None:
        words = "The answer is being computed"
    elif shown is Stage.EARLIER:
        words = "This is the answer for the settings before; the new one is being computed"
    elif st.session_state[SOLVE].running:
        words = f"First answer, being refined: {_to_save(found.steps[-1].gap)}"
    else:
        words = "First answer: caps are still being tried"
    share = min(job.progress for job in at_work)
    st.caption(f":material/hourglass_top: {words} ({share:.0%}).")
    st.button("Stop", key="regression_stop", on_click=_stop, icon=":material/stop:", type="tertiary")


def _stop() -> None:
    """What was found until then, with what is proved of it, becomes the result."""
    for job in running():
        job.stop()


def _to_save(gap: float) -> str:
    return f"another C could save at most {wording.percent(gap, 2)} of its variance"
