"""What a person enters on the Quantile page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.answer.value_range import RANGE_SOURCE, OutsideCounts
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.quantile.parameters import BaseKind, QuantileParameters, Weighting
from pages.quantile.question import QUESTION
from pages.shared.base import round_numbers
from pages.shared.fields import fields
from pages.shared.screen import layout, value_range
from pages.shared.session import session

BASE_FIELDS = {
    BaseKind.UNIFORM: ("low", "high"),
    BaseKind.NORMAL: ("center", "spread"),
    BaseKind.HISTOGRAM: ("edges", "masses"),
}
"""The fields that go with one form of the base only."""
RANGE_NAMES = {BaseKind.UNIFORM: ("[L, U]", "L and U"), BaseKind.HISTOGRAM: ("the bins of ν", "the bins")}
"""Bases that end somewhere: where answers can fall, and what the person enters for that."""
ASKED_FOR = {
    BaseKind.UNIFORM: {"low": "L", "high": "U"},
    BaseKind.NORMAL: {"center": "the mean of ν", "spread": "its standard deviation"},
    BaseKind.HISTOGRAM: {"edges": "the edges of the bins"},
}
"""What is asked for where the values are private, by field."""
IN_TABS = ("alpha", "beta", "gamma")


def read(data: Dataset, places: layout.Places) -> QuantileParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION, shares=data is session.dataset())
    _stand_in(data)
    base: BaseKind = st.session_state[QUESTION.key("base")]
    with places.line:
        fields.draw_all(QUESTION, "quantiles", *BASE_FIELDS[base])
    with places.more("quantile_more"):
        if fields.draw(QUESTION, "weighting") is not Weighting.NONE:
            fields.draw(QUESTION, "bound_from")
        fields.draw_all(QUESTION, "base", "neighbours")
    with places.notes:
        ends = {QUESTION.key(name): words for name, words in ASKED_FOR[base].items()}
        if data.values is not None and value_range.ask(data, ends):
            return None
        parameters: QuantileParameters | None = fields.build(
            QUESTION,
            unused={name for kind, names in BASE_FIELDS.items() if kind is not base for name in names},
            aside=(*IN_TABS, *QUESTION.own),
        )
        if parameters is not None:
            _warn(data, parameters)
    return parameters


def _stand_in(data: Dataset) -> None:
    """Fill what is empty: the range of public values, and the other forms of the base by what fits into that range.

    A link leaves out what does not apply: those fields hold a proposal by the time they come into use. A field in use
    that was emptied stays empty, and a sentence says so.
    """
    state = st.session_state
    low, high = QUESTION.key("low"), QUESTION.key("high")
    if state[low] is None and state[high] is None and data.values is not None and not data.is_private:
        # The data that the page shows may be a demonstration, of which `propose` knows nothing.
        state[low], state[high] = round_numbers.rounded_out(
            float(data.values.values.min()), float(data.values.values.max())
        )
        state[QUESTION.key("proposed")] = (state[low], state[high])
    if state[low] is None or state[high] is None or not state[low] < state[high]:
        return
    middle = (state[low] + state[high]) / 2.0
    stand_ins = {
        "center": middle,
        "spread": (state[high] - state[low]) / 4.0,
        "edges": ", ".join(map(wording.digits, (state[low], middle, state[high]))),
        "masses": QUESTION.first("masses"),
    }
    in_use = BASE_FIELDS[state[QUESTION.key("base")]]
    for name, value in stand_ins.items():
        if state[QUESTION.key(name)] is None and name not in in_use:
            state[QUESTION.key(name)] = value


def _outside(data: Dataset, parameters: QuantileParameters) -> OutsideCounts | None:
    limits = parameters.answer_range
    if data.values is None or limits is None:
        return None
    return value_range.values_outside(data.digest, *limits, data.values)


def _warn(data: Dataset, parameters: QuantileParameters) -> None:
    """Say so where many values lie where no answer can fall."""
    _, ends = RANGE_NAMES.get(parameters.base, ("", ""))
    value_range.warn(
        data,
        _outside(data, parameters),
        "lie outside the range of the base distribution: the mechanism can never return them, whatever ε. "
        f"Set {ends} {RANGE_SOURCE}",
    )
