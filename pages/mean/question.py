"""Mean: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.mean import Counts, MeanParameters, VarianceSource, usual
from pages.shared.base.question import Facet, Field, From, Question, of_values, public, range_end
from pages.shared.base.round_numbers import DEFAULT_VALUE_BOUNDS, rounded_out


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """Value bounds for public values, and the settings that follow from the data, as `dpcore.mean.usual` has them.

    What the person chose stays: bounds that they entered, and settings that differ from those proposed; but that the
    counts of private data are public, or that their variance may be read, was said of other data, and is asked anew.
    A release proposes no bounds: they are as entered, or forgotten.
    """
    found: dict[str, Any] = {}
    for name, value in usual(data).items():
        if data.is_private or now[name] == now[f"{name}_proposed"]:
            found |= {name: value, f"{name}_proposed": value}
    if (
        data.values is None
        and data.release is not None
        and now["variance_source"] is VarianceSource.FROM_VALUES
    ):
        found["variance_source"] = VarianceSource.WORST_CASE
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
            width=130,
            asked="Lowest value, L",
            first=0.0,
            shared="lower",
        ),
        "upper": range_end(
            "Highest value U",
            "Values above are lowered to it. B = U − L sets how much noise is needed.",
            width=130,
            asked="Highest value, U",
            first=1.0,
            shared="upper",
        ),
        "variance_source": public(
            "Variance of one row's value, σ²",
            "How much values scatter. The worst case is B²/4: half of them at L, half at U.",
            asked="Variance of one row's value",
            names={
                VarianceSource.WORST_CASE: "Worst case",
                VarianceSource.FROM_VALUES: "From values",
                VarianceSource.ENTERED: "Entered",
            },
        ),
        "value_variance": of_values(
            "σ² (unit squared)",
            "In the values' unit, squared.",
            sentence="σ²",
            asked="Variance entered",
            first=0.1,
            width=170,
        ),
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
    also=From.PUBLIC.each("proposed", "variance_source_proposed", "counts_proposed", "tabs", "runs")
    | From.VALUES.each("simulated_mean")
    | From.DATA.each("simulation_job"),
    propose=propose,
)
