"""Programs for the chosen bound, with the column names of the data, for *Code for your library*."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore import mean
from dpcore.code import Quantity
from dpcore.code.forms import CodeChoice, Form, Forms, build_forms, cap_form, fields_of_data, smooth_form
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from dpcore.mean.answer.found import MeanSolution
from dpcore.mean.answer.words import MEAN_OVER_USERS


def write_mean_forms(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> Forms:
    """Write programs for the best cap, the best smooth weights, and the mean over users (a bound of 1 row)."""
    relation = Neighbours.ADD_OR_REMOVE_USER if solution.has_private_counts else Neighbours.REPLACE_VALUES
    growth = mean.growth(solution.problem, solution.smooth.threshold)
    choice = mean_forms(
        solution.cap.max_contributions,
        solution.smooth.threshold,
        relation,
        dataset,
        parameters,
        growth,
        # A user weighs min(1, s) = 1 then, and each of their rows 1 / s.
        [(MEAN_OVER_USERS, Quantity.MEAN, {"threshold": 1.0})],
    )
    assert choice is not None  # The range is not empty, and every bound is at least one row.
    return choice.forms


def mean_forms(
    cap: int,
    smooth: float,
    relation: Neighbours,
    dataset: Dataset,
    parameters: MeanParameters,
    growth: mean.Growth | None = None,
    further_forms: Sequence[Form] = (),
) -> CodeChoice | None:
    """Write programs for a cap and for smooth weights, or return None if none can be written.

    Without a growth, a user's weight grows with the number of their rows.
    """
    row_weight, user_weight = (1.0, 0.0) if growth is None else growth.coefficients(smooth)
    weights = {
        "threshold": smooth,
        "weight_of_rows": row_weight,
        "weight_of_users": user_weight,
        "user_share": 0.0 if growth is None else growth.user_share,
    }
    base = fields_of_data(dataset) | {
        "lower": parameters.lower,
        "upper": parameters.upper,
        "neighbours": relation,
    }
    return build_forms(
        parameters.epsilon,
        base,
        [
            (cap_form(cap), Quantity.MEAN, {"max_rows": cap}),
            (smooth_form(smooth), Quantity.MEAN, weights),
            *further_forms,
        ],
    )
