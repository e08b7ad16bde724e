"""What a person enters on Sum and count, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.total.parameters import DEFAULT_DELTA, Summed, TotalParameters
from pages.shared import fields, keys

SUMMED_NAMES = {Summed.ROWS: "Rows", Summed.VALUES: "Values"}
MEASURE_NAMES = {Measure.ABSOLUTE: "Expected", Measure.RMSE: "RMSE", Measure.BOUND: "Bound"}
DEFAULT_SHARE = 0.99
DEFAULT_RUNS = 1000
LABELS = {
    "epsilon": "the field of ε",
    "delta": "the field of δ",
    "own_share": "the field of your own quantile",
    "runs": "the field of runs",
    "seed": "the field of the seed",
}
IN_TABS = ("num_groups", "own_groups", "own_share", "runs", "seed")


def defaults() -> None:
    """Values of widgets before anything is entered."""
    fields.defaults(
        {
            keys.TOTAL_SUMMED: Summed.ROWS,
            keys.TOTAL_NOISE: NoiseKind.LAPLACE,
            keys.TOTAL_MEASURE: Measure.ABSOLUTE,
            keys.TOTAL_DELTA: DEFAULT_DELTA,
            keys.TOTAL_OWN_SHARE: DEFAULT_SHARE,
            keys.TOTAL_RUNS: DEFAULT_RUNS,
            keys.TOTAL_SEED: 0,
            keys.TOTAL_OWN_BOUND: None,
            keys.TOTAL_LOWER: None,
            keys.TOTAL_UPPER: None,
            keys.TOTAL_GROUPS: None,
            keys.TOTAL_OWN_GROUPS: None,
        },
        # A link with Laplace noise has none.
        {keys.TOTAL_DELTA: DEFAULT_DELTA}
        if st.session_state.get(keys.TOTAL_NOISE) is NoiseKind.LAPLACE
        else {},
    )


def main(signed: bool) -> None:
    """The inputs above the answer; a range instead of T where totals have both signs."""
    with fields.row():
        fields.choice(
            "What is summed",
            SUMMED_NAMES,
            keys.TOTAL_SUMMED,
            "The number of rows, or the values of the value column.",
        )
        noise = fields.choice(
            "Noise",
            {kind: kind.value for kind in NoiseKind},
            keys.TOTAL_NOISE,
            "Laplace for ε-DP. Gaussian for (ε, δ)-DP, with exactly as much noise as that needs.",
        )
        if noise is NoiseKind.GAUSSIAN:
            fields.number(
                "δ",
                keys.TOTAL_DELTA,
                "At most this much probability that ε does not hold. Well below 1 / (number of users).",
                width=110,
            )
        fields.choice(
            "Error to minimise",
            MEASURE_NAMES,
            keys.TOTAL_MEASURE,
            "Expected: the mean of |release − truth|, exactly. RMSE: root mean squared error, exactly. "
            "Bound: bias plus mean noise, as in the paper; it is never smaller than the expected error.",
        )
        if signed:
            _range()
        else:
            _own_bound()


def _own_bound() -> None:
    fields.number(
        "Compare your own T",
        keys.TOTAL_OWN_BOUND,
        "A bound you use today: rows per user, or a total in the unit of the column.",
        placeholder="optional",
        width=160,
    )


def _range() -> None:
    for key, label in ((keys.TOTAL_LOWER, "Lowest total L"), (keys.TOTAL_UPPER, "Highest total U")):
        fields.number(
            label,
            key,
            "Totals outside [L, U] count as its nearer end. Leave both empty for a proposal.",
            placeholder="proposed",
            width=160,
        )


def groups(from_data: int | None) -> None:
    """The inputs of counts per group."""
    left, right = st.columns(2)
    with left:
        fields.number(
            "Number of groups G",
            keys.TOTAL_GROUPS,
            "All groups that are released, empty ones included. Public: from a list of your own.",
            whole=True,
            placeholder="as in the data" if from_data is not None else "enter",
        )
    with right:
        fields.number("Compare your own k", keys.TOTAL_OWN_GROUPS, whole=True, placeholder="optional")


def strategies() -> bool:
    """The inputs of the comparison over ε. Returns whether the simulation is to start."""
    columns = st.columns([4, 4, 3, 4], vertical_alignment="bottom")
    with columns[0]:
        fields.number(
            "Your own quantile",
            keys.TOTAL_OWN_SHARE,
            "T is this quantile of the users' totals: 0.99 for the value that 99 % of users do not exceed.",
        )
    with columns[1]:
        fields.number("Runs of each point", keys.TOTAL_RUNS, whole=True)
    with columns[2]:
        fields.number("Seed", keys.TOTAL_SEED, whole=True)
    with columns[3]:
        return st.button("Simulate", key="total_simulate", icon=":material/casino:", width="stretch")


def parameters() -> TotalParameters | None:
    """What is entered; None, with the sentences on the page, where it does not fit together."""
    gaussian = st.session_state[keys.TOTAL_NOISE] is NoiseKind.GAUSSIAN
    found: TotalParameters | None = fields.build(
        "Sum and count", LABELS, unused=() if gaussian else ("delta",), aside=IN_TABS
    )
    return found
