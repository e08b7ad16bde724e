"""Figures 1 to 3 and table 1 of Epasto et al. 2020: private linear regression on generated data."""

from __future__ import annotations

import functools

import numpy as np

from dpcore.answer import Axis, Style, linear_axis
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.data.samples import RegressionRows, simulate_drugs, simulate_news
from dpcore.regression import sample_limiting, study
from dpcore.regression.parameters import RegressionGenerator
from dpcore.regression.prediction import ordinary_residual_variance
from dpcore.regression.problem import RegressionProblem

PAPER = "Epasto et al. 2020"
EXPONENT, ROWS, EPSILON = 1.5, 3000, 1.0
"""The paper's α, n and ε where it does not vary them."""
EPSILONS = (1.0, 2.0, 3.0)
ROUNDS = 10
"""Data sets: the paper repeats its experiments 10 times."""
DRAWS = 10
"""Draws of a cap's rows over which the expectation is taken; over noise it is exact."""
DRUGS = {"weights": (3.1, 2.5, 2.3), "best_bound": (24.8, 7.7, 4.5), "no_bound": (95.4, 25.2, 12.4)}
NEWS = {
    "weights": (1696.3, 440.1, 166.2),
    "best_bound": (96344.4, 24110.0, 10648.3),
    "no_bound": (4862670.7, 1201568.9, 550989.2),
}
"""Table 1 as printed, at the three ε."""
METHODS = (
    ("no_bound", "No bound", Style.ENTERED, "square"),
    ("best_bound", "Best bound", Style.CAP, "diamond"),
    ("weights", "Best weights", Style.SMOOTH, "circle"),
)
DATA = (
    "Generated as the paper does: 10 features, 5 of them with a coefficient, label noise 20, rows per user by "
    "Zipf's law. "
    "σ² is the generator's, and B the range of its labels. 10 data sets; over noise the expectation is exact."
)
STAND_IN = (
    "These are made-up rows with the paper's numbers of rows and users, and its largest user; 10 data sets."
)
OPEN = (
    "The paper draws bars and prints no numbers. It says that weights have always less error, by orders of "
    "magnitude where "
    "no bound is set; so have ours. How many of the 10 features have a coefficient, and B, it leaves open."
)


