"""Table 2 of Epasto et al. 2020: logistic regression by weights and by caps, at budgets that protect nobody."""

from __future__ import annotations

import functools

import numpy as np

from dpcore.answer import Axis, Style, linear_axis
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.data.samples import simulate_drugs
from dpcore.training import bassily
from dpcore.training.bassily import Reading, StepSize
from dpcore.training.losses import LossKind
from dpcore.training.rows import ClassifierRows
from dpcore.training.scores import compute_scores
from dpcore.training.weighting import Cell, Method

PAPER = "Epasto et al. 2020"
BOUNDS = (1.0, 2.0, 3.0, 4.0, 5.0)
NO_BOUND = BOUNDS[-1]
"""Stands for no bound."""
WEIGHTS = {
    30: (0.514, 0.557, 0.628, 0.700, 2.846),
    40: (0.433, 0.469, 0.510, 0.551, 2.611),
    50: (0.401, 0.416, 0.445, 0.472, 2.307),
}
CAPS = {
    30: (0.553, 0.580, 0.654, 0.725),
    40: (0.474, 0.472, 0.522, 0.553),
    50: (0.436, 0.423, 0.454, 0.464),
}
"""As printed, by ε; the last of the weights' is that of no bound."""
DASHES = {30: "solid", 40: "dash", 50: "dot"}
RUNS = 10
"""Runs of the algorithm behind one number; the paper has 50."""


def compute_losses(rows: ClassifierRows, reading: Reading, bound: float, seed: int) -> dict[str, float]:
    """Compute the losses of weights and caps at one bound and every ε: median, least and most over readings.

    Source: Epasto et al. 2020, appendix E.2.
    """
    means: dict[str, float] = {}
    for epsilon in WEIGHTS:
        for key, method in (("weights", Method.SMOOTH), ("cap", Method.CAP)):
            if bound == NO_BOUND and method is Method.CAP:
                continue
            cell = Cell(method, int(rows.sizes.max()) if bound == NO_BOUND else bound)
            theta = bassily.train_bassily(rows, cell, epsilon, seed, range(RUNS), reading)
            assert theta is not None  # Nobody stops it.
            means[f"{key}_{epsilon}"] = float(compute_scores(rows, LossKind.LOGISTIC, theta)[:, 0, 0].mean())
    return means


@functools.lru_cache(maxsize=4)
def _rows(seed: int) -> ClassifierRows:
    """Draw reviews; a rating above the median is 1."""
    rows = simulate_drugs(seed, users=40, rows=240, largest=30)
    signs = np.where(rows.labels > np.median(rows.labels), 1.0, -1.0)
    return ClassifierRows(rows.features, signs, rows.users)


FIGURES = (
    PaperFigure(
        "epasto-table-2",
        PAPER,
        "Table 2",
        "loss of a classifier over the bound on a user's rows",
        "ε = 30, 40 and 50 with δ = 0.1, which protects nobody. The paper takes the 3,107 reviews of 502 drugs "
        f"of its table 1, which may not be passed on. These are 240 made-up reviews of 40 drugs; all m² steps, "
        f"{RUNS} runs on each data set.",
        "Training",
        "The paper's learner",
        linear_axis(
            "bound on rows per user, h",
            (0.8, 5.2),
            named_ticks=((1.0, "1"), (2.0, "2"), (3.0, "3"), (4.0, "4"), (NO_BOUND, "none")),
        ),
        Axis("mean logistic loss on all rows", number_format=".3g"),
        BOUNDS,
        tuple(
            line
            for epsilon, dash in DASHES.items()
            for line in (
                Line(
                    f"cap_{epsilon}",
                    f"Cap, ε = {epsilon}",
                    Style.CAP,
                    "diamond",
                    dash,
                    (*CAPS[epsilon], None),
                ),
                Line(
                    f"weights_{epsilon}",
                    f"Weights, ε = {epsilon}",
                    Style.SMOOTH,
                    "circle",
                    dash,
                    WEIGHTS[epsilon],
                ),
            )
        ),
        lambda bound, seed: compute_losses(_rows(seed), Reading(StepSize.DIAMETER), bound, seed),
        10,
        "Other data and fewer users, so that only directions can be compared: small bounds are best, no bound is "
        "far worse, and between weights and caps there is little.",
    ),
)
