"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Quantity
from dpcore.code.forms import CodeChoice, Form, build_forms, cap_form, fields_of_data, smooth_form
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind
from dpcore.quantile.answer.found import QuantileFound
from dpcore.quantile.parameters import Weighting


def of_quantile(solution: QuantileFound, dataset: Dataset) -> CodeChoice | None:
    """List the bound in use, the best bound of the other kind, and the entered bound."""
    p = solution.parameters
    low, high = _ends(solution)
    base = fields_of_data(dataset) | {
        "lower": low,
        "upper": high,
        "quantiles": p.asked,
        "neighbours": p.neighbours,
    }
    alternative = WeightKind.CAP if solution.kind is WeightKind.SMOOTH else WeightKind.SMOOTH
    none = p.weighting is Weighting.NONE
    bounds: list[tuple[WeightKind, float, dict[str, Any]]] = [
        (solution.kind, solution.choices.of(solution.kind).bound if none else solution.bound, {}),
        (alternative, solution.choices.of(alternative).bound, {}),
    ]
    if p.own_bound is not None:
        bounds.append((solution.kind, p.own_bound, {"disclosure": Disclosure.PUBLIC}))
    programs: list[Form] = []
    for weighting, bound, whose in bounds:
        if weighting is WeightKind.CAP:
            programs.append((cap_form(bound), Quantity.QUANTILE, {"max_rows": bound, **whose}))
        else:
            programs.append((smooth_form(bound), Quantity.QUANTILE, {"threshold": bound, **whose}))
    return build_forms(p.epsilon, base, programs)


def _ends(solution: QuantileFound) -> tuple[float, float]:
    """Return the range of the answer: the ends of the base, or four standard deviations around a normal base."""
    breaks, spread = solution.problem.base.breaks, 4.0 * (solution.parameters.spread or 0.0)
    return float(breaks[0]) - spread, float(breaks[-1]) + spread
