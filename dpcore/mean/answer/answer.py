"""The answer for a mean, with its tabs: one object that page, report, files, script and notebook read.

It has the expected error, the worst-case error over all values in [L, U], and the error of the mean over users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpcore import mean
from dpcore.answer import section, standard
from dpcore.answer.answer import Answer, ReleaseSetting, add_choice
from dpcore.answer.axes import OutsideCounts
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.answer.plot import Plot
from dpcore.code.choice import Quantity
from dpcore.code.forms import (
    CodeChoice,
    Form,
    Forms,
    build_forms,
    list_data_fields,
    name_cap_form,
    name_smooth_form,
)
from dpcore.common import wording
from dpcore.common.privacy import Neighbours, Provenance
from dpcore.common.programs import choose_library
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.answer import plots, users
from dpcore.mean.answer.ranges import NO_VALUES, show_ranges
from dpcore.mean.answer.solution import (
    MEAN_OVER_USERS,
    MeanSolution,
    build_facts,
    build_numbers,
    describe_near_optimal,
    describe_shifts,
    list_error_parts,
    solve,
    warn_of_leaks,
    write_detail,
)
from dpcore.mean.parameters import Clamp, MeanParameters, VarianceSource, assumptions
from dpcore.mean.private_counts import PrivateCountsProblem, Release
from dpcore.mean.table_values import ValueSummary
from dpcore.report.content import write_columns

PLAIN = mean.Growth()
"""The weight of a user grows with the number of their rows."""


def solve_beside_page(dataset: Dataset, parameters: MeanParameters) -> section.Solver:
    """Find the best bounds; the summary of the values does not depend on epsilon, and is computed once."""
    summary = None
    if dataset.values is not None:
        summary = yield section.Cached(
            ValueSummary.from_dataset, (dataset, parameters.lower, parameters.upper), num_kept=8
        )
    solution = yield section.Cached(solve, (dataset, parameters.without("own_bound"), summary))
    return section.SearchResult(solution)


def describe_inputs(answer: Answer, dataset: Dataset) -> section.Parts:
    """Name the quantities that the answer is computed with, and where they come from."""
    parameters, problem, clamped = answer.parameters, answer.solution.problem, answer.solution.clamped
    variance, largest = wording.number(problem.value_variance), wording.number(parameters.largest_variance)
    share = wording.number(problem.user_share, 2)
    users = f"ρ = {share}" if problem.table is None else "the values themselves"
    sentence = "There are no values to read."
    if clamped is not None:
        outside = OutsideCounts(clamped.num_below, clamped.num_above, problem.histogram.num_rows)
        sentence = outside.write_sentence("[L, U]", " and is clamped", " and are clamped")
    elif parameters.variance_source is VarianceSource.FROM_VALUES:
        sentence += " The worst case stands in for σ²."
    yield section.Note(
        f"B = {wording.number(parameters.value_bound)}, σ² = {variance} (at most {largest}), {users}. {sentence}"
    )


def show_weights(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show how much one row counts against its user's size."""
    yield section.Figures((answer.plots["mean-weights"](),), controlled_axes="y", axes_with_main_limits="x")


