"""What a person enters on the Quantile page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import rounded_up
from dpcore.dataset import Dataset
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting
from pages.shared import cached, keys, session, value_range
from pages.shared import fields as questions
from pages.shared.text import plain

BASE_NAMES = {BaseKind.UNIFORM: "Uniform", BaseKind.NORMAL: "Normal", BaseKind.HISTOGRAM: "Histogram"}
WEIGHTING_NAMES = {Weighting.SMOOTH: "Smooth weights", Weighting.CAP: "Cap", Weighting.NONE: "No bound"}
BOUND_NAMES = {
    BoundFrom.VALUES: "Best for the values",
    BoundFrom.COUNTS: "From counts",
    BoundFrom.OWN: "My own",
}
OWN_FIELDS = {
    BaseKind.UNIFORM: {"low": keys.QUANTILE_LOW, "high": keys.QUANTILE_HIGH},
    BaseKind.NORMAL: {"center": keys.QUANTILE_CENTER, "spread": keys.QUANTILE_SPREAD},
    BaseKind.HISTOGRAM: {"edges": keys.QUANTILE_EDGES, "masses": keys.QUANTILE_MASSES},
}
LABELS = {
    "epsilon": "ε",
    "low": "Lowest answer a",
    "high": "Highest answer b",
    "center": "Mean of ν",
    "spread": "Standard deviation of ν",
    "own_bound": "Your bound h",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
}
RANGE_NAMES = {BaseKind.UNIFORM: ("[a, b]", "a and b"), BaseKind.HISTOGRAM: ("the bins of ν", "the bins")}
"""Bases that end somewhere: where answers can fall, and what the person enters for that."""
IN_TABS = ("alpha", "beta", "gamma")
BASE_FIELD = 174
"""Width in pixels of a field of the base distribution."""


def read(data: Dataset) -> QuantileParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    _defaults(data)
    with st.container(border=True, key="quantile_inputs"):
        with questions.row():
            st.text_input(
                "Quantiles q",
                key=keys.QUANTILE_ASKED,
                persist_state="session",
                placeholder="0.5",
                help="One, or up to five with commas between them: 0.25, 0.5, 0.75. 0.5 is the median. Several share ε "
                "evenly.",
                width=130,
            )
            base = questions.choice(
                "Base distribution ν",
                BASE_NAMES,
                keys.QUANTILE_BASE,
                "Where the answer is looked for before the data speak. It must be chosen without looking at the "
                "values. An answer outside it cannot come out; the more of it lies far from the quantile, the worse.",
            )
            _base_fields(base)
        with questions.row():
            weighting = questions.choice(
                "Rows of one user",
                WEIGHTING_NAMES,
                keys.QUANTILE_WEIGHTING,
                "Smooth weights: all rows count, those of a user with s > h rows h/s each. Cap: at most h rows, drawn "
                "by lot. No bound: all rows count the same.",
            )
            if weighting is not Weighting.NONE:
                questions.choice(
                    "Bound h",
                    BOUND_NAMES,
                    keys.QUANTILE_BOUND_FROM,
                    "Best for the values: least expected error on these values; it leaks unless they are public. From "
                    "counts: best for the paper's bound, which uses only how many rows users have (public here) and α, "
                    "β, γ from the tab *The paper's bound*.",
                )
                if st.session_state[keys.QUANTILE_BOUND_FROM] is BoundFrom.OWN:
                    questions.number(
                        "Your bound h",
                        keys.QUANTILE_OWN_BOUND,
                        "In rows per user; whole for a cap.",
                        placeholder="rows",
                        width=150,
                    )
        parameters = _parameters()
        if parameters is not None:
            _say_what_is_used(data, parameters)
    return parameters


def _base_fields(base: BaseKind) -> None:
    labels = {
        BaseKind.UNIFORM: ("Lowest answer a", "Highest answer b"),
        BaseKind.NORMAL: ("Mean of ν", "Standard deviation of ν"),
    }
    if base is BaseKind.HISTOGRAM:
        st.text_input(
            "Bin edges",
            key=keys.QUANTILE_EDGES,
            persist_state="session",
            help="Ascending, with commas: one more than weights.",
            width=BASE_FIELD,
        )
        st.text_input(
            "Weights of the bins",
            key=keys.QUANTILE_MASSES,
            persist_state="session",
            help="At least 0, with commas; they are scaled to sum to 1.",
            width=BASE_FIELD,
        )
        return
    for label, key in zip(labels[base], OWN_FIELDS[base].values(), strict=True):
        questions.number(
            label,
            key,
            "In the values' unit. Public: from what the quantity is, not from data.",
            width=BASE_FIELD,
        )


def _defaults(data: Dataset) -> None:
    state = st.session_state
    _propose(data)
    low, high = float(state[keys.QUANTILE_LOW] or 0.0), float(state[keys.QUANTILE_HIGH] or 1.0)
    low, high = (low, high) if low < high else (0.0, 1.0)
    middle = (low + high) / 2.0
    questions.defaults(
        {
            keys.QUANTILE_ASKED: "0.5",
            keys.QUANTILE_BASE: BaseKind.UNIFORM,
            keys.QUANTILE_WEIGHTING: Weighting.SMOOTH,
            keys.QUANTILE_BOUND_FROM: BoundFrom.VALUES,
            keys.QUANTILE_ALPHA: 0.05,
            keys.QUANTILE_BETA: 0.05,
            keys.QUANTILE_GAMMA: 0.05,
            keys.QUANTILE_POPULATION: False,
        }
    )
    hidden = {
        keys.QUANTILE_CENTER: middle,
        keys.QUANTILE_SPREAD: (high - low) / 4.0,
        keys.QUANTILE_EDGES: ", ".join(map(wording.digits, (low, middle, high))),
        keys.QUANTILE_MASSES: "1, 1",
        keys.QUANTILE_OWN_BOUND: 5.0,
    }
    # A link leaves out what does not apply: those fields begin with a proposal when they come into use.
    drawn = OWN_FIELDS[state[keys.QUANTILE_BASE]].values()
    for key, value in hidden.items():
        own = key == keys.QUANTILE_OWN_BOUND and state[keys.QUANTILE_BOUND_FROM] is BoundFrom.OWN
        if key not in state or (state[key] is None and key not in drawn and not own):
            state[key] = value


def _propose(data: Dataset) -> None:
    """Ends of the base for new data, unless the person entered some; read off the values only where public."""
    state = st.session_state
    version, *ours = state.get(keys.QUANTILE_PROPOSED, (None, None, None))
    current = [state.get(keys.QUANTILE_LOW), state.get(keys.QUANTILE_HIGH)]
    if version == session.data_version() or current not in ([None, None], ours):
        return
    low, high = session.DEFAULT_VALUE_BOUNDS
    if data.values is not None and not data.is_private:
        low, high = session.rounded_out(float(data.values.values.min()), float(data.values.values.max()))
    state[keys.QUANTILE_LOW], state[keys.QUANTILE_HIGH] = low, high
    state[keys.QUANTILE_PROPOSED] = (session.data_version(), low, high)


def _parameters() -> QuantileParameters | None:
    state = st.session_state
    base = state[keys.QUANTILE_BASE]
    bounded = state[keys.QUANTILE_WEIGHTING] is not Weighting.NONE
    source = state[keys.QUANTILE_BOUND_FROM] if bounded else BoundFrom.VALUES
    unused = {name for kind, fields in OWN_FIELDS.items() if kind is not base for name in fields}
    if source is not BoundFrom.OWN:
        unused.add("own_bound")
    found: QuantileParameters | None = questions.build(
        "Quantile", LABELS, unused=unused, instead={"bound_from": source}, aside=IN_TABS
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
        outside = cached.values_outside(data.digest, *limits, data.values)
        words.append(outside.sentence(name))
    value_range.say(
        data,
        words,
        outside,
        f"lie where no answer can fall: a quantile that lies there too cannot come out, whatever ε. Set {ends} "
        f"{value_range.KNOW}",
    )
