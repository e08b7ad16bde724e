"""What a person chooses for a plan: everything but the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpcore import mean
from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.parameters import (
    LINE,
    Option,
    Parameters,
    declared_in,
    gaussian_delta,
    noise_kind,
    public,
    range_end,
)
from dpcore.dataset import Dataset
from dpcore.mean import Counts, Likeness, MeanParameters, Target, VarianceSource
from dpcore.plan import lines
from dpcore.plan.budget import Budget, Program
from dpcore.plan.lines import Line, Released

FIRST_LINES = "users; rows"
LONGEST = 2000
"""Characters of all lines together."""


class Objective(Option):
    """By what the best plan is best."""

    SUM = "least sum", "Least sum"
    REACH = "least epsilon", "Least ε"
    LARGEST = "least largest", "Least largest"


def usual(data: Dataset) -> Mapping[str, Any]:
    """What a mean among the lines assumes of these data where nobody says otherwise, as `dpcore.mean.usual` has it."""
    return {name: value for name, value in mean.usual(data).items() if name != "counts"}


@dataclass(frozen=True)
class PlanParameters(Parameters):
    """What a person chooses on the Plan page: everything but the data.

    What is left out about a mean stands for what it was before users could differ: rows are independent draws, with the
    variance of the values at hand. What page and call take is `usual`.
    """

    delta: float | None = gaussian_delta(None, "noise", place=LINE)
    """At most this much probability that ε does not hold. Well below 1 / (number of users)."""
    # What is released, how well it is wanted: every release says the one, and nobody reads the other off data.
    lines: str = public.text(FIRST_LINES, "Numbers to release", max_length=LONGEST, place=LINE)
    """``users``, ``rows``, ``sum``, ``mean``, ``median``, ``quantile 0.9``, ``users per group``, ``rows per group`` and
    ``sums per group``, parted by semicolons. Each may go on with a wanted error (``within 5%`` of its value, of a
    quantile of the rows; ``within 12`` in its unit) and a ``weight 2``."""
    lower: float | None = range_end(
        None, "Lowest, L", "lowest value L", width=102, shared="lower", is_required=True, place=LINE
    )
    """Values below count as L. Public: from what the quantity is, not from data."""
    upper: float | None = range_end(
        None, "Highest, U", "highest value U", width=102, shared="upper", is_required=True, place=LINE
    )
    """Values above count as U. Public: from what the quantity is, not from data."""
    objective: Objective = public.choice(Objective.SUM, "Best plan")
    """Least sum: of squared errors over wanted errors. Least ε: at which every number has its wanted error. Least
    largest: error over wanted error; every number needs a wanted error of its own."""
    noise: NoiseKind = noise_kind("Mechanism")
    """Laplace for ε-DP. Gaussian for (ε, δ)-DP pays from about ten numbers. *Alternatives* below compares both."""
    program: Program = public.choice(Program.PYTHON, "Noise as drawn by", as_list=True, width=180)
    """Errors are those of the noise that its program draws: libraries split the budget of a mean in halves."""
    # Beside other numbers it is to be said what these are about.
    target: Target = declared_in(MeanParameters, "target", label="A mean is that of")
    variance_source: VarianceSource = declared_in(
        MeanParameters, "variance_source", VarianceSource.FROM_VALUES, label="Known of its values"
    )
    value_variance: float | None = declared_in(MeanParameters, "value_variance")
    likeness: Likeness = declared_in(MeanParameters, "likeness")
    user_share: float = declared_in(MeanParameters, "user_share")

    def _check_together(self, problems: Problems) -> None:
        if self.noise is NoiseKind.GAUSSIAN and self.delta is not None:
            problems.inside(0.0, 1.0, δ=self.delta)
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
        kinds = isinstance(self.variance_source, VarianceSource) and isinstance(self.likeness, Likeness)
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
