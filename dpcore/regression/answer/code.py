"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common.privacy import Neighbours
from dpcore.regression.answer.found import RegressionSolution


def write_forms(solution: RegressionSolution) -> CodeChoice | None:
    """Describe the best weights for programs; only plain Python has them."""
    base = fields_of_data(solution.data) | {
        **ROWS_OF_THE_FILE,
        "lower": solution.parameters.lower,
        "upper": solution.parameters.upper,
        "value_column": solution.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": solution.best_estimate.largest_user_weight,
        "coefficients": solution.problem.num_features,
    }
    return build_forms(solution.problem.epsilon, base, [("Weights", Quantity.COEFFICIENTS, {})])
