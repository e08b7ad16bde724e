"""The data of the Regression page: generated as in the paper, or its own upload."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.regression.parameters import DataSource, RegressionGenerator
from pages.regression import cached
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import UPLOAD, RegressionData
from pages.shared.data import own_data
from pages.shared.fields import fields


def read_data() -> RegressionData | None:
    """Show which data are used and offer others; return them, or None if there are none."""
    table: RegressionData | None = own_data.choose_data(
        UPLOAD,
        {DataSource.GENERATED: _generate, DataSource.UPLOAD: lambda: own_data.show_upload(UPLOAD)},
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
    return cached.regression_data(generator)
