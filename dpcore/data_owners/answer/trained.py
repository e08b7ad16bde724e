"""The results of a training: plot and sentences, with the label of the records behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpcore.answer import Answer, Axis, Bars, Curve, Item, Plot, Style, names_axis, share_axis
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance, format_rounded_up
from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.study import Form, Study, StudyResult
from dpcore.data_owners.training import compute_replaced_epsilon

TITLE = "Accuracy by training"
FORM_STYLES = {
    Form.SEPARATE: ("Alone", Style.ENTERED, "square"),
    Form.JOINT: ("Joint privacy", Style.CAP, "diamond"),
    Form.FULL: ("Full privacy", Style.PRIVACY, "triangle-up"),
    Form.NON_PRIVATE: ("No privacy", Style.SAMPLING, "circle"),
    Form.NON_PRIVATE_PERSONAL: ("No privacy, with a personal part", Style.CUSTOMARY, "star"),
}
"""What each is called, and how it is drawn."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LineOfFigure = tuple[str, str, Form, int]
"""Its name, its column, its form, and the place of its ε."""
MAX_NAMED_PAIRS = 3
"""Pairs of ε and n that a sentence names."""
PAPER_SENTENCES = (
    " As in the paper, every owner lacks a fifth of the classes. The paper trains a convolutional network in federated "
    "rounds: only directions are compared, and its table 2 (which layers are personal) has no counterpart here."
)
FORM_SENTENCES = (
    "Full privacy is W alone, with V = 0: nothing in it is personal. Joint privacy is the same W with V added, so that "
    "the two differ by personalisation. Alone is V without W: the fair comparison of joint privacy, as both are "
    "personal."
)
"""What the lines of the figure are."""
UNIT_NAMES = {Unit.RECORD: "one record", Unit.USER: "one user", Unit.OWNER: "a whole owner"}


def list_lines(result: StudyResult) -> list[LineOfFigure]:
    """List every form, and each private form at every ε."""
    lines = []
    for form, (name, *_) in FORM_STYLES.items():
        if not form.is_private:
            lines.append((name, form.value, form, 0))
            continue
        for epsilon_index, epsilon in enumerate(result.study.epsilons):
            label = f"{name}, ε = {wording.entered(epsilon)}"
            lines.append((label, f"{form.value}_epsilon_{wording.digits(epsilon)}", form, epsilon_index))
    return lines


def build_columns(result: StudyResult) -> dict[str, FloatArray]:
    """Build the accuracies over the number of owners: mean, smallest and largest over runs."""
    columns: dict[str, FloatArray] = {"owners": np.array(result.study.owners, dtype=np.float64)}
    for _, column, form, epsilon_index in list_lines(result):
        low, high = result.find_extremes(form)
        columns |= {
            column: result.average(form)[epsilon_index],
            f"{column}_smallest": low[epsilon_index],
            f"{column}_largest": high[epsilon_index],
        }
    return columns


def plot_accuracy(
    result: StudyResult, disclosure: Provenance = Disclosure.PUBLIC, paper: bool = True
) -> Plot:
    """Plot test accuracy over the number of owners; for a single number, plot a bar per form."""
    columns = build_columns(result)
    lines = [line for line in list_lines(result) if np.isfinite(columns[line[1]]).any()]
    is_single = len(result.study.owners) == 1
    x_axis, y_axis, items = (_plot_bars if is_single else _plot_curves)(result, lines, columns)
    return Plot(
        "owners-accuracy",
        "Accuracy against the number of owners",
        " ".join(write_directions(result, paper)).replace("**", "") or "Nothing has run yet.",
        x_axis,
        y_axis,
        items,
        disclosure,
        columns,
        height=420,
    )


def _plot_bars(
    result: StudyResult, lines: list[LineOfFigure], columns: dict[str, FloatArray]
) -> tuple[Axis, Axis, list[Item]]:
    """Plot a bar per form."""
    items: list[Item] = []
    for name, column, form, _ in reversed(lines):
        options = {
            "is_unnamed": True,
            "gap": 0.2,
            "is_overlaid": True,
            **_get_whiskers(result, column, columns),
        }
        items.append(Bars(name, columns[column], [name], FORM_STYLES[form][1], **options))
    return share_axis("test accuracy", (0.0, 1.0), number_format=".1%"), names_axis("form", " "), items


