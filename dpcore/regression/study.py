"""The errors of the best weights and of caps over ε; the figures and the table of the paper."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from dpcore.answer.paper_figure import Claim, Line, PaperFigure, all_hold, is_falling, is_ordered
from dpcore.answer.plot import Axis, Style, linear_axis
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.data.samples import RegressionRows, simulate_news
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.estimate import (
    ErrorTarget,
    compute_squared_prediction_error,
    estimate_residual_variance,
)
from dpcore.regression.parameters import RegressionGenerator
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapDraws

SWEPT_EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
NUM_ROWS_VALUES = (600.0, 1200.0, 1800.0, 2400.0, 3000.0)
"""The paper's range of figure 1."""
EXPONENTS = (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0)
"""The paper's range of figure 2, 1 < alpha <= 2."""
SWEEP_TOLERANCE = 1e-6
"""Relative gap of a point of a curve."""


def describe_stop(epsilon_sweep: Mapping[str, FloatArray]) -> str:
    """Write how many of the points `sweep_epsilon` computed before it was stopped; "" if all."""
    num_points = epsilon_sweep["epsilon"].size
    return (
        ""
        if num_points == len(SWEPT_EPSILONS)
        else f"Stopped after {num_points} of {len(SWEPT_EPSILONS)} points."
    )


