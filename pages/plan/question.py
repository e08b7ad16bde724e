"""Budget plan: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Contribution, Dataset
from dpcore.plan.parameters import FIRST_LINES, PROPOSED_MEAN_FIELDS, PlanParameters, choose_defaults
from pages.shared.base.question import Facet, FieldOrigin, Question, propose_range, propose_settings
from pages.shared.data import group_list

RANGE_FIELDS = ("lower", "upper")


def propose(dataset: Dataset, current: Mapping[str, Any]) -> dict[str, Any]:
    """Propose lines that these data have, the range of public values, and the assumptions of *Mean*.

    Choices of the user stay, except that private values may be read: the user said so of other data.
    """
    reset_names = ("variance_source", "likeness") if dataset.is_private else ()
    settings = propose_settings(current, choose_defaults(dataset), reset_names)
    # None where nobody has seen the page yet.
    if current["lines"] in (None, current["lines_proposed"] or FIRST_LINES):
        counts_rows, has_values = dataset.contribution is Contribution.ROWS, dataset.values is not None
        offered_by_line = {
            "users": True,
            "rows": counts_rows,
            "sum": has_values,
            # A mean needs a range, which only public values, and answers of yes and no, propose.
            "mean": has_values and dataset.release is None and (not dataset.is_private or dataset.has_shares),
            "rows per group": counts_rows and dataset.pairs is not None,
        }
        lines_text = "; ".join(line_text for line_text, is_wanted in offered_by_line.items() if is_wanted)
        settings |= {"lines": lines_text, "lines_proposed": lines_text}
    return settings | propose_range(dataset, current, RANGE_FIELDS)


QUESTION = Question(
    name="plan",
    title="Budget plan",
    icon=":material/splitscreen:",
    url_path="plan",
    group="Choose a bound",
    lead="Several numbers share one privacy budget. **How much of it does each get, and under which bound?**",
    sentence="I release several numbers about one table: how do they share one ε?",
    release_phrase="Several numbers from one budget",
    answers_from=(Facet.ROWS, Facet.VALUES, Facet.GROUPS),
    parameters=PlanParameters,
    other_origins=FieldOrigin.PUBLIC.each(
        "tabs",
        "lines_proposed",
        "proposed",
        *(f"{name}_proposed" for name in PROPOSED_MEAN_FIELDS),
        "editor_round",
        "editor_base",
        "editor_",
        "written",
    )
    | group_list.ENTRIES,
    propose_values=propose,
    proposed_fields=("lines", *RANGE_FIELDS, *PROPOSED_MEAN_FIELDS),
    takes_releases=True,
)
