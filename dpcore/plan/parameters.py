"""What a person chooses for a plan: everything but the data."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcore import mean
from dpcore.common import noise_error, text_fields
from dpcore.common.alike import ASSUMED_SHARE
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.dataset import Dataset
from dpcore.mean import Counts, Likeness, MeanParameters, Target, VarianceSource
from dpcore.plan import lines
from dpcore.plan.budget import Budget, Program
from dpcore.plan.lines import Line, Released

FIRST_LINES = "users; rows"
LONGEST = 2000
"""Characters of all lines together."""


class Objective(enum.Enum):
    """By what the best plan is best."""

    SUM = "least sum"
    LARGEST = "least largest"
    REACH = "least epsilon"


def usual(data: Dataset) -> Mapping[str, Any]:
    """What a mean among the lines assumes of these data where nobody says otherwise, as `dpcore.mean.usual` has it."""
    return {name: value for name, value in mean.usual(data).items() if name != "counts"}


@dataclass(frozen=True)
class PlanParameters:
    """What a person chooses on the Plan page: everything but the data.

    What is left out about a mean stands for what it was before users could differ: rows are independent draws, with the
    variance of the values at hand. What page and call take is `usual`.

    Attributes:
        epsilon: Privacy budget of all lines together, in `dpcore.common.checks.EPSILON_RANGE`; where the least epsilon
            is asked for, it is found and this one is not used.
        lines: What is released, parted by semicolons: ``users``, ``rows``, ``sum``, ``mean``, ``median``,
            ``quantile 0.9``, ``users per group``, ``rows per group``, ``sums per group``; each may go on with a wanted
            error (``within 5%`` of its value, of a quantile of the rows; ``within 12`` in its unit) and a ``weight 2``.
        objective: The least sum of squared errors over wanted errors, the least of the largest of them, or the least
            epsilon at which every line has its wanted error.
        noise: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        lower: Least value of a row, public; with ``upper`` where a mean or a quantile is among the lines.
        upper: Greatest value of a row, public.
        program: Which library draws the noise. Quantiles are for OpenDP and plain Python,
            and PipelineDP is for Laplace noise.
        target: Whether a mean is to come close to that of this very table, or to that of the population.
        variance_source: Where sigma^2, the variance of one row's value, comes from for a mean. Where it is the values,
            and the mean of this very table is wanted, the values are read themselves: nothing is assumed of users then.
        value_variance: sigma^2 where it is entered, in the values' unit squared.
        likeness: How alike rows of one user are taken to be for a mean.
        user_share: rho in [0, 1] where it is entered: the share of sigma^2 that lies between users.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    lines: str = field(default=FIRST_LINES, metadata={text_fields.LONGEST: LONGEST})
    objective: Objective = Objective.SUM
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    lower: float | None = None
    upper: float | None = None
    program: Program = Program.PYTHON
    target: Target = Target.POPULATION
    variance_source: VarianceSource = VarianceSource.FROM_VALUES
    value_variance: float | None = None
    likeness: Likeness = Likeness.INDEPENDENT
    user_share: float = ASSUMED_SHARE

    def __post_init__(self) -> None:
        with Problems() as problems:
            if problems.between(*EPSILON_RANGE, epsilon=self.epsilon):
                noise_error.check_noise(problems, self.noise, self.epsilon, self.delta)
            problems.of_kind(Objective, objective=self.objective)
            problems.of_kind(Program, program=self.program)
            asked = self._check_lines(problems)
            ranged = [line.what for line in asked if line.released.ranged]
            in_order = False
            if (self.lower is None) != (self.upper is None):
                problems.add("lower and upper go together", remedy="Enter both, or leave both empty")
            elif self.lower is not None:
                if problems.between(-1e15, 1e15, lower=self.lower, upper=self.upper):
                    in_order = problems.ascending(lower=self.lower, upper=self.upper)
            elif ranged:
                problems.add(
                    f"{ranged[0]} needs the range of a value",
                    remedy="Enter lower and upper, from what the quantity is and not from data",
                )
            self._check_program(problems, asked)
            self._check_mean(problems, asked if in_order else ())
            unsaid = [line.what for line in asked if line.wanted is None]
            if self.objective is Objective.LARGEST and unsaid:
                problems.add(
                    f"the largest error over wanted error needs a wanted error in every line; {unsaid[0]} has none",
                    remedy="With one relative error for all, the hardest line would get nearly everything",
                )

    def _check_lines(self, problems: Problems) -> tuple[Line, ...]:
        if not isinstance(self.lines, str):
            problems.add("lines must be a text")
            return ()
        if len(self.lines) > LONGEST:
            problems.add(f"the lines have more than {LONGEST:,} characters")
            return ()
        return lines.read(self.lines, problems)

    def _check_program(self, problems: Problems, asked: tuple[Line, ...]) -> None:
        """What no program of the library draws, so that no error of it can be said."""
        if self.program not in (Program.PIPELINEDP, Program.TUMULT):
            return
        ranked = [line.what for line in asked if line.released is Released.QUANTILE]
        if ranked:
            problems.add(
                f"{self.program.value} finds {ranked[0]} in a way of its own, of which no error is known here",
                remedy="Take OpenDP or plain Python, or leave the quantile out",
            )
        if self.program is Program.PIPELINEDP and self.noise is NoiseKind.GAUSSIAN:
            problems.add(
                "PipelineDP divides epsilon and delta among Gaussian releases, which takes about twice the noise",
                remedy="Take Laplace noise, or another program",
            )

    def _check_mean(self, problems: Problems, asked: tuple[Line, ...]) -> None:
        kinds = problems.of_kind(Target, target=self.target)
        kinds &= problems.of_kind(VarianceSource, variance_source=self.variance_source)
        kinds &= problems.of_kind(Likeness, likeness=self.likeness)
        if kinds and any(line.released is Released.MEAN for line in asked):
            with problems.collecting():
                self.of_mean  # noqa: B018 - it says what does not hold together.

    @property
    def of_mean(self) -> MeanParameters:
        """The question of a mean among the lines, at epsilon 1: counts are private, as the plan adds or removes users.

        Raises:
            InvalidInput: Range, variance and share do not hold together.
        """
        assert self.lower is not None
        assert self.upper is not None
        return MeanParameters(
            1.0,
            self.lower,
            self.upper,
            variance_source=self.variance_source,
            value_variance=self.value_variance,
            counts=Counts.PRIVATE,
            target=self.target,
            likeness=self.likeness,
            user_share=self.user_share,
        )

    @property
    def asked(self) -> tuple[Line, ...]:
        """The lines."""
        return lines.read(self.lines, Problems())

    @property
    def budget(self) -> Budget:
        """What is divided."""
        return Budget(self.epsilon, self.noise, self.delta)

    @property
    def has(self) -> frozenset[Released]:
        """What the lines release."""
        return frozenset(line.released for line in self.asked)
