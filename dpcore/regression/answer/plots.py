"""Plots of a linear regression as data. Pure functions of the solution. Errors are roots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import (
    Axis,
    Bars,
    Column,
    Curve,
    Item,
    Level,
    Mark,
    Plot,
    Points,
    Shares,
    Style,
    linear_axis,
    names_axis,
)
from dpcore.answer.axes import fit_limits
from dpcore.answer.plot import FIT, Limits
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray, log_spaced
from dpcore.regression.answer.solution import Method, RegressionSolution
from dpcore.regression.draw import distinct_from
from dpcore.regression.estimate import ErrorTarget, Step, UserWeights
from dpcore.regression.study import Sweep

HEIGHT = 420
GAP_HEIGHT = 340
MAX_POINTS = 400
MAX_LETTERS = 28
"""Of a feature's name that stands beside its row."""
GAP_TICKS = tuple((10.0**power, f"10<sup>{power}</sup>" if power else "1") for power in range(-12, 1, 2))
OURS = "Best weights"
ERROR_KEYS = {
    ErrorTarget.COEFFICIENTS: "regression-errors",
    ErrorTarget.PREDICTIONS: "regression-errors-predictions",
}
"""Keys of the main figure, by the error that it shows."""
SWEEP_STYLES: dict[str, tuple[str, Style, dict[str, Any]]] = {
    "no_cap": ("No bound", Style.ENTERED, {"dash": "dash", "width": 2.0, "symbol": "square"}),
    "best_cap": ("Best bound", Style.CAP, {"symbol": "diamond"}),
    "ours": (OURS, Style.SMOOTH, {"symbol": "circle"}),
}
"""Name and look of a method in a sweep, by the names of its columns."""


def build_error_axis(unit: str, target: ErrorTarget, limits: Limits = FIT) -> Axis:
    """Build the axis of errors; its unit is named after the labels' column."""
    # The unit stands in the title alone: a control is named after the axis, and a column's name may be Markdown.
    is_coefficients = target is ErrorTarget.COEFFICIENTS
    name = "standard error, all coefficients" if is_coefficients else "root mean squared prediction error"
    title_unit = f"{unit} per unit" if is_coefficients else unit
    return Axis(name, "", limits, title=f"{wording.capital(name)} ({title_unit})")


# --- against the cap ----------------------------------------------------------------------------------------


def plot_errors(solution: RegressionSolution, target: ErrorTarget) -> Plot:
    """Plot the error of every method, of coefficients with the parts that it is made of: the main figure."""
    is_coefficients = target is ErrorTarget.COEFFICIENTS
    error = {
        method: method.coefficients if is_coefficients else method.predictions for method in solution.methods
    }
    methods = [method for method in solution.methods if 0.0 < error[method] < math.inf]
    heights, best_error = np.array([error[method] for method in methods]), error[solution.methods[0]]
    ratios = heights / best_error if best_error > 0.0 else np.full(heights.shape, np.nan)
    labels = np.array([_in_two_lines(method) for method in methods])
    points: list[Points] = []
    if is_coefficients:
        noise_share = np.array([method.noise_share for method in methods])
        sampling = Column("sampling_error", heights * np.sqrt(1.0 - noise_share))
        noise = Column("privacy_noise", heights * np.sqrt(noise_share))
        points = [
            Points("Sampling error", labels, sampling, Style.SAMPLING, symbol="circle", size=9),
            Points("Privacy noise", labels, noise, Style.PRIVACY, symbol="diamond", size=9),
        ]
    limits = fit_limits(heights, np.concatenate([np.asarray(part.y) for part in points]) if points else None)
    is_ours = np.array([method is solution.methods[0] for method in methods])
    bars = [
        Bars(
            name,
            labels[rows],
            heights[rows],
            style,
            opacity=opacity,
            base=limits[0],
            gap=0.4,
            is_overlaid=True,
            hover=(("times the best", ratios[rows]),),
        )
        for name, rows, style, opacity in (
            (OURS, is_ours, Style.SMOOTH, 1.0),
            ("Other ways", ~is_ours, Style.CAP, 0.6),
        )
    ]
    errors_text = ", ".join(f"{method.name.lower()} {wording.number(error[method])}" for method in methods)
    return Plot(
        ERROR_KEYS[target],
        "Error of every method" if is_coefficients else "Error of predictions of every method",
        f"Errors: {errors_text}.",
        names_axis("method"),
        build_error_axis(solution.unit, target, limits),
        (*bars, *points),
        solution.data.provenance,
        {"method": [method.name for method in methods], "error": heights, "times_the_best": ratios},
        is_main=True,
    )


