"""The data of the page Regression, its fields, and its searches beside the page.

The Regression page's searches, beside the page: what is found soon is shown soon, and refined when more is known.

A run of the page waits a moment for the searches. What ends by then is the answer. Else the best C so far is shown if
it is proved good enough, and until then the answer of before; a line says so, and the page runs again when there is
more. Nothing is taken away meanwhile, so the page keeps its height and its place. What was stopped is a result.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.progress import ShouldStop
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.answer.solution import (
    FIT,
    PROVED,
    ErrorOf,
    RegressionSolution,
    compute,
    options,
    table_of,
)
from dpcore.regression.estimate import LinearEstimate, Step, ordinary_residual_variance
from dpcore.regression.parameters import DataSource, RegressionGenerator, RegressionParameters, rows_of
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapDraws
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import UPLOAD, RegressionData
from pages.shared.base.cache import cached
from pages.shared.card import cards
from pages.shared.data import table_upload
from pages.shared.fields import fields, jobs
from pages.shared.fields.search import Search, wait
from pages.shared.screen import inputs, layout


@cached(max_entries=4, own_data=True)
def regression_data(generator: RegressionGenerator) -> RegressionData:
    """Generated features, labels and owners."""
    data, coefficients = generator.dataset()
    return RegressionData(data, data.digest, coefficients)


@cached(max_entries=16, own_data=True)
def regression_variance(digest: str, lower: float, upper: float, _table: LabelledRows) -> float:
    """sigma^2 by ordinary least squares on labels clipped to [lower, upper]."""
    return ordinary_residual_variance(_table.features, np.clip(_table.labels, lower, upper))


@cached(max_entries=2, own_data=True)
def regression_rows(digest: str, _table: LabelledRows) -> RegressionProblem:
    """Features and owners, checked and sorted once for every epsilon, range and variance."""
    return rows_of(_table)


@cached(max_entries=3, own_data=True)
def regression_found(
    known: tuple[object, ...],
    parameters: RegressionParameters,
    stage: Stage,
    _data: Dataset,
    _problem: RegressionProblem,
    _ours: LinearEstimate,
    _draws: CapDraws,
) -> RegressionSolution:
    """Return what the page shows; ``known`` names the data and what the searches have found."""
    return compute(_data, parameters, _problem, _ours, _draws, stage)


def read_data() -> RegressionData | None:
    """Show which data are used and offer others; return them, or None if there are none."""
    table: RegressionData | None = table_upload.choose_data(
        UPLOAD,
        {DataSource.GENERATED: _generate, DataSource.UPLOAD: lambda: table_upload.show_upload(UPLOAD)},
        DataSource.GENERATED,
        "The data are generated as in the paper, appendix E.1.1: normal features and a linear model with noise.",
        GENERATOR_FIELDS,
        lambda data: wording.counted(data.histogram.num_users, "user"),
    )
    return table


def _generate() -> RegressionData | None:
    values: dict[str, Any] = {name: st.session_state[QUESTION.key(name)] for name in GENERATOR_FIELDS}
    labels = {name: QUESTION.field(name).name for name in GENERATOR_FIELDS}
    generator, problems = fields.build_parameters(RegressionGenerator, values, labels)
    if generator is None:
        fields.say(problems)
        return None
    return regression_data(generator)


WARN_CLIPPED = 0.05
"""Share of clipped labels above which the page warns."""


def _propose(loaded: RegressionData) -> None:
    """Propose the range of public labels, rounded out, and none for private labels. A range that was entered stays."""
    state, key = st.session_state, QUESTION.key
    before = state.get(key("proposed"))
    if (state[key("lower")], state[key("upper")]) not in (before or (None, None), (None, None)):
        return
    labels = table_of(loaded.dataset).labels
    proposed = (None, None) if loaded.dataset.is_private else rounded_out(labels.min(), labels.max())
    # Only where it differs: an assignment that reaches the browser late undoes a key press. And where the
    # person has cleared what was proposed, the page says so instead of filling it in again.
    if before != proposed:
        state[key("lower")], state[key("upper")] = state[key("proposed")] = proposed


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Return an interval that contains [low, high], with ends of two significant digits and a positive length."""
    largest = max(abs(low), abs(high))
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest > 0.0 else 1.0
    lower, upper = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return float(f"{lower:.6g}"), float(f"{upper if upper > lower else lower + unit:.6g}")


