"""The figures on choosing privately as data. Pure: what was found in, plots out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Column, Curve, Item, Level, Plot, Style, linear_axis
from dpcore.answer.axes import fit_limits
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer.found import Copied, Copies, Leak, PrivateFound
from dpcore.private_choice.answer.words import NUMBER_NAMES, error_name
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.comparison import EPSILONS, SCALES
from dpcore.private_choice.parameters import Wanted

SHORT_NAMES = {Wanted.SMOOTH: "bound", Wanted.CAP: "bound", Wanted.SUM: "bound", Wanted.QUANTILE: "quantile"}
"""For the axis of the number chosen."""
FLOOR, CEILING = 1e-5, 100.0
"""Costs below and above are shown at the edge of the axis."""
EARLIER = 0.4
"""Opacity of simulated curves of the settings before."""
DIRECT, COPY = "direct choice, exact", "private copy, simulated"


def over_epsilon(solution: PrivateFound) -> Plot:
    """Return what either way costs over the budget of the choice."""
    curve, copies = solution.over_epsilon, solution.copies
    return _costs(
        solution,
        "private-cost-epsilon",
        "Cost over ε of the choice",
        "the larger the budget of the choice",
        ("epsilon_choice", Axis("ε of the choice", "", (EPSILONS[0], EPSILONS[-1]))),
        (curve.epsilons, curve.median[0], curve.percentile_95[0]),
        copies.over_epsilon,
        (solution.parameters.epsilon_choice, "ε as chosen"),
        copies.earlier,
    )


def over_users(solution: PrivateFound, curve: ChoiceRegret, copies: Copies) -> Plot:
    """Return what either way costs over the number of users, each of them taken so many times."""
    users = float(solution.num_users)
    return _costs(
        solution,
        "private-cost-users",
        "Cost over the number of users, each taken so many times",
        "the more users there are",
        ("users", Axis("users", "", (SCALES[0] * users, SCALES[-1] * users), number_format=",.3~r")),
        (curve.scales * users, curve.median[:, 0], curve.percentile_95[:, 0]),
        tuple((times * users, cost) for times, cost in copies.over_users),
        (users, "These data"),
    )


def _costs(
    solution: PrivateFound,
    key: str,
    title: str,
    varied: str,
    across: tuple[str, Axis],
    direct: tuple[FloatArray, FloatArray, FloatArray],
    copied: Copied,
    current: tuple[float, str],
    earlier: bool = False,
) -> Plot:
    """Return the costs over a column with its axis; ``direct``: its places, median and 95th percentile."""
    x, median, high = direct
    name, axis = across
    copy_x = [position for position, _ in copied]
    copy_median = [cost.median for _, cost in copied]
    copy_high = [cost.percentile_95 for _, cost in copied]
    columns: dict[str, npt.ArrayLike] = {
        "way": [DIRECT] * len(x) + [COPY] * len(copied),
        name: [*x, *copy_x],
        "median": [*median, *copy_median],
        "percentile_95": [*high, *copy_high],
    }
    items: list[Item] = []
    simulated: dict[str, Any] = {"symbol": "circle", "opacity": EARLIER if earlier else 1.0}
    for way, places, costs, percentiles, style, options in (
        ("Direct choice", x, median, high, Style.CAP, {}),
        ("Private copy", copy_x, copy_median, copy_high, Style.SMOOTH, simulated),
    ):
        if len(places):
            items.append(Curve(f"{way}, median", places, _visible(costs), style, **options))
            dotted = {"dash": "dot", "width": 1.5, **options}
            items.append(Curve(f"{way}, 95th percentile", places, _visible(percentiles), style, **dotted))
    if axis.contains(current[0]):
        items.append(Level(current[1], current[0], is_vertical=True, dash="longdash"))
    fitted = fit_limits(_visible([*median, *copy_median, *high, *copy_high]))
    ends = max(fitted[0], FLOOR), min(fitted[1], 1.0 if solution.ranks else CEILING)
    cost_name = "rank error, share of users" if solution.ranks else f"extra {error_name(solution.parameters)}"
    decades = range(math.ceil(math.log10(ends[0])), math.floor(math.log10(ends[1])) + 1)
    return Plot(
        key,
        title,
        f"Choosing privately costs less {varied}: median and 95th percentile of the cost, exact for the direct choice "
        f"and simulated for a private copy, {comparison.RUNS} copies at each point.",
        axis,
        Axis(
            cost_name,
            "",
            ends,
            number_format=".2%",
            named_ticks=tuple((10.0**k, _percent(k)) for k in decades),
        ),
        items,
        solution.data.provenance,
        columns,
        is_main=True,
    )


def _percent(decade: int) -> str:
    """Return a power of ten in per cent: ``0.1%``."""
    return f"{10.0 ** (decade + 2):,.{max(-decade - 2, 0)}f}%"


def _visible(costs: npt.ArrayLike) -> FloatArray:
    """Costs that the axis can show; what is infinite is left out."""
    visible = np.asarray(costs, dtype=np.float64)
    return np.where(np.isfinite(visible), np.clip(visible, FLOOR, None), np.nan)


def leak(effect: Leak, data: Dataset) -> Plot:
    """Return the number chosen in the clear, with one more user."""
    low, high = (float(f(np.append(effect.moved, effect.without))) for f in (np.min, np.max))
    margin = 0.15 * (high - low) or 0.5
    limits, most_added = (low - margin, high + margin), max(float(effect.added[-1]), 2.0)
    added = Column("rows_of_added_user", effect.added)
    number = NUMBER_NAMES[effect.shown]
    alt = (
        f"The {number} chosen in the clear moves when one user is added, and by how much depends on how many rows that "
        "user has: whoever sees the number learns of them."
    )
    if data.release is not None:
        alt = (
            f"Were the release the data themselves, one user more would move the {number}, and by how much depends on "
            "how many rows that user has."
        )
    return Plot(
        "private-leak",
        "The number with one more user",
        alt,
        Axis("rows of the user who is added", "", (1.0, most_added), number_format=","),
        linear_axis(SHORT_NAMES[effect.shown], limits, "rows per user", number_format=",.4g"),
        (
            Curve("Without that user", added, np.full(effect.added.size, effect.without), Style.ENTERED),
            Curve("With that user", added, Column("chosen_with", effect.moved), Style.CAP),
        ),
        data.provenance,
    )
