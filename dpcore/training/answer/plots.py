"""The figures of a classifier as data. Pure: what was found in, plots out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Level, Look, Plot, Points, Scale
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.training.answer.found import TrainingFound
from dpcore.training.experiment import Held
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method

LOOKS = {
    Method.FOLLOWED: Look.USUAL,
    Method.SMOOTH: Look.SMOOTH,
    Method.CAP: Look.CAP,
    Method.CLIPPED_SUM: Look.USUAL,
    Method.OUTPUT: Look.PRIVACY,
}
NAMES = {
    Method.FOLLOWED: "Clipped sum, bound follows",
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


def methods(found: TrainingFound, measure: Measure, over: Over) -> Plot:
    """The main figure: every method at its best bound, with 95 % intervals, between no privacy and guessing."""
    summary, name = found.summary(measure, over), measure.value
    floor, guess = found.reference(measure, over)
    # Also those of which there are no runs yet: the figure is updated in place.
    best = {method: found.best_of.get(method) for method in found.parameters.methods}
    answer = found.best
    order = sorted(best, key=lambda method: method is not Method.FOLLOWED)
    at = [None if (of := best[method]) is None else of.at for method in order]
    means, halves = (
        np.array([math.nan if i is None else float(of[i]) for i in at])
        for of in (summary.mean, summary.half_width)
    )
    reaches = [math.nan if i is None else found.cell(i).reach for i in at]
    # What does far worse than guessing is of no use, and would press all others together.
    apart, worse = max(abs(guess - floor), 0.02), 1.0 if measure is Measure.LOSS else -1.0
    far = worse * (means - guess) > MOST_APART * apart
    shown = np.where(far, np.nan, means)
    reached = np.append(shown[np.isfinite(shown)], (floor, guess))
    margin = 0.12 * apart
    ends = float(reached.min()) - margin, float(reached.max()) + margin
    chosen = [i is not None and answer is not None and i == answer.at for i in at]
    columns: dict[str, npt.ArrayLike] = {
        "method": [method.value for method in order],
        "bound": np.array(reaches),
        name: means,
        "half_width_95": halves,
        "kind": ["answer" if it_is else "other" for it_is in chosen],
        f"{name}_without_privacy": np.full(len(order), floor),
        f"{name}_guessing": np.full(len(order), guess),
    }
    whiskers: dict[str, Any] = {"low": "lowest", "high": "highest", "size": 12}
    answer_is, others_are = ("kind", "answer"), ("kind", "other")
    others = "Other methods, at their best bounds"
    items: list[Item] = [
        Points("The answer", "label", "shown", Look.SMOOTH, where=answer_is, symbol="diamond", **whiskers),
        Points(others, "label", "shown", Look.CAP, where=others_are, **whiskers),
    ]
    if far.any():
        symbol = "triangle-up" if worse > 0.0 else "triangle-down"
        beyond = "Beyond this axis: far worse than guessing"
        items.append(Points(beyond, "label", "edge", Look.OWN, symbol=symbol, size=12))
    items += [Level("No privacy", floor, dash="dot"), Level("Guessing", guess, dash="dash")]
    known = [(NAMES[m].lower(), float(v)) for m, v in zip(order, means, strict=True) if math.isfinite(v)]
    said = ", ".join(f"{method} {wording.number(value)}" for method, value in known)
    edge = ends[1] - margin / 3.0 if worse > 0.0 else ends[0] + margin / 3.0
    return Plot(
        f"training-methods-{name}",
        f"{TITLES[measure]} of every method",
        f"{TITLES[measure]} on users held out: {said}; {wording.number(floor)} without privacy, "
        f"{wording.number(guess)} guessing.",
        Axis("method", "", (0.0, 1.0), Scale.NAMES, "Method, at its best bound h (rows per user)"),
        _axis(measure, ends, f"{TITLES[measure]}, users held out"),
        columns,
        tuple(items),
        found.data.provenance,
        {
            "label": [_label(method, reach) for method, reach in zip(order, reaches, strict=True)],
            "shown": shown,
            "edge": np.where(far, edge, np.nan),
            "lowest": np.where(far, np.nan, means - halves),
            "highest": np.where(far, np.nan, means + halves),
        },
        main=True,
    )


MOST_APART = 1.0
"""How far beyond guessing the axis reaches, in distances between guessing and no privacy."""
IN_LINES = {
    Method.FOLLOWED: "Clipped sum,<br>bound<br>follows",
    Method.SMOOTH: "Smooth<br>weights",
    Method.CAP: "Cap, random<br>rows",
    Method.CLIPPED_SUM: "Clipped<br>sum",
    Method.OUTPUT: "Output<br>perturbation",
}


def _label(method: Method, reach: float) -> str:
    """Of the axis: a method, and the bound that it is best at."""
    has_bound = method is not Method.FOLLOWED and math.isfinite(reach)
    return f"{IN_LINES[method]}<br>h = {wording.entered(reach)}" if has_bound else IN_LINES[method]


def _bound_axis(found: TrainingFound) -> Axis:
    reaches = [cell.reach for cell in found.table.experiment.cells if cell.method is not Method.FOLLOWED]
    return Axis("bound h", "rows per user", (min(reaches), max(*reaches, 2.0)), number=".3~g")


def _axis(measure: Measure, ends: tuple[float, float], title: str) -> Axis:
    percent = measure is Measure.ACCURACY
    scale, number = (Scale.PERCENT, ".3~%") if percent else (Scale.LINEAR, ".3f")
    return Axis(TITLES[measure].lower(), "", ends, scale, title, number=number)


def _around(ends: tuple[float, float], means: FloatArray, floor: float, guess: float) -> tuple[float, float]:
    """Ends wide enough for curves, where these are not far worse than guessing."""
    fine = means[np.isfinite(means)]
    most = 2.0 * max(abs(guess - floor), 0.02)
    low, high = (float(f(fine)) if fine.size else guess for f in (np.min, np.max))
    return min(ends[0], max(low, guess - most)), max(ends[1], min(high, guess + most))


def bounds(found: TrainingFound, measure: Measure, over: Over) -> Plot:
    """Loss or accuracy against the bound, with 95 % bands over the runs; beneath it the heaviest user's share."""
    summary, cells = found.summary(measure, over), found.table.experiment.cells
    floor, guess = found.reference(measure, over)
    across, name = _bound_axis(found), measure.value
    ends = _around(limits(found, measure, over), summary.mean, floor, guess)
    quiet, unclipped = found.quiet(measure, over)
    weight = found.largest_weight
    columns: dict[str, FloatArray | list[str]] = {
        "method": [cell.method.value for cell in cells],
        "bound": np.array([cell.reach for cell in cells]),
        name: summary.mean,
        "half_width_95": summary.half_width,
        "half_width_95_users": summary.users_half_width,
        "runs": summary.runs.astype(np.float64),
        f"{name}_without_privacy": np.full(len(cells), floor),
        f"{name}_guessing": np.full(len(cells), guess),
        f"{name}_without_noise": np.full(len(cells), quiet),
        f"{name}_without_noise_and_clipping": np.full(len(cells), unclipped),
        "largest_user_weight": weight,
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
        # Also those of which there are no runs yet: the figure is updated in place, curve by curve.
        for method in found.parameters.methods
        if method is not Method.FOLLOWED
    ]
    followed = found.table.cells_of(Method.FOLLOWED)
    answer, half = (float(of[followed[0]]) for of in (summary.mean, summary.half_width))
    items.insert(
        0,
        Curve(
            NAMES[Method.FOLLOWED],
            "bounds from, to",
            "followed",
            LOOKS[Method.FOLLOWED],
            # In the colour of clipped sums, which it is, but for its dashes.
            dash="solid",
            width=3.0,
            low="followed, lowest",
            high="followed, highest",
            shaded=True,
            first=True,
        ),
    )
    items += [
        Curve("Bound follows, no noise", "bounds from, to", "no noise", Look.USUAL, dash="dot", width=1.5),
        Curve("No noise, no clipping", "bounds from, to", "no clipping", Look.OWN, dash="dot", width=1.5),
        Curve("No privacy", "bounds from, to", "no privacy", Look.SAMPLING),
        Curve("Guessing", "bounds from, to", "guessing", Look.OWN),
    ]
    beneath = Plot(
        "training-weight",
        "The heaviest user's share of all weights",
        "",
        across,
        Axis("share W", "", (0.0, 1.08 * float(np.nanmax(weight))), Scale.PERCENT, number=".2~%"),
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
        f"{TITLES[measure]} on users held out is {wording.number(answer)} by clipped sums whose bound follows the "
        f"users; {wording.number(floor)} without privacy, {wording.number(guess)} guessing. Beneath, the heaviest "
        f"user's share of all weights rises from {wording.percent(float(np.nanmin(weight)))} to "
        f"{wording.percent(float(np.nanmax(weight)))}.",
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
            "no noise": (quiet, quiet),
            "no clipping": (unclipped, unclipped),
            "followed": (answer, answer),
            "followed, lowest": (answer - half, answer - half),
            "followed, highest": (answer + half, answer + half),
        },
        beneath=beneath,
        height=440,
        note="" if seen else "Every curve lies beyond this axis: far worse than guessing",
    )


