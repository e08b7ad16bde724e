"""Sentences and numbers on examples per user. Pure functions of the solution."""

from __future__ import annotations

from dpcore.answer import Number
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import format_rounded_up
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer.found import ExamplesSolution
from dpcore.examples_per_user.options import Option
from dpcore.examples_per_user.parameters import Sampling

UNIT = "examples per user"
SAMPLING_PHRASES = {Sampling.EXAMPLES: "draw examples", Sampling.USERS: "draw users"}


def count_examples(count: float) -> str:
    """Count examples: ``1 example``, ``8 examples``."""
    return wording.counted(count, "example")


def write_headline(solution: ExamplesSolution) -> str:
    """Write the instruction."""
    best = solution.best
    if best.sampling is Sampling.USERS:
        return f"Draw users, and average the gradients of at most {count_examples(best.bound)} of each."
    return f"Draw examples, and keep at most {count_examples(best.bound)} of each user."


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
        sentences.append(f"**{bounds_text} cannot be**: fewer than B examples would be kept.")
    if parameters.delta * solution.histogram.num_users > 1.0:
        sentences.append("**δ is above 1 over the number of users**: it allows giving one of them away.")
    if solution.best.rate >= 1.0:
        sentences.append("Everybody is in every step: nothing is drawn, and drawing protects nobody.")
    if solution.histogram.num_users == 1:
        sentences.append("There is only one user.")
    if dataset.is_private:
        sentences.append("These numbers are computed from private data: ε does not cover them.")
    return " ".join(sentences)


def format_multiplier(candidate: Option) -> str:
    """Format the noise multiplier, never rounded down: less noise would not keep ε."""
    return ("at most " if candidate.at_most else "") + wording.number(round_up(candidate.multiplier))


def round_up(multiplier: float, digits: int = 4) -> float:
    """Round the noise multiplier up, as it stands on the page and in programs."""
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
            "Standard deviation of the noise on a step's sum of clipped gradients, over the clip norm. It is what "
            "libraries call noise_multiplier.",
            round_up(best.multiplier),
            "clip norms",
            "noise_multiplier",
        ),
        Number(
            "Sampling rate q",
            wording.number(best.rate),
            f"of {sampled_unit}, in every step",
            "A public constant: accept or change it, but let no program compute it from the table.",
            best.rate,
            key="sampling_rate",
        ),
        Number("Examples kept", kept_text, "of all", value=best.kept_share, key="kept_share"),
        Number(
            "Divisor",
            wording.number(best.divisor, 4),
            f"{divisor} expected per step",
            "What the noisy sum is divided by; a public constant, too.",
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
            "Of a mean of d numbers over all steps, in norms of one example's gradient: noise, drawn batches, and "
            "having so few users. A heuristic for training.",
            best.error,
            key="error",
        ),
    )


def describe_near_optimal(solution: ExamplesSolution) -> str:
    """Write the interval of near-optimal bounds."""
    low, high = solution.options.find_near_optimal()
    if low == high:
        return f"of the bounds tried, only G = {wording.number(low)} stays within 5{wording.PERCENT} of the best error."
    return (
        f"{SAMPLING_PHRASES[solution.best.sampling]} with G from {wording.number(low)} to "
        f"{wording.number(high)}: within "
        f"5{wording.PERCENT} of the best error, by this estimate."
    )


def build_facts(solution: ExamplesSolution) -> dict[str, str]:
    """Build the facts behind the choice, a sentence each."""
    sentences = {}
    parameters = solution.parameters
    if solution.entered_option is not None:
        entered_option = solution.entered_option
        sentences[f"Your bound, {count_examples(entered_option.bound)}"] = (
            f"{SAMPLING_PHRASES[entered_option.sampling]}: noise multiplier "
            f"{format_multiplier(entered_option)}, estimated "
            f"error {wording.number(entered_option.error)}, "
            f"{wording.change(entered_option.error, solution.options.best.error)} than the best of those tried."
            if entered_option.error != solution.options.best.error
            else "that is the best of those tried."
        ).replace("the same than", "the same as")
    elif parameters.own_bound is not None:
        sentences[f"Your bound, {count_examples(parameters.own_bound)}"] = (
            "cannot be: fewer than B examples would be kept."
        )
    sentences["Both ways"] = _compare_samplings(solution)
    sentences["What the error is made of"] = _describe_error(solution.best)
    sentences["What each way learns"] = (
        "drawing examples estimates a mean over rows, in which a user weighs as many rows as are kept; drawing users "
        "estimates a mean over users. Where heavy users differ these are two models."
    )
    sentences["How alike a user's examples are"] = (
        f"r = {wording.entered(parameters.alike)} is your entry, never read off private data. At r = 1 a "
        "user's average is as "
        "long as one gradient; at r = 0 it is shorter, and less noise does. The noise multiplier does not depend on it."
    )
    return sentences


def _compare_samplings(solution: ExamplesSolution) -> str:
    """Compare the best bounds of both ways."""
    sentences = []
    for sampling in (Sampling.EXAMPLES, Sampling.USERS):
        best = min(solution.options.options_by_sampling[sampling], key=lambda candidate: candidate.error)
        sentences.append(
            f"{SAMPLING_PHRASES[sampling]}: best at G = {wording.number(best.bound)}, noise multiplier "
            f"{format_multiplier(best)}, "
            f"error {wording.number(best.error)}"
        )
    return "; ".join(sentences) + ", by this estimate."


def _describe_error(best: Option) -> str:
    """Describe the parts of the error."""
    return (
        f"noise {wording.number(best.noise_error)}, drawn batches {wording.number(best.drawing_error)}, few users and "
        f"examples {wording.number(best.data_error)}; their squares add up."
    )
