"""The data of the page Training, its fields, and its runs beside the page.

The Training page's runs, beside the page: a first curve at once, surer ones as more runs are made.

A run of the page waits a moment for the first curve; until there is one, the answer of before stays, and says so. What
was stopped is a result, and goes on where it was. Runs on the sample are the same for everybody: one session goes on
where another one was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.parameters import LINE, MORE
from dpcore.common.progress import ShouldStop
from dpcore.training import decision, experiment
from dpcore.training.answer.solution import Runs, TrainingSolution
from dpcore.training.experiment import Experiment, Table
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource, TrainingParameters
from dpcore.training.rows import Measure, ScoreUnit, TrainingGenerator, make_scaling
from dpcore.training.training_data import TrainingData, describe_label_rule
from pages.shared.base import cache, demo, question
from pages.shared.data import table_upload
from pages.shared.fields import fields, jobs
from pages.shared.fields.search import Search, wait
from pages.shared.screen import layout
from pages.training import cached
from pages.training.question import QUESTION
from pages.training.upload import UPLOAD

MAX_DEMO_USERS, MAX_DEMO_RUNS = 2_000, 20
"""What a public demo generates and runs at most: others wait for the same two cores."""


def read_data() -> TrainingData | None:
    """Show which data are used and offer others; return them, or None if there are none to train on."""
    sources = {
        DataSource.SAMPLE: cached.sample,
        DataSource.GENERATED: _generate,
        DataSource.UPLOAD: _show_upload,
    }
    table: TrainingData | None = table_upload.choose_data(
        UPLOAD,
        sources,
        DataSource.GENERATED,
        "A logistic model whose best θ is known, and users with a heavy tail of rows.",
        GENERATOR_FIELDS,
        lambda data: (
            f"{wording.counted(data.histogram.num_rows, 'row')} of "
            f"{wording.counted(data.histogram.num_users, 'user')}"
        ),
    )
    return table


def _generate() -> TrainingData | None:
    state_names = {"seed": "data_seed"}
    values: dict[str, Any] = {
        name: st.session_state[QUESTION.key(state_names.get(name, name))]
        for name in TrainingGenerator.__dataclass_fields__
    }
    labels = {name: QUESTION.field(state_names.get(name, name)).name for name in values}
    generator, problems = fields.build_parameters(TrainingGenerator, values, labels)
    if generator is None:
        fields.say(problems)
        return None
    if demo.is_served() and generator.num_users > MAX_DEMO_USERS:
        st.info(
            f"A public demo generates at most {MAX_DEMO_USERS:,} users. Run Sweet Spot on your computer for more.",
            icon=":material/cloud_off:",
        )
        return None
    try:
        return cached.generated(generator)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None


def _show_upload() -> TrainingData | None:
    table: TrainingData | None = table_upload.show_upload(UPLOAD)
    return None if table is None else _ask_ranges(table)


def _range_key(end: str, column: str) -> str:
    return f"{QUESTION.key('range_')}{end}_{column}"


def _ask_ranges(table: TrainingData) -> TrainingData | None:
    """Draw the fields of the features' ranges and return the scaled data; None if a range is missing or bad."""
    _propose_ranges(table)
    state = st.session_state
    if table.numbers:
        missing = any(
            state.get(_range_key(end, column)) is None for column in table.numbers for end in ("low", "high")
        )
        with st.expander("Ranges of the features", expanded=missing, icon=":material/straighten:"):
            st.caption(
                "What each column can be, from what the quantity is. Read off private data, ranges are not covered by "
                "ε. Values outside are clipped."
            )
            with st.grid(4, min_column_width=150):
                for column in table.numbers:
                    fields.number(f"{wording.plain(column, 20)}, lowest", _range_key("low", column))
                    fields.number(f"{wording.plain(column, 20)}, highest", _range_key("high", column))
    ranges, empty_columns = {}, []
    for column in table.numbers:
        low, high = (state.get(_range_key(end, column)) for end in ("low", "high"))
        if low is None or high is None:
            empty_columns.append(column)
        else:
            ranges[column] = (float(low), float(high))
    if empty_columns:
        st.info(
            f"**What range can these columns have?** Enter the lowest and the highest value of "
            f"{wording.plain(', '.join(empty_columns), 200)} from what the quantity is. The answer follows.",
            icon=":material/straighten:",
        )
        return None
    assert table.design is not None
    try:
        return replace(table, scaling=make_scaling(table.dataset, table.design, ranges), ranges=ranges)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None