SIDES = (
    ("rows, held out", Over.ROWS, Held.HELD_OUT, Look.SMOOTH),
    ("users, held out", Over.USERS, Held.HELD_OUT, Look.CAP),
    ("rows, trained on", Over.ROWS, Held.TRAINED, Look.SMOOTH),
    ("users, trained on", Over.USERS, Held.TRAINED, Look.CAP),
)


def sides(found: TrainingFound) -> Plot:
    """Loss of clipped sums: a mean over rows and one over users, on users trained on and held out."""
    cells = found.table.cells_of(Method.CLIPPED_SUM)
    columns: dict[str, FloatArray] = {"bound": found.bounds(Method.CLIPPED_SUM)}
    items = []
    for name, over, held, look in SIDES:
        column = f"loss_{name.replace(', ', '_').replace(' ', '_')}"
        columns[column] = found.summary(Measure.LOSS, over, held).mean[cells]
        dash, width = ("dot", 1.5) if held == Held.TRAINED else ("", None)
        items.append(Curve(f"Mean over {name}", "bound", column, look, dash=dash, width=width))
    followed = found.table.cells_of(Method.FOLLOWED)[0]
    rows, users = (wording.number(float(found.summary(Measure.LOSS, over).mean[followed])) for over in Over)
    ends = [limits(found, Measure.LOSS, over) for over in Over]
    return Plot(
        "training-sides",
        "Rows and users, trained on and held out",
        f"Where the bound follows the users, the loss on users held out is {rows} as a mean over rows and {users} as "
        "one over users.",
        _bound_axis(found),
        _axis(
            Measure.LOSS,
            (min(low for low, _ in ends), max(high for _, high in ends)),
            "Loss, clipped sums",
        ),
        columns,
        tuple(items),
        found.data.provenance,
    )
