"""The Training page's runs, beside the page: a first curve at once, surer ones as more runs are made.

A run of the page waits a moment for the first curve; until there is one, the answer of before stays, and says so. What
was stopped is a result, and goes on where it was. Runs on the sample are the same for everybody: one session goes on
where another one was.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.progress import ShouldStop
from dpcore.training import experiment
from dpcore.training.answer import TrainingSolution
from dpcore.training.answer.found import Runs
from dpcore.training.experiment import Experiment, Table
from dpcore.training.parameters import DataSource, TrainingParameters
from dpcore.training.training_data import TrainingData
from pages.shared.base import cache
from pages.shared.fields import fields, jobs
from pages.shared.fields.search import Search, wait
from pages.training import cached
from pages.training import data as sources
from pages.training.question import QUESTION

SOON_SECONDS, FIRST_SECONDS = 0.25, 1.5
"""How long a run of the page waits for a new question's first curve, and for the first of all, while there is nothing
to be shown in its place. On the sample it is there after 0.1 s of a free core. For work that stands in line behind that
of others, nobody waits longer than for a new question's: of 20 sessions each run took 1.5 s."""
KEPT = 12
"""Tables of earlier questions that are kept, so that a slider moved back has its answer: 300 kB each on the sample."""
RUNS = Search[Runs](QUESTION.key("runs_job"), KEPT)
SHOWN, FOUND = QUESTION.key("shown"), QUESTION.key("found")


def find(data: TrainingData, parameters: TrainingParameters) -> TrainingSolution | None:
    """Return what is found so far, or was before; None where that is nothing, or the work failed, which is
    said here.
    """
    rows = cached.rows(data.digest, parameters.positive_above, data)
    question = cached.experiment(rows.digest, parameters, sources.get_max_runs(), rows)
    sources.show_run_limit(parameters.runs)
    runs = _found(question, parameters.source is DataSource.SAMPLE)
    if jobs.say_failure(RUNS.key):
        return None
    if runs is None:
        before: TrainingSolution | None = st.session_state.get(SHOWN)
        return None if before is None else replace(before, stage=Stage.EARLIER)
    stage = Stage.FIRST if RUNS.running and RUNS.asks(question.key) else Stage.FINAL
    close = (
        ()
        if runs.close_table is None
        else (runs.close_table.experiment.key, *runs.close_table.runs_done.tolist())
    )
    known = (
        data.digest,
        question.key,
        parameters,
        stage,
        runs.user_share,
        *runs.table.runs_done.tolist(),
        close,
    )
    found = cached.found(known, stage, data, parameters, runs)
    st.session_state[SHOWN] = found
    return found


def _found(question: Experiment, of_sample: bool) -> Runs | None:
    """Return what is known of this question; its runs are started where they were not, and no run of them is
    stopped.
    """
    own: cache.Answers[Runs] = st.session_state.setdefault(FOUND, cache.Answers(KEPT))
    if not RUNS.asks(question.key):
        if (stopped := own.known(question.key)) is not None:
            return stopped
        known = RUNS.answers(for_all=True).known(question.key) if of_sample else None
        if known is not None:
            own.keep(question.key, known)
            if not known.table.is_finished or _is_open(known):
                start(question, known, of_sample)
            return known
        start(question, None, of_sample)
        job = RUNS.job
        assert job is not None

        def enough(waited: float) -> bool:
            soon = SHOWN in st.session_state or job.waiting
            return job.so_far is not None or waited >= (SOON_SECONDS if soon else FIRST_SECONDS)

        wait(RUNS, enough=enough)
    found = RUNS.found().value
    if found is not None:
        own.keep(question.key, found)
    return own.known(question.key)


def _is_open(known: Runs) -> bool:
    """Return whether more runs are to decide, and are not made."""
    return known.close_table is None and experiment.plan_close_call(known.table) is not None


