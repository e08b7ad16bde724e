"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Released
from dpcore.code.forms import CodeChoice, Form, cap_form, forms, of_data, smooth_form
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind
from dpcore.quantile.answer.found import QuantileFound
from dpcore.quantile.parameters import Weighting


def of_quantile(found: QuantileFound, dataset: Dataset) -> CodeChoice | None:
    """The bound in use first, then the best of the other kind, then the person's own."""
    p = found.parameters
    low, high = _ends(found)
    base = of_data(dataset) | {"lower": low, "upper": high, "quantiles": p.asked, "neighbours": p.neighbours}
    other = WeightKind.CAP if found.kind is WeightKind.SMOOTH else WeightKind.SMOOTH
    none = p.weighting is Weighting.NONE
    bounds: list[tuple[WeightKind, float, dict[str, Any]]] = [
        (found.kind, found.choices.of(found.kind).bound if none else found.bound, {}),
        (other, found.choices.of(other).bound, {}),
    ]
    if p.own_bound is not None:
        bounds.append((found.kind, p.own_bound, {"disclosure": Disclosure.PUBLIC}))
    programs: list[Form] = []
    for kind, bound, whose in bounds:
        if kind is WeightKind.CAP:
            programs.append((cap_form(bound), Released.QUANTILE, {"max_rows": bound, **whose}))
        else:
            programs.append((smooth_form(bound), Released.QUANTILE, {"threshold": bound, **whose}))
    return forms(p.epsilon, base, programs)


def _ends(found: QuantileFound) -> tuple[float, float]:
    """Between which values the answer is looked for: the base's ends, or where a normal base has all its mass."""
    breaks, spread = found.problem.base.breaks, 4.0 * (found.parameters.spread or 0.0)
    return float(breaks[0]) - spread, float(breaks[-1]) + spread
