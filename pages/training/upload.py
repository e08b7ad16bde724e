"""The data of the page Classifier: the sample, generated rows, or a table with the public range of every number."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer.section import Cached
from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.common.wording import escape_text, format_count
from dpcore.data.design_matrix import Design
from dpcore.dataset import Dataset
from dpcore.training import training_data
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource
from dpcore.training.rows import make_scaling
from dpcore.training.training_data import TrainingData, TrainingGenerator
from pages.shared.base import cache
from pages.shared.base.question import round_range_outward
from pages.shared.data import table_upload
from pages.shared.data.table_upload import TableUpload
from pages.shared.fields import field_values, fields
from pages.shared.server import access
from pages.training.question import MAX_DEMO_USERS, QUESTION


def _check_saved_table(dataset: Dataset) -> None:
    """Raise `InvalidInput` if the table of a saved session cannot be trained on."""
    assert dataset.table is not None
    training_data.check_rows(dataset.table.features, dataset.table.user_codes, dataset.table.feature_names)


def _build_entry(dataset: Dataset, account: str, design: Design | None) -> TrainingData:
    """Build what the page keeps of a table, without ranges; raise `InvalidInput` if its design does not suffice."""
    if design is None:  # Without it nobody knows which columns need a range.
        raise refuse("what the columns of the table mean is missing")
    with Problems() as problems:
        # Levels read off private rows would stand in a release, and ε does not cover them.
        problems.extend(training_data.find_unlisted_levels(design) if dataset.is_private else [])
    return TrainingData(dataset, account, design)


UPLOAD = TableUpload(
    QUESTION,
    uploader_label="A table with a row per observation, a label, features, and the user (CSV)",
    label_prompt="Label: what is predicted",
    public_help="Rows of private data are protected as a whole: features, labels and users.",
    build_dataset=training_data.build_dataset,
    build_entry=_build_entry,
    check_dataset=_check_saved_table,
    column_field_prefix="range_",
    must_list_levels=True,
    allows_classes=True,
    # Else ranges would be proposed once more, in place of those that the file brings.
    list_extra_state=lambda table: {"proposed": table.account},
)


def read_data() -> TrainingData | None:
    """Show which data are used and offer others; return them, or None if there are none to train on."""
    data: TrainingData | None = table_upload.draw_data_choice(
        UPLOAD,
        {
            DataSource.SAMPLE: lambda: cache.compute_cached(
                Cached(training_data.load_sample, (), num_kept=1)
            ),
            DataSource.GENERATED: _generate_data,
            DataSource.UPLOAD: _show_upload,
        },
        DataSource.GENERATED,
        "A logistic model, and users with a heavy tail of rows.",
        GENERATOR_FIELDS,
        lambda data: (
            f"{format_count(data.histogram.num_rows, 'row')} of "
            f"{format_count(data.histogram.num_users, 'user')}"
        ),
    )
    return data


def _generate_data() -> TrainingData | None:
    """Generate data by the page's fields; show the problems and return None if that is impossible."""
    field_by_attribute = dict(zip(TrainingGenerator.__dataclass_fields__, GENERATOR_FIELDS, strict=True))
    generator, input_problems = field_values.build_parameters(
        TrainingGenerator,
        {
            attribute_name: st.session_state[QUESTION.get_key(field_name)]
            for attribute_name, field_name in field_by_attribute.items()
        },
        {
            attribute_name: QUESTION.declarations[field_name].name
            for attribute_name, field_name in field_by_attribute.items()
        },
    )
    if generator is not None and access.is_served() and generator.num_users > MAX_DEMO_USERS:
        st.info(
            f"A public demo generates at most {MAX_DEMO_USERS:,} users. Run Sweet Spot on your computer for more.",
            icon=":material/cloud_off:",
        )
        return None
    try:
        if generator is not None:
            generated_data: TrainingData = cache.compute_cached(
                Cached(TrainingGenerator.generate, (generator,), num_kept=4)
            )
            return generated_data
    except InvalidInput as refused:
        input_problems = list(refused.problems)
    fields.show_problems(input_problems)
    return None


WORD_BY_END = {"low": "lowest", "high": "highest"}


def _get_range_key(end_name: str, column: str) -> str:
    """Return the session key of the field with the low or high end of a column's range."""
    return f"{QUESTION.get_key('range_')}{end_name}_{column}"


def _show_upload() -> TrainingData | None:
    """Show the upload, then the fields of its ranges, and return the scaled data.

    Return None if no table is in use, or if a range is missing or bad.
    """
    own_data: TrainingData | None = table_upload.show_table_upload(UPLOAD)
    if own_data is None:
        return None
    _propose_ranges(own_data)
    state, column_names = st.session_state, own_data.numeric_columns
    keys_by_column = {
        column: [_get_range_key(end_name, column) for end_name in WORD_BY_END] for column in column_names
    }

    def find_empty_columns() -> list[str]:
        """List the columns whose range has an empty end; after the fields are drawn there may be fewer."""
        return [
            column
            for column in column_names
            if any(state.get(end_key) is None for end_key in keys_by_column[column])
        ]

    if keys_by_column:
        is_open = bool(find_empty_columns())
        with st.expander("Ranges of the features", expanded=is_open, icon=":material/straighten:"):
            st.caption(
                "Take ranges from what the quantity is: ε does not cover ranges read off private data. Values outside "
                "are clipped."
            )
            with st.grid(4, min_column_width=150):
                for column, end_keys in keys_by_column.items():
                    for end_key, end_word in zip(end_keys, WORD_BY_END.values(), strict=True):
                        fields.draw_number(f"{escape_text(column, 20)}, {end_word}", end_key)
    if empty_columns := find_empty_columns():
        st.info(
            "**What range can these columns have?** Enter the lowest and the highest value of "
            f"{escape_text(', '.join(empty_columns), 200)}.",
            icon=":material/straighten:",
        )
        return None
    assert own_data.design is not None
    range_by_column = {
        column: (float(state[low_key]), float(state[high_key]))
        for column, (low_key, high_key) in keys_by_column.items()
    }
    try:
        return replace(
            own_data,
            scaling=make_scaling(own_data.dataset, own_data.design, range_by_column),
            ranges=range_by_column,
        )
    except InvalidInput as refused:
        fields.show_problems(refused.problems)
        return None


def _propose_ranges(data: TrainingData) -> None:
    """Set the fields to ranges of public data, rounded out, once for each table; for private data, empty them."""
    state, proposed_key = st.session_state, QUESTION.get_key("proposed")
    if state.get(proposed_key) == data.account:
        return
    state[proposed_key], labelled_rows = data.account, data.dataset.table
    assert labelled_rows is not None
    for column in data.numeric_columns:
        feature_values = labelled_rows.features[:, labelled_rows.feature_names.index(column)]
        value_range = (
            (None, None)
            if data.dataset.is_private
            else round_range_outward(feature_values.min(), feature_values.max())
        )
        state.update(
            zip((_get_range_key(end_name, column) for end_name in WORD_BY_END), value_range, strict=True)
        )


def show_label_rule(data: TrainingData, positive_above: float) -> None:
    """Show how a threshold splits labels of more than two values, unless one class is named."""
    has_named_class = data.design is not None and bool(data.design.positive)
    if (rule_text := training_data.describe_label_rule(data, positive_above)) and not has_named_class:
        st.info(
            f"{escape_text(rule_text, 300)}. Set the threshold under *More settings*, or load the table again "
            "and name one class.",
            icon=":material/label:",
        )
