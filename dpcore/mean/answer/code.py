"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore import mean
from dpcore.code import Released
from dpcore.code.forms import CodeChoice, Form, Forms, cap_form, forms, of_data, smooth_form
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from dpcore.mean.answer.found import MeanFound
from dpcore.mean.answer.words import MEAN_OVER_USERS


def of_mean(found: MeanFound, dataset: Dataset, parameters: MeanParameters) -> Forms:
    """The best cap and the best smooth weights for a mean, and the mean over users: weights with a bound of one row."""
    relation = Neighbours.ADD_OR_REMOVE_USER if found.private_counts else Neighbours.REPLACE_VALUES
    grows = mean.growth(found.problem, found.smooth.threshold)
    made = mean_forms(
        found.cap.max_contributions,
        found.smooth.threshold,
        relation,
        dataset,
        parameters,
        grows,
        # A user weighs min(1, s) = 1 then, and each of their rows 1 / s.
        [(MEAN_OVER_USERS, Released.MEAN, {"threshold": 1.0})],
    )
    assert made is not None  # The range is not empty, and no bound is below one row.
    return made.forms


def mean_forms(
    cap: int,
    smooth: float,
    relation: Neighbours,
    dataset: Dataset,
    parameters: MeanParameters,
    grows: mean.Growth | None = None,
    more: Sequence[Form] = (),
) -> CodeChoice | None:
    """A cap and smooth weights for a mean, as programs; users weigh as many rows as they have unless it is given."""
    of_rows, of_users = (1.0, 0.0) if grows is None else grows.coefficients(smooth)
    weights = {
        "threshold": smooth,
        "weight_of_rows": of_rows,
        "weight_of_users": of_users,
        "user_share": 0.0 if grows is None else grows.user_share,
    }
    base = of_data(dataset) | {"lower": parameters.lower, "upper": parameters.upper, "neighbours": relation}
    return forms(
        parameters.epsilon,
        base,
        [
            (cap_form(cap), Released.MEAN, {"max_rows": cap}),
            (smooth_form(smooth), Released.MEAN, weights),
            *more,
        ],
    )
