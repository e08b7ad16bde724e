"""The sentences on a sum or a count for a methods section."""

from __future__ import annotations

from dpcore.answer.methods import ChoiceSource, Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.total.answer.found import SignedSolution, TotalSolution
from dpcore.total.answer.words import MEASURE_NAMES
from dpcore.total.parameters import Summed, TotalParameters

MEASURES = MEASURE_NAMES | {
    Measure.BOUND: "sum of the bias and the mean size of the noise, an upper bound on the expected absolute error"
}


def _guarantee(parameters: TotalParameters, quantity: str) -> str:
    return write_guarantee(
        f"The {quantity} was released",
        parameters.epsilon,
        Neighbours.ADD_OR_REMOVE_USER,
        parameters.delta or 0.0,
    )


def write_methods(solution: TotalSolution, data: Dataset, parameters: TotalParameters) -> Methods:
    """State the best bound on what a user adds, and its error."""
    # By what was entered, and not by the view's column: that there is one is part of the question.
    result = "count of rows" if parameters.summed is Summed.ROWS else "sum"
    noise, measure = cite_noise(parameters.mechanism.value), MEASURES[solution.problem.measure]
    amount = wording.number(solution.bound, 6)
    if parameters.summed is Summed.ROWS:
        limit_sentence = f"At most {wording.counted(solution.bound, 'row')} of each user were counted"
        public_limit = "At most a fixed number of rows of each user were counted"
    else:
        limit_sentence, public_limit = (
            f"The total of each user was limited to {amount}",
            "The total of each user was limited",
        )
    error = solution.unit.amount(solution.error(solution.bound))
    bias = solution.unit.amount(float(solution.at_bound.bias))
    sentence = (
        f"{limit_sentence}, and {noise} was added to the {result}. The {measure} of the release is {error}, with a "
        f"bias of {bias}."
    )
    empty_sentence = ""
    if solution.choice.max_total == 0.0:
        empty_sentence = (
            f"At ε = {wording.entered(parameters.epsilon)} no bound on what a user adds has a smaller {measure} than "
            "publishing 0, and nothing was released."
        )
    return Methods(
        guarantee=_guarantee(parameters, result),
        sentences=sentence,
        public_sentences=f"{public_limit}, and {noise} was added to the {result}.",
        disclosure=data.provenance,
        rule=f"The bound minimises the {measure} of the release [@amin2019, section 3]"
        f"{', and was then rounded to few digits' if parameters.summed is Summed.VALUES else ''}.",
        empty_sentence=empty_sentence,
    )


def write_signed_methods(solution: SignedSolution, data: Dataset, parameters: TotalParameters) -> Methods:
    """State the range for totals of both signs, and its error."""
    noise, clipped = cite_noise(parameters.mechanism.value), solution.clipped
    interval = f"[{wording.number(clipped.low, 6)}, {wording.number(clipped.high, 6)}]"
    is_entered = solution.is_entered
    rule = (
        "The interval was fixed without looking at the data."
        if is_entered
        else "The interval is symmetric about 0, with the end at which the privacy noise and the size of all cuts "
        "together are least."
    )
    return Methods(
        guarantee=_guarantee(parameters, "sum"),
        sentences=f"The total of each user was clipped to {interval}, and {noise} was added to the sum. The "
        f"{MEASURES[solution.measure]} of the release is {wording.number(solution.error)}, with a bias of "
        f"{wording.number(clipped.bias)}.",
        public_sentences=f"The total of each user was clipped to {interval if is_entered else 'an interval'}, and "
        f"{noise} was added to the sum.",
        disclosure=data.provenance,
        rule=rule,
        subject="The error" if is_entered else "The interval",
        choice_source=ChoiceSource.ENTERED if is_entered else ChoiceSource.COMPUTED,
    )
