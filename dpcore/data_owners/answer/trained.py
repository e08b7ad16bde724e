"""The results of a training: plot and sentences, with the label of the records behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpcore.answer import Answer, Axis, Bars, Curve, Item, Plot, Style, names_axis, share_axis
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance, format_rounded_up
from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.study import Form, StudyResult
from dpcore.data_owners.training import compute_replaced_epsilon

TITLE = "Accuracy by training"
FORM_STYLES = {
    Form.SEPARATE: ("Alone", Style.ENTERED, "square"),
    Form.JOINT: ("Joint privacy", Style.CAP, "diamond"),
    Form.FULL: ("Full privacy", Style.PRIVACY, "triangle-up"),
    Form.NON_PRIVATE: ("No privacy", Style.SAMPLING, "circle"),
    Form.NON_PRIVATE_PERSONAL: ("No privacy, with a personal part", Style.CUSTOMARY, "star"),
}
"""Name, style and symbol of each form."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MAX_NAMED_PAIRS = 3
"""Pairs of ε and n that a sentence names."""
COMPARED_FORMS = {
    Form.FULL: ("full privacy", "In the paper's table 1 (MNIST) it is above for every n."),
    Form.SEPARATE: ("working alone", "In the paper's table 1 (ε = 1, MNIST) it is above from n = 256 on."),
}
"""What joint privacy is compared with, and what the paper says of that."""
PAPER_SENTENCES = (
    " As in the paper, every owner lacks a fifth of the classes. The paper trains a convolutional network, so only "
    "directions are compared."
)
UNIT_NAMES = {Unit.RECORD: "one record", Unit.USER: "one user", Unit.OWNER: "a whole owner"}


@dataclass(frozen=True)
class FormLine:
    """A line of the figure: a form of training at one ε.

    Attributes:
        name: In the legend.
        column: In the file; of the mean accuracy.
        form: The form.
        epsilon_index: The index of ε in the study; 0 for a form without privacy.
    """

    name: str
    column: str
    form: Form
    epsilon_index: int


def list_lines(result: StudyResult) -> list[FormLine]:
    """List every form, and each private form at every ε."""
    lines = []
    for form, (name, *_) in FORM_STYLES.items():
        if not form.is_private:
            lines.append(FormLine(name, form.value, form, 0))
            continue
        for index, epsilon in enumerate(result.study.epsilons):
            column = f"{form.value}_epsilon_{wording.digits(epsilon)}"
            lines.append(FormLine(f"{name}, ε = {wording.entered(epsilon)}", column, form, index))
    return lines


def build_columns(result: StudyResult) -> dict[str, FloatArray]:
    """Build the accuracies over the number of owners: mean, smallest and largest over runs."""
    columns: dict[str, FloatArray] = {"owners": np.array(result.study.owners, dtype=np.float64)}
    for line in list_lines(result):
        runs = result.accuracy[line.form][line.epsilon_index]
        columns |= {
            line.column: result.average(line.form)[line.epsilon_index],
            f"{line.column}_smallest": np.fmin.reduce(runs, axis=1),  # NaN only where nothing ran.
            f"{line.column}_largest": np.fmax.reduce(runs, axis=1),
        }
    return columns


def plot_accuracy(
    result: StudyResult, disclosure: Provenance = Disclosure.PUBLIC, has_paper: bool = True
) -> Plot:
    """Plot test accuracy over the number of owners; for a single number, plot a bar per form."""
    columns, owners = build_columns(result), result.study.owners
    lines = [line for line in list_lines(result) if np.isfinite(columns[line.column]).any()]
    items: list[Item] = []
    for line in lines:
        _, style, symbol = FORM_STYLES[line.form]
        options: dict[str, Any] = {}
        if len(result.study.seeds) > 1:
            options = {"low": columns[f"{line.column}_smallest"], "high": columns[f"{line.column}_largest"]}
        if len(owners) == 1:
            options |= {"is_unnamed": True, "gap": 0.2, "is_overlaid": True}
            items.insert(0, Bars(line.name, columns[line.column], [line.name], style, **options))
        else:
            dash = DASHES[line.epsilon_index] if line.form.is_private else "longdash"
            options |= {"dash": dash, "width": 2.0, "symbol": symbol}
            items.append(Curve(line.name, columns["owners"], columns[line.column], style, **options))
    smallest_accuracy = min((float(np.nanmin(columns[line.column])) for line in lines), default=0.0)
    lowest_tick = max(math.floor(10.0 * smallest_accuracy - 0.3) / 10.0, 0.0)
    limits, ticks = (min(owners) / 1.15, max(owners) * 1.15), tuple((n, wording.number(n)) for n in owners)
    x_axis = Axis("owners, n", "", limits, number_format=",", named_ticks=ticks)
    y_axis = share_axis("test accuracy", (lowest_tick, 1.0), number_format=".1%")
    if len(owners) == 1:
        x_axis, y_axis = replace(y_axis, limits=(0.0, 1.0)), names_axis("form", " ")
    return Plot(
        "owners-accuracy",
        "Accuracy against the number of owners",
        " ".join(write_directions(result, has_paper)).replace("**", "") or "Nothing has run yet.",
        x_axis,
        y_axis,
        items,
        disclosure,
        columns,
        height=420,
    )


