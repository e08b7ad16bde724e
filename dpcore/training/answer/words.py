"""The answer for a classifier in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

from dpcore.answer import Number
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.training import experiment
from dpcore.training.answer.found import TrainingFound
from dpcore.training.answer.plots import NAMES
from dpcore.training.experiment import Held
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Cell, Method

WEAK_EPSILON, WEAK_DELTA = 20.0, 0.01
"""From where on the card says that they protect hardly anybody; the paper's table 2 has 30 to 50, and 0.1."""


def weight_of(bound: float) -> str:
    """``one row``, ``2.5 rows``."""
    return "one row" if bound == 1.0 else wording.counted(bound, "row")


def bounded(cell: Cell) -> str:
    """``smooth weights of at most one row per user``, ``a cap: at most 3 rows of each user, drawn at random``."""
    rows = f" whose gradients are shortened to {wording.number(cell.clip)}" if cell.clip < 1.0 else ""
    if cell.method is Method.FOLLOWED:
        return "clipped sums whose bound follows the users"
    if cell.method is Method.CAP:
        return f"a cap: at most {weight_of(cell.bound)} of each user, drawn at random{rows and f',{rows}'}"
    if cell.method is Method.CLIPPED_SUM:
        return f"each user's sum of gradients clipped to that of {weight_of(cell.bound)}"
    if cell.method is Method.OUTPUT:
        return f"output perturbation, smooth weights of at most {weight_of(cell.bound)} per user"
    return f"smooth weights of at most {weight_of(cell.bound)} per user{rows and f',{rows}'}"


