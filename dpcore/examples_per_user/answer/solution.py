"""The solution for examples per user on data, and its words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.answer import standard
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import Number
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.code.forms import OfferedPrograms
from dpcore.common.privacy import Provenance, format_rounded_up, write_file_name
from dpcore.common.progress import Stage
from dpcore.common.wording import describe_change, format_count, format_entered, format_number, format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.examples_per_user.candidates import (
    FORM_BY_TITLE,
    Candidate,
    Comparison,
    TrainingConstants,
    compare_candidates,
    evaluate_candidate,
    write_program,
)
from dpcore.examples_per_user.noise import find_multiplier, is_too_slow
from dpcore.examples_per_user.parameters import NEIGHBOURS, ExamplesParameters, Sampling

IGNORED_FIELD_NAMES = ("own_bound",)


@dataclass(frozen=True)
class ExamplesSolution:
    """All results that depend on data and settings.

    Attributes:
        parameters: The settings.
        histogram: Of the users' examples.
        comparison: All bounds, both ways, by the quick bound on the noise.
        best_candidate: The chosen candidate; with the exact noise once that is known.
        own_candidate: The user's own bound, the better of the ways that are compared; None without one, or where it
            keeps too few.
        stage: First while the exact noise is searched for.
    """

    parameters: ExamplesParameters
    histogram: ContributionHistogram
    comparison: Comparison
    best_candidate: Candidate
    own_candidate: Candidate | None
    stage: Stage = Stage.FINAL

    @property
    def noise_arguments(self) -> tuple[int, float, float, float, int] | None:
        """Return the arguments of `find_multiplier`; None if the quick bound is exact or the search takes minutes."""
        parameters, candidate = self.parameters, self.comparison.best_candidate
        if not candidate.is_upper_bound or is_too_slow(candidate.user_move, candidate.rate):
            return None
        return candidate.user_move, candidate.rate, parameters.epsilon, parameters.delta, parameters.steps

    def with_noise(self, exact_multiplier: float | None) -> ExamplesSolution:
        """Return this solution with the exact noise multiplier of the best bound.

        For None, return one whose noise is still searched for.
        """
        if exact_multiplier is None:
            return replace(self, stage=Stage.FIRST)
        quick_candidate = self.comparison.best_candidate
        candidate_fields = (quick_candidate.sampling, quick_candidate.bound, exact_multiplier)
        exact_candidate = evaluate_candidate(self.histogram, self.parameters, *candidate_fields)
        assert exact_candidate is not None
        return replace(self, best_candidate=exact_candidate, stage=Stage.FINAL)


def solve_quickly(histogram: ContributionHistogram, parameters: ExamplesParameters) -> ExamplesSolution:
    """Compare all candidates, and the user's own bound, by the quick bound on the noise.

    Raises:
        InvalidInput: B is more than all examples.
    """
    comparison, own_bound = compare_candidates(histogram, parameters), parameters.own_bound
    own_candidate = None
    if own_bound is not None:
        allowed_samplings: tuple[Sampling, ...] = (parameters.sampling,)
        if parameters.sampling is Sampling.BOTH:
            # At G = 1 both ways are one.
            allowed_samplings = (Sampling.EXAMPLES, Sampling.USERS) if own_bound > 1 else (Sampling.EXAMPLES,)
        own_candidates = [evaluate_candidate(histogram, parameters, s, own_bound) for s in allowed_samplings]
        own_candidate = min(filter(None, own_candidates), key=lambda candidate: candidate.error, default=None)
    return ExamplesSolution(parameters, histogram, comparison, comparison.best_candidate, own_candidate)


def solve(dataset: Dataset, parameters: ExamplesParameters) -> ExamplesSolution:
    """Solve with the exact noise of the best bound; with a quick upper bound if the search would take minutes."""
    solution = solve_quickly(dataset.histogram, parameters)
    arguments = solution.noise_arguments
    return solution if arguments is None else solution.with_noise(find_multiplier(*arguments))


def compare_over_epsilon(dataset: Dataset, parameters: ExamplesParameters) -> BoundComparison:
    """Build the comparison of the best bound and its estimated error over ε, with a quick bound on the noise."""

    def find_best_bound(epsilon: float) -> tuple[float, float]:
        """Return (best bound, its estimated error) at another epsilon."""
        comparison = compare_candidates(dataset.histogram, replace(parameters, epsilon=epsilon))
        return float(comparison.best_candidate.bound), comparison.best_candidate.error

    return BoundComparison(
        "Best bound (examples per user)",
        "Estimated error (gradient norms)",
        find_best_bound,
        is_slow=True,
        caption="By this estimate, with noise by Rényi accounting.",
    )


TOO_SMALL_CLAUSE = "is too small: it keeps fewer than B examples."
PHRASE_BY_SAMPLING = {Sampling.EXAMPLES: "sample examples", Sampling.USERS: "sample users"}


def write_headline(solution: ExamplesSolution) -> str:
    """Write one sentence: whether to draw users or examples, and how many examples of each user to keep."""
    examples_text = format_count(solution.best_candidate.bound, "example")
    if solution.best_candidate.sampling is Sampling.USERS:
        return f"Sample users, and average the gradients of at most {examples_text} per user."
    return f"Keep at most {examples_text} per user, and sample examples, not users."


def write_detail(solution: ExamplesSolution, dataset: Dataset) -> str:
    """Write what qualifies the headline: too small bounds, a large delta, private data; empty if nothing does."""
    detail_sentences = []
    if too_small_bounds := solution.comparison.too_small_bounds:
        too_small_text = f"G = {too_small_bounds[0]}"
        if len(too_small_bounds) > 1:
            too_small_text = f"G from {too_small_bounds[0]} to {format_number(too_small_bounds[-1])}"
        detail_sentences.append(f"**{too_small_text}** {TOO_SMALL_CLAUSE}")
    if solution.parameters.delta * solution.histogram.num_users > 1.0:
        detail_sentences.append("**δ is above 1 over the number of users**: a release may reveal one user.")
    if solution.best_candidate.rate >= 1.0:
        detail_sentences.append("Every step uses all data: drawing adds no protection.")
    if dataset.is_private:
        remedy_text = "Choose G without these data."
        detail_sentences.append(standard.warn_of_leak("these numbers were", remedy_text=remedy_text))
    return " ".join(detail_sentences)


def _format_multiplier(candidate: Candidate) -> str:
    """Format the noise multiplier, rounded up; with "at most" if it is an upper bound."""
    multiplier_prefix = "at most " if candidate.is_upper_bound else ""
    return f"{multiplier_prefix}{format_number(round_up(candidate.multiplier), 4)}"


def round_up(noise_multiplier: float, num_digits: int = 4) -> float:
    """Round the noise multiplier up to so many significant digits, as less noise would not satisfy ε."""
    return float(format_rounded_up(noise_multiplier, num_digits))


def build_numbers(solution: ExamplesSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: bound, error, noise multiplier, rate, share kept, divisor and noise."""
    candidate, num_steps = solution.best_candidate, solution.parameters.steps
    unit_name = "user" if candidate.sampling is Sampling.USERS else "example"
    is_searching, kept_share, divisor = solution.stage is Stage.FIRST, candidate.kept_share, candidate.divisor
    rate_text, noise_text = format_number(candidate.rate), format_number(candidate.noise)
    return (
        Number(
            "Best bound G",
            format_count(candidate.bound, "example"),
            "per user",
            "The least estimated error among the bounds tried.",
            candidate.bound,
            "examples per user",
            "bound",
        ),
        Number(
            "Estimated error",
            format_percent(candidate.error),
            "of a gradient's norm",
            f"Of a mean of d numbers, after {format_count(num_steps, 'step')}: a heuristic for training.",
            candidate.error,
            key="error",
        ),
        Number(
            "Noise multiplier σ",
            _format_multiplier(candidate),
            "searching the exact one" if is_searching else "",
            "Standard deviation of the noise on a step's sum, over the clip norm.",
            round_up(candidate.multiplier),
            "clip norms",
            "noise_multiplier",
        ),
        Number("Sampling rate q", rate_text, f"of each {unit_name}", "", candidate.rate, key="sampling_rate"),
        Number("Examples kept", format_percent(kept_share), value=kept_share, key="kept_share"),
        Number("Divisor", format_number(divisor, 4), f"{unit_name}s expected per step", "", divisor),
        Number("Noise on the mean gradient", noise_text, "gradient norms", "", candidate.noise, key="noise"),
    )


