"""Sum and count: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.total.parameters import TotalParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="total",
    title="Sum and count",
    icon=":material/add_circle:",
    url_path="sum-and-count",
    group="Choose a bound",
    sentence="I release a sum, a count, or counts per group: how much of each may one user add?",
    release="A sum or a count",
    parameters=TotalParameters,
    fields={
        "summed": Field(From.PUBLIC),
        "noise": Field(From.PUBLIC),
        "delta": Field(From.PUBLIC),
        "measure": Field(From.PUBLIC),
        "own_bound": Field(renewed=True),
        "lower": Field(From.VALUES),
        "upper": Field(From.VALUES),
        "num_groups": Field(renewed=True),
        "own_groups": Field(renewed=True),
        "own_share": Field(From.PUBLIC),
        "runs": Field(From.PUBLIC),
        "seed": Field(From.PUBLIC),
    },
    also={
        "tabs": From.PUBLIC,
        "signed_tabs": From.PUBLIC,
        "job": From.DATA,
    },
)
