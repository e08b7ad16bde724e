"""The answer for a linear regression in words and numbers, and its tabs, as all readers take them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpcore.answer import section, standard
from dpcore.answer.answer import Answer, Number, RelativeError, add_json_writer
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.answer.section import BEHIND, Parts, Sections
from dpcore.code.forms import FILE_ROW_FIELDS, OfferedPrograms, build_forms, list_data_fields
from dpcore.code.release_spec import Quantity
from dpcore.common import noise_error
from dpcore.common.privacy import Disclosure, Neighbours, format_rounded_up
from dpcore.common.progress import Stage
from dpcore.common.strict_json import convert_certificate
from dpcore.common.wording import (
    choose_word,
    escape_text,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.dataset import Dataset
from dpcore.regression import draw, study, working_set
from dpcore.regression.answer import plots
from dpcore.regression.answer.solution import PROVED_GAP, Method, RegressionSolution, count_clipped, solve
from dpcore.regression.estimate import ErrorTarget, compute_variances
from dpcore.regression.parameters import ASSUMPTIONS, RegressionParameters

MAX_ENTRIES_AT_ONCE = 100_000
"""Entries of X up to which a curve against epsilon starts by itself."""
COEFFICIENTS_ERROR_HELP = "Root of the coefficients' total variance: sampling error and privacy noise."
FIT_ASSUMPTION = (
    "The weights are best for the coefficients. If the model fits badly, a bound may predict better."
)
NO_CAP_TRIED_NOTE = section.Note("No bound has been tried yet, or the trial was stopped.", "info")
NEIGHBOURS_CLAUSE = (
    "if they differ in the labels of one user's rows; features and owners of rows are treated as public"
)


def list_numbers(solution: RegressionSolution) -> tuple[Number, ...]:
    """List the errors in predicting labels, the noise scale, and the coefficients' errors, with each method."""
    methods_by_key, noise_scale = solution.methods_by_key, solution.best_estimate.laplace_noise.scale
    best_weights_method, no_cap_method = methods_by_key["ours"], methods_by_key["no bound"]
    cap_method = methods_by_key.get("best bound")
    prediction_error = best_weights_method.compute_error(ErrorTarget.PREDICTIONS)
    compared_errors = [
        f"{listed_method.name.lower()} {format_number(listed_method.compute_error(ErrorTarget.PREDICTIONS), 3)}"
        for listed_method in (cap_method, no_cap_method)
        if listed_method is not None
    ]
    noise_help = "b = B × (largest weight of a user) / ε, for each coefficient."
    number_fields = [
        (
            "Standard error, all coefficients",
            best_weights_method.compute_error(),
            "",
            COEFFICIENTS_ERROR_HELP,
        ),
        ("Laplace noise, scale b", noise_scale, f"({_write_noise_share(best_weights_method)})", noise_help),
        (
            "No bound, standard error",
            no_cap_method.compute_error(),
            _write_noise_share(no_cap_method),
            COEFFICIENTS_ERROR_HELP,
        ),
    ]
    if cap_method is not None:
        number_fields.insert(
            2,
            (
                "Best bound, standard error",
                cap_method.compute_error(),
                cap_method.note,
                COEFFICIENTS_ERROR_HELP,
            ),
        )
    prediction_number = Number(
        f"Error in predicting {escape_text(solution.unit, 20)} (RMSE)",
        format_number(prediction_error, 3),
        f"(guessing the mean: {format_number(float(np.std(solution.labels)), 3)})",
        "Root mean squared error of the released model on these rows.",
        prediction_error,
        key="error_in_predicting",
    )
    numbers = [
        Number(number_name, format_number(shown_number), number_note, number_help, shown_number)
        for number_name, shown_number, number_note, number_help in number_fields
    ]
    return (prediction_number, Number("Other ways", ", ".join(compared_errors)), *numbers)


