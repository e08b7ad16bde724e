"""The solution for quantiles: the best bounds, the distributions of the answers there, and the values to show."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

import numpy as np

from dpcore.answer.against import BoundComparison
from dpcore.common.certificate import Certificate
from dpcore.common.checks import refuse, require
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset, Values
from dpcore.quantile import (
    QuantileOutput,
    QuantileProblem,
    WeightKind,
    compute_standard_error,
    optimal_bound,
)
from dpcore.quantile.base_distribution import Base
from dpcore.quantile.mechanism import compute_outputs
from dpcore.quantile.optimal_bound import NUM_SEARCH_BOUNDS, QuantileChoice
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.programs import BIGQUERY_ROWS, TREE_PROGRAMS, WEIGHTED_PROGRAMS, divide_epsilon

MAX_SIMULATED_ANSWERS = 1_000_000
_BLOCK_CELLS = 4_000_000
NEAR_OPTIMAL_RATIO = 1.05
"""Of the least error."""
STRETCHES_OF_BASE = tuple(float(x) for x in np.geomspace(1.0, 1e4, 13))
SHIFTS_OF_BASE = tuple(float(x) for x in np.linspace(-1.0, 1.0, 21))
SHOWN_QUANTILE_MARGIN = 0.15
"""Distance in rank that the density shows at first."""
MAX_SHOWN_VALUE = 1e15
"""Largest value shown: sliders are exact up to 2^53."""


@dataclass(frozen=True)
class BoundChoices:
    """The best bound of both kinds for the values; no smooth weights for programs that have none."""

    smooth_choice: QuantileChoice | None
    cap_choice: QuantileChoice

    @property
    def each_choice(self) -> tuple[QuantileChoice, ...]:
        """Return the best bounds of the kinds that the program has, that of smooth weights first."""
        return (self.cap_choice,) if self.smooth_choice is None else (self.smooth_choice, self.cap_choice)

    def get(self, weight_kind: WeightKind) -> QuantileChoice:
        """Return the best bound of one kind; that of caps if there is none for smooth weights."""
        return (weight_kind is WeightKind.SMOOTH and self.smooth_choice) or self.cap_choice

    @property
    def is_cancelled(self) -> bool:
        """Return True if either search was stopped."""
        return any(choice.search_errors.is_cancelled for choice in self.each_choice)


def search_all_bounds(
    parameters: QuantileParameters,
    problems: Sequence[QuantileProblem],
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> tuple[BoundChoices, ...]:
    """Return the best bounds of each problem, in order; progress is shared evenly between the problems."""
    return tuple(
        search_bounds(
            problem,
            parameters.quantile_levels,
            lambda share, k=k: progress((k + share) / len(problems)),  # type: ignore[misc]
            should_stop,
            has_smooth_weights=parameters.program in WEIGHTED_PROGRAMS
            and problem.program not in TREE_PROGRAMS,
        )
        for k, problem in enumerate(problems)
    )


def search_bounds(
    problem: QuantileProblem,
    quantiles: tuple[float, ...],
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    has_smooth_weights: bool = True,
) -> BoundChoices:
    """Return the best bound of caps and, unless there are none, of smooth weights; a stopped search has fewer tried."""
    progress_share_of_smooth = 0.5 if has_smooth_weights else 0.0

    def search_best_bound(weight_kind: WeightKind, progress_before: float) -> QuantileChoice:
        """Find the best bound of one kind; ``progress_before`` is the share of the search done before it."""

        def report_share(kind_progress: float) -> None:
            """Report the share of the whole search that is done."""
            progress(progress_before + kind_progress * (1.0 - progress_share_of_smooth))

        return optimal_bound.find_best_bound(
            problem, weight_kind, NUM_SEARCH_BOUNDS, report_share, should_stop, quantiles
        )

    smooth_choice = search_best_bound(WeightKind.SMOOTH, 0.0) if has_smooth_weights else None
    return BoundChoices(smooth_choice, search_best_bound(WeightKind.CAP, progress_share_of_smooth))


IGNORED_FIELD_NAMES = ("own_bound",)
NO_BOUND_SENTENCE = f"BigQuery counts at most {BIGQUERY_ROWS} rows per user, whatever bound you choose."


def build_problems(
    values: Values, parameters: QuantileParameters, mechanisms: Sequence[Program] | None = None
) -> tuple[QuantileProblem, ...]:
    """Build a problem for each mechanism: the median, with all of epsilon, on the same random choices of rows.

    The rows of the first problem are sorted when they are needed; those of the others are sorted here.
    """
    first_program, *other_programs = mechanisms or parameters.mechanisms
    base, neighbours = parameters.build_base(mechanism=first_program), parameters.neighbours
    problem = QuantileProblem(
        values, 0.5, parameters.epsilon, base, neighbours=neighbours, program=first_program
    )
    other_problems = (
        problem.with_base(parameters.build_base(mechanism=program)).with_changes(program=program)
        for program in other_programs
    )
    return (problem, *other_problems)


def compare_over_epsilon(dataset: Dataset, parameters: QuantileParameters) -> BoundComparison | str:
    """Build the comparison of bound and rank error over epsilon, or return the sentence why there is none."""
    if dataset.values is None:
        return "These data have no values."
    if parameters.weighting is Weighting.NONE:
        return "There is no bound to compare over ε."
    # It sorts its rows once, when the first bound is tried; millions of rows take a while.
    if parameters.fixed_bound is not None:
        return NO_BOUND_SENTENCE
    quantile_problems = build_problems(dataset.values, replace(parameters, epsilon=1.0))
    weight_kind, quantiles = parameters.weight_kind, parameters.quantile_levels
    is_from_counts = parameters.bound_from is BoundFrom.COUNTS

    def find_best_bound_at(epsilon: float) -> tuple[float, float]:
        """Return the bound and its rank error at another epsilon, of the best mechanism there."""
        epsilon_problems = (problem.with_changes(epsilon=epsilon) for problem in quantile_problems)
        return min(map(find_bound_and_error, epsilon_problems), key=itemgetter(1))

    def find_bound_and_error(problem: QuantileProblem) -> tuple[float, float]:
        """Return the bound and its rank error with one mechanism."""
        if is_from_counts:
            epsilon_parameters = replace(parameters, epsilon=problem.epsilon)
            bound_in_use = (
                epsilon_parameters.build_rank_bound(problem.histogram).find_optimum(weight_kind).bound
            )
            rank_errors = optimal_bound.compute_rank_errors(
                problem, weight_kind, bound_in_use, quantiles=quantiles
            )
            return bound_in_use, float(rank_errors.expected_errors[0])
        quantile_choice = optimal_bound.find_best_bound(
            problem, weight_kind, NUM_SEARCH_BOUNDS, quantiles=quantiles
        )
        return quantile_choice.bound, quantile_choice.rank_error

    bound_label = f"Best bound{' from counts' if is_from_counts else ''} (rows per user)"
    return BoundComparison(bound_label, "Rank error (share of rows)", find_best_bound_at, is_slow=True)


@dataclass(frozen=True)
class QuantileSolution:
    """The best bounds for some quantiles, and the distributions of the answers at the bound in use.

    Attributes:
        parameters: The parameters.
        problem: The problem on these data, with all of epsilon; its program is the one whose mechanism answers.
        choices: The best bounds for the values.
        bound: h in use, in rows per user.
        outputs: The answers' distributions at ``bound``, one per quantile, ascending.
        unbounded_outputs: The same without a bound.
        counts_bound: The best h of this kind by the paper's bound.
        counts_error: Expected rank error at ``counts_bound``.
        counts_standard_error: Standard error of ``counts_error`` over the subsamples of a cap; 0 without subsamples.
        counts_certificate: Proof that ``counts_bound`` is best for the trade-off form of the paper's bound.
        own_outputs: The same at the entered bound; empty for none.
        errors_by_mechanism: Expected rank error of each mechanism that was compared, at its own bound.
    """

    parameters: QuantileParameters
    problem: QuantileProblem
    choices: BoundChoices
    bound: float
    outputs: tuple[QuantileOutput, ...]
    unbounded_outputs: tuple[QuantileOutput, ...]
    counts_bound: float
    counts_error: float
    counts_standard_error: float
    counts_certificate: Certificate
    own_outputs: tuple[QuantileOutput, ...]
    errors_by_mechanism: Mapping[Program, float] = field(default_factory=dict)

    @property
    def mechanism(self) -> Program:
        """Return the program whose mechanism answers."""
        return self.problem.program

    @property
    def is_simulated(self) -> bool:
        """Return True if the answers are simulated."""
        return self.mechanism in TREE_PROGRAMS

    @property
    def epsilon_each(self) -> float:
        """Return the part of epsilon that each quantile takes."""
        return divide_epsilon(self.mechanism, self.parameters.epsilon, len(self.parameters.quantile_levels))

    @property
    def weight_kind(self) -> WeightKind:
        """Return the kind of the weights in use."""
        return self.parameters.weight_kind

    @property
    def rank_error(self) -> float:
        """Return the expected rank error at the bound in use, averaged over quantiles and random subsamples."""
        return compute_mean_error(self.outputs)

    @property
    def subsample_errors(self) -> FloatArray:
        """Return the rank error under each subsample; one entry without subsamples."""
        return np.asarray(np.mean([output.subsample_errors for output in self.outputs], axis=0))

    @property
    def standard_error(self) -> float:
        """Return the standard error of ``rank_error`` over the subsamples; 0 without them."""
        return compute_standard_error(self.subsample_errors, self.weight_kind, self.bound, self.problem.rows)

    @property
    def unbounded_error(self) -> float:
        """Return the expected rank error without a bound."""
        return compute_mean_error(self.unbounded_outputs)

    @property
    def near_optimal_bounds(self) -> tuple[float, float]:
        """Return the interval around the best bound in which all bounds tried are near-optimal.

        Under a cap these are averages over the subsamples of the search.
        """
        search_errors = self.choices.get(self.weight_kind).search_errors
        bounds, expected_errors = search_errors.bounds, search_errors.expected_errors
        # Worse bounds, with one before the first and one after the last bound.
        worse_indices = (
            np.flatnonzero(np.r_[True, expected_errors > NEAR_OPTIMAL_RATIO * expected_errors.min(), True])
            - 1
        )
        next_worse_position = int(np.searchsorted(worse_indices, int(np.argmin(expected_errors))))
        return float(bounds[worse_indices[next_worse_position - 1] + 1]), float(
            bounds[worse_indices[next_worse_position] - 1]
        )

    @property
    def least_error(self) -> float:
        """Return the least possible rank error, mean over the quantiles."""
        return float(np.mean([output.least_rank_error for output in self.outputs]))

    @property
    def has_unavoidable_error(self) -> bool:
        """Return True if every answer errs by more than one row: values tie, or the base has no mass there.

        False for simulated answers, of which that is not known.
        """
        return not self.is_simulated and self.least_error > 1.0 / self.problem.histogram.num_rows

    @property
    def base_range(self) -> tuple[float, float]:
        """Return the ends of the base, or four standard deviations around a normal base."""
        return self.parameters.base_range

    @property
    def exact_quantiles(self) -> tuple[float, ...]:
        """Return the exact quantiles of the values."""
        return tuple(self.problem.rows.find_quantile(q) for q in self.parameters.quantile_levels)


def compute_mean_error(outputs: Sequence[QuantileOutput]) -> float:
    """Return the expected rank error, mean over the quantiles and the subsamples."""
    return float(np.mean([output.expected_rank_error for output in outputs]))


def refuse_public_counts(dataset: Dataset, parameters: QuantileParameters) -> None:
    """Raise InvalidInput if only a user's values are protected, and these decide which rows count."""
    if parameters.neighbours is Neighbours.REPLACE_VALUES:
        dataset.refuse_public_counts()


