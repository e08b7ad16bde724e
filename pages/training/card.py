"""The Training page's answer in words."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.training import experiment
from dpcore.training.experiment import Held
from dpcore.training.parameters import assumptions
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Cell, Method
from pages.training import code
from pages.training.answer import Stage, TrainingView

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


def card(view: TrainingView) -> Answer:
    """The answer in words."""
    assert view.best is not None
    losses, right = view.summary(Measure.LOSS, Over.ROWS), view.summary(Measure.ACCURACY, Over.ROWS)
    at, bound = view.best.at, view.cell(view.best.at).bound
    floor, guess = view.reference(Measure.LOSS, Over.ROWS)
    floor_right, guess_right = view.reference(Measure.ACCURACY, Over.ROWS)
    runs = wording.counted(int(losses.runs[at]), "run")
    figures = (
        Number("Bound h", wording.number(bound), "row per user" if bound == 1.0 else "rows per user",
                  "What a user's rows weigh together at most: each of s rows weighs min(h, s) / s.",
                  value=bound),
        Number("Loss on users held out", wording.number(float(losses.mean[at])),
                  f"± {wording.number(float(losses.half_width[at]), 2)} over {runs}",
                  "Mean over rows, with a 95 % interval over the runs."),
        Number("Without privacy", wording.number(floor), "all rows, no noise"),
        Number("Guessing", wording.number(guess), "one score for all rows"),
        Number("Rows told right", wording.percent(float(right.mean[at]), 3),
                  f"{wording.percent(floor_right, 3)} without privacy",
                  f"Guessing tells {wording.percent(guess_right, 3)} right."),
    )  # fmt: skip
    return Answer(
        headline=_headline(view, bound),
        detail=" ".join(_detail(view)),
        # Where all bounds are useless, which of them is the least so is no answer.
        numbers=(replace(figures[1], note=figures[1].note.split(" over ")[0]), *figures[2:])
        if view.is_useless
        else figures,
        good_enough="" if view.is_useless else _good_enough(view),
        facts=_facts(view),
        assumptions=assumptions(view.parameters),
        proofs=(("Model without privacy", view.known.certificate, "Newton's method."),),
        disclosure=view.loaded.dataset.provenance,
        code=code.of_training(view, bound),
    )


def _headline(view: TrainingView, bound: float) -> str:
    if view.is_useless:
        return "Do not train with this budget: guessing does better."
    return f"Give each user at most the weight of {weight_of(bound)}."


def _good_enough(view: TrainingView) -> str:
    assert view.best is not None
    low, high = view.best.low, view.best.high
    tried = view.bounds(Method.SMOOTH)
    if low == high:
        return f"of the bounds tried, only h = {wording.number(low)} stays within 5{wording.PERCENT} of this loss."
    end = " (no bound)" if high == tried[-1] else ""
    return f"h from {wording.number(low)} to {wording.number(high)}{end} stays within 5{wording.PERCENT} of this loss."


def _detail(view: TrainingView) -> list[str]:
    floor, guess = (wording.number(x) for x in view.reference(Measure.LOSS, Over.ROWS))
    found = [f"Without privacy the loss is {floor}; guessing has {guess}."]
    if view.stage is Stage.EARLIER:
        found.insert(0, "**This is the answer for the settings before.**")
    fewest, _ = view.runs
    if fewest < view.table.experiment.runs:
        found.append(f"**{fewest} of {view.table.experiment.runs} runs so far.**")
    if view.parameters.epsilon >= WEAK_EPSILON or view.parameters.delta >= WEAK_DELTA:
        found.append("**ε or δ of this size is hardly any protection.**")
    if view.is_useless:
        found.append("Raise ε, bring more users, or take fewer features.")
    if view.loaded.dataset.is_private:
        found.append("ε does not cover a bound that was chosen by this curve.")
    return found


def _facts(view: TrainingView) -> dict[str, str]:
    assert view.best is not None
    facts = {"What ε does not cover": f"{UNCOVERED}."}
    if view.best_cap is not None:
        facts["Weights against caps"] = _against_caps(view)
    users, rows = (view.summary(Measure.LOSS, over).mean[view.best.at] for over in (Over.USERS, Over.ROWS))
    facts["Rows and users"] = (
        f"the loss is {wording.number(float(rows))} as a mean over rows and {wording.number(float(users))} as one "
        "over users. Weights bring the target nearer to the mean over users, which is another model where heavy "
        "users differ."
    )
    trained = view.summary(Measure.LOSS, Over.ROWS, Held.TRAINED).mean[view.best.at]
    floor, _ = view.reference(Measure.LOSS, Over.ROWS, Held.TRAINED)
    facts["Users trained on"] = (
        f"the loss is {wording.number(float(trained))} there, {wording.number(floor)} without privacy."
    )
    facts["Theory"] = _theory(view)
    weight = float(view.largest_weight[list(view.bounds(Method.SMOOTH)).index(view.cell(view.best.at).bound)])
    none = float(view.largest_weight[-1])
    facts["The heaviest user"] = (
        f"weighs {wording.percent(weight)} of everybody at this h, and {wording.percent(none)} with no bound; the "
        "noise is in proportion."
    )
    facts["Not offered"] = (
        "Gaussian objective perturbation: its analysis is for losses of one margin, and a user with two rows has "
        "a loss of two."
    )
    return facts


def _against_caps(view: TrainingView) -> str:
    assert view.best is not None
    assert view.best_cap is not None
    difference, half = experiment.paired_difference(view.table, view.best_cap.at, view.best.at)
    cap = weight_of(view.cell(view.best_cap.at).bound)
    loss = wording.number(float(view.summary(Measure.LOSS, Over.ROWS).mean[view.best_cap.at]))
    if math.isnan(difference):
        return f"the best cap, {cap} per user, has a loss of {loss}."
    more = "more" if difference >= 0.0 else "less"
    sure = "" if abs(difference) > half else "; the runs do not tell them apart"
    return (
        f"the best cap, {cap} per user, has a loss of {loss}, {wording.number(abs(difference), 2)} ± "
        f"{wording.number(half, 2)} {more} run by run{sure}."
    )


def _theory(view: TrainingView) -> str:
    found = []
    for name, theory in (
        ("constants computed for this descent", view.calibrated),
        ("theorem 4, constant 1", view.theorem),
    ):
        found.append(
            f"h = {wording.number(theory.threshold.bound)} ({name}, A = {wording.number(theory.trade_off, 2)})"
        )
    return f"{' and '.join(found)}. Both leave out clipping and bias; features were looked at for the first."
