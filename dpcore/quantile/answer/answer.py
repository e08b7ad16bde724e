"""The answer for quantiles and its tabs, as all readers take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Answer, RelativeError, ReleaseSetting, add_json_writer
from dpcore.answer.limits import Limits
from dpcore.answer.plot import Plot
from dpcore.answer.section import (
    BEHIND,
    Cached,
    Choice,
    Columns,
    Fields,
    Figures,
    Integer,
    Label,
    Note,
    Parts,
    Search,
    SearchResult,
    Sections,
    Solver,
    Window,
)
from dpcore.code.release_spec import Quantity
from dpcore.common.privacy import Neighbours, Provenance
from dpcore.common.programs import Program
from dpcore.common.progress import Progress, ShouldStop, Stage, never, silent
from dpcore.common.strict_json import finite_or_none
from dpcore.common.wording import format_count, format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.data import binned_values
from dpcore.dataset import Dataset
from dpcore.quantile import optimal_bound
from dpcore.quantile.answer import plots, words
from dpcore.quantile.answer import solution as core
from dpcore.quantile.answer.solution import BaseChange, BoundChoices, QuantileSolution
from dpcore.quantile.mechanism import QuantileProblem, list_assumptions
from dpcore.quantile.parameters import BoundFrom, QuantileParameters
from dpcore.quantile.programs import WEIGHTED_PROGRAMS
from dpcore.quantile.rows import WeightKind
from dpcore.report.content import write_columns

# A first answer is computed while the person waits: on two cores 3 million rows times bounds take about 0.1 s.
MAX_FIRST_CELLS, MAX_FIRST_ROWS = 3_000_000, 200_000
MAX_FIRST_SUBSAMPLES, MAX_FIRST_CAPS = 8, 6
LATER_WAIT_SECONDS, FIRST_WAIT_SECONDS = 0.03, 0.4
"""Seconds before a page shows a first answer: after a slider has moved, and on the first visit."""
MAX_ROWS_SEARCHED_AT_ONCE = 500
"""Rows up to which a search ends that soon: 6 ms for 30 rows, 17 for 300, 160 for the shop purchases."""
MAX_CACHED_ANSWERS, MAX_CACHED_ROWS = 8, 20_000
"""Number of kept answers, and the most rows of one, of 80 bytes each."""
NUM_CACHED_CHOICES = 64
"""Number of searches whose best bounds are kept."""
SENTENCE_BY_STAGE = {
    Stage.FIRST: "A first answer, from fewer bounds and subsamples",
    Stage.EARLIER: "The answer for the settings before",
}
"""Texts beside an answer that stands in for the exact one."""
FIELDS_NOT_SEARCHED = ("weighting", "bound_from", "own_bound", "alpha", "beta", "gamma", "population")
"""Fields on which the search does not depend."""


def sort_rows(
    dataset: Dataset, parameters: QuantileParameters, mechanisms: tuple[Program, ...] | None = None
) -> tuple[tuple[QuantileProblem, ...], QuantileProblem | None]:
    """Return a problem with sorted rows per mechanism, and the first of them with few subsamples.

    The second is None if there are too many rows for a first answer.
    """
    assert dataset.values is not None
    quantile_problems = core.build_problems(dataset.values, parameters, mechanisms)
    num_rows = quantile_problems[0].rows.histogram.num_rows
    if num_rows > MAX_FIRST_ROWS:
        return quantile_problems, None
    num_subsamples = max(min(MAX_FIRST_CELLS // (16 * num_rows), MAX_FIRST_SUBSAMPLES), 2)
    return quantile_problems, quantile_problems[0].with_subsamples(num_subsamples)


def choose_first_bounds(few_problem: QuantileProblem, quantiles: tuple[float, ...]) -> BoundChoices:
    """Return the best bounds of a first answer: of few caps, and of fewer smooth bounds the more rows there are."""
    num_rows = few_problem.values.values.size
    num_points, num_caps = (
        min(max(MAX_FIRST_CELLS // (2 * num_rows * cost_per_bound), 3), max_num_bounds)
        for cost_per_bound, max_num_bounds in (
            (1, optimal_bound.NUM_SEARCH_BOUNDS),
            (few_problem.rows.random_orders.num_orders, MAX_FIRST_CAPS),
        )
    )
    find_bound = partial(optimal_bound.find_best_bound, few_problem, quantiles=quantiles)
    cap_choice = find_bound(WeightKind.CAP, num_caps, max_tried_caps=0)
    has_smooth_weights = few_problem.program in WEIGHTED_PROGRAMS
    return BoundChoices(find_bound(WeightKind.SMOOTH, num_points) if has_smooth_weights else None, cap_choice)


def solve(dataset: Dataset, parameters: QuantileParameters) -> Solver:
    """Yield the searches for the best bounds and for their evaluation; return the result of the last one.

    Until it is there, a first answer from few subsamples stands in if the rows are few enough.
    """
    core.refuse_public_counts(dataset, parameters)
    # The sorted rows depend neither on these fields nor on epsilon, which is all that a slider moves.
    sort_parameters = replace(parameters.without(*FIELDS_NOT_SEARCHED, "quantiles"), epsilon=1.0)
    sort_parameters = replace(sort_parameters, neighbours=Neighbours.ADD_OR_REMOVE_USER)
    sort_arguments = dataset, sort_parameters, parameters.mechanisms
    sorted_problems, few_problem = yield Cached(sort_rows, sort_arguments, num_kept=2)
    num_rows = sorted_problems[0].values.values.size
    problem_changes = {"neighbours": parameters.neighbours, "epsilon": parameters.epsilon}
    quantile_problems = [problem.with_changes(**problem_changes) for problem in sorted_problems]
    choices_search = Search(
        "choices",
        (parameters.without(*FIELDS_NOT_SEARCHED), parameters.mechanisms),
        partial(core.search_all_bounds, parameters, quantile_problems),
        "",
        is_complete=lambda all_choices: not any(choices.is_cancelled for choices in all_choices),
        num_kept=NUM_CACHED_CHOICES,
    )

    def compute_solution(
        choices: Sequence[BoundChoices], progress: Progress, should_stop: ShouldStop
    ) -> QuantileSolution:
        """Compute the solution for the best bounds that a search found, one `BoundChoices` per mechanism."""
        return core.choose_solution(parameters, quantile_problems, choices)

    def compute_first_solution(choices: Sequence[BoundChoices] | None) -> QuantileSolution:
        """Compute a first solution from few subsamples: for the first of these choices, or if None from few bounds."""
        first_problem, quantiles = few_problem.with_changes(**problem_changes), parameters.quantile_levels
        first_choices = choices[0] if choices else choose_first_bounds(first_problem, quantiles)
        return core.compute_mechanism_solution(parameters, first_problem, first_choices)

    search_result: SearchResult = yield Search(
        "search_job",
        parameters,
        compute_solution,
        "Trying bounds on your values",
        preceding_search=choices_search,
        compute_first=None if few_problem is None else compute_first_solution,
        is_complete=lambda solution: not solution.choices.is_cancelled,
        num_kept=MAX_CACHED_ANSWERS if num_rows <= MAX_CACHED_ROWS else 0,
        first_wait_seconds=FIRST_WAIT_SECONDS,
        later_wait_seconds=LATER_WAIT_SECONDS
        if few_problem is None or num_rows <= MAX_ROWS_SEARCHED_AT_ONCE
        else 0.0,
        follows_slider=True,
        progress_texts_by_stage=SENTENCE_BY_STAGE,
    )
    return search_result


MAX_REQUESTED_ANSWERS, DEFAULT_REQUESTED_ANSWERS = 100_000, 2000


def describe_inputs(answer: Answer, dataset: Dataset) -> Parts:
    """Yield a note on the values that the answer uses, on each quantile's epsilon, and on values outside."""
    yield Note(words.describe_inputs(dataset, answer.solution))


