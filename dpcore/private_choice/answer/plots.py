"""The figures on choosing privately as data. Pure: solutions in, plots out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Column, Curve, Item, Level, Plot, Style, linear_axis
from dpcore.answer.axes import fit_limits
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.private_choice.answer.words import error_name
from dpcore.private_choice.choice import ChoiceRegret
from dpcore.private_choice.comparison import EPSILONS, SCALES, Copies, CostCurve, Leak, PrivateSolution
from dpcore.private_choice.parameters import NUMBER_NAMES, BoundPurpose

FLOOR, CEILING = 1e-5, 100.0
"""Costs below and above are shown at the edge of the axis."""
EARLIER = 0.4
"""Opacity of simulated curves of the settings before."""
DECADES = tuple((10.0**k, f"{10.0 ** (k + 2):,.{max(-k - 2, 0)}f}%") for k in range(-5, 3))
"""Ticks in per cent."""
DIRECT, COPY = "direct choice, exact", "private copy, simulated"


def plot_over_epsilon(solution: PrivateSolution) -> Plot:
    """Plot the cost of both ways over the budget of the choice."""
    curve, copies = solution.over_epsilon, solution.copies
    return _plot_costs(
        solution,
        "private-cost-epsilon",
        ("Cost over ε of the choice", "the larger the budget of the choice"),
        ("selection_epsilon", Axis("ε of the choice", "", (EPSILONS[0], EPSILONS[-1]))),
        (curve.epsilons, curve.median[0], curve.percentile_95[0]),
        copies.over_epsilon,
        (solution.parameters.selection_epsilon, "ε as chosen"),
        copies.earlier,
    )


def plot_over_users(solution: PrivateSolution, curve: ChoiceRegret, copies: Copies) -> Plot:
    """Plot the cost of both ways over the number of users, each of them taken so many times."""
    users = float(solution.data.histogram.num_users)
    return _plot_costs(
        solution,
        "private-cost-users",
        ("Cost over the number of users, each taken so many times", "the more users there are"),
        ("users", Axis("users", "", (SCALES[0] * users, SCALES[-1] * users), number_format=",.3~r")),
        (curve.scales * users, curve.median[:, 0], curve.percentile_95[:, 0]),
        tuple((times * users, cost) for times, cost in copies.over_users),
        (users, "These data"),
    )


def _plot_costs(
    solution: PrivateSolution,
    key: str,
    texts: tuple[str, str],
    axis_column: tuple[str, Axis],
    direct: tuple[FloatArray, FloatArray, FloatArray],
    copied: CostCurve,
    current: tuple[float, str],
    is_earlier: bool = False,
) -> Plot:
    """Plot the costs over a column with its axis; ``direct``: its places, median and 95th percentile."""
    (title, cheaper_with), (column_name, axis) = texts, axis_column
    exact = np.array(direct)
    rows = [(place, cost.median, cost.percentile_95) for place, cost in copied]
    simulated = np.array(rows).reshape(-1, 3).T
    places, medians, percentiles = costs = np.hstack((exact, simulated))
    columns: dict[str, npt.ArrayLike] = {
        "way": [DIRECT] * exact.shape[1] + [COPY] * simulated.shape[1],
        column_name: places,
        "median": medians,
        "percentile_95": percentiles,
    }
    items: list[Item] = []
    looks: dict[str, Any] = {"symbol": "circle", "opacity": EARLIER if is_earlier else 1.0}
    for name, curves, style, options in (
        ("Direct choice", exact, Style.CAP, {}),
        ("Private copy", simulated, Style.SMOOTH, looks),
    ):
        if curves.size:
            x, median, high = curves[0], _keep_visible(curves[1]), _keep_visible(curves[2])
            items.append(Curve(f"{name}, median", x, median, style, **options))
            dotted = {"dash": "dot", "width": 1.5, **options}
            items.append(Curve(f"{name}, 95th percentile", x, high, style, **dotted))
    if axis.contains(current[0]):
        items.append(Level(current[1], current[0], is_vertical=True, dash="longdash"))
    low, high_end = fit_limits(_keep_visible(costs[1:]).ravel())
    is_rank = solution.is_rank_error
    limits = max(low, FLOOR), min(high_end, 1.0 if is_rank else CEILING)
    cost_name = "rank error, share of users" if is_rank else f"extra {error_name(solution.parameters)}"
    return Plot(
        key,
        title,
        f"Choosing privately costs less {cheaper_with}: median and 95th percentile of the cost.",
        axis,
        Axis(cost_name, "", limits, number_format=".2%", named_ticks=DECADES),
        items,
        solution.data.provenance,
        columns,
        is_main=True,
    )


def _keep_visible(costs: npt.ArrayLike) -> FloatArray:
    """Return the costs that the axis can show; what is infinite is left out."""
    visible = np.asarray(costs, dtype=np.float64)
    return np.where(np.isfinite(visible), np.clip(visible, FLOOR, None), np.nan)


def plot_leak(effect: Leak, dataset: Dataset) -> Plot:
    """Return the number chosen in the clear, with one more user."""
    numbers, number = np.append(effect.with_user, effect.without), NUMBER_NAMES[effect.number]
    margin = 0.15 * float(np.ptp(numbers)) or 0.5
    limits = float(numbers.min()) - margin, float(numbers.max()) + margin
    added = Column("rows_of_added_user", effect.added)
    alt = f"The {number} chosen in the clear moves with the rows of one user more."
    name = "quantile" if effect.number is BoundPurpose.QUANTILE else "bound"
    rows = (1.0, max(float(effect.added[-1]), 2.0))
    return Plot(
        "private-leak",
        "The number with one more user",
        alt,
        Axis("rows of the user who is added", "", rows, number_format=","),
        linear_axis(name, limits, "rows per user", number_format=",.4g"),
        (
            Curve("Without that user", added, np.full(effect.added.size, effect.without), Style.ENTERED),
            Curve("With that user", added, Column("chosen_with", effect.with_user), Style.CAP),
        ),
        dataset.provenance,
    )
