"""The settings of a plan: its lines as a person writes them, and the noise for a share of the budget.

The noise for a share of (epsilon, delta) is that of the program (`dpcore.common.programs.find_share_noise`). A share s
of the budget has scale 1 / (s epsilon) at sensitivity 1 with Laplace noise, and sigma / sqrt(s) with Gaussian noise.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.common import mechanisms, wording
from dpcore.common.checks import Problems, refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.parameters import (
    LINE,
    Option,
    Parameters,
    declared_in,
    gaussian_delta,
    noise_kind,
    program_choice,
    public,
    range_end,
)
from dpcore.common.privacy import compute_gaussian_epsilon
from dpcore.common.programs import SPLITS_MEANS, Program, find_exact_sigma, find_share_noise, find_total
from dpcore.contributions import FloatArray
from dpcore.data import group_list
from dpcore.dataset import Dataset
from dpcore.mean.parameters import Clamp, Counts, Likeness, MeanParameters, VarianceSource
from dpcore.mean.public_counts import Target
from dpcore.per_group.parameters import PerGroupParameters

MAX_AMOUNT = 2e3
"""mu^2 beyond which epsilon is above 1,000 and not stated."""


@dataclass(frozen=True)
class Budget:
    """One budget that is divided.

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
        return find_total(*noise_arguments, has_quantile=self.has_quantile)

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
MAX_LINES = 50
DEFAULT_TARGET_SHARE = 0.05
"""Target error of a line that names none, as a share of its value, or of the rows for a quantile."""


class LineStatistic(enum.Enum):
    """The statistic of one line; the value is how it is written."""

    USERS = "users"
    ROWS = "rows"
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"
    DEVIATION = "standard deviation"
    QUANTILE = "quantile"
    GROUP_USERS = "users per group"
    GROUP_ROWS = "rows per group"
    GROUP_SUMS = "sums per group"

    @property
    def is_per_group(self) -> bool:
        """Return True if the line has one number per group."""
        return self in (LineStatistic.GROUP_USERS, LineStatistic.GROUP_ROWS, LineStatistic.GROUP_SUMS)

    @property
    def needs_values(self) -> bool:
        """Return True if the line needs the column of values."""
        return self.needs_range or self in (LineStatistic.SUM, LineStatistic.GROUP_SUMS)

    @property
    def needs_range(self) -> bool:
        """Return True if the line needs the range of a value."""
        return self in (LineStatistic.MEAN, LineStatistic.QUANTILE) or self.is_spread

    @property
    def is_spread(self) -> bool:
        """Return True for the variance and its root, which is the same release."""
        return self in (LineStatistic.VARIANCE, LineStatistic.DEVIATION)

    @property
    def has_mean_settings(self) -> bool:
        """Return True if the error goes by the settings of a mean."""
        return self is LineStatistic.MEAN or self.is_spread


@dataclass(frozen=True)
class Line:
    """One number, or one number per group, of a plan.

    Attributes:
        statistic: What.
        quantile: q, strictly between 0 and 1, of a quantile; None of all others.
        target_error: The target error, above 0; None for `DEFAULT_TARGET_SHARE` of the value.
        is_relative: Whether ``target_error`` is a share of the value (of a quantile: of the rows), else it is in its
            own unit.
        weight: How much its squared error counts, above 0.

    Raises:
        InvalidInput: All problems at once.
    """

    statistic: LineStatistic
    quantile: float | None = None
    target_error: float | None = None
    is_relative: bool = True
    weight: float = 1.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            if (self.statistic is LineStatistic.QUANTILE) != (self.quantile is not None):
                problems.add("only a quantile names a share: quantile 0.5 is the median")
            elif self.quantile is not None:
                problems.inside(0.0, 1.0, quantile=self.quantile)
            if self.target_error is not None:
                problems.between(1e-12, 1e15, **{f"the target error of {self.label}": self.target_error})
            problems.between(1e-6, 1e6, **{f"the weight of {self.label}": self.weight})

    @property
    def label(self) -> str:
        """Return the statistic as it is written."""
        return _write_label(self.statistic.value, self.quantile)

    @property
    def text(self) -> str:
        """Return the line as it is written."""
        text = self.label
        if self.target_error is not None and self.is_relative:
            text += f" within {wording.digits(float(f'{100.0 * self.target_error:.12g}'))}%"
        elif self.target_error is not None:
            text += f" within {wording.digits(self.target_error)}"
        return text if self.weight == 1.0 else f"{text} weight {wording.digits(self.weight)}"


