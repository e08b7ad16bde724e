"""The answer for a linear regression in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

from dpcore.answer import Number
from dpcore.answer.stage import Stage
from dpcore.common import alike, wording
from dpcore.regression.answer.found import PROVED, RegressionFound
from dpcore.regression.estimate import LinearEstimate

_TOGETHER = (
    "Root of the total variance of the released coefficients: sampling error and privacy noise of all "
    "coefficients together, each in units of the label per unit of its feature."
)


def numbers(found: RegressionFound) -> tuple[Number, ...]:
    """Return the error of the best weights and their noise, and the error of the best cap and of none."""
    ours = found.ours
    figures = [
        _error("Standard error, total", math.sqrt(ours.variance), ""),
        Number(
            "Laplace noise, scale b",
            wording.number(ours.noise.scale),
            f"({_share(ours)})",
            help="b = B × (largest weight of a user) / ε: what the release adds to each coefficient.",
            value=ours.noise.scale,
        ),
    ]
    if found.caps is not None and found.has_caps:
        best = math.sqrt(float(found.caps.variance[found.caps.best]))
        cap = f"{wording.counted(found.caps.max_contributions, 'row')} per user"
        figures.append(_error("Best bound, standard error", best, cap))
    figures += [
        _error("No bound, standard error", math.sqrt(found.no_cap.variance), _share(found.no_cap)),
        _error(
            f"Error in predicting {wording.plain(found.unit, 20)}",
            math.sqrt(found.predicted.total),
            f"labels spread by {wording.number(found.spread)}",
            "Root of the expected squared error of the released model's predictions on these rows.",
            "error_in_predicting",
        ),
    ]
    return tuple(figures)


def _error(label: str, error: float, note: str, told: str = _TOGETHER, key: str = "") -> Number:
    return Number(label, wording.number(error), note, told, error, key=key)


def _times(other: float, ours: float) -> str:
    # Errors may be 0: labels without noise, and a budget without bound.
    return f"{wording.number(other / ours, 3) if ours > 0.0 else '∞'} times"


def _against(found: RegressionFound) -> str:
    """Say what a cap would cost instead."""
    ours, none = math.sqrt(found.ours.variance), math.sqrt(found.no_cap.variance)
    if found.caps is None or not found.has_caps:
        return f"With no bound and equal weights the error is {_times(none, ours)} as large."
    best = math.sqrt(float(found.caps.variance[found.caps.best]))
    cap = wording.counted(found.caps.max_contributions, "row")
    # Two lines beside the figure.
    return f"The best bound, {cap} per user, has {_times(best, ours)} this error; equal weights {_times(none, ours)}."


def good_enough(found: RegressionFound) -> str:
    """From where to where a cap costs little beside the best cap."""
    within = found.good_caps
    if within is None:
        return ""
    low, high = within
    if low == high:
        which = f"only {wording.counted(low, 'row')} per user stays"
    else:
        which = f"{wording.number(low)} to {wording.counted(high, 'row')} per user stay"
    return f"where you must bound rows, {which} within 5{wording.PERCENT} of the best bound."


def _share(estimate: LinearEstimate) -> str:
    if estimate.variance <= 0.0:
        return "no error"
    return f"{wording.percent(estimate.privacy_variance / estimate.variance)} privacy noise"


def predicting_worse(found: RegressionFound) -> bool:
    """Return True if a cap predicts better than ours, which is best for coefficients only."""
    if found.caps is None or not found.has_caps:
        return False
    return float(found.caps.prediction_error[found.caps.best_prediction]) < found.predicted.total


FIT = (
    "These weights are the best for the coefficients, under the model. Predictions also contain what the model misses; "
    "where it misses much (no intercept, say), a bound may predict better."
)


def detail(found: RegressionFound) -> str:
    """Say what the best weights gain, and what changes how that is to be read."""
    said = [_against(found)]
    if found.stage is Stage.EARLIER:
        said.insert(0, "**This is the answer for the settings before.**")
    elif found.stage is Stage.FINAL and not found.ours.certificate.proves(PROVED):
        said.append("**Not yet the best**: the search was stopped; see *Behind the answer* and *Search*.")
    if found.variance_is_private:
        said.append(
            "σ² was read from private labels, and so the weights depend on them: enter σ² (*More settings*) before you "
            "release."
        )
    if math.sqrt(found.predicted.total) > found.spread:
        said.append(
            "**Too little budget**: the released model predicts these labels worse than their mean would. Raise ε, "
            "bring more users, or drop features."
        )
    if predicting_worse(found):
        said.append("**In predictions a bound does better here.** " + FIT)
    if found.problem.residual_variance == 0.0:
        said.append(
            "σ² is 0, so only privacy noise counts, and the best weights make that alone as small as it can be."
        )
    return " ".join(said)


def _who(some: int, everybody: int) -> str:
    if some == everybody:
        return f"all {wording.counted(everybody, 'user')}" if everybody > 1 else "the only user"
    return f"{wording.counted(some, 'user')} of {wording.number(everybody)}"


def facts(found: RegressionFound) -> dict[str, str]:
    """Return the sentences by name."""
    ours, unit = found.ours, wording.plain(found.unit, 20)
    largest_plain = found.no_cap.largest_user_weight / ours.largest_user_weight
    said = {
        "Noise": (
            f"Laplace of scale {wording.number(ours.noise.scale)} on each coefficient; with no bound it would be "
            f"{wording.number(found.no_cap.noise.scale)}, since one user there weighs "
            f"{wording.number(largest_plain, 2)} times as much as anybody here."
        ),
        "Who sets the noise": (
            f"{_who(found.at_limit, found.problem.num_users)} "
            f"{wording.agreeing(found.at_limit, 'has', 'share')} the largest weight; "
            f"{wording.percent(ours.non_zero / ours.matrix.size)} of the weights are not 0."
        ),
    }
    effect = alike.weighted_effect(ours.matrix, found.problem.user_codes)
    error = math.sqrt(effect * ours.sampling_variance + ours.privacy_variance)
    said[alike.NAME] = (
        "errors of the model are taken as independent, those of one user, too. If a share "
        f"ρ = {alike.ASSUMED_SHARE} of σ² lies between users, the sampling variance is {wording.number(effect)} times "
        f"as large and the standard error {wording.number(error)} instead of "
        f"{wording.number(math.sqrt(ours.variance))}; for users with s rows of equal weight the factor is 1 + (s − 1)ρ."
    )
    if found.caps is not None and found.has_caps:
        cap = math.sqrt(float(found.caps.prediction_error[found.caps.best_prediction]))
        none = math.sqrt(float(found.caps.prediction_error[-1]))
        said[f"Predicting {unit}"] = (
            f"root mean squared error {wording.number(math.sqrt(found.predicted.total))}; best bound "
            f"{wording.number(cap)}; no bound {wording.number(none)}; σ is "
            f"{wording.number(math.sqrt(found.problem.residual_variance))}."
        )
        deficient = found.caps.caps[found.caps.rank_deficient > 0]
        if deficient.size:
            said["Bounds without an estimate"] = (
                f"up to {wording.counted(int(deficient.max()), 'row')} per user, some draws kept linearly "
                "dependent rows; these bounds are not offered."
            )
    elif found.stage is Stage.FINAL:
        why = (
            "the trial of bounds was stopped."
            if found.caps is None
            else "none gave an estimate in every draw, since the rows that it kept were linearly dependent."
        )
        said["Bounds"] = why
    return said
