"""Factorisation: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore.dataset import Dataset
from dpcore.factorisation.parameters import (
    MAX_EPSILONS,
    MAX_REPEATS,
    Algorithm,
    FactorisationParameters,
    RatingSource,
)
from pages.shared.base.question import DELTA, Facet, Field, From, Question, public, range_end
from pages.shared.data import item_list

GENERATOR = ("num_users", "num_items", "ratings_per_user", "rank", "data_seed")
"""Fields that only generated ratings use."""
DESCENT = ("steps", "gradient_bound")
"""Fields that only gradient steps use."""
RANGE = ("lowest", "highest")
"""Fields that only ratings of one's own use."""


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """The ratings of the data where they hold some; otherwise generated ones.

    The range of public ratings is read off them. That of private ones must come from what a rating is.
    """
    pairs = data.pairs
    if pairs is None or pairs.value_range is None:
        return {"source": RatingSource.GENERATED} if now["source"] in (None, RatingSource.DATA) else {}
    lowest, highest = (None, None) if data.is_private else pairs.value_range
    return {"source": RatingSource.DATA, "lowest": lowest, "highest": highest}


QUESTION = Question(
    name="factorisation",
    title="Factorisation",
    icon=":material/grid_on:",
    url_path="factorisation",
    group="Models",
    lead="You learn a recommender from ratings, with privacy for each user. "
    "**Which items get a user's budget, and is it worth it?**",
    sentence="I learn a recommender from ratings: which items should get a user's privacy budget, and is it worth it?",
    release="A recommender from ratings",
    answers_from=(Facet.GROUPS,),
    parameters=FactorisationParameters,
    fields={
        "delta": replace(DELTA, width=None),
        "source": public(
            "Ratings",
            "Your data need a column of items and a column of ratings, chosen in *Your data*.",
            options={RatingSource.DATA: "Your data", RatingSource.GENERATED: "Generated"},
        ),
        # Whoever generates ratings may make them like the data.
        "num_users": Field(
            "Users",
            "The number of users. The default is about the size of MovieLens 1M.",
            name="The number of users",
            report_label="Users generated",
            step=1000,
        ),
        "num_items": Field(
            "Items",
            "The number of items; their popularity falls as a power of their rank.",
            name="The number of items",
            report_label="Items generated",
            step=100,
        ),
        "ratings_per_user": Field(
            "Ratings per user",
            "The average number of ratings per user.",
            name="The number of ratings per user",
            report_label="Ratings per user, on average",
        ),
        "rank": public("Planted rank", "In how many ways tastes differ.", name="The planted rank"),
        "data_seed": public(
            "Seed of the ratings", "The same seed draws the same ratings.", name="The seed of the ratings"
        ),
        "lowest": range_end(
            "Lowest rating",
            "Public: what the lowest rating is by design. Lower ones are raised to it.",
            name="The lowest rating",
            width=180,
        ),
        "highest": range_end(
            "Highest rating",
            "Public: what the highest rating is by design. Higher ones are lowered to it.",
            name="The highest rating",
            width=180,
        ),
        "algorithm": public(
            "Algorithm",
            "Least squares from noisy sums (DPALS), or noisy gradient steps with each user's gradient clipped "
            "(DPSGD).",
            options={Algorithm.STATISTICS: "Least squares", Algorithm.DESCENT: "Gradient steps"},
        ),
        "steps": public(
            "Steps per sweep", "Each step is a release and costs budget.", name="The number of steps"
        ),
        "gradient_bound": Field(
            "Gradient bound Γ",
            "In units of the ratings: where a user's residual is larger, their gradient is clipped.",
            name="The gradient bound",
        ),
        "max_items": Field(
            "Items per user, k",
            "A user's squared weights sum to at most k. Uniform and tail sampling keep k ratings of weight 1.",
            name="The number of items per user",
            step=10,
            width=150,
        ),
        "exponent": Field(
            "Favour rare items, μ",
            "Adaptive weights: an item with noisy count n gets weight $n^{-\\mu}$. The paper does best with μ "
            "between 1/4 and 1/2.",
            report_label="Exponent μ of adaptive weights",
            slider=(0.0, 1.0, 0.05),
            format="%.3g",
            width=180,
        ),
        "count_share": public(
            "Share of the budget for counts",
            "The cost of noisy counts per item, which tail and adaptive weights need. The paper: 12 %, 14 % and 20 % "
            "at ε = 1, 5 and 20.",
            name="The share for counts",
        ),
        "dimension": public(
            "Dimension d",
            "Coordinates of an item vector; the first is the item's own level.",
            name="The dimension",
        ),
        "sweeps": public(
            "Sweeps T",
            "How often item vectors are learned anew. Each sweep costs budget.",
            name="The number of sweeps",
        ),
        "user_ridge": Field(
            "Ridge of users",
            "λ of the users' own vectors, which never leave them.",
            name="The ridge of users",
        ),
        "ridge_to_noise": Field(
            "Ridge of items per noise",
            "λ of the items is 5 plus this many times the noise s, so that items that drown in noise fall back to "
            "the overall mean.",
            name="The ridge of items",
        ),
        "train_epsilons": public(
            "Also train at ε",
            f"One to {MAX_EPSILONS} numbers, separated by commas; the ε of the page is always trained.",
            report_label="Also trained at ε",
            max_length=60,
        ),
        "repeats": public(
            "Seeds",
            f"1 to {MAX_REPEATS}. Each has its own split and noise, which all models share; intervals need two.",
            name="The number of seeds",
        ),
        "train_seed": public(
            "Seed of the training",
            "The same seed gives the same splits and noise.",
            name="The seed of the training",
        ),
        "item": Field(
            "Item, by popularity", "1 is the item with the most ratings.", name="The item", width=180
        ),
        "chosen_from": Field(
            "Chosen from a rating of",
            "Ratings of at least this count as choices, and all others as none. The paper takes 4 of 5.",
            name="What counts as chosen",
            width=180,
        ),
        "unobserved": public(
            "Weight of what was not chosen, α₀",
            "How much a pair that was not chosen counts as a no, against 1 for one that was.",
            name="The weight of what was not chosen",
            width=250,
        ),
    },
    also=item_list.ENTRIES
    | From.PUBLIC.each("tabs", "measure", "paper_figure")
    | From.DATA.each("train_job", "large_job", "implicit_job", "earlier"),
    propose=propose,
    proposed=("source", "lowest", "highest"),
)
