"""The settings of a plan: its lines as a person writes them, and the noise for a share of the budget.

The noise for a share of (epsilon, delta) is that of the program (`dpcore.common.programs.find_share_noise`). A share s
of the budget has scale 1 / (s epsilon) at sensitivity 1 with Laplace noise, and sigma / sqrt(s) with Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.common import mechanisms
from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.parameters import (
    LINE,
    Option,
    Parameters,
    gaussian_delta,
    noise_kind,
    program_choice,
    public,
    range_end,
    redeclare,
)
from dpcore.common.privacy import compute_gaussian_epsilon
from dpcore.common.programs import (
    MEAN_SPLITTING_PROGRAMS,
    Program,
    find_exact_sigma,
    find_share_noise,
    find_total_budget,
)
from dpcore.contributions import FloatArray, IntArray
from dpcore.data import group_list
from dpcore.dataset import Dataset
from dpcore.mean.parameters import Clamp, Counts, Likeness, MeanParameters, VarianceSource
from dpcore.mean.public_counts import Target
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.plan.lines import Line, LineStatistic, parse_lines

MAX_AMOUNT = 2e3
"""mu^2 beyond which epsilon is above 1,000 and not stated."""


@dataclass(frozen=True)
class Budget:
    """The budget of a whole plan, with the noise and the program that account for it.

    Attributes:
        epsilon: Of the whole plan.
        mechanism: The noise that the program draws: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: None with Laplace noise.
        program: The program that accounts for the budget.
        has_quantile: True if a quantile is among the lines; Gaussian noise is then accounted for by rho.
    """

    epsilon: float
    mechanism: NoiseKind
    delta: float | None = None
    program: Program = Program.OPENDP
    has_quantile: bool = False

    @property
    def power(self) -> int:
        """Return P in v(s) = v(1) / s^P."""
        return 2 if self.mechanism is NoiseKind.LAPLACE else 1

    @property
    def full_v(self) -> float:
        """Return v of a line that takes all of the budget: the square of its noise scale at sensitivity 1."""
        return self._full_scale**2

    @property
    def _full_scale(self) -> float:
        """Return the noise scale at sensitivity 1 of a line that takes all of the budget."""
        noise_arguments = (self.program, self.mechanism, self.epsilon, self.delta)
        return find_share_noise(*noise_arguments, has_quantile=self.has_quantile).unit_scale

    @property
    def total(self) -> float:
        """Return what a program divides, in 32 binary digits: epsilon, or with Gaussian noise rho = mu^2 / 2."""
        noise_arguments = (self.program, self.mechanism, self.epsilon, self.delta)
        return find_total_budget(*noise_arguments, has_quantile=self.has_quantile)

    @property
    def is_exact(self) -> bool:
        """Return True if Gaussian noise is accounted for exactly, and not by rho."""
        return not self.has_quantile and self.program not in (Program.OPENDP, Program.TUMULT)

    def divide(self, shares: npt.ArrayLike) -> FloatArray:
        """Return v, the noise variance per squared sensitivity, for shares of the budget in [0, 1]; infinite at 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.full_v / np.asarray(shares, dtype=np.float64) ** self.power)

    def convert_to_epsilon(self, amount: float) -> float:
        """Convert an amount (1 / scale or mu^2) to the epsilon of a plan that has it; 0 for 0, infinite if too large.

        Args:
            amount: 1 / scale with Laplace noise, mu^2 = 1 / scale^2 with Gaussian noise, at sensitivity 1.
        """
        if self.mechanism is NoiseKind.LAPLACE or amount == 0.0:
            return amount * (self._full_scale * self.epsilon)
        assert self.delta is not None
        if not 0.0 < amount < MAX_AMOUNT:
            return math.inf
        if not self.is_exact:
            return mechanisms.compute_gaussian_epsilon(amount**-0.5, float(self.delta))
        scale_ratio = self._full_scale / find_exact_sigma(self.epsilon, self.delta)
        return compute_gaussian_epsilon(amount**-0.5 / scale_ratio, self.delta)

    @property
    def exact_epsilon(self) -> float:
        """Compute the epsilon that is really spent at delta, if all noise were continuous and nothing rounded."""
        if self.mechanism is NoiseKind.LAPLACE:
            return self.epsilon
        assert self.delta is not None
        return compute_gaussian_epsilon(self._full_scale, self.delta)


NUM_PARTS = 2**20
"""Parts of the budget: every share is a whole number of them."""
DEFAULT_LINES = "users; rows"
MAX_LINES_CHARACTERS = 2000
FIELDS_PROPOSED_FOR_MEANS = ("variance_source", "likeness", "target")
"""Settings of a mean that follow from the data; see `choose_defaults`."""
FIELDS_OF_MEAN_LINES = (*FIELDS_PROPOSED_FOR_MEANS, "value_variance", "user_share", "clamp")


