"""Plots of a linear regression as data. Pure functions of the solution. Errors are roots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpcore.answer import Axis, Bars, Column, Curve, Item, Level, Mark, Plot, Points, Style
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import FIT, Limits, linear_axis, names_axis
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray, IntArray, log_spaced
from dpcore.regression import sample_limiting, study
from dpcore.regression.answer.solution import Method, RegressionSolution
from dpcore.regression.estimate import ErrorTarget, Step, compute_user_weights
from dpcore.regression.study import COLUMNS

HEIGHT = 420
GAP_HEIGHT = 340
MAX_POINTS = 400
GAP_TICKS = tuple((10.0**power, f"10<sup>{power}</sup>" if power else "1") for power in range(-12, 1, 2))
OURS = "Best weights"
ERROR_KEYS = dict(zip(ErrorTarget, ("regression-errors", "regression-errors-predictions"), strict=True))
CAP_KEYS = dict(zip(ErrorTarget, ("regression-caps", "regression-predictions"), strict=True))
"""Keys of the main figure and of that against the cap, by target."""


def build_error_axis(unit: str, target: ErrorTarget, limits: Limits = FIT) -> Axis:
    """Build the axis of errors; its unit is named after the labels' column."""
    # The unit stands in the title alone: a control is named after the axis, and a column's name may be Markdown.
    is_coefficients = target is ErrorTarget.COEFFICIENTS
    name = "standard error, all coefficients" if is_coefficients else "root mean squared prediction error"
    title_unit_text = f"{unit} per unit" if is_coefficients else unit
    return Axis(name, "", limits, title=f"{wording.capital(name)} ({title_unit_text})")


def plot_errors(solution: RegressionSolution, target: ErrorTarget) -> Plot:
    """Plot the error of every method, of coefficients with the parts that it is made of: the main figure."""
    is_coefficients, best_method = target is ErrorTarget.COEFFICIENTS, solution.methods["ours"]
    methods = [method for method in solution.methods.values() if 0.0 < method.error(target) < math.inf]
    errors = np.array([method.error(target) for method in methods])
    ratios = np.array([method.compute_error_ratio(best_method, target) for method in methods])
    labels = np.array([write_two_line_label(method) for method in methods])
    points, error_parts = list[Points](), None
    if is_coefficients:
        noise_shares = np.array([method.noise_share for method in methods])
        error_parts = errors * np.sqrt((1.0 - noise_shares, noise_shares))
        sampling_column, noise_column = (
            Column("sampling_error", error_parts[0]),
            Column("privacy_noise", error_parts[1]),
        )
        points = [
            Points("Sampling error", labels, sampling_column, Style.SAMPLING, symbol="circle", size=9),
            Points("Privacy noise", labels, noise_column, Style.PRIVACY, symbol="diamond", size=9),
        ]
    limits = fit_limits(errors, error_parts)
    is_ours = np.array([method is best_method for method in methods])
    bars = []
    for group_name, is_shown, style, opacity in (
        (OURS, is_ours, Style.SMOOTH, 1.0),
        ("Other ways", ~is_ours, Style.CAP, 0.6),
    ):
        bar_options: dict[str, Any] = {
            "base_value": limits[0],
            "gap_share": 0.4,
            "is_overlaid": True,
            "opacity": opacity,
        }
        bars.append(
            Bars(
                group_name,
                labels[is_shown],
                errors[is_shown],
                style,
                hover_numbers=(("times the best", ratios[is_shown]),),
                **bar_options,
            )
        )
    errors_text = ", ".join(f"{m.name.lower()} {wording.number(m.error(target))}" for m in methods)
    return Plot(
        ERROR_KEYS[target],
        "Error of every method" if is_coefficients else "Error of predictions of every method",
        f"Errors: {errors_text}.",
        names_axis("method"),
        build_error_axis(solution.unit, target, limits),
        (*bars, *points),
        solution.data.provenance,
        {"method": [method.name for method in methods], "error": errors, "times_the_best": ratios},
        is_main=True,
    )