def write_near_optimal(solution: ExamplesSolution) -> str:
    """Write the way of sampling of the best bound, and the range of its near-optimal bounds."""
    bound_range, objective_text = solution.comparison.find_near_optimal(), "the least error, by this estimate"
    return standard.write_near_optimal_range(
        *bound_range, symbol="G", objective_text=objective_text, worse_choices_phrase="the next bounds tried"
    )


def build_facts(solution: ExamplesSolution) -> dict[str, str]:
    """Build the facts beside the answer: texts by heading."""
    facts = {}
    parameters = solution.parameters
    own_candidate = solution.own_candidate
    best_candidate = solution.best_candidate
    best_quick_error = solution.comparison.best_candidate.error
    if parameters.own_bound is not None:
        own_bound_text = TOO_SMALL_CLAUSE
        if own_candidate is not None and own_candidate.error == best_quick_error:
            own_bound_text = "that is the best of those tried."
        elif own_candidate is not None:
            own_bound_text = (
                f"{PHRASE_BY_SAMPLING[own_candidate.sampling]}: noise multiplier {_format_multiplier(own_candidate)}, "
                f"error {format_number(own_candidate.error)}, {describe_change(own_candidate.error, best_quick_error)}."
            )
        facts[f"Your bound, {format_count(parameters.own_bound, 'example')}"] = own_bound_text
    best_of_each_sampling = [
        min(candidates, key=lambda candidate: candidate.error)
        for candidates in solution.comparison.candidates_by_sampling.values()
    ]
    best_phrases = [
        f"{PHRASE_BY_SAMPLING[sampling_candidate.sampling]}: G = {format_number(sampling_candidate.bound)}, "
        f"noise multiplier {_format_multiplier(sampling_candidate)}, error {format_number(sampling_candidate.error)}"
        for sampling_candidate in best_of_each_sampling
    ]
    facts["Both ways"] = f"{'; '.join(best_phrases)}, by this estimate."
    facts["What the error is made of"] = (
        f"noise {format_number(best_candidate.noise_error)}, drawn batches "
        f"{format_number(best_candidate.drawing_error)}, few users and examples "
        f"{format_number(best_candidate.data_error)}; squares add up."
    )
    facts["What each way learns"] = "sampling examples a mean over examples, sampling users one over users."
    return facts