def show_answers(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the density of the answer, and its probability of being near in rank, in two columns."""
    yield Columns((_show_density_window(answer.solution, dataset), [answer.plots["quantile-near"]()]))


def _show_density_window(solution: QuantileSolution, dataset: Dataset) -> Parts:
    """Yield the density of the answers over values that the user can change, and a note if over 5 % fall outside."""
    lowest_shown, highest_shown = yield _choose_values(
        solution, "where", partial(plots.plot_density, solution, dataset)
    )
    outside_share = 1.0 - min(
        float(output.cdf(highest_shown) - output.cdf(lowest_shown)) for output in solution.outputs
    )
    if outside_share > 0.05:
        outside_share_text = format_percent(outside_share)
        yield Note(f"{outside_share_text} of the answers fall outside: widen *Values shown*.")


def _choose_values(solution: QuantileSolution, tab_key: str, draw_plot: Callable[[Limits], Plot]) -> Window:
    """Build a `Window`: a plot over a range of values that the user can change."""
    initial_range, widest_range = core.find_shown_ranges(solution)
    widget_key = f"quantile_values_{tab_key}_{solution.parameters.quantiles}"
    return Window(draw_plot, initial_range, widest_range, widget_key, "Values shown", "From and to")


def show_poorer_bases(answer: Answer, dataset: Dataset) -> Parts:
    """Yield how much a base with less mass near the quantile costs: sentences, a choice, a search and its plot."""
    solution, parameters = answer.solution, answer.parameters
    yield "**The less mass ν has near the quantile, the more budget it takes** (assumption 1 of the paper)."
    yield words.describe_base(solution)
    base_change = yield Choice("poorer", "Make ν poorer", {change: change.value for change in BaseChange})
    yield words.describe_poorer_bases(solution, base_change)
    shifts_or_stretches, bases = core.build_poorer_bases(parameters, base_change, solution.mechanism)
    weight_kind, bound = solution.weight_kind, solution.bound
    base_arguments = solution.problem, bases, weight_kind, bound
    base_errors = yield Search(
        "poorer_job",
        (parameters.without(*FIELDS_NOT_SEARCHED), weight_kind, bound, base_change),
        partial(optimal_bound.compute_base_errors, *base_arguments, quantiles=parameters.quantile_levels),
        "Trying poorer bases",
        first_wait_seconds=0.0,
        later_wait_seconds=0.0,
    )
    if base_errors is None:
        return
    if np.isnan(base_errors).any():
        yield Note("Stopped early.")
    yield plots.plot_poorer(solution, base_change, shifts_or_stretches, base_errors, dataset)
    yield Label()


def show_paper_bound(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the paper's bound on the rank error, from numbers of rows alone: sentences, fields and a plot."""
    disclosure_text = "private" if answer.parameters.protects_users else "public"
    yield (
        "With probability 1 − 2γ the weighted rank of the answer is within this bound of q. It uses the rows per user "
        f"({disclosure_text} here) and β, and reveals **nothing about the values**."
    )
    yield Fields(("alpha", "beta", "gamma", "population"), width_shares=(2, 2, 2, 4))
    yield words.describe_paper_bound(answer.solution)
    yield Figures((answer.plots["quantile-paper"](),), axes_with_main_limits="x")
    yield Label()


def show_samples(answer: Answer, dataset: Dataset) -> Parts:
    """Yield a search that simulates answers and, once there are some, their plot beside the exact distribution."""
    yield f"**{standard.SIMULATION_SENTENCE}**"
    range_note = f"From 10 to {MAX_REQUESTED_ANSWERS:,}."
    num_requested = yield Integer(
        "draws", "Answers to draw", (10, MAX_REQUESTED_ANSWERS), DEFAULT_REQUESTED_ANSWERS, 100, range_note
    )
    if num_requested is None:
        return
    current_solution = answer.solution
    simulation_result = yield Search(
        "draws_job",
        (answer.parameters, current_solution.bound, num_requested),
        lambda *callbacks: (
            current_solution,
            num_requested,
            core.simulate_answers(current_solution.outputs, num_requested, 0, *callbacks),
        ),
        "Drawing answers",
        "Draw answers",
        "casino",
        shows_outdated=True,
    )
    if simulation_result is None:
        return
    simulated_solution, num_draws, simulated_answers = simulation_result
    num_drawn = simulated_answers.shape[0]
    if num_drawn < num_draws:
        yield Note(f"Stopped early: {format_count(num_drawn, 'answer')} drawn.")
    if num_drawn == 0:
        return
    draw_samples = partial(plots.plot_samples, simulated_solution, simulated_answers, dataset)
    yield _choose_values(current_solution, "samples", draw_samples)
    yield Label()


SECTIONS: Sections = {
    BEHIND: describe_inputs,
    "Where the answer falls": show_answers,
    "Studies": {
        "Base distribution": show_poorer_bases,
        "The paper's bound": show_paper_bound,
        "Sampled answers": show_samples,
    },
}


def build_setting(dataset: Dataset, parameters: QuantileParameters) -> ReleaseSetting | None:
    """Build the `ReleaseSetting` of the quantiles; None if the program fixes the bound."""
    if parameters.fixed_bound is not None:
        return None
    # Not the outermost candidates, which rounding moves: pages compare this range with one that was drawn.
    lower, upper = (None, None) if parameters.answer_range is None else parameters.base_range
    return ReleaseSetting(
        Quantity.QUANTILE,
        parameters.epsilon,
        parameters.neighbours,
        "" if dataset.values is None else dataset.values.column,
        lower=lower,
        upper=upper,
        uses_values=parameters.bound_from is BoundFrom.VALUES,
    )


def build_answer(
    dataset: Dataset,
    parameters: QuantileParameters,
    solution: QuantileSolution | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Answer:
    """Find the best bound for private quantiles, and the rank error of the answers.

    Args:
        dataset: The data, with values.
        parameters: The parameters.
        solution: The solution for both; computed here if it is None.
        progress: Called with the share of the search that is done, from 0 to 1.
        should_stop: Called during the search; True ends it with the best bound of those tried.

    Returns:
        The answer; its ``solution`` is a `QuantileSolution`. Plots are computed on demand.

    Raises:
        InvalidInput: The data have no values.

    Examples:
        No user has more than one row, so every row is kept.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> waits = pd.DataFrame({"user": list("abcd"), "minutes": [1, 2, 3, 4]})
        >>> ss.quantile_bound(waits, user="user", value="minutes", epsilon=1, lower=0, upper=5).headline
        'Keep at most 1 row per user.'

    Source: Epasto et al. 2020, section 4 and appendix B.
    """
    if solution is None:
        solution = core.solve(dataset, parameters, progress, should_stop)
    numbers = words.build_numbers(solution)
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=standard.add_own_error(
            numbers,
            None if parameters.own_bound is None else core.compute_mean_error(solution.own_outputs),
            format_percent,
        ),
        # A random row is a quarter of all rows off, and so the first that is not useful.
        relative_error=RelativeError(float(numbers[1].value or 0.0), "rows", limit_factor=0.5),
        assumptions=(
            *list_assumptions(parameters.neighbours, parameters.program),
            *binned_values.list_assumptions(dataset, is_quantile=True),
        ),
        disclosure=dataset.provenance,
        facts=words.build_facts(solution),
        proofs=words.list_proofs(solution),
        code=words.write_forms(solution, dataset),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "quantile-error": lambda: plots.plot_errors(solution, dataset),
            "quantile-density": lambda: plots.plot_density(solution, dataset),
            "quantile-near": lambda: plots.plot_rank_distance(solution, dataset),
            "quantile-paper": lambda: plots.plot_paper_bound(solution, dataset),
        },
        make_methods=lambda: words.write_methods(solution, dataset),
        files={
            "quantile_weights.csv": lambda: write_weights_csv(
                solution.problem.histogram, solution.weight_kind, solution.bound, dataset.provenance
            )
        },
        setting=build_setting(dataset, parameters),
        sections=SECTIONS,
    )
    return add_json_writer(
        answer,
        dataset,
        "quantile",
        lambda: _list_choice_entries(solution, dataset.provenance.label),
        question_entries={
            "neighbours": parameters.neighbours.value,
            "program": parameters.program.value,
            "mechanism": words.MECHANISM_TEXT_BY_PROGRAM[parameters.program],
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, appendix B",
        },
    )


