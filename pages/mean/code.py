"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from pages.mean.answer import MeanView
from pages.shared.code_choices import cap_form, forms, of_data, smooth_form
from pages.shared.code_panel import CodeChoice


def of_mean(view: MeanView, dataset: Dataset, parameters: MeanParameters) -> CodeChoice | None:
    """The best cap and the best smooth weights for a mean."""
    relation = Neighbours.ADD_OR_REMOVE_USER if view.private_counts else Neighbours.REPLACE_VALUES
    return mean_forms(view.cap.max_contributions, view.smooth.threshold, relation, dataset, parameters)


def mean_forms(
    cap: int, smooth: float, relation: Neighbours, dataset: Dataset, parameters: MeanParameters
) -> CodeChoice | None:
    base = of_data(dataset) | {"lower": parameters.lower, "upper": parameters.upper, "neighbours": relation}
    return forms(
        parameters.epsilon,
        base,
        [
            (cap_form(cap), Released.MEAN, {"max_rows": cap}),
            (smooth_form(smooth), Released.MEAN, {"threshold": smooth}),
        ],
    )
