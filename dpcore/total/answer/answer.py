"""The answer for a sum or a count and its tabs, as all readers take them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from dpcore.answer import section, standard
from dpcore.answer.answer import (
    BIAS,
    NOISE,
    Answer,
    RelativeError,
    ReleaseSetting,
    add_json_writer,
    build_error_parts,
    build_without_numbers,
)
from dpcore.code.forms import find_summed_column
from dpcore.code.release_spec import Quantity
from dpcore.common.programs import Program
from dpcore.common.strict_json import convert_certificate
from dpcore.common.wording import PERCENT, format_count, format_number
from dpcore.dataset import Dataset
from dpcore.total.answer import plots, words
from dpcore.total.answer.solution import SignedSolution, TotalSolution, solve
from dpcore.total.nonnegative import NEIGHBOURS, TotalErrors
from dpcore.total.parameters import (
    ASSUMPTIONS,
    ASSUMPTIONS_ON_RELEASE,
    SIGNED_ASSUMPTIONS,
    Summed,
    TotalParameters,
    compute_user_totals,
)
from dpcore.total.strategies import FIGURES, PAPER_STRATEGIES, Strategy, simulate_strategies


def solve_beside_page(dataset: Dataset, parameters: TotalParameters) -> section.Solver:
    """Find the best bound or range for the page.

    This is a generator for `Solver`: it yields what is to be cached. What every user adds is cached apart, as it does
    not depend on epsilon.
    """
    user_totals = yield section.Cached(compute_user_totals, (dataset, parameters.summed))
    solution = yield section.Cached(solve, (dataset, parameters.about_data, user_totals))
    return section.SearchResult(solution)


def describe_inputs(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield one note: how many users there are, and what their rows or totals add up to."""
    yield section.Note(words.describe_totals(answer.solution.user_totals, dataset))


