"""The answer for a linear regression in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

from dpcore.answer import Number
from dpcore.answer.stage import Stage
from dpcore.common import noise_error, wording
from dpcore.regression.answer.found import PROVED, RegressionSolution
from dpcore.regression.estimate import LinearEstimate

_TOGETHER = (
    "Root of the total variance of the released coefficients: sampling error and privacy noise of all "
    "coefficients together, each in units of the label per unit of its feature."
)


def list_numbers(solution: RegressionSolution) -> tuple[Number, ...]:
    """Return the error of the best weights and their noise, and the error of the best cap and of none."""
    estimate = solution.best_estimate
    figures = [
        _error("Standard error, total", math.sqrt(estimate.variance), ""),
        Number(
            "Laplace noise, scale b",
            wording.number(estimate.noise.scale),
            f"({_share(estimate)})",
            help="b = B × (largest weight of a user) / ε: what the release adds to each coefficient.",
            value=estimate.noise.scale,
        ),
    ]
    if solution.caps is not None and solution.has_caps:
        best = math.sqrt(float(solution.caps.variance[solution.caps.best]))
        cap = f"{wording.counted(solution.caps.max_contributions, 'row')} per user"
        figures.append(_error("Best bound, standard error", best, cap))
    figures += [
        _error("No bound, standard error", math.sqrt(solution.no_cap.variance), _share(solution.no_cap)),
        _error(
            f"Error in predicting {wording.plain(solution.unit, 20)}",
            math.sqrt(solution.prediction.total),
            f"labels spread by {wording.number(solution.spread)}",
            "Root of the expected squared error of the released model's predictions on these rows.",
            "error_in_predicting",
        ),
    ]
    return tuple(figures)


def _error(label: str, error: float, note: str, explanation: str = _TOGETHER, key: str = "") -> Number:
    return Number(label, wording.number(error), note, explanation, error, key=key)


def _times(other_error: float, best_error: float) -> str:
    # Errors may be 0: labels without noise, and a budget without bound.
    return f"{wording.number(other_error / best_error, 3) if best_error > 0.0 else '∞'} times"


def _compare_methods(solution: RegressionSolution) -> str:
    """Say how many times larger the error of the best cap and of equal weights is."""
    best_error, plain_error = math.sqrt(solution.best_estimate.variance), math.sqrt(solution.no_cap.variance)
    if solution.caps is None or not solution.has_caps:
        return f"With no bound and equal weights the error is {_times(plain_error, best_error)} as large."
    cap_error = math.sqrt(float(solution.caps.variance[solution.caps.best]))
    cap = wording.counted(solution.caps.max_contributions, "row")
    # Two lines beside the figure.
    equal_times = _times(plain_error, best_error)
    cap_times = _times(cap_error, best_error)
    return f"The best bound, {cap} per user, has {cap_times} this error; equal weights {equal_times}."


def describe_near_optimal(solution: RegressionSolution) -> str:
    """Say from which cap to which one the error stays near that of the best cap."""
    near_optimal = solution.near_optimal_caps
    if near_optimal is None:
        return ""
    low, high = near_optimal
    if low == high:
        which = f"only {wording.counted(low, 'row')} per user stays"
    else:
        which = f"{wording.number(low)} to {wording.counted(high, 'row')} per user stay"
    return f"where you must bound rows, {which} within 5{wording.PERCENT} of the best bound."


def _share(estimate: LinearEstimate) -> str:
    if estimate.variance <= 0.0:
        return "no error"
    return f"{wording.percent(estimate.privacy_variance / estimate.variance)} privacy noise"


def predicts_worse(solution: RegressionSolution) -> bool:
    """Return True if some cap predicts better than the best weights, which are best for coefficients only."""
    if solution.caps is None or not solution.has_caps:
        return False
    return float(solution.caps.prediction_error[solution.caps.best_prediction]) < solution.prediction.total


FIT = (
    "These weights are the best for the coefficients, under the model. Predictions also contain what the model misses; "
    "where it misses much (no intercept, say), a bound may predict better."
)


def write_detail(solution: RegressionSolution) -> str:
    """Say what the best weights gain, and how that must be qualified."""
    sentences = [_compare_methods(solution)]
    if solution.stage is Stage.EARLIER:
        sentences.insert(0, "**This is the answer for the settings before.**")
    elif solution.stage is Stage.FINAL and not solution.best_estimate.certificate.proves(PROVED):
        sentences.append(
            "**Not yet the best**: the search was stopped; see *Behind the answer* and *Search*."
        )
    if solution.variance_is_private:
        sentences.append(
            "σ² was read from private labels, and so the weights depend on them: enter σ² (*More settings*) before you "
            "release."
        )
    if math.sqrt(solution.prediction.total) > solution.spread:
        sentences.append(
            "**Too little budget**: the released model predicts these labels worse than their mean would. Raise ε, "
            "bring more users, or drop features."
        )
    if predicts_worse(solution):
        sentences.append("**In predictions a bound does better here.** " + FIT)
    if solution.problem.residual_variance == 0.0:
        sentences.append(
            "σ² is 0, so only privacy noise counts, and the best weights make that alone as small as it can be."
        )
    return " ".join(sentences)


def _count_share(num_users: int, everybody: int) -> str:
    if num_users == everybody:
        return f"all {wording.counted(everybody, 'user')}" if everybody > 1 else "the only user"
    return f"{wording.counted(num_users, 'user')} of {wording.number(everybody)}"


def list_facts(solution: RegressionSolution) -> dict[str, str]:
    """Explain the noise, who sets it and the bounds in sentences, each under its heading."""
    estimate, unit = solution.best_estimate, wording.plain(solution.unit, 20)
    largest_plain = solution.no_cap.largest_user_weight / estimate.largest_user_weight
    sentences = {
        "Noise": (
            f"Laplace of scale {wording.number(estimate.noise.scale)} on each coefficient; with no bound it would be "
            f"{wording.number(solution.no_cap.noise.scale)}, since one user there weighs "
            f"{wording.number(largest_plain, 2)} times as much as anybody here."
        ),
        "Who sets the noise": (
            f"{_count_share(solution.at_limit, solution.problem.num_users)} "
            f"{wording.agreeing(solution.at_limit, 'has', 'share')} the largest weight; "
            f"{wording.percent(estimate.non_zero / estimate.matrix.size)} of the weights are not 0."
        ),
    }
    effect = noise_error.weighted_effect(estimate.matrix, solution.problem.user_codes)
    error = math.sqrt(effect * estimate.sampling_variance + estimate.privacy_variance)
    sentences[noise_error.NAME] = (
        "errors of the model are taken as independent, those of one user, too. If a share "
        f"ρ = {noise_error.ASSUMED_SHARE} of σ² lies between users, the sampling variance is {wording.number(effect)} times "
        f"as large and the standard error {wording.number(error)} instead of "
        f"{wording.number(math.sqrt(estimate.variance))}; for users with s rows of equal weight the factor is 1 + (s − "
        "1)ρ."
    )
    if solution.caps is not None and solution.has_caps:
        cap = math.sqrt(float(solution.caps.prediction_error[solution.caps.best_prediction]))
        none = math.sqrt(float(solution.caps.prediction_error[-1]))
        sentences[f"Predicting {unit}"] = (
            f"root mean squared error {wording.number(math.sqrt(solution.prediction.total))}; best bound "
            f"{wording.number(cap)}; no bound {wording.number(none)}; σ is "
            f"{wording.number(math.sqrt(solution.problem.residual_variance))}."
        )
        deficient = solution.caps.caps[solution.caps.rank_deficient > 0]
        if deficient.size:
            sentences["Bounds without an estimate"] = (
                f"up to {wording.counted(int(deficient.max()), 'row')} per user, some draws kept linearly "
                "dependent rows; these bounds are not offered."
            )
    elif solution.stage is Stage.FINAL:
        why = (
            "the trial of bounds was stopped."
            if solution.caps is None
            else "none gave an estimate in every draw, since the rows that it kept were linearly dependent."
        )
        sentences["Bounds"] = why
    return sentences