def _plot_curves(
    result: StudyResult, lines: list[LineOfFigure], columns: dict[str, FloatArray]
) -> tuple[Axis, Axis, list[Item]]:
    """Plot a curve per form and ε."""
    items: list[Item] = []
    for name, column, form, epsilon_index in lines:
        _, style, symbol = FORM_STYLES[form]
        dash = DASHES[epsilon_index] if form.is_private else "longdash"
        options = {"dash": dash, "width": 2.0, "symbol": symbol, **_get_whiskers(result, column, columns)}
        items.append(Curve(name, columns["owners"], columns[column], style, **options))
    owners = result.study.owners
    limits, ticks = (min(owners) / 1.15, max(owners) * 1.15), tuple((n, wording.number(n)) for n in owners)
    smallest_accuracy = min((float(np.nanmin(columns[column])) for _, column, *_ in lines), default=0.0)
    axis_start = max(math.floor(10.0 * smallest_accuracy - 0.3) / 10.0, 0.0)
    y_axis = share_axis("test accuracy", (axis_start, 1.0), number_format=".1%")
    return Axis("owners, n", "", limits, number_format=",", named_ticks=ticks), y_axis, items


def _get_whiskers(result: StudyResult, column: str, columns: dict[str, FloatArray]) -> dict[str, Any]:
    """Return the ends of whiskers, the smallest and the largest of several runs; none for one run."""
    ends = {"low": columns[f"{column}_smallest"], "high": columns[f"{column}_largest"]}
    return ends if len(result.study.seeds) > 1 else {}


def write_directions(result: StudyResult, paper: bool = True) -> list[str]:
    """Write which form is more accurate, and what the paper's tables say, as sentences.

    Args:
        result: Accuracies.
        paper: Whether the paper's figures stand beside; not for records of one's own.
    """
    joint, full = result.average(Form.JOINT), result.average(Form.FULL)
    sentences = []
    for other_form, name, paper_sentence in (
        (Form.FULL, "full privacy", "The paper's table 1 has it above for every n of MNIST."),
        (
            Form.SEPARATE,
            "working alone",
            "In the paper's table 1 (ε = 1, MNIST) it is above from n = 256 on.",
        ),
    ):
        sign = result.compare(Form.JOINT, other_form)
        num_pairs = int(np.sum(np.isfinite(sign)))
        if not num_pairs:
            continue
        num_above, num_below = (int(np.sum(sign == direction)) for direction in (1.0, -1.0))
        num_equal = num_pairs - num_above - num_below
        equal_text = f", within the standard error in {num_equal}" if num_equal else ""
        sentences.append(
            f"**Joint privacy against {name}:** above in {num_above} of {num_pairs} pairs of ε and "
            f"n{_list_wins(result, sign)}, "
            f"below in {num_below}{equal_text}. {paper_sentence if paper else ''}".strip()
        )
    if len(result.study.owners) > 1 and np.isfinite(joint - full).all():
        gain = (joint - full).mean(axis=0)
        grows = gain[-1] > gain[0]
        sentences.append(
            f"**The gain of joint over full privacy** {'grows' if grows else 'shrinks'} from {gain[0]:.3f} at n = "
            f"{result.study.owners[0]} to {gain[-1]:.3f} at n = {result.study.owners[-1]}, on average over ε; the "
            "paper's section 4.1.2 says that it grows."
        )
    return sentences


def _list_wins(result: StudyResult, sign: FloatArray) -> str:
    """List the pairs of n and ε in which joint privacy is above, in brackets, if they are few."""
    wins = [
        f"n = {n} at ε = {wording.entered(epsilon)}"
        for epsilon_index, epsilon in enumerate(result.study.epsilons)
        for owner_index, n in enumerate(result.study.owners)
        if sign[epsilon_index, owner_index] == 1.0
    ]
    return f" ({', '.join(wins)})" if 0 < len(wins) <= MAX_NAMED_PAIRS else ""


