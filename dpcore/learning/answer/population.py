"""A learner under a cap on a population instead of data: figures 2 and 3 of the paper, and the cost of privacy.

The solution, its columns, its plots and its sentences are public, as they are computed from parameters alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Mark, Plot, Points, Style, share_axis
from dpcore.answer.answer import Answer
from dpcore.answer.section import Cached, Fields, Figures, Label, Note, PaperFigures, Parts, Search, Table
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray, log_spaced
from dpcore.dataset import Dataset
from dpcore.learning import population
from dpcore.learning.answer.solution import TRIVIAL_BOUND
from dpcore.learning.optimal_cap import LearningCap
from dpcore.learning.paper import FIGURES
from dpcore.learning.parameters import LearningParameters
from dpcore.learning.participation import Draws, PowerLaw, simulate

PUBLIC = Label(Disclosure.PUBLIC)
DRAWN_POINTS = 40
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
        num_capped_at_best: Expected number of users capped there.
        caps_by_epsilon: For an epsilon, the best tau_0 in the limit for every alpha of `FAMILY`.
    """

    parameters: LearningParameters
    columns: dict[str, FloatArray]
    best: LearningCap
    num_capped_at_best: float
    caps_by_epsilon: dict[float, tuple[LearningCap, ...]]


def solve(parameters: LearningParameters) -> PopulationSolution:
    """Find the best share for a sample and in the limit, and compute the curves of figure 3."""
    sample_problem = parameters.population(parameters.population_rows)
    limit_problem = parameters.population(None)
    best_cap = population.find_best_fraction(sample_problem)
    tau_0 = log_spaced(1.0 / parameters.population_rows, 1.0, POINTS, extra_points=(best_cap.fraction,))
    curve_columns = {"tau_0": tau_0}
    for problem, prefix, average_prefix in (
        (sample_problem, "", "expected_"),
        (limit_problem, "limit_", "limit_"),
    ):
        statistics = population.compute_statistics(problem, tau_0)
        error_parts = population.compute_error_parts(problem, tau_0)
        curve_columns |= {
            f"{average_prefix}kept_share": statistics.kept_share,
            f"{prefix}bias_twice": error_parts.bias,
            f"{prefix}privacy_noise": error_parts.privacy,
            f"{average_prefix}users_capped": statistics.users_capped,
        }
    caps_by_epsilon = {}
    for epsilon in (parameters.epsilon, PAPER_EPSILON):
        problems = [
            replace(limit_problem, epsilon=epsilon, participation=PowerLaw(alpha)) for alpha in FAMILY
        ]
        caps_by_epsilon[epsilon] = tuple(population.find_best_fraction(problem) for problem in problems)
    num_capped_at_best = float(population.compute_statistics(sample_problem, best_cap.fraction).users_capped)
    return PopulationSolution(parameters, curve_columns, best_cap, num_capped_at_best, caps_by_epsilon)


def list_mass_columns(alpha: float) -> dict[str, FloatArray]:
    """List the mass of uncapped users over tau_0, for the chosen alpha and for `FAMILY`, as columns."""
    power_law = PowerLaw(alpha)
    # The heaviest users' shares, where the mass jumps, are among the points.
    heaviest_users = np.arange(1.0, 31.0)
    jump_fractions = np.concatenate(
        [PowerLaw(other).probability(heaviest_users) for other in (alpha, *FAMILY)]
    )
    tau_0 = log_spaced(
        *FRACTIONS,
        240,
        extra_points=jump_fractions[(FRACTIONS[0] < jump_fractions) & (jump_fractions < 1.0)].tolist(),
    )
    return {
        "tau_0": tau_0,
        "uncapped_mass": power_law.compute_uncapped_mass(tau_0),
        "kept_share_in_the_limit": power_law.kept_share(tau_0),
        **{
            f"uncapped_mass_alpha_{wording.digits(other)}": PowerLaw(other).compute_uncapped_mass(tau_0)
            for other in FAMILY
        },
    }


def list_simulated_columns(solution: PopulationSolution, samples: Draws) -> dict[str, FloatArray]:
    """List the simulated points as columns."""
    problem = solution.parameters.population(solution.parameters.population_rows)
    error_parts = population.compute_simulated_error_parts(problem, samples)
    return {
        "tau_0": samples.fractions,
        "kept_share": samples.kept_share.mean(axis=0),
        "bias_plus_privacy": error_parts.bias + error_parts.privacy,
        "users_capped": samples.users_capped.mean(axis=0),
    }


def has_no_best(choice: LearningCap, smallest_fraction: float) -> bool:
    """Return True if ever smaller caps are ever better, as far as was searched."""
    return choice.fraction <= smallest_fraction


