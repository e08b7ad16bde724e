"""The Training page's tabs but the release."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.training import files
from dpcore.training.experiment import Held
from dpcore.training.output import REGULARISATION
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.figures import figures
from pages.shared.report import take_away
from pages.training import figures as training_charts
from pages.training import inputs, methods, release, report
from pages.training.answer import TrainingView


def show_behind(view: TrainingView, answer: Answer) -> None:
    """How sure the answer is, what it assumes, what it used, and every method at every bound."""
    cards.behind(answer)
    st.caption(inputs.what_is_used(view))
    st.markdown("**Every method at every bound**")
    tables.show(
        methods_table(view),
        "Loss, its interval, accuracy and the heaviest user's share, for every method at every bound",
        "training_methods",
        {
            **dict.fromkeys(("Loss", "Loss over users", "Loss, trained on"), "%.4g"),
            **dict.fromkeys(("±", "One run ±"), "%.2g"),
            **dict.fromkeys(("W", "Rows told right"), "%.3g %%"),
        },
    )
    st.caption(
        "Loss and rows told right are on the users held out. ± is half of a 95 % interval of the mean over the runs; "
        "One run ± is the standard deviation of a single training, which is what a release would vary by. Both say how "
        "noise and drawn rows vary on these users, not how other users would. Output perturbation adds a penalty of "
        f"{wording.entered(REGULARISATION)}/2 |θ|²."
    )


def methods_table(view: TrainingView) -> pd.DataFrame:
    """One line per method and bound."""
    cells = view.table.experiment.cells
    losses, users = view.summary(Measure.LOSS, Over.ROWS), view.summary(Measure.LOSS, Over.USERS)
    trained = view.summary(Measure.LOSS, Over.ROWS, Held.TRAINED)
    right = view.summary(Measure.ACCURACY, Over.ROWS)
    weight = dict(zip(view.bounds(Method.SMOOTH).tolist(), view.largest_weight.tolist(), strict=True))
    return pd.DataFrame(
        {
            "Method": [training_charts.NAMES[cell.method] for cell in cells],
            "h": [cell.bound for cell in cells],
            "W": [100.0 * weight[cell.bound] for cell in cells],
            "Runs": losses.runs,
            "Loss": losses.mean,
            "±": losses.half_width,
            "One run ±": losses.spread,
            "Loss over users": users.mean,
            "Loss, trained on": trained.mean,
            "Rows told right": 100.0 * right.mean,
        }
    )


def show_sides(view: TrainingView) -> None:
    """Rows and users, trained on and held out."""
    st.markdown(
        "**Look at** the two colours: weights bring the target nearer to a mean over users. Where heavy users differ "
        "from light ones the two means part, and you must know which of them you want. Dotted lines are for the users "
        "trained on. Which users are held out is drawn: another seed moves the solid lines."
    )
    figures.show_picture(training_charts.sides_picture(view))


def show_theory(view: TrainingView) -> None:
    """The bounds that theory calls for, beside what was measured."""
    best = view.best
    rows = [
        ("Constants computed", view.calibrated, "from features and the descent's own constants"),
        ("Theorem 4, constant 1", view.theorem, "log d log n ε² / log⁴(m/δ)"),
    ]
    columns = {
        "Trade-off": [name for name, _, _ in rows],
        "A": [theory.trade_off for _, theory, _ in rows],
        "Best h, smooth weights": [theory.threshold.bound for _, theory, _ in rows],
        "Best cap": [theory.cap.bound for _, theory, _ in rows],
        "A is": [what for _, _, what in rows],
    }
    formats = dict.fromkeys(("A", "Best h, smooth weights"), "%.3g")
    tables.show(columns, "Trade-off, best bound and best cap by two theories", "training_theory", formats)
    measured = "" if best is None else f" The runs have it at h = {wording.number(view.cell(best.at).bound)}."
    st.markdown(
        f"Both minimise $(\\max_j W_j)^2 + A \\sum_i c_i^2$ over weights $c$, proved best.{measured} The first has the "
        "constants of this very descent near its minimum, and looks at features (no labels), which ε does not cover. "
        "The second is the paper's bound, whose constant it leaves open. Neither knows of clipping, of steps too few, "
        "or of heavy users who differ."
    )
    cards.label(view.loaded.dataset.provenance)


def show_files(view: TrainingView) -> None:
    """Downloads: the choice, the report, every run."""
    data = view.loaded.dataset
    of = release.releases(view)
    made, ledger = tuple(of.made), of.ledger
    kind = data.provenance
    take_away.draw(
        "training",
        kind,
        lambda: report.training_report(view, made, ledger),
        methods.methods(view, release.latest(view)),
        "**Parts of it**",
        [("Every run (CSV)", "training_runs.csv", lambda: files.table_csv(view.table, kind))],
    )