def round_to_parts(shares: npt.ArrayLike) -> IntArray:
    """Round shares to integer parts that add up to `NUM_PARTS`, at least 1 for a share above 0.

    Args:
        shares: At least 0, not all 0, shape (k,); scaled to sum to 1.
    """
    line_shares = np.asarray(shares, dtype=np.float64)
    exact_parts = line_shares / line_shares.sum() * NUM_PARTS
    part_counts = np.where(line_shares > 0.0, np.maximum(np.floor(exact_parts), 1.0), 0.0).astype(np.int64)
    num_missing_parts = NUM_PARTS - int(part_counts.sum())
    # The largest remainders get the missing parts; if small shares were lifted to 1, the largest line pays.
    for line_index in np.argsort(part_counts - exact_parts, kind="stable")[: max(num_missing_parts, 0)]:
        part_counts[line_index] += line_shares[line_index] > 0.0
    part_counts[int(np.argmax(part_counts))] += NUM_PARTS - int(part_counts.sum())
    return part_counts


class Objective(Option):
    """The quantity that the best plan minimises."""

    SUM = "least sum", "Least sum"
    REACH = "least epsilon", "Least ε"
    LARGEST = "least largest", "Least largest"


def choose_defaults(dataset: Dataset) -> Mapping[str, Any]:
    """Return the defaults of `dpcore.mean.choose_defaults` that apply to a mean among the lines, for these data."""
    # Lines may all name further columns, of data without a first one.
    dataset_with_values = next(
        (each for each in (dataset, *dataset.further_datasets) if each.values is not None), dataset
    )
    return {
        name: default_value
        for name, default_value in mean.choose_defaults(dataset_with_values).items()
        if name != "counts"
    }