def show_hidden(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show what the assumption of independent rows hides."""
    summary = answer.solution.values
    if summary is None:
        yield NO_VALUES
        return
    yield "\n".join(f"- {sentence}" for sentence in describe_shifts(answer.solution, summary))
    yield section.Figures((answer.plots["mean-shift"](),), controlled_axes="y", axes_with_main_limits="x")
    yield section.Label()


SECTIONS: section.Sections = {
    section.BEHIND: describe_inputs,
    "Rows and users": {"Weight of a row": show_weights, "When users differ": show_hidden},
    "Range": show_ranges,
}


def build_answer(
    dataset: Dataset, parameters: MeanParameters, solution: MeanSolution | None = None
) -> Answer:
    """Build the answer: the best bound on rows per user for a mean, and the best smooth weights.

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
        Keep at most 4 rows of each user. 1.41

    Source: Epasto et al. 2020, section 3; where counts are private, `dpcore.mean.private_counts`; where users differ,
    `dpcore.mean.public_counts`, `dpcore.mean.models` and `dpcore.mean.table_values`.
    """
    if solution is None:
        solution = solve(
            dataset, parameters, ValueSummary.from_dataset(dataset, parameters.lower, parameters.upper)
        )
    solved, clamped = solution, solution.clamped
    figures: dict[str, Callable[[], Plot]] = {
        "mean-error": lambda: plots.plot_errors(solved, dataset, parameters.own_bound),
        "mean-weights": lambda: plots.plot_weights(solved, dataset),
    }
    if clamped is not None:
        figures["mean-shift"] = lambda: plots.plot_shift(solved, dataset, clamped)
    if dataset.values is not None and plots.has_range_choice(dataset):
        choose_ranges = functools.cache(lambda: plots.choose_ranges(dataset, solved, parameters))
        figures["mean-range-upper"] = lambda: plots.plot_upper(choose_ranges(), dataset)
        figures["mean-range-lower"] = lambda: plots.plot_lower(choose_ranges(), dataset)
    answer = Answer(
        headline=standard.instruct_to_cap(wording.counted(solved.cap.max_contributions, "row")),
        detail=write_detail(solved, dataset, parameters),
        numbers=build_numbers(solved),
        assumptions=assumptions(solved.problem),
        disclosure=dataset.provenance,
        facts=build_facts(solved, dataset, parameters),
        proofs=(
            ("Bound", solved.cap.certificate, solved.cap.stop_reason),
            ("Smooth weights", solved.smooth.certificate, solved.smooth.stop_reason),
        ),
        code=CodeChoice(
            lambda: write_mean_forms(solved, dataset, parameters),
            choose_library(parameters.program, parameters.mechanism),
        ),
        near_optimal=describe_near_optimal(solved),
        error_parts=list_error_parts(solved),
        parameters=parameters,
        solution=solved,
        plots=figures,
        make_methods=lambda: write_methods(solved, dataset, parameters),
        files={
            "mean_weights.csv": lambda: write_weights_csv(
                solved.problem, solved.smooth.threshold, solved.cap.max_contributions, dataset.provenance
            )
        },
        setting=build_setting(solved, dataset, parameters),
        sections=SECTIONS,
    )
    if solved.users is not None and parameters.clamp is Clamp.USERS:
        answer = _clamp_users(answer, solved, solved.users, dataset)
    return add_choice(
        answer,
        dataset,
        "mean",
        lambda: (
            _detail_users(solved.users)
            if solved.users is not None and parameters.clamp is Clamp.USERS
            else {
                "rows_kept_at_cap": float(dataset.histogram.kept_rows(solved.cap.max_contributions)),
                "cap": private_counts.error_parts(solved.cap, solved.problem.noise.kind),
                "smooth": private_counts.error_parts(solved.smooth, solved.problem.noise.kind),
            }
        ),
        number_keys=("max_contributions", "threshold", "deviation_limit", "rows_error"),
        question_entries=_describe_release(solved, parameters.clamp),
        data_entries=_describe_values(solved, dataset, parameters),
    )


def _clamp_users(
    answer: Answer, solution: MeanSolution, clamped_users: users.UsersSolution, dataset: Dataset
) -> Answer:
    """Return the answer for clamped users from that for clamped rows."""
    parameters, rows_error, problem = answer.parameters, solution.smooth.standard_error, solution.problem
    key = solution.error_name.replace(" ", "_")
    rows_methods = answer.make_methods
    weight_growth = (
        mean.growth(problem, clamped_users.threshold) if clamped_users.deviations is None else PLAIN
    )
    figures = {
        "mean-error": lambda: users.plot_user_errors(
            clamped_users, solution.bounds, solution.smoothed, problem, dataset, parameters.own_bound
        )
    }

    def make_methods() -> Methods | None:
        methods = None if rows_methods is None else rows_methods()
        return methods and users.write_user_methods(methods, clamped_users, problem, parameters)

    return replace(
        answer,
        headline=users.write_headline(clamped_users),
        detail=users.write_user_detail(
            clamped_users,
            solution.smooth,
            problem,
            warn_of_leaks(solution, dataset, parameters),
        ),
        numbers=users.build_user_numbers(clamped_users, rows_error, key, dataset.histogram.num_users),
        assumptions=assumptions(problem, Clamp.USERS),
        facts=users.build_user_facts(clamped_users, problem, answer.facts, parameters.own_bound),
        proofs=(),
        near_optimal="",
        error_parts=users.list_user_error_parts(clamped_users),
        plots={**answer.plots, **figures},
        make_methods=make_methods,
        code=CodeChoice(
            lambda: _write_user_forms(solution, clamped_users, weight_growth, dataset, parameters),
            choose_library(parameters.program, parameters.mechanism),
        ),
        files={
            "mean_weights.csv": lambda: write_weights_csv(
                problem, clamped_users.threshold, solution.cap.max_contributions, dataset.provenance
            )
        },
    )


def _write_user_forms(
    solution: MeanSolution,
    clamped_users: users.UsersSolution,
    weight_growth: mean.Growth,
    dataset: Dataset,
    parameters: MeanParameters,
) -> Forms:
    """Write the program that clamps users' deviations; it has smooth weights."""
    choice = write_bound_forms(
        0, clamped_users.threshold, solution.neighbours, dataset, parameters, weight_growth, clamps_users=True
    )
    assert choice is not None  # The range is not empty, and the bound is above 0.
    return choice.forms


def _describe_release(solution: MeanSolution, clamp: Clamp) -> dict[str, str]:
    """Return the fields of the choice file on the release and its errors."""
    problem = solution.problem
    mechanism, errors = problem.noise.kind.value, "exact"
    source = "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 3"
    if isinstance(problem, PrivateCountsProblem):
        is_pair, errors = problem.release is Release.PAIR, private_counts.ERROR_IS
        sums = "pair of sums of w (y - L) and w (U - y)" if is_pair else "sums of w (y - (L + U) / 2) and w"
        sums = "pair of sums of B u / 2 + z and B u / 2 - z" if clamp is Clamp.USERS else sums
        mechanism = f"{mechanism}, on the {sums}"
        source = "Sweet Spot; Epasto et al. 2020 has public counts only"
    if clamp is Clamp.USERS:
        source = "Sweet Spot, docs/mean.md"
    neighbours = solution.neighbours.value
    return {"neighbours": neighbours, "mechanism": mechanism, "errors_are": errors, "source": source}


def _detail_users(clamped_users: users.UsersSolution) -> dict[str, float]:
    """Return the error of clamped users with its parts, for the choice file."""
    error = clamped_users.error
    parts = {"variance": error.variance, "privacy_variance": error.privacy_variance, "shift": error.shift}
    return {"standard_error": clamped_users.standard_error} | {
        name: float(part) for name, part in parts.items()
    }


def _describe_values(
    solution: MeanSolution, dataset: Dataset, parameters: MeanParameters
) -> dict[str, object]:
    """Return the variance and the user share that the choice file states, each with its label."""
    problem, has_values, source = solution.problem, dataset.values is not None, parameters.variance_source
    if not has_values and source is VarianceSource.FROM_VALUES:
        source = VarianceSource.WORST_CASE  # A public figure, which stands in for them.

    def label(reads: bool) -> str:
        return dataset.provenance.label if reads and has_values else "public input"

    description = {
        "value_variance": problem.value_variance,
        "value_variance_from": source.value,
        "value_variance_label": label(source is VarianceSource.FROM_VALUES),
    }
    if problem.table is None:
        share_label = label(parameters.likeness is mean.Likeness.FROM_VALUES)
        description |= {"user_share": problem.user_share, "user_share_label": share_label}
    return description


def build_setting(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> ReleaseSetting:
    """Build the setting of the release that the bound is for, with the mean and variance of its values if known."""
    problem, width = solution.problem, parameters.value_bound
    uses_values = solution.clamped is not None and parameters.reads_values
    around = problem.value_mean if isinstance(problem, private_counts.PrivateCountsProblem) else None
    return ReleaseSetting(
        Quantity.MEAN,
        parameters.epsilon,
        solution.neighbours,
        column_name="" if dataset.values is None else dataset.values.column,
        lower=parameters.lower,
        upper=parameters.upper,
        variance_share=problem.value_variance / width**2,
        mean_share=None if around is None else around / width,
        uses_values=uses_values,
        is_table_mean=solution.is_about_table,
        is_exact_for_values=problem.table is not None,
        user_share=problem.user_share,
        noise=parameters.mechanism,
        delta=parameters.delta,
    )


def write_weights_csv(problem: mean.MeanProblem, threshold: float, cap: int, disclosure: Provenance) -> str:
    """Return the weights per distinct size, for the smooth weights and for the cap.

    Columns: ``size`` (rows per user), ``users``, ``row_weight`` (smooth weight of one row of such a user),
    ``user_weight`` (of all their rows), ``rows_kept_at_cap``, ``capped_row_weight`` (of a kept row), ``label``.
    Over the file, the sum of users * size * row_weight is 1, and so is that of
    users * rows_kept_at_cap * capped_row_weight.

    If counts are private, weights are not divided by n_h, which nobody may know. Then ``user_weight`` is min(h, size),
    or the growing weight of `Growth`, at most h, and kept rows have weight 1. Noise for sensitivity B h goes on each of
    the two sums, with h the threshold or the cap.

    Args:
        problem: The question.
        threshold: Threshold of the smooth weights, in rows per user.
        cap: Upper bound on contributions per user.
        disclosure: Whether the data are public, private or a release; the file names it.

    Source: Epasto et al. 2020, lemma 3 and claim 2.
    """
    sizes, histogram = problem.histogram.sizes, problem.histogram
    more_columns = {}
    if isinstance(problem, PrivateCountsProblem):
        user_weight = mean.growth(problem, threshold).scaled_weights(threshold, sizes.astype(np.float64))
        row_weight = user_weight / sizes
    else:
        row_weight = mean.user_weight(problem, threshold, sizes)
        user_weight = row_weight * sizes
        more_columns["capped_row_weight"] = np.full(sizes.shape, 1.0 / float(histogram.kept_rows(cap)))
    columns = {"size": sizes, "users": histogram.users, "row_weight": row_weight, "user_weight": user_weight}
    columns["rows_kept_at_cap"] = np.minimum(sizes, cap)
    return write_columns(columns | more_columns, disclosure)


# --- What a person takes away -----------------------------------------------------------------------------------------


def write_methods(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> Methods:
    """Write the sentences of a methods section: guarantee, best cap, released sums and expected error."""
    interval = f"[{wording.entered(parameters.lower)}, {wording.entered(parameters.upper)}]"
    problem = solution.problem
    target, approximately = "the mean of the kept values [@epasto2020, section 3].", ""
    if isinstance(problem, PrivateCountsProblem):
        approximately = " (by the delta method)"
        target = "the sums of the kept values' distances from both ends of that interval."
        if problem.release is not Release.PAIR:
            target = "the sum of the kept values around the middle of that interval, and to their number."
    noise = cite_noise(problem.noise.kind.value, problem.program)
    sentences = (
        f"Values were clamped to {interval}, which is treated as public, and {noise} was added to {target}"
    )
    cap, error = solution.cap.max_contributions, wording.number(solution.cap.standard_error)
    rows, verb = wording.counted(cap, "row"), wording.agreeing(cap, "was", "were")
    error_name = "error, as root mean square," if solution.is_about_table else "standard error"
    return Methods(
        guarantee_text=write_guarantee(
            "The mean was released", parameters.epsilon, solution.neighbours, parameters.delta or 0.0
        ),
        procedure=f"At most {rows} of each user, drawn at random, {verb} kept. {sentences} The expected {error_name} "
        f"of the released mean is {error} in the unit of the values, noise included{approximately}.",
        public_procedure=f"At most a fixed number of rows of each user, drawn at random, were kept. {sentences}",
        disclosure=dataset.provenance,
        rule_sentence="The bound on rows per user minimises the expected squared error of the released mean"
        f"{_describe_rule(solution)}.",
    )


def _describe_rule(solution: MeanSolution) -> str:
    """Describe the target of the error, and the assumptions about users."""
    problem, about_table = solution.problem, " about the mean of the rows at hand"
    if problem.table is not None:
        return f"{about_table} before clamping, computed from the values"
    share = f" if a share of {wording.number(problem.user_share, 2)} of the variance lies between users"
    if not solution.is_about_table:
        return share if problem.user_share else " for rows that are independent draws"
    condition = " if numbers of rows say nothing about the values"
    return f"{about_table}{condition}{f' and{share}' if problem.user_share else ''}"


def write_mean_forms(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> Forms:
    """Write programs for the best cap, the best smooth weights, and the mean over users (a bound of 1 row)."""
    threshold = solution.smooth.threshold
    choice = write_bound_forms(
        solution.cap.max_contributions,
        threshold,
        solution.neighbours,
        dataset,
        parameters,
        mean.growth(solution.problem, threshold),
        # A user weighs min(1, s) = 1 then, and each of their rows 1 / s.
        [(MEAN_OVER_USERS, Quantity.MEAN, {"threshold": 1.0})],
    )
    assert choice is not None  # The range is not empty, and every bound is at least one row.
    return choice.forms


def write_bound_forms(
    cap: int,
    smooth: float,
    relation: Neighbours,
    dataset: Dataset,
    parameters: MeanParameters,
    growth: mean.Growth = PLAIN,
    further_forms: Sequence[Form] = (),
    *,
    clamps_users: bool = False,
) -> CodeChoice | None:
    """Write programs for a cap and for smooth weights, or return None if none can be written.

    If users are clamped in place of rows, there is a program for the smooth weights only.
    """
    ends = {"lower": parameters.lower, "upper": parameters.upper}
    row_weight, user_weight = growth.coefficients(smooth)
    weights = {"weight_of_rows": row_weight, "weight_of_users": user_weight, "user_share": growth.user_share}
    cap_program: Form = (name_cap_form(cap), Quantity.MEAN, {"max_rows": cap})
    forms: list[Form] = [
        *([] if clamps_users else [cap_program]),
        (
            name_smooth_form(smooth),
            Quantity.MEAN,
            {"threshold": smooth, "clamps_users": clamps_users, **weights},
        ),
        *further_forms,
    ]
    base = list_data_fields(dataset) | ends | {"neighbours": relation}
    base |= {"noise": parameters.mechanism, "delta": parameters.delta}
    return build_forms(parameters.epsilon, base, forms)
