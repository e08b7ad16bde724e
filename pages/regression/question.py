"""Regression: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.regression.parameters import (
    MAX_GENERATED_ROWS,
    MAX_PART,
    DataSource,
    RegressionParameters,
    ResidualVarianceSource,
)
from pages.shared.base.question import Field, From, Question
from pages.shared.data import table_upload

GENERATOR_FIELDS = ("num_rows", "exponent", "informative", "uninformative", "label_noise", "seed")
"""What data are generated from, in the order of the page."""
BOUNDS = "Take it from what the quantity is, not from the data. B = U − L sets the noise."

# Everything belongs to data that this page has for itself, and nothing here is read off the session's data. So new
# data in the session renew nothing, and a private copy of them sets nothing aside. Label bounds are proposed by the
# page when it reads its own table: `inputs`.

QUESTION = Question(
    name="regression",
    title="Regression",
    icon=":material/linear_scale:",
    url_path="regression",
    group="Models",
    lead="You release a linear model of **private labels** on public features: **how much should each row weigh?**",
    sentence="I release a linear model of private labels: how should the rows of heavy users be weighted?",
    release="A linear regression (private labels)",
    own_data=True,
    own_file="loaded",
    parameters=RegressionParameters,
    fields={
        "lower": Field(
            "Lowest label L",
            f"Labels below are raised to it. {BOUNDS}",
            width=150,
            report_label="Lowest label, L",
            renewed=True,
        ),
        "upper": Field(
            "Highest label U",
            f"Labels above are lowered to it. {BOUNDS}",
            width=150,
            report_label="Highest label, U",
            renewed=True,
        ),
        "source": Field(
            "Data of this page",
            report_label="Data",
            options={DataSource.GENERATED: "Generate", DataSource.UPLOAD: "Upload a table"},
        ),
        "variance_source": Field(
            "Variance of a label around the model, σ²",
            "From labels: estimated by ordinary least squares, and as private as the labels. Entered: a value "
            "you know.",
            report_label="Variance of a label around the model",
            options={
                ResidualVarianceSource.ORDINARY: "From labels",
                ResidualVarianceSource.ENTERED: "Entered",
            },
        ),
        "residual_variance": Field("σ²", name="Variance σ²", report_label="Variance entered", renewed=True),
        "num_rows": Field(
            "Rows n",
            f"20 to {MAX_GENERATED_ROWS:,}; the paper uses 600 to 3,000.",
            report_label="Rows generated",
        ),
        "exponent": Field(
            "Exponent α of rows per user",
            "$u_i \\propto i^{-\\alpha}$ users have $i$ rows. Smaller is more uneven; the paper uses 1 < α ≤ 2.",
            report_label="Exponent of rows per user",
        ),
        "informative": Field("Features with a coefficient", f"1 to {MAX_PART}; the paper uses 5."),
        "uninformative": Field("Features without", f"0 to {MAX_PART}; the paper uses 5."),
        "label_noise": Field("Noise of the labels", "Its standard deviation; the paper uses 20."),
        "seed": Field("Seed", "The same seed gives the same data."),
    },
    also=table_upload.ENTRIES
    | From.OWN_DATA.each(
        "generator_",
        "proposed",
        "error",
        "tabs",
        "paper_figure",
        "example",
        "weights_of",
        "solve",
        "cvxpy",
        "caps",
        "steps",
        "shown",
        "over_epsilon",
        "over_rows",
        "over_exponent",
        "examples",
        "draws",
        "spent",
        "refused",
    ),
    formerly={"noise": "variance_source", "noise_variance": "residual_variance"},
)