@dataclass(frozen=True)
class PlanParameters(Parameters):
    """The settings of the page *Budget plan*: everything but the data.

    Omitted settings of a mean are those of independent rows with the variance of the values in use. Page and
    call take the defaults of `choose_defaults`.
    """

    delta: float | None = gaussian_delta(None, "mechanism", place=LINE)
    """Probability that ε does not hold: well below 1 / users."""
    # Public: every release names what is released, and nobody reads off data how exact it is wanted.
    lines: str = public.text(
        DEFAULT_LINES, "Statistics to release", max_length=MAX_LINES_CHARACTERS, place=LINE
    )
    """``users``, ``rows``, ``sum``, ``mean`` or ``share``, ``variance``, ``standard deviation``, ``median``, ``quantile
    0.9``, ``users per group``, ``rows per group``, ``sums per group``; separated by semicolons. A target error may
    follow (``within 5%``, the default; ``within 12`` in its unit), and a ``weight 2``. ``mean of tax from 0 to 20`` is
    of another column. A mean's number of rows is released with noise, too."""
    lower: float | None = range_end(
        None, "Lowest, L", "lowest value L", width=102, shared="lower", is_required=True, place=LINE
    )
    """Values below count as L. Public: not from data."""
    upper: float | None = range_end(
        None, "Highest, U", "highest value U", width=102, shared="upper", is_required=True, place=LINE
    )
    """Values above count as U. Public: not from data."""
    objective: Objective = public.choice(Objective.SUM, "Best plan")
    """Least sum: of squared errors over target errors. Least ε: for all target errors. Least largest: error over wanted
    error."""
    mechanism: NoiseKind = noise_kind("Mechanism", former_name="noise")
    """Laplace for ε-DP. Gaussian for (ε, δ)-DP pays from about ten numbers."""
    program: Program = program_choice(width=200, place=LINE)
    """Errors and shares are those of its noise, and *Get code* opens with it."""
    # A mean stands among other numbers here, so that the labels have to name it.
    target: Target = redeclare(MeanParameters, "target", label="A mean is that of")
    variance_source: VarianceSource = redeclare(
        MeanParameters, "variance_source", VarianceSource.FROM_VALUES, label="Known of its values"
    )
    value_variance: float | None = redeclare(MeanParameters, "value_variance", is_required=False)
    likeness: Likeness = redeclare(MeanParameters, "likeness")
    user_share: float = redeclare(MeanParameters, "user_share")
    clamp: Clamp = redeclare(MeanParameters, "clamp", label="A mean clamps")
    groups: str | None = redeclare(PerGroupParameters, "groups", only_with=None)
    edges: str | None = redeclare(PerGroupParameters, "edges", only_with=None)

    def _check_together(self, problems: Problems) -> None:
        """Add problems of fields together: lines, range, program, settings of a mean, and target errors."""
        if self.mechanism is NoiseKind.GAUSSIAN and self.delta is not None:
            problems.inside(0.0, 1.0, δ=self.delta)
        parsed_lines: tuple[Line, ...] = ()
        if not isinstance(self.lines, str):
            problems.add("lines must be a text")
        elif len(self.lines) > MAX_LINES_CHARACTERS:
            problems.add(f"the lines have more than {MAX_LINES_CHARACTERS:,} characters")
        else:
            parsed_lines = parse_lines(self.lines, problems)
        # A line that names its own range needs none of the plan.
        labels_with_range = [
            line.label for line in parsed_lines if line.statistic.needs_range and line.lower is None
        ]
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
        with problems.collecting():
            group_list.find_groups(self.groups, self.edges)
        quantile_labels = [line.label for line in parsed_lines if line.statistic is LineStatistic.QUANTILE]
        if self.program is Program.PIPELINEDP and self.mechanism is NoiseKind.GAUSSIAN and quantile_labels:
            problems.add(
                f"the error of {quantile_labels[0]} in PipelineDP's tree is known with Laplace noise alone",
                remedy="Choose Laplace noise, or OpenDP, Tumult or plain Python",
            )
        has_mean = any(line.statistic is LineStatistic.MEAN for line in parsed_lines)
        spread_lines = [line for line in parsed_lines if line.statistic.is_spread]
        if self.program in (Program.PIPELINEDP, Program.TUMULT) and any(line.column for line in parsed_lines):
            problems.add(
                f"for several value columns there is no program in {self.program.value}",
                remedy="Choose OpenDP, plain Python or BigQuery",
            )
        if self.program in MEAN_SPLITTING_PROGRAMS and spread_lines:
            problems.add(
                f"for the {spread_lines[0].label} there is no program in {self.program.value}",
                remedy="Choose OpenDP or plain Python",
            )
        if len({line.column for line in spread_lines}) < len(spread_lines):
            problems.add(
                "variance and standard deviation are one release",
                remedy="Keep one of them: the standard deviation is the root of the variance",
            )
        if self.clamp is Clamp.USERS and self.program in MEAN_SPLITTING_PROGRAMS and has_mean:
            problems.add(
                f"{self.program.value} cannot clamp users' deviations",
                remedy="Choose OpenDP or plain Python, or clamp rows",
            )
        are_options = isinstance(self.variance_source, VarianceSource) and isinstance(self.likeness, Likeness)
        if is_range_valid and are_options and (has_mean or spread_lines):
            with problems.collecting():
                self.mean_parameters  # noqa: B018 - it raises what does not hold together.
        labels_without_target = [line.label for line in parsed_lines if line.target_error is None]
        if self.objective is Objective.LARGEST and labels_without_target:
            problems.add(
                "the largest error over target error needs a target error in every line; "
                f"{labels_without_target[0]} has none",
                remedy="Add one: within 5%",
            )

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Return the columns that lines name."""
        return tuple(dict.fromkeys(line.column for line in self.parsed_lines if line.column))

    def choose_for(self, line: Line) -> PlanParameters:
        """Return these parameters with the range that a line names, or unchanged if it names none.

        An entered variance is that of the first column. For a line on another column the worst case replaces it.
        """
        if line.lower is None or line.upper is None:
            return self
        range_changes: dict[str, Any] = {"lower": line.lower, "upper": line.upper}
        if self.variance_source is VarianceSource.ENTERED and line.column:
            range_changes |= {"variance_source": VarianceSource.WORST_CASE, "value_variance": None}
        return replace(self, **range_changes)

    @property
    def mean_parameters(self) -> MeanParameters:
        """Return the parameters of a mean among the lines, at epsilon 1, with private counts.

        Raises:
            InvalidInput: Range, variance and share do not hold together.
        """
        assert self.lower is not None
        assert self.upper is not None
        mean_settings = {field_name: getattr(self, field_name) for field_name in FIELDS_OF_MEAN_LINES}
        return MeanParameters(1.0, self.lower, self.upper, counts=Counts.PRIVATE, **mean_settings)

    @property
    def parsed_lines(self) -> tuple[Line, ...]:
        """Return the lines as objects, in the order in which they are written; unreadable ones are left out."""
        return parse_lines(self.lines, Problems())

    @property
    def budget(self) -> Budget:
        """Return the budget that is divided among the lines.

        Its noise is that of the mechanism, but always Laplace noise with BigQuery.
        """
        has_quantile = any(line.statistic is LineStatistic.QUANTILE for line in self.parsed_lines)
        draws_laplace = self.mechanism is NoiseKind.LAPLACE or self.program is Program.BIGQUERY
        mechanism, delta = (NoiseKind.LAPLACE, None) if draws_laplace else (self.mechanism, self.delta)
        return Budget(self.epsilon, mechanism, delta, self.program, has_quantile)
