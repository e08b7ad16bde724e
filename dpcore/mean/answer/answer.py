"""The answer for a mean, with its tabs: one object that page, report, files, script and notebook read.

It has the expected error, the worst-case error over all values in [L, U], and the error of the mean over users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import section, standard
from dpcore.answer.answer import Answer, ReleaseSetting, add_json_writer
from dpcore.answer.axes import OutsideCounts
from dpcore.answer.methods import Methods
from dpcore.answer.plot import Plot
from dpcore.code.forms import (
    Form,
    Forms,
    OfferedPrograms,
    build_forms,
    list_data_fields,
    name_cap_form,
    name_smooth_form,
)
from dpcore.code.release_spec import Quantity
from dpcore.common.privacy import Neighbours, Provenance
from dpcore.common.programs import choose_library
from dpcore.common.wording import format_count, format_number
from dpcore.data import binned_values
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.answer import plots, users, words
from dpcore.mean.answer.ranges import MISSING_VALUES, show_ranges
from dpcore.mean.answer.solution import MeanSolution, solve
from dpcore.mean.answer.users_solution import UsersSolution
from dpcore.mean.moved_mean import describe_errors
from dpcore.mean.parameters import Clamp, MeanParameters, VarianceSource, list_assumptions
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from dpcore.mean.table_values import ValueSummary
from dpcore.mean.user_model import MODEL_ASSUMPTION
from dpcore.report.content import write_columns

PLAIN_GROWTH = mean.WeightGrowth()
"""The weight of a user grows with the number of their rows."""


def solve_beside_page(dataset: Dataset, parameters: MeanParameters) -> section.Solver:
    """Find the `MeanSolution`, without an own bound, in cached steps; values are summarised once for all epsilon."""
    value_summary = None
    if dataset.values is not None:
        dataset_and_range = dataset, parameters.lower, parameters.upper
        value_summary = yield section.Cached(ValueSummary.from_dataset, dataset_and_range, num_kept=8)
    solution = yield section.Cached(solve, (dataset, parameters.without("own_bound"), value_summary))
    return section.SearchResult(solution)


def describe_inputs(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a note with B, σ² and ρ as the answer uses them, and with the number of values outside the range."""
    parameters = answer.parameters
    problem = answer.solution.problem
    clamped_values = answer.solution.clamped_values
    value_bound_text, variance_text = map(format_number, (parameters.value_bound, problem.value_variance))
    if problem.value_variance <= parameters.largest_variance:
        variance_text += f" (at most {format_number(parameters.largest_variance)})"
    rho_text = f"ρ = {format_number(problem.user_share, 2)}"
    user_model_text = rho_text if problem.table_values is None else "the values themselves"
    values_sentences = "There are no values to read."
    if clamped_values is not None:
        num_below_and_above = clamped_values.num_below, clamped_values.num_above
        outside_counts = OutsideCounts(*num_below_and_above, problem.histogram.num_rows)
        values_sentences = outside_counts.write_sentence("[L, U]", " and is clamped", " and are clamped")
    elif parameters.variance_source is VarianceSource.FROM_VALUES:
        values_sentences += " The worst case stands in for σ²."
    yield section.Note(f"B = {value_bound_text}, σ² = {variance_text}, {user_model_text}. {values_sentences}")