def choose_solution(
    parameters: QuantileParameters,
    problems: Sequence[QuantileProblem],
    choices_of_problems: Sequence[BoundChoices],
) -> QuantileSolution:
    """Build the solution of the mechanism with the least error, from the best bounds that were found for each."""
    solutions = [
        compute_mechanism_solution(parameters, *problem_and_choices)
        for problem_and_choices in zip(problems, choices_of_problems, strict=True)
    ]
    errors_by_mechanism = {solution.mechanism: solution.rank_error for solution in solutions}
    best_solution = min(solutions, key=lambda solution: solution.rank_error)
    return replace(best_solution, errors_by_mechanism=errors_by_mechanism)


def compute_mechanism_solution(
    parameters: QuantileParameters, problem: QuantileProblem, choices: BoundChoices
) -> QuantileSolution:
    """Build the solution of one mechanism: the bound in use, the answers at it, and those at the bound of the paper.

    The bound is the entered one, none, the paper's or the best of the given ones, as the parameters say.
    """
    quantiles, weight_kind, histogram = parameters.quantile_levels, parameters.weight_kind, problem.histogram
    max_size = float(histogram.max_size)
    paper_optimum = parameters.build_rank_bound(histogram).find_optimum(weight_kind)
    if parameters.fixed_bound is not None:
        bound_in_use = parameters.fixed_bound
    elif parameters.weighting is Weighting.NONE:
        bound_in_use = max_size
    elif parameters.bound_from is BoundFrom.COUNTS:
        bound_in_use = paper_optimum.bound
    else:
        bound_in_use = choices.get(weight_kind).bound
    counts_bound = paper_optimum.bound
    counts_rank_errors = optimal_bound.compute_rank_errors(
        problem, weight_kind, counts_bound, quantiles=quantiles
    )
    compute_outputs_at = partial(compute_outputs, problem, quantiles)
    own_outputs = (
        () if parameters.own_bound is None else compute_outputs_at(weight_kind, parameters.own_bound)
    )
    return QuantileSolution(
        parameters=parameters,
        problem=problem,
        choices=choices,
        bound=bound_in_use,
        outputs=compute_outputs_at(weight_kind, bound_in_use),
        unbounded_outputs=compute_outputs_at(WeightKind.SMOOTH, max_size),
        counts_bound=counts_bound,
        counts_error=float(counts_rank_errors.expected_errors[0]),
        counts_standard_error=float(counts_rank_errors.standard_errors[0]),
        counts_certificate=paper_optimum.certificate,
        own_outputs=own_outputs,
    )