def _compare_methods(solution: RegressionSolution) -> str:
    """Write the errors of the best cap, if caps were tried, and of no cap, as multiples of the best weights' error."""
    methods_by_key, ratio_phrases = solution.methods_by_key, []
    for method_key in ("best bound", "no bound"):
        if method_key in methods_by_key:
            error_ratio = methods_by_key[method_key].compute_error_ratio(methods_by_key["ours"])
            ratio_phrases.append(
                f"{method_key} {'∞' if math.isnan(error_ratio) else format_number(error_ratio, 3)}×"
            )
    return ", ".join(ratio_phrases)


def _write_noise_share(method: Method) -> str:
    """Write which share of a method's variance is privacy noise; "no error" if it has no variance."""
    return f"{format_percent(method.noise_share)} privacy noise" if method.variance > 0.0 else "no error"


def _measure_relative_error(solution: RegressionSolution) -> RelativeError:
    """Return the error of predictions over the standard deviation of the labels; infinite if that is 0."""
    label_std, prediction_error = (
        float(np.std(solution.labels)),
        solution.methods_by_key["ours"].compute_error(ErrorTarget.PREDICTIONS),
    )
    relative_error = prediction_error / label_std if label_std > 0.0 else math.inf
    cap_curve, cap_remark = solution.cap_curve, ""
    # The best weights are the best for coefficients only.
    if cap_curve is not None:
        best_index = cap_curve.find_best_index(ErrorTarget.PREDICTIONS)
        if math.sqrt(cap_curve.squared_prediction_errors[best_index]) < prediction_error:
            rows_text = format_count(int(cap_curve.caps[best_index]), "row")
            cap_remark = f"**A bound of {rows_text} per user predicts better here.** {FIT_ASSUMPTION}"
    # As long that it takes two lines on a card whatever the share is, so that nothing jumps.
    return RelativeError(
        relative_error, "that of guessing the mean", cap_remark, "the error in predictions is"
    )


def write_detail(solution: RegressionSolution) -> str:
    """Write what the best weights gain, and the sentences that qualify the headline."""
    best_weights_method = solution.methods_by_key["ours"]
    sentences = [f"Errors of coefficients over that of the best weights: {_compare_methods(solution)}."]
    if solution.stage is Stage.EARLIER:
        sentences.insert(0, "**This is the answer for the previous settings.**")
    elif solution.stage is Stage.FINAL and not solution.best_estimate.certificate.proves(PROVED_GAP):
        sentences.append("**Not yet the best**: the search was stopped; see *Search*.")
    if solution.variance_is_private:
        remedy_sentence = "Enter σ² (*More settings*) before you release."
        sentences.append(standard.warn_of_leak("σ² and these weights were", "your labels", remedy_sentence))
    prediction_error = best_weights_method.compute_error(ErrorTarget.PREDICTIONS)
    if prediction_error > float(np.std(solution.labels)):
        sentences.append(
            "**Too little budget**: the model predicts these labels worse than their mean would. Raise ε, bring more "
            "users, or drop features."
        )
    if solution.problem.residual_variance == 0.0:
        sentences.append("σ² is 0, so only privacy noise counts.")
    return " ".join(sentences)


def list_facts(solution: RegressionSolution) -> dict[str, str]:
    """Build the facts beside the answer: texts by heading."""
    estimate, cap_curve, num_users = solution.best_estimate, solution.cap_curve, solution.problem.num_users
    correlation_factor = noise_error.compute_weighted_effect(estimate.matrix, solution.problem.user_codes)
    correlated_error = math.sqrt(correlation_factor * estimate.sampling_variance + estimate.privacy_variance)
    text_by_heading = {
        "Who sets the noise": f"{format_count(solution.num_users_at_limit, 'user')} of {format_number(num_users)} "
        f"{choose_word(solution.num_users_at_limit, 'has', 'share')} the largest weight; "
        f"{format_percent(np.count_nonzero(estimate.matrix) / estimate.matrix.size)} of the weights are not 0.",
        noise_error.ASSUMPTION_LABEL: "errors of the model are assumed independent, also within a user. With a share "
        f"ρ = {noise_error.ASSUMED_USER_SHARE} of σ² between users, the standard error is "
        f"{format_number(correlated_error)}.",
    }
    if cap_curve is None:
        return text_by_heading | (
            {"Bounds": "the trial was stopped."} if solution.stage is Stage.FINAL else {}
        )
    rank_deficient_caps = cap_curve.caps[cap_curve.num_rank_deficient_draws > 0]
    if rank_deficient_caps.size:
        cap_phrase = format_count(int(rank_deficient_caps.max()), "row")
        rank_deficient_text = f"up to {cap_phrase} per user: some draws were linearly dependent."
        text_by_heading["Bounds without an estimate"] = rank_deficient_text
    if solution.near_optimal_caps is not None:
        near_optimal_text = standard.write_near_optimal_range(
            *solution.near_optimal_caps, "row", objective_text="the best bound's error"
        )
        text_by_heading["If you must bound rows per user"] = near_optimal_text
    return text_by_heading


