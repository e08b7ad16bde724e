"""The figures of a linear regression as data. Pure: what was found in, plots out. Errors are roots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Curve, Item, Level, Mark, Plot, Points, Scale, Shares, Style
from dpcore.answer.axes import fit_limits
from dpcore.answer.plot import FIT, Limits
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray, log_spaced
from dpcore.regression.answer.found import ErrorOf, Method, RegressionSolution
from dpcore.regression.estimate import Step, UserWeights
from dpcore.regression.files import distinct_from
from dpcore.regression.sample_limiting import CapCurve
from dpcore.regression.study import ExampleSweep, Sweep

HEIGHT = 420
GAP_HEIGHT = 340
MAX_POINTS = 400
MAX_LETTERS = 28
"""Of a feature's name that stands beside its row."""
GAP_TICKS = tuple((10.0**power, f"10<sup>{power}</sup>" if power else "1") for power in range(-12, 1, 2))
OURS = "Best weights"


def error_axis(unit: str, of: ErrorOf, limits: Limits = FIT) -> Axis:
    """Return an axis of errors; its unit is named after the labels' column."""
    # The unit stands in the title alone: a control is named after the axis, and a column's name may be Markdown.
    if of is ErrorOf.COEFFICIENTS:
        name = "standard error, all coefficients"
        return Axis(name, "", limits, title=f"Standard error, all coefficients ({unit} per unit)")
    name = "root mean squared prediction error"
    return Axis(name, "", limits, title=f"Root mean squared prediction error ({unit})")


# --- against the cap ----------------------------------------------------------------------------------------


def _cap_columns(found: RegressionSolution, of: ErrorOf, ours: float) -> dict[str, FloatArray]:
    """Return what `caps` draws, as columns; NaN where a draw lost rank."""
    caps = found.caps
    if caps is None:
        return {"cap": np.empty(0), "cap_error": np.empty(0), "ours_error": np.empty(0)}
    if of is ErrorOf.COEFFICIENTS:
        noise, total = caps.privacy_variance, caps.variance
        part, before = "cap_sampling_error", caps.sampling_variance
    else:
        noise = caps.privacy_variance / found.problem.num_features * found.mean_square
        total, part = caps.prediction_error, "cap_fit_error"
        before = np.maximum(total - noise, 0.0)
    return {
        "cap": caps.caps,
        "cap_error": np.sqrt(total),
        part: np.sqrt(before),
        "cap_privacy_noise": np.sqrt(noise),
        "ours_error": np.full(caps.caps.size, ours),
        "draws_without_estimate": caps.rank_deficient,
    }


def _best(caps: CapCurve, of: ErrorOf) -> int:
    return caps.best if of is ErrorOf.COEFFICIENTS else caps.best_prediction


def errors(found: RegressionSolution, of: ErrorOf) -> Plot:
    """Return the main figure: the error of every method, of coefficients with the parts that it is made of."""
    coefficients = of is ErrorOf.COEFFICIENTS
    error = {method: method.coefficients if coefficients else method.predictions for method in found.methods}
    shown = [method for method in found.methods if 0.0 < error[method] < math.inf]
    heights, least = np.array([error[method] for method in shown]), error[found.methods[0]]
    columns: dict[str, npt.ArrayLike] = {
        "method": [method.name for method in shown],
        "error": heights,
        "times_the_best": heights / least if least > 0.0 else np.full(heights.shape, np.nan),
    }
    parts: dict[str, FloatArray] = {}
    dots: list[Points] = []
    if coefficients:
        noise = np.array([method.noise_share for method in shown])
        parts = {"sampling_error": heights * np.sqrt(1.0 - noise), "privacy_noise": heights * np.sqrt(noise)}
        dots = [
            Points("Sampling error", "name", "sampling_error", Style.SAMPLING, symbol="circle", size=9),
            Points("Privacy noise", "name", "privacy_noise", Style.PRIVACY, symbol="diamond", size=9),
        ]
    limits = fit_limits(heights, np.concatenate([*parts.values()]) if parts else None)
    also = (("times the best", "times_the_best"),)
    bars: dict[str, Any] = {"base": limits[0], "gap": 0.4, "is_overlaid": True, "hover_columns": also}
    ours = [method is found.methods[0] for method in shown]
    said = ", ".join(f"{method.name.lower()} {wording.number(error[method])}" for method in shown)
    return Plot(
        "regression-errors" if coefficients else "regression-errors-predictions",
        "Error of every method" if coefficients else "Error of predictions of every method",
        f"Errors: {said}.",
        Axis("method", "", (0.0, 1.0), Scale.NAMES),
        error_axis(found.unit, of, limits),
        {**columns, **parts},
        (
            Bars(OURS, "name", "error", Style.SMOOTH, filter=("kind", "ours"), **bars),
            Bars("Other ways", "name", "error", Style.CAP, filter=("kind", "others"), opacity=0.6, **bars),
            *dots,
        ),
        found.data.provenance,
        {
            "name": [_in_two_lines(method) for method in shown],
            "kind": ["ours" if it_is else "others" for it_is in ours],
        },
        is_main=True,
    )