def solve(
    dataset: Dataset,
    parameters: QuantileParameters,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> QuantileSolution:
    """Search the best bounds and compute the distributions; a stopped search uses the bounds tried so far.

    Raises:
        InvalidInput: The data have no values, or counts are to be public and values decide which rows count.
    """
    if dataset.values is None:
        raise refuse("these data have no values, one per row")
    refuse_public_counts(dataset, parameters)
    problems = build_problems(dataset.values, parameters)
    choices = search_all_bounds(parameters, problems, progress, should_stop)
    return choose_solution(parameters, problems, choices)


def find_shown_ranges(solution: QuantileSolution) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two ranges of values, (from, to) each: the one to show first, and the widest.

    Both depend on values, quantiles and base only, so that they do not move with epsilon or the bound.
    """
    rows, parameters = solution.problem.rows, solution.parameters
    lowest_shown = rows.find_quantile(max(parameters.quantile_levels[0] - SHOWN_QUANTILE_MARGIN, 1e-9))
    highest_shown = rows.find_quantile(min(parameters.quantile_levels[-1] + SHOWN_QUANTILE_MARGIN, 1.0))
    base_lower, base_upper = solution.base_range
    lowest_shown, highest_shown = (
        min(max(shown_end, -MAX_SHOWN_VALUE), MAX_SHOWN_VALUE) for shown_end in (lowest_shown, highest_shown)
    )
    # The values tie, or are so close that a plot could not tell them apart.
    if highest_shown - lowest_shown <= 1e-9 * max(
        abs(lowest_shown), abs(highest_shown), base_upper - base_lower
    ):
        range_margin = 0.05 * (max(base_upper, highest_shown) - min(base_lower, lowest_shown))
        lowest_shown, highest_shown = lowest_shown - range_margin, highest_shown + range_margin
    return (lowest_shown, highest_shown), (min(base_lower, lowest_shown), max(base_upper, highest_shown))


class BaseChange(enum.Enum):
    """The way in which the base distribution is made poorer."""

    MOVED = "Moved"
    WIDER = "Wider"


def build_poorer_bases(
    parameters: QuantileParameters, base_change: BaseChange, mechanism: Program
) -> tuple[FloatArray, list[Base]]:
    """Return by how much the base is moved or stretched, by the change, shape (k,), and the k bases so changed."""
    if base_change is BaseChange.WIDER:
        return np.array(STRETCHES_OF_BASE), [
            parameters.build_base(stretch=x, mechanism=mechanism) for x in STRETCHES_OF_BASE
        ]
    return np.array(SHIFTS_OF_BASE), [
        parameters.build_base(shift=x, mechanism=mechanism) for x in SHIFTS_OF_BASE
    ]


def simulate_answers(
    outputs: Sequence[QuantileOutput],
    num_simulated: int,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Draw joint answers block by block, with NumPy noise: a simulation, not a release.

    Under a cap each quantile's answer has a subsample of its own. The independent answers are sorted, which costs
    no privacy, so that a larger quantile never gets a smaller answer.

    Args:
        outputs: From `compute_outputs`.
        num_simulated: Joint answers to draw, 1 to `MAX_SIMULATED_ANSWERS`.
        seed: Seed of NumPy's generator.
        progress: Called with the share done, from 0 to 1.
        should_stop: Called before each block; True ends with what there is.

    Returns:
        Answers in the values' unit, shape (draws, number of quantiles); fewer than ``num_simulated`` draws if stopped.

    Raises:
        InvalidInput: ``num_simulated`` out of its range.
    """
    require.whole(1, MAX_SIMULATED_ANSWERS, size=num_simulated)
    generator = np.random.default_rng(seed)
    block_size = max(1, _BLOCK_CELLS // outputs[0].probabilities.size)
    quantile_ranks = np.argsort(np.argsort([output.quantile for output in outputs]))
    answer_blocks = [np.empty((0, len(outputs)))]
    for first_answer_index in range(0, num_simulated, block_size):
        if should_stop():
            break
        num_answers = min(block_size, num_simulated - first_answer_index)
        block_answers = [output.sample(num_answers, generator) for output in outputs]
        answer_blocks.append(np.sort(block_answers, axis=0)[quantile_ranks].T)
        progress((first_answer_index + num_answers) / num_simulated)
    return np.concatenate(answer_blocks)