def show_basis(answer: Answer, _dataset: Dataset) -> Parts:
    """Yield the tab on data, B, σ² and clipped labels, with the table of all methods."""
    solution: RegressionSolution = answer.solution
    problem, label_unit = solution.problem, escape_text(solution.unit, 20)
    warning_phrase = " (read from private labels: do not publish)" if solution.variance_is_private else ""
    outside_counts = count_clipped(solution.dataset, solution.parameters)
    yield section.Note(
        f"{escape_text(solution.dataset.source, 600)} {format_count(problem.num_rows, 'row')} of "
        f"{format_count(problem.num_users, 'user')}, {format_count(problem.num_features, 'feature')}. "
        f"B = {format_number(problem.value_bound)}, σ² = {format_number(problem.residual_variance)}{warning_phrase}. "
        f"{outside_counts.write_sentence('[L, U]', ' and is clipped', ' and are clipped')}"
    )
    column_formats = {"Times the best": "%.3g", "Privacy noise": "%.2g %%"}
    column_formats |= dict.fromkeys(("Standard error, coefficients", "Error, predictions"), "%.4g")
    method_columns = tabulate_methods(solution)
    yield section.Table(method_columns, "Errors of all methods", column_formats, key="regression_methods")
    yield section.Note(
        f"Errors of predictions are in {label_unit}, of coefficients in {label_unit} per unit of feature. Bounds are "
        f"averaged over {format_count(solution.cap_draws.num_draws, 'draw')}."
    )


def tabulate_methods(solution: RegressionSolution) -> dict[str, list[Any]]:
    """Build the columns, by heading, of the table of all methods, one row per method."""
    listed_methods = solution.methods_by_key.values()
    return {
        "Method": [method.name for method in listed_methods],
        "Standard error, coefficients": [method.compute_error() for method in listed_methods],
        "Times the best": [
            method.compute_error_ratio(solution.methods_by_key["ours"]) for method in listed_methods
        ],
        "Error, predictions": [method.compute_error(ErrorTarget.PREDICTIONS) for method in listed_methods],
        "Privacy noise": [100.0 * method.noise_share for method in listed_methods],
        "What it is": [method.note for method in listed_methods],
    }


def write_methods(solution: RegressionSolution) -> Methods:
    """Write the methods text: the best weights with their noise, and the error of the coefficients."""
    parameters, estimate = solution.parameters, solution.best_estimate
    release_clauses = (
        f"Labels were clipped to [{format_entered(parameters.lower)}, {format_entered(parameters.upper)}], "
        "which is treated as "
        "public. The coefficients are the product of a matrix C with the labels, where C times the features "
        f"is the identity [@epasto2020, section 5], and {cite_noise('Laplace')} was added to each of them"
    )
    # A search that goes on, or was stopped, has not reached the minimum.
    proof_sentence = "" if estimate.certificate.proves(PROVED_GAP) else f" {estimate.certificate.sentence}"
    return Methods(
        guarantee_text=write_guarantee(
            "The coefficients of a linear model were released", parameters.epsilon, NEIGHBOURS_CLAUSE
        ),
        procedure=f"{release_clauses}, of scale {format_rounded_up(estimate.laplace_noise.scale)}. The root of the "
        "total variance of the coefficients, privacy noise included, is "
        f"{format_number(math.sqrt(estimate.variance))}.{proof_sentence}",
        public_procedure=f"{release_clauses}.",
        disclosure=solution.dataset.provenance,
        rule_sentence="C was chosen to minimise the total variance of the released coefficients under the linear "
        "model; no bound on rows per user was set.",
        subject_phrase="The matrix",
    )


