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
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.wording import format_count, format_digits, format_entered, format_number
from dpcore.contributions import FloatArray, build_log_grid
from dpcore.dataset import Dataset
from dpcore.learning import population
from dpcore.learning.answer.solution import TRIVIAL_BOUND
from dpcore.learning.optimal_cap import LearningCap
from dpcore.learning.paper import FIGURES
from dpcore.learning.parameters import LearningParameters
from dpcore.learning.participation import PowerLaw, SimulatedSamples, simulate

PUBLIC_LABEL = Label(Disclosure.PUBLIC)
NUM_SIMULATED_POINTS = 40
FAMILY_ALPHAS = (0.25, 0.5, 1.0, 2.0, 3.0)
"""Values of alpha to compare with; the paper does not give its own."""
FAMILY_LAWS = tuple(map(PowerLaw, FAMILY_ALPHAS))
PAPER_EPSILON = 1.0
NUM_CURVE_POINTS = 160
FRACTION_LIMITS = (1e-6, 1.0)
"""Range of tau_0 in figure 2."""


@dataclass(frozen=True)
class PopulationSolution:
    """The best tau_0 and the curves over it, of a sample of n rows and in the limit, for one alpha: figure 3.

    Attributes:
        parameters: What was entered.
        curve_columns: The curves over tau_0, ascending, in a sample of n rows and in the limit of many rows.
        best_choice: Best tau_0 in a sample of n rows.
        expected_users_capped_at_best: Expected number of users capped there.
        limit_choices_by_epsilon: For the entered epsilon and the paper's, the best tau_0 in the limit for
            every alpha of `FAMILY_ALPHAS`.
    """

    parameters: LearningParameters
    curve_columns: dict[str, FloatArray]
    best_choice: LearningCap
    expected_users_capped_at_best: float
    limit_choices_by_epsilon: dict[float, tuple[LearningCap, ...]]


def solve(parameters: LearningParameters) -> PopulationSolution:
    """Find the best tau_0 for a sample and, for every alpha of the family, in the limit; compute figure 3's curves."""
    n, limit_problem = parameters.population_rows, parameters.build_population_problem(None)
    sample_problem = parameters.build_population_problem(n)
    best_choice = population.find_best_fraction(sample_problem)
    tau_0 = build_log_grid(1.0 / n, 1.0, NUM_CURVE_POINTS, extra_points=(best_choice.fraction,))
    curve_columns = {"tau_0": tau_0}
    for problem, column_prefix, average_prefix in (
        (sample_problem, "", "expected_"),
        (limit_problem, "limit_", "limit_"),
    ):
        cap_statistics = population.compute_statistics(problem, tau_0)
        error_parts = population.compute_error_parts(problem, tau_0)
        curve_columns |= {
            f"{average_prefix}kept_share": cap_statistics.kept_share,
            f"{column_prefix}bias_twice": error_parts.twice_bias,
            f"{column_prefix}privacy_noise": error_parts.privacy,
            f"{average_prefix}users_capped": cap_statistics.users_capped,
        }
    choices_by_epsilon = {}
    for epsilon in (parameters.epsilon, PAPER_EPSILON):
        limit_problems = [replace(limit_problem, epsilon=epsilon, participation=law) for law in FAMILY_LAWS]
        choices_by_epsilon[epsilon] = tuple(map(population.find_best_fraction, limit_problems))
    expected_capped = float(population.compute_statistics(sample_problem, best_choice.fraction).users_capped)
    return PopulationSolution(parameters, curve_columns, best_choice, expected_capped, choices_by_epsilon)


def list_uncapped_mass_columns(alpha: float) -> dict[str, FloatArray]:
    """Compute the mass of uncapped users over tau_0, for this alpha and each of `FAMILY_ALPHAS`.

    The result is a dict of arrays by column name; ``tau_0`` and the share of rows kept are among them.
    """
    power_law = PowerLaw(alpha)
    # The heaviest users' shares, where the mass jumps, are among the points.
    user_numbers = np.arange(1.0, 31.0)
    jump_fractions = np.concatenate(
        [law.compute_probabilities(user_numbers) for law in (power_law, *FAMILY_LAWS)]
    )
    on_axis_mask = (FRACTION_LIMITS[0] < jump_fractions) & (jump_fractions < 1.0)
    tau_0 = build_log_grid(*FRACTION_LIMITS, 240, extra_points=jump_fractions[on_axis_mask].tolist())
    return {
        "tau_0": tau_0,
        "uncapped_mass": power_law.compute_uncapped_mass(tau_0),
        "kept_share_in_the_limit": power_law.compute_kept_share(tau_0),
        **{
            f"uncapped_mass_alpha_{format_digits(law.alpha)}": law.compute_uncapped_mass(tau_0)
            for law in FAMILY_LAWS
        },
    }


