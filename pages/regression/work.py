"""The Regression page's searches, beside the page: what is found soon is shown soon, and refined when more is known.

A run of the page waits a moment for the searches. What ends by then is the answer. Else the best C so far is shown if
it is proved good enough, and until then the answer of before; a line says so, and the page runs again when there is
more. Nothing is taken away meanwhile, so the page keeps its height and its place. What was stopped is a result.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.progress import ShouldStop
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.answer import RegressionSolution
from dpcore.regression.answer.solution import PROVED, options, table_of
from dpcore.regression.estimate import LinearEstimate, Step
from dpcore.regression.parameters import DataSource, RegressionParameters
from dpcore.regression.sample_limiting import CapDraws
from pages.regression import cached, inputs
from pages.regression.question import QUESTION
from pages.regression.upload import RegressionData
from pages.shared.fields import fields, jobs
from pages.shared.fields.search import Search, wait

SOON_SECONDS = 0.25
"""How long a run of the page waits. With its other work, 50 to 100 ms, a key press is answered within 0.4 s. Streamlit
lets nothing that a person does interrupt the run of a fragment, so this is also what a press of Stop waits at most."""
FIRST_SECONDS = 0.03
"""How long it waits for the end of the searches where a first answer is there already, so that one is shown that will
be refined. At 3,000 rows of 10 features a first answer takes 0.03 s of processor time, the whole search 0.03 to 0.2."""
KEPT_CELLS = 200_000
"""Entries of the largest C that is kept for when it is asked for again: 1.6 MB."""
SOLVE, CAPS = Search[LinearEstimate](QUESTION.key("solve")), Search[CapDraws](QUESTION.key("caps"))
BOTH = (SOLVE.key, CAPS.key)
STEPS, SHOWN = QUESTION.key("steps"), QUESTION.key("shown")

Shown = tuple[RegressionData, RegressionSolution]
"""Data, and what was found for them."""


def find(loaded: RegressionData, parameters: RegressionParameters) -> Shown | None:
    """Return what is found so far; of before where nothing is yet. None where that is nothing, or a search
    failed, said here.

    With it come the data that it is for, which are those of before, too, where that is.
    """
    data, state = loaded.dataset, st.session_state
    variance = inputs.residual_variance(loaded, parameters)
    problem = parameters.asked_of(cached.regression_rows(data.digest, table_of(data)), variance)
    asked = (data.digest, parameters.epsilon, parameters.value_bound, variance)
    drawn = (data.digest, parameters.lower, parameters.upper)
    for_all = parameters.source is DataSource.GENERATED
    small = problem.num_rows * problem.num_features <= KEPT_CELLS
    how = options(problem)
    told: list[Step] = []
    if not SOLVE.asks(asked):
        state[STEPS] = told  # Here: a thread cannot reach the session's state.

    def solve(tell: jobs.Tell, stop: ShouldStop) -> LinearEstimate:
        return working_set.solve(
            problem,
            progress=tell,
            should_stop=stop,
            on_step=told.append,
            on_first=lambda first: tell(None, first),
        )

    def study(tell: jobs.Tell, stop: ShouldStop) -> CapDraws:
        labels = parameters.clipped(table_of(data))
        return sample_limiting.study(problem, how, labels, progress=tell, should_stop=stop)

    SOLVE.ask(asked, solve, lambda ours: small and ours.certificate.proves(PROVED), for_all, light=True)
    CAPS.ask(drawn, study, lambda drawn: drawn.num_draws == how.draws, for_all, light=True)

    def enough(waited: float) -> bool:
        nothing = SOLVE.running and jobs.so_far_of(SOLVE.key) is None
        return waited >= (SOON_SECONDS if nothing else FIRST_SECONDS)

    wait(SOLVE, CAPS, enough=enough)
    failed = [key for key in BOTH if jobs.say_failure(key)]
    if failed:
        return None
    solved, tried = SOLVE.found(), CAPS.found()
    ours = solved.value
    if ours is None:
        before: Shown | None = state.get(SHOWN)
        return None if before is None else (before[0], replace(before[1], stage=Stage.EARLIER))
    stage = Stage.FINAL if solved.stage is tried.stage is Stage.FINAL else Stage.FIRST
    draws = tried.value or sample_limiting.no_draws()
    known = (asked, drawn, stage, ours.certificate.value, ours.certificate.lower_bound, draws.num_draws)
    found = cached.regression_found(known, parameters, stage, data, problem, ours, draws)
    state[SHOWN] = loaded, found
    return loaded, found


def again() -> None:
    """Forget what was found, so that the next run of the page searches anew."""
    SOLVE.forget()
    CAPS.forget()


def show_state(found: RegressionSolution | None) -> None:
    """One line: how sure the answer is, or how far the search for it is, with Stop.

    A search that has ended since the answer was taken lets the page run again: else its first answer would stand as if
    the search had been stopped there.
    """

    def doing() -> str:
        if found is None:
            return "The answer is being computed"
        if found.stage is Stage.EARLIER:
            return "This is the answer for the settings before; the new one is being computed"
        steps: list[Step] = st.session_state[STEPS]
        if SOLVE.running:
            return f"First answer, being refined: {_to_save(steps[-1].gap)}"
        return "First answer: bounds are still being tried"

    failed = any(jobs.failure_of(key) for key in BOTH)  # `find` says why.
    if failed or jobs.watch(BOTH, doing) or found is None:
        return
    certificate = found.best_estimate.certificate
    if not certificate.proves(PROVED):
        words = f"The search was stopped: {_to_save(certificate.relative_gap)}."
    elif not found.draws.num_draws:
        words = "The trial of bounds was stopped."
    else:
        st.caption(":material/verified: Proved best; the proof is in *Behind the answer*.")
        return
    st.caption(f":material/pan_tool: {words}")
    fields.button("Search again", "regression_search_again", "replay", again, type="tertiary")


def _to_save(gap: float) -> str:
    return f"another C could save at most {wording.percent(gap, 2)} of its variance"