def show_measures(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab with the error by every measure, and which noise has the smaller error."""
    solution = answer.solution
    table_and_sentences = (
        words.write_measures_table(solution),
        words.describe_bound(solution),
        words.compare_noises(solution),
    )
    yield section.Columns((table_and_sentences, (answer.plots["total-measures"](),)))
    yield section.Label()


def show_strategies(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab on four ways to choose T, figure 1 of the paper: on these data and at its setting.

    Simulated errors are added on request.
    """
    yield "A fixed quantile is near the best bound only around one ε (Amin et al. 2019, figure 1)."
    # The paper's noise, of real numbers.
    parameters = answer.parameters
    problem = replace(answer.solution.problem, epsilon=1.0, program=Program.PYTHON)
    simulated_points = yield section.Search(
        "job",
        replace(parameters.without("own_bound", "lower", "upper", "highest_total"), epsilon=1.0),
        lambda progress, should_stop: simulate_strategies(
            problem,
            plots.choose_epsilons(problem.amounts, points_per_decade=2),
            (*PAPER_STRATEGIES, Strategy(parameters.own_share)),
            parameters.runs,
            parameters.seed,
            progress,
            should_stop,
        ),
        "Simulating",
        "Simulate",
        "casino",
        ("own_share", "runs", "seed"),
        idle_text="The curves are exact. *Simulate* adds simulated errors.",
    )
    strategy_curves = yield section.Cached(plots.compute_curves, (problem, parameters.own_share))
    yield section.Figures(
        (plots.plot_strategies(strategy_curves, dataset, parameters.epsilon, simulated_points),), "xy"
    )
    yield f"Within 10{PERCENT} of the best bound's error:"
    yield "\n".join(f"- {sentence}" for sentence in plots.write_near_best(strategy_curves))
    if simulated_points is not None:
        stopped_early_sentence = "Stopped early. " if simulated_points.is_cancelled else ""
        runs_text = f"{format_count(simulated_points.num_runs, 'run')} per point, ± 2 standard errors."
        yield section.Note(f"{stopped_early_sentence}{runs_text} {standard.SIMULATION_SENTENCE}")
        yield section.File(
            "Simulated points (CSV)", "total_simulated.csv", plots.tabulate_points(simulated_points)
        )
    yield section.Label()
    yield section.PaperFigures(FIGURES)


SIGNED_SECTIONS: section.Sections = {section.BEHIND: describe_inputs}
SECTIONS: section.Sections = {
    **SIGNED_SECTIONS,
    "Measures and noise": show_measures,
    "Four ways to choose a bound": show_strategies,
}


def build_answer(
    dataset: Dataset, parameters: TotalParameters, solution: TotalSolution | SignedSolution | None = None
) -> Answer:
    """Find the best bound on what one user adds to a sum or a count.

    If some totals are negative it is a range.

    Args:
        dataset: How many rows users have; where a column is added up, its total per user.
        parameters: The question.
        solution: The solution of both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `TotalSolution`, or a `SignedSolution` if some total is negative. Plots are
        computed when they are asked for.

    Raises:
        InvalidInput: There is nothing to add up, or all of it is 0.

    Examples:
        One row less of each of ten heavy users costs more than the noise that it saves.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> answer = ss.count_bound([1] * 90 + [10] * 10, epsilon=1)
        >>> print(answer.headline, round(answer.error, 2))
        Keep at most 10 rows per user. 9.98
        >>> spending = pd.DataFrame({"user": range(100), "amount": [1] * 90 + [10] * 10})
        >>> round(ss.sum_bound(spending, user="user", value="amount", epsilon=1).bound)
        10

    Source: Amin et al. 2019, section 3.
    """
    if solution is None:
        solution = solve(dataset, parameters)
    if isinstance(solution, SignedSolution):
        answer, release_phrase = _build_signed(dataset, parameters, solution), "sum of signed totals"
        entries_by_key, unused_names = _list_range_details(solution), {"objective", "own_bound"}
    else:
        answer = _build_nonnegative(dataset, parameters, solution)
        release_phrase = "count of rows" if solution.problem.is_integer else "sum"
        entries_by_key, unused_names = _list_bound_details(solution), {"lower", "upper"}
    answer = replace(
        answer,
        code=words.write_forms(solution, dataset, parameters),
        parameters=parameters,
        solution=solution,
        setting=build_setting(dataset, parameters),
    )
    return add_json_writer(
        answer,
        dataset,
        release_phrase,
        lambda: entries_by_key,
        question_entries={
            "neighbours": NEIGHBOURS.value,
            "source": "Amin et al. 2019, Bounding User Contributions: A Bias-Variance Trade-off in DP, section 3",
        },
        data_entries={"column": solution.unit.column_name},
        # These choose neither a bound nor a range.
        omitted_parameter_names={"own_share", "runs", "seed", "highest_total"} | unused_names,
    )


def _build_nonnegative(dataset: Dataset, parameters: TotalParameters, solution: TotalSolution) -> Answer:
    """Build the answer for totals of at least 0; `build_answer` adds code, setting and files."""
    error_by_part = {
        BIAS: float(solution.bound_errors.bias),
        NOISE: float(solution.bound_errors.measure_noise(parameters.objective)),
    }
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=standard.add_own_error(
            words.list_numbers(solution),
            None if parameters.own_bound is None else solution.compute_error(parameters.own_bound),
            solution.unit.format_amount,
        ),
        assumptions=ASSUMPTIONS if dataset.release is None else ASSUMPTIONS_ON_RELEASE,
        disclosure=dataset.provenance,
        facts=words.list_facts(solution, parameters),
        proofs=(("Bound", solution.choice.certificate, solution.choice.stop_reason),),
        near_optimal=words.describe_near_optimal(solution),
        relative_error=RelativeError(
            solution.compute_error(solution.bound) / solution.choice.error_of_nothing,
            f"the {solution.unit.result_name}",
        ),
        plots={
            "total-error": lambda: plots.plot_errors(solution, dataset, parameters.own_bound),
            "total-measures": lambda: plots.plot_measures(solution, dataset),
            "total-strategies": lambda: plots.plot_strategies(
                plots.compute_curves(solution.problem, parameters.own_share), dataset, parameters.epsilon
            ),
        },
        make_methods=lambda: words.write_methods(solution, dataset, parameters),
        error_parts=build_error_parts(error_by_part, solution.unit.format_amount)
        if solution.choice.max_total
        else (),
        sections=SECTIONS,
    )


