"""The figures of a classifier as data. Pure: what was found in, plots out."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Curve, Item, Look, Mark, Plot, Scale
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.training.answer.found import TrainingFound
from dpcore.training.experiment import Held
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method

LOOKS = {
    Method.SMOOTH: Look.SMOOTH,
    Method.CAP: Look.CAP,
    Method.CLIPPED_SUM: Look.USUAL,
    Method.OUTPUT: Look.PRIVACY,
}
NAMES = {
    Method.SMOOTH: "Smooth weights",
    Method.CAP: "Cap, random rows",
    Method.CLIPPED_SUM: "Clipped sum",
    Method.OUTPUT: "Output perturbation",
}
TITLES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}


def limits(found: TrainingFound, measure: Measure, over: Over) -> tuple[float, float]:
    """(from, to) of the axis of loss or accuracy, from the references alone: it does not move with ε.

    A model that does much worse than guessing is of no use, and the axis ends a little beyond.
    """
    floor, guess = found.reference(measure, over)
    apart = max(abs(guess - floor), 0.02)
    if measure is Measure.LOSS:
        return floor - 0.08 * apart, max(guess, floor) + 0.45 * apart
    return min(guess, floor) - 0.9 * apart, max(guess, floor) + 0.1 * apart


def _bound_axis(found: TrainingFound) -> Axis:
    largest = max(float(found.bounds(Method.SMOOTH)[-1]), 2.0)
    return Axis("bound h", "rows per user", (1.0, largest), number=",")


def _axis(measure: Measure, ends: tuple[float, float], title: str) -> Axis:
    percent = measure is Measure.ACCURACY
    scale, number = (Scale.PERCENT, ".3~%") if percent else (Scale.LINEAR, ".3f")
    return Axis(TITLES[measure].lower(), "", ends, scale, title, number=number)


def bounds(found: TrainingFound, measure: Measure, over: Over) -> Plot:
    """Loss or accuracy against the bound, with 95 % bands over the runs; beneath it the heaviest user's share."""
    summary, cells = found.summary(measure, over), found.table.experiment.cells
    floor, guess = found.reference(measure, over)
    ends, across, name = limits(found, measure, over), _bound_axis(found), measure.value
    weight = dict(zip(found.bounds(Method.SMOOTH).tolist(), found.largest_weight.tolist(), strict=True))
    columns: dict[str, FloatArray | list[str]] = {
        "method": [cell.method.value for cell in cells],
        "bound": np.array([cell.bound for cell in cells]),
        name: summary.mean,
        "half_width_95": summary.half_width,
        "runs": summary.runs.astype(np.float64),
        f"{name}_without_privacy": np.full(len(cells), floor),
        f"{name}_guessing": np.full(len(cells), guess),
        "largest_user_weight": np.array([weight[cell.bound] for cell in cells]),
    }
    items: list[Item] = [
        Curve(
            NAMES[method],
            "bound",
            name,
            LOOKS[method],
            # A cap often lies on the curve of the weights: both are to be seen.
            dash="dash" if method is Method.CAP else "",
            where=("method", method.value),
            symbol="circle",
            also=("±", "half_width_95"),
            low="lowest",
            high="highest",
            shaded=True,
        )
        for method in found.parameters.methods
        if (summary.runs[found.table.cells_of(method)] > 0).any()
    ]
    items += [
        Curve("No privacy", "bounds from, to", "no privacy", Look.SAMPLING),
        Curve("Guessing", "bounds from, to", "guessing", Look.OWN),
    ]
    # Averages of users at h = 1, and no bound at the largest user: both are smooth weights.
    smooth = found.table.cells_of(Method.SMOOTH)
    first, last = (float(summary.mean[at]) for at in (smooth[0], smooth[-1]))
    if np.isfinite(first):
        items.append(Mark("Averages", found.cell(int(smooth[0])).bound, first, Look.SMOOTH, "circle"))
    if smooth.size > 1 and ends[0] <= last <= ends[1]:  # Else the legend would name what is not seen.
        items.append(Mark("No bound", found.cell(int(smooth[-1])).bound, last, Look.OWN, "square"))
    beneath = Plot(
        "training-weight",
        "The heaviest user's share of all weights",
        "",
        across,
        Axis("share W", "", (0.0, 1.08 * float(found.largest_weight.max())), Scale.PERCENT, number=".2~%"),
        columns,
        (
            Curve(
                "W, the heaviest user's share",
                "bound",
                "largest_user_weight",
                Look.OWN,
                dash="solid",
                width=2.0,
                where=("method", Method.SMOOTH.value),
            ),
        ),
        found.data.provenance,
    )
    seen = ((summary.mean >= ends[0]) & (summary.mean <= ends[1])).any()
    return Plot(
        f"training-{name}",
        f"{TITLES[measure]} against the bound",
        f"{TITLES[measure]} on users held out is {wording.number(first)} where each user weighs at most one row and "
        f"{wording.number(last)} where nobody is bounded; {wording.number(floor)} without privacy, "
        f"{wording.number(guess)} guessing. Beneath, the heaviest user's share of all weights rises from "
        f"{wording.percent(float(found.largest_weight[0]))} to {wording.percent(float(found.largest_weight[-1]))}.",
        across,
        _axis(measure, ends, f"{TITLES[measure]}, users held out"),
        columns,
        tuple(items),
        found.data.provenance,
        {
            "lowest": summary.mean - summary.half_width,
            "highest": summary.mean + summary.half_width,
            "bounds from, to": across.limits,
            "no privacy": (floor, floor),
            "guessing": (guess, guess),
        },
        main=True,
        beneath=beneath,
        note="" if seen else "Every curve lies beyond this axis: far worse than guessing",
    )


SIDES = (
    ("rows, held out", Over.ROWS, Held.HELD_OUT, Look.SMOOTH),
    ("users, held out", Over.USERS, Held.HELD_OUT, Look.CAP),
    ("rows, trained on", Over.ROWS, Held.TRAINED, Look.SMOOTH),
    ("users, trained on", Over.USERS, Held.TRAINED, Look.CAP),
)


def sides(found: TrainingFound) -> Plot:
    """Loss of smooth weights: a mean over rows and one over users, on users trained on and held out."""
    cells = found.table.cells_of(Method.SMOOTH)
    columns: dict[str, FloatArray] = {"bound": found.bounds(Method.SMOOTH)}
    items = []
    for name, over, held, look in SIDES:
        column = f"loss_{name.replace(', ', '_').replace(' ', '_')}"
        columns[column] = found.summary(Measure.LOSS, over, held).mean[cells]
        dash, width = ("dot", 1.5) if held == Held.TRAINED else ("", None)
        items.append(Curve(f"Mean over {name}", "bound", column, look, dash=dash, width=width))
    rows, users = (wording.number(float(columns[f"loss_{whom}_held_out"][0])) for whom in ("rows", "users"))
    ends = [limits(found, Measure.LOSS, over) for over in Over]
    return Plot(
        "training-sides",
        "Rows and users, trained on and held out",
        f"At h = 1 the loss on users held out is {rows} as a mean over rows and {users} as one over users.",
        _bound_axis(found),
        _axis(
            Measure.LOSS,
            (min(low for low, _ in ends), max(high for _, high in ends)),
            "Loss, smooth weights",
        ),
        columns,
        tuple(items),
        found.data.provenance,
    )
