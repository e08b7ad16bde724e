"""Bias curves over τ₀: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.learning import LearningParameters
from pages.shared.base.question import Facet, FieldOrigin, Question

QUESTION = Question(
    name="learning",
    title="Bias curves over τ₀",
    icon=":material/model_training:",
    url_path="learning",
    navigation_group="The trade-off, live",
    lead_text="**How many rows of one user may train a private model?**",
    chooses_bound=True,
    question_sentence="I train a model with a private learner: how many rows of one user may it see?",
    release_phrase="A model (trained with a private learner)",
    answering_facets=(Facet.ROWS,),
    parameters_type=LearningParameters,
    symbols_by_phrase={
        "τ₀, the bound as a share of all rows": "τ₀ = τ / n",
        "Bound (rows per user)": "τ",
        "excess risk, at most": "L(h<sub>priv</sub>) − inf L(h) ≤",
        "Excess risk": "Theorem 1",
        "Bias": "2 × bias ≤",
        "Sampling": "√(d log(n/δ) / n<sub>τ</sub>)",
        "Noise": "F(τ/n<sub>τ</sub>, 1/ε, 3/δ)",
        "Prop. 1: share kept": "2√(½ log(n/n<sub>τ</sub>))",
        "Prop. 1: Var(H), share kept": "2√(2 Var(H) n/n<sub>τ</sub>)",
        "Prop. 1: τ₀": "2√(½ log(1/τ₀))",
        "Prop. 1: Var(H), τ₀": "2√(2 Var(H)/τ₀)",
        "Corollary 1": "2√(1 − n<sub>τ</sub>/n)",
    },
    origins_by_entry=FieldOrigin.DATA.each("draws_job", "cost_job")
    | FieldOrigin.PUBLIC.each("tabs", "paper_figure"),
)
