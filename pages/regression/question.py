"""Regression: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.regression.parameters import (
    MAX_GENERATED_ROWS,
    MAX_PART,
    DataSource,
    RegressionParameters,
    ResidualVarianceSource,
)
from pages.shared import table_upload
from pages.shared.question import Field, From, Question

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
            From.OWN_DATA,
            label="Lowest label L",
            width=150,
            help=f"Labels below are raised to it. {BOUNDS}",
            sentence="Lowest label L",
            asked="Lowest label, L",
        ),
        "upper": Field(
            From.OWN_DATA,
            label="Highest label U",
            width=150,
            help=f"Labels above are lowered to it. {BOUNDS}",
            sentence="Highest label U",
            asked="Highest label, U",
        ),
        "source": Field(
            From.OWN_DATA,
            label="Data of this page",
            asked="Data",
            names={DataSource.GENERATED: "Generate", DataSource.UPLOAD: "Upload a table"},
        ),
        "variance_source": Field(
            From.OWN_DATA,
            label="Variance of a label around the model, σ²",
            help="From labels: estimated by ordinary least squares, and as private as the labels. Entered: a value "
            "you know.",
            asked="Variance of a label around the model",
            names={ResidualVarianceSource.ORDINARY: "From labels", ResidualVarianceSource.ENTERED: "Entered"},
        ),
        "residual_variance": Field(
            From.OWN_DATA, label="σ²", sentence="Variance σ²", asked="Variance entered"
        ),
        "num_rows": Field(
            From.OWN_DATA,
            label="Rows n",
            help=f"20 to {MAX_GENERATED_ROWS:,}; the paper uses 600 to 3,000.",
            sentence="Rows n",
            asked="Rows generated",
            whole=True,
        ),
        "exponent": Field(
            From.OWN_DATA,
            label="Exponent α of rows per user",
            help="$u_i \\propto i^{-\\alpha}$ users have $i$ rows. Smaller is more uneven; the paper uses 1 < α ≤ 2.",
            sentence="Exponent α of rows per user",
            asked="Exponent of rows per user",
        ),
        "informative": Field(
            From.OWN_DATA,
            label="Features with a coefficient",
            help=f"1 to {MAX_PART}; the paper uses 5.",
            sentence="Features with a coefficient",
            whole=True,
        ),
        "uninformative": Field(
            From.OWN_DATA,
            label="Features without",
            help=f"0 to {MAX_PART}; the paper uses 5.",
            sentence="Features without",
            whole=True,
        ),
        "label_noise": Field(
            From.OWN_DATA,
            label="Noise of the labels",
            help="Its standard deviation; the paper uses 20.",
            sentence="Noise of the labels",
        ),
        "seed": Field(
            From.OWN_DATA,
            label="Seed",
            help="The same seed gives the same data.",
            sentence="Seed",
            whole=True,
        ),
    },
    also=table_upload.ENTRIES
    | {
        "generator_": From.OWN_DATA,
        "proposed": From.OWN_DATA,
        "error": From.OWN_DATA,
        "tabs": From.OWN_DATA,
        "example": From.OWN_DATA,
        "weights_of": From.OWN_DATA,
        "solve": From.OWN_DATA,
        "caps": From.OWN_DATA,
        "so_far": From.OWN_DATA,
        "view": From.OWN_DATA,
        "over_epsilon": From.OWN_DATA,
        "over_rows": From.OWN_DATA,
        "over_exponent": From.OWN_DATA,
        "examples": From.OWN_DATA,
        "draws": From.OWN_DATA,
        "spent": From.OWN_DATA,
        "refused": From.OWN_DATA,
    },
)
