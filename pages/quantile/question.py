"""Quantile: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.quantile.parameters import QuantileParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="quantile",
    title="Quantile",
    icon=":material/align_horizontal_center:",
    url_path="quantile",
    group="Choose a bound",
    sentence="I release a median or other quantiles: how should users' values be weighted, and how close do I get?",
    release="A quantile or median",
    parameters=QuantileParameters,
    fields={
        "quantiles": Field(From.PUBLIC),
        "base": Field(From.PUBLIC),
        "low": Field(From.VALUES),
        "high": Field(From.VALUES),
        "center": Field(From.VALUES),
        "spread": Field(From.VALUES),
        "edges": Field(From.VALUES),
        "masses": Field(From.VALUES),
        "weighting": Field(From.PUBLIC),
        "bound_from": Field(From.PUBLIC),
        "own_bound": Field(),
        "alpha": Field(From.DATA),
        "beta": Field(From.DATA),
        "gamma": Field(From.DATA),
        "population": Field(From.PUBLIC),
    },
    also={
        "proposed": From.DATA,
        "tabs": From.PUBLIC,
        "search_job": From.DATA,
        "poorer": From.DATA,
        "poorer_job": From.DATA,
        "draws": From.DATA,
        "draws_job": From.DATA,
    },
)
