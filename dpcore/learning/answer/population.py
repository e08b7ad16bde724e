"""A learner under a cap on a population instead of data: figures 2 and 3 of the paper, and the cost of privacy.

What is found, as columns and in words. Nothing here sees the data: all is public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import learning
from dpcore.common import wording
from dpcore.contributions import FloatArray, log_spaced
from dpcore.learning import population
from dpcore.learning.bias_bounds import CapStatistics
from dpcore.learning.error_bound import ErrorParts, LearningCap
from dpcore.learning.participation import PowerLaw
from dpcore.learning.participation_sample import Draws

FAMILY = (0.25, 0.5, 1.0, 2.0, 3.0)
"""Values of alpha to compare with; the paper does not give its own."""
PAPER_EPSILON = 1.0
POINTS, DRAWN_POINTS = 160, 40
FRACTIONS = (1e-6, 1.0)
"""Range of tau_0 in figure 2."""


@dataclass(frozen=True)
class PopulationFound:
    """Figures 2 and 3 for one alpha and n.

    Attributes:
        parameters: What was entered.
        fractions: tau_0, ascending, shape (points,).
        statistics: Expected in a sample of n rows.
        parts: Bias and privacy noise there.
        best: Best tau_0 in a sample of n rows.
        capped_at_best: Expected number of users capped there.
        limit_statistics: In the limit of many rows.
        limit_parts: Bias and privacy noise there.
        family: Best tau_0 in the limit for every alpha of `FAMILY`.
        family_in_paper: The same at the paper's epsilon.
    """

    parameters: learning.LearningParameters
    fractions: FloatArray
    statistics: CapStatistics
    parts: ErrorParts
    best: LearningCap
    capped_at_best: float
    limit_statistics: CapStatistics
    limit_parts: ErrorParts
    family: tuple[LearningCap, ...]
    family_in_paper: tuple[LearningCap, ...]


def find(parameters: learning.LearningParameters) -> PopulationFound:
    """Solve and evaluate."""
    here, limit = parameters.population(parameters.population_rows), parameters.population(None)
    best = population.best_fraction(here)
    tau_0 = log_spaced(1.0 / parameters.population_rows, 1.0, POINTS, extra=(best.fraction,))
    return PopulationFound(
        parameters=parameters,
        fractions=tau_0,
        statistics=population.statistics(here, tau_0),
        parts=population.error_parts(here, tau_0),
        best=best,
        capped_at_best=float(population.statistics(here, best.fraction).users_capped),
        limit_statistics=population.statistics(limit, tau_0),
        limit_parts=population.error_parts(limit, tau_0),
        family=_family(parameters),
        family_in_paper=_family(replace(parameters, epsilon=PAPER_EPSILON)),
    )


def _family(parameters: learning.LearningParameters) -> tuple[LearningCap, ...]:
    return tuple(
        population.best_fraction(replace(parameters, alpha=alpha).population(None)) for alpha in FAMILY
    )


def mass_columns(alpha: float) -> dict[str, FloatArray]:
    """Mass of uncapped users over tau_0, for the chosen alpha and for `FAMILY`."""
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
        """Samples drawn."""
        return int(self.draws.kept_share.shape[0])


def drawn_fractions(rows: int) -> FloatArray:
    """Where simulated samples are looked at."""
    return log_spaced(1.0 / rows, 1.0, DRAWN_POINTS)


def cost_columns(found: PopulationFound) -> dict[str, FloatArray]:
    """Return what figure 3 draws, as columns, without the simulation."""
    return {
        "tau_0": found.fractions,
        "expected_kept_share": found.statistics.kept_share,
        "bias_twice": found.parts.bias,
        "privacy_noise": found.parts.privacy,
        "expected_users_capped": found.statistics.users_capped,
        "limit_kept_share": found.limit_statistics.kept_share,
        "limit_bias_twice": found.limit_parts.bias,
        "limit_privacy_noise": found.limit_parts.privacy,
        "limit_users_capped": found.limit_statistics.users_capped,
    }


def simulated_columns(found: PopulationFound, simulated: Simulated) -> dict[str, FloatArray]:
    """Return the simulated points as columns."""
    here = found.parameters.population(found.parameters.population_rows)
    parts = population.simulated_error_parts(here, simulated.fractions, simulated.draws)
    return {
        "tau_0": simulated.fractions,
        "kept_share": simulated.draws.kept_share.mean(axis=0),
        "bias_plus_privacy": parts.bias + parts.privacy,
        "users_capped": simulated.draws.users_capped.mean(axis=0),
    }


def no_best(choice: LearningCap, smallest: float) -> bool:
    """Return True if ever smaller caps are ever better, as far as was searched."""
    return choice.fraction <= smallest


def best_sentence(found: PopulationFound) -> str:
    """Return the optimum in words."""
    best, here = found.best, found.parameters.population(found.parameters.population_rows)
    if no_best(best, here.smallest_fraction):
        return (
            f"The smallest sum, {wording.number(best.total)}, is at one row per user: where users are alike, or noise "
            "outweighs all else, keeping more rows does not help."
        )
    return (
        f"The smallest sum is {wording.number(best.total)}, at τ₀ = {wording.number(best.fraction)} "
        f"({wording.counted(best.cap, 'row')} per user), where {wording.number(found.capped_at_best, 2)} "
        f"{wording.agreeing(found.capped_at_best, 'user is', 'users are')} expected to lose rows. "
        f"{best.certificate.sentence}"
    )


def family_rows(found: PopulationFound) -> list[dict[str, str]]:
    """Return the users capped at the optimum for several alpha, in the limit of many rows."""
    smallest = found.parameters.population(None).smallest_fraction
    rows = []
    for alpha, own, paper in zip(FAMILY, found.family, found.family_in_paper, strict=True):
        row = {"α": f"{wording.entered(alpha)}"}
        for epsilon, choice in ((found.parameters.epsilon, own), (PAPER_EPSILON, paper)):
            none = no_best(choice, smallest)
            at = f"ε = {wording.entered(epsilon)}"
            row[f"Best τ₀, {at}"] = "ever smaller" if none else wording.number(choice.fraction)
            row[f"Users who lose rows, {at}"] = "–" if none else wording.number(choice.users_capped)
            row[f"Smallest sum, {at}"] = "0" if none and choice.bias == 0.0 else wording.number(choice.total)
        rows.append(row)
    return rows


def cost_over_rows_columns(
    cost: population.CostOfPrivacy, parameters: learning.LearningParameters
) -> dict[str, FloatArray]:
    """Return the smallest bias plus privacy noise at each n, as columns."""
    rows = np.asarray(cost.num_rows, dtype=np.float64)
    return {
        "num_rows": rows,
        "smallest_sum": cost.totals,
        "bias_twice": np.array([one.bias for one in cost.best]),
        "privacy_noise": np.array([one.privacy for one in cost.best]),
        "best_tau_0": np.array([one.fraction for one in cost.best]),
        "cap_rows": np.array([one.cap for one in cost.best]),
        "users_capped": np.array([one.users_capped for one in cost.best], dtype=np.float64),
        "floor": np.full(rows.shape, cost.limit.total),
        "finite_sample_without_a_cap": _finite(rows, parameters),
    }


def _finite(rows: FloatArray, parameters: learning.LearningParameters) -> FloatArray:
    log_term = parameters.vc_dimension * np.log(rows / parameters.failure_probability)
    return np.asarray(parameters.finite_sample_constant * np.sqrt(log_term / rows))


def floor_vanishes(cost: population.CostOfPrivacy, parameters: learning.LearningParameters) -> bool:
    """Return True if the floor is 0, users being alike."""
    return cost.limit.bias == 0.0 and no_best(cost.limit, parameters.population(None).smallest_fraction)


def cost_over_rows_sentence(cost: population.CostOfPrivacy, parameters: learning.LearningParameters) -> str:
    """Return the takeaway, and why."""
    if not cost.best:
        return "Stopped before the first n was done."
    first, last = cost.best[0], cost.best[-1]
    reached = (
        f"From n = {wording.number(cost.num_rows[0])} to n = {wording.number(cost.num_rows[-1])} the smallest sum "
        f"goes from {wording.number(first.total)} to {wording.number(last.total)}"
    )
    if floor_vanishes(cost, parameters):
        return (
            f"{reached} **and on to 0**: with Var(H) = 0 users are alike, so ever smaller shares cost no bias, and the "
            "noise goes with them. In no other case does the cost vanish."
        )
    return (
        f"{reached}; it **flattens at {wording.number(cost.limit.total)}**, however many rows there are. The reason: "
        f"the best τ₀ tends to {wording.number(cost.limit.fraction)}, a constant share. To make the noise vanish τ₀ "
        "must go to 0, but then ever more users are cut down to the same weight and the bias grows; to make the "
        "bias vanish heavy users must keep their constant share, and hiding a constant share takes constant noise. "
        "More rows help with neither."
    )
