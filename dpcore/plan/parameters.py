"""The settings of a plan: everything but the data."""

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
from dpcore.plan.lines import Budget, Line, LineStatistic, Program, parse_lines

FIRST_LINES = "users; rows"
MAX_TEXT = 2000
"""Characters of all lines together."""
PROPOSED_MEAN_FIELDS = ("variance_source", "likeness", "target")
"""Settings of a mean that follow from the data; see `choose_defaults`."""
MEAN_FIELDS = (*PROPOSED_MEAN_FIELDS, "value_variance", "user_share")
"""All settings of a mean among the lines."""


class Objective(Option):
    """The quantity that the best plan minimises."""

    SUM = "least sum", "Least sum"
    REACH = "least epsilon", "Least ε"
    LARGEST = "least largest", "Least largest"


def choose_defaults(dataset: Dataset) -> Mapping[str, Any]:
    """Return the defaults of `dpcore.mean.choose_defaults` that apply to a mean among the lines, for these data."""
    return {name: value for name, value in mean.choose_defaults(dataset).items() if name != "counts"}


@dataclass(frozen=True)
class PlanParameters(Parameters):
    """The settings of the page *Budget plan*: everything but the data.

    Omitted settings of a mean are those of independent rows with the variance of the values in use. Page and
    call take the defaults of `choose_defaults`.
    """

    delta: float | None = gaussian_delta(None, "mechanism", place=LINE)
    """At most this much probability that ε does not hold. Well below 1 / (number of users)."""
    # Public: every release names what is released, and nobody reads off data how exact it is wanted.
    lines: str = public.text(FIRST_LINES, "Numbers to release", max_length=MAX_TEXT, place=LINE)
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
    mechanism: NoiseKind = noise_kind("Mechanism", former_name="noise")
    """Laplace for ε-DP. Gaussian for (ε, δ)-DP pays from about ten numbers. *Alternatives* below compares both."""
    program: Program = public.choice(Program.PYTHON, "Noise as drawn by", as_list=True, width=180)
    """Errors are those of the noise that its program draws: libraries split the budget of a mean in halves."""
    # A mean stands among other numbers here, so that the labels have to name it.
    target: Target = declared_in(MeanParameters, "target", label="A mean is that of")
    variance_source: VarianceSource = declared_in(
        MeanParameters, "variance_source", VarianceSource.FROM_VALUES, label="Known of its values"
    )
    value_variance: float | None = declared_in(MeanParameters, "value_variance", is_required=False)
    likeness: Likeness = declared_in(MeanParameters, "likeness")
    user_share: float = declared_in(MeanParameters, "user_share")

    def _check_together(self, problems: Problems) -> None:
        if self.mechanism is NoiseKind.GAUSSIAN and self.delta is not None:
            problems.inside(0.0, 1.0, δ=self.delta)
        lines = self._check_lines(problems)
        labels_with_range = [line.label for line in lines if line.statistic.needs_range]
        is_range_valid = False
        if (self.lower is None) != (self.upper is None):
            problems.add("lower and upper go together", remedy="Enter both, or leave both empty")
        elif self.lower is not None:
            if problems.between(-1e15, 1e15, lower=self.lower, upper=self.upper):
                is_range_valid = problems.ascending(lower=self.lower, upper=self.upper)
        elif labels_with_range:
            problems.add(
                f"{labels_with_range[0]} needs the range of a value",
                remedy="Enter lower and upper, from what the quantity is and not from data",
            )
        self._check_program(problems, lines)
        are_options = isinstance(self.variance_source, VarianceSource) and isinstance(self.likeness, Likeness)
        if is_range_valid and are_options and any(line.statistic is LineStatistic.MEAN for line in lines):
            with problems.collecting():
                self.mean_parameters  # noqa: B018 - it raises what does not hold together.
        labels_without_target = [line.label for line in lines if line.target_error is None]
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
        elif len(self.lines) > MAX_TEXT:
            problems.add(f"the lines have more than {MAX_TEXT:,} characters")
        else:
            return parse_lines(self.lines, problems)
        return ()

    def _check_program(self, problems: Problems, lines: tuple[Line, ...]) -> None:
        """Add the problems of lines that no program of the library releases, so that their error is unknown."""
        quantile_labels = [line.label for line in lines if line.statistic is LineStatistic.QUANTILE]
        if self.program in (Program.PIPELINEDP, Program.TUMULT) and quantile_labels:
            problems.add(
                f"{self.program.value} finds {quantile_labels[0]} in a way of its own, of which no error is known here",
                remedy="Take OpenDP or plain Python, or leave the quantile out",
            )
        if self.program is Program.PIPELINEDP and self.mechanism is NoiseKind.GAUSSIAN:
            problems.add(
                "PipelineDP divides epsilon and delta among Gaussian releases, which takes about twice the noise",
                remedy="Take Laplace noise, or another program",
            )

    @property
    def mean_parameters(self) -> MeanParameters:
        """Return the parameters of a mean among the lines, at epsilon 1, with private counts.

        Raises:
            InvalidInput: Range, variance and share do not hold together.
        """
        assert self.lower is not None
        assert self.upper is not None
        settings = {name: getattr(self, name) for name in MEAN_FIELDS}
        return MeanParameters(1.0, self.lower, self.upper, counts=Counts.PRIVATE, **settings)

    @property
    def parsed_lines(self) -> tuple[Line, ...]:
        """Return the parsed lines."""
        return parse_lines(self.lines, Problems())

    @property
    def budget(self) -> Budget:
        """Return the budget that is divided."""
        return Budget(self.epsilon, self.mechanism, self.delta)