def write_two_line_label(method: Method) -> str:
    """Return a method's name, with its bound below it."""
    if method.note.startswith("at most "):
        return f"{method.name}<br>{method.note.removeprefix('at most ').removesuffix(' per user')}"
    return method.name.replace(" ", "<br>", 1)


def plot_caps(solution: RegressionSolution, target: ErrorTarget) -> Plot:
    """Plot the error against the cap, in its parts, with the best weights as a level and both ends marked."""
    caps, best_weights_error = solution.caps, solution.methods["ours"].error(target)
    assert caps is not None
    is_coefficients, best_index = target is ErrorTarget.COEFFICIENTS, caps.find_best(target)
    noise_variances = caps.privacy_variance if is_coefficients else caps.prediction_noises
    total_variances = caps.get_errors(target)
    part_name = "sampling error" if is_coefficients else "error before noise"
    # NaN where a draw lost rank.
    error_parts = np.sqrt(
        [total_variances, np.maximum(total_variances - noise_variances, 0.0), noise_variances]
    )
    (total_errors, errors_before_noise, noise_errors), x = error_parts, caps.caps.astype(np.float64)
    best_error, last_error = float(total_errors[best_index]), float(total_errors[-1])
    limits, error_limits = (
        (1.0, max(float(x[-1]), 2.0)),
        fit_limits(np.append(total_errors, best_weights_error), error_parts),
    )
    return Plot(
        CAP_KEYS[target],
        "Error against the bound" if is_coefficients else "Error of predictions against the bound",
        f"The best weights have an error of {wording.number(best_weights_error)}; the best bound has, at "
        f"{wording.counted(int(x[best_index]), 'row')} per user, {wording.number(best_error)}; no bound has "
        f"{wording.number(last_error)}.",
        Axis("bound", "rows per user", limits, title="Bound (rows per user)", number_format=","),
        build_error_axis(solution.unit, target, error_limits),
        (
            Curve("Bounded rows, total", x, total_errors, Style.CAP),
            Curve(
                f"Bounded rows, {part_name}", x, errors_before_noise, Style.SAMPLING, color_style=Style.CAP
            ),
            Curve("Bounded rows, privacy noise", x, noise_errors, Style.PRIVACY, color_style=Style.CAP),
            Curve(f"{OURS} (no bound)", limits, (best_weights_error, best_weights_error), Style.SMOOTH),
            Mark("Best bound", float(x[best_index]), best_error, Style.CAP),
            Mark("No bound", float(x[-1]), last_error, Style.ENTERED, "square"),
        ),
        solution.data.provenance,
        {
            "cap": caps.caps,
            "cap_error": total_errors,
            "cap_sampling_error" if is_coefficients else "cap_fit_error": errors_before_noise,
            "cap_privacy_noise": noise_errors,
            "ours_error": np.full(x.size, best_weights_error),
            "draws_without_estimate": caps.num_rank_deficient,
        },
    )


def plot_sweep(sweep: Mapping[str, FloatArray], solution: RegressionSolution) -> Plot:
    """Plot the error of the best weights, the best cap and no cap against ε; its file has the squares, too."""
    columns = {"epsilon": sweep["epsilon"]}
    for target, method in itertools.product(ErrorTarget, COLUMNS.values()):
        column_name = f"{method}_{target.value}"
        columns |= {column_name: np.sqrt(sweep[column_name]), f"{column_name}_squared": sweep[column_name]}
    columns["best_cap"], target_name = sweep["best_cap"], solution.target.value
    ratios = columns[f"best_cap_{target_name}"] / columns[f"ours_{target_name}"]
    items: list[Item] = [
        Curve(label, sweep["epsilon"], columns[f"{COLUMNS[method]}_{target_name}"], style, symbol=symbol)
        for method, label, style, symbol in study.METHODS
    ]
    return Plot(
        "regression-epsilon",
        "Error against ε",
        f"Against ε, the best bound's error is {wording.number(float(ratios.min()))} to "
        f"{wording.number(float(ratios.max()))} times that of the best weights.",
        Axis("privacy budget ε", "", (min(study.EPSILONS), max(study.EPSILONS))),
        build_error_axis(solution.unit, solution.target),
        (*items, Level("Your setting", solution.problem.epsilon, is_vertical=True)),
        solution.data.provenance,
        columns,
        height=HEIGHT,
    )


