"""The first trade-off: one object that its page reads, in words, numbers and plots."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.answer import plots
from dpcore.start.answer.found import CELLS, RowsOfUsers, Tradeoff, find
from dpcore.start.parameters import StartParameters

ASSUMED = (
    f"A table of {CELLS} counts, such as rows per month, is released at once with Laplace noise of scale bound/ε in "
    "each count; neighbours add or remove one user (Amin et al. 2019, section 3)"
)


def answered(data: Dataset, parameters: StartParameters, found: Tradeoff | None = None) -> Answer:
    """The best bound for a table of counts, and what the bound that is set does.

    Args:
        data: How many rows users have; invented users stand in for them where the question names some.
        parameters: The question; without a bound nothing is said or drawn of one.
        found: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``found`` is a `Tradeoff`. Plots are computed when they are asked for.

    Source: Amin et al. 2019, equation 5.
    """
    of, bound = find(data, parameters) if found is None else found, parameters.bound
    disclosure = presets.shown(data, parameters.users).provenance
    best, share = of.best.max_total, of.best.bound / of.num_rows
    useful = best > 0
    low, high = (wording.number(x) for x in of.within)
    rows = wording.counted(best, "row")
    return Answer(
        headline=f"Keep at most {rows} of each user."
        if useful
        else "With so few users and so small an ε, every bound gives more noise than count.",
        detail="" if bound is None else sentence(of, parameters.epsilon, bound),
        numbers=(
            Number("Sweet spot", rows, "per user", value=best, unit="rows per user", key="max_contributions"),
            Number("Error", wording.percent(share), "of all rows", value=share, unit="share of all rows"),
        )
        if useful
        else (),
        assumptions=(ASSUMED,),
        disclosure=disclosure,
        good_enough=f"any bound from {low} to {high} rows stays within 5{wording.PERCENT} of the best error."
        if useful and low != high
        else "",
        parameters=parameters,
        found=of,
        plots={
            "start-tradeoff": lambda: plots.tradeoff(of, bound, disclosure),
            "start-rows": lambda: plots.rows(of.rows, bound, disclosure),
        },
    )


def sentence(found: Tradeoff, epsilon: float, bound: int) -> str:
    """What the bound that is set does."""
    here, rows = found.at(bound), found.num_rows
    return (
        f"With **{wording.counted(bound, 'row')} per user** and ε = {wording.entered(epsilon)}, "
        f"{wording.percent(float(here.bias) / rows)} of all rows are thrown away and noise adds up to "
        f"{wording.percent(float(here.noise) / rows)}: at most **{wording.percent(float(here.bound) / rows)} error**."
    )


def dots_said(rows: RowsOfUsers) -> str:
    """What a dot stands for."""
    if rows.rows_per_dot == 1:
        return "Each dot is a row."
    return f"Each dot stands for up to {wording.number(rows.rows_per_dot)} rows."
