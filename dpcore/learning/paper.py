"""Figures 2 and 3 of Amin et al. 2019: curves over τ₀ for populations with p ∝ j^−(1+α), in the limit of many rows.

The paper prints neither α nor the constants of figure 3. Here the bias of proposition 1 counts once and C = 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcore.answer import Style, share_axis
from dpcore.answer.paper_figure import Claim, Line, MeansByLine, PaperFigure
from dpcore.answer.plot import Axis
from dpcore.contributions import FloatArray
from dpcore.learning import population
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import BIAS_FACTOR_IN_THEOREM_1
from dpcore.learning.parameters import LearningParameters

ALPHAS = (0.25, 0.5, 1.0, 2.0, 3.0)
FRACTIONS = tuple(float(f"{fraction:.4g}") for fraction in np.geomspace(1e-4, 1.0, 41))
"""τ₀ of the figures' points, ten in a decade."""
STATED_USERS_CUT = (2.0, 8.0)
"""Section 7: the fewest and the most users cut at the best τ₀."""


def _compute_uncapped_mass(problem: population.PopulationProblem, fraction: float) -> FloatArray:
    """Compute the share of the rows of users who lose none."""
    return problem.participation.compute_uncapped_mass(np.asarray(fraction))


def _count_users_cut(problem: population.PopulationProblem, fraction: float) -> FloatArray:
    """Count the users with more than a share τ₀ of the rows."""
    return population.compute_statistics(problem, fraction).users_capped


def _compute_costs(problem: population.PopulationProblem, fractions: float | FloatArray) -> FloatArray:
    """Compute bias (once, not twice as in theorem 1) plus privacy noise at each τ₀."""
    error_parts = population.compute_error_parts(problem, fractions)
    return np.asarray(error_parts.twice_bias / BIAS_FACTOR_IN_THEOREM_1 + error_parts.privacy)


def _list_users_cut_at_best(figure_columns: MeansByLine) -> list[float]:
    """Return the users cut in figure 3 (b) at the point where figure 3 (a) is lowest, one number for each α."""
    fractions = np.array(FRACTIONS)
    return [
        float(figure_columns[line_key][np.argmin(_compute_costs(problem, fractions))])
        for line_key, problem in _PROBLEMS_BY_KEY.items()
    ]


def _build_problem(alpha: float) -> population.PopulationProblem:
    """Build the problem of figure 3 for one α: ε = 1, C = 1, δ = 0.05, form (ii) of proposition 1, many rows."""
    parameters = LearningParameters(1.0, alpha=alpha, privacy_constant=1.0, bias=BiasTerm.LOG_KEPT)
    return parameters.build_population_problem(None)


_PROBLEMS_BY_KEY = {f"alpha_{alpha:g}": _build_problem(alpha) for alpha in ALPHAS}
_STYLES_OF_ALPHAS = (Style.TOTAL, Style.BIAS, Style.SAMPLING, Style.PRIVACY, Style.CUSTOMARY)
_LINES_OF_ALPHAS = tuple(
    Line(key, f"α = {alpha:g}", style)
    for alpha, key, style in zip(ALPHAS, _PROBLEMS_BY_KEY, _STYLES_OF_ALPHAS, strict=True)
)
_X_AXIS = Axis("τ₀, the bound as a share of all rows", limits=(1e-4, 1.0))


def _build_figure(
    letter: str,
    title: str,
    y_axis: Axis,
    compute_shown: Callable[[population.PopulationProblem, float], FloatArray],
    claim: Claim,
    constants_sentence: str = "",
    difference_note: str = "",
) -> PaperFigure:
    """Build one of the figures over τ₀; ``letter`` is what follows its number's hyphen in the key: 2, 3a or 3b.

    ``compute_shown`` computes what a curve shows at one τ₀.
    """

    def run_once(fraction: float, _seed: int) -> dict[str, float]:
        """Compute what the figure shows, by key of a line, one for each α; the seed is not used."""
        return {
            line_key: float(compute_shown(problem, fraction))
            for line_key, problem in _PROBLEMS_BY_KEY.items()
        }

    number_text = letter if letter == "2" else f"{letter[0]} ({letter[1]})"
    return PaperFigure(
        f"amin-figure-{letter}",
        "Amin et al. 2019",
        f"Figure {number_text}",
        title,
        f"Many rows, and five α of our own, as the paper prints none.{constants_sentence}",
        "Bias curves over τ₀",
        f"Figure {letter[0]}",
        _X_AXIS,
        y_axis,
        FRACTIONS,
        _LINES_OF_ALPHAS,
        run_once,
        1,
        difference_note,
        ignores_seed=True,
        claims=(claim,),
    )


_CONSTANTS_SENTENCE = (
    " ε = 1, C = 1, δ = 0.05, and the bias of proposition 1 once: the paper gives no constants."
)

FIGURES = (
    _build_figure(
        "2",
        "share of the rows of users who lose none",
        share_axis("rows of users who lose none, of all", (0.0, 1.02)),
        _compute_uncapped_mass,
        Claim(
            "The more evenly users contribute, the smaller the τ₀ at which most rows are of users who lose none",
            "section 6",
            lambda c: bool(np.all(np.diff([np.argmax(c[key] > 0.5) for key in _PROBLEMS_BY_KEY]) >= 0)),
        ),
    ),
    _build_figure(
        "3a",
        "bias plus privacy noise of a learner",
        Axis("bias plus privacy noise", limits=(0.1, 100.0)),
        _compute_costs,
        Claim(
            "The minimum of each curve is significantly above zero",
            "section 7",
            lambda c: all(float(np.min(c[key])) > 0.1 for key in _PROBLEMS_BY_KEY),
        ),
        _CONSTANTS_SENTENCE,
        "Where a curve lies above 1, the bound promises nothing, as losses lie in [0, 1].",
    ),
    _build_figure(
        "3b",
        "users who lose rows",
        Axis("users who lose rows", limits=(0.9, 1000.0)),
        _count_users_cut,
        Claim(
            "At the best τ₀, 2 to 8 users lose rows",
            "section 7",
            lambda c: all(
                STATED_USERS_CUT[0] <= users_cut <= STATED_USERS_CUT[1]
                for users_cut in _list_users_cut_at_best(c)
            ),
        ),
        _CONSTANTS_SENTENCE,
        "At the exact best τ₀ 2 to 6 users lose rows; with the bias twice, as in theorem 1, 1 to 4.",
    ),
)
