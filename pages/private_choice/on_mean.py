"""The setting of *Mean*, as far as a private choice goes by it: one release has one setting on both pages."""

from __future__ import annotations

import streamlit as st

from dpcore import mean
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, VarianceSource
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import cached
from pages.private_choice.question import QUESTION
from pages.shared.fields import fields, setting

SHARE = QUESTION.key("variance_share")
FOLLOWED = QUESTION.key("variance_followed")


def parameters(epsilon: float = 1.0) -> MeanParameters | None:
    """What *Mean* asks, as its fields stand; None where they do not fit together."""
    fields.start(MEAN, shares=False)
    state = st.session_state
    source = state[MEAN.key("variance_source")]
    entered = state[MEAN.key("value_variance")] if source is VarianceSource.ENTERED else None
    lower, upper = setting.held(MEAN, "lower"), setting.held(MEAN, "upper")
    if lower is None or upper is None:
        return None
    try:
        return MeanParameters(epsilon, lower, upper, source, entered, counts=state[MEAN.key("counts")])
    except InvalidInput:
        return None


def follow(data: Dataset) -> None:
    """Take up the variance that *Mean* goes by, where that has changed; of private values it is the worst case."""
    asked, state = parameters(), st.session_state
    share = PrivateParameters(1.0).variance_share
    read = asked is not None and asked.variance_source is VarianceSource.FROM_VALUES
    if asked is not None and not (read and data.is_private):
        problem = cached.mean_problem(data, asked)
        # Where all values are the same, nothing is to be chosen: the page says so of an empty share.
        share = min(problem.value_variance / asked.value_bound**2, share) or share
    before = state.get(FOLLOWED, PrivateParameters(1.0).variance_share)
    if share != before and state[SHARE] in (before, None):
        state[SHARE] = share
    state[FOLLOWED] = share


def differing(data: Dataset, asked: PrivateParameters, here: float) -> str:
    """What *Mean* finds for the same release where that is another number, and why; empty where it is the same.

    Args:
        data: In use.
        asked: The question of this page.
        here: The number chosen in the clear, in rows per user.
    """
    there = parameters(asked.epsilon)
    if there is None or asked.wanted not in (Wanted.SMOOTH, Wanted.CAP):
        return ""
    problem = cached.mean_problem(data, there)
    cap = asked.wanted is Wanted.CAP
    found = mean.best_cap(problem).max_contributions if cap else mean.best_smooth(problem).threshold
    if abs(found - here) <= 1e-6 * here:
        return ""
    share = problem.value_variance / there.value_bound**2
    why = f"its σ² is {wording.number(share)} of (U − L)², here it is {wording.number(asked.variance_share)}"
    if there.variance_source is VarianceSource.FROM_VALUES and data.is_private:
        why = (
            "it reads σ² off the values, which are private. A private choice cannot, and takes the worst case"
        )
    elif share == asked.variance_share:
        why = "with private counts it goes by the mean of the values, here by the mean at which the error is worst"
    return (
        f"*Mean* finds {wording.number(found)} for this release and this page {wording.number(here)}: {why}."
    )