def numbers(found: TrainingFound) -> tuple[Number, ...]:
    """The bound, where there is one, and the loss and accuracy that it has."""
    assert found.best is not None
    losses, right = found.summary(Measure.LOSS, Over.ROWS), found.summary(Measure.ACCURACY, Over.ROWS)
    at, cell = found.best.at, found.cell(found.best.at)
    floor, guess = found.reference(Measure.LOSS, Over.ROWS)
    floor_right, guess_right = found.reference(Measure.ACCURACY, Over.ROWS)
    loss, told = (float(of.mean[at]) for of in (losses, right))
    per_user = "row per user" if cell.reach == 1.0 else "rows per user"
    bound = Number(
        "Bound h",
        wording.number(cell.reach),
        per_user,
        "How far a user moves the sum of gradients at most, in rows.",
        cell.reach,
        "rows per user",
    )
    without_bound = found.is_useless or cell.method is Method.FOLLOWED
    figures = (
        Number(
            "Loss, users held out",
            wording.number(loss),
            "" if without_bound else doubts(found),
            "Mean over rows, with 95 % intervals: as noise varies, and for other users held out.",
            loss,
        ),
        # Without a bound the loss is the large number, and this stands below it.
        *((Number("95 % intervals", doubts(found)),) if without_bound else ()),
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
    # Where all is useless, which bound is the least so is no answer; and a bound that follows has no number.
    return figures if without_bound else (bound, *figures)


def doubts(found: TrainingFound) -> str:
    """``± 0.003 noise, ± 0.02 users``: with the loss before it, as long as a line."""
    assert found.best is not None
    losses, at = found.summary(Measure.LOSS, Over.ROWS), found.best.at
    noise, users = float(losses.half_width[at]), float(losses.users_half_width[at])
    said = []
    if math.isfinite(noise):
        said.append(f"± {wording.number(noise, 2)} noise")
    if math.isfinite(users):
        said.append(f"± {wording.number(users, 2)} users")
    return ", ".join(said)


def headline(found: TrainingFound) -> str:
    """What to do, one sentence."""
    assert found.best is not None
    if found.is_useless:
        return "Do not train with this budget: guessing does better."
    if found.is_unclear:
        return "Not clear whether training beats guessing with this budget."
    so_far = "" if found.table.finished else ", so far"
    return f"Train by {bounded(found.cell(found.best.at))}{so_far}."


def good_enough(found: TrainingFound) -> str:
    """From where to where the bound costs little, a line; empty where none is of use."""
    assert found.best is not None
    if found.is_useless:
        return ""
    if found.cell(found.best.at).method is Method.FOLLOWED:
        return "there is no bound to choose."
    low, high = found.best.low, found.best.high
    tried = found.bounds(found.cell(found.best.at).method)
    if low == high:
        return f"only h = {wording.number(low)}, of the bounds tried."
    end = " (no bound)" if high == tried[-1] else ""
    return f"h from {wording.number(low)} to {wording.number(high)}{end}, within 5{wording.PERCENT}."


def detail(found: TrainingFound) -> str:
    """What the loss compares with, and what changes how the answer is to be read."""
    assert found.best is not None
    floor, guess = (wording.number(x) for x in found.reference(Measure.LOSS, Over.ROWS))
    said = [f"Without privacy the loss is {floor}; guessing has {guess}."]
    if found.look < 1.0:
        said.append(
            f"**A first look at {wording.percent(found.look)} of the users, with the noise of all of them.**"
        )
    if found.parameters.epsilon >= WEAK_EPSILON or found.parameters.delta >= WEAK_DELTA:
        said.append("**ε or δ of this size is hardly any protection.**")
    if found.is_useless or found.is_unclear:
        said.append("Raise ε, bring more users, or take fewer features.")
    if found.data.dataset.is_private and found.cell(found.best.at).method is not Method.FOLLOWED:
        said.append("ε does not cover a bound that was chosen by this curve.")
        if Method.FOLLOWED in found.best_of:
            loss = float(found.summary(Measure.LOSS, Over.ROWS).mean[found.best_of[Method.FOLLOWED].at])
            said.append(
                "Clipped sums whose bound follows the users need no choice; their loss is "
                f"{wording.number(loss)}."
            )
    runs, done = found.table.experiment.runs, int(found.table.done[found.best.at])
    # Last, as they come and go while the runs are made: what stands above them does not move.
    if not found.table.finished:
        rest = "" if done < runs else ", and the other methods go on"
        said.append(f"**{done} of {runs} runs so far{rest}.**")
    if found.stage is Stage.EARLIER:
        said.append("**This is the answer for the settings before.**")
    return " ".join(said)


def facts(found: TrainingFound) -> dict[str, str]:
    """Sentences by name."""
    assert found.best is not None
    said = {}
    if Method.FOLLOWED in found.best_of:
        said["Where the loss comes from"] = _parts(found)
    others = [method for method in found.best_of if method is not found.cell(found.best.at).method]
    if others:
        said["The other methods"] = "; ".join(_against(found, method) for method in others) + "."
    users, rows = (found.summary(Measure.LOSS, over).mean[found.best.at] for over in (Over.USERS, Over.ROWS))
    trained = found.summary(Measure.LOSS, Over.ROWS, Held.TRAINED).mean[found.best.at]
    said["The loss elsewhere"] = (
        f"{wording.number(float(rows))} over rows held out, {wording.number(float(users))} over users held out, "
        f"{wording.number(float(trained))} over rows trained on."
    )
    said["Theory"] = (
        f"h = {wording.number(found.calibrated.threshold.bound)} with constants computed for plain descent, "
        f"h = {wording.number(found.theorem.threshold.bound)} by theorem 4 with constant 1."
    )
    return said


def _parts(found: TrainingFound) -> str:
    """What of the excess is stopping, clipping and noise, of followed clipped sums."""
    at = found.best_of[Method.FOLLOWED].at
    loss = float(found.summary(Measure.LOSS, Over.ROWS).mean[at])
    floor, _ = found.reference(Measure.LOSS, Over.ROWS)
    quiet, unclipped = found.quiet(Measure.LOSS, Over.ROWS)
    return (
        f"clipped sums whose bound follows lose {wording.number(loss - floor, 2)} over no privacy: "
        f"{wording.number(unclipped - floor, 2)} by stopping early, {wording.number(quiet - unclipped, 2)} by "
        f"clipping, {wording.number(loss - quiet, 2)} by noise."
    )


def _against(found: TrainingFound, method: Method) -> str:
    """One method at its best bound beside the answer."""
    assert found.best is not None
    at = found.best_of[method].at
    difference, half = experiment.paired_difference(found.table, at, found.best.at)
    loss = wording.number(float(found.summary(Measure.LOSS, Over.ROWS).mean[at]))
    named = (
        NAMES[method]
        if method is Method.FOLLOWED
        else f"{NAMES[method]}, h = {wording.entered(found.cell(at).reach)}"
    )
    if math.isnan(difference):
        return f"{named}: {loss}"
    more = "more" if difference >= 0.0 else "less"
    sure = "" if abs(difference) > half else " (not clear)"
    return f"{named}: {loss}, {wording.number(abs(difference), 2)} ± {wording.number(half, 2)} {more}{sure}"
