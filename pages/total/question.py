"""Sum and count: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore.common.noise_error import Measure
from dpcore.dataset import Contribution, Dataset
from dpcore.total.parameters import Summed, TotalParameters
from pages.shared.base.question import NOISE, SHARED_DELTA, Facet, Field, From, Question, of_values, public


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """Where the contributions are a column's total, that is what is added up; what the person chose stays."""
    if now["summed"] is not (now["summed_proposed"] or Summed.ROWS):
        return {}
    summed = Summed.VALUES if data.contribution is Contribution.TOTAL else Summed.ROWS
    return {"summed": summed, "summed_proposed": summed}


_RANGE = "A total outside [L, U] counts as the nearer end. Leave both empty for a proposal."

QUESTION = Question(
    name="total",
    title="Sum and count",
    icon=":material/add_circle:",
    url_path="sum-and-count",
    group="Choose a bound",
    lead="You release how many rows there are, or what they add up to, with differential privacy for every user. "
    "**How much may one user add?**",
    step="a sum or count",
    sentence="I release a sum or a count: how much may one user add?",
    release="A sum or a count",
    answers_from=(Facet.ROWS, Facet.VALUES),
    parameters=TotalParameters,
    own=("own_bound",),
    fields={
        # Which of two quantities is released; every release says it.
        "summed": public(
            "What is summed",
            "The number of rows, or the values of the value column.",
            report_label="What is added up",
            options={Summed.ROWS: "Rows", Summed.VALUES: "Values"},
        ),
        "mechanism": replace(NOISE, label="Mechanism"),
        "delta": SHARED_DELTA,
        "measure": public(
            "Error to minimise",
            "Expected: the mean of |release − truth|, exactly. RMSE: root mean squared error, exactly. "
            "Bound: bias plus mean noise, as in the paper; it is never smaller than the expected error.",
            report_label="Error that is minimised",
            options={Measure.ABSOLUTE: "Expected", Measure.RMSE: "RMSE", Measure.BOUND: "Bound"},
        ),
        # In the unit of a column that other data may not have.
        "own_bound": Field(
            "Compare your own bound",
            "Optional: a bound you use today, in rows per user or in the unit of the column.",
            renewed=True,
            report_label="Your own bound",
            placeholder="optional",
            width=180,
        ),
        # It bounds totals of a column, so it can have been read off only where there were values.
        "lower": of_values(
            "Lowest total L", _RANGE, report_label="Lowest total, L", placeholder="proposed", width=150
        ),
        "upper": of_values(
            "Highest total U", _RANGE, report_label="Highest total, U", placeholder="proposed", width=150
        ),
        "highest_total": public(
            "Highest total of one user",
            "Public: from what the quantity is. No bound above it is drawn. For the private draw alone.",
            renewed=True,
            report_label="Highest total, for a private draw",
            width=230,
        ),
        # Whoever moves it until its curve touches the best one has read it off the data.
        "own_share": Field(
            "Your own quantile",
            "The bound is this quantile of the users' totals: 0.99 for the value that 99 % of users do not exceed.",
            name="your own quantile",
        ),
        "runs": public("Runs of each point", name="the number of runs"),
        "seed": public("Seed", name="the seed"),
    },
    also=From.PUBLIC.each("tabs", "signed_tabs", "summed_proposed") | From.DATA.each("job"),
    propose=propose,
    proposed=("summed",),
    formerly={"noise": "mechanism"},
)
