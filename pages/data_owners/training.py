"""The tab *Accuracy* of Data owners: training as work beside the page, its figure and sentences."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.markdown import plain
from dpcore.common.privacy import Disclosure, Provenance, rounded_up
from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.labelled import Labelled
from dpcore.data_owners.parameters import OwnersParameters
from dpcore.data_owners.study import Form, Records, Study, StudyResult, check, run
from dpcore.data_owners.training import replaced_epsilon
from dpcore.report import charts
from pages.data_owners import inputs, upload
from pages.data_owners.question import QUESTION
from pages.shared import cards, fields, figures, jobs
from pages.shared.figures import Picture

NAMES = {
    Form.ALONE: "Alone",
    Form.FULL: "Full privacy",
    Form.JOINT: "Joint privacy",
    Form.PLAIN: "No privacy",
    Form.PLAIN_PERSONAL: "No privacy, with a personal part",
}
COLORS = {
    Form.ALONE: charts.OWN["color"],
    Form.FULL: charts.PRIVACY["color"],
    Form.JOINT: charts.CAP["color"],
    Form.PLAIN: charts.SAMPLING["color"],
    Form.PLAIN_PERSONAL: charts.USUAL["color"],
}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = {
    Form.ALONE: "square",
    Form.FULL: "triangle-up",
    Form.JOINT: "diamond",
    Form.PLAIN: "circle",
    Form.PLAIN_PERSONAL: "star",
}
_ENDS = ("smallest", "largest")
MOST_NAMED = 3
"""Pairs of ε and n that a sentence names."""
PAPER = (
    " As in the paper, every owner lacks a fifth of the classes. The paper trains a convolutional network in federated "
    "rounds: only directions are compared, and its table 2 (which layers are personal) has no counterpart here."
)
UNITS = {Unit.RECORD: "one record", Unit.USER: "one user", Unit.OWNER: "a whole owner"}


def lines_of(found: StudyResult) -> list[tuple[str, str, Form, int]]:
    """(name, column, form, place of ε) of every line."""
    lines = []
    for form in (Form.ALONE, Form.JOINT, Form.FULL, Form.PLAIN, Form.PLAIN_PERSONAL):
        if not form.is_private:
            lines.append((NAMES[form], form.value, form, 0))
            continue
        for e, epsilon in enumerate(found.study.epsilons):
            name = f"{NAMES[form]}, ε = {wording.entered(epsilon)}"
            lines.append((name, f"{form.value}_epsilon_{wording.digits(epsilon)}", form, e))
    return lines


def columns_of(found: StudyResult) -> dict[str, FloatArray]:
    """Accuracies against the number of owners: the mean over runs, and their smallest and largest."""
    columns: dict[str, FloatArray] = {"owners": np.array(found.study.owners, dtype=np.float64)}
    for _, column, form, e in lines_of(found):
        low, high = found.spread(form)
        columns |= {column: found.mean(form)[e], f"{column}_smallest": low[e], f"{column}_largest": high[e]}
    return columns


def picture(found: StudyResult, disclosure: Provenance = Disclosure.PUBLIC, paper: bool = True) -> Picture:
    """Test accuracy against the number of owners."""
    columns = columns_of(found)
    return Picture(
        "owners-accuracy",
        "Accuracy against the number of owners",
        lambda: _figure(found, columns),
        " ".join(directions(found, paper)).replace("**", "") or "Nothing has run yet.",
        columns,
        disclosure,
    )


def _figure(found: StudyResult, columns: dict[str, FloatArray]) -> go.Figure:
    if len(found.study.owners) == 1:
        return _bars(found, columns)
    owners = columns["owners"]
    x = charts.log_axis("Owners, n", (float(owners.min()) / 1.15, float(owners.max()) * 1.15))
    x |= {"tickvals": owners, "ticktext": [wording.number(n) for n in owners], "minor": {}}
    least = min(
        float(np.nanmin(columns[column]))
        for _, column, _, _ in lines_of(found)
        if np.isfinite(columns[column]).any()
    )
    low = max(math.floor(10.0 * least - 0.3) / 10.0, 0.0)
    fig = charts.figure(x, charts.linear_axis("Test accuracy", (low, 1.0), percent=True))
    for name, column, form, e in lines_of(found):
        y = columns[column]
        if not np.isfinite(y).any():
            continue
        line: dict[str, Any] = {"color": COLORS[form], "width": 2}
        line["dash"] = DASHES[e] if form.is_private else "longdash"
        charts.add_curve(
            fig,
            name,
            owners,
            y,
            line,
            f"{name}<br>n = %{{x:,}}: %{{y:.1%}}",
            symbol=SYMBOLS[form],
            error_y=charts.whiskers(
                columns[f"{column}_largest"] - y,
                y - columns[f"{column}_smallest"],
                visible=len(found.study.seeds) > 1,
            ),
        )
    return fig


def _bars(found: StudyResult, columns: dict[str, FloatArray]) -> go.Figure:
    """A bar per form, for one number of owners."""
    lines = [line for line in reversed(lines_of(found)) if np.isfinite(columns[line[1]][0])]
    values = np.array([columns[column][0] for _, column, _, _ in lines])
    ends = [np.array([columns[f"{column}_{end}"][0] for _, column, _, _ in lines]) for end in _ENDS]
    y: dict[str, object] = {"title": {"text": ""}, "automargin": True}
    fig = charts.figure(charts.linear_axis("Test accuracy", (0.0, 1.0), percent=True), y)
    fig.add_trace(
        go.Bar(
            x=values,
            y=[name for name, _, _, _ in lines],
            orientation="h",
            marker={"color": [COLORS[form] for _, _, form, _ in lines]},
            error_x=charts.whiskers(ends[1] - values, values - ends[0], visible=len(found.study.seeds) > 1),
            hovertemplate="%{y}: %{x:.1%}<extra></extra>",
        )
    )
    return charts.without_legend(fig)


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


def show(parameters: OwnersParameters) -> None:
    """The tab: inputs, Train, figure and sentences."""
    st.markdown(
        "Multinomial logistic regression with a shared part W and a personal part V of every owner. *Joint privacy* is "
        "*share, then personalise*: W is trained with noise, then every owner fits V by itself, and nothing comes "
        "back. "
        f"**{UNITS[parameters.unit].capitalize()}** is protected, at the page's δ: neighbouring data sets differ in "
        "one unit whose records are zeroed, and how many records and units there are is public."
    )
    own = None
    if inputs.training_source() is Records.UPLOAD:
        own = upload.loaded()
        if own is None:
            return
    start = inputs.training(own is not None)
    key, study = QUESTION.key("training_job"), parameters.study
    records: Records | Labelled = parameters.train_on
    if own is not None:
        records, study = own.records, replace(study, owners=(own.records.num_owners,))
    disclosure: Provenance = Disclosure.PUBLIC if own is None else own.dataset.provenance
    asked = (parameters.train_on, "" if own is None else own.account, study, disclosure)
    try:
        check(study, records)
    except InvalidInput as refused:
        fields.say(refused.problems)
        start = False
    if start:
        jobs.start(key, asked, lambda tell, stop: run(study, records, tell, stop), heavy=True)
    running = jobs.watch(key, "Training")
    found: StudyResult | None = None
    if running and (now := jobs.so_far_of(key)) is not None and now[0] == asked:
        found = now[1]
    if not running and (done := jobs.result_of(key)) is not None:
        # Of another source they would stand under the wrong label.
        found = done[1] if done[0][:2] == asked[:2] else None
        if found is not None and done[0] != asked:
            st.caption(":material/history: These are for earlier settings; train again for the new ones.")
    if found is None or found.done == 0.0:
        if not running:
            st.caption("Nothing was trained yet. With these defaults it takes a few seconds.")
        return
    _results(found, running, disclosure, own is None)


def _results(found: StudyResult, running: bool, disclosure: Provenance, paper: bool) -> None:
    if not running and found.done < 1.0:
        st.caption(f":material/stop_circle: Stopped after {wording.percent(found.done)} of the fits.")
    figures.show_picture(picture(found, disclosure, paper))
    if running:
        return
    st.markdown("\n".join(f"- {sentence}" for sentence in directions(found, paper)))
    st.dataframe(
        table(found).style.format("{:.3f}", na_rep="not run"),
        alt="Test accuracy of every form against the number of owners",
    )
    st.caption(f"{plain(found.name[:1].upper() + found.name[1:])}: {settings_words(found, paper)}")
    cards.label(disclosure)


def settings_words(found: StudyResult, paper: bool) -> str:
    """How the models were trained and judged, sentences."""
    study, options = found.study, found.study.options
    return (
        f"{wording.number(found.records)} records to learn from, "
        f"{wording.number(found.tests)} held out to test; {wording.number(found.parameters)} shared and as many "
        f"personal parameters. {wording.counted(len(study.seeds), 'run')}; whiskers reach from the smallest to the "
        "largest of several. "
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