def _in_two_lines(method: Method) -> str:
    """Return a method's name, with its bound below it."""
    if method.note.startswith("at most "):
        return f"{method.name}<br>{method.note.removeprefix('at most ').removesuffix(' per user')}"
    first, _, rest = method.name.partition(" ")
    return f"{first}<br>{rest}"


def caps(found: RegressionSolution, of: ErrorOf) -> Plot:
    """Return the error against the cap, in its parts, with ours as a level and both ends marked."""
    ours = math.sqrt(found.best_estimate.variance if of is ErrorOf.COEFFICIENTS else found.prediction.total)
    columns, x = _cap_columns(found, of, ours), (1.0, max(float(found.problem.histogram.max_size), 2.0))
    parts = [column for name, column in columns.items() if name.startswith("cap_")]
    y = fit_limits(np.append(columns["cap_error"], ours), np.concatenate(parts))
    items: list[Item] = []
    if found.caps is not None:
        before = ("Bounded rows, sampling error", "cap_sampling_error")
        if of is ErrorOf.PREDICTIONS:
            before = ("Bounded rows, error before noise", "cap_fit_error")
        items += [
            Curve("Bounded rows, total", "cap", "cap_error", Style.CAP),
            Curve(before[0], "cap", before[1], Style.SAMPLING, color_style=Style.CAP),
            Curve(
                "Bounded rows, privacy noise",
                "cap",
                "cap_privacy_noise",
                Style.PRIVACY,
                color_style=Style.CAP,
            ),
        ]
    items.append(Curve(f"{OURS} (no bound)", "bounds from, to", "ours", Style.SMOOTH))
    said = f"The best weights have an error of {wording.number(ours)}; "
    if found.caps is not None and found.has_caps:
        at, errors = _best(found.caps, of), columns["cap_error"]
        cap, error, none = int(found.caps.caps[at]), float(errors[at]), float(errors[-1])
        items.append(Mark("Best bound", float(cap), error, Style.CAP))
        items.append(Mark("No bound", float(columns["cap"][-1]), none, Style.ENTERED, "square"))
        said += (
            f"the best bound has, at {wording.counted(cap, 'row')} per user, {wording.number(error)}; "
            f"no bound has {wording.number(none)}."
        )
    else:
        said += "no bound was tried."
    what = "caps" if of is ErrorOf.COEFFICIENTS else "predictions"
    return Plot(
        f"regression-{what}",
        "Error against the bound" if of is ErrorOf.COEFFICIENTS else "Error of predictions against the bound",
        said,
        Axis("bound", "rows per user", x, title="Bound (rows per user)", number_format=","),
        error_axis(found.unit, of, y),
        columns,
        tuple(items),
        found.data.provenance,
        {"bounds from, to": x, "ours": (ours, ours)},
    )


# --- against epsilon, rows, exponent ------------------------------------------------------------------------


@dataclass(frozen=True)
class Varied:
    """What a sweep varies.

    Attributes:
        name: Of the column of its values.
        words: In a sentence.
        key: Of the plot.
        title: Heading.
        axis: Its axis.
        unit: Of the labels.
        kind: Of the data behind it.
        now: Where the question stands; None for nowhere.
    """

    name: str
    words: str
    key: str
    title: str
    axis: Axis
    unit: str
    kind: Provenance
    now: float | None = None