def plot_gap(steps: Sequence[Step], disclosure: Provenance) -> Plot:
    """Plot the relative gap between the best C so far and what none can go below, by iteration."""
    column_names = ("seconds", "variance", "lower_bound", "relative_gap", "entries")
    columns = {
        name: np.array([getattr(step, name) for step in steps], dtype=np.float64) for name in column_names
    }
    seconds, gaps = columns["seconds"], columns["relative_gap"]
    iterations, hover_column = np.arange(1.0, gaps.size + 1.0), ("seconds", seconds)
    curve = Curve(
        "Gap", iterations, np.maximum(gaps, 1e-12), Style.SMOOTH, symbol="circle", hover_number=hover_column
    )
    iterations_text = wording.counted(gaps.size, "iteration")
    alt = f"After {iterations_text} and {seconds[-1]:.2f} seconds the gap is {gaps[-1]:.1e}."
    x = linear_axis("iteration", (0.0, max(float(gaps.size), 9.0) + 1.0), number_format=",")
    y = Axis("proved gap to the best", "relative", (1e-12, 1.0), number_format=".1e", named_ticks=GAP_TICKS)
    return Plot(
        "regression-gap", "The gap closes", alt, x, y, [curve], disclosure, columns, height=GAP_HEIGHT
    )


METHODS = {
    "no bound": ("No bound", Style.ENTERED, "square-open"),
    "best bound": ("Best bound (one draw)", Style.CAP, "diamond-open"),
    "ours": (OURS, Style.SMOOTH, "circle"),
}


def tabulate_weights(sizes: IntArray, weights_by_method: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Tabulate the mean weight of a user of each size by method; sizes thinned to `MAX_POINTS` classes."""
    class_edges = np.unique(sizes).astype(np.float64)
    if class_edges.size > MAX_POINTS:
        class_edges = log_spaced(float(class_edges[0]), float(class_edges[-1]), MAX_POINTS)
    weight_columns = {f"{method.replace(' ', '_')}_user_weight": w for method, w in weights_by_method.items()}
    grouped_users = pd.DataFrame({"rows_of_user": sizes, "users": 1.0, **weight_columns}).groupby(
        np.searchsorted(class_edges, sizes, side="right")
    )
    class_table = grouped_users.mean().assign(users=grouped_users["users"].sum())
    return dict(zip(map(str, class_table), class_table.to_numpy().T, strict=True))


def plot_weights(solution: RegressionSolution) -> Plot:
    """Plot how much a user's labels weigh, against the user's rows; the heaviest user sets the noise."""
    problem, estimates = solution.problem, {"no bound": solution.no_cap}
    if solution.caps is not None:
        estimates["best bound"] = sample_limiting.draw_estimate(problem, solution.caps.max_contributions)
    estimates["ours"] = solution.best_estimate
    weights_by_method = {method: compute_user_weights(problem, c) for method, c in estimates.items()}
    columns = tabulate_weights(problem.whitened.sizes, weights_by_method)
    rows_of_user, _, *mean_weights = columns.values()
    low, high = fit_limits(np.concatenate(mean_weights))
    method_styles = [METHODS[method] for method in weights_by_method]
    points = [
        Points(name, rows_of_user, values, style, symbol=symbol)
        for (name, style, symbol), values in zip(method_styles, mean_weights, strict=True)
    ]
    alt = "With no bound the weight of a user grows with their rows; the best weights hold it at one level."
    x = Axis(
        "rows of the user", "rows per user", (1.0, max(float(rows_of_user.max()), 2.0)), number_format=",.3~g"
    )
    y = Axis("weight of a user, Σ |c|", "1 / unit of feature", (max(low, high / 1e6), high))
    title, disclosure = "Weight of a user, by their rows", solution.data.provenance
    return Plot("regression-weights", title, alt, x, y, points, disclosure, columns, height=HEIGHT)
