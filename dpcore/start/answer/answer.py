"""The first trade-off: one object that its page reads, in words, numbers and plots."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.answer.parts import BIAS, NOISE, said
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.answer import plots
from dpcore.start.answer.found import CELLS, Tradeoff, find
from dpcore.start.parameters import StartParameters

ASSUMED = (
    f"A table of {CELLS} counts, such as rows per month, is released at once with Laplace noise of scale bound/ε in "
    "each, and every count is taken to lose the same share of its rows; neighbours add or remove one user (Amin et al. "
    "2019, section 3)"
)


def build_answer(data: Dataset, parameters: StartParameters, found: Tradeoff | None = None) -> Answer:
    """The best bound for a table of counts, and what the bound that is set does.

    Args:
        data: How many rows users have; invented users stand in for them where the question names some.
        parameters: The question; without a bound nothing is said or drawn of one.
        found: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``found`` is a `Tradeoff`. Plots are computed when they are asked for.

    Source: Amin et al. 2019, section 3; the exact error as in `dpcore.total.errors`.
    """
    of, bound = find(data, parameters) if found is None else found, parameters.bound
    disclosure = presets.shown(data, parameters.users).provenance
    best, share = of.best.max_total, of.best.absolute_error / of.num_rows
    useful = best > 0
    low, high = (wording.number(x) for x in of.within)
    rows = wording.counted(best, "row")
    return Answer(
        headline=f"Keep at most {rows} of each user."
        if useful
        else "With so few users and so small an ε, every bound gives more noise than count.",
        detail=" ".join(
            filter(
                None,
                (released(parameters.epsilon), one_count(of), "" if bound is None else sentence(of, bound)),
            )
        ),
        numbers=(
            Number("Sweet spot", rows, "per user", value=best, unit="rows per user", key="max_contributions"),
            Number("Error", wording.percent(share), "of a count", value=share, unit="share of a count"),
        )
        if useful
        else (),
        assumptions=(ASSUMED,),
        disclosure=disclosure,
        good_enough=f"{low} to {high} rows, within 5{wording.PERCENT}." if useful and low != high else "",
        parameters=parameters,
        found=of,
        plots={"start-tradeoff": lambda: plots.tradeoff(of, bound, disclosure)},
        parts=said({BIAS: of.best.bias / of.num_rows, NOISE: of.best.noise / of.num_rows}, wording.percent)
        if useful
        else (),
    )


def released(epsilon: float) -> str:
    """What is released in the picture."""
    entered = wording.entered(epsilon)
    return f"**Released** with ε = {entered}: {CELLS} counts."


def one_count(found: Tradeoff) -> str:
    """The best bound where one count is all that is released; nothing where it is the same."""
    if found.alone in (0.0, found.best.max_total):
        return ""
    return f"A single count is best at {wording.counted(found.alone, 'row')}."


def sentence(found: Tradeoff, bound: int) -> str:
    """What the bound that is set does."""
    here, rows = found.at(bound), found.num_rows
    return (
        f"With **{wording.counted(bound, 'row')}** a count is off by **{wording.percent(found.error_at(bound))}**: "
        f"bias {wording.percent(float(here.bias) / rows)}, noise {wording.percent(float(here.noise) / rows)}."
    )