def list_simulated_columns(solution: PopulationSolution, samples: SimulatedSamples) -> dict[str, FloatArray]:
    """Compute averages over the simulated samples at each tau_0: a dict of arrays by column name."""
    problem = solution.parameters.build_population_problem(solution.parameters.population_rows)
    error_parts = population.compute_simulated_error_parts(problem, samples)
    return {
        "tau_0": samples.fractions,
        "kept_share": samples.kept_shares.mean(axis=0),
        "bias_plus_privacy": error_parts.twice_bias + error_parts.privacy,
        "users_capped": samples.users_capped.mean(axis=0),
    }


def has_no_best(best_choice: LearningCap, smallest_fraction: float) -> bool:
    """Return True if the best tau_0 is the smallest that was searched: a still smaller one may then be better."""
    return best_choice.fraction <= smallest_fraction


def describe_best(solution: PopulationSolution) -> str:
    """Describe the smallest sum of bias and noise, with its tau_0 and proof, or that it is at one row per user."""
    best_choice = solution.best_choice
    num_capped_text = format_number(solution.expected_users_capped_at_best, 2)
    if has_no_best(best_choice, 1.0 / solution.parameters.population_rows):
        return f"The smallest sum, {format_number(best_choice.total)}, is at one row per user."
    return (
        f"The smallest sum, {format_number(best_choice.total)}, is at τ₀ = {format_number(best_choice.fraction)}, "
        f"{format_count(best_choice.cap, 'row')} per user. Users expected to lose rows: {num_capped_text}. "
        f"{best_choice.certificate.sentence}"
    )


def list_family_rows(solution: PopulationSolution) -> list[dict[str, str]]:
    """List the best tau_0, the users capped there and the smallest sum for several alpha, in the limit of many rows."""
    smallest_fraction = solution.parameters.build_population_problem(None).smallest_fraction
    table_rows = []
    for i, alpha in enumerate(FAMILY_ALPHAS):
        cell_by_heading = {"α": f"{format_entered(alpha)}"}
        for epsilon, limit_choices in solution.limit_choices_by_epsilon.items():
            limit_choice = limit_choices[i]
            epsilon_phrase = f"ε = {format_entered(epsilon)}"
            fraction_text = format_number(limit_choice.fraction)
            capped_users_text = format_number(limit_choice.users_capped)
            sum_text = format_number(limit_choice.total)
            if has_no_best(limit_choice, smallest_fraction):
                fraction_text, capped_users_text = "ever smaller", "–"
                sum_text = "0" if limit_choice.twice_bias == 0.0 else sum_text
            cell_by_heading |= {
                f"Best τ₀, {epsilon_phrase}": fraction_text,
                f"Users who lose rows, {epsilon_phrase}": capped_users_text,
                f"Smallest sum, {epsilon_phrase}": sum_text,
            }
        table_rows.append(cell_by_heading)
    return table_rows


def list_cost_columns(
    cost: population.CostOfPrivacy, parameters: LearningParameters
) -> dict[str, FloatArray]:
    """Compute the smallest bias plus privacy noise at each n, with parts, tau_0 and floor.

    The result is a dict of arrays by column name.
    """
    row_counts = np.array(cost.rows_per_sample, dtype=np.float64)
    vc_log_terms = parameters.vc_dimension * np.log(row_counts / parameters.failure_probability)
    attributes_by_column = {
        "smallest_sum": "total",
        "bias_twice": "twice_bias",
        "privacy_noise": "privacy",
        "best_tau_0": "fraction",
        "cap_rows": "cap",
        "users_capped": "users_capped",
    }
    return {
        "num_rows": row_counts,
        **{
            column_name: np.array(
                [getattr(best_choice, attribute_name) for best_choice in cost.best_choices], dtype=np.float64
            )
            for column_name, attribute_name in attributes_by_column.items()
        },
        "floor": np.full(row_counts.shape, cost.limit_choice.total),
        "finite_sample_without_a_cap": parameters.finite_sample_constant * np.sqrt(vc_log_terms / row_counts),
    }


