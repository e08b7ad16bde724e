"""*Mean* for other pages: what it asks as its fields stand, and what it finds where that is another number."""

from __future__ import annotations

import math

import streamlit as st

from dpcore.answer import Answer, ReleaseSetting
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import ASSUMED_SHARE, NoiseKind
from dpcore.common.programs import SPLITS_MEANS
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, Target, VarianceSource
from dpcore.mean import answer as core
from dpcore.mean.answer.answer import solve_beside_page
from dpcore.mean.parameters import Likeness
from pages.mean.question import QUESTION
from pages.shared.fields import fields, jobs, setting


def parameters(epsilon: float = 1.0) -> MeanParameters | None:
    """Return the parameters of *Mean* from its fields; None if they do not fit together."""
    fields.start(QUESTION, uses_shared_data=False)
    state = st.session_state
    source = state[QUESTION.key("variance_source")]
    variance = state[QUESTION.key("value_variance")] if source is VarianceSource.ENTERED else None
    lower, upper = setting.read_value(QUESTION, "lower"), setting.read_value(QUESTION, "upper")
    if lower is None or upper is None:
        return None
    try:
        names = ("counts", "target", "likeness", "user_share", "mechanism", "program")
        settings = {name: state[QUESTION.key(name)] for name in names}
        if settings["mechanism"] is NoiseKind.GAUSSIAN:
            settings["delta"] = state[QUESTION.key("delta")]
        return MeanParameters(
            epsilon, lower, upper, variance_source=source, value_variance=variance, **settings
        )
    except InvalidInput:
        return None


def build_answer(dataset: Dataset, epsilon: float = 1.0) -> Answer | None:
    """Return the answer of *Mean* on these data; None if its fields do not fit together."""
    mean_parameters = parameters(epsilon)
    if mean_parameters is None:
        return None
    state, _ = jobs.solve(solve_beside_page(dataset, mean_parameters), QUESTION, dataset, is_shared=False)
    return core.build_answer(dataset, mean_parameters, state.value)


def share_between_users(dataset: Dataset) -> float:
    """Return the rho that *Mean* uses for the mean of this table, if it is public or assumed.

    Returns:
        0 for independent rows, and for a population; of private values what is usually assumed, of public ones what
        they tell, in two digits.
    """
    fields.start(QUESTION, uses_shared_data=False)
    state, key = st.session_state, QUESTION.key
    reads = state[key("variance_source")] is VarianceSource.FROM_VALUES and dataset.values is not None
    likeness = state[key("likeness")]
    if state[key("target")] is not Target.TABLE or (likeness is Likeness.INDEPENDENT and not reads):
        return 0.0
    if likeness is Likeness.ENTERED and not reads:
        return float(state[key("user_share")] if state[key("user_share")] is not None else ASSUMED_SHARE)
    answer = None if dataset.is_private else build_answer(dataset)
    value_moments = None if answer is None else answer.solution.values
    if value_moments is None or math.isnan(value_moments.share.estimate):
        return ASSUMED_SHARE
    return float(round(value_moments.share.clipped_estimate, 2))


def differing(
    dataset: Dataset, page_setting: ReleaseSetting | None, number: float, smooth: bool = False
) -> str:
    """Return a sentence with both numbers and why they differ; empty if *Mean* finds the same number.

    Args:
        dataset: The data in use.
        page_setting: The setting of the other page; None if it is about no mean.
        number: The bound on that page, in rows per user.
        smooth: True if that is the bound of smooth weights.
    """
    answer = None if page_setting is None else build_answer(dataset, page_setting.epsilon)
    if page_setting is None or answer is None or answer.setting is None:
        return ""
    if page_setting.statistic is not answer.setting.statistic:
        return ""
    mean_bound = answer.solution.smooth.threshold if smooth else answer.solution.cap.max_contributions
    if abs(mean_bound - number) <= 1e-6 * number:
        return ""
    why, mean_text = _why(page_setting, answer.setting), wording.number(mean_bound)
    if smooth and page_setting.user_share and not page_setting.list_differences(answer.setting):
        why = "its weights have a private constant beside the bound, and a draw has none"
    program = answer.parameters.program
    if program in SPLITS_MEANS or answer.setting.noise is not page_setting.noise:
        why = f"it goes by the {answer.setting.noise.value} noise of {program.value}"
    if answer.setting.uses_values and dataset.is_private:
        why = "it reads the private values. A private choice takes the worst case"
    return f"*Mean* finds {mean_text} for this release, this page {wording.number(number)}: {why}."


def _why(page_setting: ReleaseSetting, mean_setting: ReleaseSetting) -> str:
    differing = page_setting.list_differences(mean_setting)
    if "is_exact_for_values" in differing:
        return "it goes by the values of this table, here only σ² and ρ are known"
    if {"user_share", "is_table_mean"} & set(differing):
        share, page_share = (wording.number(s.user_share, 2) for s in (mean_setting, page_setting))
        if page_setting.user_share and mean_setting.user_share and not mean_setting.is_table_mean:
            return "it is about a population's mean, this page about this table's"
        return f"its share ρ of the variance between users is {share}, here it is {page_share}"
    if "variance_share" in differing:
        shares = (wording.number(s.variance_share or 0.0) for s in (mean_setting, page_setting))
        return "its σ² is {} of (U − L)², here it is {}".format(*shares)
    return "it goes by the mean of the values, here by the mean with the worst error"
