"""The answer for examples per user in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

from dpcore.answer import Number
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import rounded_up
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer.found import ExamplesFound
from dpcore.examples_per_user.options import Option
from dpcore.examples_per_user.parameters import Way

UNIT = "examples per user"
DRAWN = {Way.EXAMPLES: "draw examples", Way.USERS: "draw users"}


def examples(count: float) -> str:
    """``1 example``, ``8 examples``."""
    return wording.counted(count, "example")


def headline(found: ExamplesFound) -> str:
    """What to do."""
    of = found.best
    if of.way is Way.USERS:
        return f"Draw users, and average the gradients of at most {examples(of.bound)} of each."
    return f"Draw examples, and keep at most {examples(of.bound)} of each user."


def detail(found: ExamplesFound, data: Dataset) -> str:
    """What changes how the headline is to be read."""
    of, said = found.parameters, []
    if found.options.too_small:
        kept = found.options.too_small
        words = f"G = {kept[0]}" if len(kept) == 1 else f"G from {kept[0]} to {wording.number(kept[-1])}"
        said.append(f"**{words} cannot be**: fewer than B examples would be kept.")
    if of.delta * found.histogram.num_users > 1.0:
        said.append("**δ is above 1 over the number of users**: it allows giving one of them away.")
    if found.best.rate >= 1.0:
        said.append("Everybody is in every step: nothing is drawn, and drawing protects nobody.")
    if found.histogram.num_users == 1:
        said.append("There is only one user.")
    if data.is_private:
        said.append("These numbers are computed from private data: ε does not cover them.")
    return " ".join(said)


def multiplier_text(of: Option) -> str:
    """Never rounded down: less noise would not keep ε."""
    return ("at most " if of.at_most else "") + wording.number(above(of.multiplier))


def above(sigma: float, digits: int = 4) -> float:
    """The noise multiplier as it is shown and stands in programs: rounded up."""
    return float(rounded_up(sigma, digits))


def numbers(found: ExamplesFound) -> tuple[Number, ...]:
    """The card: bound, noise multiplier, rate, share kept; behind it what they are compared by."""
    of, asked = found.best, found.parameters
    who = "each user" if of.way is Way.USERS else "each example"
    divisor = "users" if of.way is Way.USERS else "examples"
    how = "the exact one is on its way" if found.stage is Stage.FIRST else f"rate {wording.number(of.rate)}"
    kept = wording.percent(of.kept_share)
    return (
        Number(
            "Best bound G",
            examples(of.bound),
            "per user",
            "The bound with the least error by this estimate, among those tried.",
            of.bound,
            UNIT,
            "bound",
        ),
        Number(
            "Noise multiplier σ",
            ("at most " if of.at_most else "") + wording.number(above(of.multiplier), 4),
            f"({how}; {kept} of the examples kept)",
            "Standard deviation of the noise on a step's sum of clipped gradients, over the clip norm. It is what "
            "libraries call noise_multiplier.",
            above(of.multiplier),
            "clip norms",
            "noise_multiplier",
        ),
        Number(
            "Sampling rate q",
            wording.number(of.rate),
            f"of {who}, in every step",
            "A public constant: accept or change it, but let no program compute it from the table.",
            of.rate,
            key="sampling_rate",
        ),
        Number("Examples kept", kept, "of all", value=of.kept_share, key="kept_share"),
        Number(
            "Divisor",
            wording.number(of.divisor, 4),
            f"{divisor} expected per step",
            "What the noisy sum is divided by; a public constant, too.",
            of.divisor,
            key="divisor",
        ),
        Number(
            "Noise on the mean gradient",
            wording.number(of.noise),
            "per parameter and step",
            "In norms of one example's gradient, exact for the noise multiplier.",
            of.noise,
            key="noise",
        ),
        Number(
            "Estimated error",
            wording.number(of.error),
            f"of {wording.counted(asked.steps, 'step')}, by this estimate",
            "Of a mean of d numbers over all steps, in norms of one example's gradient: noise, drawn batches, and "
            "having so few users. A heuristic for training.",
            of.error,
            key="error",
        ),
    )


def good_enough(found: ExamplesFound) -> str:
    """From which to which bound."""
    low, high = found.options.within()
    if low == high:
        return f"of the bounds tried, only G = {wording.number(low)} stays within 5{wording.PERCENT} of the best error."
    return (
        f"{DRAWN[found.best.way]} with G from {wording.number(low)} to {wording.number(high)}: within "
        f"5{wording.PERCENT} of the best error, by this estimate."
    )


def facts(found: ExamplesFound) -> dict[str, str]:
    """What stands behind the choice, a sentence each."""
    said = {}
    of = found.parameters
    if found.own is not None:
        own = found.own
        said[f"Your bound, {examples(own.bound)}"] = (
            f"{DRAWN[own.way]}: noise multiplier {multiplier_text(own)}, estimated error {wording.number(own.error)}, "
            f"{wording.change(own.error, found.options.best.error)} than the best of those tried."
            if own.error != found.options.best.error
            else "that is the best of those tried."
        ).replace("the same than", "the same as")
    elif of.own_bound is not None:
        said[f"Your bound, {examples(of.own_bound)}"] = "cannot be: fewer than B examples would be kept."
    said["Both ways"] = _both(found)
    said["What the error is made of"] = _parts(found.best)
    said["What each way learns"] = (
        "drawing examples estimates a mean over rows, in which a user weighs as many rows as are kept; drawing users "
        "estimates a mean over users. Where heavy users differ these are two models."
    )
    said["How alike a user's examples are"] = (
        f"r = {wording.entered(of.alike)} is your entry, never read off private data. At r = 1 a user's average is as "
        "long as one gradient; at r = 0 it is shorter, and less noise does. The noise multiplier does not depend on it."
    )
    return said


def _both(found: ExamplesFound) -> str:
    parts = []
    for way in (Way.EXAMPLES, Way.USERS):
        best = min(found.options.tried[way], key=lambda one: one.error)
        parts.append(
            f"{DRAWN[way]}: best at G = {wording.number(best.bound)}, noise multiplier {multiplier_text(best)}, "
            f"error {wording.number(best.error)}"
        )
    return "; ".join(parts) + ", by this estimate."


def _parts(of: Option) -> str:
    return (
        f"noise {wording.number(of.noise_error)}, drawn batches {wording.number(of.drawing_error)}, few users and "
        f"examples {wording.number(of.data_error)}; their squares add up."
    )
