"""What training has found: its figure and its sentences, with the label of the records behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.answer import Answer, Axis, Bars, Curve, Item, Look, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance, rounded_up
from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.study import Form, Study, StudyResult
from dpcore.data_owners.training import replaced_epsilon

TITLE = "Accuracy by training"
FORMS = {
    Form.ALONE: ("Alone", Look.OWN, "square"),
    Form.JOINT: ("Joint privacy", Look.CAP, "diamond"),
    Form.FULL: ("Full privacy", Look.PRIVACY, "triangle-up"),
    Form.PLAIN: ("No privacy", Look.SAMPLING, "circle"),
    Form.PLAIN_PERSONAL: ("No privacy, with a personal part", Look.USUAL, "star"),
}
"""What each is called, and how it is drawn."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
ENDS = ("_smallest", "_largest")
OneLine = tuple[str, str, Form, int]
"""Its name, its column, its form, and the place of its ε."""
MOST_NAMED = 3
"""Pairs of ε and n that a sentence names."""
PAPER = (
    " As in the paper, every owner lacks a fifth of the classes. The paper trains a convolutional network in federated "
    "rounds: only directions are compared, and its table 2 (which layers are personal) has no counterpart here."
)
WHAT = (
    "Full privacy is W alone, with V = 0: nothing in it is personal. Joint privacy is the same W with V added, so that "
    "the two differ by personalisation. Alone is V without W: the fair comparison of joint privacy, as both are "
    "personal."
)
"""What the lines of the figure are."""
UNITS = {Unit.RECORD: "one record", Unit.USER: "one user", Unit.OWNER: "a whole owner"}


def lines_of(found: StudyResult) -> list[OneLine]:
    """Every form, and of those with privacy every ε."""
    lines = []
    for form, (called, *_) in FORMS.items():
        if not form.is_private:
            lines.append((called, form.value, form, 0))
            continue
        for e, epsilon in enumerate(found.study.epsilons):
            name = f"{called}, ε = {wording.entered(epsilon)}"
            lines.append((name, f"{form.value}_epsilon_{wording.digits(epsilon)}", form, e))
    return lines


def columns_of(found: StudyResult) -> dict[str, FloatArray]:
    """Accuracies against the number of owners: the mean over runs, and their smallest and largest."""
    columns: dict[str, FloatArray] = {"owners": np.array(found.study.owners, dtype=np.float64)}
    for _, column, form, e in lines_of(found):
        low, high = found.spread(form)
        columns |= {column: found.mean(form)[e], f"{column}_smallest": low[e], f"{column}_largest": high[e]}
    return columns


def accuracy(found: StudyResult, disclosure: Provenance = Disclosure.PUBLIC, paper: bool = True) -> Plot:
    """Test accuracy against the number of owners; of one number of them a bar per form."""
    columns = columns_of(found)
    lines = [line for line in lines_of(found) if np.isfinite(columns[line[1]]).any()]
    one = len(found.study.owners) == 1
    across, upwards, items = _bars(found, lines) if one else _curves(found, lines, columns)
    guides = {
        "line": [name for name, *_ in lines],
        **{end: [columns[column + end][0] for _, column, *_ in lines] for end in ("", *ENDS)},
    }
    return Plot(
        "owners-accuracy",
        "Accuracy against the number of owners",
        " ".join(directions(found, paper)).replace("**", "") or "Nothing has run yet.",
        across,
        upwards,
        columns,
        tuple(items),
        disclosure,
        guides if one else None,
        height=420,
    )


def _bars(found: StudyResult, lines: list[OneLine]) -> tuple[Axis, Axis, list[Item]]:
    low, high = _ends(found, "")
    items: list[Item] = [
        Bars(
            name,
            "",
            "line",
            FORMS[form][1],
            low=low,
            high=high,
            where=("line", name),
            gap=0.2,
            overlaid=True,
            unnamed=True,
        )
        for name, _, form, _ in reversed(lines)
    ]
    across = Axis("test accuracy", "", (0.0, 1.0), Scale.PERCENT, number=".1%")
    return across, Axis("form", "", (0.0, 1.0), Scale.NAMES, title=" "), items


def _curves(
    found: StudyResult, lines: list[OneLine], columns: dict[str, FloatArray]
) -> tuple[Axis, Axis, list[Item]]:
    items: list[Item] = []
    for name, column, form, at in lines:
        _, look, symbol = FORMS[form]
        dash, (low, high) = DASHES[at] if form.is_private else "longdash", _ends(found, column)
        items.append(
            Curve(name, "owners", column, look, dash=dash, width=2.0, symbol=symbol, low=low, high=high)
        )
    owners = found.study.owners
    limits, words = (min(owners) / 1.15, max(owners) * 1.15), tuple((n, wording.number(n)) for n in owners)
    least = min((float(np.nanmin(columns[column])) for _, column, *_ in lines), default=0.0)
    lowest = max(math.floor(10.0 * least - 0.3) / 10.0, 0.0)
    upwards = Axis("test accuracy", "", (lowest, 1.0), Scale.PERCENT, number=".1%")
    return Axis("owners, n", "", limits, number=",", marked=words), upwards, items


def _ends(found: StudyResult, column: str) -> tuple[str, str]:
    """Columns of the smallest and the largest of several runs; of one run there is nothing to tell."""
    low, high = (column + end for end in ENDS)
    return (low, high) if len(found.study.seeds) > 1 else ("", "")


