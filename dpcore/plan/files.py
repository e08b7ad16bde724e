"""A plan as a JSON file."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcore.common.certificate import Certificate
from dpcore.common.documents import certificate_fields, finite_or_none, write_choice_document
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.plan.drawn import AllocatedLine, sum_weighted_squares
from dpcore.plan.parameters import PlanParameters


def write_choice(
    dataset: Dataset,
    parameters: PlanParameters,
    epsilon: float,
    lines: Sequence[AllocatedLine],
    needed_amounts: Sequence[float],
    certificate: Certificate | None,
    assumptions: Sequence[str],
) -> str:
    """Write the plan as JSON, indented, with a schema version.

    Args:
        dataset: The data; their label stands at every number computed from them.
        parameters: What the person chose.
        epsilon: Of the whole plan.
        lines: At their shares.
        needed_amounts: What each needs for its wanted error of what adds up.
        certificate: Of the weighted sum of squares; None where nothing is proved.
        assumptions: Sentences.
    """
    answer = {
        "epsilon": epsilon,
        "weighted_sum_of_squares": sum_weighted_squares(lines),
        "lines": [
            {
                "release": line.planned.line.label,
                "parts_of_2_20": line.num_parts,
                "budget": line.amount,
                "noise_scale_at_sensitivity_1": finite_or_none(math.sqrt(line.v)),
                "bound": line.bound,
                "second_bound": finite_or_none(line.second_bound),
                "error": line.error,
                "unit": line.planned.unit,
                "wanted_error": line.planned.target_error,
                "budget_for_wanted_error": finite_or_none(needed_amount),
            }
            for line, needed_amount in zip(lines, needed_amounts, strict=True)
        ],
        **certificate_fields(certificate),
    }
    return write_choice_document(dataset, "several numbers", to_values(parameters), {}, answer, assumptions)
