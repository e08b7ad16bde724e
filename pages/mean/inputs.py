"""What a person enters on the Mean page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore import mean
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean.private_counts import PrivateCountsProblem
from pages.shared import cached, keys, missing, value_range
from pages.shared import fields as questions

NOISE_NAMES = {
    mean.NoiseSource.WORST_CASE: "Worst case",
    mean.NoiseSource.FROM_VALUES: "From values",
    mean.NoiseSource.ENTERED: "Entered",
}
FROM_VALUES = mean.NoiseSource.FROM_VALUES
COUNTS_NAMES = {mean.Counts.PUBLIC: "Public", mean.Counts.PRIVATE: "Private too"}
DEFAULTS = {
    keys.MEAN_LOWER: 0.0,
    keys.MEAN_UPPER: 1.0,
    keys.MEAN_NOISE: mean.NoiseSource.WORST_CASE,
    keys.MEAN_VARIANCE: 0.1,
    keys.MEAN_OWN_CAP: None,
    keys.MEAN_COUNTS: mean.Counts.PUBLIC,
}
LABELS = {
    "epsilon": "ε",
    "lower": "Lowest value L",
    "upper": "Highest value U",
    "noise_variance": "σ²",
}


def read(data: Dataset) -> mean.MeanParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    questions.defaults(DEFAULTS)
    if data.release is not None and st.session_state[keys.MEAN_NOISE] is FROM_VALUES:
        st.session_state[keys.MEAN_NOISE] = mean.NoiseSource.WORST_CASE  # A release has no values.
    with st.container(border=True, key="mean_inputs"):
        with questions.row():
            st.radio(
                "Contribution counts are",
                list(COUNTS_NAMES),
                key=keys.MEAN_COUNTS,
                format_func=COUNTS_NAMES.__getitem__,
                horizontal=True,
                persist_state="session",
                help="Public: everybody may know how many rows each user has, only values are protected, and "
                "neighbours differ in one user's values. Private too: whether a user is there at all is protected, "
                "and neighbours add or remove one user. The whole page follows.",
            )
            noise = questions.choice(
                "Variance of one row's value, σ²",
                {s: name for s, name in NOISE_NAMES.items() if data.release is None or s is not FROM_VALUES},
                keys.MEAN_NOISE,
                "How much values scatter. The worst case is B²/4: half of them at L, half at U.",
            )
            if noise is mean.NoiseSource.ENTERED:
                questions.number(
                    "σ² (unit squared)", keys.MEAN_VARIANCE, "In the values' unit, squared.", width=170
                )
        with questions.row():
            questions.number(
                "Lowest value L",
                keys.MEAN_LOWER,
                "Values below are raised to it. Public: from what the quantity is, not from data.",
            )
            questions.number(
                "Highest value U",
                keys.MEAN_UPPER,
                "Values above are lowered to it. B = U − L sets how much noise is needed.",
            )
            questions.number(
                "Compare your own cap",
                keys.MEAN_OWN_CAP,
                "Optional: a bound you use today, in rows per user.",
                whole=True,
                placeholder="rows",
                width=180,
            )
        fields = {keys.MEAN_LOWER: "L", keys.MEAN_UPPER: "U"}
        missing.say_cleared(
            fields | {keys.MEAN_VARIANCE: "σ²"} if noise is mean.NoiseSource.ENTERED else fields
        )
        unused = () if noise is mean.NoiseSource.ENTERED else ("noise_variance",)
        parameters: mean.MeanParameters | None = questions.build("Mean", LABELS, unused=unused)
        if parameters is not None:
            _say_what_is_used(data, parameters)
    return parameters


def _say_what_is_used(data: Dataset, parameters: mean.MeanParameters) -> None:
    clamped = cached.clamped_values(data.digest, parameters.lower, parameters.upper, data)
    problem = (
        parameters.problem(data.histogram, clamped.variance, clamped.mean)
        if clamped
        else parameters.problem(data.histogram)
    )
    words = [
        f"B = {wording.number(parameters.value_bound)}, σ² = {wording.number(problem.noise_variance)}"
        f" (at most B²/4 = {wording.number(parameters.largest_variance)})."
    ]
    outside = None
    if clamped is not None:
        outside = value_range.Outside(clamped.num_below, clamped.num_above, data.histogram.num_rows)
        words.append(outside.sentence("[L, U]", " and is clamped", " and are clamped"))
    elif data.values is None:
        which = "A DP release has" if data.release is not None else "These data have"
        words.append(f"{which} no values, only counts: σ² cannot be read from them.")
        if parameters.noise is mean.NoiseSource.FROM_VALUES:
            words.append("The worst case stands in for it.")
    if isinstance(problem, PrivateCountsProblem):
        words.append(
            "The noise's effect is reckoned for the mean at which it is worst (L or U)."
            if problem.value_mean is None
            else "The noise's effect is reckoned at the mean of the values, "
            f"{wording.number(parameters.lower + problem.value_mean)}."
        )
    value_range.say(
        data,
        words,
        outside,
        "are clamped: the mean released will be far from the mean of the values. Set L and U "
        f"{value_range.KNOW}",
    )
