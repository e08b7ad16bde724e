"""Sentences and numbers on examples per user. Pure functions of the solution."""

from __future__ import annotations

from dpcore.answer import Number, standard
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import format_rounded_up
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer.found import ExamplesSolution
from dpcore.examples_per_user.options import Option
from dpcore.examples_per_user.parameters import Sampling

UNIT = "examples per user"
TOO_SMALL = "is too small: fewer than B examples would be kept."
SAMPLING_PHRASES = {Sampling.EXAMPLES: "draw examples", Sampling.USERS: "draw users"}


def count_examples(count: float) -> str:
    """Count examples: ``1 example``, ``8 examples``."""
    return wording.counted(count, "example")


def write_headline(solution: ExamplesSolution) -> str:
    """Write the instruction."""
    best = solution.best
    if best.sampling is Sampling.USERS:
        return f"Draw users, not examples, and average the gradients of at most {count_examples(best.bound)} of each."
    return f"Draw examples, not users, and keep at most {count_examples(best.bound)} of each user."


def write_detail(solution: ExamplesSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline."""
    parameters, sentences = solution.parameters, []
    if solution.options.too_small:
        impossible_bounds = solution.options.too_small
        bounds_text = (
            f"G = {impossible_bounds[0]}"
            if len(impossible_bounds) == 1
            else f"G from {impossible_bounds[0]} to {wording.number(impossible_bounds[-1])}"
        )
        sentences.append(f"**{bounds_text}** {TOO_SMALL}")
    if parameters.delta * solution.histogram.num_users > 1.0:
        sentences.append(
            "**δ is above 1 over the number of users**: a release that reveals one user would satisfy it."
        )
    if solution.best.rate >= 1.0:
        sentences.append("Every step uses all data, so drawing adds no protection.")
    if solution.histogram.num_users == 1:
        sentences.append("There is only one user.")
    if dataset.is_private:
        sentences.append(standard.warn_of_leak("these numbers were", remedy="Choose G without these data."))
    return " ".join(sentences)


def format_multiplier(candidate: Option) -> str:
    """Format the noise multiplier, rounded up: less noise would not satisfy ε."""
    return ("at most " if candidate.at_most else "") + wording.number(round_up(candidate.multiplier))


def round_up(multiplier: float, digits: int = 4) -> float:
    """Round the noise multiplier up, for the page and for programs."""
    return float(format_rounded_up(multiplier, digits))


def build_numbers(solution: ExamplesSolution) -> tuple[Number, ...]:
    """Build the numbers of the card: bound, noise multiplier, rate, share kept; and those that explain them."""
    best, parameters = solution.best, solution.parameters
    sampled_unit = "each user" if best.sampling is Sampling.USERS else "each example"
    divisor = "users" if best.sampling is Sampling.USERS else "examples"
    noise_text = (
        "the exact one is on its way"
        if solution.stage is Stage.FIRST
        else f"rate {wording.number(best.rate)}"
    )
    kept_text = wording.percent(best.kept_share)
    return (
        Number(
            "Best bound G",
            count_examples(best.bound),
            "per user",
            "The bound with the least error by this estimate, among those tried.",
            best.bound,
            UNIT,
            "bound",
        ),
        Number(
            "Noise multiplier σ",
            ("at most " if best.at_most else "") + wording.number(round_up(best.multiplier), 4),
            f"({noise_text}; {kept_text} of the examples kept)",
            "Standard deviation of the noise on a step's sum of clipped gradients, over the clip norm "
            "(noise_multiplier in libraries).",
            round_up(best.multiplier),
            "clip norms",
            "noise_multiplier",
        ),
        Number(
            "Sampling rate q",
            wording.number(best.rate),
            f"of {sampled_unit}, in every step",
            "A public constant: no program may compute it from the table.",
            best.rate,
            key="sampling_rate",
        ),
        Number("Examples kept", kept_text, "of all", value=best.kept_share, key="kept_share"),
        Number(
            "Divisor",
            wording.number(best.divisor, 4),
            f"{divisor} expected per step",
            "The noisy sum is divided by this public constant.",
            best.divisor,
            key="divisor",
        ),
        Number(
            "Noise on the mean gradient",
            wording.number(best.noise),
            "per parameter and step",
            "In norms of one example's gradient, exact for the noise multiplier.",
            best.noise,
            key="noise",
        ),
        Number(
            "Estimated error",
            wording.number(best.error),
            f"of {wording.counted(parameters.steps, 'step')}, by this estimate",
            "Error of a mean of d numbers over all steps, in norms of one example's gradient: noise, drawn batches, "
            "few users. For training it is a heuristic.",
            best.error,
            key="error",
        ),
    )


def describe_near_optimal(solution: ExamplesSolution) -> str:
    """Write the interval of near-optimal bounds."""
    low, high = solution.options.find_near_optimal()
    objective = "the least error, by this estimate"
    text = standard.write_range(low, high, name="G", objective=objective, others="the next bounds tried")
    return f"{SAMPLING_PHRASES[solution.best.sampling]}: {text}"


def build_facts(solution: ExamplesSolution) -> dict[str, str]:
    """Build the facts behind the choice, a sentence each."""
    sentences = {}
    parameters, entered_option = solution.parameters, solution.entered_option
    if entered_option is not None:
        best_error = solution.options.best.error
        sentences[f"Your bound, {count_examples(entered_option.bound)}"] = (
            "that is the best of those tried."
            if entered_option.error == best_error
            else f"{SAMPLING_PHRASES[entered_option.sampling]}: noise multiplier {format_multiplier(entered_option)}, "
            f"estimated error {wording.number(entered_option.error)}; compared with the best of those tried, "
            f"{wording.change(entered_option.error, best_error)}."
        )
    elif parameters.own_bound is not None:
        sentences[f"Your bound, {count_examples(parameters.own_bound)}"] = TOO_SMALL
    sentences["Both ways"] = _compare_samplings(solution)
    sentences["What the error is made of"] = _describe_error(solution.best)
    sentences["What each way learns"] = (
        "drawing examples learns from the mean over the examples kept, drawing users from the mean over users. If "
        "heavy users differ from light ones, these are two models."
    )
    sentences["How alike a user's examples are"] = (
        f"r = {wording.entered(parameters.alike)} is your entry, never computed from the data. At r = 1 a user's mean "
        "gradient is as long as one gradient; at r = 0 it is shorter, so less noise is enough. The noise multiplier "
        "does not depend on r."
    )
    return sentences


def _compare_samplings(solution: ExamplesSolution) -> str:
    """Compare the best bounds of both ways."""
    sentences = []
    for sampling in (Sampling.EXAMPLES, Sampling.USERS):
        best = min(solution.options.options_by_sampling[sampling], key=lambda candidate: candidate.error)
        sentences.append(
            f"{SAMPLING_PHRASES[sampling]}: best at G = {wording.number(best.bound)}, noise multiplier "
            f"{format_multiplier(best)}, error {wording.number(best.error)}"
        )
    return "; ".join(sentences) + ", by this estimate."


def _describe_error(best: Option) -> str:
    """Describe the parts of the error."""
    return (
        f"noise {wording.number(best.noise_error)}, drawn batches {wording.number(best.drawing_error)}, few users and "
        f"examples {wording.number(best.data_error)}; their squares add up."
    )