def describe_best(solution: PopulationSolution) -> str:
    """Describe the smallest sum of bias and noise, and at which share it is."""
    best_cap, num_capped_text = solution.best, wording.number(solution.num_capped_at_best, 2)
    if has_no_best(best_cap, 1.0 / solution.parameters.population_rows):
        return f"The smallest sum, {wording.number(best_cap.total)}, is at one row per user."
    return (
        f"The smallest sum, {wording.number(best_cap.total)}, is at τ₀ = {wording.number(best_cap.fraction)}, "
        f"{wording.counted(best_cap.cap, 'row')} per user. Users expected to lose rows: {num_capped_text}. "
        f"{best_cap.certificate.sentence}"
    )


def list_family_rows(solution: PopulationSolution) -> list[dict[str, str]]:
    """List the users capped at the optimum for several alpha, in the limit of many rows."""
    smallest_fraction = solution.parameters.population(None).smallest_fraction
    rows = []
    for i, alpha in enumerate(FAMILY):
        row = {"α": f"{wording.entered(alpha)}"}
        for epsilon, choices in solution.caps_by_epsilon.items():
            choice = choices[i]
            has_no_optimum, setting_text = (
                has_no_best(choice, smallest_fraction),
                f"ε = {wording.entered(epsilon)}",
            )
            row |= {
                f"Best τ₀, {setting_text}": "ever smaller"
                if has_no_optimum
                else wording.number(choice.fraction),
                f"Users who lose rows, {setting_text}": "–"
                if has_no_optimum
                else wording.number(choice.users_capped),
                f"Smallest sum, {setting_text}": (
                    "0" if has_no_optimum and choice.bias == 0.0 else wording.number(choice.total)
                ),
            }
        rows.append(row)
    return rows


def list_cost_columns(
    cost: population.CostOfPrivacy, parameters: LearningParameters
) -> dict[str, FloatArray]:
    """List the smallest bias plus privacy noise at each n, as columns."""
    num_rows = np.array(cost.num_rows, dtype=np.float64)
    vc_log_term = parameters.vc_dimension * np.log(num_rows / parameters.failure_probability)
    attributes_by_column = {
        "smallest_sum": "total",
        "bias_twice": "bias",
        "privacy_noise": "privacy",
        "best_tau_0": "fraction",
        "cap_rows": "cap",
        "users_capped": "users_capped",
    }
    return {
        "num_rows": num_rows,
        **{
            column: np.array([getattr(choice, attribute) for choice in cost.best], dtype=np.float64)
            for column, attribute in attributes_by_column.items()
        },
        "floor": np.full(num_rows.shape, cost.limit.total),
        "finite_sample_without_a_cap": parameters.finite_sample_constant * np.sqrt(vc_log_term / num_rows),
    }


def is_floor_zero(cost: population.CostOfPrivacy, parameters: LearningParameters) -> bool:
    """Return True if the floor is 0, users being alike."""
    return cost.limit.bias == 0.0 and has_no_best(cost.limit, parameters.population(None).smallest_fraction)


def describe_cost(cost: population.CostOfPrivacy, parameters: LearningParameters) -> str:
    """Describe how the smallest sum moves as rows are added, and why it flattens or vanishes."""
    if not cost.best:
        return "Stopped before the first n was done."
    first_text, last_text = wording.number(cost.best[0].total), wording.number(cost.best[-1].total)
    first_n, last_n = wording.number(cost.num_rows[0]), wording.number(cost.num_rows[-1])
    course_text = f"From n = {first_n} to {last_n}: {first_text} to {last_text}"
    if is_floor_zero(cost, parameters):
        return f"{course_text} **and on to 0**: users are alike (Var(H) = 0), so ever smaller shares cost no bias."
    return (
        f"{course_text}; it **flattens at {wording.number(cost.limit.total)}**. The best τ₀ tends to "
        f"{wording.number(cost.limit.fraction)}; a smaller one costs more bias than it saves noise."
    )


FAMILY_STYLES = {
    0.25: (Style.CUSTOMARY, "dot"),
    0.5: (Style.SAMPLING, "dash"),
    1.0: (Style.SMOOTH, "dashdot"),
    2.0: (Style.PRIVACY, "longdash"),
    3.0: (Style.ENTERED, "longdashdot"),
}
"""Colour and dash of every alpha of `FAMILY`."""
ERROR_LIMITS, USER_LIMITS, COST_LIMITS = (1e-2, 1e2), (1e-1, 1e4), (1e-5, 1e2)
"""Where axes start and end before anything is chosen."""


