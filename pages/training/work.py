"""The data of the page Training, its fields, and its runs beside the page.

The Training page's runs, beside the page: a first curve at once, surer ones as more runs are made.

A run of the page waits a moment for the first curve; until there is one, the answer of before stays, and says so. A
stopped training has a result, and can go on. Runs on the sample are the same for everybody: one session goes on
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
        fields.show_problems(problems)
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
        fields.show_problems(refused.problems)
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
        fields.show_problems(refused.problems)
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
    if (rule_text := describe_label_rule(table, positive_above)) and not has_named_class:
        st.info(
            f"{wording.plain(rule_text, 300)}. Set the threshold under *More settings*, or load the table again and "
            "name one class under *Which one is 1?*",
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


def read_inputs(slots: layout.PageSlots) -> tuple[TrainingParameters | None, Measure, ScoreUnit]:
    """Draw the inputs; return the parameters, and the measure and the unit of the main figure.

    The parameters are None, with the sentences on the page, if they are refused.
    """
    with slots.line:
        fields.draw_all(QUESTION, *QUESTION.list_fields(LINE))
    with slots.more_settings("training_more"):
        measure, unit = _read_figure_choices()
        with st.grid(2):
            fields.draw_all(QUESTION, *QUESTION.list_fields(MORE))
    with slots.notes:
        state = st.session_state
        # Empty fields of the generator are named where the data are made, and matter to no other data.
        unused = {name for name in GENERATOR_FIELDS if state[QUESTION.key(name)] is None}
        parameters: TrainingParameters | None = fields.build(QUESTION, unused=unused)
    return parameters, measure, unit


def _read_figure_choices() -> tuple[Measure, ScoreUnit]:
    """Draw the choices of the main figure; return its measure and its unit."""
    for name, default in (("measure", Measure.LOSS), ("over", ScoreUnit.ROWS)):
        st.session_state.setdefault(QUESTION.key(name), default)
    with fields.row():
        measure: Measure = fields.choice("The figure shows", MEASURES, QUESTION.key("measure"))
        unit: ScoreUnit = fields.choice(
            "Mean over",
            OVERS,
            QUESTION.key("over"),
            "Over users, every user counts alike; over rows, heavy users count for more.",
        )
    return measure, unit


def what_is_used(solution: TrainingSolution) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    experiment = solution.table.experiment
    positive = float((experiment.train.signs > 0).mean())
    return (
        f"{wording.plain(solution.data.dataset.source, 600)} "
        f"{wording.counted(experiment.train.num_users, 'user')} with "
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
MAX_TABLES = 12
"""Tables of earlier questions that are kept, so that a slider moved back has its answer: 300 kB each on the sample."""
RUNS = Search[Runs](QUESTION.key("runs_job"), MAX_TABLES)
SHOWN_KEY, RUNS_KEY = QUESTION.key("shown"), QUESTION.key("found")


def find(data: TrainingData, parameters: TrainingParameters) -> TrainingSolution | None:
    """Return the solution so far, or the previous one; None if there is neither, or if the work failed."""
    rows = cached.rows(data.digest, parameters.positive_above, data)
    question = cached.experiment(rows.digest, parameters, get_max_runs(), rows)
    show_run_limit(parameters.runs)
    runs = _get_runs(question, parameters.source is DataSource.SAMPLE)
    if jobs.say_failure(RUNS.key):
        return None
    if runs is None:
        previous: TrainingSolution | None = st.session_state.get(SHOWN_KEY)
        return None if previous is None else replace(previous, stage=Stage.EARLIER)
    stage = Stage.FIRST if RUNS.running and RUNS.is_working_on(question.key) else Stage.FINAL
    close = (
        ()
        if runs.close_table is None
        else (runs.close_table.experiment.key, *runs.close_table.runs_done.tolist())
    )
    cache_key = (
        data.digest,
        question.key,
        parameters,
        stage,
        runs.user_share,
        *runs.table.runs_done.tolist(),
        close,
    )
    solution = cached.load_solution(cache_key, stage, data, parameters, runs)
    st.session_state[SHOWN_KEY] = solution
    return solution


def _get_runs(question: Experiment, of_sample: bool) -> Runs | None:
    """Return the runs for this question as far as they are; start them if they have not begun."""
    session_runs: cache.Answers[Runs] = st.session_state.setdefault(RUNS_KEY, cache.Answers(MAX_TABLES))
    if not RUNS.is_working_on(question.key):
        if (stopped := session_runs.get(question.key)) is not None:
            return stopped
        shared_runs = RUNS.answers(for_all=True).get(question.key) if of_sample else None
        if shared_runs is not None:
            session_runs.keep(question.key, shared_runs)
            if not shared_runs.table.is_finished or _is_open(shared_runs):
                start(question, shared_runs, of_sample)
            return shared_runs
        start(question, None, of_sample)
        job = RUNS.job
        assert job is not None

        def enough(waited: float) -> bool:
            soon = SHOWN_KEY in st.session_state or job.waiting
            return job.so_far is not None or waited >= (SOON_SECONDS if soon else FIRST_SECONDS)

        wait(RUNS, enough=enough)
    current_runs = RUNS.get_state().value
    if current_runs is not None:
        session_runs.keep(question.key, current_runs)
    return session_runs.get(question.key)


def _is_open(runs: Runs) -> bool:
    """Return True if more runs are needed for a close call and have not been made."""
    return runs.close_table is None and decision.plan_close_call(runs.table) is not None


def start(question: Experiment, runs: Runs | None, of_sample: bool) -> None:
    """Make the missing runs; those on the sample are for all sessions."""
    of_all = RUNS.answers(for_all=True) if of_sample else None

    def make(progress: jobs.Progress, should_stop: ShouldStop) -> Runs | None:
        references = None if runs is None or runs.user_share < 1.0 else runs.references
        first_look = None
        if references is None:
            first_look = _first_look(question, progress, should_stop)
            references = experiment.compute_references(question, should_stop)
        if references is None:  # Stopped before there was anything to compare with.
            return first_look

        def build_runs(table: Table) -> Runs:
            latest_runs = Runs(table, references)
            # Another session may be further.
            if of_all is not None and _count_runs(latest_runs) > _count_runs(of_all.get(question.key)):
                of_all.keep(question.key, latest_runs)
            return latest_runs

        table = experiment.fill_table(
            question.make_empty_table() if runs is None or runs.user_share < 1.0 else runs.table,
            progress=progress,
            should_stop=should_stop,
            on_update=lambda table: progress(None, build_runs(table)),
        )
        if first_look is not None and not table.runs_done.any():
            return first_look
        close_call = decision.plan_close_call(table)
        close = (
            None
            if close_call is None
            else experiment.fill_table(close_call.make_empty_table(), should_stop=should_stop)
        )
        if close is None or not close.runs_done.min():
            return build_runs(table)
        decided = Runs(table, references, close_table=close)
        if of_all is not None:
            of_all.keep(question.key, decided)
        return decided

    jobs.start(RUNS.key, question.key, make, seconds=0.0, heavy=True)


def _first_look(question: Experiment, progress: jobs.Progress, should_stop: ShouldStop) -> Runs | None:
    """Return the runs on some of the users of a large table; None if it is small, or if no run was done."""
    subset = experiment.make_first_look(question)
    references = None if subset is None else experiment.compute_references(subset, should_stop)
    if subset is None or references is None:
        return None
    user_share = subset.mechanism.user_share

    def report_table(table: Table) -> None:
        progress(None, Runs(table, references, user_share))

    table = experiment.fill_table(subset.make_empty_table(), should_stop=should_stop, on_update=report_table)
    return Runs(table, references, user_share) if table.runs_done.any() else None


def _count_runs(runs: Runs | None) -> int:
    """Return the number of runs."""
    return 0 if runs is None or runs.user_share < 1.0 else int(runs.table.runs_done.sum())


def show_state(solution: TrainingSolution | None) -> None:
    """Draw one line: the number of runs, and the progress with *Stop*, or a button for the missing runs."""
    jobs.rerun_if_ended(RUNS.key)
    if RUNS.running:
        earlier = solution is not None and solution.stage is Stage.EARLIER
        words = "These are the settings before; training for the new ones" if earlier else "Training"
        jobs.watch(RUNS.key, words)
        return
    if solution is None:
        return
    fewest, largest = solution.runs
    runs = solution.table.experiment.runs
    if solution.user_share < 1.0:
        st.caption(":material/pan_tool: Stopped after a first look at some of the users.")
    elif solution.table.is_finished:
        splits = len(solution.table.experiment.splits)
        split_note = f", on {wording.counted(splits, 'split')} of the users" if splits > 1 else ""
        close = solution.close_table
        note = "" if close is None else f"; {close.experiment.runs} of the closest {close.runs_done.size}"
        st.caption(
            f":material/check: {wording.counted(runs, 'run')} of every method at every bound{split_note}{note}."
        )
        return
    else:
        run_counts = f"{fewest} to {largest}" if fewest != largest else f"{fewest}"
        st.caption(f":material/pan_tool: Stopped after {run_counts} of {runs} runs.")
    rows = cached.rows(solution.data.digest, solution.parameters.positive_above, solution.data)
    question = cached.experiment(rows.digest, solution.parameters, get_max_runs(), rows)
    of_sample = solution.parameters.source is DataSource.SAMPLE
    start_arguments = (question, Runs(solution.table, solution.references, solution.user_share), of_sample)
    fields.button("Go on", "training_go_on", "play_arrow", start, *start_arguments, type="tertiary")