ACCOUNTED_TEXT = "It was accounted as in [@choquettechoo2023], by [@dpaccounting]."


def write_methods(solution: ExamplesSolution, dataset: Dataset) -> Methods:
    """Write the methods text: how the model is trained, and how the bound was chosen."""
    best_candidate, parameters = solution.best_candidate, solution.parameters
    sampling_phrase = "examples were drawn, and each gradient was clipped"
    if best_candidate.sampling is Sampling.USERS:
        sampling_phrase = "users were drawn, and the mean of a user's gradients was clipped"
    statement_phrase = "A model was trained and released"
    steps_text = format_count(parameters.steps, "step")
    opening_phrase = f"In {steps_text} of DP-SGD the examples of each user were bounded [@charles2024]"
    return Methods(
        guarantee_text=write_guarantee(statement_phrase, parameters.epsilon, NEIGHBOURS, parameters.delta),
        procedure=f"{opening_phrase}: at most {format_number(best_candidate.bound)}. "
        f"In every step {sampling_phrase}, each drawn independently at rate "
        f"{format_number(best_candidate.rate)}. Gaussian noise of "
        f"{format_number(round_up(best_candidate.multiplier), 4)} clip norms was added to the sum, which was "
        f"divided by {format_number(best_candidate.divisor, 4)}. {ACCOUNTED_TEXT}",
        public_procedure=f"{opening_phrase}; Gaussian noise was added to sums of clipped gradients. {ACCOUNTED_TEXT}",
        disclosure=dataset.provenance,
        rule_sentence="The bound minimises a heuristic estimate of the error "
        f"({format_count(parameters.dimension, 'parameter')}, {format_entered(parameters.batch_size)} examples "
        f"expected per step, similarity {format_entered(parameters.gradient_similarity)}).",
    )


def write_programs(solution: ExamplesSolution, provenance: Provenance) -> OfferedPrograms:
    """Write the programs of `FORM_BY_TITLE` for the best candidate.

    Those for private data say so in their text and file name.
    """
    candidate, parameters = solution.best_candidate, solution.parameters
    drawing_arguments = candidate.sampling, candidate.bound, candidate.rate, candidate.divisor
    guarantee_arguments = parameters.epsilon, parameters.delta, parameters.steps
    training = TrainingConstants(*drawing_arguments, round_up(candidate.multiplier), *guarantee_arguments)
    named_programs = []
    for program_name in FORM_BY_TITLE:
        program_code = write_program(program_name, training, f"Label of its numbers: {provenance.label}.")
        file_stem = write_file_name(program_code.file_name.removesuffix(".py"), provenance)
        named_programs.append((program_name, replace(program_code, file_name=f"{file_stem}.py")))
    return OfferedPrograms(tuple(named_programs))
