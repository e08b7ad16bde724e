"""What the mathematics finds for examples per user: all bounds both ways at once, then the chosen one's exact noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.answer.against import Against
from dpcore.answer.stage import Stage
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.examples_per_user import options
from dpcore.examples_per_user.noise import multiplier, takes_too_long
from dpcore.examples_per_user.options import Option, Options
from dpcore.examples_per_user.parameters import ExamplesParameters, Way

NOT_COMPARED = ("own_bound",)


@dataclass(frozen=True)
class ExamplesFound:
    """All that depends on data and question.

    Attributes:
        parameters: The question.
        histogram: Of the users' examples.
        options: All bounds, both ways, by the quick bound on the noise.
        best: The chosen one; with the exact noise once that is known.
        own: The person's own bound, the better of the ways asked about; None without one, or where it keeps too few.
        stage: First while the exact noise is searched for.
    """

    parameters: ExamplesParameters
    histogram: ContributionHistogram
    options: Options
    best: Option
    own: Option | None
    stage: Stage = Stage.FINAL

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways that were asked about."""
        return (Way.EXAMPLES, Way.USERS) if self.parameters.way is Way.BOTH else (self.parameters.way,)

    @property
    def exact(self) -> ExactNoise | None:
        """What the exact noise depends on; None where the quick bound is exact, or nothing quicker than minutes."""
        of, best = self.parameters, self.options.best
        moves = 1 if best.way is Way.USERS else best.bound
        if not best.at_most or takes_too_long(moves, best.rate):
            return None
        return ExactNoise(moves, best.rate, of.epsilon, of.delta, of.steps)

    def with_noise(self, sigma: float | None) -> ExamplesFound:
        """The same with the exact noise of the chosen bound; None for none yet."""
        if sigma is None:
            return replace(self, stage=Stage.FIRST)
        of = self.options.best
        best = options.option(self.histogram, self.parameters, of.way, of.bound, sigma)
        assert best is not None
        return replace(self, best=best, stage=Stage.FINAL)


@dataclass(frozen=True)
class ExactNoise:
    """The question of `dpcore.examples_per_user.noise.multiplier`."""

    examples: int
    rate: float
    epsilon: float
    delta: float
    steps: int

    def search(self, should_stop: ShouldStop = never) -> float | None:
        """Answer it, in seconds; None where it was stopped."""
        return multiplier(self.examples, self.rate, self.epsilon, self.delta, self.steps, should_stop)


def quick(histogram: ContributionHistogram, parameters: ExamplesParameters) -> ExamplesFound:
    """Everything by the quick bound on the noise.

    Raises:
        InvalidInput: B is more than all examples.
    """
    found = options.find(histogram, parameters)
    of = ExamplesFound(parameters, histogram, found, found.best, None)
    if parameters.own_bound is None:
        return of
    # At G = 1 both ways are one.
    ways = of.ways if parameters.own_bound > 1 else of.ways[:1]
    own = [options.option(histogram, parameters, way, parameters.own_bound) for way in ways]
    possible = [one for one in own if one is not None]
    return replace(of, own=min(possible, key=lambda one: one.error, default=None))


def find(data: Dataset, parameters: ExamplesParameters) -> ExamplesFound:
    """Everything, with the exact noise of the chosen bound."""
    found = quick(data.histogram, parameters)
    return found if found.exact is None else found.with_noise(found.exact.search())


def against_epsilon(data: Dataset, parameters: ExamplesParameters) -> Against:
    """The best bound and the estimated error at any ε, by the quick bound on the noise."""

    def best(epsilon: float) -> tuple[float, float]:
        found = options.find(data.histogram, replace(parameters, epsilon=epsilon, own_bound=None)).best
        return float(found.bound), found.error

    return Against(
        "Best bound (examples per user)",
        "Estimated error (gradient norms)",
        best,
        slow=True,
        caption="Best of the bounds tried, by this estimate, with noise by Rényi accounting.",
    )