def write_directions(result: StudyResult, has_paper: bool = True) -> list[str]:
    """Write which form is more accurate, and what the paper's tables say, as sentences.

    Args:
        result: Accuracies.
        has_paper: True if the paper's figures stand beside; not for records of one's own.
    """
    sentences, owners = [], result.study.owners
    for other_form, (name, paper_sentence) in COMPARED_FORMS.items():
        sign = result.compare(Form.JOINT, other_form)
        num_pairs = int(np.isfinite(sign).sum())
        if not num_pairs:
            continue
        num_above, num_below = (int((sign == direction).sum()) for direction in (1.0, -1.0))
        num_equal = num_pairs - num_above - num_below
        wins = [
            f"n = {n} at ε = {wording.entered(epsilon)}"
            for epsilon, signs in zip(result.study.epsilons, sign.tolist(), strict=True)
            for n, owner_sign in zip(owners, signs, strict=True)
            if owner_sign == 1.0
        ]
        wins_text = f" ({', '.join(wins)})" if 0 < num_above <= MAX_NAMED_PAIRS else ""
        equal_text = f", within the standard error in {num_equal}" if num_equal else ""
        sentences.append(
            f"**Joint privacy against {name}:** above in {num_above} of {num_pairs} pairs of ε and "
            f"n{wins_text}, below in {num_below}{equal_text}. "
            f"{paper_sentence if has_paper else ''}".strip()
        )
    gains = result.average(Form.JOINT) - result.average(Form.FULL)
    if len(owners) > 1 and np.isfinite(gains).all():
        first, *_, last = gains.mean(axis=0)
        sentences.append(
            f"**The gain of joint over full privacy** {'grows' if last > first else 'shrinks'} from {first:.3f} at n = "
            f"{owners[0]} to {last:.3f} at n = {owners[-1]}, averaged over ε; in the paper (section 4.1.2) it grows."
        )
    return sentences


def tabulate_accuracy(result: StudyResult) -> pd.DataFrame:
    """Tabulate accuracy, a row per line of the figure, a column per number of owners."""
    columns = build_columns(result)
    rows = {line.name: columns[line.column] for line in list_lines(result)}
    return pd.DataFrame(rows, index=[f"n = {n}" for n in result.study.owners]).T


def write_settings(result: StudyResult, has_paper: bool) -> str:
    """Write how the models were trained and tested."""
    study, options = result.study, result.study.options
    replaced_epsilons = [
        f"ε = {wording.entered(epsilon)} is ε = {format_rounded_up(compute_replaced_epsilon(epsilon, study.delta), 3)}"
        for epsilon in study.epsilons
    ]
    return (
        f"{wording.number(result.num_records)} training records, {wording.number(result.num_tests)} test records; "
        f"{wording.number(result.num_parameters)} shared, as many personal parameters. Full privacy is W alone, with "
        "V = 0. Joint privacy is the same W with V added. Alone is V without W: the fair comparison for joint privacy. "
        f"{wording.counted(len(study.seeds), 'run')}; whiskers show the smallest and the largest. {options.steps} "
        f"full-batch steps, gradients clipped to {wording.entered(options.clip)}, one exact Gaussian mechanism for a "
        "unit whose records are zeroed. For a unit that is replaced, as in the bounds, the sensitivity is twice as "
        f"large: {' and '.join(replaced_epsilons)} at δ = {wording.entered(study.delta)}. Steps, clip and rate are "
        "public and were chosen on other seeds; every owner picks its penalty on its own records."
        f"{PAPER_SENTENCES if has_paper else ''}"
    )


@dataclass(frozen=True, eq=False)
class TrainingCard:
    """The card and the plot of a training that has ended.

    Attributes:
        result: Its accuracies, with the settings that they are for.
        disclosure: Of the records behind them.
        has_paper: True if the paper's figures stand beside; not for records of one's own.
    """

    result: StudyResult
    disclosure: Provenance
    has_paper: bool

    @property
    def is_private(self) -> bool:
        """Return True if the accuracies must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def plot(self) -> Plot:
        """Plot test accuracy over the number of owners."""
        return plot_accuracy(self.result, self.disclosure, self.has_paper)

    @property
    def card(self) -> Answer:
        """Build a card that says what was trained, and which form is more accurate."""
        study, share_done = self.result.study, self.result.share_done
        epsilons = ", ".join(wording.entered(epsilon) for epsilon in study.epsilons)
        owners = ", ".join(wording.number(n) for n in study.owners)
        stop_text = (
            "" if share_done == 1.0 else f" It was stopped after {wording.percent(share_done)} of the fits."
        )
        unit_text = wording.capital(UNIT_NAMES[study.unit])
        if study.unit is Unit.USER:
            unit_text += f" ({wording.counted(study.records_per_user, 'record')})"
        facts: dict[str, str] = {}
        for sentence in write_directions(self.result, self.has_paper):
            heading, _, text = sentence.removeprefix("**").partition("**")
            facts[heading.rstrip(":")] = text.strip()
        return Answer(
            headline=f"Trained on {self.result.name} for n = {owners} owners at ε = {epsilons}.",
            detail=f"{unit_text} is protected, at δ = {wording.entered(study.delta)}.{stop_text} "
            f"{write_settings(self.result, self.has_paper)} The script computes the bounds; it does not train.",
            numbers=(),
            facts=facts,
            assumptions=(
                "Neighbouring data sets of the training differ in one unit of protection, whose records are zeroed; "
                "how many records and units there are is public",
            ),
            disclosure=self.disclosure,
        )
