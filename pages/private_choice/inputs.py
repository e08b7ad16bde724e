"""What a person enters on Choose privately, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.private_choice.parameters import (
    DEFAULT_DELTA,
    DEFAULT_LARGEST,
    PrivateParameters,
    Relation,
    Wanted,
)
from dpcore.private_choice.private_histogram import CopyNoise
from pages.shared import catalogue, fields, keys

TITLE = "Choose privately"
WANTED_NAMES = {
    Wanted.SMOOTH: "Mean, smooth weights",
    Wanted.CAP: "Mean, cap",
    Wanted.SUM: "Count of rows",
    Wanted.QUANTILE: "Quantile of rows per user",
}
SUM_OF_A_COLUMN = (
    "T bounds rows, so it is for a **count of rows**. For a **sum of a column**, load the data again in *Your data* "
    "with *What is a contribution?*: the total of that column. A row is then one unit of it, and T is in its units."
)
RELATION_NAMES = {Relation.ADD_OR_REMOVE: "Add or remove one user", Relation.REPLACE: "Replace one user"}
NOISE_NAMES = {CopyNoise.LAPLACE: "Laplace", CopyNoise.GAUSSIAN: "Gaussian"}
LABELS = {
    "epsilon": "ε",
    "epsilon_choice": "ε of the choice",
    "delta": "δ",
    "largest": "the public maximum",
    "variance_share": "the variance of a value",
    "share": "the quantile",
    "margin": "the margin",
    "factor": "how good the guess is",
}
FIRST = {
    keys.PRIVATE_WANTED: Wanted.SMOOTH,
    keys.PRIVATE_EPSILON: 0.1,
    keys.PRIVATE_RELATION: Relation.ADD_OR_REMOVE,
    keys.PRIVATE_NOISE: CopyNoise.LAPLACE,
    keys.PRIVATE_DELTA: DEFAULT_DELTA,
    keys.PRIVATE_LARGEST: float(DEFAULT_LARGEST),
    keys.PRIVATE_VARIANCE: 0.25,
    keys.PRIVATE_SHARE: 0.95,
    keys.PRIVATE_MARGIN: 0.0,
    keys.PRIVATE_GUESS: None,
    keys.PRIVATE_FACTOR: 2.0,
}
OF_ONE_QUESTION = {
    "variance_share": (Wanted.SMOOTH, Wanted.CAP),
    "margin": (Wanted.SUM,),
    "share": (Wanted.QUANTILE,),
}
"""Fields that are drawn for some questions only."""


def defaults() -> None:
    """Values of widgets before anything is entered, and where a link has none."""
    fields.defaults(FIRST)
    # A field that is not drawn begins anew.
    unused = [catalogue.page(TITLE).widgets[name] for name in _unused()]
    fields.defaults({}, {key: FIRST[key] for key in unused})


def read() -> PrivateParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    defaults()
    with st.container(border=True, key="private_inputs"):
        fields.choice(
            "What the bound is for",
            WANTED_NAMES,
            keys.PRIVATE_WANTED,
            "The private choice aims at what is best for this question. A private copy serves all of them.",
        )
        columns = st.columns([4, 5, 6], vertical_alignment="bottom")
        with columns[0]:
            fields.number(
                "ε of the choice",
                keys.PRIVATE_EPSILON,
                "Comes on top of the ε in the sidebar, which is that of the release that will use the bound.",
            )
        with columns[1]:
            fields.number(
                "Public maximum of rows per user",
                keys.PRIVATE_LARGEST,
                "From what the quantity is or how it was collected, not from the data. No bound above it is chosen; "
                "users with more count as having this many in a copy.",
                whole=True,
            )
        with columns[2]:
            _for_the_question()
        if st.session_state[keys.PRIVATE_WANTED] is Wanted.SUM:
            st.caption(SUM_OF_A_COLUMN)
        with st.expander("More settings", icon=":material/tune:"):
            _more()
        unused = _unused()
        usual = {
            name: FIRST[catalogue.page(TITLE).widgets[name]] for name in OF_ONE_QUESTION if name in unused
        }
        found: PrivateParameters | None = fields.build(TITLE, LABELS, unused=unused, instead=usual)
        return found


def _unused() -> set[str]:
    """Fields that do not apply to what is chosen."""
    state = st.session_state
    found = {name for name, wanted in OF_ONE_QUESTION.items() if state[keys.PRIVATE_WANTED] not in wanted}
    if state[keys.PRIVATE_NOISE] is not CopyNoise.GAUSSIAN:
        found.add("delta")
    if state[keys.PRIVATE_GUESS] is None:
        found.add("factor")
    return found


def _for_the_question() -> None:
    wanted = st.session_state[keys.PRIVATE_WANTED]
    if wanted in (Wanted.SMOOTH, Wanted.CAP):
        fields.number(
            "Variance of a value / (highest − lowest)²",
            keys.PRIVATE_VARIANCE,
            "Of the values, the best bound depends on this alone. The worst case is 0.25: half of the values at "
            "either end. From what the quantity is, not from the data.",
        )
    elif wanted is Wanted.SUM:
        fields.number(
            "Margin, in users",
            keys.PRIVATE_MARGIN,
            "The best bound has 1/ε users above it. Few as they are, a draw easily lands above them all, where "
            "there is only more noise. Aiming at this many users more costs a little bias instead.",
        )
    else:
        fields.number(
            "Quantile, as a share",
            keys.PRIVATE_SHARE,
            "0.95: the smallest number that at least 95 % of the users do not exceed.",
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
        fields.choice(
            "Noise of the private copy",
            NOISE_NAMES,
            keys.PRIVATE_NOISE,
            "Discrete Laplace noise for ε-DP, discrete Gaussian noise for (ε, δ)-DP, drawn by OpenDP.",
        )
        if st.session_state[keys.PRIVATE_NOISE] is CopyNoise.GAUSSIAN:
            fields.number(
                "δ",
                keys.PRIVATE_DELTA,
                "At most this much probability that ε does not hold. Well below 1 / (number of users).",
            )
    with right:
        fields.number(
            "Public guess of the number",
            keys.PRIVATE_GUESS,
            "Optional, for the direct choice: what you expect from other data or from experience. It steers the "
            "draw where the data say little, as for a sum. It must not come from these data.",
            placeholder="none",
        )
        if st.session_state[keys.PRIVATE_GUESS] is not None:
            fields.number(
                "Right within a factor of",
                keys.PRIVATE_FACTOR,
                "The answer lies within this factor of the guess with a chance of about two in three.",
            )
