"""What a person enters on the Mean page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore import mean, wording
from dpcore.dataset import Dataset
from dpcore.errors import InvalidInput, Problem
from dpcore.mean_private import PrivateCountsProblem
from pages.parts import cached, keys, mean_view
from pages.parts.text import plain

NOISE_NAMES = {
    mean.NoiseSource.WORST_CASE: "Worst case",
    mean.NoiseSource.FROM_VALUES: "From values",
    mean.NoiseSource.ENTERED: "Entered",
}
FROM_VALUES = mean.NoiseSource.FROM_VALUES
COUNTS_NAMES = {mean.Counts.PUBLIC: "Public", mean.Counts.PRIVATE: "Private too"}


def read(data: Dataset) -> mean.MeanParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    _defaults()
    if data.release is not None and st.session_state[keys.MEAN_NOISE] is FROM_VALUES:
        st.session_state[keys.MEAN_NOISE] = mean.NoiseSource.WORST_CASE  # A release has no values.
    with st.container(border=True, key="mean_inputs"):
        st.radio(
            "Contribution counts are",
            list(COUNTS_NAMES),
            key=keys.MEAN_COUNTS,
            format_func=COUNTS_NAMES.__getitem__,
            horizontal=True,
            persist_state="session",
            help="Public: everybody may know how many rows each user has, only values are protected, and neighbours "
            "differ in one user's values. Private too: whether a user is there at all is protected, and neighbours "
            "add or remove one user. The whole page follows.",
        )
        columns = st.columns([3, 3, 7, 4])
        with columns[0]:
            st.number_input(
                "Lowest value L",
                value=None,  # here and below: else a cleared field would silently become min_value or 0
                key=keys.MEAN_LOWER,
                step=None,
                format="%g",
                persist_state="session",
                help="Values below are raised to it. Public: from what the quantity is, not from data.",
            )
        with columns[1]:
            st.number_input(
                "Highest value U",
                value=None,
                key=keys.MEAN_UPPER,
                step=None,
                format="%g",
                persist_state="session",
                help="Values above are lowered to it. B = U − L sets how much noise is needed.",
            )
        with columns[2]:
            st.segmented_control(
                "Variance of one row's value, σ²",
                [source for source in NOISE_NAMES if data.release is None or source is not FROM_VALUES],
                key=keys.MEAN_NOISE,
                format_func=NOISE_NAMES.__getitem__,
                required=True,
                persist_state="session",
                help="How much values scatter. The worst case is B²/4: half of them at L, half at U.",
            )
            if st.session_state[keys.MEAN_NOISE] is mean.NoiseSource.ENTERED:
                st.number_input(
                    "σ² (unit of the values, squared)",
                    min_value=0.0,
                    value=None,
                    key=keys.MEAN_VARIANCE,
                    step=None,
                    format="%g",
                    persist_state="session",
                )
        with columns[3]:
            st.number_input(
                "Compare your own cap",
                min_value=1,
                value=None,
                step=1,
                key=keys.MEAN_OWN_CAP,
                persist_state="session",
                placeholder="rows",
                help="Optional: a bound you use today, in rows per user.",
            )
        parameters = _parameters()
        if parameters is not None:
            _say_what_is_used(data, parameters)
    return parameters


def _defaults() -> None:
    state = st.session_state
    state.setdefault(keys.MEAN_LOWER, 0.0)
    state.setdefault(keys.MEAN_UPPER, 1.0)
    state.setdefault(keys.MEAN_NOISE, mean.NoiseSource.WORST_CASE)
    state.setdefault(keys.MEAN_VARIANCE, 0.1)
    state.setdefault(keys.MEAN_OWN_CAP, None)
    state.setdefault(keys.MEAN_COUNTS, mean.Counts.PUBLIC)


FIELD_NAMES = {
    keys.EPSILON: "ε",
    keys.MEAN_LOWER: "Lowest value L",
    keys.MEAN_UPPER: "Highest value U",
    keys.MEAN_VARIANCE: "σ²",
}


def _parameters() -> mean.MeanParameters | None:
    state = st.session_state
    noise = state[keys.MEAN_NOISE]
    needed = [key for key in FIELD_NAMES if key != keys.MEAN_VARIANCE or noise is mean.NoiseSource.ENTERED]
    try:
        empty = [f"{FIELD_NAMES[key]} is empty" for key in needed if state[key] is None]
        if empty:
            raise InvalidInput([Problem(what, remedy="Enter a number") for what in empty])
        return mean.MeanParameters(
            epsilon=state[keys.EPSILON],
            lower=state[keys.MEAN_LOWER],
            upper=state[keys.MEAN_UPPER],
            noise=noise,
            noise_variance=state[keys.MEAN_VARIANCE] if noise is mean.NoiseSource.ENTERED else None,
            own_cap=state[keys.MEAN_OWN_CAP],
            counts=state[keys.MEAN_COUNTS],
        )
    except InvalidInput as refused:
        st.error("\n".join(f"- {plain(p.sentence, 300)}" for p in refused.problems), icon=":material/error:")
        return None


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
    if clamped is not None:
        rows = data.histogram.num_rows
        if clamped.num_clamped:
            words.append(
                f"{wording.counted(clamped.num_clamped, 'value')} of {wording.number(rows)} "
                f"({wording.percent(clamped.num_clamped / rows)}) lie outside [L, U] and are clamped: "
                f"{wording.number(clamped.num_below)} below, {wording.number(clamped.num_above)} above."
            )
        else:
            words.append("All values lie inside [L, U].")
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
    st.caption(" ".join(words))
    if clamped is not None and clamped.num_clamped > mean_view.WARN_CLAMPED * data.histogram.num_rows:
        st.warning(
            f"{wording.percent(clamped.num_clamped / data.histogram.num_rows)} of the values are clamped: the mean "
            "released will be far from the mean of the values. Set L and U from what you know of the quantity.",
            icon=":material/warning:",
        )