def swept(sweep: Sweep, varied: Varied, of: ErrorOf) -> Plot:
    """Error of ours, the best cap and no cap against what was varied, both kinds in its file, squared as well."""
    columns: dict[str, FloatArray] = {varied.name: sweep.values}
    for at, kind in enumerate(ErrorOf):
        for method, errors in (
            ("ours", sweep.best_weights),
            ("best_cap", sweep.cap),
            ("no_cap", sweep.no_cap),
        ):
            columns[f"{method}_{kind.value}"] = np.sqrt(errors[at])
            columns[f"{method}_{kind.value}_squared"] = errors[at]
    columns["best_cap"] = sweep.max_contributions.astype(np.float64)
    at = list(ErrorOf).index(of)
    ratios = np.sqrt(sweep.cap[at] / sweep.best_weights[at])

    def curve(name: str, method: str, look: Style, symbol: str, dash: str = "") -> Curve:
        width = 2.0 if dash else None
        return Curve(name, varied.name, f"{method}_{of.value}", look, dash=dash, width=width, symbol=symbol)

    items: list[Item] = [
        curve("No bound", "no_cap", Style.ENTERED, "square", "dash"),
        curve("Best bound", "best_cap", Style.CAP, "diamond"),
        curve(OURS, "ours", Style.SMOOTH, "circle"),
    ]
    if varied.now is not None:
        items.append(Level("Your setting", varied.now, is_vertical=True))
    return Plot(
        varied.key,
        varied.title,
        f"Against {varied.words}, the best bound's error is {wording.number(float(ratios.min()))} to "
        f"{wording.number(float(ratios.max()))} times that of the best weights.",
        varied.axis,
        error_axis(varied.unit, of),
        columns,
        tuple(items),
        varied.kind,
        height=HEIGHT,
    )


# --- the search ---------------------------------------------------------------------------------------------


def gap(steps: Sequence[Step], kind: Provenance) -> Plot:
    """Return the relative gap between the best C so far and what none can go below, by iteration."""
    last, gaps = steps[-1], np.array([step.gap for step in steps])
    number = np.arange(1, gaps.size + 1, dtype=np.float64)
    return Plot(
        "regression-gap",
        "The gap closes",
        f"After {wording.counted(len(steps), 'iteration')} and {last.seconds:.2f} seconds the gap is {last.gap:.1e}.",
        Axis("iteration", "", (0.0, max(float(number[-1]), 9.0) + 1.0), Scale.LINEAR, number_format=","),
        Axis("proved gap to the best", "relative", (1e-12, 1.0), number_format=".1e", named_ticks=GAP_TICKS),
        {
            "seconds": np.array([step.seconds for step in steps]),
            "variance": np.array([step.variance for step in steps]),
            "lower_bound": np.array([step.lower_bound for step in steps]),
            "relative_gap": gaps,
            "entries": np.array([step.entries for step in steps], dtype=np.float64),
        },
        (
            Curve(
                "Gap",
                "iteration",
                "gap drawn",
                Style.SMOOTH,
                symbol="circle",
                hover_column=("seconds", "seconds"),
            ),
        ),
        kind,
        {"iteration": number, "gap drawn": np.maximum(gaps, 1e-12)},
        height=GAP_HEIGHT,
    )


# --- who weighs how much ------------------------------------------------------------------------------------

METHODS = {
    "no bound": ("No bound", Style.ENTERED, "square-open"),
    "best bound": ("Best bound (one draw)", Style.CAP, "diamond-open"),
    "ours": (OURS, Style.SMOOTH, "circle"),
}


def offered(found: RegressionSolution) -> dict[str, UserWeights]:
    """Return what users weigh, by method; without the best cap where there is none."""
    return {name: weights for name in METHODS if (weights := found.weights(name)) is not None}


def size_edges(sizes: npt.ArrayLike, most: int) -> FloatArray:
    """Lower ends of classes of sizes: every size where they are few, else log-spaced."""
    distinct = np.unique(sizes).astype(np.float64)
    return distinct if distinct.size <= most else log_spaced(float(distinct[0]), float(distinct[-1]), most)


def weights_columns(of: dict[str, UserWeights]) -> dict[str, FloatArray]:
    """Mean weight of a user of each size under each method, as columns; sizes thinned to `MAX_POINTS` classes."""
    first = next(iter(of.values()))
    edges = size_edges(first.sizes, MAX_POINTS)
    group = np.searchsorted(edges, first.sizes, side="right") - 1
    users = np.bincount(group, minlength=edges.size)
    some = users > 0
    columns = {
        "rows_of_user": (np.bincount(group, weights=first.sizes, minlength=edges.size)[some] / users[some]),
        "users": users[some].astype(np.float64),
    }
    for name, weights in of.items():
        total = np.bincount(group, weights=weights.total, minlength=edges.size)
        columns[_weight_of(name)] = total[some] / users[some]
    return columns


def _weight_of(method: str) -> str:
    return f"{method.replace(' ', '_')}_user_weight"