def is_floor_zero(cost: population.CostOfPrivacy, parameters: LearningParameters) -> bool:
    """Return True if the smallest sum tends to 0 as rows are added: no bias, and ever smaller tau_0 are better."""
    smallest_fraction = parameters.build_population_problem(None).smallest_fraction
    return cost.limit_choice.twice_bias == 0.0 and has_no_best(cost.limit_choice, smallest_fraction)


def describe_cost(cost: population.CostOfPrivacy, parameters: LearningParameters) -> str:
    """Describe how the smallest sum falls as n grows, and its limit; or that the search was stopped at once."""
    if not cost.best_choices:
        return "Stopped before the first n was done."
    first_choice, last_choice, rows_per_sample = (
        cost.best_choices[0],
        cost.best_choices[-1],
        cost.rows_per_sample,
    )
    limits_of_rows_and_sums = rows_per_sample[0], rows_per_sample[-1], first_choice.total, last_choice.total
    course_phrase = "From n = {} to {}: {} to {}".format(*map(format_number, limits_of_rows_and_sums))
    if is_floor_zero(cost, parameters):
        return f"{course_phrase} **and on to 0**: users are alike (Var(H) = 0), so ever smaller shares cost no bias."
    return (
        f"{course_phrase}; it **flattens at {format_number(cost.limit_choice.total)}**. The best τ₀ tends to "
        f"{format_number(cost.limit_choice.fraction)}; a smaller one costs more bias than it saves noise."
    )


STYLE_BY_ALPHA = {
    0.25: (Style.CUSTOMARY, "dot"),
    0.5: (Style.SAMPLING, "dash"),
    1.0: (Style.SMOOTH, "dashdot"),
    2.0: (Style.PRIVACY, "longdash"),
    3.0: (Style.ENTERED, "longdashdot"),
}
"""Colour and dash of every alpha of `FAMILY_ALPHAS`."""
ERROR_LIMITS, USER_LIMITS, COST_LIMITS = (1e-2, 1e2), (1e-1, 1e4), (1e-5, 1e2)
"""Initial ends of the axes."""


def plot_uncapped_mass(alpha: float) -> Plot:
    """Plot figure 2: the mass of uncapped users over tau_0, for this alpha and the others of the family."""
    mass_columns, alpha_name = list_uncapped_mass_columns(alpha), f"α = {format_entered(alpha)}"
    fractions = mass_columns["tau_0"]
    items: list[Item] = []
    for other_alpha, (style, dash) in STYLE_BY_ALPHA.items():
        if other_alpha != alpha:
            uncapped_masses = mass_columns[f"uncapped_mass_alpha_{format_digits(other_alpha)}"]
            curve_name = f"α = {format_entered(other_alpha)}"
            items.append(
                Curve(curve_name, fractions, uncapped_masses, style, dash=dash, width=1.5, line_shape="hv")
            )
    uncapped_name, kept_name = f"{alpha_name}, users who lose none", f"{alpha_name}, all rows kept"
    items += [
        Curve(uncapped_name, fractions, mass_columns["uncapped_mass"], Style.TOTAL, line_shape="hv"),
        Curve(kept_name, fractions, mass_columns["kept_share_in_the_limit"], Style.TOTAL, dash="dash"),
    ]
    return Plot(
        "learning-figure-2",
        "Mass of users below the bound",
        "The larger α, the larger the bound below which most rows lie.",
        _build_fraction_axis(FRACTION_LIMITS),
        share_axis("share of all rows", (0.0, 1.02), number_format=".3p"),
        items,
        Disclosure.PUBLIC,
        mass_columns,
        height=460,
    )


