"""The gain of weights: the question, and its fields."""

from __future__ import annotations

from dpcore.gap_examples.parameters import GapParameters
from pages.shared.base.question import Facet, FieldOrigin, Question

QUESTION = Question(
    name="gap_examples",
    title="Weights vs. caps",
    icon=":material/trophy:",
    url_path="gap",
    navigation_group="The trade-off, live",
    lead_text="A bound drops rows of heavy users; smooth weights scale them down. **How much more variance does "
    "the bounded mean have?**",
    result_noun="Weights",
    question_sentence="How much better than the best bound can smooth weights be, on my data and on any?",
    answering_facets=(Facet.ROWS,),
    parameters_type=GapParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each("tabs"),
    symbols_by_phrase={
        "Smooth weights, v(h), and bounded rows, v′(h)": "v(h) and v′(h)",
        "bound": "h",
        "variance": "Var(β̃)",
        "Smooth weights, v(h) (claim 1)": "v(h)",
        "Bounded rows, v′(h) (claim 2)": "v′(h)",
        "Best bound": "arg min v′(h)",
        "Best weights": "h*",
        "4 min v (theorem 3)": "4 v(h*)",
    },
    replacements_by_former_name={"noise": "variance_source", "noise_variance": "value_variance"},
)
