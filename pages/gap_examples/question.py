"""What weights gain: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.gap_examples.parameters import (
    HEAVY_SIZES,
    LIGHT_SIZES,
    NOISE_PER_USER_RANGE,
    NUM_USERS,
    REGRESSION_G,
    THEOREM_G,
    GapParameters,
)
from dpcore.mean import VarianceSource
from pages.shared.base.question import Field, From, Question, of_values, public

QUESTION = Question(
    name="gap_examples",
    title="What weights gain",
    icon=":material/trophy:",
    url_path="gap",
    group="Understand",
    lead="A bound drops rows of heavy users, weights keep them: **how much more variance has the bounded "
    "mean?**",
    sentence="How much better than the best bound can smooth weights be, on my data and on any?",
    parameters=GapParameters,
    fields={
        "variance_source": public(
            "Variance of a value, σ²",
            "How much the value of one row scatters. Values lie in [0, 1] here (B = 1), so the worst case is "
            "1/4. Divide your σ² by B² to enter it.",
            report_label="Variance of one row's value, values in [0, 1]",
            options={VarianceSource.WORST_CASE: "Worst case", VarianceSource.ENTERED: "Entered"},
        ),
        "value_variance": of_values(
            "σ², values in [0, 1]", name="σ²", report_label="Variance entered", initial=0.1, width=160
        ),
        "g": public("g: g users with 1 row, g users with g rows", stops=THEOREM_G),
        # Whoever looks at private data may set the made-up users beside them to what these have.
        "light_users": Field(
            "Light users, p (%)", "The others, q = 1 − p, are heavy.", slider=(1, NUM_USERS - 1, 1)
        ),
        "heavy_size": Field("Rows of a heavy user, R times a light one's", stops=HEAVY_SIZES),
        "light_size": Field("Rows of a light user, s", stops=LIGHT_SIZES),
        "noise_per_user": Field(
            "Noise per user, t = ρ / m",
            "t = 2 (B/ε)² / (σ² m), m users in all: how noisy the release is for its number of users.",
            slider=(*NOISE_PER_USER_RANGE, 0.01),
        ),
        "example": public("Instance", options={1: "Example 1: far points", 3: "Example 3: all of length 1"}),
        "regression_g": public("g", stops=REGRESSION_G),
    },
    also=From.PUBLIC.each("tabs"),
    formerly={"noise": "variance_source", "noise_variance": "value_variance"},
)
