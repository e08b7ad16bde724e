"""The data of the page Regression, its fields, and its searches beside the page.

The Regression page's searches, beside the page: a first answer is shown soon, and refined when more is known.

A run of the page waits a moment for the searches. If they end by then, their result is the answer. If not, the best C
so far is shown once it is proved good enough, and until then the previous answer. A line says so, and the page runs
again when there is more. The page takes nothing away meanwhile, so it keeps its height. A stopped search has a result.
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
    """Return generated features, labels and owners."""
    data, coefficients = generator.dataset()
    return RegressionData(data, data.digest, coefficients)


@cached(max_entries=16, own_data=True)
def regression_variance(digest: str, lower: float, upper: float, _table: LabelledRows) -> float:
    """Return sigma^2 by ordinary least squares on labels clipped to [lower, upper]."""
    return ordinary_residual_variance(_table.features, np.clip(_table.labels, lower, upper))


@cached(max_entries=2, own_data=True)
def regression_rows(digest: str, _table: LabelledRows) -> RegressionProblem:
    """Return features and owners, checked and sorted once for every epsilon, range and variance."""
    return rows_of(_table)


@cached(max_entries=3, own_data=True)
def regression_solution(
    key: tuple[object, ...],
    parameters: RegressionParameters,
    stage: Stage,
    _data: Dataset,
    _problem: RegressionProblem,
    _estimate: LinearEstimate,
    _draws: CapDraws,
) -> RegressionSolution:
    """Return the solution that the page shows; ``key`` names the data and the results of the searches."""
    return compute(_data, parameters, _problem, _estimate, _draws, stage)


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
        fields.show_problems(problems)
        return None
    return regression_data(generator)


WARN_CLIPPED = 0.05
"""Share of clipped labels above which the page warns."""


def _propose(loaded_data: RegressionData) -> None:
    """Propose the range of public labels, rounded out, and none for private labels. A range that was entered stays."""
    state, key = st.session_state, QUESTION.key
    previous_range = state.get(key("proposed"))
    if (state[key("lower")], state[key("upper")]) not in (previous_range or (None, None), (None, None)):
        return
    labels = table_of(loaded_data.dataset).labels
    label_range = (None, None) if loaded_data.dataset.is_private else rounded_out(labels.min(), labels.max())
    # Only where it differs: an assignment that reaches the browser late undoes a key press. And where the
    # person has cleared what was proposed, the page says so instead of filling it in again.
    if previous_range != label_range:
        state[key("lower")], state[key("upper")] = state[key("proposed")] = label_range


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Return an interval that contains [low, high], with ends of two significant digits and a positive length."""
    largest = max(abs(low), abs(high))
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest > 0.0 else 1.0
    lower, upper = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return float(f"{lower:.6g}"), float(f"{upper if upper > lower else lower + unit:.6g}")


def read_inputs(
    loaded_data: RegressionData, slots: layout.PageSlots
) -> tuple[RegressionParameters | None, ErrorOf]:
    """Draw the inputs; return the parameters, and which error to show.

    The parameters are None, with the sentences on the page, if they are refused.
    """
    _propose(loaded_data)
    state, key = st.session_state, QUESTION.key
    squared = f"σ² ({wording.plain(table_of(loaded_data.dataset).label, 20)}, squared)"

    def ask_range(unused: Collection[str]) -> bool:
        if not loaded_data.dataset.is_private or not state[key("lower")] is state[key("upper")] is None:
            return False
        st.info(
            "**What range can a label have?** Enter L and U from what the quantity is (a rating may run from 1 to "
            "10). Do not read them off the data, which are private. The answer follows.",
            icon=":material/straighten:",
        )
        return True

    parameters: RegressionParameters | None = inputs.read_inputs(
        QUESTION,
        slots,
        # Empty fields of the generator are named where the data are made, and matter to no upload.
        hidden=GENERATOR_FIELDS.__contains__,
        widgets={"residual_variance": lambda: fields.draw(QUESTION, "residual_variance", squared)},
        draw_more=_draw_error_choice,
        ask_first=ask_range,
    )
    if parameters is not None:
        with slots.notes:
            _warn(loaded_data, parameters)
    return parameters, state[key("error")]


ERROR_NAMES = {ErrorOf.COEFFICIENTS: "Coefficients", ErrorOf.PREDICTIONS: "Predictions"}


def _draw_error_choice() -> None:
    """Draw the choice of the error that the figures show."""
    key = QUESTION.key("error")
    st.session_state.setdefault(key, ErrorOf.COEFFICIENTS)
    fields.choice("Figures show the error of", ERROR_NAMES, key, FIT)


def residual_variance(loaded_data: RegressionData, parameters: RegressionParameters) -> float:
    """Return sigma^2 as entered, or as estimated from the labels."""
    if parameters.residual_variance is not None:
        return parameters.residual_variance
    data = loaded_data.dataset
    return regression_variance(data.digest, parameters.lower, parameters.upper, table_of(data))


def _clipped(data: Dataset, parameters: RegressionParameters) -> int:
    """Return the number of labels outside [L, U]."""
    table = table_of(data)
    return int(np.count_nonzero((table.labels < parameters.lower) | (table.labels > parameters.upper)))


