"""A learner under a cap on a population instead of data: figures 2 and 3 of the paper, and the cost of privacy.

The solution, its columns and its sentences are public, as they are computed from parameters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import learning
from dpcore.common import wording
from dpcore.contributions import FloatArray, log_spaced
from dpcore.learning import population
from dpcore.learning.bias_bounds import CapStatistics
from dpcore.learning.optimal_cap import ErrorParts, LearningCap
from dpcore.learning.participation import Draws, PowerLaw

FAMILY = (0.25, 0.5, 1.0, 2.0, 3.0)
"""Values of alpha to compare with; the paper does not give its own."""
PAPER_EPSILON = 1.0
POINTS, DRAWN_POINTS = 160, 40
FRACTIONS = (1e-6, 1.0)
"""Range of tau_0 in figure 2."""


@dataclass(frozen=True)
class PopulationSolution:
    """Figures 2 and 3 for one alpha and n.

    Attributes:
        parameters: What was entered.
        fractions: tau_0, ascending, shape (points,).
        statistics: Expected in a sample of n rows.
        error_parts: Bias and privacy noise there.
        best: Best tau_0 in a sample of n rows.
        capped_at_best: Expected number of users capped there.
        limit_statistics: In the limit of many rows.
        limit_error_parts: Bias and privacy noise there.
        family: Best tau_0 in the limit for every alpha of `FAMILY`.
        family_in_paper: The same at the paper's epsilon.
    """

    parameters: learning.LearningParameters
    fractions: FloatArray
    statistics: CapStatistics
    error_parts: ErrorParts
    best: LearningCap
    capped_at_best: float
    limit_statistics: CapStatistics
    limit_error_parts: ErrorParts
    family: tuple[LearningCap, ...]
    family_in_paper: tuple[LearningCap, ...]


def solve(parameters: learning.LearningParameters) -> PopulationSolution:
    """Find the best share for a sample and in the limit, and compute the curves of figure 3."""
    problem, limit = parameters.population(parameters.population_rows), parameters.population(None)
    best = population.best_fraction(problem)
    tau_0 = log_spaced(1.0 / parameters.population_rows, 1.0, POINTS, extra=(best.fraction,))
    return PopulationSolution(
        parameters=parameters,
        fractions=tau_0,
        statistics=population.statistics(problem, tau_0),
        error_parts=population.error_parts(problem, tau_0),
        best=best,
        capped_at_best=float(population.statistics(problem, best.fraction).users_capped),
        limit_statistics=population.statistics(limit, tau_0),
        limit_error_parts=population.error_parts(limit, tau_0),
        family=_family(parameters),
        family_in_paper=_family(replace(parameters, epsilon=PAPER_EPSILON)),
    )


def _family(parameters: learning.LearningParameters) -> tuple[LearningCap, ...]:
    return tuple(
        population.best_fraction(replace(parameters, alpha=alpha).population(None)) for alpha in FAMILY
    )


def list_mass_columns(alpha: float) -> dict[str, FloatArray]:
    """Return the mass of uncapped users over tau_0, for the chosen alpha and for `FAMILY`, as columns."""
    law = PowerLaw(alpha)
    # The heaviest users' shares, where the mass jumps, are among the points.
    jumps = np.concatenate([PowerLaw(a).probability(np.arange(1.0, 31.0)) for a in (alpha, *FAMILY)])
    tau_0 = log_spaced(*FRACTIONS, 240, extra=[float(p) for p in jumps if FRACTIONS[0] < p < 1.0])
    return {
        "tau_0": tau_0,
        "uncapped_mass": law.uncapped_mass(tau_0),
        "kept_share_in_the_limit": law.kept_share(tau_0),
        **{f"uncapped_mass_alpha_{wording.digits(a)}": PowerLaw(a).uncapped_mass(tau_0) for a in FAMILY},
    }


@dataclass(frozen=True)
class Simulated:
    """Samples drawn for figure 3.

    Attributes:
        fractions: tau_0, shape (q,).
        draws: What each cap keeps in each.
    """

    fractions: FloatArray
    draws: Draws

    @property
    def count(self) -> int:
        """Return the number of samples drawn."""
        return int(self.draws.kept_share.shape[0])


def drawn_fractions(rows: int) -> FloatArray:
    """Return the shares tau_0 at which simulated samples are evaluated, ascending."""
    return log_spaced(1.0 / rows, 1.0, DRAWN_POINTS)


def list_cost_columns(solution: PopulationSolution) -> dict[str, FloatArray]:
    """Return the curves of figure 3 as columns, without the simulation."""
    return {
        "tau_0": solution.fractions,
        "expected_kept_share": solution.statistics.kept_share,
        "bias_twice": solution.error_parts.bias,
        "privacy_noise": solution.error_parts.privacy,
        "expected_users_capped": solution.statistics.users_capped,
        "limit_kept_share": solution.limit_statistics.kept_share,
        "limit_bias_twice": solution.limit_error_parts.bias,
        "limit_privacy_noise": solution.limit_error_parts.privacy,
        "limit_users_capped": solution.limit_statistics.users_capped,
    }


def list_simulated_columns(solution: PopulationSolution, simulated: Simulated) -> dict[str, FloatArray]:
    """Return the simulated points as columns."""
    problem = solution.parameters.population(solution.parameters.population_rows)
    error_parts = population.simulated_error_parts(problem, simulated.fractions, simulated.draws)
    return {
        "tau_0": simulated.fractions,
        "kept_share": simulated.draws.kept_share.mean(axis=0),
        "bias_plus_privacy": error_parts.bias + error_parts.privacy,
        "users_capped": simulated.draws.users_capped.mean(axis=0),
    }


def has_no_best(choice: LearningCap, smallest: float) -> bool:
    """Return True if ever smaller caps are ever better, as far as was searched."""
    return choice.fraction <= smallest


def describe_best(solution: PopulationSolution) -> str:
    """Say how large the smallest sum of bias and noise is, and at which share."""
    best, problem = solution.best, solution.parameters.population(solution.parameters.population_rows)
    if has_no_best(best, problem.smallest_fraction):
        return (
            f"The smallest sum, {wording.number(best.total)}, is at one row per user: where users are alike, or noise "
            "outweighs all else, keeping more rows does not help."
        )
    return (
        f"The smallest sum is {wording.number(best.total)}, at τ₀ = {wording.number(best.fraction)} "
        f"({wording.counted(best.cap, 'row')} per user), where {wording.number(solution.capped_at_best, 2)} "
        f"{wording.agreeing(solution.capped_at_best, 'user is', 'users are')} expected to lose rows. "
        f"{best.certificate.sentence}"
    )


def list_family_rows(solution: PopulationSolution) -> list[dict[str, str]]:
    """Return the users capped at the optimum for several alpha, in the limit of many rows."""
    smallest = solution.parameters.population(None).smallest_fraction
    rows = []
    for alpha, own_choice, paper_choice in zip(
        FAMILY, solution.family, solution.family_in_paper, strict=True
    ):
        row = {"α": f"{wording.entered(alpha)}"}
        for epsilon, choice in ((solution.parameters.epsilon, own_choice), (PAPER_EPSILON, paper_choice)):
            has_none = has_no_best(choice, smallest)
            epsilon_label = f"ε = {wording.entered(epsilon)}"
            row[f"Best τ₀, {epsilon_label}"] = "ever smaller" if has_none else wording.number(choice.fraction)
            row[f"Users who lose rows, {epsilon_label}"] = (
                "–" if has_none else wording.number(choice.users_capped)
            )
            row[f"Smallest sum, {epsilon_label}"] = (
                "0" if has_none and choice.bias == 0.0 else wording.number(choice.total)
            )
        rows.append(row)
    return rows


def list_cost_over_rows(
    cost: population.CostOfPrivacy, parameters: learning.LearningParameters
) -> dict[str, FloatArray]:
    """Return the smallest bias plus privacy noise at each n, as columns."""
    rows = np.asarray(cost.num_rows, dtype=np.float64)
    return {
        "num_rows": rows,
        "smallest_sum": cost.totals,
        "bias_twice": np.array([choice.bias for choice in cost.best]),
        "privacy_noise": np.array([choice.privacy for choice in cost.best]),
        "best_tau_0": np.array([choice.fraction for choice in cost.best]),
        "cap_rows": np.array([choice.cap for choice in cost.best]),
        "users_capped": np.array([choice.users_capped for choice in cost.best], dtype=np.float64),
        "floor": np.full(rows.shape, cost.limit.total),
        "finite_sample_without_a_cap": _finite_sample_term(rows, parameters),
    }


def _finite_sample_term(rows: FloatArray, parameters: learning.LearningParameters) -> FloatArray:
    log_term = parameters.vc_dimension * np.log(rows / parameters.failure_probability)
    return np.asarray(parameters.finite_sample_constant * np.sqrt(log_term / rows))


def floor_vanishes(cost: population.CostOfPrivacy, parameters: learning.LearningParameters) -> bool:
    """Return True if the floor is 0, users being alike."""
    return cost.limit.bias == 0.0 and has_no_best(cost.limit, parameters.population(None).smallest_fraction)


def describe_cost_over_rows(cost: population.CostOfPrivacy, parameters: learning.LearningParameters) -> str:
    """Say how the smallest sum moves as rows are added, and why it flattens or vanishes."""
    if not cost.best:
        return "Stopped before the first n was done."
    first, final = cost.best[0], cost.best[-1]
    course = (
        f"From n = {wording.number(cost.num_rows[0])} to n = {wording.number(cost.num_rows[-1])} the smallest sum "
        f"goes from {wording.number(first.total)} to {wording.number(final.total)}"
    )
    if floor_vanishes(cost, parameters):
        return (
            f"{course} **and on to 0**: with Var(H) = 0 users are alike, so ever smaller shares cost no bias, and the "
            "noise goes with them. In no other case does the cost vanish."
        )
    return (
        f"{course}; it **flattens at {wording.number(cost.limit.total)}**, however many rows there are. The reason: "
        f"the best τ₀ tends to {wording.number(cost.limit.fraction)}, a constant share. To make the noise vanish τ₀ "
        "must go to 0, but then ever more users are cut down to the same weight and the bias grows; to make the "
        "bias vanish heavy users must keep their constant share, and hiding a constant share takes constant noise. "
        "More rows help with neither."
    )
