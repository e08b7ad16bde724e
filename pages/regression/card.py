"""The Regression page's answer in words."""

from __future__ import annotations

import math

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.regression.estimate import LinearEstimate
from dpcore.regression.parameters import ASSUMPTIONS
from pages.regression import code
from pages.regression.answer import PROVED, RegressionView, Stage

_TOGETHER = (
    "Root of the total variance of the released coefficients: sampling error and privacy noise of all "
    "coefficients together, each in units of the label per unit of its feature."
)


def card(view: RegressionView) -> Answer:
    """The answer in words."""
    ours, unit = view.ours, plain(view.unit, 20)
    figures = [
        Number(
            "Laplace noise, scale b",
            wording.number(ours.noise.scale),
            help="b = B × (largest weight of a user) / ε: what the release adds to each coefficient of Cy.",
            copied=repr(ours.noise.scale),
        ),
        Number(
            "Standard error, total", wording.number(math.sqrt(ours.variance)), f"({_share(ours)})", _TOGETHER
        ),
    ]
    if view.caps is not None and view.has_caps:
        best = math.sqrt(float(view.caps.variance[view.caps.best]))
        cap = f"{wording.counted(view.caps.max_contributions, 'row')} per user"
        figures.append(Number("Best cap, standard error", wording.number(best), cap, _TOGETHER))
    figures += [
        Number(
            "No cap, standard error",
            wording.number(math.sqrt(view.no_cap.variance)),
            _share(view.no_cap),
            _TOGETHER,
        ),
        Number(
            f"Error in predicting {unit}",
            wording.number(math.sqrt(view.predicted.total)),
            f"labels spread by {wording.number(view.spread)}",
            "Root of the expected squared error of the released model's predictions on these rows.",
        ),
    ]
    return Answer(
        headline="Weight the rows by the best C; use no cap.",
        detail=" ".join(_detail(view)),
        numbers=tuple(figures),
        good_enough=_good_enough(view),
        facts=_facts(view),
        assumptions=ASSUMPTIONS,
        proofs=(("Best weights C", ours.certificate, ours.ended),),
        disclosure=view.loaded.dataset.provenance,
        code=code.of_regression(view),
    )


def _times(other: float, ours: float) -> str:
    # Errors may be 0: labels without noise, and a budget without bound.
    return f"{wording.number(other / ours, 3) if ours > 0.0 else '∞'} times"


def _against(view: RegressionView) -> str:
    """What a cap would cost instead."""
    ours, none = math.sqrt(view.ours.variance), math.sqrt(view.no_cap.variance)
    if view.caps is None or not view.has_caps:
        return f"With no cap and equal weights the error is {_times(none, ours)} as large."
    best = math.sqrt(float(view.caps.variance[view.caps.best]))
    cap = wording.counted(view.caps.max_contributions, "row")
    return (
        f"The best cap, {cap} per user, has {_times(best, ours)} this error; no cap has {_times(none, ours)}."
    )


def _good_enough(view: RegressionView) -> str:
    within = view.good_caps
    if within is None:
        return ""
    low, high = within
    if low == high:
        which = f"only {wording.counted(low, 'row')} per user stays"
    else:
        which = f"{wording.number(low)} to {wording.counted(high, 'row')} per user stay"
    return f"where you must cap, {which} within 5{wording.PERCENT} of the best cap."


def _share(estimate: LinearEstimate) -> str:
    if estimate.variance <= 0.0:
        return "no error"
    return f"{wording.percent(estimate.privacy_variance / estimate.variance)} privacy noise"


def predicting_worse(view: RegressionView) -> bool:
    """Whether a cap predicts better than ours, which is best for coefficients only."""
    if view.caps is None or not view.has_caps:
        return False
    return float(view.caps.prediction_error[view.caps.best_prediction]) < view.predicted.total


FIT = (
    "C is the best for the coefficients, under the model. Predictions also contain what the model misses; where "
    "it misses much (no intercept, say), a cap may predict better."
)


def _detail(view: RegressionView) -> list[str]:
    found = [_against(view)]
    if view.stage is Stage.EARLIER:
        found.insert(0, "**This is the answer for the settings before**; the new one is being computed.")
    elif view.stage is Stage.FINAL and not view.ours.certificate.proves(PROVED):
        found.append("**Not yet the best**: the search was stopped; see *Behind the answer* and *Search*.")
    if view.variance_is_private:
        found.append(
            "σ² was read from private labels, and so C depends on them: enter σ² (*More settings*) before you release."
        )
    if math.sqrt(view.predicted.total) > view.spread:
        found.append(
            "**Too little budget**: the released model predicts these labels worse than their mean would. Raise ε, "
            "bring more users, or drop features."
        )
    if predicting_worse(view):
        found.append("**In predictions a cap does better here.** " + FIT)
    if view.problem.residual_variance == 0.0:
        found.append(
            "σ² is 0, so only privacy noise counts, and the best C makes that alone as small as it can be."
        )
    return found


def _who(some: int, everybody: int) -> str:
    if some == everybody:
        return f"all {wording.counted(everybody, 'user')}" if everybody > 1 else "the only user"
    return f"{wording.counted(some, 'user')} of {wording.number(everybody)}"


def _facts(view: RegressionView) -> dict[str, str]:
    ours, unit = view.ours, plain(view.unit, 20)
    largest_plain = view.no_cap.largest_user_weight / ours.largest_user_weight
    facts = {
        "Noise": (
            f"Laplace of scale {wording.number(ours.noise.scale)} on each coefficient; with no cap it would be "
            f"{wording.number(view.no_cap.noise.scale)}, since one user there weighs "
            f"{wording.number(largest_plain, 2)} times as much as anybody here."
        ),
        "Who sets the noise": (
            f"{_who(view.at_limit, view.problem.num_users)} "
            f"{wording.agreeing(view.at_limit, 'has', 'share')} the largest weight; "
            f"{wording.percent(ours.non_zero / ours.matrix.size)} of C is not 0."
        ),
    }
    if view.caps is not None and view.has_caps:
        cap = math.sqrt(float(view.caps.prediction_error[view.caps.best_prediction]))
        none = math.sqrt(float(view.caps.prediction_error[-1]))
        facts[f"Predicting {unit}"] = (
            f"root mean squared error {wording.number(math.sqrt(view.predicted.total))}; best cap "
            f"{wording.number(cap)}; no cap {wording.number(none)}; σ is "
            f"{wording.number(math.sqrt(view.problem.residual_variance))}."
        )
        deficient = view.caps.caps[view.caps.rank_deficient > 0]
        if deficient.size:
            facts["Caps without an estimate"] = (
                f"up to {wording.counted(int(deficient.max()), 'row')} per user, some draws kept linearly "
                "dependent rows; these caps are not offered."
            )
    elif view.stage is Stage.FINAL:
        why = (
            "the trial of caps was stopped."
            if view.caps is None
            else "none gave an estimate in every draw, since the rows that it kept were linearly dependent."
        )
        facts["Caps"] = why
    return facts