def plot_cost(solution: PopulationSolution, samples: SimulatedSamples | None) -> Plot:
    """Plot figure 3a: bias plus privacy noise over tau_0, with points of the samples if they are given."""
    columns, best_choice = solution.curve_columns, solution.best_choice
    fractions, twice_biases, privacy_terms = columns["tau_0"], columns["bias_twice"], columns["privacy_noise"]
    limit_sums = columns["limit_bias_twice"] + columns["limit_privacy_noise"]
    items: list[Item] = [
        Curve("Sum", fractions, twice_biases + privacy_terms, Style.TOTAL),
        Curve("Bias, twice", fractions, twice_biases, Style.BIAS),
        Curve("Privacy noise", fractions, privacy_terms, Style.PRIVACY),
        Curve("Sum, n → ∞", fractions, limit_sums, Style.ENTERED),
    ]
    if samples is not None:
        items.append(_build_simulated_points(list_simulated_columns(solution, samples), "bias_plus_privacy"))
    return Plot(
        "learning-figure-3a",
        "Bias and privacy noise",
        f"Bias falls, privacy noise rises with the bound; their sum is at least {format_number(best_choice.total)}.",
        _build_fraction_axis((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("bias and privacy noise", "", ERROR_LIMITS),
        (*items, TRIVIAL_BOUND, Mark("Smallest", best_choice.fraction, best_choice.total, Style.CAP)),
        Disclosure.PUBLIC,
        columns,
        height=440,
    )


def plot_users_capped(solution: PopulationSolution, samples: SimulatedSamples | None) -> Plot:
    """Plot figure 3b: users capped over tau_0; if samples are given, with their points, and only these in its file."""
    columns, fractions = solution.curve_columns, solution.curve_columns["tau_0"]
    items: list[Item] = [
        Curve("Users who lose rows", fractions, columns["expected_users_capped"], Style.TOTAL),
        Curve("n → ∞", fractions, columns["limit_users_capped"], Style.ENTERED),
    ]
    if samples is not None:
        columns = list_simulated_columns(solution, samples)
        items.append(_build_simulated_points(columns, "users_capped"))
    expected_capped = solution.expected_users_capped_at_best
    if expected_capped > 0.0:
        items.append(Mark("At the smallest sum", solution.best_choice.fraction, expected_capped, Style.CAP))
    return Plot(
        "learning-figure-3b",
        "Users who lose rows",
        f"Users expected to lose rows at the best bound: {format_number(expected_capped, 2)}.",
        _build_fraction_axis((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("users who lose rows", "expected number", USER_LIMITS),
        items,
        Disclosure.PUBLIC,
        columns,
        height=440,
    )


def plot_cost_over_rows(cost: population.CostOfPrivacy, parameters: LearningParameters) -> Plot:
    """Plot the smallest bias plus privacy noise over n, its floor, and the finite-sample term, which falls to zero."""
    columns = list_cost_columns(cost, parameters)
    num_rows_values, finite_sample_terms = columns["num_rows"], columns["finite_sample_without_a_cap"]
    curves = (
        Curve(
            "Smallest sum: cost of privacy",
            num_rows_values,
            columns["smallest_sum"],
            Style.TOTAL,
            symbol="circle",
        ),
        Curve("its bias, twice", num_rows_values, columns["bias_twice"], Style.BIAS),
        Curve("its privacy noise", num_rows_values, columns["privacy_noise"], Style.PRIVACY),
        Curve("Finite-sample term, no bound", num_rows_values, finite_sample_terms, Style.SAMPLING),
    )
    x_limits = (population.ROWS_FOR_COST[0], population.ROWS_FOR_COST[-1])
    items = [curve for curve in curves if np.any(np.asarray(curve.y))]
    if not is_floor_zero(cost, parameters) and cost.limit_choice.is_complete:
        items.append(Curve("Floor, n → ∞", num_rows_values, columns["floor"], Style.ENTERED))
    return Plot(
        "learning-cost",
        "Cost of privacy",
        describe_cost(cost, parameters).replace("**", ""),
        Axis("rows n", "", x_limits, number_format=",.3~g"),
        Axis("bound", "", COST_LIMITS, title="Smallest bias + privacy noise"),
        items,
        Disclosure.PUBLIC,
        columns,
        height=480,
    )


def _build_fraction_axis(fraction_limits: tuple[float, float]) -> Axis:
    """Build the axis of tau_0 between these limits, which nothing moves."""
    axis_title = "bound as a share of all rows"
    return Axis(
        "bound, as a share of all rows",
        "share of all rows",
        fraction_limits,
        title=axis_title,
        settable_range=fraction_limits,
    )


def _build_simulated_points(simulated_columns: Mapping[str, npt.ArrayLike], column_name: str) -> Points:
    """Build the points of one column of simulated samples over tau_0."""
    return Points(
        "Simulated",
        simulated_columns["tau_0"],
        simulated_columns[column_name],
        Style.CUSTOMARY,
        symbol="circle-open",
    )


# --- tabs ---


def show_mass(answer: Answer, dataset: Dataset) -> Parts:
    """Yield figure 2 for the entered alpha: which share of the rows users below each bound hold."""
    yield (
        "Solid: the share of all rows from users below the bound (the paper's figure 2). Dashed: the share kept, "
        "$\\sum_j \\min(p_j, \\tau_0)$, to which $n_\\tau/n$ tends."
    )
    yield Fields(("alpha",))
    yield Figures((plot_uncapped_mass(answer.parameters.alpha),), "xy")
    yield PUBLIC_LABEL
    yield PaperFigures(FIGURES[:1])


def show_cost_over_caps(answer: Answer, dataset: Dataset) -> Parts:
    """Yield figure 3, bias, noise and users capped over the bound, with a search that simulates samples."""
    parameters: LearningParameters = answer.parameters
    yield (
        f"Over the bound as a share τ₀ of n rows, with *{parameters.population_bias.title}*. The lines are exact; the "
        "paper averages samples, which you can add."
    )
    alpha, num_rows, num_draws = parameters.alpha, parameters.population_rows, parameters.draws

    def draw_samples(progress: Progress, should_stop: ShouldStop) -> SimulatedSamples:
        """Simulate samples of the population, with seed 0."""
        fractions = build_log_grid(1.0 / num_rows, 1.0, NUM_SIMULATED_POINTS)
        return simulate(PowerLaw(alpha), num_rows, fractions, num_draws, 0, progress, should_stop)

    samples: SimulatedSamples | None = yield Search(
        "draws_job",
        (alpha, num_rows),  # Another number of samples shows those that were drawn.
        draw_samples,
        "Drawing samples",
        f"Draw {format_count(num_draws, 'sample')}",
        "casino",
        ("alpha", "population_rows", "draws"),
        outdated_text="The samples are for another α or n: draw again.",
        depends_on_data=False,
    )
    if samples is not None:
        num_drawn = len(samples.kept_shares)
        samples_text = f"{format_count(num_drawn, 'sample')} drawn (seed 0)"
        yield Note(f"Stopped after {samples_text}." if samples.is_stopped else f"{samples_text}.")
        samples = samples if num_drawn else None
    solution = yield Cached(solve, (parameters.population_parameters,))
    yield Figures((plot_cost(solution, samples), plot_users_capped(solution, samples)), "xy")
    yield describe_best(solution)
    yield Note(
        "The largest share is $\\tau/n_\\tau$, as in the paper; the line n → ∞ uses the heaviest user's share."
    )
    yield (
        "**How few lose rows**, in the limit of many rows. The paper reports 2 to 8 users, without its α and "
        "constants; with C = 1 and the bias once it is 2 to 6."
    )
    yield Table(list_family_rows(solution), "Users who lose rows, by α", key="learning_family")
    yield PUBLIC_LABEL
    yield PaperFigures(FIGURES[1:])


def show_cost_over_rows(answer: Answer, dataset: Dataset) -> Parts:
    """Yield alpha's field, the search for the cost of privacy over n and, with its result, its sentence and figure."""
    parameters: LearningParameters = answer.parameters.cost_parameters
    yield "The smallest sum of bias and privacy noise, as rows become plentiful: it does not fall to zero."
    yield Fields(("alpha",))
    cost: population.CostOfPrivacy | None = yield Search(
        "cost_job",
        parameters,
        lambda tell, stop: population.find_cost_of_privacy(
            parameters.build_population_problem(None), progress=tell, should_stop=stop
        ),
        "Searching the best τ₀ for each n",
        describe_stop=lambda cost: (
            f"Stopped: {len(cost.best_choices)} of {len(population.ROWS_FOR_COST)} values of n were done."
            if len(cost.best_choices) < len(population.ROWS_FOR_COST)
            else ""
        ),
        depends_on_data=False,
    )
    if cost is None:
        return
    yield describe_cost(cost, answer.parameters)
    if cost.best_choices:
        yield Figures((plot_cost_over_rows(cost, answer.parameters),), "y")
        yield PUBLIC_LABEL
