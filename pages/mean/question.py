"""Mean: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.mean import Counts, Likeness, MeanParameters, Target, VarianceSource, choose_defaults
from pages.shared.base.question import Facet, Field, From, Question, of_values, public, range_end
from pages.shared.base.round_numbers import DEFAULT_VALUE_BOUNDS, rounded_out


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """Value bounds for public values, and the settings that follow from the data, as `dpcore.mean.usual` has them.

    What the person chose stays: settings that differ from those proposed, and bounds that a link brought; but that the
    counts of private data are public, or that their values may be read, was said of other data, and is asked anew.
    A release proposes no bounds.
    """
    found: dict[str, Any] = {}
    for name, value in choose_defaults(data).items():
        asked_anew = data.is_private and name != "target"
        if asked_anew or now[name] == now[f"{name}_proposed"]:
            found |= {name: value, f"{name}_proposed": value}
    if data.values is None and data.release is not None:
        if now["variance_source"] is VarianceSource.FROM_VALUES:
            found["variance_source"] = VarianceSource.WORST_CASE
        if now["likeness"] is Likeness.FROM_VALUES:
            found["likeness"] = Likeness.ENTERED
    if data.release is not None:
        return found
    ours = now["proposed"] or DEFAULT_VALUE_BOUNDS
    if (now["lower"], now["upper"]) not in (ours, (None, None)):
        return found
    proposed: tuple[float | None, float | None] = DEFAULT_VALUE_BOUNDS
    if data.is_private:
        # The page asks: one that nobody chose would clamp values without a word, and stand in programs.
        proposed = (None, None)
    elif data.values is not None:
        proposed = rounded_out(float(data.values.values.min()), float(data.values.values.max()))
    return found | {"lower": proposed[0], "upper": proposed[1], "proposed": proposed}


ASSUMED = {
    "target": public(
        "The mean of",
        "This table: the error is how far a release lies from the mean of the rows at hand. People like these: "
        "from the mean of the population that users and their rows are drawn from.",
        asked="The mean of",
        names={Target.TABLE: "This table", Target.POPULATION: "People like these"},
        shared="target",
    ),
    "variance_source": public(
        "What is known of the values",
        "How much they scatter, σ². The worst case is B²/4: half of them at L, half at U. For the mean of this "
        "table, From values computes the error on the values themselves; of private values that is a private look.",
        asked="What is known of the values",
        names={
            VarianceSource.WORST_CASE: "Worst case",
            VarianceSource.FROM_VALUES: "From values",
            VarianceSource.ENTERED: "Entered",
        },
        shared="variance_source",
    ),
    "likeness": public(
        "Rows of one user are alike",
        "The share ρ of the variance that lies between users. Not at all: rows are independent, ρ = 0, as in the "
        "paper. Assumed: you say the share. From values: read off them; of private values that is a private look.",
        asked="How alike rows of one user are",
        names={
            Likeness.INDEPENDENT: "Not at all",
            Likeness.ENTERED: "Assumed",
            Likeness.FROM_VALUES: "From values",
        },
        shared="likeness",
    ),
    "user_share": Field(
        "Share ρ of the variance between users",
        "An assumption. 0: rows of one user are as different as any; 1: all rows of a user are the same. Purchases "
        "had 0.3 to 0.5, ratings and waiting times 0 to 0.2.",
        asked="Share of the variance between users, assumed",
        slider=(0.0, 1.0, 0.05),
        width=300,
        shared="user_share",
    ),
    "value_variance": of_values(
        "σ² (unit squared)",
        "In the values' unit, squared.",
        sentence="σ²",
        asked="Variance entered",
        first=0.1,
        width=170,
        shared="value_variance",
    ),
}
"""What a mean takes its values and its users to be: of this page, and of a mean among the lines of *Plan*."""

QUESTION = Question(
    name="mean",
    title="Mean",
    icon=":material/functions:",
    url_path="mean",
    group="Choose a bound",
    lead="You release the mean of a column, with ε-differential privacy for every user. **How many rows may one user "
    "contribute?**",
    step="a mean",
    sentence="I release a mean: how many rows may one user contribute, or how should rows be weighted?",
    release="A mean (an average over rows)",
    answers_from=(Facet.ROWS, Facet.VALUES),
    parameters=MeanParameters,
    own=("own_cap",),
    fields={
        "lower": range_end(
            "Lowest value L",
            "Values below are raised to it. Public: from what the quantity is, not from data.",
            width=146,
            asked="Lowest value, L",
            first=0.0,
            shared="lower",
        ),
        "upper": range_end(
            "Highest value U",
            "Values above are lowered to it. B = U − L sets how much noise is needed.",
            width=146,
            asked="Highest value, U",
            first=1.0,
            shared="upper",
        ),
        **ASSUMED,
        "own_cap": Field(
            "Compare your own bound",
            "Optional: a bound you use today, in rows per user.",
            renewed=True,
            asked="Your own bound, rows per user",
            placeholder="rows",
            width=180,
        ),
        "counts": public(
            "Contribution counts are",
            "Public: everybody may know how many rows each user has, only values are protected, and neighbours "
            "differ in one user's values. Private too: whether a user is there at all is protected, and neighbours "
            "add or remove one user. The whole page follows.",
            names={Counts.PUBLIC: "Public", Counts.PRIVATE: "Private too"},
        ),
    },
    also=From.PUBLIC.each(
        "proposed",
        "variance_source_proposed",
        "counts_proposed",
        "target_proposed",
        "likeness_proposed",
        "tabs",
    )
    | From.VALUES.each("range_search"),
    propose=propose,
    proposed=("variance_source", "counts", "target", "likeness", "lower", "upper"),
    formerly={"noise": "variance_source", "noise_variance": "value_variance"},
)