STATISTIC_BY_NAME = {statistic.value: statistic for statistic in LineStatistic} | {
    "median": LineStatistic.QUANTILE,
    "sum per group": LineStatistic.GROUP_SUMS,
}
_LINE = re.compile(
    rf"(?P<statistic>{'|'.join(STATISTIC_BY_NAME)})(?: (?P<quantile>[0-9.e+-]+))?"
    r"(?: within (?P<target>[0-9.e+-]+) ?(?P<percent>%)?)?(?: weight (?P<weight>[0-9.e+-]+))?"
)
EXAMPLE = "rows; sum within 2%; quantile 0.9 within 1% weight 2; rows per group"


def parse_lines(text: str, problems: Problems) -> tuple[Line, ...]:
    """Parse the lines of a text, separated by semicolons or line breaks; unreadable ones are problems and left out.

    Args:
        text: As a person writes it.
        problems: Takes what is wrong, with the number of the line.
    """
    parsed_lines: list[Line] = []
    pieces = _split_text(text)
    for line_number, piece in enumerate(pieces[: MAX_LINES + 1], start=1):
        with problems.collecting():
            match = _LINE.fullmatch(piece)
            label, target_text = _split_line(piece)
            if match is None and target_text and _LINE.fullmatch(label):
                raise refuse(
                    f"the target error of {label} cannot be read; got {target_text[:40]!r}",
                    remedy="Write a share, as within 5%, or a number in its own unit, as within 12",
                )
            if match is None:
                names_text = ", ".join(statistic.value for statistic in LineStatistic)
                raise refuse(
                    f"line {line_number} cannot be read; got {piece[:40]!r}",
                    remedy=f"A line is one of {names_text}, as in: {EXAMPLE}",
                )
            quantile, target_error, weight = _read_numbers(match, line_number)
            is_relative = match["percent"] is not None or target_error is None
            if match["percent"] is not None and target_error is not None:
                target_error /= 100.0
            statistic = STATISTIC_BY_NAME[match["statistic"]]
            weight = 1.0 if weight is None else weight
            parsed_lines.append(Line(statistic, quantile, target_error, is_relative, weight))
    if len(pieces) > MAX_LINES:
        problems.add(f"a plan has at most {MAX_LINES} lines; there are {len(pieces)}")
    labels = [line.label for line in parsed_lines]
    for label in dict.fromkeys(labels):
        if labels.count(label) > 1:
            problems.add(f"{label} stands there twice", remedy="Keep the one with the smaller target error")
    return tuple(parsed_lines)


def split_lines(text: str) -> list[tuple[str, str]]:
    """Split a text into its lines, also unreadable ones: the statistic, and its target error and weight as written."""
    return [(label, rest.removeprefix("within ")) for label, rest in map(_split_line, _split_text(text))]


def change_target(text: str, line_index: int, target_text: str) -> str:
    """Return the text with another target error, such as ``5%`` or ``12 weight 2``, in this line; empty for 5 %."""
    pieces, target_text = _split_text(text), " ".join(target_text.replace(";", " ").lower().split())
    label, _ = _split_line(pieces[line_index])
    keyword = "" if not target_text or target_text.startswith("weight ") else "within "
    pieces[line_index] = f"{label} {keyword}{target_text.removeprefix('within ')}".rstrip()
    return "; ".join(pieces)


def remove_line(text: str, line_index: int) -> str:
    """Return the text without one line."""
    pieces = _split_text(text)
    return "; ".join(pieces[:line_index] + pieces[line_index + 1 :])


def _split_line(piece: str) -> tuple[str, str]:
    """Split a line into the statistic, and its target error and weight as written; empty if there are none."""
    label, *rest = re.split(r" (?=(?:within|weight)\b)", piece, maxsplit=1)
    return label, " ".join(rest)


def list_missing_lines(text: str, new_lines: Iterable[str]) -> list[str]:
    """Return the new lines whose statistic has no line in the text yet."""
    present_labels = {line.label for line in parse_lines(text, Problems())} | {
        label for label, _ in split_lines(text)
    }
    return [line for line in new_lines if line not in present_labels]


def _write_label(statistic_name: str, quantile: float | None) -> str:
    """Write the label of a statistic, with q of a quantile."""
    if quantile is None:
        return statistic_name
    return "median" if quantile == 0.5 else f"quantile {wording.digits(quantile)}"


def _split_text(text: str) -> list[str]:
    """Split a text at semicolons and line breaks into lower-case lines with single spaces; empty ones are dropped."""
    return [" ".join(piece.lower().split()) for piece in re.split(r"[;\n]", text) if piece.strip()]


def _read_numbers(match: re.Match[str], line_number: int) -> list[float | None]:
    """Read quantile, target error and weight of a line; None where they are not written.

    Raises:
        InvalidInput: One of them is no number.
    """
    quantile_text = "0.5" if match["statistic"] == "median" else match["quantile"]
    numbers: list[float | None] = []
    for number_text in (quantile_text, match["target"], match["weight"]):
        try:
            numbers.append(None if number_text is None else float(number_text))
        except ValueError as error:
            raise refuse(f"line {line_number} holds {number_text[:20]!r}, which is no number") from error
    return numbers


