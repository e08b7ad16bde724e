"""What a person enters on Sum and count, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.errors import InvalidInput, Problem
from dpcore.noise_error import Measure, NoiseKind
from dpcore.total_parameters import DEFAULT_DELTA, DELTA_RANGE, Summed, TotalParameters
from dpcore.total_strategies import MAX_RUNS
from pages.parts import keys
from pages.parts.text import plain

SUMMED_NAMES = {Summed.ROWS: "Rows", Summed.VALUES: "Values"}
MEASURE_NAMES = {Measure.ABSOLUTE: "Expected", Measure.RMSE: "RMSE", Measure.BOUND: "Bound"}
DEFAULT_SHARE = 0.99
DEFAULT_RUNS = 1000
FIELD_NAMES = {
    keys.EPSILON: "ε",
    keys.TOTAL_DELTA: "δ",
    keys.TOTAL_OWN_SHARE: "your own quantile",
    keys.TOTAL_RUNS: "runs",
    keys.TOTAL_SEED: "the seed",
}


def defaults() -> None:
    """Values of widgets before anything is entered."""
    state = st.session_state
    for key, value in (
        (keys.TOTAL_SUMMED, Summed.ROWS),
        (keys.TOTAL_NOISE, NoiseKind.LAPLACE),
        (keys.TOTAL_MEASURE, Measure.ABSOLUTE),
        (keys.TOTAL_DELTA, DEFAULT_DELTA),
        (keys.TOTAL_OWN_SHARE, DEFAULT_SHARE),
        (keys.TOTAL_RUNS, DEFAULT_RUNS),
        (keys.TOTAL_SEED, 0),
        (keys.TOTAL_OWN_BOUND, None),
        (keys.TOTAL_LOWER, None),
        (keys.TOTAL_UPPER, None),
        (keys.TOTAL_GROUPS, None),
        (keys.TOTAL_OWN_GROUPS, None),
    ):
        state.setdefault(key, value)
    if state[keys.TOTAL_NOISE] is NoiseKind.LAPLACE and state[keys.TOTAL_DELTA] is None:
        state[keys.TOTAL_DELTA] = DEFAULT_DELTA  # a link with Laplace noise has none


def main(signed: bool) -> None:
    """The inputs above the answer; a range instead of T where totals have both signs."""
    columns = st.columns([4, 5, 7, 4])
    with columns[0]:
        st.segmented_control(
            "What is summed",
            list(SUMMED_NAMES),
            key=keys.TOTAL_SUMMED,
            format_func=SUMMED_NAMES.__getitem__,
            required=True,
            persist_state="session",
            help="The number of rows, or the values of the value column.",
        )
    with columns[1]:
        st.segmented_control(
            "Noise",
            list(NoiseKind),
            key=keys.TOTAL_NOISE,
            format_func=lambda kind: kind.value,
            required=True,
            persist_state="session",
            help="Laplace for ε-DP. Gaussian for (ε, δ)-DP, with exactly as much noise as that needs.",
        )
        if st.session_state[keys.TOTAL_NOISE] is NoiseKind.GAUSSIAN:
            st.number_input(
                "δ",
                min_value=DELTA_RANGE[0],
                max_value=DELTA_RANGE[1],
                value=None,
                step=None,
                format="%g",
                key=keys.TOTAL_DELTA,
                persist_state="session",
                help="At most this much probability that ε does not hold. Well below 1 / (number of users).",
            )
    with columns[2]:
        st.segmented_control(
            "Error to minimise",
            list(MEASURE_NAMES),
            key=keys.TOTAL_MEASURE,
            format_func=MEASURE_NAMES.__getitem__,
            required=True,
            persist_state="session",
            help="Expected: the mean of |release − truth|, exactly. RMSE: root mean squared error, exactly. "
            "Bound: bias plus mean noise, as in the paper; it is never smaller than the expected error.",
        )
    with columns[3]:
        if signed:
            _range()
        else:
            _own_bound()


def _own_bound() -> None:
    st.number_input(
        "Compare your own T",
        min_value=0.0,
        value=None,
        step=None,
        format="%g",
        key=keys.TOTAL_OWN_BOUND,
        persist_state="session",
        placeholder="optional",
        help="A bound you use today: rows per user, or a total in the unit of the column.",
    )


def _range() -> None:
    for key, label in ((keys.TOTAL_LOWER, "Lowest total L"), (keys.TOTAL_UPPER, "Highest total U")):
        st.number_input(
            label,
            value=None,
            step=None,
            format="%g",
            key=key,
            persist_state="session",
            placeholder="proposed",
            help="Totals outside [L, U] count as its nearer end. Leave both empty for a proposal.",
        )


def groups(from_data: int | None) -> None:
    """The inputs of counts per group."""
    left, right = st.columns(2)
    with left:
        st.number_input(
            "Number of groups G",
            min_value=1,
            value=None,
            step=1,
            key=keys.TOTAL_GROUPS,
            persist_state="session",
            placeholder="as in the data" if from_data is not None else "enter",
            help="All groups that are released, empty ones included. Public: from a list of your own.",
        )
    with right:
        st.number_input(
            "Compare your own k",
            min_value=1,
            value=None,
            step=1,
            key=keys.TOTAL_OWN_GROUPS,
            persist_state="session",
            placeholder="optional",
        )


def strategies() -> bool:
    """The inputs of the comparison over ε. Returns whether the simulation is to start."""
    columns = st.columns([4, 4, 3, 4], vertical_alignment="bottom")
    with columns[0]:
        st.number_input(
            "Your own quantile",
            min_value=0.0,
            max_value=1.0,
            value=None,
            step=None,
            format="%g",
            key=keys.TOTAL_OWN_SHARE,
            persist_state="session",
            help="T is this quantile of the users' totals: 0.99 for the value that 99 % of users do not exceed.",
        )
    with columns[1]:
        st.number_input(
            "Runs of each point",
            min_value=2,
            max_value=MAX_RUNS,
            value=None,
            step=None,
            format="%d",
            key=keys.TOTAL_RUNS,
            persist_state="session",
        )
    with columns[2]:
        st.number_input(
            "Seed",
            min_value=0,
            max_value=2**32 - 1,
            value=None,
            step=None,
            key=keys.TOTAL_SEED,
            persist_state="session",
        )
    with columns[3]:
        return st.button("Simulate", key="total_simulate", icon=":material/casino:", width="stretch")


def parameters() -> TotalParameters | None:
    """What is entered; None, with the sentences on the page, where it does not fit together."""
    state = st.session_state
    gaussian = state[keys.TOTAL_NOISE] is NoiseKind.GAUSSIAN
    needed = [key for key in FIELD_NAMES if key != keys.TOTAL_DELTA or gaussian]
    own = state[keys.TOTAL_OWN_BOUND]
    try:
        empty = [f"the field of {FIELD_NAMES[key]} is empty" for key in needed if state[key] is None]
        if empty:
            raise InvalidInput([Problem(what, remedy="Enter a number") for what in empty])
        return TotalParameters(
            epsilon=state[keys.EPSILON],
            summed=state[keys.TOTAL_SUMMED],
            noise=state[keys.TOTAL_NOISE],
            delta=state[keys.TOTAL_DELTA] if gaussian else None,
            measure=state[keys.TOTAL_MEASURE],
            own_bound=own,
            lower=state[keys.TOTAL_LOWER],
            upper=state[keys.TOTAL_UPPER],
            num_groups=state[keys.TOTAL_GROUPS],
            own_groups=state[keys.TOTAL_OWN_GROUPS],
            own_share=state[keys.TOTAL_OWN_SHARE],
            runs=state[keys.TOTAL_RUNS],
            seed=state[keys.TOTAL_SEED],
        )
    except InvalidInput as refused:
        say(refused)
        return None


def say(refused: InvalidInput) -> None:
    """Put every problem on the page as a sentence."""
    st.error("\n".join(f"- {plain(p.sentence, 300)}" for p in refused.problems), icon=":material/error:")
