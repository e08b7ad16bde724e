"""Figure 3 of Amin et al. 2019: how few users the best bound of a learner cuts."""

from __future__ import annotations

from dpcore.answer import Style, linear_axis
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.learning import population
from dpcore.learning.parameters import LearningParameters

ALPHAS = (0.25, 0.5, 1.0, 2.0, 3.0)
CONSTANT = 3.0


def count_users_cut(alpha: float, _seed: int) -> dict[str, float]:
    """Compute how many users are above the best τ₀ in the limit of many rows, for ε = 1 and C = 3.

    The result is a dict with the one number ``cut``; the seed is not used.
    """
    parameters = LearningParameters(1.0, alpha=alpha, privacy_constant=CONSTANT)
    return {"cut": float(population.find_best_fraction(parameters.population_problem(None)).users_capped)}


FIGURES = (
    PaperFigure(
        "amin-figure-3",
        "Amin et al. 2019",
        "Figure 3 (b)",
        "users whose rows are cut at the best bound of a learner",
        f"ε = 1, many rows, C = {CONSTANT:g}, chosen to meet the paper's 2 to 8 users: it gives neither α nor "
        "constants.",
        "Bias curves over τ₀",
        "Figure 3",
        linear_axis("α of the population, p ∝ j^−(1+α)", (0.2, 3.2)),
        linear_axis("users who lose rows", (0.0, 10.0)),
        ALPHAS,
        (Line("cut", "Users cut, ours", Style.TOTAL),),
        count_users_cut,
        1,
        "With C = 100, which the page begins with, the best sum is above 1 and promises nothing.",
        ignores_seed=True,
        stated_range=(2.0, 8.0),
    ),
)
