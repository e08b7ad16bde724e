"""The data of the Training page: the sample, generated data, or its own upload with public ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource
from dpcore.training.rows import TrainingGenerator, make_scaling
from dpcore.training.training_data import TrainingData, describe_label_rule
from pages.shared.base import demo, question
from pages.shared.data import table_upload
from pages.shared.fields import fields
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
