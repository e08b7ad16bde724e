"""Figures 1 to 3 and table 1 of Epasto et al. 2020: private linear regression on generated data, *drugs* and *news*."""

from __future__ import annotations

import functools

from dpcore.answer import Axis, Scale, Style
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.regression import paper_tables, study
from dpcore.regression.parameters import RegressionGenerator

PAPER = "Epasto et al. 2020"
EXPONENT, ROWS, EPSILON = 1.5, 3000, 1.0
"""The paper's α, n and ε where it does not vary them."""
EPSILONS = (1.0, 2.0, 3.0)
ROUNDS = 10
"""Data sets: the paper repeats its experiments 10 times."""
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
OPEN = (
    "The paper draws bars and prints no numbers. It says that weights have always less error, by orders of "
    "magnitude where "
    "no bound is set; so have ours. How many of the 10 features have a coefficient, and B, it leaves open."
)


@functools.lru_cache(maxsize=64)
def errors(rows: int, exponent: float, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Expected squared error of the prediction: no bound, best bound, best weights; label unit squared."""
    made = RegressionGenerator(num_rows=rows, exponent=exponent, seed=seed + 1)
    runs = study.over_generated([made], [0.0], epsilon, 1)
    return float(runs.no_cap[1][0]), float(runs.cap[1][0]), float(runs.ours[1][0])


def _named(found: tuple[float, float, float]) -> dict[str, float]:
    return {key: error for (key, *_), error in zip(METHODS, found, strict=True)}


def _by_epsilon(rows: float, seed: int) -> dict[str, float]:
    return {
        f"{key}_{epsilon:g}": error
        for epsilon in EPSILONS
        for key, error in _named(errors(int(rows), EXPONENT, epsilon, seed)).items()
    }


ERROR = Axis(
    "average squared error of the prediction", "label unit squared", (1.0, 10.0), number_format=".3g"
)
OVER_ROWS = Axis(
    "rows n",
    "",
    (500.0, 3100.0),
    Scale.LINEAR,
    number_format=",",
    named_ticks=tuple((float(n), f"{n:,}") for n in study.ROWS),
)
OVER_EXPONENTS = Axis(
    "exponent α of rows per user",
    "",
    (1.05, 2.05),
    Scale.LINEAR,
    "Exponent α of rows per user (smaller: more uneven)",
)
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
        lambda rows, seed: _named(errors(int(rows), EXPONENT, EPSILON, seed)),
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
        lambda exponent, seed: _named(errors(ROWS, exponent, EPSILON, seed)),
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
            Line(f"{key}_{epsilon:g}", f"{name}, ε = {epsilon:g}", look, symbol, DASHES[epsilon])
            for key, name, look, symbol in METHODS
            for epsilon in EPSILONS
        ),
        _by_epsilon,
        ROUNDS,
        OPEN,
    ),
    *paper_tables.FIGURES,
)
