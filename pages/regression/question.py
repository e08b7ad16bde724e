"""Regression: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.regression.parameters import RegressionParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="regression",
    title="Regression",
    icon=":material/linear_scale:",
    url_path="regression",
    group="Models",
    sentence="I release a linear model of private labels: how should the rows of heavy users be weighted?",
    release="A linear regression (private labels)",
    own_data=True,
    own_file="loaded",
    parameters=RegressionParameters,
    fields={
        "lower": Field(From.OWN_DATA),
        "upper": Field(From.OWN_DATA),
        "source": Field(From.OWN_DATA),
        "noise": Field(From.OWN_DATA),
        "noise_variance": Field(From.OWN_DATA),
        "num_rows": Field(From.OWN_DATA),
        "informative": Field(From.OWN_DATA),
        "uninformative": Field(From.OWN_DATA),
        "label_noise": Field(From.OWN_DATA),
        "exponent": Field(From.OWN_DATA),
        "seed": Field(From.OWN_DATA),
    },
    also={
        "generator_": From.OWN_DATA,
        "loaded": From.OWN_DATA,
        "file_": From.OWN_DATA,
        "round": From.OWN_DATA,
        "table": From.OWN_DATA,
        "problems": From.OWN_DATA,
        "role_": From.OWN_DATA,
        "reference_": From.OWN_DATA,
        "public": From.OWN_DATA,
        "proposed": From.OWN_DATA,
        "error": From.OWN_DATA,
        "tabs": From.OWN_DATA,
        "example": From.OWN_DATA,
        "weights_of": From.OWN_DATA,
        "solve": From.OWN_DATA,
        "caps": From.OWN_DATA,
        "steps": From.OWN_DATA,
        "over_epsilon": From.OWN_DATA,
        "over_rows": From.OWN_DATA,
        "over_exponent": From.OWN_DATA,
        "examples": From.OWN_DATA,
        "draws": From.OWN_DATA,
        "spent": From.OWN_DATA,
        "refused": From.OWN_DATA,
    },
)