def _in_two_lines(method: Method) -> str:
    """Return a method's name, with its bound below it."""
    if method.note.startswith("at most "):
        return f"{method.name}<br>{method.note.removeprefix('at most ').removesuffix(' per user')}"
    first, _, rest = method.name.partition(" ")
    return f"{first}<br>{rest}"


def plot_caps(solution: RegressionSolution, target: ErrorTarget) -> Plot:
    """Plot the error against the cap, in its parts, with ours as a level and both ends marked."""
    is_coefficients, caps = target is ErrorTarget.COEFFICIENTS, solution.caps
    ours = solution.methods[0].coefficients if is_coefficients else solution.methods[0].predictions
    limits = 1.0, max(float(solution.problem.histogram.max_size), 2.0)
    columns: dict[str, npt.NDArray[Any]] = {
        "cap": np.empty(0),
        "cap_error": np.empty(0),
        "ours_error": np.empty(0),
    }
    items: list[Item] = []
    visible_errors = np.empty(0)
    if caps is not None:
        # NaN where a draw lost rank.
        if is_coefficients:
            noise, total, before_noise = caps.privacy_variance, caps.variance, caps.sampling_variance
            name, column = "Bounded rows, sampling error", "cap_sampling_error"
        else:
            noise = caps.privacy_variance / solution.problem.num_features * solution.mean_square
            total, before_noise = caps.prediction_error, np.maximum(caps.prediction_error - noise, 0.0)
            name, column = "Bounded rows, error before noise", "cap_fit_error"
        columns = {
            "cap": caps.caps,
            "cap_error": np.sqrt(total),
            column: np.sqrt(before_noise),
            "cap_privacy_noise": np.sqrt(noise),
            "ours_error": np.full(caps.caps.size, ours),
            "draws_without_estimate": caps.rank_deficient,
        }
        x, error, before, noise, *_ = columns.values()
        visible_errors = np.concatenate([error, before, noise])
        items += [
            Curve("Bounded rows, total", x, error, Style.CAP),
            Curve(name, x, before, Style.SAMPLING, color_style=Style.CAP),
            Curve("Bounded rows, privacy noise", x, noise, Style.PRIVACY, color_style=Style.CAP),
        ]
    items.append(Curve(f"{OURS} (no bound)", limits, (ours, ours), Style.SMOOTH))
    caps_text = "no bound was tried."
    if caps is not None:
        best = caps.best if is_coefficients else caps.best_prediction
        best_cap, errors = int(caps.caps[best]), columns["cap_error"]
        best_error, last_error = float(errors[best]), float(errors[-1])
        items.append(Mark("Best bound", float(best_cap), best_error, Style.CAP))
        items.append(Mark("No bound", float(columns["cap"][-1]), last_error, Style.ENTERED, "square"))
        caps_text = (
            f"the best bound has, at {wording.counted(best_cap, 'row')} per user, {wording.number(best_error)}; "
            f"no bound has {wording.number(last_error)}."
        )
    error_limits = fit_limits(np.append(columns["cap_error"], ours), visible_errors)
    return Plot(
        "regression-caps" if is_coefficients else "regression-predictions",
        "Error against the bound" if is_coefficients else "Error of predictions against the bound",
        f"The best weights have an error of {wording.number(ours)}; {caps_text}",
        Axis("bound", "rows per user", limits, title="Bound (rows per user)", number_format=","),
        build_error_axis(solution.unit, target, error_limits),
        items,
        solution.data.provenance,
        columns,
    )


# --- against epsilon, rows, exponent ------------------------------------------------------------------------


