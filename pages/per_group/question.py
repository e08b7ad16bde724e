"""Per group: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore.common.noise_error import DEFAULT_DELTA
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import DEFAULT_SELECTION_SHARE, Objective, PerGroupParameters, Statistic
from dpcore.per_group.selection_rules import SelectionRule
from pages.shared.base.question import (
    HIGHEST,
    LOWEST,
    NOISE,
    SHARED_DELTA,
    Facet,
    Field,
    From,
    Question,
    public,
)
from pages.shared.base.round_numbers import rounded_out


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the range of public values, for a mean; of others it is asked for. What a person entered stays.

    A release proposes nothing.
    """
    if data.release is not None:
        return {}
    if (now["lower"], now["upper"]) not in (now["proposed"] or (None, None), (None, None)):
        return {}
    if data.pairs is None or data.pairs.value_range is None or data.is_private:
        return {"lower": None, "upper": None}
    proposed = rounded_out(*data.pairs.value_range)
    return {"lower": proposed[0], "upper": proposed[1], "proposed": proposed}


QUESTION = Question(
    name="per_group",
    title="Per group",
    icon=":material/table_rows:",
    url_path="per-group",
    group="Choose a bound",
    lead="You release a number per group. **To how many groups may one user add, and how much to each?**",
    step="per group",
    sentence="I release counts, sums or means per group: to how many groups may one user add, and how much in each?",
    release="A count, sum or mean per group (GROUP BY)",
    answers_from=(Facet.GROUPS,),
    parameters=PerGroupParameters,
    own=("own_groups", "own_amount"),
    fields={
        # Every release says what it is.
        "statistic": public(
            "Released",
            "For every group: its rows, its distinct users, or the sum or mean of the value column. A sum of a "
            "column with negative values is a signed sum. A mean needs a public range of a row's value, from what the "
            "quantity is.",
            report_label="Released per group",
            options={
                Statistic.ROWS: "Rows",
                Statistic.USERS: "Users",
                Statistic.SUM: "Sum",
                Statistic.SIGNED_SUM: "Signed sum",
                Statistic.MEAN: "Mean",
            },
            as_list=True,
            width=126,
        ),
        # Which groups there are should be public, but whoever copies the number that the data hold reads it off them.
        "num_groups": Field(
            "Groups on the list",
            "All groups that are released, those without rows included. Public: from a list of your own.",
            renewed=True,
            report_label="Groups on the public list",
            placeholder="as in the data",
            width=170,
        ),
        "selection": public(
            "Groups",
            "From a *public list*, or *selected privately* by how many users they have: a group is released only "
            "if that does not tell of any one user. Libraries offer three rules; the truncated geometric one keeps "
            "most groups.",
            report_label="Groups that are released",
            options={
                SelectionRule.PUBLIC_LIST: "Public list",
                SelectionRule.TRUNCATED_GEOMETRIC: "Private, geometric",
                SelectionRule.LAPLACE: "Private, Laplace",
                SelectionRule.GAUSSIAN: "Private, Gaussian",
            },
            as_list=True,
            width=170,
        ),
        "objective": public(
            "Error to minimise",
            "t is a group's true value. *Typical* weighs all groups alike and large errors most (root mean "
            "square); *mean* is the mean of the groups' errors, as in PipelineDP's tuner; *relative* divides each by "
            "max(t, floor); *large groups* looks only at groups with t of at least the floor.",
            report_label="Error that is minimised",
            options={
                Objective.ROOT_MEAN_SQUARE: "Typical (RMS)",
                Objective.MEAN_RMSE: "Mean over groups",
                Objective.RELATIVE_ROOT_MEAN_SQUARE: "Relative (RMS)",
                Objective.MEAN_RELATIVE: "Relative, mean",
                Objective.LARGE_GROUPS: "Large groups",
            },
            as_list=True,
            width=160,
        ),
        "floor": Field(
            "Floor",
            "Least size that an error is divided by, or least size of a large group (of means, in rows). Public.",
            name="the floor",
            initial=10.0,
            width=120,
        ),
        # Five fields, the button and their gaps fill the line.
        "lower": replace(LOWEST, label="Lowest L", width=86),
        "upper": replace(HIGHEST, label="Highest U", width=86),
        "noise": NOISE,
        "delta": SHARED_DELTA,
        "neighbours": public(
            "Neighbouring data",
            "Add or remove one user, as libraries do, or replace one by another, which needs more noise.",
            options={
                Neighbours.ADD_OR_REMOVE_USER: "Add or remove a user",
                Neighbours.REPLACE_USER: "Replace a user",
            },
        ),
        "selection_share": public(
            "ε for selecting groups",
            "Share of ε; the rest is for the noise. Libraries split evenly.",
            name="the selection's share of ε",
            report_label="Share of ε for selecting groups",
            initial=DEFAULT_SELECTION_SHARE,
            step=0.05,
            width=180,
        ),
        "selection_delta": public(
            "δ for selecting groups",
            "Besides the δ of Gaussian noise: both add up.",
            name="the selection's δ",
            initial=DEFAULT_DELTA,
            width=180,
        ),
        "own_groups": Field(
            "Own bound, groups",
            "Groups per user, in the pair that you use today.",
            renewed=True,
            placeholder="optional",
            width=160,
        ),
        "own_amount": Field(
            "Own bound, in each",
            "Rows, or amount, per user and group in that pair.",
            renewed=True,
            placeholder="optional",
            width=160,
        ),
    },
    also=From.PUBLIC.each("proposed", "tabs") | From.DATA.each("job", "job_earlier"),
    propose=propose,
    proposed=("lower", "upper"),
)