def read_inputs(loaded: RegressionData, places: layout.Places) -> tuple[RegressionParameters | None, ErrorOf]:
    """Draw the inputs; return the parameters, and which error to show.

    The parameters are None, with the sentences on the page, if they are refused.
    """
    _propose(loaded)
    state, key = st.session_state, QUESTION.key
    squared = f"σ² ({wording.plain(table_of(loaded.dataset).label, 20)}, squared)"

    def ask_range(unused: Collection[str]) -> bool:
        if not loaded.dataset.is_private or not state[key("lower")] is state[key("upper")] is None:
            return False
        st.info(
            "**What range can a label have?** Enter L and U from what the quantity is (a rating may run from 1 to "
            "10). Do not read them off the data, which are private. The answer follows.",
            icon=":material/straighten:",
        )
        return True

    parameters: RegressionParameters | None = inputs.read(
        QUESTION,
        places,
        # Empty fields of the generator are named where the data are made, and matter to no upload.
        hidden=GENERATOR_FIELDS.__contains__,
        widgets={"residual_variance": lambda: fields.draw(QUESTION, "residual_variance", squared)},
        more=_draw_error_choice,
        ask_first=ask_range,
    )
    if parameters is not None:
        with places.notes:
            _warn(loaded, parameters)
    return parameters, state[key("error")]


ERROR_NAMES = {ErrorOf.COEFFICIENTS: "Coefficients", ErrorOf.PREDICTIONS: "Predictions"}


def _draw_error_choice() -> None:
    """Draw the choice of the error that the figures show."""
    key = QUESTION.key("error")
    st.session_state.setdefault(key, ErrorOf.COEFFICIENTS)
    fields.choice("Figures show the error of", ERROR_NAMES, key, FIT)


def residual_variance(loaded: RegressionData, parameters: RegressionParameters) -> float:
    """Return sigma^2 as entered, or as estimated from the labels."""
    if parameters.residual_variance is not None:
        return parameters.residual_variance
    data = loaded.dataset
    return regression_variance(data.digest, parameters.lower, parameters.upper, table_of(data))


def _clipped(data: Dataset, parameters: RegressionParameters) -> int:
    """Return the number of labels outside [L, U]."""
    table = table_of(data)
    return int(np.count_nonzero((table.labels < parameters.lower) | (table.labels > parameters.upper)))


def _warn(loaded: RegressionData, parameters: RegressionParameters) -> None:
    rows, clipped = loaded.dataset.histogram.num_rows, _clipped(loaded.dataset, parameters)
    if clipped > WARN_CLIPPED * rows:
        st.warning(
            f"{wording.percent(clipped / rows)} of the labels are clipped: the coefficients will be off by more than "
            "any number below says. Set L and U from what you know of the quantity.",
            icon=":material/warning:",
        )
        if loaded.dataset.is_private:
            cards.label(loaded.dataset.provenance)


def what_is_used(found: RegressionSolution) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    data, problem = found.data, found.problem
    clipped = _clipped(data, found.parameters)
    return (
        f"{wording.plain(data.source, 600)} {wording.counted(problem.num_rows, 'row')} of "
        f"{wording.counted(problem.num_users, 'user')}, {wording.counted(problem.num_features, 'feature')}. "
        f"B = {wording.number(problem.value_bound)}, σ² = {wording.number(problem.residual_variance)}"
        + (" (read from private labels: do not publish)" if found.variance_is_private else "")
        + f". {wording.counted(clipped, 'label')} ({wording.percent(clipped / problem.num_rows)}) "
        + f"{wording.agreeing(clipped, 'lies', 'lie')} outside [L, U]"
        + (f" and {wording.agreeing(clipped, 'is', 'are')} clipped." if clipped else ".")
    )


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
    variance = residual_variance(loaded, parameters)
    problem = parameters.asked_of(regression_rows(data.digest, table_of(data)), variance)
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
    found = regression_found(known, parameters, stage, data, problem, ours, draws)
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
