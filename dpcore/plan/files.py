"""A plan as JSON that a person takes away."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcore.common.certificate import Certificate
from dpcore.common.documents import choice_document, finite, proof
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.plan.drawn import DrawnLine, weighted_sum
from dpcore.plan.parameters import PlanParameters


def choice_json(
    data: Dataset,
    parameters: PlanParameters,
    epsilon: float,
    lines: Sequence[DrawnLine],
    needed: Sequence[float],
    certificate: Certificate | None,
    assumptions: Sequence[str],
) -> str:
    """The plan, indented, with a schema version.

    Args:
        data: The data; their label stands at every number computed from them.
        parameters: What the person chose.
        epsilon: Of the whole plan.
        lines: At their shares.
        needed: What each needs for its wanted error of what adds up.
        certificate: Of the weighted sum of squares; None where nothing is proved.
        assumptions: Sentences.
    """
    answer = {
        "epsilon": epsilon,
        "weighted_sum_of_squares": weighted_sum(lines),
        "lines": [
            {
                "release": line.planned.line.what,
                "parts_of_2_20": line.parts,
                "budget": line.amount,
                "noise_scale_at_sensitivity_1": finite(math.sqrt(line.v)),
                "bound": line.bound,
                "second_bound": finite(line.second),
                "error": line.error,
                "unit": line.planned.unit,
                "wanted_error": line.planned.wanted,
                "budget_for_wanted_error": finite(needs),
            }
            for line, needs in zip(lines, needed, strict=True)
        ],
        **proof(certificate),
    }
    return choice_document(data, "several numbers", to_values(parameters), {}, answer, assumptions)