class TotalRange(NamedTuple):
    """The range that totals of both signs are clipped to."""

    lower: float
    upper: float


def _build_signed(dataset: Dataset, parameters: TotalParameters, solution: SignedSolution) -> Answer:
    """Build the answer for totals of both signs; `build_answer` adds code, setting and files."""
    abs_sum = abs(float(solution.problem.totals.sum()))
    return Answer(
        headline=words.write_signed_headline(solution),
        detail=words.write_signed_detail(solution, dataset),
        numbers=standard.add_own_error(
            words.list_signed_numbers(solution), solution.compute_own_error(parameters), format_number
        ),
        bound=TotalRange(float(solution.clipped_sum.low), float(solution.clipped_sum.high)),
        assumptions=SIGNED_ASSUMPTIONS,
        disclosure=dataset.provenance,
        facts=words.list_signed_facts(solution, parameters),
        relative_error=RelativeError(solution.error / abs_sum, "the sum") if abs_sum else None,
        plots={"total-signed": lambda: plots.plot_signed(solution, dataset, parameters)},
        make_methods=lambda: words.write_signed_methods(solution, dataset, parameters),
        sections=SIGNED_SECTIONS,
    )


def _list_errors(unit_noise: float, errors: TotalErrors, shown_bias: float) -> dict[str, object]:
    """Return the JSON entries of bias, noise and errors at one bound, by key."""
    return {
        "noise_scale": unit_noise * float(errors.bounds),
        "bias": shown_bias,
        "mean_noise": float(errors.mean_noise),
        "expected_absolute_error": float(errors.absolute_errors),
        "root_mean_squared_error": float(errors.rmse),
    }


def _list_bound_details(solution: TotalSolution) -> dict[str, object]:
    """Return the JSON entries of the exact best bound, by key; the card and the code have the rounded one."""
    problem, best_choice = solution.problem, solution.choice
    bound_entries: dict[str, object] = {
        "max_total": best_choice.max_total,
        "max_total_rounded": solution.bound,
    }
    if problem.is_integer:
        bound_entries = {"max_contributions": int(best_choice.max_total)}
    return {
        **bound_entries,
        **_list_errors(problem.unit_noise, best_choice.errors, float(best_choice.errors.bias)),
        "bound_on_absolute_error": float(best_choice.errors.bias_plus_noise),
        "error_of_publishing_zero": best_choice.error_of_nothing,
        "users_affected": best_choice.num_users_affected,
        "within_5_percent": list(solution.near_optimal_bounds),
        "ended": best_choice.stop_reason,
        **convert_certificate(best_choice.certificate),
    }


def build_refused_answer(dataset: Dataset, parameters: TotalParameters) -> Answer:
    """Build the answer without numbers, for a column whose totals do not fit the question."""
    return build_without_numbers(parameters, dataset.provenance, build_setting(dataset, parameters))


def build_setting(dataset: Dataset, parameters: TotalParameters) -> ReleaseSetting:
    """Build the setting of the release, a sum of a column or a count, by which other answers know it."""
    value_column = find_summed_column(dataset)
    if parameters.summed is Summed.VALUES and not value_column:
        summed_totals = (
            dataset.totals if dataset.totals is not None and dataset.totals.column else dataset.values
        )
        value_column = "" if summed_totals is None else summed_totals.column
    return ReleaseSetting(
        Quantity.SUM if value_column else Quantity.COUNT,
        parameters.epsilon,
        NEIGHBOURS,
        value_column,
        noise=parameters.mechanism,
        delta=parameters.delta,
        measure=parameters.objective,
        program=parameters.program,
    )


def _list_range_details(solution: SignedSolution) -> dict[str, object]:
    """Return the JSON entries of a range for totals of both signs, by key."""
    clipped_sum = solution.clipped_sum
    return {
        "lower": clipped_sum.low,
        "upper": clipped_sum.high,
        "range_comes_from": "entered" if solution.is_entered else "the data",
        **_list_errors(solution.problem.size_problem.unit_noise, clipped_sum.errors, clipped_sum.bias),
        "users_below_lower": clipped_sum.num_users_below,
        "users_above_upper": clipped_sum.num_users_above,
    }