def plot_mass(alpha: float) -> Plot:
    """Plot figure 2: mass of uncapped users over tau_0."""
    columns, chosen_alpha_name = list_mass_columns(alpha), f"α = {wording.entered(alpha)}"
    fractions = columns["tau_0"]
    items: list[Item] = []
    for other_alpha, (style, dash) in FAMILY_STYLES.items():
        if other_alpha != alpha:
            mass = columns[f"uncapped_mass_alpha_{wording.digits(other_alpha)}"]
            name = f"α = {wording.entered(other_alpha)}"
            items.append(Curve(name, fractions, mass, style, dash=dash, width=1.5, line_shape="hv"))
    items += [
        Curve(
            f"{chosen_alpha_name}, users who lose none",
            fractions,
            columns["uncapped_mass"],
            Style.TOTAL,
            line_shape="hv",
        ),
        Curve(
            f"{chosen_alpha_name}, all rows kept",
            fractions,
            columns["kept_share_in_the_limit"],
            Style.TOTAL,
            dash="dash",
        ),
    ]
    return Plot(
        "learning-figure-2",
        "Mass of users below the bound",
        "The larger α, the larger the bound below which most rows lie.",
        _build_fraction_axis(FRACTIONS),
        share_axis("share of all rows", (0.0, 1.02), number_format=".3p"),
        items,
        Disclosure.PUBLIC,
        columns,
        height=460,
    )