def write_weights_csv(
    histogram: ContributionHistogram, weight_kind: WeightKind, bound: float, provenance: Provenance
) -> str:
    """Return the weights of rows for each distinct number of rows per user, as the text of a CSV file.

    Columns: ``size`` (rows per user), ``users``, ``rows_kept`` (of each such user, at random),
    ``row_weight`` (of a kept row), ``label``. Over the file, the sum of users * rows_kept * row_weight is 1.

    Args:
        histogram: Rows per user.
        weight_kind: Smooth weights or a cap.
        bound: h in rows per user.
        provenance: Whether the data are public, private or a release; the file names it.

    Source: Epasto et al. 2020, section 4 (the weights) and appendix B.
    """
    sizes = histogram.sizes
    is_cap = weight_kind is WeightKind.CAP
    kept_rows = np.minimum(sizes, int(bound)) if is_cap else sizes
    relative_row_weights = (
        np.ones(sizes.shape) if is_cap else np.minimum(bound, sizes.astype(np.float64)) / sizes
    )
    columns_by_name = {
        "size": sizes,
        "users": histogram.users,
        "rows_kept": kept_rows,
        "row_weight": relative_row_weights / float(histogram.count_kept_rows(bound)),
    }
    return write_columns(columns_by_name, provenance)


def _list_choice_entries(solution: QuantileSolution, disclosure_label: str) -> dict[str, object]:
    """Return the JSON entries on the bound, the compared mechanisms, the best bounds and each quantile."""
    return {
        "bound": solution.bound,
        "bound_label": disclosure_label,
        "rank_errors_by_mechanism": {
            words.SHORT_NAME_BY_PROGRAM[mechanism_program]: rank_error
            for mechanism_program, rank_error in solution.errors_by_mechanism.items()
        },
        "best_for_the_values": [
            {
                "weights": quantile_choice.weight_kind.value,
                "bound": quantile_choice.bound,
                "expected_rank_error": quantile_choice.rank_error,
                # One subsample alone has none.
                "standard_error_over_subsamples": finite_or_none(quantile_choice.standard_error),
                "subsamples": quantile_choice.num_subsamples,
                "expected_rank_error_without_bound": quantile_choice.unbounded_rank_error,
                "ended": quantile_choice.stop_reason,
            }
            for quantile_choice in solution.choices.each_choice
        ],
        "quantiles": [
            {
                "quantile": output.quantile,
                "epsilon": solution.epsilon_each,
                "expected_rank_error": output.expected_rank_error,
                "simulated_releases" if output.is_simulated else "subsamples": output.subsample_errors.size,
                "least_rank_error": output.least_rank_error,
                "mean_answer": output.mean,
                "interval_95": list(output.find_interval()),
                "largest_user_weight": output.largest_user_weight,
            }
            for output in solution.outputs
        ],
    }