def weights(found: RegressionSolution) -> Plot:
    """Return how much a user's labels weigh, against the user's rows; the heaviest user sets the noise."""
    of = offered(found)
    columns = weights_columns(of)
    low, high = fit_limits(np.concatenate([columns[_weight_of(name)] for name in of]))
    most = max(float(columns["rows_of_user"].max()), 2.0)
    return Plot(
        "regression-weights",
        "Weight of a user, by their rows",
        "With no bound the weight of a user grows with their rows; the best weights hold it at one level.",
        Axis("rows of the user", "rows per user", (1.0, most), number_format=",.3~g"),
        Axis("weight of a user, Σ |c|", "1 / unit of feature", (max(low, high / 1e6), high)),
        columns,
        tuple(
            Points(
                METHODS[name][0], "rows_of_user", _weight_of(name), METHODS[name][1], symbol=METHODS[name][2]
            )
            for name in of
        ),
        found.data.provenance,
        height=HEIGHT,
    )


def direction_columns(of: UserWeights, names: Sequence[str]) -> dict[str, Any]:
    """Return the share of each direction's weight that users of each size class hold; one line per class."""
    lows = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000]
    lows = [low for low in lows if low <= int(of.sizes.max())]
    group = np.searchsorted(lows, of.sizes, side="right") - 1
    total = np.zeros((len(lows), of.weights.shape[1]))
    np.add.at(total, group, of.weights)
    users = np.bincount(group, minlength=len(lows))
    some = users > 0
    shares = total / np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    ends = [f"{high - 1:,}" if high - 1 > low else "" for low, high in itertools.pairwise(lows)]
    classes = [f"{low:,}–{end}" if end else f"{low:,}" for low, end in zip(lows, [*ends, ""], strict=True)]
    classes[-1] = f"{lows[-1]:,} or more" if int(of.sizes.max()) > lows[-1] else classes[-1]
    rows = [label for label, kept in zip(classes, some, strict=True) if kept]
    return {"rows_of_user": rows, "users": users[some]} | {
        name: shares[some, j] for j, name in enumerate(names)
    }


def directions(found: RegressionSolution, method: str) -> Plot:
    """Whose labels each coefficient rests on, under a method that there is: a row of cells for every feature."""
    weights = found.weights(method)
    assert weights is not None
    names = distinct_from(found.problem.feature_names, ("rows_of_user", "users"))
    short = [name if len(name) <= MAX_LETTERS else name[: MAX_LETTERS - 1] + "…" for name in names]
    rows = Axis(
        "feature",
        "",
        (len(names) - 0.5, -0.5),
        Scale.LINEAR,
        named_ticks=tuple(enumerate(short)),
        number_format="",
    )
    return Plot(
        "regression-directions",
        "Whose labels each coefficient rests on",
        "Which users' rows each coefficient rests on, by how many rows they have.",
        Axis("rows of the user", "rows per user", (0.0, 1.0), Scale.NAMES),
        rows,
        direction_columns(weights, names),
        (Shares("of this coefficient's weight", "rows_of_user", tuple(names), Style.CAP),),
        found.data.provenance,
        height=max(240, 110 + 24 * len(names)),
    )


# --- examples 1 and 3 ---------------------------------------------------------------------------------------

EXAMPLES = {
    1: ("Optimum 1/(g² + 1)², in closed form", "Paper: every bound ≥ 1/(4g³)"),
    3: ("Paper: optimum ≤ 6/g", "Paper: g/9, exceeded in half of the draws"),
}


def example(sweep: ExampleSweep, number: int) -> Plot:
    """Return the total variance of ours and of the best cap against g, beside what is known of both."""
    g = sweep.g.astype(np.float64)
    known, claimed = EXAMPLES[number]
    ratio = sweep.cap / sweep.optimum
    return Plot(
        f"regression-example-{number}",
        f"Example {number}",
        f"The best bound's variance is {wording.number(float(ratio[0]))} times the optimum at g = {sweep.g[0]} and "
        f"{wording.number(float(ratio[-1]))} times at g = {sweep.g[-1]}: the gap grows without bound.",
        Axis(
            "size g of the example",
            "",
            (float(g.min()), max(float(g.max()), float(g.min()) + 1.0)),
            number_format=",",
        ),
        Axis("total variance", number_format=".4g"),
        {
            "g": g,
            "ours_variance": sweep.optimum,
            "ours_lower_bound": sweep.lower_bound,
            "known": sweep.reference,
            "best_cap_variance": sweep.cap,
            "best_cap": sweep.max_contributions.astype(np.float64),
            "claimed_of_caps": sweep.claimed_cap,
        },
        (
            Curve("Best bound", "g", "best_cap_variance", Style.CAP, symbol="circle"),
            Curve(claimed, "g", "claimed_of_caps", Style.CAP, dash="dot", width=1.5),
            Curve("Best weights, proved", "g", "ours_variance", Style.SMOOTH, symbol="circle"),
            Curve(known, "g", "known", Style.SMOOTH, dash="dot", width=1.5),
        ),
        Disclosure.PUBLIC,
        height=HEIGHT,
    )
