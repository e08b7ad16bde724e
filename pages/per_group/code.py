"""The chosen bounds with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.dataset import Dataset
from dpcore.per_group import Statistic
from pages.per_group.answer import PerGroupView
from pages.shared.code_choices import ROWS_OF_THE_FILE, forms, of_data
from pages.shared.code_panel import CodeChoice


def of_view(view: PerGroupView, data: Dataset) -> CodeChoice | None:
    """The best pair."""
    asked = view.parameters
    base = of_data(data) | {"noise": asked.noise, "delta": asked.delta} | ROWS_OF_THE_FILE
    if view.pair is None or asked.statistic is not Statistic.USERS:
        return None
    return forms(asked.epsilon, base, [("Pair", Released.GROUP_COUNTS, {"max_groups": view.pair.max_groups})])
