"""What a person enters on the Quantile page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import rounded_up
from dpcore.dataset import Dataset
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting
from pages.quantile.question import QUESTION
from pages.shared import fields, round_numbers, session, value_range
from pages.shared.text import plain

OWN_FIELDS = {
    BaseKind.UNIFORM: ("low", "high"),
    BaseKind.NORMAL: ("center", "spread"),
    BaseKind.HISTOGRAM: ("edges", "masses"),
}
"""The fields that go with one form of the base only."""
RANGE_NAMES = {BaseKind.UNIFORM: ("[a, b]", "a and b"), BaseKind.HISTOGRAM: ("the bins of ν", "the bins")}
"""Bases that end somewhere: where answers can fall, and what the person enters for that."""
IN_TABS = ("alpha", "beta", "gamma")


def read(data: Dataset) -> QuantileParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    _start(data)
    with st.container(border=True, key="quantile_inputs"):
        with fields.row():
            _text("quantiles")
            base = fields.draw(QUESTION, "base")
            for name in OWN_FIELDS[base]:
                if base is BaseKind.HISTOGRAM:
                    _text(name)
                else:
                    fields.draw(QUESTION, name)
        with fields.row():
            weighting = fields.draw(QUESTION, "weighting")
            if weighting is not Weighting.NONE and fields.draw(QUESTION, "bound_from") is BoundFrom.OWN:
                fields.draw(QUESTION, "own_bound")
        parameters = _parameters()
        if parameters is not None:
            _say_what_is_used(data, parameters)
    return parameters


def _text(name: str) -> None:
    """The widget of a field that holds numbers as text."""
    declared = QUESTION.field(name)
    st.text_input(
        declared.label,
        key=QUESTION.key(name),
        persist_state="session",
        placeholder=declared.placeholder or None,
        help=declared.help,
        width=declared.width or "stretch",
    )


def _start(data: Dataset) -> None:
    """Set what the fields begin with; the base's further forms begin as what fits into the ends of the uniform one."""
    state = st.session_state
    _propose(data)
    fields.start(QUESTION)
    low, high = float(state[QUESTION.key("low")] or 0.0), float(state[QUESTION.key("high")] or 1.0)
    low, high = (low, high) if low < high else (0.0, 1.0)
    middle = (low + high) / 2.0
    stand_ins = {
        "center": middle,
        "spread": (high - low) / 4.0,
        "edges": ", ".join(map(wording.digits, (low, middle, high))),
        "masses": QUESTION.first("masses"),
        "own_bound": QUESTION.first("own_bound"),
    }
    # A link leaves out what does not apply: those fields hold a proposal by the time they come into use. A field in
    # use that was emptied stays empty, and a sentence says so.
    in_use = {*OWN_FIELDS[state[QUESTION.key("base")]]}
    if state[QUESTION.key("bound_from")] is BoundFrom.OWN:
        in_use.add("own_bound")
    for name, value in stand_ins.items():
        if state[QUESTION.key(name)] is None and name not in in_use:
            state[QUESTION.key(name)] = value


def _propose(data: Dataset) -> None:
    """Ends of the base for new data, unless the person entered some; read off the values only where public."""
    state = st.session_state
    version, *ours = state.get(QUESTION.key("proposed"), (None, None, None))
    current = [state.get(QUESTION.key("low")), state.get(QUESTION.key("high"))]
    if version == session.data_version() or current not in ([None, None], ours):
        return
    low, high = round_numbers.DEFAULT_VALUE_BOUNDS
    if data.values is not None and not data.is_private:
        low, high = round_numbers.rounded_out(
            float(data.values.values.min()), float(data.values.values.max())
        )
    state[QUESTION.key("low")], state[QUESTION.key("high")] = low, high
    state[QUESTION.key("proposed")] = (session.data_version(), low, high)


def _parameters() -> QuantileParameters | None:
    state = st.session_state
    base = state[QUESTION.key("base")]
    bounded = state[QUESTION.key("weighting")] is not Weighting.NONE
    source = state[QUESTION.key("bound_from")] if bounded else BoundFrom.VALUES
    unused = {name for kind, names in OWN_FIELDS.items() if kind is not base for name in names}
    if source is not BoundFrom.OWN:
        unused.add("own_bound")
    found: QuantileParameters | None = fields.build(
        QUESTION, unused=unused, instead={"bound_from": source}, aside=IN_TABS
    )
    return found


def _say_what_is_used(data: Dataset, parameters: QuantileParameters) -> None:
    assert data.values is not None
    words = [f"Column {plain(data.values.column)}: {wording.counted(data.values.values.size, 'value')}."]
    if len(parameters.asked) > 1:
        words.append(
            f"{wording.counted(len(parameters.asked), 'quantile')} share ε evenly: "
            f"{rounded_up(parameters.epsilon_each)} each."
        )
    outside, limits = None, parameters.answer_range
    name, ends = RANGE_NAMES.get(parameters.base, ("", ""))
    if limits is not None:
        outside = value_range.values_outside(data.digest, *limits, data.values)
        words.append(outside.sentence(name))
    value_range.say(
        data,
        words,
        outside,
        f"lie outside the range of the base distribution: the mechanism can never return them, whatever ε. Set {ends} "
        f"{value_range.KNOW}",
    )
