"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Released
from dpcore.code.forms import CodeChoice, Form, cap_form, forms, of_data, smooth_form
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind
from dpcore.quantile.parameters import Weighting
from pages.quantile.answer import QuantileView


def of_quantile(view: QuantileView, dataset: Dataset) -> CodeChoice | None:
    """The bound in use first, then the best of the other kind, then the person's own."""
    p = view.parameters
    low, high = _ends(view)
    base = of_data(dataset) | {
        "lower": low,
        "upper": high,
        "quantiles": p.asked,
        "neighbours": Neighbours.REPLACE_VALUES,
    }
    other = WeightKind.CAP if view.kind is WeightKind.SMOOTH else WeightKind.SMOOTH
    none = p.weighting is Weighting.NONE
    bounds: list[tuple[WeightKind, float, dict[str, Any]]] = [
        (view.kind, view.choices.of(view.kind).bound if none else view.bound, {}),
        (other, view.choices.of(other).bound, {}),
    ]
    if p.own_bound is not None:
        bounds.append((view.kind, p.own_bound, {"disclosure": Disclosure.PUBLIC}))
    found: list[Form] = []
    for kind, bound, whose in bounds:
        if kind is WeightKind.CAP:
            found.append((cap_form(bound), Released.QUANTILE, {"max_rows": bound, **whose}))
        else:
            found.append((smooth_form(bound), Released.QUANTILE, {"threshold": bound, **whose}))
    return forms(p.epsilon, base, found)


def _ends(view: QuantileView) -> tuple[float, float]:
    """Between which values the answer is looked for: the base's ends, or where a normal base has all its mass."""
    breaks, spread = view.problem.base.breaks, 4.0 * (view.parameters.spread or 0.0)
    return float(breaks[0]) - spread, float(breaks[-1]) + spread