def start(question: Experiment, found: Runs | None, of_sample: bool) -> None:
    """Make the runs that are not there yet; of the sample, for all sessions."""
    of_all = RUNS.answers(for_all=True) if of_sample else None

    def make(tell: jobs.Tell, should_stop: ShouldStop) -> Runs | None:
        known = None if found is None or found.user_share < 1.0 else found.references
        look = None
        if known is None:
            look = _first_look(question, tell, should_stop)
            known = experiment.compute_references(question, should_stop)
        if known is None:  # Stopped before there was anything to compare with.
            return look

        def more(table: Table) -> Runs:
            now = Runs(table, known)
            # Another session may be further.
            if of_all is not None and _made(now) > _made(of_all.known(question.key)):
                of_all.keep(question.key, now)
            return now

        table = experiment.fill_table(
            question.make_empty_table() if found is None or found.user_share < 1.0 else found.table,
            progress=tell,
            should_stop=should_stop,
            on_update=lambda table: tell(None, more(table)),
        )
        if look is not None and not table.runs_done.any():
            return look
        asked = experiment.plan_close_call(table)
        close = (
            None
            if asked is None
            else experiment.fill_table(asked.make_empty_table(), should_stop=should_stop)
        )
        if close is None or not close.runs_done.min():
            return more(table)
        decided = Runs(table, known, close_table=close)
        if of_all is not None:
            of_all.keep(question.key, decided)
        return decided

    jobs.start(RUNS.key, question.key, make, seconds=0.0, heavy=True)


def _first_look(question: Experiment, tell: jobs.Tell, should_stop: ShouldStop) -> Runs | None:
    """Return a table of many rows on some of its users first; None where it has few, or nothing was done."""
    asked = experiment.make_first_look(question)
    known = None if asked is None else experiment.compute_references(asked, should_stop)
    if asked is None or known is None:
        return None
    look = asked.mechanism.user_share

    def more(table: Table) -> None:
        tell(None, Runs(table, known, look))

    table = experiment.fill_table(asked.make_empty_table(), should_stop=should_stop, on_update=more)
    return Runs(table, known, look) if table.runs_done.any() else None


def _made(found: Runs | None) -> int:
    """Return how many runs there are."""
    return 0 if found is None or found.user_share < 1.0 else int(found.table.runs_done.sum())


def show_state(found: TrainingSolution | None) -> None:
    """One line: how many runs there are, how far the work is with Stop, or what goes on with the rest."""
    jobs.rerun_if_ended(RUNS.key)
    if RUNS.running:
        earlier = found is not None and found.stage is Stage.EARLIER
        words = "These are the settings before; training for the new ones" if earlier else "Training"
        jobs.watch(RUNS.key, words)
        return
    if found is None:
        return
    fewest, most = found.runs
    asked = found.table.experiment.runs
    if found.user_share < 1.0:
        st.caption(":material/pan_tool: Stopped after a first look at some of the users.")
    elif found.table.is_finished:
        splits = len(found.table.experiment.splits)
        on = f", on {wording.counted(splits, 'split')} of the users" if splits > 1 else ""
        close = found.close_table
        more = "" if close is None else f"; {close.experiment.runs} of the closest {close.runs_done.size}"
        st.caption(
            f":material/check: {wording.counted(asked, 'run')} of every method at every bound{on}{more}."
        )
        return
    else:
        made = f"{fewest} to {most}" if fewest != most else f"{fewest}"
        st.caption(f":material/pan_tool: Stopped after {made} of {asked} runs.")
    rows = cached.rows(found.data.digest, found.parameters.positive_above, found.data)
    question = cached.experiment(rows.digest, found.parameters, sources.get_max_runs(), rows)
    of_sample = found.parameters.source is DataSource.SAMPLE
    whole = (question, Runs(found.table, found.references, found.user_share), of_sample)
    fields.button("Go on", "training_go_on", "play_arrow", start, *whole, type="tertiary")
