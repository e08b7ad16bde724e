"""The settings of a plan: everything but the data."""

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
from dpcore.plan.lines import Line, LineStatistic

FIRST_LINES = "users; rows"
MAX_TEXT = 2000
"""Characters of all lines together."""


class Objective(enum.Enum):
    """The quantity that the best plan minimises."""

    SUM = "least sum"
    LARGEST = "least largest"
    REACH = "least epsilon"


def choose_defaults(dataset: Dataset) -> Mapping[str, Any]:
    """Return the default assumptions on a mean among the lines for these data, as `dpcore.mean.usual` does."""
    return {name: value for name, value in mean.choose_defaults(dataset).items() if name != "counts"}


@dataclass(frozen=True)
class PlanParameters:
    """The settings of the page *Budget plan*: everything but the data.

    Omitted settings of a mean are those of independent rows with the variance of the values in use. Page and
    call take the defaults of `choose_defaults`.

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
    lines: str = field(default=FIRST_LINES, metadata={text_fields.LONGEST: MAX_TEXT})
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
            parsed = self._check_lines(problems)
            range_labels = [line.label for line in parsed if line.statistic.needs_range]
            is_valid_range = False
            if (self.lower is None) != (self.upper is None):
                problems.add("lower and upper go together", remedy="Enter both, or leave both empty")
            elif self.lower is not None:
                if problems.between(-1e15, 1e15, lower=self.lower, upper=self.upper):
                    is_valid_range = problems.ascending(lower=self.lower, upper=self.upper)
            elif range_labels:
                problems.add(
                    f"{range_labels[0]} needs the range of a value",
                    remedy="Enter lower and upper, from what the quantity is and not from data",
                )
            self._check_program(problems, parsed)
            self._check_mean(problems, parsed if is_valid_range else ())
            labels_without_target = [line.label for line in parsed if line.target_error is None]
            if self.objective is Objective.LARGEST and labels_without_target:
                problems.add(
                    "the largest error over wanted error needs a wanted error in every line; "
                    f"{labels_without_target[0]} has none",
                    remedy="With one relative error for all, the hardest line would get nearly everything",
                )

    def _check_lines(self, problems: Problems) -> tuple[Line, ...]:
        """Add the problems of the text of the lines, and return the lines."""
        if not isinstance(self.lines, str):
            problems.add("lines must be a text")
            return ()
        if len(self.lines) > MAX_TEXT:
            problems.add(f"the lines have more than {MAX_TEXT:,} characters")
            return ()
        return lines.parse_lines(self.lines, problems)

    def _check_program(self, problems: Problems, parsed: tuple[Line, ...]) -> None:
        """Add the problems of lines that no program of the library releases, so that their error is unknown."""
        if self.program not in (Program.PIPELINEDP, Program.TUMULT):
            return
        quantile_labels = [line.label for line in parsed if line.statistic is LineStatistic.QUANTILE]
        if quantile_labels:
            problems.add(
                f"{self.program.value} finds {quantile_labels[0]} in a way of its own, of which no error is known here",
                remedy="Take OpenDP or plain Python, or leave the quantile out",
            )
        if self.program is Program.PIPELINEDP and self.noise is NoiseKind.GAUSSIAN:
            problems.add(
                "PipelineDP divides epsilon and delta among Gaussian releases, which takes about twice the noise",
                remedy="Take Laplace noise, or another program",
            )

    def _check_mean(self, problems: Problems, parsed: tuple[Line, ...]) -> None:
        """Add the problems of the settings of a mean."""
        are_valid_types = problems.of_kind(Target, target=self.target)
        are_valid_types &= problems.of_kind(VarianceSource, variance_source=self.variance_source)
        are_valid_types &= problems.of_kind(Likeness, likeness=self.likeness)
        if are_valid_types and any(line.statistic is LineStatistic.MEAN for line in parsed):
            with problems.collecting():
                self.mean_parameters  # noqa: B018 - it says what does not hold together.

    @property
    def mean_parameters(self) -> MeanParameters:
        """Return the parameters of a mean among the lines, at epsilon 1, with private counts.

        Raises:
            InvalidInput: Range, variance and share do not hold together.
        """
        assert self.lower is not None
        assert self.upper is not None
        return MeanParameters(
            1.0,
            self.lower,
            self.upper,
            self.variance_source,
            self.value_variance,
            counts=Counts.PRIVATE,
            target=self.target,
            likeness=self.likeness,
            user_share=self.user_share,
        )

    @property
    def parsed_lines(self) -> tuple[Line, ...]:
        """Return the parsed lines."""
        return lines.parse_lines(self.lines, Problems())

    @property
    def budget(self) -> Budget:
        """Return the budget that is divided."""
        return Budget(self.epsilon, self.noise, self.delta)

    @property
    def statistics(self) -> frozenset[LineStatistic]:
        """Return the statistics of the lines."""
        return frozenset(line.statistic for line in self.parsed_lines)
