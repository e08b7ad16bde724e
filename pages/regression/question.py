"""Linear regression: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.common.parameters import SOURCE
from dpcore.regression.parameters import RegressionParameters, SizeLaw
from pages.shared.base.question import FieldOrigin, Question
from pages.shared.base.upload_entries import TABLE_ORIGINS

# All settings belong to data that this page has for itself, and none is read off the session's data. So new data in
# the session renew nothing, and a DP histogram of them sets nothing aside. The page proposes the range of labels when
# it reads its own table: `inputs`.

QUESTION = Question(
    name="regression",
    title="Linear regression",
    icon=":material/linear_scale:",
    url_path="regression",
    navigation_group="Models",
    lead_text="You release a linear model of private labels. **Should users with many rows be bounded, or weighted?**",
    result_noun="Weights",
    question_sentence="I release a linear model of private labels: how should the rows of heavy users be weighted?",
    release_phrase="A linear regression (private labels)",
    has_own_data=True,
    own_file_entry_name="loaded",
    parameters_type=RegressionParameters,
    origins_by_entry=TABLE_ORIGINS
    | FieldOrigin.OWN_DATA.each("proposed", "error", "tabs", "paper_figure")
    | FieldOrigin.OWN_DATA.each("solve", "caps", "cvxpy", "over_epsilon")
    | FieldOrigin.OWN_DATA.each("draws", "spent", "refused"),
    replacements_by_former_name={
        "noise": "variance_source",
        "noise_variance": "residual_variance",
        "num_rows": {"size_law": SizeLaw.LONG_TAIL},
    },
)
GENERATOR_FIELDS = tuple(name for name in QUESTION.list_fields(SOURCE) if name != "source")
"""The settings of generated data, in the order of the page."""
