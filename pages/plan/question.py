"""Plan: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Contribution, Dataset
from dpcore.plan.parameters import FIRST_LINES, PlanParameters, choose_defaults
from pages.shared.base.question import Facet, FieldOrigin, Question, propose_range, propose_settings

OF_MEAN = ("variance_source", "likeness", "target")
"""Settings of a mean that follow from the data, as `dpcore.plan.parameters.choose_defaults` has them."""
ENDS = ("lower", "upper")


def propose(data: Dataset, current: Mapping[str, Any]) -> dict[str, Any]:
    """Propose lines that these data have, the range of public values, and the assumptions of *Mean*.

    Choices of the user stay, except that private values may be read: the user said so of other data.
    """
    settings = propose_settings(current, choose_defaults(data), OF_MEAN[:2] if data.is_private else ())
    ranged = data.values is not None and not data.is_private and data.release is None
    if current["lines"] in (
        None,
        current["lines_proposed"] or FIRST_LINES,
    ):  # None where nobody has seen the page yet.
        line_names = ["users"]
        if data.contribution is Contribution.ROWS:
            line_names.append("rows")
        if data.values is not None:
            line_names += ["sum", "mean"] if ranged else ["sum"]
        if data.pairs is not None and data.contribution is Contribution.ROWS:
            line_names.append("rows per group")
        settings |= {"lines": "; ".join(line_names), "lines_proposed": "; ".join(line_names)}
    return settings | propose_range(data, current, ENDS)


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
    also=FieldOrigin.PUBLIC.each(
        "tabs",
        "lines_proposed",
        "proposed",
        *(f"{name}_proposed" for name in OF_MEAN),
        "editor_round",
        "editor_base",
        "editor_",
        "written",
    ),
    propose=propose,
    proposed_fields=("lines", *ENDS, *OF_MEAN),
    plans=True,
)
