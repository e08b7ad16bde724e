"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.code.forms import CodeChoice, cap_form, forms, of_data, smooth_form
from dpcore.dataset import Dataset
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import Wanted


def of_private(
    drawn: PrivateChoice,
    wanted: Wanted,
    epsilon: float,
    dataset: Dataset,
    lower: float | None,
    upper: float | None,
) -> CodeChoice | None:
    """A number that was chosen privately; None for a quantile of sizes, which bounds no release of its own.

    Args:
        drawn: The number with its label.
        wanted: What it is for.
        epsilon: Of the release that will use it.
        dataset: Gives the names of file and columns.
        lower: Lowest value of a mean, as entered; None only where no mean is released.
        upper: Highest value of a mean, likewise.
    """
    base = of_data(dataset) | {
        "disclosure": drawn.facts,
        "neighbours": drawn.facts.neighbours,
    }
    if wanted is Wanted.SMOOTH:
        fields = {"threshold": drawn.value, "lower": lower, "upper": upper}
        return forms(epsilon, base, [(smooth_form(drawn.value), Released.MEAN, fields)])
    rows = {"max_rows": int(drawn.value)}
    if wanted is Wanted.CAP:
        form = (cap_form(drawn.value), Released.MEAN, {**rows, "lower": lower, "upper": upper})
        return forms(epsilon, base, [form])
    return (
        forms(epsilon, base, [(cap_form(drawn.value), Released.COUNT, rows)])
        if wanted is Wanted.SUM
        else None
    )