def _propose_ranges(table: TrainingData) -> None:
    """Set the fields to ranges of public data, rounded out, once for each table; for private data, empty them."""
    state, key = st.session_state, QUESTION.key("proposed")
    if state.get(key) == table.account:
        return
    state[key] = table.account
    for column in table.numbers:
        ends = (
            (None, None) if table.dataset.is_private else question.rounded_out(*table.find_extremes(column))
        )
        for end, value in zip(("low", "high"), ends, strict=True):
            state[_range_key(end, column)] = value


def show_label_rule(table: TrainingData, positive_above: float) -> None:
    """Show how a threshold splits labels of more than two values, unless one class is named."""
    has_named_class = table.design is not None and bool(table.design.positive)
    if (rule := describe_label_rule(table, positive_above)) and not has_named_class:
        st.info(
            f"{wording.plain(rule, 300)}. Set the threshold under *More settings*, or load the table again and name "
            "one class under *Which one is 1?*",
            icon=":material/label:",
        )


def show_run_limit(num_runs: int) -> None:
    """Show that a public demo makes fewer runs than were asked for."""
    if demo.is_served() and num_runs > MAX_DEMO_RUNS:
        st.caption(f":material/cloud_off: A public demo makes {MAX_DEMO_RUNS} runs of each.")


def get_max_runs() -> int:
    """Return the largest number of runs that are made."""
    return MAX_DEMO_RUNS if demo.is_served() else 10**6


MEASURES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}
OVERS = {ScoreUnit.ROWS: "Rows", ScoreUnit.USERS: "Users"}


def read_inputs(places: layout.Places) -> tuple[TrainingParameters | None, Measure, ScoreUnit]:
    """Draw the inputs; return the parameters, and the measure and the unit of the main figure.

    The parameters are None, with the sentences on the page, if they are refused.
    """
    with places.line:
        fields.draw_all(QUESTION, *QUESTION.placed(LINE))
    with places.more("training_more"):
        measure, over = _read_figure_choices()
        with st.grid(2):
            fields.draw_all(QUESTION, *QUESTION.placed(MORE))
    with places.notes:
        state = st.session_state
        # Empty fields of the generator are named where the data are made, and matter to no other data.
        unused = {name for name in GENERATOR_FIELDS if state[QUESTION.key(name)] is None}
        parameters: TrainingParameters | None = fields.build(QUESTION, unused=unused)
    return parameters, measure, over


def _read_figure_choices() -> tuple[Measure, ScoreUnit]:
    """Draw the choices of the main figure; return its measure and its unit."""
    for name, first in (("measure", Measure.LOSS), ("over", ScoreUnit.ROWS)):
        st.session_state.setdefault(QUESTION.key(name), first)
    with fields.row():
        measure: Measure = fields.choice("The figure shows", MEASURES, QUESTION.key("measure"))
        over: ScoreUnit = fields.choice(
            "Mean over",
            OVERS,
            QUESTION.key("over"),
            "Over users, every user counts alike; over rows, heavy users count for more.",
        )
    return measure, over


def what_is_used(found: TrainingSolution) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    experiment = found.table.experiment
    positive = float((experiment.train.signs > 0).mean())
    return (
        f"{wording.plain(found.data.dataset.source, 600)} {wording.counted(experiment.train.num_users, 'user')} with "
        f"{wording.counted(experiment.train.num_rows, 'row')} to train on, "
        f"{wording.counted(experiment.test.num_users, 'user')} with "
        f"{wording.counted(experiment.test.num_rows, 'row')} held out, "
        f"{wording.counted(experiment.train.num_features, 'feature')}, intercept included; "
        f"{wording.percent(positive)} of the labels are 1."
    )


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
    question = cached.experiment(rows.digest, parameters, get_max_runs(), rows)
    show_run_limit(parameters.runs)
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
    return known.close_table is None and decision.plan_close_call(known.table) is not None


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
        asked = decision.plan_close_call(table)
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
    question = cached.experiment(rows.digest, found.parameters, get_max_runs(), rows)
    of_sample = found.parameters.source is DataSource.SAMPLE
    whole = (question, Runs(found.table, found.references, found.user_share), of_sample)
    fields.button("Go on", "training_go_on", "play_arrow", start, *whole, type="tertiary")
