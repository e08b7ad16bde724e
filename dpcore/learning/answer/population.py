"""A learner under a cap on a population instead of data: figures 2 and 3 of the paper, and the cost of privacy.

The solution, its columns and its sentences are public, as they are computed from parameters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore.common import wording
from dpcore.contributions import FloatArray, log_spaced
from dpcore.learning import population
from dpcore.learning.optimal_cap import LearningCap
from dpcore.learning.parameters import LearningParameters
from dpcore.learning.participation import Draws, PowerLaw

FAMILY = (0.25, 0.5, 1.0, 2.0, 3.0)
"""Values of alpha to compare with; the paper does not give its own."""
PAPER_EPSILON = 1.0
POINTS = 160
FRACTIONS = (1e-6, 1.0)
"""Range of tau_0 in figure 2."""


@dataclass(frozen=True)
class PopulationSolution:
    """Figure 3 for one alpha and n.

    Attributes:
        parameters: What was entered.
        columns: The curves over tau_0, ascending, in a sample of n rows and in the limit of many rows.
        best: Best tau_0 in a sample of n rows.
        capped_at_best: Expected number of users capped there.
        family: For an epsilon, the best tau_0 in the limit for every alpha of `FAMILY`.
    """

    parameters: LearningParameters
    columns: dict[str, FloatArray]
    best: LearningCap
    capped_at_best: float
    family: dict[float, tuple[LearningCap, ...]]


def solve(parameters: LearningParameters) -> PopulationSolution:
    """Find the best share for a sample and in the limit, and compute the curves of figure 3."""
    sample_problem, limit_problem = (
        parameters.population(parameters.population_rows),
        parameters.population(None),
    )
    best = population.find_best_fraction(sample_problem)
    tau_0 = log_spaced(1.0 / parameters.population_rows, 1.0, POINTS, extra=(best.fraction,))
    columns = {"tau_0": tau_0}
    for problem, prefix, average in ((sample_problem, "", "expected_"), (limit_problem, "limit_", "limit_")):
        statistics, parts = (
            population.compute_statistics(problem, tau_0),
            population.compute_error_parts(problem, tau_0),
        )
        columns |= {
            f"{average}kept_share": statistics.kept_share,
            f"{prefix}bias_twice": parts.bias,
            f"{prefix}privacy_noise": parts.privacy,
            f"{average}users_capped": statistics.users_capped,
        }
    return PopulationSolution(
        parameters=parameters,
        columns=columns,
        best=best,
        capped_at_best=float(population.compute_statistics(sample_problem, best.fraction).users_capped),
        family={
            epsilon: tuple(
                population.find_best_fraction(
                    replace(limit_problem, epsilon=epsilon, participation=PowerLaw(alpha))
                )
                for alpha in FAMILY
            )
            for epsilon in (parameters.epsilon, PAPER_EPSILON)
        },
    )


def list_mass_columns(alpha: float) -> dict[str, FloatArray]:
    """List the mass of uncapped users over tau_0, for the chosen alpha and for `FAMILY`, as columns."""
    law, family = PowerLaw(alpha), {other: PowerLaw(other) for other in FAMILY}
    # The heaviest users' shares, where the mass jumps, are among the points.
    jumps = np.concatenate([one.probability(np.arange(1.0, 31.0)) for one in (law, *family.values())])
    tau_0 = log_spaced(*FRACTIONS, 240, extra=jumps[(FRACTIONS[0] < jumps) & (jumps < 1.0)].tolist())
    return {
        "tau_0": tau_0,
        "uncapped_mass": law.uncapped_mass(tau_0),
        "kept_share_in_the_limit": law.kept_share(tau_0),
        **{
            f"uncapped_mass_alpha_{wording.digits(other)}": one.uncapped_mass(tau_0)
            for other, one in family.items()
        },
    }


def list_simulated_columns(solution: PopulationSolution, draws: Draws) -> dict[str, FloatArray]:
    """List the simulated points as columns."""
    problem = solution.parameters.population(solution.parameters.population_rows)
    parts = population.compute_simulated_error_parts(problem, draws)
    return {
        "tau_0": draws.fractions,
        "kept_share": draws.kept_share.mean(axis=0),
        "bias_plus_privacy": parts.bias + parts.privacy,
        "users_capped": draws.users_capped.mean(axis=0),
    }


def has_no_best(choice: LearningCap, smallest_fraction: float) -> bool:
    """Return True if ever smaller caps are ever better, as far as was searched."""
    return choice.fraction <= smallest_fraction


def describe_best(solution: PopulationSolution) -> str:
    """Describe the smallest sum of bias and noise, and at which share it is."""
    best, num_capped = solution.best, solution.capped_at_best
    if has_no_best(best, 1.0 / solution.parameters.population_rows):
        return (
            f"The smallest sum, {wording.number(best.total)}, is at one row per user: where users are alike, or noise "
            "outweighs all else, keeping more rows does not help."
        )
    return (
        f"The smallest sum is {wording.number(best.total)}, at τ₀ = {wording.number(best.fraction)} "
        f"({wording.counted(best.cap, 'row')} per user), where {wording.number(num_capped, 2)} "
        f"{wording.agreeing(num_capped, 'user is', 'users are')} expected to lose rows. {best.certificate.sentence}"
    )


def list_family_rows(solution: PopulationSolution) -> list[dict[str, str]]:
    """List the users capped at the optimum for several alpha, in the limit of many rows."""
    smallest_fraction = solution.parameters.population(None).smallest_fraction
    rows = []
    for i, alpha in enumerate(FAMILY):
        row = {"α": f"{wording.entered(alpha)}"}
        for epsilon, choices in solution.family.items():
            choice = choices[i]
            is_escaping, setting = has_no_best(choice, smallest_fraction), f"ε = {wording.entered(epsilon)}"
            row |= {
                f"Best τ₀, {setting}": "ever smaller" if is_escaping else wording.number(choice.fraction),
                f"Users who lose rows, {setting}": "–"
                if is_escaping
                else wording.number(choice.users_capped),
                f"Smallest sum, {setting}": (
                    "0" if is_escaping and choice.bias == 0.0 else wording.number(choice.total)
                ),
            }
        rows.append(row)
    return rows


def list_cost_columns(
    cost: population.CostOfPrivacy, parameters: LearningParameters
) -> dict[str, FloatArray]:
    """List the smallest bias plus privacy noise at each n, as columns."""
    rows = np.array(cost.num_rows, dtype=np.float64)
    log_term = parameters.vc_dimension * np.log(rows / parameters.failure_probability)
    attributes = {
        "smallest_sum": "total",
        "bias_twice": "bias",
        "privacy_noise": "privacy",
        "best_tau_0": "fraction",
        "cap_rows": "cap",
        "users_capped": "users_capped",
    }
    return {
        "num_rows": rows,
        **{
            column: np.array([getattr(choice, attribute) for choice in cost.best], dtype=np.float64)
            for column, attribute in attributes.items()
        },
        "floor": np.full(rows.shape, cost.limit.total),
        "finite_sample_without_a_cap": parameters.finite_sample_constant * np.sqrt(log_term / rows),
    }


def is_floor_zero(cost: population.CostOfPrivacy, parameters: LearningParameters) -> bool:
    """Return True if the floor is 0, users being alike."""
    return cost.limit.bias == 0.0 and has_no_best(cost.limit, parameters.population(None).smallest_fraction)


def describe_cost(cost: population.CostOfPrivacy, parameters: LearningParameters) -> str:
    """Describe how the smallest sum moves as rows are added, and why it flattens or vanishes."""
    if not cost.best:
        return "Stopped before the first n was done."
    course = (
        f"From n = {wording.number(cost.num_rows[0])} to n = {wording.number(cost.num_rows[-1])} the smallest sum "
        f"goes from {wording.number(cost.best[0].total)} to {wording.number(cost.best[-1].total)}"
    )
    if is_floor_zero(cost, parameters):
        return (
            f"{course} **and on to 0**: with Var(H) = 0 users are alike, so ever smaller shares cost no bias, and the "
            "noise goes with them. In no other case does the cost vanish."
        )
    return (
        f"{course}; it **flattens at {wording.number(cost.limit.total)}**, however many rows there are. The best τ₀ "
        f"tends to {wording.number(cost.limit.fraction)}, a constant share. A τ₀ that goes to 0 would make the noise "
        "vanish, but gives ever more users the same weight, so the bias grows. Without bias heavy users keep their "
        "constant share, and hiding that takes constant noise."
    )
