"""The choice of a bound for a sum or a count, as JSON that a person takes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcore.common import noise_error
from dpcore.common.documents import certificate_fields, write_choice_document
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.total import nonnegative
from dpcore.total.nonnegative import TotalChoice, TotalProblem
from dpcore.total.parameters import ASSUMPTIONS, SIGNED_ASSUMPTIONS, Summed, TotalParameters, UserTotals
from dpcore.total.signed import ClippedSum

SOURCE = "Amin et al. 2019, Bounding User Contributions: A Bias-Variance Trade-off in DP, section 3"
_SHARED = ("epsilon", "mechanism", "delta")
_OF_SUM = (*_SHARED, "summed", "measure", "own_bound")


def total_choice_json(
    dataset: Dataset,
    parameters: TotalParameters,
    problem: TotalProblem,
    choice: TotalChoice,
    within: tuple[float, float],
    column: str,
) -> str:
    """Return the best bound on one user's total, as JSON, indented, with a schema version.

    Args:
        dataset: The data; their label stands at every number computed from them.
        parameters: What the person chose.
        problem: The question.
        choice: Its answer.
        within: Smallest and largest bound within 5 % of the best error.
        column: The column that was added up; empty for rows.
    """
    answer = {
        "max_contributions" if problem.is_integer else "max_total": (
            int(choice.max_total) if problem.is_integer else choice.max_total
        ),
        # What card and code say; every other number here is about the exact one.
        **(
            {}
            if problem.is_integer
            else {"max_total_rounded": nonnegative.short_bound(problem, choice.max_total)}
        ),
        "noise_scale": problem.unit_noise * choice.max_total,
        "bias": choice.bias,
        "mean_noise": choice.noise,
        "expected_absolute_error": choice.absolute_error,
        "root_mean_squared_error": choice.rmse,
        "bound_on_absolute_error": choice.bound,
        "error_of_publishing_zero": choice.error_of_nothing,
        "users_affected": choice.users_affected,
        "within_5_percent": list(within),
        "ended": choice.stop_reason,
        **certificate_fields(choice.certificate),
    }
    release = "count of rows" if parameters.summed is Summed.ROWS else "sum"
    question = {name: text for name, text in to_values(parameters).items() if name in _OF_SUM}
    return _document(dataset, release, question, column, answer, ASSUMPTIONS)


def signed_choice_json(
    dataset: Dataset, parameters: TotalParameters, held: UserTotals, clipped: ClippedSum, entered: bool
) -> str:
    """Return a range [L, U] for totals of both signs, as JSON.

    Args:
        dataset: The data.
        parameters: What the person chose.
        held: The totals.
        clipped: What the range costs.
        entered: Whether the person entered L and U; else they were read off the data.
    """
    unit = noise_error.compute_unit_scale(parameters.mechanism, parameters.epsilon, parameters.delta)
    answer = {
        "lower": clipped.low,
        "upper": clipped.high,
        "range_comes_from": "entered" if entered else "the data",
        "noise_scale": unit * clipped.sensitivity,
        "bias": clipped.bias,
        "mean_noise": clipped.noise,
        "expected_absolute_error": clipped.absolute_error,
        "root_mean_squared_error": clipped.rmse,
        "users_below_lower": clipped.users_below,
        "users_above_upper": clipped.users_above,
    }
    wanted = (*_SHARED, "summed", "lower", "upper")
    question = {name: text for name, text in to_values(parameters).items() if name in wanted}
    return _document(
        dataset, "sum of totals of both signs", question, held.column, answer, SIGNED_ASSUMPTIONS
    )


def _document(
    dataset: Dataset,
    release: str,
    question: dict[str, Any],
    column: str,
    answer: dict[str, Any],
    assumptions: Sequence[str],
) -> str:
    asked = {**question, "neighbours": nonnegative.NEIGHBOURS.value, "source": SOURCE}
    return write_choice_document(dataset, release, asked, {"column": column}, answer, assumptions)