def plot_sweep(
    sweep: Sweep,
    name: str,
    title: str,
    axis: Axis,
    target: ErrorTarget,
    unit: str = "y",
    disclosure: Provenance = Disclosure.PUBLIC,
    current_value: float | None = None,
) -> Plot:
    """Plot the error of the best weights, the best cap and no cap against a quantity; its file has the squares, too.

    Args:
        sweep: The errors.
        name: Of the quantity.
        title: Heading.
        axis: Of the quantity.
        target: Which errors are drawn.
        unit: Of the labels.
        disclosure: Of the data behind it.
        current_value: Where the parameters stand; None for nowhere.
    """
    columns: dict[str, FloatArray] = {name: sweep.values}
    for other_target, method in itertools.product(ErrorTarget, SWEEP_STYLES):
        column = f"{method}_{other_target.value}"
        columns |= {column: np.sqrt(sweep.columns[column]), f"{column}_squared": sweep.columns[column]}
    columns["best_cap"] = sweep.columns["best_cap"]
    ratios = columns[f"best_cap_{target.value}"] / columns[f"ours_{target.value}"]
    items: list[Item] = [
        Curve(label, sweep.values, columns[f"{method}_{target.value}"], style, **look)
        for method, (label, style, look) in SWEEP_STYLES.items()
    ]
    if current_value is not None:
        items.append(Level("Your setting", current_value, is_vertical=True))
    return Plot(
        f"regression-{name}",
        title,
        f"Against {name}, the best bound's error is {wording.number(float(ratios.min()))} to "
        f"{wording.number(float(ratios.max()))} times that of the best weights.",
        axis,
        build_error_axis(unit, target),
        items,
        disclosure,
        columns,
        height=HEIGHT,
    )


# --- the search ---------------------------------------------------------------------------------------------


def plot_gap(steps: Sequence[Step], disclosure: Provenance) -> Plot:
    """Plot the relative gap between the best C so far and what none can go below, by iteration."""
    last, gaps = steps[-1], np.array([step.gap for step in steps])
    seconds = np.array([step.seconds for step in steps])
    iterations = np.arange(1, gaps.size + 1, dtype=np.float64)
    visible_gaps = np.maximum(gaps, 1e-12)
    return Plot(
        "regression-gap",
        "The gap closes",
        f"After {wording.counted(len(steps), 'iteration')} and {last.seconds:.2f} seconds the gap is {last.gap:.1e}.",
        linear_axis("iteration", (0.0, max(float(iterations[-1]), 9.0) + 1.0), number_format=","),
        Axis("proved gap to the best", "relative", (1e-12, 1.0), number_format=".1e", named_ticks=GAP_TICKS),
        (Curve("Gap", iterations, visible_gaps, Style.SMOOTH, symbol="circle", hover=("seconds", seconds)),),
        disclosure,
        {
            "seconds": seconds,
            "variance": np.array([step.variance for step in steps]),
            "lower_bound": np.array([step.lower_bound for step in steps]),
            "relative_gap": gaps,
            "entries": np.array([step.entries for step in steps], dtype=np.float64),
        },
        height=GAP_HEIGHT,
    )


# --- who weighs how much ------------------------------------------------------------------------------------

METHODS = {
    "no bound": ("No bound", Style.ENTERED, "square-open"),
    "best bound": ("Best bound (one draw)", Style.CAP, "diamond-open"),
    "ours": (OURS, Style.SMOOTH, "circle"),
}


def list_weights(solution: RegressionSolution) -> dict[str, UserWeights]:
    """List what users weigh, by method; without the best cap where there is none."""
    return {name: weights for name in METHODS if (weights := solution.weights(name)) is not None}


def choose_size_edges(sizes: npt.ArrayLike, max_edges: int) -> FloatArray:
    """Choose the lower ends of classes of sizes: every size if they are few, else log-spaced."""
    distinct = np.unique(sizes).astype(np.float64)
    if distinct.size <= max_edges:
        return distinct
    return log_spaced(float(distinct[0]), float(distinct[-1]), max_edges)


def tabulate_weights(weights_by_method: dict[str, UserWeights]) -> dict[str, FloatArray]:
    """Tabulate the mean weight of a user of each size by method; sizes thinned to `MAX_POINTS` classes."""
    sizes = next(iter(weights_by_method.values())).sizes
    edges = choose_size_edges(sizes, MAX_POINTS)
    classes = np.searchsorted(edges, sizes, side="right") - 1
    users = np.bincount(classes, minlength=edges.size)
    has_users = users > 0

    def average(values: npt.NDArray[Any]) -> FloatArray:
        return np.bincount(classes, weights=values, minlength=edges.size)[has_users] / users[has_users]

    return {
        "rows_of_user": average(sizes),
        "users": users[has_users].astype(np.float64),
        **{
            f"{method.replace(' ', '_')}_user_weight": average(weights.total)
            for method, weights in weights_by_method.items()
        },
    }