def directions(found: StudyResult, paper: bool = True) -> list[str]:
    """What is seen by direction, and what the paper's tables say, sentences.

    Args:
        found: Accuracies.
        paper: Whether the paper's figures stand beside; not for records of one's own.
    """
    joint, full = found.mean(Form.JOINT), found.mean(Form.FULL)
    said = []
    for other, name, printed in (
        (Form.FULL, "full privacy", "The paper's table 1 has it above for every n of MNIST."),
        (Form.ALONE, "working alone", "In the paper's table 1 (ε = 1, MNIST) it is above from n = 256 on."),
    ):
        sign = found.compared(Form.JOINT, other)
        cells = int(np.sum(np.isfinite(sign)))
        if not cells:
            continue
        above, below = (int(np.sum(sign == which)) for which in (1.0, -1.0))
        within = cells - above - below
        rest = f", within the standard error in {within}" if within else ""
        said.append(
            f"**Joint privacy against {name}:** above in {above} of {cells} pairs of ε and n{_where(found, sign)}, "
            f"below in {below}{rest}. {printed if paper else ''}".strip()
        )
    if len(found.study.owners) > 1 and np.isfinite(joint - full).all():
        gain = (joint - full).mean(axis=0)
        grows = gain[-1] > gain[0]
        said.append(
            f"**The gain of joint over full privacy** {'grows' if grows else 'shrinks'} from {gain[0]:.3f} at n = "
            f"{found.study.owners[0]} to {gain[-1]:.3f} at n = {found.study.owners[-1]}, on average over ε; the "
            "paper's section 4.1.2 says that it grows."
        )
    return said


def _where(found: StudyResult, sign: FloatArray) -> str:
    """The pairs in which it is above, in brackets, where these are some and not all."""
    wins = [
        f"n = {n} at ε = {wording.entered(epsilon)}"
        for e, epsilon in enumerate(found.study.epsilons)
        for o, n in enumerate(found.study.owners)
        if sign[e, o] == 1.0
    ]
    return f" ({', '.join(wins)})" if 0 < len(wins) <= MOST_NAMED else ""


def table(found: StudyResult) -> pd.DataFrame:
    """A row per line of the figure, a column per number of owners."""
    columns = columns_of(found)
    rows = {name: columns[column] for name, column, _, _ in lines_of(found)}
    return pd.DataFrame(rows, index=[f"n = {n}" for n in found.study.owners]).T


def settings_words(found: StudyResult, paper: bool) -> str:
    """How the models were trained and judged, sentences."""
    study, options = found.study, found.study.options
    return (
        f"{wording.number(found.records)} records to learn from, "
        f"{wording.number(found.tests)} held out to test; {wording.number(found.parameters)} shared and as many "
        f"personal parameters. {WHAT} {wording.counted(len(study.seeds), 'run')}; whiskers reach from the smallest to "
        "the largest of several. "
        f"{options.steps} full-batch steps, gradients clipped to {wording.entered(options.clip)}, one exact Gaussian "
        f"mechanism for a unit whose records are zeroed. {replaced_words(study)} Steps, clip and rate are public and "
        "were chosen on other seeds; every owner picks the penalty of its personal part on its own records."
        f"{PAPER if paper else ''}"
    )


def replaced_words(study: Study) -> str:
    """What ε of the training is where a unit is replaced, as in the bounds beside it; a sentence."""
    pairs = [
        f"ε = {wording.entered(epsilon)} is ε = {rounded_up(replaced_epsilon(epsilon, study.delta), 3)}"
        for epsilon in study.epsilons
    ]
    return (
        f"For a unit that is replaced, as the bounds have it, the sensitivity is twice as large: {' and '.join(pairs)} "
        f"at δ = {wording.entered(study.delta)}."
    )


def unit_words(study: Study) -> str:
    """What is protected as one: ``one user (5 records)``."""
    held = f" ({wording.counted(study.records_per_user, 'record')})" if study.unit is Unit.USER else ""
    return UNITS[study.unit] + held


@dataclass(frozen=True, eq=False)
class Trained:
    """A training that has ended.

    Attributes:
        found: Its accuracies, with the settings that they are for.
        disclosure: Of the records behind them.
        paper: Whether the paper's figures stand beside; not for records of one's own.
    """

    found: StudyResult
    disclosure: Provenance
    paper: bool

    @property
    def is_private(self) -> bool:
        """Whether the accuracies must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def plot(self) -> Plot:
        """Test accuracy against the number of owners."""
        return accuracy(self.found, self.disclosure, self.paper)

    @property
    def card(self) -> Answer:
        """What was trained, and what is seen by direction."""
        study = self.found.study
        epsilons = ", ".join(wording.entered(epsilon) for epsilon in study.epsilons)
        owners = ", ".join(wording.number(n) for n in study.owners)
        ended = (
            ""
            if self.found.done == 1.0
            else f" It was stopped after {wording.percent(self.found.done)} of the fits."
        )
        unit = unit_words(study)
        facts: dict[str, str] = {}
        for sentence in directions(self.found, self.paper):
            name, _, rest = sentence.removeprefix("**").partition("**")
            facts[name.rstrip(":")] = rest.strip()
        return Answer(
            headline=f"Trained on {self.found.name} for n = {owners} owners at ε = {epsilons}.",
            detail=f"{unit[:1].upper()}{unit[1:]} is protected, at δ = {wording.entered(study.delta)}.{ended} "
            f"{settings_words(self.found, self.paper)} The script computes the bounds; it does not train.",
            numbers=(),
            facts=facts,
            assumptions=(
                "Neighbouring data sets of the training differ in one unit of protection, whose records are zeroed; "
                "how many records and units there are is public",
            ),
            disclosure=self.disclosure,
        )
