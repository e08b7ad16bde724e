"""Where the Training page's data come from: the sample, generated as it says, or its own upload with public ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.training.generator import TrainingGenerator
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource
from dpcore.training.rows import make_scaling
from dpcore.training.training_data import TrainingData, describe_label_rule
from pages.shared.base import demo, round_numbers
from pages.shared.data import own_data
from pages.shared.fields import fields
from pages.training import cached
from pages.training.question import QUESTION
from pages.training.upload import UPLOAD

MOST_SERVED_USERS, MOST_SERVED_RUNS = 2_000, 20
"""What a public demo generates and runs at most: others wait for the same two cores."""


def read_data() -> TrainingData | None:
    """Say which data are used, and offer others. None, with a sentence, where there are none to train on."""
    sources = {
        DataSource.SAMPLE: cached.sample,
        DataSource.GENERATED: _generated,
        DataSource.UPLOAD: _uploaded,
    }
    loaded: TrainingData | None = own_data.choose_data(
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
    return loaded


def _generated() -> TrainingData | None:
    named = {"seed": "data_seed"}
    entered: dict[str, Any] = {
        name: st.session_state[QUESTION.key(named.get(name, name))]
        for name in TrainingGenerator.__dataclass_fields__
    }
    labels = {name: QUESTION.field(named.get(name, name)).name for name in entered}
    generator, problems = fields.build_parameters(TrainingGenerator, entered, labels)
    if generator is None:
        fields.say(problems)
        return None
    if demo.is_served() and generator.num_users > MOST_SERVED_USERS:
        st.info(
            f"A public demo generates at most {MOST_SERVED_USERS:,} users. Run Sweet Spot on your computer for more.",
            icon=":material/cloud_off:",
        )
        return None
    try:
        return cached.generated(generator)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None


def _uploaded() -> TrainingData | None:
    loaded: TrainingData | None = own_data.show_upload(UPLOAD)
    return None if loaded is None else _with_ranges(loaded)


def _range_key(end: str, column: str) -> str:
    return f"{QUESTION.key('range_')}{end}_{column}"


def _with_ranges(loaded: TrainingData) -> TrainingData | None:
    """Return the data with the ranges that stand in the fields; None, with sentences, where one is missing or
    empty.
    """
    _propose(loaded)
    state = st.session_state
    if loaded.numbers:
        missing = any(
            state.get(_range_key(end, column)) is None for column in loaded.numbers for end in ("low", "high")
        )
        with st.expander("Ranges of the features", expanded=missing, icon=":material/straighten:"):
            st.caption(
                "What each column can be, from what the quantity is. Read off private data, ranges are not covered by "
                "ε. Values outside are clipped."
            )
            with st.grid(4, min_column_width=150):
                for column in loaded.numbers:
                    fields.number(f"{wording.plain(column, 20)}, lowest", _range_key("low", column))
                    fields.number(f"{wording.plain(column, 20)}, highest", _range_key("high", column))
    found, empty = {}, []
    for column in loaded.numbers:
        low, high = (state.get(_range_key(end, column)) for end in ("low", "high"))
        if low is None or high is None:
            empty.append(column)
        else:
            found[column] = (float(low), float(high))
    if empty:
        st.info(
            f"**What range can these columns have?** Enter the lowest and the highest value of "
            f"{wording.plain(', '.join(empty), 200)} from what the quantity is. The answer follows.",
            icon=":material/straighten:",
        )
        return None
    assert loaded.design is not None
    try:
        return replace(loaded, scaling=make_scaling(loaded.dataset, loaded.design, found), ranges=found)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return None


def _propose(loaded: TrainingData) -> None:
    """Ranges of public data, rounded out, once for each table; of private data none."""
    state, key = st.session_state, QUESTION.key("proposed")
    if state.get(key) == loaded.account:
        return
    state[key] = loaded.account
    for column in loaded.numbers:
        ends = (
            (None, None)
            if loaded.dataset.is_private
            else round_numbers.rounded_out(*loaded.find_extremes(column))
        )
        for end, value in zip(("low", "high"), ends, strict=True):
            state[_range_key(end, column)] = value


def say_labels(loaded: TrainingData, positive_above: float) -> None:
    """Say where a threshold cuts labels of more than two values: one class, or a range, against the rest."""
    named = loaded.design is not None and bool(loaded.design.positive)
    if (cut := describe_label_rule(loaded, positive_above)) and not named:
        st.info(
            f"{wording.plain(cut, 300)}. Set the threshold under *More settings*, or load the table again and name one "
            "class under *Which one is 1?*",
            icon=":material/label:",
        )


def say_served_runs(asked: int) -> None:
    """Say where a public demo makes fewer runs than were asked for."""
    if demo.is_served() and asked > MOST_SERVED_RUNS:
        st.caption(f":material/cloud_off: A public demo makes {MOST_SERVED_RUNS} runs of each.")


def most_runs() -> int:
    """Runs that are made at most."""
    return MOST_SERVED_RUNS if demo.is_served() else 10**6
