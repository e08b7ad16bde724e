"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, forms, of_data
from dpcore.common.privacy import Neighbours
from dpcore.regression.answer.found import RegressionFound


def of_regression(found: RegressionFound) -> CodeChoice | None:
    """Return the best weights; only plain Python has them."""
    base = of_data(found.data) | {
        **ROWS_OF_THE_FILE,
        "lower": found.parameters.lower,
        "upper": found.parameters.upper,
        "value_column": found.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": found.ours.largest_user_weight,
        "coefficients": found.problem.num_features,
    }
    return forms(found.problem.epsilon, base, [("Weights", Released.COEFFICIENTS, {})])
