"""The solution for examples per user on data, and its words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.answer import standard
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import Number
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.answer.stage import Stage
from dpcore.code.choice import Code
from dpcore.code.forms import CodeChoice
from dpcore.common import wording
from dpcore.common.privacy import Provenance, format_rounded_up, write_file_name
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.examples_per_user.noise import find_multiplier, is_too_slow
from dpcore.examples_per_user.options import (
    PROGRAMS,
    Option,
    Options,
    Training,
    evaluate_option,
    solve_options,
    write_program,
)
from dpcore.examples_per_user.parameters import NEIGHBOURS, ExamplesParameters, Sampling

NOT_COMPARED = ("own_bound",)


@dataclass(frozen=True)
class ExamplesSolution:
    """All results that depend on data and question.

    Attributes:
        parameters: The question.
        histogram: Of the users' examples.
        options: All bounds, both ways, by the quick bound on the noise.
        best: The chosen one; with the exact noise once that is known.
        entered_option: The person's own bound, the better of the ways asked about; None without one, or where it
            keeps too few.
        stage: First while the exact noise is searched for.
    """

    parameters: ExamplesParameters
    histogram: ContributionHistogram
    options: Options
    best: Option
    entered_option: Option | None
    stage: Stage = Stage.FINAL

    @property
    def samplings(self) -> tuple[Sampling, ...]:
        """Return the ways of sampling that the question compares."""
        return (
            (Sampling.EXAMPLES, Sampling.USERS)
            if self.parameters.sampling is Sampling.BOTH
            else (self.parameters.sampling,)
        )

    @property
    def exact_noise(self) -> ExactNoise | None:
        """Return the problem of the exact noise; None if the quick bound is exact or the search takes minutes."""
        parameters, best = self.parameters, self.options.best
        num_moved = 1 if best.sampling is Sampling.USERS else best.bound
        if not best.at_most or is_too_slow(num_moved, best.rate):
            return None
        return ExactNoise(num_moved, best.rate, parameters.epsilon, parameters.delta, parameters.steps)

    def with_noise(self, sigma: float | None) -> ExamplesSolution:
        """Return the solution with the exact noise of the best bound; None if it is not known yet."""
        if sigma is None:
            return replace(self, stage=Stage.FIRST)
        best_option = self.options.best
        best = evaluate_option(
            self.histogram, self.parameters, best_option.sampling, best_option.bound, sigma
        )
        assert best is not None
        return replace(self, best=best, stage=Stage.FINAL)


@dataclass(frozen=True)
class ExactNoise:
    """The arguments of `dpcore.examples_per_user.noise.find_multiplier`."""

    examples: int
    rate: float
    epsilon: float
    delta: float
    steps: int

    def search(self, should_stop: ShouldStop = never) -> float | None:
        """Search for the exact noise, in seconds; None if it was stopped."""
        return find_multiplier(self.examples, self.rate, self.epsilon, self.delta, self.steps, should_stop)


def solve_quickly(histogram: ContributionHistogram, parameters: ExamplesParameters) -> ExamplesSolution:
    """Solve with the quick bound on the noise.

    Raises:
        InvalidInput: B is more than all examples.
    """
    options_found = solve_options(histogram, parameters)
    solution = ExamplesSolution(parameters, histogram, options_found, options_found.best, None)
    if parameters.own_bound is None:
        return solution
    # At G = 1 both ways are one.
    samplings = solution.samplings if parameters.own_bound > 1 else solution.samplings[:1]
    entered_options = [
        evaluate_option(histogram, parameters, sampling, parameters.own_bound) for sampling in samplings
    ]
    possible_options = [candidate for candidate in entered_options if candidate is not None]
    return replace(
        solution, entered_option=min(possible_options, key=lambda candidate: candidate.error, default=None)
    )


def solve(dataset: Dataset, parameters: ExamplesParameters) -> ExamplesSolution:
    """Solve with the exact noise of the best bound."""
    solution = solve_quickly(dataset.histogram, parameters)
    return solution if solution.exact_noise is None else solution.with_noise(solution.exact_noise.search())


def against_epsilon(dataset: Dataset, parameters: ExamplesParameters) -> BoundComparison:
    """Return the best bound and the estimated error at any ε, by the quick bound on the noise."""

    def best(epsilon: float) -> tuple[float, float]:
        best_option = solve_options(
            dataset.histogram, replace(parameters, epsilon=epsilon, own_bound=None)
        ).best
        return float(best_option.bound), best_option.error

    return BoundComparison(
        "Best bound (examples per user)",
        "Estimated error (gradient norms)",
        best,
        is_slow=True,
        caption="Best of the bounds tried, by this estimate, with noise by Rényi accounting.",
    )


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
        f"r = {wording.entered(parameters.gradient_similarity)} is your entry, never computed from the data. At r = 1 "
        "a user's mean gradient is as long as one gradient; at r = 0 it is shorter, so less noise is enough. The noise "
        "multiplier does not depend on r."
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


ACCOUNT = "Its account is that of [@choquettechoo2023], by [@dpaccounting]."


def write_methods(solution: ExamplesSolution, dataset: Dataset) -> Methods:
    """Write how the model is trained, and how the bound was chosen."""
    best, parameters = solution.best, solution.parameters
    sampling_text = (
        "users were drawn, and the mean of a user's gradients was clipped"
        if best.sampling is Sampling.USERS
        else "examples were drawn, and each gradient was clipped"
    )
    steps = f"{wording.counted(parameters.steps, 'step')} of DP-SGD"
    opening = f"The model was trained by {steps} on a bounded number of examples of each user [@charles2024]"
    return Methods(
        guarantee=write_guarantee(
            "A model was trained and released", parameters.epsilon, NEIGHBOURS, parameters.delta
        ),
        sentences=f"{opening}: at most {wording.number(best.bound)} of each. In every step {sampling_text}, each drawn "
        f"independently with probability {wording.number(best.rate)}. Gaussian noise of "
        f"{wording.number(round_up(best.multiplier), 4)} clip norms was added to the sum, which was divided by the "
        f"constant {wording.number(best.divisor, 4)}. {ACCOUNT}",
        public_sentences=f"{opening}; Gaussian noise was added to sums of clipped gradients. {ACCOUNT}",
        disclosure=dataset.provenance,
        rule="The bound minimises a heuristic estimate of the error for "
        f"{wording.counted(parameters.dimension, 'parameter')}, {wording.entered(parameters.batch_size)} examples "
        f"expected per step and a share {wording.entered(parameters.gradient_similarity)} of a gradient common to a "
        "user's examples.",
    )


def write_programs(solution: ExamplesSolution, provenance: Provenance) -> CodeChoice:
    """Write the programs; the label of private data stands in them and in their names."""
    best, parameters = solution.best, solution.parameters
    training = Training(
        best.sampling,
        best.bound,
        best.rate,
        best.divisor,
        round_up(best.multiplier),
        parameters.epsilon,
        parameters.delta,
        parameters.steps,
    )
    label = f"Label of the numbers that it holds: {provenance.label}."
    programs = []
    for name in PROGRAMS:
        code = write_program(name, training, label)
        file_name_with_label = f"{write_file_name(code.file_name.removesuffix('.py'), provenance)}.py"
        programs.append((name, Code(code.text, code.language, file_name_with_label, code.differences)))
    return CodeChoice(tuple(programs))
