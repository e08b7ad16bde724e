"""The gain of weights: the question, and its fields."""

from __future__ import annotations

from dpcore.gap_examples.parameters import GapParameters
from pages.shared.base.question import Facet, FieldOrigin, Question

QUESTION = Question(
    name="gap_examples",
    title="Weights vs. caps",
    icon=":material/trophy:",
    url_path="gap",
    group="The trade-off, live",
    lead="A bound drops rows of heavy users, weights keep them: **how much more variance has the bounded "
    "mean?**",
    result_noun="Weights",
    sentence="How much better than the best bound can smooth weights be, on my data and on any?",
    answers_from=(Facet.ROWS,),
    parameters=GapParameters,
    other_origins=FieldOrigin.PUBLIC.each("tabs"),
    symbols={
        "Smooth weights, v(h), and bounded rows, v′(h)": "v(h) and v′(h)",
        "bound": "h",
        "variance": "Var(β̃)",
        "v(h) smooth weights (claim 1)": "v(h)",
        "v′(h) bounded rows (claim 2)": "v′(h)",
        "Best bound": "arg min v′(h)",
        "Best weights": "h*",
        "4 min v (theorem 3)": "4 v(h*)",
    },
    former_fields={"noise": "variance_source", "noise_variance": "value_variance"},
)