def write_forms(solution: RegressionSolution) -> OfferedPrograms | None:
    """Build the program that releases with the best weights, the only form; None if the settings allow none."""
    shared_settings = list_data_fields(solution.dataset) | {
        **FILE_ROW_FIELDS,
        "lower": solution.parameters.lower,
        "upper": solution.parameters.upper,
        "value_column": solution.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": solution.best_estimate.largest_user_weight,
        "num_coefficients": solution.problem.num_features,
    }
    return build_forms(solution.problem.epsilon, shared_settings, [("Weights", Quantity.COEFFICIENTS, {})])


def show_bounds(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the tab with the error against the cap."""
    if answer.solution.cap_curve is None:
        yield NO_CAP_TRIED_NOTE
    else:
        yield section.Figures((plots.plot_caps(answer.solution, answer.solution.target),), "xy")


def show_weights(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the tab with the weight of a user against their number of rows."""
    yield "**Look at** the heavy users on the right: with no bound one of them sets the noise."
    yield answer.plots["regression-weights"]()
    yield section.Label()


def show_over_epsilon(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the tab with the error against epsilon, on the data of the answer."""
    solution, problem, parameters = answer.solution, answer.solution.problem, answer.parameters
    if not solution.cap_draws.num_draws:
        yield NO_CAP_TRIED_NOTE
        return
    epsilon_sweep = yield section.Search(
        "over_epsilon",
        (parameters.lower, parameters.upper, problem.residual_variance),
        lambda tell, stop: study.sweep_epsilon(
            problem, solution.cap_draws, solution.labels, progress=tell, should_stop=stop
        ),
        "Solving at 12 values of ε",
        "" if problem.features.size <= MAX_ENTRIES_AT_ONCE else "Solve at 12 values of ε",
        describe_stop=study.describe_stop,
    )
    if epsilon_sweep is not None and epsilon_sweep["epsilon"].size:
        yield plots.plot_sweep(epsilon_sweep, solution)
        yield section.Note(f"Proved gap of the best weights: at most {epsilon_sweep['gap'].max():.0e}.")
    if solution.target is ErrorTarget.PREDICTIONS:
        yield section.Note(FIT_ASSUMPTION)
    yield section.Label()


def show_paper_figures(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the tab with the paper's figures, at its settings."""
    yield section.PaperFigures(study.FIGURES)


def show_search(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the tab with the gap by iteration and the answer of a general solver.

    While the search goes on, only a plot that is renewed.
    """
    problem, estimate = answer.solution.problem, answer.solution.best_estimate
    if answer.solution.stage is Stage.FIRST:
        yield section.Live(lambda: plots.plot_gap(tuple(estimate.search_steps), answer.disclosure))
        return
    gap_plot = plots.plot_gap(estimate.search_steps, answer.disclosure)
    yield f"{estimate.stop_reason} {gap_plot.alt}"
    yield gap_plot
    is_large = problem.features.size > working_set.MAX_CVXPY_ENTRIES
    yield from standard.show_other_solver(
        "cvxpy",
        problem.digest,
        lambda stop: working_set.compare_solvers(problem, stop),
        "Total variance",
        f"A general solver is offered up to {working_set.MAX_CVXPY_ENTRIES:,} entries of C." * is_large,
    )
    yield section.Label()


SECTIONS: Sections = {
    BEHIND: show_basis,
    "Studies": {
        "Against the bound": show_bounds,
        "Weights": show_weights,
        "Against ε": show_over_epsilon,
        "Figures 1 and 2": show_paper_figures,
        "Search": show_search,
    },
}


def build_answer(
    dataset: Dataset | None, parameters: RegressionParameters, solution: RegressionSolution | None = None
) -> Answer:
    """Compute the weights of rows in a linear regression of private labels on public features.

    Args:
        dataset: Labels, features and owners, as `dpcore.regression.problem.build_dataset` makes them of a table;
            None where they are generated, as the parameters say.
        parameters: The question.
        solution: What `solve` found for both, or what its searches have found so far; searched for here by default.

    Returns:
        The answer; its ``solution`` is a `RegressionSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.

    Examples:
        By symmetry all rows weigh 1/2; the noise is 1/2 of the range of a label, over ε. Of the total variance, 26,
        25 are the noise on both coefficients, 2 × 2 × 2.5².

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> table = pd.DataFrame({"user": list("abcd"), "x": [-1, 1, -1, 1], "y": [1, 2, 3, 4]})
        >>> answer = ss.regression_weights(table, user="user", label="y", features=["x"], epsilon=1, lower=0, upper=5)
        >>> print(answer.bound["weight"].round(3).tolist(), round(answer.error, 3))
        [0.5, 0.5, 0.5, 0.5] 5.099

    Source: Epasto et al. 2020, section 5.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    provenance, estimate = solution.dataset.provenance, solution.best_estimate
    # The main figure is the first.
    error_targets = sorted(ErrorTarget, key=lambda target: target is not solution.target)
    cap_targets = [] if solution.cap_curve is None else list(ErrorTarget)
    answer = Answer(
        headline="Weight the rows. Do not drop any.",
        detail=write_detail(solution),
        numbers=list_numbers(solution),
        assumptions=ASSUMPTIONS,
        disclosure=provenance,
        facts=list_facts(solution),
        proofs=(("Best weights", estimate.certificate, estimate.stop_reason),),
        code=write_forms(solution),
        parameters=solution.parameters,
        solution=solution,
        plots={
            **{
                plots.ERROR_PLOT_KEY_BY_TARGET[t]: functools.partial(plots.plot_errors, solution, t)
                for t in error_targets
            },
            **{
                plots.CAP_PLOT_KEY_BY_TARGET[t]: functools.partial(plots.plot_caps, solution, t)
                for t in cap_targets
            },
            "regression-weights": lambda: plots.plot_weights(solution),
        },
        make_methods=lambda: write_methods(solution),
        bound=lambda: draw.tabulate_users(solution.problem, estimate),
        files={
            "regression_matrix.parquet": lambda: draw.write_matrix(solution.problem, estimate, provenance)
        },
        sections=SECTIONS,
        error=math.sqrt(estimate.variance),
        relative_error=_measure_relative_error(solution),
    )
    return add_json_writer(
        answer,
        solution.dataset,
        "linear regression with private labels",
        lambda: _list_choice_entries(solution),
        question_entries={
            # In every choice, ``source`` is the work with the method.
            "data_source": solution.parameters.source.value,
            "mechanism": "Laplace",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 5",
        },
        data_entries={
            "feature_names": list(solution.problem.feature_names),
            "residual_variance": solution.problem.residual_variance,
            "residual_variance_label": (
                provenance if solution.variance_is_estimated else Disclosure.PUBLIC
            ).label,
        },
        schema="sweetspot/regression/1",
    )


def _list_choice_entries(solution: RegressionSolution) -> dict[str, object]:
    """Return the JSON entries of the answer by key: variances, noise, certificate, and the best cap if tried."""
    estimate, cap_curve = solution.best_estimate, solution.cap_curve
    best_cap_variance = None if cap_curve is None else float(cap_curve.variances[cap_curve.best_index])
    return {
        "total_variance": estimate.variance,
        "sampling_variance": estimate.sampling_variance,
        "privacy_variance": estimate.privacy_variance,
        "laplace_scale": estimate.laplace_noise.scale,
        "largest_user_weight": estimate.largest_user_weight,
        "standard_errors": np.sqrt(compute_variances(solution.problem, estimate)).tolist(),
        **convert_certificate(estimate.certificate),
        "ended": estimate.stop_reason,
        "max_contributions": None if cap_curve is None else cap_curve.max_contributions,
        "best_cap_total_variance": best_cap_variance,
    }
