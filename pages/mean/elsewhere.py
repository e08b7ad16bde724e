"""*Mean* for other pages: what it asks as its fields stand, and what it finds where that is another number."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer, ReleaseSetting
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS
from dpcore.common.wording import format_number
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, VarianceSource
from dpcore.mean import answer as core
from dpcore.mean.answer.answer import solve_beside_page
from pages.mean.question import QUESTION
from pages.shared.fields import fields, searches, setting


def read_parameters(epsilon: float = 1.0) -> MeanParameters | None:
    """Build the parameters of *Mean* at ``epsilon`` from its fields; None if L or U is empty, or they are refused."""
    fields.initialise_fields(QUESTION, uses_shared_data=False)
    state = st.session_state
    variance_source = state[QUESTION.get_key("variance_source")]
    variance = (
        state[QUESTION.get_key("value_variance")] if variance_source is VarianceSource.ENTERED else None
    )
    lower, upper = setting.read_value(QUESTION, "lower"), setting.read_value(QUESTION, "upper")
    if lower is None or upper is None:
        return None
    try:
        field_names = ("counts", "target", "likeness", "user_share", "mechanism", "program")
        mean_settings = {field_name: state[QUESTION.get_key(field_name)] for field_name in field_names}
        if mean_settings["mechanism"] is NoiseKind.GAUSSIAN:
            mean_settings["delta"] = state[QUESTION.get_key("delta")]
        return MeanParameters(
            epsilon,
            lower,
            upper,
            variance_source=variance_source,
            value_variance=variance,
            **mean_settings,
        )
    except InvalidInput:
        return None


def build_answer(dataset: Dataset, epsilon: float = 1.0) -> Answer | None:
    """Compute the answer of *Mean* on these data; None if L or U is empty, or its fields are refused."""
    mean_parameters = read_parameters(epsilon)
    if mean_parameters is None:
        return None
    solver = solve_beside_page(dataset, mean_parameters)
    search_result, _ = searches.run_solver(solver, QUESTION, dataset, is_shared=False)
    return core.build_answer(dataset, mean_parameters, search_result.value)


def explain_difference(dataset: Dataset, page_setting: ReleaseSetting | None, page_bound: float) -> str:
    """Write a sentence with the bounds of *Mean* and of another page, and why they differ.

    It is empty if the bounds agree, if the pages release different statistics, or if *Mean* has no answer.

    Args:
        dataset: The data in use.
        page_setting: The setting of the other page; None if it is about no mean, and then nothing is written.
        page_bound: The bound on that page, in rows per user.
    """
    answer = None if page_setting is None else build_answer(dataset, page_setting.epsilon)
    if page_setting is None or answer is None or answer.setting is None:
        return ""
    if page_setting.statistic is not answer.setting.statistic:
        return ""
    mean_bound = answer.solution.cap_choice.max_contributions
    if abs(mean_bound - page_bound) <= 1e-6 * page_bound:
        return ""
    reason_clause, bound_text = _write_reason(page_setting, answer.setting), format_number(mean_bound)
    program = answer.parameters.program
    if program in MEAN_SPLITTING_PROGRAMS or answer.setting.noise is not page_setting.noise:
        reason_clause = f"it goes by the {answer.setting.noise.value} noise of {program.value}"
    if answer.setting.uses_values and dataset.is_private:
        reason_clause = "it reads the private values"
    return (
        f"*Mean* finds {bound_text} for this release, this page {format_number(page_bound)}: {reason_clause}."
    )


def _write_reason(page_setting: ReleaseSetting, mean_setting: ReleaseSetting) -> str:
    """Return the clause that says why *Mean* finds another bound: the first setting in which the two pages differ."""
    differing_names = page_setting.list_differences(mean_setting)
    if "is_best_on_values" in differing_names:
        return "it goes by the values of this table, here only σ² and ρ are known"
    if {"user_share", "targets_table_mean"} & set(differing_names):
        share_texts = (format_number(s.user_share, 2) for s in (mean_setting, page_setting))
        if page_setting.user_share and mean_setting.user_share and not mean_setting.targets_table_mean:
            return "it is about a population's mean, this page about this table's"
        return "it assumes that a user's rows are alike (ρ = {}), this page has ρ = {}".format(*share_texts)
    if "variance_share" in differing_names:
        variance_texts = (format_number(s.variance_share or 0.0) for s in (mean_setting, page_setting))
        return "its σ² is {} of (U − L)², here it is {}".format(*variance_texts)
    return "it goes by the mean of the values, here by the mean with the worst error"
