"""What a person enters on Choose privately, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.errors import InvalidInput, Problem
from dpcore.private.copy import CopyNoise
from dpcore.private.parameters import (
    DEFAULT_DELTA,
    DEFAULT_LARGEST,
    DELTA_RANGE,
    PrivateParameters,
    Relation,
    Wanted,
)
from pages.parts import keys
from pages.parts.text import plain

WANTED_NAMES = {
    Wanted.SMOOTH: "Mean, smooth weights",
    Wanted.CAP: "Mean, cap",
    Wanted.SUM: "Sum or count",
    Wanted.QUANTILE: "Quantile of rows per user",
}
RELATION_NAMES = {Relation.ADD_OR_REMOVE: "Add or remove one user", Relation.REPLACE: "Replace one user"}
NOISE_NAMES = {CopyNoise.LAPLACE: "Laplace", CopyNoise.GAUSSIAN: "Gaussian"}
FIELD_NAMES = {
    keys.EPSILON: "ε",
    keys.PRIVATE_EPSILON: "ε of the choice",
    keys.PRIVATE_DELTA: "δ",
    keys.PRIVATE_LARGEST: "the public maximum",
    keys.PRIVATE_VARIANCE: "the variance of a value",
    keys.PRIVATE_SHARE: "the quantile",
    keys.PRIVATE_MARGIN: "the margin",
    keys.PRIVATE_FACTOR: "how good the guess is",
}
DEFAULT_FACTOR = 2.0


def defaults() -> None:
    """Values of widgets before anything is entered, and where a link has none."""
    state = st.session_state
    for key, value in (
        (keys.PRIVATE_WANTED, Wanted.SMOOTH),
        (keys.PRIVATE_EPSILON, 0.1),
        (keys.PRIVATE_RELATION, Relation.ADD_OR_REMOVE),
        (keys.PRIVATE_NOISE, CopyNoise.LAPLACE),
        (keys.PRIVATE_DELTA, DEFAULT_DELTA),
        (keys.PRIVATE_LARGEST, DEFAULT_LARGEST),
        (keys.PRIVATE_VARIANCE, 0.25),
        (keys.PRIVATE_SHARE, 0.95),
        (keys.PRIVATE_MARGIN, 0.0),
        (keys.PRIVATE_GUESS, None),
        (keys.PRIVATE_FACTOR, DEFAULT_FACTOR),
    ):
        state.setdefault(key, value)
    if state[keys.PRIVATE_NOISE] is CopyNoise.LAPLACE and state[keys.PRIVATE_DELTA] is None:
        state[keys.PRIVATE_DELTA] = DEFAULT_DELTA
    if state[keys.PRIVATE_GUESS] is None and state[keys.PRIVATE_FACTOR] is None:
        state[keys.PRIVATE_FACTOR] = DEFAULT_FACTOR


def read() -> PrivateParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    defaults()
    with st.container(border=True, key="private_inputs"):
        st.segmented_control(
            "What the bound is for",
            list(WANTED_NAMES),
            key=keys.PRIVATE_WANTED,
            format_func=WANTED_NAMES.__getitem__,
            required=True,
            persist_state="session",
            help="The private choice aims at what is best for this question. A private copy serves all of them.",
        )
        columns = st.columns([4, 4, 7])
        with columns[0]:
            _number(
                "ε of the choice",
                keys.PRIVATE_EPSILON,
                "Comes on top of the ε in the sidebar, which is that of the release that will use the bound.",
                low=1e-6,
                high=1e3,
            )
        with columns[1]:
            _number(
                "Public maximum of rows per user",
                keys.PRIVATE_LARGEST,
                "From what the quantity is or how it was collected, not from the data. No bound above it is chosen; "
                "users with more count as having this many in a copy.",
                low=1,
                high=10**12,
                step=1,
            )
        with columns[2]:
            _for_the_question()
        with st.expander("More settings", icon=":material/tune:"):
            _more()
        return _parameters()


def _number(
    label: str, key: str, text: str, low: float, high: float, step: int | None = None, hint: str = ""
) -> None:
    st.number_input(
        label,
        min_value=low,
        max_value=high,
        value=None,
        step=step,
        format=None if step else "%g",
        key=key,
        persist_state="session",
        placeholder=hint or None,
        help=text,
    )


def _for_the_question() -> None:
    wanted = st.session_state[keys.PRIVATE_WANTED]
    if wanted in (Wanted.SMOOTH, Wanted.CAP):
        _number(
            "Variance of one row's value, as a share of (highest − lowest)²",
            keys.PRIVATE_VARIANCE,
            "Of the values, the best bound depends on this alone. The worst case is 0.25: half of the values at "
            "either end. From what the quantity is, not from the data.",
            low=1e-9,
            high=0.25,
        )
    elif wanted is Wanted.SUM:
        _number(
            "Margin, in users",
            keys.PRIVATE_MARGIN,
            "The best bound has 1/ε users above it. Few as they are, a draw easily lands above them all, where "
            "there is only more noise. Aiming at this many users more costs a little bias instead.",
            low=0.0,
            high=1e12,
        )
    else:
        _number(
            "Quantile, as a share",
            keys.PRIVATE_SHARE,
            "0.95: the smallest number that at least 95 % of the users do not exceed.",
            low=1e-6,
            high=1.0 - 1e-6,
        )


def _more() -> None:
    left, middle, right = st.columns(3)
    with left:
        st.radio(
            "Neighbouring data sets",
            list(RELATION_NAMES),
            key=keys.PRIVATE_RELATION,
            format_func=RELATION_NAMES.__getitem__,
            persist_state="session",
            help="Under both, who has how many rows is private. Replace: the number of users is public, and a copy "
            "needs twice the noise.",
        )
    with middle:
        st.segmented_control(
            "Noise of the private copy",
            list(NOISE_NAMES),
            key=keys.PRIVATE_NOISE,
            format_func=NOISE_NAMES.__getitem__,
            required=True,
            persist_state="session",
            help="Discrete Laplace noise for ε-DP, discrete Gaussian noise for (ε, δ)-DP, drawn by OpenDP.",
        )
        if st.session_state[keys.PRIVATE_NOISE] is CopyNoise.GAUSSIAN:
            _number(
                "δ",
                keys.PRIVATE_DELTA,
                "At most this much probability that ε does not hold. Well below 1 / (number of users).",
                *DELTA_RANGE,
            )
    with right:
        _number(
            "Public guess of the number",
            keys.PRIVATE_GUESS,
            "Optional, for the direct choice: what you expect from other data or from experience. It steers the "
            "draw where the data say little, as for a sum. It must not come from these data.",
            low=1,
            high=10**12,
            hint="none",
        )
        if st.session_state[keys.PRIVATE_GUESS] is not None:
            _number(
                "Right within a factor of",
                keys.PRIVATE_FACTOR,
                "The answer lies within this factor of the guess with a chance of about two in three.",
                low=1.01,
                high=1e6,
            )


def _parameters() -> PrivateParameters | None:
    state = st.session_state
    noise, wanted = state[keys.PRIVATE_NOISE], state[keys.PRIVATE_WANTED]
    drawn = {keys.EPSILON, keys.PRIVATE_EPSILON, keys.PRIVATE_LARGEST}
    drawn |= {keys.PRIVATE_DELTA} if noise is CopyNoise.GAUSSIAN else set()
    drawn |= {keys.PRIVATE_FACTOR} if state[keys.PRIVATE_GUESS] is not None else set()
    drawn |= {
        {Wanted.SUM: keys.PRIVATE_MARGIN, Wanted.QUANTILE: keys.PRIVATE_SHARE}.get(
            wanted, keys.PRIVATE_VARIANCE
        )
    }
    try:
        empty = [
            f"{name} is empty" for key, name in FIELD_NAMES.items() if key in drawn and state[key] is None
        ]
        if empty:
            raise InvalidInput([Problem(what, remedy="Enter a number") for what in empty])
        usual = {"variance_share": 0.25, "share": 0.95, "margin": 0.0}
        given = {
            name: state[key]
            for name, key in (
                ("variance_share", keys.PRIVATE_VARIANCE),
                ("share", keys.PRIVATE_SHARE),
                ("margin", keys.PRIVATE_MARGIN),
            )
            if state[key] is not None
        }
        return PrivateParameters(
            epsilon=state[keys.EPSILON],
            wanted=wanted,
            epsilon_choice=state[keys.PRIVATE_EPSILON],
            relation=state[keys.PRIVATE_RELATION],
            noise=noise,
            delta=state[keys.PRIVATE_DELTA] if noise is CopyNoise.GAUSSIAN else None,
            largest=int(state[keys.PRIVATE_LARGEST]),
            guess=state[keys.PRIVATE_GUESS],
            factor=state[keys.PRIVATE_FACTOR] if state[keys.PRIVATE_GUESS] is not None else None,
            **{**usual, **given},
        )
    except InvalidInput as refused:
        st.error("\n".join(f"- {plain(p.sentence, 300)}" for p in refused.problems), icon=":material/error:")
        return None
