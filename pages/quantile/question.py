"""Quantile: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting, choose_defaults
from pages.shared.base.question import (
    HIGHEST,
    LOWEST,
    NOT_FROM_DATA,
    Facet,
    Field,
    From,
    Question,
    of_values,
    public,
)
from pages.shared.base.round_numbers import rounded_out

BASE_FIELD = 174
"""Width in pixels of a field of the base distribution."""
_UNIT = f"In the values' unit. {NOT_FROM_DATA}"


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the range of public values, where the bound comes from, and whom ε protects; what the person
    chose stays.

    Of private values there is no range, for which the page asks, and the bound is taken from the counts, which are
    private too: one read off the values leaks. That it may be, or that counts are public, was said of other data, and
    is asked anew.
    """
    source: dict[str, Any] = {}
    for name, value in choose_defaults(data).items():
        if data.is_private or now[name] == (now[f"{name}_proposed"] or QUESTION.first(name)):
            source |= {name: value, f"{name}_proposed": value}
    if data.release is not None or (now["low"], now["high"]) not in (now["proposed"], (None, None)):
        return source
    low, high = None, None
    if data.values is not None and not data.is_private:
        low, high = rounded_out(float(data.values.values.min()), float(data.values.values.max()))
    return source | {"low": low, "high": high, "proposed": (low, high)}


QUESTION = Question(
    name="quantile",
    title="Quantile",
    icon=":material/align_horizontal_center:",
    url_path="quantile",
    group="Choose a bound",
    lead="You release a median or other quantiles, with ε-differential privacy for every user. **How many rows may one "
    "user count for?**",
    step="a quantile",
    sentence="I release a median or other quantiles: how should users' values be weighted, and how close do I get?",
    release="A quantile or median",
    answers_from=(Facet.VALUES,),
    parameters=QuantileParameters,
    own=("own_bound",),
    fields={
        # What is asked for, and by which method: every release says it.
        "quantiles": public(
            "Quantiles",
            "One, or up to five with commas between them: 0.25, 0.5, 0.75. 0.5 is the median. Several share ε "
            "evenly.",
            placeholder="0.5",
            width=88,
        ),
        "base": public(
            "Base distribution ν",
            "The distribution of the answer before the data are looked at. Choose it without looking at the "
            "values. An answer outside it is impossible; the more of it lies far from the quantile, the larger the "
            "error.",
            report_label="Base distribution",
            options={BaseKind.UNIFORM: "Uniform", BaseKind.NORMAL: "Normal", BaseKind.HISTOGRAM: "Histogram"},
        ),
        # The base's numbers should be public, but whoever sees the values may have read them off.
        # With more, Streamlit puts buttons into it that take the room of four digits.
        "low": replace(LOWEST, help=f"No answer lies below. {NOT_FROM_DATA}"),
        "high": replace(HIGHEST, help=f"No answer lies above. {NOT_FROM_DATA}"),
        "center": of_values(
            "Mean of ν", _UNIT, name="Mean of ν", report_label="Mean of the base", width=BASE_FIELD
        ),
        "spread": of_values(
            "Standard deviation of ν",
            _UNIT,
            name="Standard deviation of ν",
            report_label="Standard deviation of the base",
            width=BASE_FIELD,
        ),
        "edges": of_values(
            "Bin edges",
            "Ascending, with commas: one more than weights.",
            report_label="Edges of the base",
            width=BASE_FIELD,
        ),
        "masses": of_values(
            "Weights of the bins",
            "At least 0, with commas; they are scaled to sum to 1.",
            report_label="Masses of the base",
            initial="1, 1",
            width=BASE_FIELD,
        ),
        "weighting": public(
            "Rows of one user",
            "Smooth weights: all rows count, those of a user above the bound less. Bounded rows: at most so many per "
            "user, chosen at random. No bound: all rows count the same.",
            report_label="Weights",
            options={
                Weighting.SMOOTH: "Smooth weights",
                Weighting.CAP: "Bounded rows",
                Weighting.NONE: "No bound",
            },
        ),
        "bound_from": public(
            "Bound from",
            "Best for the values: least expected error on these values; it leaks unless they are public. From "
            "counts: best for the paper's bound, which uses only how many rows users have (public here) and α, "
            "β, γ from the tab *The paper's bound*.",
            report_label="Bound taken from",
            options={BoundFrom.VALUES: "Best for the values", BoundFrom.COUNTS: "From counts"},
        ),
        "neighbours": public(
            "What ε protects",
            "One user's values: how many rows everybody has is public. A user: one user more or less, with all their "
            "rows; how many rows they have is private, too.",
            report_label="What epsilon protects",
            options={
                Neighbours.REPLACE_VALUES: "One user's values",
                Neighbours.ADD_OR_REMOVE_USER: "A user and all their rows",
            },
        ),
        "own_bound": Field(
            "Compare your own bound",
            "Optional: a bound that you use today, in rows per user; whole for bounded rows.",
            renewed=True,
            report_label="Your own bound, rows per user",
            placeholder="rows",
            width=180,
        ),
        # The three are chosen together, and the tab on the base says what beta is on these values.
        "alpha": Field("α, distance in rank", "From 0 to 0.5.", name="α"),
        "beta": Field(
            "β, mass of ν near q",
            "Above 0, at most 1. The tab *Base distribution* says what it is here.",
            name="β",
        ),
        "gamma": Field(
            "γ, half the risk",
            "Above 0, below 0.5. The bound fails with probability at most 2γ.",
            name="γ",
        ),
        "population": public(
            "Distance to the population's quantile",
            "Adds the error of the rows as a sample of their population: claim 5, applied once more.",
        ),
    },
    also=From.PUBLIC.each("proposed", "bound_from_proposed", "neighbours_proposed", "tabs")
    | From.DATA.each("search_job", "search_job_earlier", "poorer", "poorer_job", "draws", "draws_job"),
    propose=propose,
    proposed=("bound_from", "neighbours", "low", "high"),
)