FIRST_LINES = "users; rows"
MAX_CHARACTERS = 2000
PROPOSED_MEAN_FIELDS = ("variance_source", "likeness", "target")
"""Settings of a mean that follow from the data; see `choose_defaults`."""
MEAN_FIELDS = (*PROPOSED_MEAN_FIELDS, "value_variance", "user_share", "clamp")


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
    """Probability that ε does not hold: well below 1 / users."""
    # Public: every release names what is released, and nobody reads off data how exact it is wanted.
    lines: str = public.text(FIRST_LINES, "Statistics to release", max_length=MAX_CHARACTERS, place=LINE)
    """``users``, ``rows``, ``sum``, ``mean``, ``variance``, ``standard deviation``, ``median``, ``quantile 0.9``,
    ``users per group``, ``rows per group``, ``sums per group``; separated by semicolons. A target error may follow
    (``within 5%``; ``within 12`` in its unit), and a ``weight 2``."""
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
    target: Target = declared_in(MeanParameters, "target", label="A mean is that of")
    variance_source: VarianceSource = declared_in(
        MeanParameters, "variance_source", VarianceSource.FROM_VALUES, label="Known of its values"
    )
    value_variance: float | None = declared_in(MeanParameters, "value_variance", is_required=False)
    likeness: Likeness = declared_in(MeanParameters, "likeness")
    user_share: float = declared_in(MeanParameters, "user_share")
    clamp: Clamp = declared_in(MeanParameters, "clamp", label="A mean clamps")
    groups: str | None = declared_in(PerGroupParameters, "groups", only_with=None)
    edges: str | None = declared_in(PerGroupParameters, "edges", only_with=None)

    def _check_together(self, problems: Problems) -> None:
        """Check the lines, the range that they need, the program, the mean's settings and target errors."""
        if self.mechanism is NoiseKind.GAUSSIAN and self.delta is not None:
            problems.inside(0.0, 1.0, δ=self.delta)
        lines: tuple[Line, ...] = ()
        if not isinstance(self.lines, str):
            problems.add("lines must be a text")
        elif len(self.lines) > MAX_CHARACTERS:
            problems.add(f"the lines have more than {MAX_CHARACTERS:,} characters")
        else:
            lines = parse_lines(self.lines, problems)
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
        with problems.collecting():
            group_list.find_groups(self.groups, self.edges)
        quantile_labels = [line.label for line in lines if line.statistic is LineStatistic.QUANTILE]
        if self.program is Program.PIPELINEDP and self.mechanism is NoiseKind.GAUSSIAN and quantile_labels:
            problems.add(
                f"the error of {quantile_labels[0]} in PipelineDP's tree is known with Laplace noise alone",
                remedy="Choose Laplace noise, or OpenDP, Tumult or plain Python",
            )
        mean_labels = [line.label for line in lines if line.statistic is LineStatistic.MEAN]
        spread_labels = [line.label for line in lines if line.statistic.is_spread]
        if self.program in SPLITS_MEANS and spread_labels:
            problems.add(
                f"for the {spread_labels[0]} there is no program in {self.program.value}",
                remedy="Choose OpenDP or plain Python",
            )
        if len(spread_labels) > 1:
            problems.add(
                "variance and standard deviation are one release",
                remedy="Keep one of them: the standard deviation is the root of the variance",
            )
        if self.clamp is Clamp.USERS and self.program in SPLITS_MEANS and mean_labels:
            problems.add(
                f"{self.program.value} cannot clamp users' deviations",
                remedy="Choose OpenDP or plain Python, or clamp rows",
            )
        are_options = isinstance(self.variance_source, VarianceSource) and isinstance(self.likeness, Likeness)
        if is_range_valid and are_options and mean_labels + spread_labels:
            with problems.collecting():
                self.mean_parameters  # noqa: B018 - it raises what does not hold together.
        labels_without_target = [line.label for line in lines if line.target_error is None]
        if self.objective is Objective.LARGEST and labels_without_target:
            problems.add(
                "the largest error over target error needs a target error in every line; "
                f"{labels_without_target[0]} has none",
                remedy="Add one: within 5%",
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
        """Return the lines as objects, in the order in which they are written; unreadable ones are left out."""
        return parse_lines(self.lines, Problems())

    @property
    def budget(self) -> Budget:
        """Return the budget that is divided; BigQuery draws Laplace noise whatever is chosen."""
        has_quantile = any(line.statistic is LineStatistic.QUANTILE for line in self.parsed_lines)
        draws_laplace = self.mechanism is NoiseKind.LAPLACE or self.program is Program.BIGQUERY
        mechanism, delta = (NoiseKind.LAPLACE, None) if draws_laplace else (self.mechanism, self.delta)
        return Budget(self.epsilon, mechanism, delta, self.program, has_quantile)
