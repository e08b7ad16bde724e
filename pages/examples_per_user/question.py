"""Examples per user: what it asks, and what a person enters."""

from __future__ import annotations

from dataclasses import replace

from dpcore.examples_per_user import ExamplesParameters, Sampling
from pages.shared.base.question import DELTA, Facet, Field, From, Question, public

# Batch, steps and δ are constants of the training, which are fixed before the data are seen.
QUESTION = Question(
    name="examples_per_user",
    title="Examples per user",
    icon=":material/group_add:",
    url_path="examples-per-user",
    group="Models",
    lead="You train or fine-tune a model by DP-SGD that protects users. **How many examples of one user may it see?**",
    sentence="I train a model by DP-SGD that protects users: how many examples of one user may it see?",
    release="A model trained by DP-SGD",
    answers_from=(Facet.ROWS,),
    parameters=ExamplesParameters,
    own=("own_bound",),
    fields={
        "delta": replace(DELTA, width=100),
        "batch": public(
            "Batch B",
            "How many examples a step is expected to see. A public constant: it is not computed from the data.",
            sentence="The expected batch B",
            whole=True,
            width=100,
        ),
        "steps": public("Steps T", sentence="The number of steps T", width=90),
        "way": public(
            "Drawn in a step",
            "Examples: each by a coin of its own, each gradient clipped. Users: each by a coin, and the mean of a "
            "user's gradients clipped.",
            names={Sampling.BOTH: "The better", Sampling.EXAMPLES: "Examples", Sampling.USERS: "Users"},
        ),
        "dimension": public(
            "Parameters d",
            "How many numbers are trained. The more there are, the more noise decides.",
            sentence="The number of parameters d",
        ),
        "alike": public(
            "How alike a user's examples are, r",
            "The share of an example's squared gradient that all examples of its user have in common: 0 diverse, 1 "
            "alike. Guess it, or take it from public data: never read it off private data.",
            sentence="How alike a user's examples are",
            asked="How alike a user's examples are, r",
            step=0.1,
        ),
        "own_bound": Field(
            "Compare with", renewed=True, asked="Own bound", whole=True, placeholder="your own bound"
        ),
    },
    also=From.DATA.each("exact_job", "exact_job_earlier", "owners_job", "owners_bound")
    | From.PUBLIC.each("tabs"),
)
