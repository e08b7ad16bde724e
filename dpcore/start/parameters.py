"""The settings of the page *Home*."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.parameters import LINE, Parameters, of_data, public
from dpcore.contributions import MAX_SIZE
from dpcore.start.presets import UserPreset


@dataclass(frozen=True)
class StartParameters(Parameters):
    """The settings of the picture of the trade-off."""

    bound: int | None = of_data.number(
        None, "Your own bound", (1, MAX_SIZE), name="your own bound", renewed=True, placeholder="rows", width=150,
        place=LINE,
    )  # fmt: skip
    """Rows per user. Drag the ring in the figure, or enter a number."""
    users: UserPreset = public.choice(UserPreset.IN_USE, "Users", as_list=True, width=150, place=LINE)
    """The data in use, or invented users that show one thing clearly."""