def tabulate_accuracy(result: StudyResult) -> pd.DataFrame:
    """Tabulate accuracy, a row per line of the figure, a column per number of owners."""
    columns = build_columns(result)
    rows = {name: columns[column] for name, column, _, _ in list_lines(result)}
    return pd.DataFrame(rows, index=[f"n = {n}" for n in result.study.owners]).T


def write_settings(result: StudyResult, paper: bool) -> str:
    """Write how the models were trained and tested."""
    study, options = result.study, result.study.options
    return (
        f"{wording.number(result.records)} records to learn from, "
        f"{wording.number(result.tests)} held out to test; {wording.number(result.parameters)} shared and as many "
        f"personal parameters. {FORM_SENTENCES} {wording.counted(len(study.seeds), 'run')}; whiskers reach "
        "from the smallest to "
        "the largest of several. "
        f"{options.steps} full-batch steps, gradients clipped to {wording.entered(options.clip)}, one exact Gaussian "
        f"mechanism for a unit whose records are zeroed. {write_replaced_epsilons(study)} Steps, clip and "
        "rate are public and "
        "were chosen on other seeds; every owner picks the penalty of its personal part on its own records."
        f"{PAPER_SENTENCES if paper else ''}"
    )


def write_replaced_epsilons(study: Study) -> str:
    """Write which ε the training has for a unit that is replaced, as in the bounds."""
    pairs = [
        f"ε = {wording.entered(epsilon)} is ε = {format_rounded_up(compute_replaced_epsilon(epsilon, study.delta), 3)}"
        for epsilon in study.epsilons
    ]
    return (
        f"For a unit that is replaced, as the bounds have it, the sensitivity is twice as large: {' and '.join(pairs)} "
        f"at δ = {wording.entered(study.delta)}."
    )


def name_unit(study: Study) -> str:
    """Name the unit of protection: ``one user (5 records)``."""
    num_records = f" ({wording.counted(study.records_per_user, 'record')})" if study.unit is Unit.USER else ""
    return UNIT_NAMES[study.unit] + num_records


@dataclass(frozen=True, eq=False)
class TrainingCard:
    """The card and the plot of a training that has ended.

    Attributes:
        result: Its accuracies, with the settings that they are for.
        disclosure: Of the records behind them.
        paper: Whether the paper's figures stand beside; not for records of one's own.
    """

    result: StudyResult
    disclosure: Provenance
    paper: bool

    @property
    def is_private(self) -> bool:
        """Return True if the accuracies must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def plot(self) -> Plot:
        """Plot test accuracy over the number of owners."""
        return plot_accuracy(self.result, self.disclosure, self.paper)

    @property
    def card(self) -> Answer:
        """Build a card that says what was trained, and which form is more accurate."""
        study = self.result.study
        epsilons = ", ".join(wording.entered(epsilon) for epsilon in study.epsilons)
        owners = ", ".join(wording.number(n) for n in study.owners)
        stop_text = (
            ""
            if self.result.share_done == 1.0
            else f" It was stopped after {wording.percent(self.result.share_done)} of the fits."
        )
        unit = name_unit(study)
        facts: dict[str, str] = {}
        for sentence in write_directions(self.result, self.paper):
            heading, _, text = sentence.removeprefix("**").partition("**")
            facts[heading.rstrip(":")] = text.strip()
        return Answer(
            headline=f"Trained on {self.result.name} for n = {owners} owners at ε = {epsilons}.",
            detail=f"{unit[:1].upper()}{unit[1:]} is protected, at δ = {wording.entered(study.delta)}.{stop_text} "
            f"{write_settings(self.result, self.paper)} The script computes the bounds; it does not train.",
            numbers=(),
            facts=facts,
            assumptions=(
                "Neighbouring data sets of the training differ in one unit of protection, whose records are zeroed; "
                "how many records and units there are is public",
            ),
            disclosure=self.disclosure,
        )
