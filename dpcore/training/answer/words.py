"""The answer for a classifier in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore.answer import Number
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.training import experiment
from dpcore.training.answer.found import TrainingFound
from dpcore.training.experiment import Held
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Cell, Method

UNCOVERED = (
    "Choosing h, steps or step size by these curves is not covered by ε: on private data it tells something of them. "
    "h = 1, the average of each user's rows, can be chosen without a look"
)

WEAK_EPSILON, WEAK_DELTA = 20.0, 0.01
"""From where on the card says that they protect hardly anybody; the paper's table 2 has 30 to 50, and 0.1."""


def weight_of(bound: float) -> str:
    """``one row``, ``2.5 rows``."""
    return "one row" if bound == 1.0 else wording.counted(bound, "row")


def bounded(cell: Cell) -> str:
    """``smooth weights of at most one row per user``, ``a cap: at most 3 rows of each user, drawn at random``."""
    if cell.method is Method.CAP:
        return f"a cap: at most {weight_of(cell.bound)} of each user, drawn at random"
    return f"smooth weights of at most {weight_of(cell.bound)} per user"


def numbers(found: TrainingFound) -> tuple[Number, ...]:
    """The bound, and the loss and accuracy that it has."""
    assert found.best is not None
    losses, right = found.summary(Measure.LOSS, Over.ROWS), found.summary(Measure.ACCURACY, Over.ROWS)
    at, bound = found.best.at, found.cell(found.best.at).bound
    floor, guess = found.reference(Measure.LOSS, Over.ROWS)
    floor_right, guess_right = found.reference(Measure.ACCURACY, Over.ROWS)
    runs = wording.counted(int(losses.runs[at]), "run")
    loss, half, told = (float(of[at]) for of in (losses.mean, losses.half_width, right.mean))
    per_user = "row per user" if bound == 1.0 else "rows per user"
    figures = (
        Number(
            "Bound h",
            wording.number(bound),
            per_user,
            "What a user's rows weigh together at most: each of s rows weighs min(h, s) / s.",
            bound,
            "rows per user",
        ),
        Number(
            "Loss on users held out",
            wording.number(loss),
            f"± {wording.number(half, 2)} over {runs}",
            "Mean over rows, with a 95 % interval over the runs.",
            loss,
        ),
        Number("Without privacy", wording.number(floor), "all rows, no noise", value=floor),
        Number("Guessing", wording.number(guess), "one score for all rows", value=guess),
        Number(
            "Rows told right",
            wording.percent(told, 3),
            f"{wording.percent(floor_right, 3)} without privacy",
            f"Guessing tells {wording.percent(guess_right, 3)} right.",
            told,
        ),
    )
    if not found.is_useless:
        return figures
    # Where all bounds are useless, which of them is the least so is no answer.
    return (replace(figures[1], note=figures[1].note.split(" over ")[0]), *figures[2:])


def headline(found: TrainingFound) -> str:
    """What to do, one sentence."""
    assert found.best is not None
    if found.is_useless:
        return "Do not train with this budget: guessing does better."
    return f"Give each user at most the weight of {weight_of(found.cell(found.best.at).bound)}."


def good_enough(found: TrainingFound) -> str:
    """From where to where the bound costs little; empty where none is of use."""
    assert found.best is not None
    if found.is_useless:
        return ""
    low, high = found.best.low, found.best.high
    tried = found.bounds(Method.SMOOTH)
    if low == high:
        return f"of the bounds tried, only h = {wording.number(low)} stays within 5{wording.PERCENT} of this loss."
    end = " (no bound)" if high == tried[-1] else ""
    return f"h from {wording.number(low)} to {wording.number(high)}{end} stays within 5{wording.PERCENT} of this loss."


def detail(found: TrainingFound) -> str:
    """What the loss compares with, and what changes how the answer is to be read."""
    floor, guess = (wording.number(x) for x in found.reference(Measure.LOSS, Over.ROWS))
    said = [f"Without privacy the loss is {floor}; guessing has {guess}."]
    if found.stage is Stage.EARLIER:
        said.insert(0, "**This is the answer for the settings before.**")
    fewest, _ = found.runs
    if fewest < found.table.experiment.runs:
        said.append(f"**{fewest} of {found.table.experiment.runs} runs so far.**")
    if found.parameters.epsilon >= WEAK_EPSILON or found.parameters.delta >= WEAK_DELTA:
        said.append("**ε or δ of this size is hardly any protection.**")
    if found.is_useless:
        said.append("Raise ε, bring more users, or take fewer features.")
    if found.data.dataset.is_private:
        said.append("ε does not cover a bound that was chosen by this curve.")
    return " ".join(said)


def facts(found: TrainingFound) -> dict[str, str]:
    """Sentences by name."""
    assert found.best is not None
    said = {"What ε does not cover": f"{UNCOVERED}."}
    if found.best_cap is not None:
        said["Weights against caps"] = _against_caps(found)
    users, rows = (found.summary(Measure.LOSS, over).mean[found.best.at] for over in (Over.USERS, Over.ROWS))
    said["Rows and users"] = (
        f"the loss is {wording.number(float(rows))} as a mean over rows and {wording.number(float(users))} as one "
        "over users. Weights bring the target nearer to the mean over users, which is another model where heavy "
        "users differ."
    )
    trained = found.summary(Measure.LOSS, Over.ROWS, Held.TRAINED).mean[found.best.at]
    floor, _ = found.reference(Measure.LOSS, Over.ROWS, Held.TRAINED)
    said["Users trained on"] = (
        f"the loss is {wording.number(float(trained))} there, {wording.number(floor)} without privacy."
    )
    said["Theory"] = _theory(found)
    weight = float(
        found.largest_weight[list(found.bounds(Method.SMOOTH)).index(found.cell(found.best.at).bound)]
    )
    none = float(found.largest_weight[-1])
    said["The heaviest user"] = (
        f"weighs {wording.percent(weight)} of everybody at this h, and {wording.percent(none)} with no bound; the "
        "noise is in proportion."
    )
    said["Not offered"] = (
        "Gaussian objective perturbation: its analysis is for losses of one margin, and a user with two rows has "
        "a loss of two."
    )
    return said


def _against_caps(found: TrainingFound) -> str:
    assert found.best is not None
    assert found.best_cap is not None
    difference, half = experiment.paired_difference(found.table, found.best_cap.at, found.best.at)
    cap = weight_of(found.cell(found.best_cap.at).bound)
    loss = wording.number(float(found.summary(Measure.LOSS, Over.ROWS).mean[found.best_cap.at]))
    if math.isnan(difference):
        return f"the best cap, {cap} per user, has a loss of {loss}."
    more = "more" if difference >= 0.0 else "less"
    sure = "" if abs(difference) > half else "; the runs do not tell them apart"
    return (
        f"the best cap, {cap} per user, has a loss of {loss}, {wording.number(abs(difference), 2)} ± "
        f"{wording.number(half, 2)} {more} run by run{sure}."
    )


def _theory(found: TrainingFound) -> str:
    said = []
    for name, theory in (
        ("constants computed for this descent", found.calibrated),
        ("theorem 4, constant 1", found.theorem),
    ):
        said.append(
            f"h = {wording.number(theory.threshold.bound)} ({name}, A = {wording.number(theory.trade_off, 2)})"
        )
    return f"{' and '.join(said)}. Both leave out clipping and bias; features were looked at for the first."
