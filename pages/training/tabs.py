"""The Training page's tabs but the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import Ledger
from dpcore.report.content import Line, Report
from dpcore.report.script import Code, Source, write_table_cell
from dpcore.training import files
from dpcore.training.account import Method
from dpcore.training.answer import TrainingSolution, words
from dpcore.training.answer.plots import METHOD_NAMES
from dpcore.training.answer.words import write_methods
from dpcore.training.experiment import Side
from dpcore.training.files import ReleaseRecord
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource
from dpcore.training.rows import Measure, ScoreUnit
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.card.releases import lost_sentence, released_lines, spent_lines
from pages.shared.report import report_content
from pages.shared.screen import plots
from pages.training import inputs, release
from pages.training.question import QUESTION


def show_behind(answer: Answer) -> None:
    """How sure the answer is, what it assumes, what it used, and every method at every bound."""
    cards.behind(answer)
    st.caption(inputs.what_is_used(answer.solution))
    st.markdown("**Every method at every bound**")
    tables.show(
        methods_table(answer.solution),
        "Loss, its interval, accuracy and the heaviest user's share, for every method at every bound",
        "training_methods",
        {
            **dict.fromkeys(("Loss", "Loss over users", "Loss, trained on"), "%.4g"),
            **dict.fromkeys(("± noise", "± users", "One run ±"), "%.2g"),
            **dict.fromkeys(("W", "Rows told right"), "%.3g %%"),
        },
    )
    st.caption(
        "On the users held out. ± is half of a 95 % interval of the mean; one run ± is the standard deviation of a "
        "single training, by which a release varies."
    )


def methods_table(found: TrainingSolution) -> pd.DataFrame:
    """Return one line per method and bound."""
    cells = found.table.experiment.cells
    losses, users = (
        found.summarise(Measure.LOSS, ScoreUnit.ROWS),
        found.summarise(Measure.LOSS, ScoreUnit.USERS),
    )
    trained = found.summarise(Measure.LOSS, ScoreUnit.ROWS, Side.TRAINED)
    right = found.summarise(Measure.ACCURACY, ScoreUnit.ROWS)
    return pd.DataFrame(
        {
            "Method": [METHOD_NAMES[cell.method] for cell in cells],
            "h": [np.nan if cell.method is Method.FOLLOWED else cell.reach for cell in cells],
            "W": 100.0 * found.largest_weight,
            "Runs": losses.runs,
            "Loss": losses.mean,
            "± noise": losses.half_width,
            "± users": losses.users_half_width,
            "One run ±": losses.spread,
            "Loss over users": users.mean,
            "Loss, trained on": trained.mean,
            "Rows told right": 100.0 * right.mean,
        }
    )


def show_sides(answer: Answer) -> None:
    """Rows and users, trained on and held out."""
    st.markdown(
        "**Look at** the two colours: bounds bring the target nearer to a mean over users. Where heavy users differ "
        "from light ones the two means part, and you must know which of them you want. Dotted lines are for the users "
        "trained on. Which users are held out is drawn: another seed moves the solid lines."
    )
    plots.draw(answer.plots["training-sides"]())


def show_theory(found: TrainingSolution) -> None:
    """The bounds that theory calls for, beside what was measured."""
    best = found.best_by_method.get(Method.SMOOTH)
    rows = [
        ("Constants computed", found.calibrated_bound, "from features and the descent's own constants"),
        ("Theorem 4, constant 1", found.theorem_bound, "log d log n ε² / log⁴(m/δ)"),
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
    measured = (
        ""
        if best is None
        else f" The runs have it at h = {wording.number(found.get_cell(best.cell_index).reach)}."
    )
    st.markdown(
        f"Both minimise $(\\max_j W_j)^2 + A \\sum_i c_i^2$ over weights $c$, proved best.{measured} The first has "
        "the constants of plain descent with the steps and step size under *More settings*, and looks at features (no "
        "labels), which ε does not cover. The second is the paper's bound, whose constant it leaves open. Neither "
        "knows of clipping, of steps too few, or of heavy users who differ."
    )
    cards.label(found.data.dataset.provenance)


def content(answer: Answer, made: Sequence[ReleaseRecord], ledger: Ledger) -> Report:
    """Return what the page contributes to its report, with the latest of the releases ``made``, if any."""

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if entered is not DataSource.UPLOAD:
            return "data = None  # The settings name the sample, or say how the data are generated."
        code.import_name("TrainingData", "dpcore.training.training_data")
        code.import_name("make_scaling", "dpcore.training.rows")
        return (
            f"{write_table_cell(code, source, public_only, data.design)}\n"
            f"ranges = {dict(data.ranges)!r}\n"
            "scaling = make_scaling(data, design, ranges)\n"
            "data = TrainingData(data, design=design, scaling=scaling, ranges=ranges)"
        )

    data, entered = answer.solution.data, answer.parameters.source
    names = [name for name in QUESTION.fields if name not in GENERATOR_FIELDS]
    names += GENERATOR_FIELDS if entered is DataSource.GENERATED else ()
    source = Source(data.dataset, needs_rows=True, write_cell=cell)
    of = report_content.of_answer(QUESTION, answer, source, setting_labels=QUESTION.asked(*names))
    return replace(of, releases=_released(made, ledger))


def _released(made: Sequence[ReleaseRecord], ledger: Ledger) -> tuple[Line, ...]:
    """Return the latest release, and all that was spent: releases that ended in an error, too."""
    spent = spent_lines(ledger, lost_sentence(ledger, len(made), "these rows"))
    if not made:
        return spent
    draw = made[-1]
    note = f"Release {len(made)} of these rows; {words.describe_cell(draw.model.cell)}."
    return released_lines(draw.names, draw.model.theta, note, draw.model.facts.label, spent)


def show_files(answer: Answer) -> None:
    """Downloads: the choice, the report, every run."""
    of = release.releases(answer.solution)
    made, ledger = tuple(of.made), of.ledger
    kind = answer.disclosure
    report_content.draw(
        "training",
        kind,
        lambda: content(answer, made, ledger),
        write_methods(answer.solution, release.latest(answer.solution)),
        "**Parts of it**",
        [("Every run (CSV)", "training_runs.csv", lambda: files.write_table(answer.solution.table, kind))],
    )
