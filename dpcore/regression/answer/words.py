"""The answer for a linear regression in words and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Number
from dpcore.answer.axes import OutsideCounts
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.code.choice import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common import noise_error, wording
from dpcore.common.privacy import Neighbours, format_rounded_up
from dpcore.common.progress import Stage
from dpcore.data.column_names import escape_formula
from dpcore.regression.answer.solution import PROVED, Method, RegressionSolution, count_clipped
from dpcore.regression.draw import Draw
from dpcore.regression.estimate import ErrorTarget, compute_variances
from dpcore.regression.parameters import DataSource

WARN_CLIPPED = 0.05
"""Share of clipped labels above which the answer warns."""
TOTAL_HELP = (
    "Root of the total variance of the released coefficients, each in units of the label per unit of its feature: "
    "sampling error and privacy noise."
)


def list_numbers(solution: RegressionSolution) -> tuple[Number, ...]:
    """List the error of the best weights and their noise, and the error of the best cap and of none."""
    methods, scale = solution.methods, solution.best_estimate.noise.scale
    ours, no_bound, best_bound = methods["ours"], methods["no bound"], methods.get("best bound")
    spread, prediction = float(np.std(solution.labels)), ours.error(ErrorTarget.PREDICTIONS)
    noise_help = "b = B × (largest weight of a user) / ε: what the release adds to each coefficient."
    prediction_help = "Root of the expected squared error of the released model's predictions on these rows."
    entries = [
        ("Standard error, total", ours.error(), "", TOTAL_HELP),
        ("Laplace noise, scale b", scale, f"({_write_noise_share(ours)})", noise_help),
        ("No bound, standard error", no_bound.error(), _write_noise_share(no_bound), TOTAL_HELP),
    ]
    if best_bound is not None:
        entries.insert(2, ("Best bound, standard error", best_bound.error(), best_bound.note, TOTAL_HELP))
    label, note = (
        f"Error in predicting {wording.plain(solution.unit, 20)}",
        f"labels spread by {wording.number(spread)}",
    )
    return (
        *(Number(name, wording.number(value), note, help_, value) for name, value, note, help_ in entries),
        Number(
            label, wording.number(prediction), note, prediction_help, prediction, key="error_in_predicting"
        ),
    )


def _write_noise_share(method: Method) -> str:
    return f"{wording.percent(method.noise_share)} privacy noise" if method.variance > 0.0 else "no error"


def _compare_methods(solution: RegressionSolution) -> str:
    """Say how many times larger the error of the best cap and of equal weights is, in two lines beside the figure."""
    ours, best_bound = solution.methods["ours"], solution.methods.get("best bound")

    def write_ratio(method: Method) -> str:
        return f"{wording.number(method.divide_by(ours), 3) if ours.variance > 0.0 else '∞'} times"

    plain_ratio = write_ratio(solution.methods["no bound"])
    if best_bound is None:
        return f"With no bound and equal weights the error is {plain_ratio} as large."
    rows = best_bound.note.removeprefix("at most ")
    return f"The best bound, {rows}, has {write_ratio(best_bound)} this error; equal weights {plain_ratio}."


def describe_near_optimal(solution: RegressionSolution) -> str:
    """Say from which cap to which one the error stays near that of the best cap."""
    if solution.near_optimal_caps is None:
        return ""
    rows = standard.write_range(*solution.near_optimal_caps, "row", objective="the best bound's error")
    return f"where you must bound rows per user, {rows}"


FIT = (
    "These weights are the best for the coefficients. Where the model misses much (no intercept, say), a bound may "
    "predict better."
)


def write_detail(solution: RegressionSolution) -> str:
    """Say what the best weights gain, and how that must be qualified."""
    sentences, caps = [_compare_methods(solution)], solution.caps
    prediction = solution.methods["ours"].error(ErrorTarget.PREDICTIONS)
    if solution.stage is Stage.EARLIER:
        sentences.insert(0, "**This is the answer for the settings before.**")
    elif solution.stage is Stage.FINAL and not solution.best_estimate.certificate.proves(PROVED):
        sentences.append("**Not yet the best**: the search was stopped; see *Search*.")
    if solution.variance_is_private:
        remedy = "Enter σ² (*More settings*) before you release."
        sentences.append(standard.warn_of_leak("σ² and these weights were", "your labels", remedy))
    if prediction > float(np.std(solution.labels)):
        sentences.append(
            "**Too little budget**: the released model predicts these labels worse than their mean would. Raise ε, "
            "bring more users, or drop features."
        )
    # The best weights are the best for coefficients only.
    predictions = ErrorTarget.PREDICTIONS
    if caps is not None and math.sqrt(caps.errors(predictions)[caps.find_best(predictions)]) < prediction:
        sentences.append(f"**In predictions a bound does better here.** {FIT}")
    if solution.problem.residual_variance == 0.0:
        sentences.append("σ² is 0, so only privacy noise counts.")
    return " ".join(sentences)


def _count_share(num_users: int, everybody: int) -> str:
    if num_users == everybody:
        return f"all {wording.counted(everybody, 'user')}" if everybody > 1 else "the only user"
    return f"{wording.counted(num_users, 'user')} of {wording.number(everybody)}"


def list_facts(solution: RegressionSolution) -> dict[str, str]:
    """Explain the noise, who sets it and the bounds in sentences, each under its heading."""
    estimate, caps, no_cap = solution.best_estimate, solution.caps, solution.no_cap
    effect = noise_error.weighted_effect(estimate.matrix, solution.problem.user_codes)
    error = math.sqrt(effect * estimate.sampling_variance + estimate.privacy_variance)
    at_limit, times = solution.at_limit, no_cap.largest_user_weight / estimate.largest_user_weight
    nonzero = wording.percent(np.count_nonzero(estimate.matrix) / estimate.matrix.size)
    facts = {
        "Noise": f"with no bound its scale would be {wording.number(no_cap.noise.scale)}: one user would weigh "
        f"{wording.number(times, 2)} times as much as anybody here.",
        "Who sets the noise": f"{_count_share(at_limit, solution.problem.num_users)} "
        f"{wording.agreeing(at_limit, 'has', 'share')} the largest weight; {nonzero} of the weights are not 0.",
        noise_error.NAME: "errors of the model are taken as independent, also within a user. With a share "
        f"ρ = {noise_error.ASSUMED_SHARE} of σ² between users, the sampling variance is {wording.number(effect)} times "
        f"as large and the standard error {wording.number(error)}.",
    }
    if caps is not None:
        deficient = caps.caps[caps.rank_deficient > 0]
        if deficient.size:
            facts["Bounds without an estimate"] = (
                f"up to {wording.counted(int(deficient.max()), 'row')} per user; there some draws kept linearly "
                "dependent rows."
            )
    elif solution.stage is Stage.FINAL:
        facts["Bounds"] = "the trial of bounds was stopped."
    return facts


def describe_basis(solution: RegressionSolution) -> str:
    """Describe the quantities that the answer is computed with, and where they come from."""
    data, problem = solution.data, solution.problem
    warning = " (read from private labels: do not publish)" if solution.variance_is_private else ""
    clipped = count_clipped(data, solution.parameters)
    return (
        f"{wording.plain(data.source, 600)} {wording.counted(problem.num_rows, 'row')} of "
        f"{wording.counted(problem.num_users, 'user')}, {wording.counted(problem.num_features, 'feature')}. "
        f"B = {wording.number(problem.value_bound)}, σ² = {wording.number(problem.residual_variance)}{warning}. "
        f"{clipped.write_sentence('[L, U]', ' and is clipped', ' and are clipped')}"
    )


def warn_of_clipping(outside: OutsideCounts) -> str:
    """Warn of many clipped labels; empty if there are few."""
    if outside.num_outside <= WARN_CLIPPED * outside.num_values:
        return ""
    return (
        f"{outside.percent} of the labels are clipped: the coefficients are off by more than the numbers below say. "
        "Set L and U from what you know of the quantity."
    )


def tabulate_methods(solution: RegressionSolution) -> dict[str, list[Any]]:
    """Tabulate the errors of all methods."""
    methods = solution.methods.values()
    return {
        "Method": [method.name for method in methods],
        "Standard error, coefficients": [method.error() for method in methods],
        "Times the best": [method.divide_by(solution.methods["ours"]) for method in methods],
        "Error, predictions": [method.error(ErrorTarget.PREDICTIONS) for method in methods],
        "Privacy noise": [100.0 * method.noise_share for method in methods],
        "What it is": [method.note for method in methods],
    }


def describe_methods(solution: RegressionSolution) -> str:
    """Explain the columns of the table of methods."""
    unit, draws = wording.plain(solution.unit, 20), wording.counted(solution.draws.num_draws, "draw")
    return (
        f"Errors of coefficients are in {unit} per unit of feature, of predictions in {unit}. Bounds are averaged over "
        f"{draws}. *Best bound* is best for the coefficients."
    )


def tabulate_release(solution: RegressionSolution, draw: Draw | None) -> dict[str, Any]:
    """Tabulate the coefficients of the latest draw with their intervals; before the first one, their errors alone."""
    problem, estimate = solution.problem, solution.best_estimate
    names = problem.feature_names if draw is None else draw.names
    columns: dict[str, Any] = {"Coefficient": [escape_formula(name) for name in names]}
    if draw is not None:
        columns["Released"] = values = draw.release.values
        columns |= {"95 % from": values - draw.half_widths, "95 % to": values + draw.half_widths}
    scale = estimate.noise.scale if draw is None else draw.release.scale
    errors = np.sqrt(compute_variances(problem, estimate)) if draw is None else draw.standard_errors
    columns |= {"Noise scale b": np.full(len(names), scale), "Standard error": errors}
    if solution.parameters.source is DataSource.GENERATED:
        columns["True (generated)"] = solution.parameters.generator.generate().coefficients
    return columns


def describe_release(solution: RegressionSolution) -> str:
    """Describe the units of released coefficients, and what their errors and intervals hold."""
    unit = wording.plain(solution.unit, 30)
    return (
        f"A coefficient is in {unit} per unit of its feature; of a one-hot feature in {unit}, compared with the "
        "reference level. Standard errors and intervals contain sampling error and noise. They take σ² as given, and "
        "hold for each coefficient alone, if the labels follow the model and few are clipped."
    )


def describe_end(solution: RegressionSolution) -> str:
    """Describe how the searches ended, with an icon."""
    certificate = solution.best_estimate.certificate
    if not certificate.proves(PROVED):
        gap = wording.percent(certificate.relative_gap)
        return (
            f":material/pan_tool: The search was stopped: another C could save at most {gap} of its variance."
        )
    if not solution.draws.num_draws:
        return ":material/pan_tool: The trial of bounds was stopped."
    return ":material/verified: Proved best; the proof is in *Behind the answer*."


def describe_files(solution: RegressionSolution) -> str:
    """Describe the content of the files, in Markdown."""
    return (
        "**C** holds one line per complete row of the table and one column per coefficient: the sums over rows of "
        "entry × clipped label are the coefficients before noise. **Choice** holds question and answer. Label in both: "
        f"*{solution.data.provenance.label}*. Released coefficients are under *Release*."
    )


NEIGHBOURS = (
    "if they differ in the labels of one user's rows; features and owners of rows are treated as public"
)


def write_methods(solution: RegressionSolution) -> Methods:
    """State the best weights with their noise, and the error of the coefficients."""
    p, estimate = solution.parameters, solution.best_estimate
    clipped = (
        f"Labels were clipped to [{wording.entered(p.lower)}, {wording.entered(p.upper)}], which is treated as "
        "public. The coefficients are the product of a matrix C with the labels, where C times the features "
        f"is the identity [@epasto2020, section 5], and {cite_noise('Laplace')} was added to each of them"
    )
    # A search that goes on, or was stopped, has not reached the minimum.
    proved = "" if estimate.certificate.proves(PROVED) else f" {estimate.certificate.sentence}"
    return Methods(
        guarantee=write_guarantee("The coefficients of a linear model were released", p.epsilon, NEIGHBOURS),
        sentences=f"{clipped}, of scale {format_rounded_up(estimate.noise.scale)}. The root of the total variance of "
        f"the coefficients, privacy noise included, is {wording.number(math.sqrt(estimate.variance))}.{proved}",
        public_sentences=f"{clipped}.",
        disclosure=solution.data.provenance,
        rule="C was chosen to minimise the total variance of the released coefficients under the linear model, over "
        "all such matrices; no bound on rows per user was set.",
        subject="The matrix",
    )


def write_forms(solution: RegressionSolution) -> CodeChoice | None:
    """Describe the best weights for programs; only plain Python has them."""
    base = fields_of_data(solution.data) | {
        **ROWS_OF_THE_FILE,
        "lower": solution.parameters.lower,
        "upper": solution.parameters.upper,
        "value_column": solution.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": solution.best_estimate.largest_user_weight,
        "coefficients": solution.problem.num_features,
    }
    return build_forms(solution.problem.epsilon, base, [("Weights", Quantity.COEFFICIENTS, {})])
