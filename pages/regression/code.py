"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, forms, of_data
from dpcore.common.privacy import Neighbours
from pages.regression.answer import RegressionView


def of_regression(view: RegressionView) -> CodeChoice | None:
    """The best weights; only plain Python has them."""
    base = of_data(view.loaded.dataset) | {
        **ROWS_OF_THE_FILE,
        "lower": view.parameters.lower,
        "upper": view.parameters.upper,
        "value_column": view.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": view.ours.largest_user_weight,
        "coefficients": view.problem.num_features,
    }
    return forms(view.problem.epsilon, base, [("Weights", Released.COEFFICIENTS, {})])