def plot_weights(solution: RegressionSolution) -> Plot:
    """Plot how much a user's labels weigh, against the user's rows; the heaviest user sets the noise."""
    weights_by_method = list_weights(solution)
    columns = tabulate_weights(weights_by_method)
    rows, _, *weights = columns.values()
    low, high = fit_limits(np.concatenate(weights))
    points = []
    for method, values in zip(weights_by_method, weights, strict=True):
        name, style, symbol = METHODS[method]
        points.append(Points(name, rows, values, style, symbol=symbol))
    return Plot(
        "regression-weights",
        "Weight of a user, by their rows",
        "With no bound the weight of a user grows with their rows; the best weights hold it at one level.",
        Axis("rows of the user", "rows per user", (1.0, max(float(rows.max()), 2.0)), number_format=",.3~g"),
        Axis("weight of a user, Σ |c|", "1 / unit of feature", (max(low, high / 1e6), high)),
        points,
        solution.data.provenance,
        columns,
        height=HEIGHT,
    )


def tabulate_directions(weights: UserWeights, names: Sequence[str]) -> dict[str, Any]:
    """Tabulate the share of each direction's weight that users of each size class hold; one line per class."""
    largest_size = int(weights.sizes.max())
    lows = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000]
    lows = [low for low in lows if low <= largest_size]
    classes = np.searchsorted(lows, weights.sizes, side="right") - 1
    total = np.zeros((len(lows), weights.weights.shape[1]))
    np.add.at(total, classes, weights.weights)
    users = np.bincount(classes, minlength=len(lows))
    has_users = users > 0
    shares = total / np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    labels = [
        f"{low:,}–{next_low - 1:,}" if next_low - 1 > low else f"{low:,}"
        for low, next_low in itertools.pairwise(lows)
    ]
    labels.append(f"{lows[-1]:,} or more" if largest_size > lows[-1] else f"{lows[-1]:,}")
    return {
        "rows_of_user": [label for label, is_kept in zip(labels, has_users, strict=True) if is_kept],
        "users": users[has_users],
        **{name: shares[has_users, column] for column, name in enumerate(names)},
    }


def plot_directions(solution: RegressionSolution, method: str) -> Plot:
    """Plot whose labels each coefficient rests on, under a method: a row of cells for every feature."""
    weights = solution.weights(method)
    assert weights is not None
    names = distinct_from(solution.problem.feature_names, ("rows_of_user", "users"))
    short_names = [name if len(name) <= MAX_LETTERS else name[: MAX_LETTERS - 1] + "…" for name in names]
    columns, ticks = tabulate_directions(weights, names), tuple(enumerate(short_names))
    shares = tuple(columns[name] for name in names)
    return Plot(
        "regression-directions",
        "Whose labels each coefficient rests on",
        "Which users' rows each coefficient rests on, by how many rows they have.",
        names_axis("rows of the user", unit="rows per user"),
        linear_axis("feature", (len(names) - 0.5, -0.5), named_ticks=ticks, number_format=""),
        (Shares("of this coefficient's weight", columns["rows_of_user"], shares, Style.CAP),),
        solution.data.provenance,
        columns,
        height=max(240, 110 + 24 * len(names)),
    )


# --- examples 1 and 3 ---------------------------------------------------------------------------------------

EXAMPLES = {
    1: ("Optimum 1/(g² + 1)², in closed form", "Paper: every bound ≥ 1/(4g³)"),
    3: ("Paper: optimum ≤ 6/g", "Paper: g/9, exceeded in half of the draws"),
}


def plot_example(sweep: Sweep, number: int) -> Plot:
    """Plot the total variance of the best weights and of the best cap against g, beside what is known of both."""
    g, columns = sweep.values, sweep.columns
    known, claimed = EXAMPLES[number]
    ratio = columns["best_cap_variance"] / columns["ours_variance"]
    limits = float(g.min()), max(float(g.max()), float(g.min()) + 1.0)
    return Plot(
        f"regression-example-{number}",
        f"Example {number}",
        f"The best bound's variance is {wording.number(float(ratio[0]))} times the optimum at g = {g[0]:.0f} and "
        f"{wording.number(float(ratio[-1]))} times at g = {g[-1]:.0f}: the gap grows without bound.",
        Axis("size g of the example", "", limits, number_format=","),
        Axis("total variance", number_format=".4g"),
        (
            Curve("Best bound", g, columns["best_cap_variance"], Style.CAP, symbol="circle"),
            Curve(claimed, g, columns["claimed_of_caps"], Style.CAP, dash="dot", width=1.5),
            Curve("Best weights, proved", g, columns["ours_variance"], Style.SMOOTH, symbol="circle"),
            Curve(known, g, columns["known"], Style.SMOOTH, dash="dot", width=1.5),
        ),
        Disclosure.PUBLIC,
        {"g": g, **columns},
        height=HEIGHT,
    )