def sweep_epsilon(
    problem: RegressionProblem,
    cap_draws: CapDraws,
    labels: FloatArray,
    epsilons: Sequence[float] = SWEPT_EPSILONS,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> dict[str, FloatArray]:
    """Compute the errors of best weights, best cap and no cap at several epsilons.

    Args:
        problem: The problem; its epsilon is not used.
        cap_draws: At least one draw of caps on the same features and owners, with prediction errors.
        labels: y, shape (num_rows,), as they enter the release.
        epsilons: To solve at.
        progress: Told the share done.
        should_stop: Asked often; the values finished by then are returned.

    Returns:
        Columns of equal length: the values of ``epsilon`` that were finished, and
        for ``ours``, ``best_cap`` and ``no_cap`` the total variance of the coefficients, (label unit / feature unit)^2,
        and the expected squared error of the prediction, label unit squared: ``ours_coefficients``. The error of a cap
        is that of the cap that is best for it, in expectation over draws; ``best_cap`` has the least variance. ``gap``
        is the relative gap of the best weights to the lower bound.

    Raises:
        InvalidInput: An epsilon is not above 0.
    """
    values_per_epsilon: list[dict[str, float]] = []
    for epsilon in epsilons:
        epsilon_problem = problem.with_settings(epsilon, problem.value_bound, problem.residual_variance)
        estimate = working_set.solve(epsilon_problem, SWEEP_TOLERANCE, should_stop=should_stop)
        if should_stop():
            break
        cap_curve = sample_limiting.average_draws(epsilon_problem, cap_draws)
        best_prediction_index = cap_curve.find_best_index(ErrorTarget.PREDICTIONS)
        values_by_column = {
            "epsilon": epsilon,
            "ours_coefficients": estimate.variance,
            "ours_predictions": compute_squared_prediction_error(epsilon_problem, estimate, labels),
            "best_cap_coefficients": float(cap_curve.variances[cap_curve.best_index]),
            "best_cap_predictions": float(cap_curve.squared_prediction_errors[best_prediction_index]),
            "no_cap_coefficients": float(cap_curve.variances[-1]),
            "no_cap_predictions": float(cap_curve.squared_prediction_errors[-1]),
            "best_cap": cap_curve.max_contributions,
            "gap": estimate.certificate.relative_gap,
        }
        values_per_epsilon.append(values_by_column)
        progress(len(values_per_epsilon) / len(epsilons))
    column_names = values_per_epsilon[0] if values_per_epsilon else ("epsilon",)
    return {
        name: np.array(
            [values_by_column[name] for values_by_column in values_per_epsilon],
            dtype=np.float64,
        )
        for name in column_names
    }


PAPER_EXPONENT, PAPER_ROWS, PAPER_EPSILON = 1.5, 3000, 1.0
"""The paper's α, n and ε where it does not vary them."""
PAPER_EPSILONS = (1.0, 2.0, 3.0)
NUM_ROUNDS_OF_THE_PAPER = 10
"""Data sets of a figure, as in the paper."""
NUM_DRAWS_PER_CAP = 10
"""Draws of a cap's rows that are averaged."""
STATED_DRUG_ERRORS = {
    "weights": (3.1, 2.5, 2.3),
    "best_bound": (24.8, 7.7, 4.5),
    "no_bound": (95.4, 25.2, 12.4),
}
STATED_NEWS_ERRORS = {
    "weights": (1696.3, 440.1, 166.2),
    "best_bound": (96344.4, 24110.0, 10648.3),
    "no_bound": (4862670.7, 1201568.9, 550989.2),
}
"""Table 1 as printed, at the three ε."""
METHOD_LINES = (
    ("no_bound", "No bound", Style.ENTERED, "square"),
    ("best_bound", "Best bound", Style.CAP, "triangle-up"),
    ("weights", "Best weights", Style.SMOOTH, "circle"),
)
PREFIX_BY_METHOD = {"no_bound": "no_cap", "best_bound": "best_cap", "weights": "ours"}
"""First words of a sweep's columns, by the keys of `METHOD_LINES`."""
DATA_NOTE = (
    "Generated as in the paper: 10 features, 5 of them with a coefficient, label noise 20, rows per user by Zipf's "
    "law, each number of users rounded. σ² is the generator's, B the range of its labels. 10 data sets; over noise the "
    "expectation is exact."
)
READING_NOTE = (
    "A column of ones is added, and labels are counted from the least, so that B is their range. Over noise the "
    "expectation is exact."
)
OPEN_NOTE = (
    "As in the paper, weights always have less error. It leaves open how many of the 10 features have a coefficient, "
    "and B."
)


@functools.lru_cache(maxsize=64)
def compute_errors(num_rows: float, exponent: float, epsilon: float, seed: int) -> dict[str, float]:
    """Compute the expected squared error of predictions on generated data, by method, label unit squared.

    σ² is the generator's own and B the range of the generated labels.

    Source: Epasto et al. 2020, figures 1 to 3 (which average 10 draws of noise; here its expectation is exact).
    """
    data_generator = RegressionGenerator(num_rows=int(num_rows), exponent=exponent, seed=seed + 1)
    generated_table, residual_variance = data_generator.generate(), data_generator.label_noise**2
    value_bound = float(np.ptp(generated_table.labels))
    problem = RegressionProblem(
        generated_table.features, generated_table.user_codes, epsilon, value_bound, residual_variance
    )
    return _compare_predictions(problem, generated_table.labels)


def compute_errors_on_rows(rows: RegressionRows, epsilon: float) -> dict[str, float]:
    """Compute for each method the expected squared error of its predictions on these rows, in squared label units.

    A column of ones is added, and the smallest label is subtracted from all. B is the largest label then, and σ² the
    residual variance of ordinary least squares; both are read off the data, which are public. The paper does not say
    so, but other readings do not give its numbers.

    Raises:
        InvalidInput: Features are linearly dependent.

    Source: Epasto et al. 2020, table 1.
    """
    features, labels = rows.add_intercept().features, rows.labels - rows.labels.min()
    residual_variance = estimate_residual_variance(features, labels)
    problem = RegressionProblem(features, rows.users, epsilon, float(labels.max()), residual_variance)
    return _compare_predictions(problem, labels)


def _compare_predictions(problem: RegressionProblem, labels: FloatArray) -> dict[str, float]:
    """Compute the expected squared error of predictions at the problem's epsilon, by the keys of `METHOD_LINES`."""
    cap_draws = sample_limiting.try_caps(problem, labels, NUM_DRAWS_PER_CAP)
    epsilon_sweep = sweep_epsilon(problem, cap_draws, labels, (problem.epsilon,))
    return {
        method_key: float(epsilon_sweep[f"{column_prefix}_predictions"][0])
        for method_key, column_prefix in PREFIX_BY_METHOD.items()
    }


def _compute_at_epsilons(num_rows: float, seed: int) -> dict[str, float]:
    """Compute the errors of `compute_errors` at all `PAPER_EPSILONS`; keys are method and epsilon, as ``weights_1``."""
    return {
        f"{method_key}_{epsilon:g}": error
        for epsilon in PAPER_EPSILONS
        for method_key, error in compute_errors(num_rows, PAPER_EXPONENT, epsilon, seed).items()
    }


ERROR_AXIS = Axis("average squared error of the prediction", "label unit squared", number_format=".3g")
ROW_TICKS = tuple((n, f"{n:,.0f}") for n in NUM_ROWS_VALUES)
ROWS_AXIS = linear_axis("rows n", (500.0, 3100.0), number_format=",", named_ticks=ROW_TICKS)
EXPONENT_TITLE = "Exponent α of rows per user (smaller: more uneven)"
EXPONENT_AXIS = linear_axis("exponent α of rows per user", (1.05, 2.05), title=EXPONENT_TITLE)
EPSILON_TICKS = tuple((e, f"{e:g}") for e in PAPER_EPSILONS)
EPSILON_AXIS = Axis("privacy budget ε", "", (0.9, 3.3), named_ticks=EPSILON_TICKS)
DASH_BY_EPSILON = dict(zip(PAPER_EPSILONS, ("solid", "dash", "dashdot"), strict=True))

CLAIM_QUOTE = "Our method always has lower error, and the best threshold less than all rows"
IS_IN_STATED_ORDER = is_ordered("weights", "best_bound", "no_bound")
LINE_KEYS_BY_METHOD = [[f"{key}_{epsilon:g}" for epsilon in PAPER_EPSILONS] for key in PREFIX_BY_METHOD]

TABLE_CLAIMS = (
    Claim("The loss decreases for increasing ε for all methods", "section 6", is_falling(*PREFIX_BY_METHOD)),
    Claim(
        "Our method has always significantly lower loss (by a third) than the best and the largest threshold",
        "section 6",
        all_hold(IS_IN_STATED_ORDER, lambda c: bool(np.all(c["weights"] <= c["best_bound"] / 1.5))),
    ),
)

build_figure = functools.partial(
    PaperFigure,
    paper_name="Epasto et al. 2020",
    page_title="Linear regression",
    tab_name="Figures 1 and 2",
    y=ERROR_AXIS,
    lines=tuple(Line(*line_fields) for line_fields in METHOD_LINES),
    num_runs=NUM_ROUNDS_OF_THE_PAPER,
    difference_note=OPEN_NOTE,
)


FIGURES = (
    build_figure(
        "epasto-figure-1",
        item_name="Figure 1",
        title="error over the number of rows",
        setting_text=f"α = {PAPER_EXPONENT}, ε = {PAPER_EPSILON:g}. {DATA_NOTE}",
        x=ROWS_AXIS,
        x_values=NUM_ROWS_VALUES,
        run_once=lambda rows, seed: compute_errors(rows, PAPER_EXPONENT, PAPER_EPSILON, seed),
        claims=(
            Claim(
                "The larger the number of samples, the lower the loss of all methods",
                "section 6",
                is_falling(*PREFIX_BY_METHOD),
            ),
            Claim(CLAIM_QUOTE, "section 6", IS_IN_STATED_ORDER),
            Claim(
                "The loss of all rows is up to orders of magnitude larger (100 times)",
                "section 6",
                lambda c: bool(np.max(c["no_bound"] / c["weights"]) >= 100.0),
            ),
        ),
    ),
    build_figure(
        "epasto-figure-2",
        item_name="Figure 2",
        title="error over the inequality of users",
        setting_text=f"n = {PAPER_ROWS:,}, ε = {PAPER_EPSILON:g}. {DATA_NOTE}",
        x=EXPONENT_AXIS,
        x_values=EXPONENTS,
        run_once=lambda exponent, seed: compute_errors(PAPER_ROWS, exponent, PAPER_EPSILON, seed),
        claims=(
            Claim(
                "Our method is comparatively better for low α (best threshold ÷ weights falls with α)",
                "section 6",
                lambda c: bool(np.all(np.diff(c["best_bound"] / c["weights"]) < 0.0)),
            ),
            Claim(CLAIM_QUOTE, "section 6", IS_IN_STATED_ORDER),
        ),
        difference_note=f"{OPEN_NOTE} Its caption names α = 1.5, which is what it varies.",
    ),
    build_figure(
        "epasto-figure-3",
        item_name="Figure 3",
        title="figure 1 at three ε",
        setting_text=f"α = {PAPER_EXPONENT}, ε = 1, 2 and 3. {DATA_NOTE}",
        x=ROWS_AXIS,
        x_values=NUM_ROWS_VALUES,
        lines=tuple(
            Line(f"{key}_{epsilon:g}", f"{name}, ε = {epsilon:g}", style, symbol, DASH_BY_EPSILON[epsilon])
            for key, name, style, symbol in METHOD_LINES
            for epsilon in PAPER_EPSILONS
        ),
        run_once=_compute_at_epsilons,
        claims=(
            Claim(
                "With higher ε all methods improve",
                "appendix E.1.3",
                all_hold(*(is_ordered(*reversed(keys)) for keys in LINE_KEYS_BY_METHOD)),
            ),
            Claim(
                "Our method has lower loss at every ε",
                "appendix E.1.3",
                all_hold(*(is_ordered(*keys) for keys in zip(*reversed(LINE_KEYS_BY_METHOD), strict=True))),
            ),
        ),
    ),
    build_figure(
        "epasto-table-1-drugs",
        item_name="Table 1, drugs",
        title="errors on drugs",
        setting_text="The paper's own data: 3,107 reviews of 502 drugs. The first level of both properties is dropped. "
        f"{READING_NOTE}",
        x=EPSILON_AXIS,
        x_values=PAPER_EPSILONS,
        lines=tuple(Line(*fields, paper_values=STATED_DRUG_ERRORS[fields[0]]) for fields in METHOD_LINES),
        run_once=None,
        num_runs=1,
        difference_note="The paper averages ten draws of noise; ours is their expectation. It names neither the column "
        "of ones nor the range of labels: only with both do all nine numbers come out.",
        ignores_seed=True,
        claims=TABLE_CLAIMS,
    ),
    build_figure(
        "epasto-table-1-news",
        item_name="Table 1, news",
        title="errors on news",
        setting_text="The paper takes 3,452 posts of 297 news sources, which the app lacks. These are made-up rows of "
        f"as many users; 10 data sets. {READING_NOTE}",
        x=EPSILON_AXIS,
        x_values=PAPER_EPSILONS,
        lines=tuple(Line(*fields, paper_values=STATED_NEWS_ERRORS[fields[0]]) for fields in METHOD_LINES),
        run_once=lambda epsilon, seed: compute_errors_on_rows(simulate_news(seed), epsilon),
        difference_note="Other data, so that only directions can be compared. `make paper-figures DATA=folder` finds "
        "the paper's file in a folder by its 3,452 rows of 297 sources, and computes the table on it.",
        claims=TABLE_CLAIMS,
    ),
)