@functools.lru_cache(maxsize=64)
def errors(rows: int, exponent: float, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Return the expected squared error of the prediction, label unit squared: no bound, best bound, best weights."""
    generator = RegressionGenerator(num_rows=rows, exponent=exponent, seed=seed + 1)
    sweep = study.over_generated([generator], [0.0], epsilon, 1)
    return float(sweep.no_cap[1][0]), float(sweep.cap[1][0]), float(sweep.best_weights[1][0])


def errors_on_rows(rows: RegressionRows, epsilon: float) -> dict[str, float]:
    """Return the expected squared error of the prediction by each method, label unit squared.

    B is the largest label, and σ² that of ordinary least squares: both are read off data that are public.

    Raises:
        InvalidInput: Features are linearly dependent.
    """
    variance = ordinary_residual_variance(rows.features, rows.labels)
    value_bound = float(np.abs(rows.labels).max())
    problem = RegressionProblem(rows.features, rows.users, epsilon, value_bound, variance)
    draws = sample_limiting.study(problem, sample_limiting.CapOptions(draws=DRAWS), rows.labels)
    sweep = study.over_epsilon(problem, draws, rows.labels, (epsilon,))
    return _name_errors((float(sweep.no_cap[1, 0]), float(sweep.cap[1, 0]), float(sweep.best_weights[1, 0])))


def _name_errors(errors: tuple[float, float, float]) -> dict[str, float]:
    return {key: error for (key, *_), error in zip(METHODS, errors, strict=True)}


def _by_epsilon(rows: float, seed: int) -> dict[str, float]:
    return {
        f"{key}_{epsilon:g}": error
        for epsilon in EPSILONS
        for key, error in _name_errors(errors(int(rows), EXPONENT, epsilon, seed)).items()
    }


ERROR = Axis("average squared error of the prediction", "label unit squared", number_format=".3g")
ROW_TICKS = tuple((float(n), f"{n:,}") for n in study.ROWS)
OVER_ROWS = linear_axis("rows n", (500.0, 3100.0), number_format=",", named_ticks=ROW_TICKS)
EXPONENT_TITLE = "Exponent α of rows per user (smaller: more uneven)"
OVER_EXPONENTS = linear_axis("exponent α of rows per user", (1.05, 2.05), title=EXPONENT_TITLE)
OVER_EPSILON = Axis("privacy budget ε", "", (0.9, 3.3), named_ticks=tuple((e, f"{e:g}") for e in EPSILONS))
LINES = tuple(Line(*method) for method in METHODS)
DASHES = dict(zip(EPSILONS, ("solid", "dash", "dashdot"), strict=True))

FIGURES = (
    PaperFigure(
        "epasto-figure-1",
        PAPER,
        "Figure 1",
        "error over the number of rows",
        f"α = {EXPONENT}, ε = {EPSILON:g}. {DATA}",
        "Regression",
        "Figures 1 and 2",
        OVER_ROWS,
        ERROR,
        tuple(map(float, study.ROWS)),
        LINES,
        lambda rows, seed: _name_errors(errors(int(rows), EXPONENT, EPSILON, seed)),
        ROUNDS,
        OPEN,
    ),
    PaperFigure(
        "epasto-figure-2",
        PAPER,
        "Figure 2",
        "error over the inequality of users",
        f"n = {ROWS:,}, ε = {EPSILON:g}. {DATA}",
        "Regression",
        "Figures 1 and 2",
        OVER_EXPONENTS,
        ERROR,
        study.EXPONENTS,
        LINES,
        lambda exponent, seed: _name_errors(errors(ROWS, exponent, EPSILON, seed)),
        ROUNDS,
        f"{OPEN} Its caption names α = 1.5, which is what it varies.",
    ),
    PaperFigure(
        "epasto-figure-3",
        PAPER,
        "Figure 3",
        "figure 1 at three ε",
        f"α = {EXPONENT}, ε = 1, 2 and 3. {DATA}",
        "Regression",
        "Figures 1 and 2",
        OVER_ROWS,
        ERROR,
        tuple(map(float, study.ROWS)),
        tuple(
            Line(f"{key}_{epsilon:g}", f"{name}, ε = {epsilon:g}", style, symbol, DASHES[epsilon])
            for key, name, style, symbol in METHODS
            for epsilon in EPSILONS
        ),
        _by_epsilon,
        ROUNDS,
        OPEN,
    ),
    PaperFigure(
        "epasto-table-1-drugs",
        PAPER,
        "Table 1, drugs",
        "errors on drugs",
        f"The paper takes 3,107 reviews of 502 drugs, which may not be passed on. {STAND_IN}",
        "Regression",
        "Figures 1 and 2",
        OVER_EPSILON,
        ERROR,
        EPSILONS,
        tuple(Line(*method, paper_values=DRUGS[method[0]]) for method in METHODS),
        lambda epsilon, seed: errors_on_rows(simulate_drugs(seed), epsilon),
        ROUNDS,
        "Other data, so that only directions can be compared: weights err least, and by far where no bound is set.",
    ),
    PaperFigure(
        "epasto-table-1-news",
        PAPER,
        "Table 1, news",
        "errors on news",
        f"The paper takes 3,452 posts of 297 news sources, which do not come with the app. {STAND_IN}",
        "Regression",
        "Figures 1 and 2",
        OVER_EPSILON,
        ERROR,
        EPSILONS,
        tuple(Line(*method, paper_values=NEWS[method[0]]) for method in METHODS),
        lambda epsilon, seed: errors_on_rows(simulate_news(seed), epsilon),
        ROUNDS,
        "Other data, so that only directions can be compared: weights err least, by a factor of more than a thousand "
        "where no bound is set.",
    ),
)