def _warn(loaded_data: RegressionData, parameters: RegressionParameters) -> None:
    rows, clipped = loaded_data.dataset.histogram.num_rows, _clipped(loaded_data.dataset, parameters)
    if clipped > WARN_CLIPPED * rows:
        st.warning(
            f"{wording.percent(clipped / rows)} of the labels are clipped: the coefficients will be off by more than "
            "any number below says. Set L and U from what you know of the quantity.",
            icon=":material/warning:",
        )
        if loaded_data.dataset.is_private:
            cards.label(loaded_data.dataset.provenance)


def what_is_used(solution: RegressionSolution) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    data, problem = solution.data, solution.problem
    clipped = _clipped(data, solution.parameters)
    return (
        f"{wording.plain(data.source, 600)} {wording.counted(problem.num_rows, 'row')} of "
        f"{wording.counted(problem.num_users, 'user')}, {wording.counted(problem.num_features, 'feature')}. "
        f"B = {wording.number(problem.value_bound)}, σ² = {wording.number(problem.residual_variance)}"
        + (" (read from private labels: do not publish)" if solution.variance_is_private else "")
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
JOB_KEYS = (SOLVE.key, CAPS.key)
STEPS, SHOWN_KEY = QUESTION.key("steps"), QUESTION.key("shown")

ShownSolution = tuple[RegressionData, RegressionSolution]
"""Data and their solution."""


def find(loaded_data: RegressionData, parameters: RegressionParameters) -> ShownSolution | None:
    """Return the solution so far with its data; the previous ones while there is none.

    The result is None if there is no previous solution either, or if a search failed; then the page says so.
    """
    data, state = loaded_data.dataset, st.session_state
    variance = residual_variance(loaded_data, parameters)
    problem = parameters.asked_of(regression_rows(data.digest, table_of(data)), variance)
    solve_key = (data.digest, parameters.epsilon, parameters.value_bound, variance)
    draw_key = (data.digest, parameters.lower, parameters.upper)
    for_all = parameters.source is DataSource.GENERATED
    small = problem.num_rows * problem.num_features <= KEPT_CELLS
    how = options(problem)
    steps: list[Step] = []
    if not SOLVE.is_working_on(solve_key):
        state[STEPS] = steps  # Here: a thread cannot reach the session's state.

    def solve(progress: jobs.Progress, stop: ShouldStop) -> LinearEstimate:
        return working_set.solve(
            problem,
            progress=progress,
            should_stop=stop,
            on_step=steps.append,
            on_first=lambda first: progress(None, first),
        )

    def study(progress: jobs.Progress, stop: ShouldStop) -> CapDraws:
        labels = parameters.clipped(table_of(data))
        return sample_limiting.study(problem, how, labels, progress=progress, should_stop=stop)

    SOLVE.ask(solve_key, solve, lambda e: small and e.certificate.proves(PROVED), for_all, light=True)
    CAPS.ask(draw_key, study, lambda draws: draws.num_draws == how.draws, for_all, light=True)

    def enough(waited: float) -> bool:
        is_unanswered = SOLVE.running and jobs.so_far_of(SOLVE.key) is None
        return waited >= (SOON_SECONDS if is_unanswered else FIRST_SECONDS)

    wait(SOLVE, CAPS, enough=enough)
    failed = [key for key in JOB_KEYS if jobs.say_failure(key)]
    if failed:
        return None
    solve_state, draws_state = SOLVE.get_state(), CAPS.get_state()
    estimate = solve_state.value
    if estimate is None:
        previous: ShownSolution | None = state.get(SHOWN_KEY)
        return None if previous is None else (previous[0], replace(previous[1], stage=Stage.EARLIER))
    stage = Stage.FINAL if solve_state.stage is draws_state.stage is Stage.FINAL else Stage.FIRST
    draws = draws_state.value or sample_limiting.no_draws()
    proof = estimate.certificate
    cache_key = (solve_key, draw_key, stage, proof.value, proof.lower_bound, draws.num_draws)
    solution = regression_solution(cache_key, parameters, stage, data, problem, estimate, draws)
    state[SHOWN_KEY] = loaded_data, solution
    return loaded_data, solution


def search_again() -> None:
    """Forget the results, so that the next run of the page searches again."""
    SOLVE.forget()
    CAPS.forget()


def show_state(solution: RegressionSolution | None) -> None:
    """Draw one line: how sure the answer is, or how far the search for it is, with Stop.

    A search that has ended since the answer was taken lets the page run again: else its first answer would stand as if
    the search had been stopped there.
    """

    def doing() -> str:
        if solution is None:
            return "The answer is being computed"
        if solution.stage is Stage.EARLIER:
            return "This is the answer for the settings before; the new one is being computed"
        steps: list[Step] = st.session_state[STEPS]
        if SOLVE.running:
            return f"First answer, being refined: {_to_save(steps[-1].gap)}"
        return "First answer: bounds are still being tried"

    failed = any(jobs.failure_of(key) for key in JOB_KEYS)  # `find` says why.
    if failed or jobs.watch(JOB_KEYS, doing) or solution is None:
        return
    certificate = solution.best_estimate.certificate
    if not certificate.proves(PROVED):
        words = f"The search was stopped: {_to_save(certificate.relative_gap)}."
    elif not solution.draws.num_draws:
        words = "The trial of bounds was stopped."
    else:
        st.caption(":material/verified: Proved best; the proof is in *Behind the answer*.")
        return
    st.caption(f":material/pan_tool: {words}")
    fields.button("Search again", "regression_search_again", "replay", search_again, type="tertiary")


def _to_save(gap: float) -> str:
    return f"another C could save at most {wording.percent(gap, 2)} of its variance"