def show_weights(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the plot of the weight of one row over the number of rows of its user."""
    yield section.Figures((answer.plots["mean-weights"](),), controlled_axes="y", axes_with_main_limits="x")


def show_shift_of_mean(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield how bounding shifts the mean of the values, in sentences and a plot; without values, what is missing."""
    value_summary = answer.solution.value_summary
    if value_summary is None:
        yield MISSING_VALUES
        return
    yield "\n".join(f"- {sentence}" for sentence in words.describe_shifts(answer.solution, value_summary))
    yield section.Figures((answer.plots["mean-shift"](),), controlled_axes="y", axes_with_main_limits="x")
    yield section.Label()


SECTIONS: section.Sections = {
    section.BEHIND: describe_inputs,
    "Rows and users": {"Weight of a row": show_weights, "When users differ": show_shift_of_mean},
    "Range": show_ranges,
}


def build_answer(
    dataset: Dataset, parameters: MeanParameters, solution: MeanSolution | None = None
) -> Answer:
    """Find the best bound on rows per user for a mean, and the best smooth weights.

    Args:
        dataset: The number of rows of each user; values, if there are any, give the variance where the parameters ask
            for it.
        parameters: The question.
        solution: The solution of `solve` for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `MeanSolution`. Plots are computed when they are asked for.

    Examples:
        Of 100 users with 4 rows each, the error is the noise alone: √2 · (100 − 0) / 100 users.

        >>> import dpcore as ss
        >>> answer = ss.mean_bound([4] * 100, epsilon=1, lower=0, upper=100)
        >>> print(answer.headline, round(answer.error, 2))
        Keep at most 4 rows per user. 1.41

    Source: Epasto et al. 2020, section 3; where counts are private, `dpcore.mean.private_counts`; where users differ,
    `dpcore.mean.public_counts`, `dpcore.mean.models` and `dpcore.mean.table_values`.
    """
    mean_solution = solution or solve(
        dataset, parameters, ValueSummary.from_dataset(dataset, parameters.lower, parameters.upper)
    )
    cap_choice, smooth_choice = mean_solution.cap_choice, mean_solution.smooth_choice
    cap, clamped_values = cap_choice.max_contributions, mean_solution.clamped_values
    users_solution = mean_solution.users_solution if parameters.clamp is Clamp.USERS else None
    plots_by_name: dict[str, Callable[[], Plot]] = {
        "mean-error": lambda: plots.plot_errors(mean_solution, dataset, parameters.own_bound),
        "mean-weights": lambda: plots.plot_weights(mean_solution, dataset),
    }
    if clamped_values is not None:
        plots_by_name["mean-shift"] = lambda: plots.plot_shift(mean_solution, dataset, clamped_values)
    if dataset.values is not None and plots.has_range_choice(dataset):
        choose_ranges = functools.cache(lambda: plots.choose_ranges(dataset, mean_solution, parameters))
        plots_by_name["mean-range-upper"] = lambda: plots.plot_upper(choose_ranges(), dataset)
        plots_by_name["mean-range-lower"] = lambda: plots.plot_lower(choose_ranges(), dataset)

    def list_error_entries() -> dict[str, object]:
        """Return the entries of the choice file on the errors: of clamped users, or of the cap and smooth weights."""
        if users_solution is not None:
            mean_error = users_solution.mean_error
            return {
                "standard_error": float(users_solution.standard_error),
                "variance": float(mean_error.squared_error),
                "privacy_variance": float(mean_error.privacy_variance),
                "shift": float(mean_error.shift),
            }
        cap_json_entries, smooth_json_entries = (
            private_counts.list_choice_entries(best_choice, mean_solution.problem.noise.kind, error)
            for best_choice, error in (
                (cap_choice, mean_solution.cap_standard_error),
                (smooth_choice, mean_solution.smooth_standard_error),
            )
        )
        num_kept_rows = float(dataset.histogram.count_kept_rows(cap))
        return {"rows_kept_at_cap": num_kept_rows, "cap": cap_json_entries, "smooth": smooth_json_entries}

    answer = Answer(
        headline=standard.instruct_to_cap(format_count(cap, "row")),
        detail=words.write_detail(mean_solution, dataset, parameters),
        numbers=standard.add_own_error(
            words.build_numbers(mean_solution),
            None
            if parameters.own_bound is None
            else float(mean_solution.compute_standard_errors(parameters.own_bound)),
            format_number,
        ),
        assumptions=list_assumptions(mean_solution.problem),
        disclosure=dataset.provenance,
        facts=words.build_facts(mean_solution, dataset, parameters),
        proofs=(
            ("Bound", cap_choice.certificate, cap_choice.stop_reason),
            ("Smooth weights", smooth_choice.certificate, smooth_choice.stop_reason),
        ),
        code=OfferedPrograms(
            lambda: write_mean_forms(mean_solution, dataset, parameters),
            choose_library(parameters.program, parameters.mechanism),
        ),
        near_optimal=words.describe_near_optimal(mean_solution),
        error_parts=words.list_error_parts(mean_solution),
        alternative=words.find_alternative(mean_solution),
        parameters=parameters,
        solution=mean_solution,
        plots=plots_by_name,
        make_methods=lambda: words.write_methods(mean_solution, dataset, parameters),
        files={
            "mean_weights.csv": lambda: write_weights_csv(
                mean_solution.problem, smooth_choice.threshold, cap, dataset.provenance
            )
        },
        setting=build_setting(dataset, parameters, mean_solution.problem),
        sections=SECTIONS,
    )
    if users_solution is not None:
        answer = _replace_by_clamped_users(answer, mean_solution, users_solution, dataset)
    answer = replace(answer, assumptions=(*answer.assumptions, *binned_values.list_assumptions(dataset)))
    numbers = list(answer.numbers)
    relative_error = words.measure_relative_error(dataset, mean_solution, numbers[1].value or 0.0, parameters)
    numbers[1] = replace(numbers[1], note=f"({relative_error.text})")  # The error of the best bound.
    answer = replace(answer, relative_error=relative_error, numbers=tuple(numbers))
    return add_json_writer(
        answer,
        dataset,
        dataset.share_phrase or "mean",
        list_error_entries,
        number_keys=("max_contributions", "threshold", "deviation_limit", "rows_error"),
        question_entries=_list_release_entries(mean_solution, parameters.clamp),
        data_entries=_list_value_entries(mean_solution, dataset, parameters),
    )


def _replace_by_clamped_users(
    answer: Answer, solution: MeanSolution, users_solution: UsersSolution, dataset: Dataset
) -> Answer:
    """Return the answer for clamped rows with headline, numbers, facts and plots of clamped users instead."""
    parameters, problem, smooth_choice = answer.parameters, solution.problem, solution.smooth_choice
    own_bound, error_number_key = parameters.own_bound, solution.error_name.replace(" ", "_")
    further_sentences = words.warn_of_range(
        users_solution.problem, float(users_solution.mean_error.privacy_variance), users_solution.reach
    )
    further_sentences += words.warn_of_leaks(solution, dataset, parameters)
    model_assumptions = () if users_solution.user_model is None else (MODEL_ASSUMPTION,)

    def plot_errors() -> Plot:
        """Plot the error over the bound, of clamped users and of clamped rows."""
        return users.plot_user_errors(users_solution, solution.bounds, problem, dataset, own_bound)

    def make_methods() -> Methods:
        """Write the methods section of clamped users."""
        methods = words.write_methods(solution, dataset, parameters)
        return users.write_user_methods(methods, users_solution, problem, parameters)

    return replace(
        answer,
        headline=users.write_headline(users_solution),
        detail=users.write_user_detail(users_solution, smooth_choice, further_sentences),
        numbers=standard.add_own_error(
            users.build_user_numbers(users_solution, error_number_key, dataset.histogram.num_users),
            None
            if own_bound is None
            else float(users_solution.compute_standard_errors([float(own_bound)])[0]),
            format_number,
        ),
        assumptions=(*list_assumptions(users_solution.problem, Clamp.USERS), *model_assumptions),
        facts=users.build_user_facts(users_solution, problem, answer.facts, own_bound),
        proofs=(),
        near_optimal="",
        alternative=None,
        error_parts=users.list_user_error_parts(users_solution),
        plots={**answer.plots, "mean-error": plot_errors},
        make_methods=make_methods,
        code=OfferedPrograms(
            lambda: _write_user_forms(solution, users_solution, dataset, parameters),
            choose_library(parameters.program, parameters.mechanism),
        ),
        files={
            "mean_weights.csv": lambda: write_user_weights_csv(problem, users_solution, dataset.provenance)
        },
    )


def _write_user_forms(
    solution: MeanSolution, users_solution: UsersSolution, dataset: Dataset, parameters: MeanParameters
) -> Forms:
    """Write the programs that clamp users' deviations, with smooth weights; there is none for a cap."""
    threshold, weight_growth = users_solution.threshold, PLAIN_GROWTH
    if users_solution.user_deviations is None:
        weight_growth = mean.find_weight_growth(solution.problem, threshold)
    offered_programs = write_bound_forms(
        0, threshold, solution.neighbours, dataset, parameters, weight_growth, clamps_users=True
    )
    assert offered_programs is not None  # The range is not empty, and the bound is above 0.
    return offered_programs.forms


def _list_release_entries(solution: MeanSolution, clamp_kind: Clamp) -> dict[str, str]:
    """Return the JSON entries on the release and its errors: neighbours, mechanism, kind of error, source."""
    problem = solution.problem
    release_entries = {"neighbours": solution.neighbours.value, "mechanism": problem.noise.kind.value}
    users_solution = solution.users_solution if clamp_kind is Clamp.USERS else None
    error_problem = problem if users_solution is None else users_solution.problem
    release_entries["errors_are"] = describe_errors(error_problem)
    release_entries["source"] = "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 3"
    if isinstance(problem, PrivateCountsProblem):
        released_sums_text = "sums of w (y - (L + U) / 2) and w"
        if clamp_kind is Clamp.USERS:
            released_sums_text = "pair of sums of B u / 2 + z and B u / 2 - z"
        elif problem.released_sums is ReleasedSums.PAIR:
            released_sums_text = "pair of sums of w (y - L) and w (U - y)"
        release_entries["mechanism"] += f", on the {released_sums_text}"
        release_entries["source"] = "Sweet Spot; Epasto et al. 2020 has public counts only"
    if clamp_kind is Clamp.USERS:
        release_entries["source"] = "Sweet Spot, docs/mean.md"
    return release_entries


def _list_value_entries(
    solution: MeanSolution, dataset: Dataset, parameters: MeanParameters
) -> dict[str, object]:
    """Return the JSON entries on the variance, and on the user share if one is assumed, each with its label."""
    problem, variance_source = solution.problem, parameters.variance_source
    has_values = dataset.values is not None
    if not has_values and variance_source is VarianceSource.FROM_VALUES:
        variance_source = VarianceSource.WORST_CASE  # A public figure, which stands in for them.

    def choose_label(reads_values: bool) -> str:
        """Return the label of the data for a number that is read off the values, else that of a public input."""
        return dataset.provenance.label if reads_values and has_values else "public input"

    value_entries = {
        "value_variance": problem.value_variance,
        "value_variance_from": variance_source.value,
        "value_variance_label": choose_label(variance_source is VarianceSource.FROM_VALUES),
    }
    if problem.table_values is None:
        user_share_label = choose_label(parameters.likeness is mean.Likeness.FROM_VALUES)
        value_entries |= {"user_share": problem.user_share, "user_share_label": user_share_label}
    return value_entries


def build_setting(
    dataset: Dataset, parameters: MeanParameters, problem: mean.MeanProblem | None = None
) -> ReleaseSetting:
    """Build the setting of the release that the bound is for, with the mean and variance of its values if known.

    Without a problem nothing is read off the values.
    """
    problem, value_bound = problem or parameters.build_problem(dataset.histogram), parameters.value_bound
    has_private_counts = isinstance(problem, PrivateCountsProblem)
    mean_above_lower = problem.mean_above_lower if isinstance(problem, PrivateCountsProblem) else None
    return ReleaseSetting(
        Quantity.MEAN,
        parameters.epsilon,
        Neighbours.ADD_OR_REMOVE_USER if has_private_counts else Neighbours.REPLACE_VALUES,
        column_name="" if dataset.values is None else dataset.values.column,
        lower=parameters.lower,
        upper=parameters.upper,
        # If users are clamped, the variance entered is that of values before clamping; in [L, U] it is no larger.
        variance_share=min(problem.value_variance, parameters.largest_variance) / value_bound**2,
        mean_share=None if mean_above_lower is None else mean_above_lower / value_bound,
        uses_values=dataset.values is not None and parameters.reads_values,
        targets_table_mean=problem.target is mean.Target.TABLE,
        is_best_on_values=problem.table_values is not None,
        user_share=problem.user_share,
        noise=parameters.mechanism,
        delta=parameters.delta,
        program=parameters.program,
    )


def write_weights_csv(problem: mean.MeanProblem, threshold: float, cap: int, provenance: Provenance) -> str:
    """Write the weights per distinct size, for the smooth weights and for the cap, as a CSV file.

    Columns: ``size`` (rows per user), ``users``, ``row_weight`` (smooth weight of one row of such a user),
    ``user_weight`` (of all their rows), ``rows_kept_at_cap``, ``capped_row_weight`` (of a kept row), ``label``.
    Over the file, the sum of users * size * row_weight is 1, and so is that of
    users * rows_kept_at_cap * capped_row_weight.

    If counts are private, weights are not divided by n_h, which nobody may know. Then ``user_weight`` is min(h, size),
    or the weight by `WeightGrowth`, at most h, and kept rows have weight 1. Noise for sensitivity B h goes on each of
    the two sums, with h the threshold or the cap.

    Args:
        problem: The question.
        threshold: Threshold of the smooth weights, in rows per user.
        cap: Upper bound on contributions per user.
        provenance: Whether the data are public, private or a release; the file names it.

    Source: Epasto et al. 2020, lemma 3 and claim 2.
    """
    sizes, histogram = problem.histogram.sizes, problem.histogram
    columns_by_name: dict[str, npt.ArrayLike] = {"size": sizes, "users": histogram.users}
    if isinstance(problem, PrivateCountsProblem):
        user_weights = mean.find_weight_growth(problem, threshold).compute_scaled_weights(
            threshold, sizes.astype(np.float64)
        )
        columns_by_name |= {"row_weight": user_weights / sizes, "user_weight": user_weights}
    else:
        row_weights = mean.compute_row_weight(problem, threshold, sizes)
        columns_by_name |= {"row_weight": row_weights, "user_weight": row_weights * sizes}
    columns_by_name["rows_kept_at_cap"] = np.minimum(sizes, cap)
    if not isinstance(problem, PrivateCountsProblem):
        columns_by_name["capped_row_weight"] = np.full(
            sizes.shape, 1.0 / float(histogram.count_kept_rows(cap))
        )
    return write_columns(columns_by_name, provenance)


def write_user_weights_csv(
    problem: mean.MeanProblem, users_solution: UsersSolution, provenance: Provenance
) -> str:
    """Write the weights per distinct size if users are clamped, as the mechanism uses them, as a CSV file.

    Columns: ``size`` (rows per user), ``users``, ``user_weight`` (u, of all their rows, at most h), ``row_weight`` (of
    one of them), ``largest_deviation`` (T, the same for all users), ``largest_distance`` (T / u: a mean farther from
    the middle of [L, U] is clamped), ``label``.

    Args:
        problem: The question.
        users_solution: The bound h and the limit T.
        provenance: Whether the data are public, private or a release; the file names it.
    """
    sizes, threshold = problem.histogram.sizes, users_solution.threshold
    deviation_limits = np.full(sizes.shape, users_solution.deviation_limit)
    user_weights = mean.find_weight_growth(problem, threshold).compute_scaled_weights(
        threshold, sizes.astype(np.float64)
    )
    columns_by_name = {"size": sizes, "users": problem.histogram.users, "user_weight": user_weights}
    columns_by_name |= {"row_weight": user_weights / sizes, "largest_deviation": deviation_limits}
    return write_columns({**columns_by_name, "largest_distance": deviation_limits / user_weights}, provenance)


# --- What a person takes away -----------------------------------------------------------------------------------------


def write_mean_forms(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> Forms:
    """Write programs for the best cap, the best smooth weights, and the mean over users (a bound of 1 row)."""
    threshold = solution.smooth_choice.threshold
    offered_programs = write_bound_forms(
        solution.cap_choice.max_contributions,
        threshold,
        solution.neighbours,
        dataset,
        parameters,
        mean.find_weight_growth(solution.problem, threshold),
        # A user weighs min(1, s) = 1 then, and each of their rows 1 / s.
        [(words.MEAN_OVER_USERS, Quantity.MEAN, {"threshold": 1.0})],
    )
    assert offered_programs is not None  # The range is not empty, and every bound is at least one row.
    return offered_programs.forms


def write_bound_forms(
    cap: int,
    threshold: float,
    neighbours: Neighbours,
    dataset: Dataset,
    parameters: MeanParameters,
    weight_growth: mean.WeightGrowth = PLAIN_GROWTH,
    forms_to_append: Sequence[Form] = (),
    *,
    clamps_users: bool = False,
) -> OfferedPrograms | None:
    """Write programs for a cap and for smooth weights, or return None if none can be written.

    Args:
        cap: The most rows of a user that are kept.
        threshold: Threshold of the smooth weights, in rows per user.
        neighbours: The neighbouring relation of the release.
        dataset: The data.
        parameters: The range, the budget and the noise.
        weight_growth: How a user's smooth weight grows with their rows.
        forms_to_append: Programs that follow.
        clamps_users: True if users are clamped in place of rows; there is no program for the cap then.
    """
    row_factor, effective_factor = weight_growth.compute_coefficients(threshold)
    weight_fields = {
        "threshold": threshold,
        "clamps_users": clamps_users,
        "user_share": weight_growth.user_share,
    }
    weight_fields |= {"weight_of_rows": row_factor, "weight_of_users": effective_factor}
    program_forms: list[Form] = [
        (name_smooth_form(threshold), Quantity.MEAN, weight_fields),
        *forms_to_append,
    ]
    if not clamps_users:
        program_forms.insert(0, (name_cap_form(cap), Quantity.MEAN, {"max_rows": cap}))
    settings_of_all_forms = list_data_fields(dataset) | {"lower": parameters.lower, "upper": parameters.upper}
    settings_of_all_forms |= {
        "neighbours": neighbours,
        "noise": parameters.mechanism,
        "delta": parameters.delta,
    }
    return build_forms(parameters.epsilon, settings_of_all_forms, program_forms)