def plot_cost(solution: PopulationSolution, samples: Draws | None) -> Plot:
    """Plot figure 3a: bias plus privacy noise over tau_0."""
    columns, best_cap = solution.columns, solution.best
    fractions, bias, privacy_noise = columns["tau_0"], columns["bias_twice"], columns["privacy_noise"]
    limit_sum = columns["limit_bias_twice"] + columns["limit_privacy_noise"]
    items: list[Item] = [
        Curve("Sum", fractions, bias + privacy_noise, Style.TOTAL),
        Curve("Bias, twice", fractions, bias, Style.BIAS),
        Curve("Privacy noise", fractions, privacy_noise, Style.PRIVACY),
        Curve("Sum, n → ∞", fractions, limit_sum, Style.ENTERED),
    ]
    if samples is not None:
        items.append(_build_simulated_points(list_simulated_columns(solution, samples), "bias_plus_privacy"))
    return Plot(
        "learning-figure-3a",
        "Bias and privacy noise",
        f"Bias falls, privacy noise rises with the bound; their sum is at least {wording.number(best_cap.total)}.",
        _build_fraction_axis((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("bias and privacy noise", "", ERROR_LIMITS),
        (*items, TRIVIAL_BOUND, Mark("Smallest", best_cap.fraction, best_cap.total, Style.CAP)),
        Disclosure.PUBLIC,
        columns,
        height=440,
    )


def plot_capped(solution: PopulationSolution, samples: Draws | None) -> Plot:
    """Plot figure 3b: users capped over tau_0; if samples were simulated, its file holds these."""
    columns, fractions = solution.columns, solution.columns["tau_0"]
    items: list[Item] = [
        Curve("Users who lose rows", fractions, columns["expected_users_capped"], Style.TOTAL),
        Curve("n → ∞", fractions, columns["limit_users_capped"], Style.ENTERED),
    ]
    if samples is not None:
        columns = list_simulated_columns(solution, samples)
        items.append(_build_simulated_points(columns, "users_capped"))
    if solution.num_capped_at_best > 0.0:
        items.append(
            Mark("At the smallest sum", solution.best.fraction, solution.num_capped_at_best, Style.CAP)
        )
    return Plot(
        "learning-figure-3b",
        "Users who lose rows",
        f"Users expected to lose rows at the best bound: {wording.number(solution.num_capped_at_best, 2)}.",
        _build_fraction_axis((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("users who lose rows", "expected number", USER_LIMITS),
        items,
        Disclosure.PUBLIC,
        columns,
        height=440,
    )


def plot_cost_over_rows(cost: population.CostOfPrivacy, parameters: LearningParameters) -> Plot:
    """Plot the smallest bias plus privacy noise over n, beside what falls to zero."""
    columns = list_cost_columns(cost, parameters)
    num_rows, finite_sample = columns["num_rows"], columns["finite_sample_without_a_cap"]
    curves = (
        Curve(
            "Smallest sum: cost of privacy", num_rows, columns["smallest_sum"], Style.TOTAL, symbol="circle"
        ),
        Curve("its bias, twice", num_rows, columns["bias_twice"], Style.BIAS),
        Curve("its privacy noise", num_rows, columns["privacy_noise"], Style.PRIVACY),
        Curve("Finite-sample term, no bound", num_rows, finite_sample, Style.SAMPLING),
    )
    items = [curve for curve in curves if np.any(np.asarray(curve.y))]
    if not is_floor_zero(cost, parameters) and cost.limit.complete:
        items.append(Curve("Floor, n → ∞", num_rows, columns["floor"], Style.ENTERED))
    return Plot(
        "learning-cost",
        "Cost of privacy",
        describe_cost(cost, parameters).replace("**", ""),
        Axis(
            "rows n", "", (population.ROWS_FOR_COST[0], population.ROWS_FOR_COST[-1]), number_format=",.3~g"
        ),
        Axis("bound", "", COST_LIMITS, title="Smallest bias + privacy noise"),
        items,
        Disclosure.PUBLIC,
        columns,
        height=480,
    )


def _build_fraction_axis(limits: tuple[float, float]) -> Axis:
    name, title = "bound, as a share of all rows", "bound as a share of all rows"
    return Axis(name, "share of all rows", limits, title=title, limits_range=limits)


def _build_simulated_points(columns: Mapping[str, npt.ArrayLike], column: str) -> Points:
    """Build the points of simulated samples."""
    return Points("Simulated", columns["tau_0"], columns[column], Style.CUSTOMARY, symbol="circle-open")


# --- tabs ---


def show_mass(answer: Answer, dataset: Dataset) -> Parts:
    """Show figure 2."""
    yield (
        "Solid: the share of all rows from users below the bound (the paper's figure 2). Dashed: the share kept, "
        "$\\sum_j \\min(p_j, \\tau_0)$, to which $n_\\tau/n$ tends."
    )
    yield Fields(("alpha",))
    yield Figures((plot_mass(answer.parameters.alpha),), "xy")
    yield PUBLIC


def show_cost_over_caps(answer: Answer, dataset: Dataset) -> Parts:
    """Show figure 3."""
    parameters: LearningParameters = answer.parameters
    yield (
        f"Over the bound as a share τ₀ of n rows, with *{parameters.population_bias.title}*. The lines are exact; the "
        "paper averages samples, which you can add."
    )
    alpha, num_rows, num_draws = parameters.alpha, parameters.population_rows, parameters.draws

    def draw_samples(progress: Progress, should_stop: ShouldStop) -> Draws:
        fractions = log_spaced(1.0 / num_rows, 1.0, DRAWN_POINTS)
        return simulate(
            PowerLaw(alpha), num_rows, fractions, num_draws, progress=progress, should_stop=should_stop
        )

    samples: Draws | None = yield Search(
        "draws_job",
        (alpha, num_rows),  # Another number of samples shows those that were drawn.
        draw_samples,
        "Drawing samples",
        f"Draw {wording.counted(num_draws, 'sample')}",
        "casino",
        ("alpha", "population_rows", "draws"),
        outdated_text="The samples are for another α or n: draw again.",
        depends_on_data=False,
    )
    if samples is not None:
        num_drawn = len(samples.kept_share)
        samples_text = f"{wording.counted(num_drawn, 'sample')} drawn (seed 0)"
        yield Note(f"Stopped after {samples_text}." if samples.is_stopped else f"{samples_text}.")
        samples = samples if num_drawn else None
    solution = yield Cached(solve, (parameters.population_parameters,))
    yield Figures((plot_cost(solution, samples), plot_capped(solution, samples)), "xy")
    yield describe_best(solution)
    yield Note(
        "The largest share is $\\tau/n_\\tau$, as in the paper; the line n → ∞ uses the heaviest user's share."
    )
    yield (
        "**How few lose rows**, in the limit of many rows. The paper reports 2 to 8 users, without its α and "
        "constants; with C = 3 the table says 3 to 8."
    )
    yield Table(list_family_rows(solution), "Users who lose rows, by α", key="learning_family")
    yield PUBLIC
    yield PaperFigures(FIGURES)


def show_cost_over_rows(answer: Answer, dataset: Dataset) -> Parts:
    """Show the cost of privacy."""
    parameters: LearningParameters = answer.parameters.cost_parameters
    yield "The smallest sum of bias and privacy noise, as rows become plentiful: it does not fall to zero."
    yield Fields(("alpha",))
    cost: population.CostOfPrivacy | None = yield Search(
        "cost_job",
        parameters,
        lambda tell, stop: population.find_cost_of_privacy(
            parameters.population(None), progress=tell, should_stop=stop
        ),
        "Searching the best τ₀ for each n",
        describe_stop=lambda cost: (
            f"Stopped: {len(cost.best)} of {len(population.ROWS_FOR_COST)} values of n were done."
            if len(cost.best) < len(population.ROWS_FOR_COST)
            else ""
        ),
        depends_on_data=False,
    )
    if cost is None:
        return
    yield describe_cost(cost, answer.parameters)
    if cost.best:
        yield Figures((plot_cost_over_rows(cost, answer.parameters),), "y")
        yield PUBLIC
