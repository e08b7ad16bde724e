"""What a sum or a count has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import ChoiceSource, Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.total.answer.found import SignedFound, TotalFound
from dpcore.total.answer.words import MEASURE_NAMES
from dpcore.total.parameters import Summed, TotalParameters

MEASURES = MEASURE_NAMES | {
    Measure.BOUND: "sum of the bias and the mean size of the noise, an upper bound on the expected absolute error"
}


def _guarantee(parameters: TotalParameters, released: str) -> str:
    return write_guarantee(
        f"The {released} was released",
        parameters.epsilon,
        Neighbours.ADD_OR_REMOVE_USER,
        parameters.delta or 0.0,
    )


def methods(found: TotalFound, data: Dataset, parameters: TotalParameters) -> Methods:
    """Return the best bound on what a user adds, and its error."""
    # By what was entered, and not by the view's column: that there is one is part of the question.
    result = "count of rows" if parameters.summed is Summed.ROWS else "sum"
    kind, measure = cite_noise(parameters.mechanism.value), MEASURES[found.problem.measure]
    amount = wording.number(found.bound, 6)
    if parameters.summed is Summed.ROWS:
        bounded = f"At most {wording.counted(found.bound, 'row')} of each user were counted"
        withheld = "At most a fixed number of rows of each user were counted"
    else:
        bounded, withheld = (
            f"The total of each user was limited to {amount}",
            "The total of each user was limited",
        )
    error = found.unit.amount(found.error(found.bound))
    bias = found.unit.amount(float(found.at_bound.bias))
    said = (
        f"{bounded}, and {kind} was added to the {result}. The {measure} of the release is {error}, with a "
        f"bias of {bias}."
    )
    nothing = ""
    if found.choice.max_total == 0.0:
        nothing = (
            f"At ε = {wording.entered(parameters.epsilon)} no bound on what a user adds has a smaller {measure} than "
            "publishing 0, and nothing was released."
        )
    return Methods(
        guarantee=_guarantee(parameters, result),
        sentences=said,
        public_sentences=f"{withheld}, and {kind} was added to the {result}.",
        disclosure=data.provenance,
        rule=f"The bound minimises the {measure} of the release [@amin2019, section 3]"
        f"{', and was then rounded to few digits' if parameters.summed is Summed.VALUES else ''}.",
        empty_sentence=nothing,
    )


def signed_methods(found: SignedFound, data: Dataset, parameters: TotalParameters) -> Methods:
    """Return the range of totals of both signs, and its error."""
    kind, clipped = cite_noise(parameters.mechanism.value), found.clipped
    interval = f"[{wording.number(clipped.low, 6)}, {wording.number(clipped.high, 6)}]"
    entered = found.entered
    rule = (
        "The interval was fixed without looking at the data."
        if entered
        else "The interval is symmetric about 0, with the end at which the privacy noise and the size of all cuts "
        "together are least."
    )
    return Methods(
        guarantee=_guarantee(parameters, "sum"),
        sentences=f"The total of each user was clipped to {interval}, and {kind} was added to the sum. The "
        f"{MEASURES[found.measure]} of the release is {wording.number(found.error)}, with a bias of "
        f"{wording.number(clipped.bias)}.",
        public_sentences=f"The total of each user was clipped to {interval if entered else 'an interval'}, and {kind} "
        "was added to the sum.",
        disclosure=data.provenance,
        rule=rule,
        subject="The error" if entered else "The interval",
        choice_source=ChoiceSource.ENTERED if entered else ChoiceSource.COMPUTED,
    )
