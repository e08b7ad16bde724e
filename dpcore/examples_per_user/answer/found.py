"""The solution for examples per user: all bounds in both ways at once, then the exact noise of the best one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.answer.against import BoundComparison
from dpcore.answer.stage import Stage
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.examples_per_user import options
from dpcore.examples_per_user.noise import find_multiplier, is_too_slow
from dpcore.examples_per_user.options import Option, Options
from dpcore.examples_per_user.parameters import ExamplesParameters, Sampling

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
            if self.parameters.way is Sampling.BOTH
            else (self.parameters.way,)
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
        best = options.evaluate_option(
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
    options_found = options.solve_options(histogram, parameters)
    solution = ExamplesSolution(parameters, histogram, options_found, options_found.best, None)
    if parameters.own_bound is None:
        return solution
    # At G = 1 both ways are one.
    samplings = solution.samplings if parameters.own_bound > 1 else solution.samplings[:1]
    entered_options = [
        options.evaluate_option(histogram, parameters, sampling, parameters.own_bound)
        for sampling in samplings
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
        best_option = options.solve_options(
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
