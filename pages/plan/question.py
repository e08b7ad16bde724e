"""Plan: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore.dataset import Contribution, Dataset
from dpcore.plan.budget import Program
from dpcore.plan.parameters import FIRST_LINES, MAX_TEXT, Objective, PlanParameters, choose_defaults
from pages.mean.question import ASSUMED
from pages.shared.base.question import (
    HIGHEST,
    LOWEST,
    NOISE,
    NOT_FROM_DATA,
    SHARED_DELTA,
    Facet,
    From,
    Question,
    public,
)
from pages.shared.base.round_numbers import rounded_out


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """Lines that these data have, the range of public values, and what a mean assumes, as *Mean* proposes it.

    What the person chose stays; but that private values may be read was said of other data, and is asked anew.
    """
    found: dict[str, Any] = {}
    for name, value in choose_defaults(data).items():
        if (data.is_private and name != "target") or now[name] == now[f"{name}_proposed"]:
            found |= {name: value, f"{name}_proposed": value}
    ranged = data.values is not None and not data.is_private and data.release is None
    if now["lines"] in (
        None,
        now["lines_proposed"] or FIRST_LINES,
    ):  # None where nobody has seen the page yet.
        asked = ["users"]
        if data.contribution is Contribution.ROWS:
            asked.append("rows")
        if data.values is not None:
            asked += ["sum", "mean"] if ranged else ["sum"]
        if data.pairs is not None and data.contribution is Contribution.ROWS:
            asked.append("rows per group")
        found |= {"lines": "; ".join(asked), "lines_proposed": "; ".join(asked)}
    if data.release is not None or (now["lower"], now["upper"]) not in (now["proposed"], (None, None)):
        return found
    low, high = None, None
    if ranged and data.values is not None:
        low, high = rounded_out(float(data.values.values.min()), float(data.values.values.max()))
    return found | {"lower": low, "upper": high, "proposed": (low, high)}


QUESTION = Question(
    name="plan",
    title="Plan",
    icon=":material/splitscreen:",
    url_path="plan",
    group="Choose a bound",
    lead="You release several numbers about one table from one privacy budget. **How much of it does each get, and "
    "under which bound?**",
    sentence="I release several numbers about one table: how do they share one ε?",
    release="Several numbers from one budget",
    answers_from=(Facet.ROWS, Facet.VALUES, Facet.GROUPS),
    parameters=PlanParameters,
    fields={
        # What is released, how well it is wanted: every release says the one, and nobody reads the other off data.
        "lines": public("Numbers to release", asked="Numbers to release", longest=MAX_TEXT),
        "objective": public(
            "Best plan",
            "Least sum: of squared errors over wanted errors. Least ε: at which every number has its wanted error. "
            "Least largest: error over wanted error; every number needs a wanted error of its own.",
            asked="Best by",
            names={
                Objective.SUM: "Least sum",
                Objective.REACH: "Least ε",
                Objective.LARGEST: "Least largest",
            },
        ),
        "noise": replace(
            NOISE,
            label="Mechanism",
            help="Laplace for ε-DP. Gaussian for (ε, δ)-DP pays from about ten numbers. *Alternatives* below compares "
            "both.",
        ),
        "delta": SHARED_DELTA,
        "lower": replace(LOWEST, help=f"Values below count as L. {NOT_FROM_DATA}"),
        "upper": replace(HIGHEST, help=f"Values above count as U. {NOT_FROM_DATA}"),
        "program": public(
            "Noise as drawn by",
            "Errors are those of the noise that its program draws: libraries split the budget of a mean in halves.",
            asked="Program",
            names={program: program.value for program in Program},
            as_list=True,
            width=180,
        ),
        **ASSUMED,
        # Beside other numbers it is to be said what these are about.
        "target": replace(ASSUMED["target"], label="A mean is that of", asked="A mean is that of"),
        "variance_source": replace(ASSUMED["variance_source"], label="Known of its values"),
    },
    also=From.PUBLIC.each(
        "tabs",
        "lines_proposed",
        "proposed",
        "target_proposed",
        "variance_source_proposed",
        "likeness_proposed",
        "editor_round",
        "editor_base",
        "editor_",
        "written",
    ),
    propose=propose,
    proposed=("lines", "lower", "upper", "target", "variance_source", "likeness"),
    plans=True,
)
