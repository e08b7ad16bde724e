"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common.privacy import Neighbours
from dpcore.regression.answer.found import RegressionFound


def of_regression(found: RegressionFound) -> CodeChoice | None:
    """Return the best weights; only plain Python has them."""
    base = fields_of_data(found.data) | {
        **ROWS_OF_THE_FILE,
        "lower": found.parameters.lower,
        "upper": found.parameters.upper,
        "value_column": found.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": found.ours.largest_user_weight,
        "coefficients": found.problem.num_features,
    }
    return build_forms(found.problem.epsilon, base, [("Weights", Quantity.COEFFICIENTS, {})])
