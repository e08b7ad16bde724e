"""The settings of a private quantile, as one validated object: everything but the data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.common.checks import Problems, quote
from dpcore.common.parameters import (
    LINE,
    TAB,
    Option,
    Parameters,
    of_data,
    of_values,
    own_bound,
    program_choice,
    public,
    range_end,
)
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.common.text_fields import MAX_TEXT
from dpcore.common.wording import format_entered
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.quantile.base_distribution import Base, HistogramBase, NormalBase, build_uniform_base
from dpcore.quantile.mechanism import compute_user_reach
from dpcore.quantile.optimal_bound import RankBound, compute_trade_off
from dpcore.quantile.programs import BEST_OF, BIGQUERY_ROWS, WEIGHTED_PROGRAMS, divide_epsilon, lay_base
from dpcore.quantile.rows import WeightKind

MAX_QUANTILES = 5
"""Most quantiles together."""
ASSUMED_ROWS = 1_000_000
"""Number of rows that `RankBound` assumes if it is private."""
LARGEST_VALUE = 1e12
"""Largest size of an end of the base distribution."""


class BaseKind(Option):
    """Form of the base distribution nu."""

    UNIFORM = "uniform", "Uniform"
    NORMAL = "normal", "Normal"
    HISTOGRAM = "histogram", "Histogram"


class Weighting(Option):
    """The weights of rows as a person chooses them, with none for no bound; `WeightKind` is what is computed."""

    SMOOTH = "smooth", "Smooth weights"
    CAP = "cap", "Bounded rows"
    NONE = "none", "No bound"


class BoundFrom(Option):
    """What the bound h in use is best for: the error on the values, or the paper's bound, from numbers of rows."""

    VALUES = "values", "Best for the values"
    COUNTS = "counts", "From counts"


LABEL_BY_RELATION = {
    Neighbours.REPLACE_VALUES: "One user's values",
    Neighbours.ADD_OR_REMOVE_USER: "A user and all their rows",
}
_BASE_FIELD = {"width": 174, "place": LINE}
_RANGE_FIELD: dict[str, Any] = {"is_required": True, "width": 102, "place": LINE}
_ONLY_WEIGHTED = ("program", WEIGHTED_PROGRAMS)
NORMAL_FIELD = _BASE_FIELD | {"only_with": ("base", (BaseKind.NORMAL,))}
HISTOGRAM_FIELD = _BASE_FIELD | {"only_with": ("base", (BaseKind.HISTOGRAM,))}
"""Options of the fields of a base distribution."""


def choose_defaults(dataset: Dataset) -> Mapping[str, Any]:
    """Return the defaults of `QuantileParameters` for these data, by field.

    A bound that is read off private values leaks, and so do the numbers of rows of private users. So for private data
    the bound comes from the counts, and these are protected, too.
    """
    protects_counts = dataset.is_private or dataset.drops_missing  # Missing values decide which rows count.
    return {
        "bound_from": BoundFrom.COUNTS if dataset.is_private else BoundFrom.VALUES,
        "neighbours": Neighbours.ADD_OR_REMOVE_USER if protects_counts else Neighbours.REPLACE_VALUES,
    }


@dataclass(frozen=True)
class QuantileParameters(Parameters):
    """The settings of the page *Quantile*: everything but the data."""

    quantiles: str = public.text("0.5", "Quantiles", placeholder="0.5", width=88, place=LINE)
    """Up to five numbers between 0 and 1, such as 0.25, 0.5, 0.75. They share ε evenly."""
    program: Program = program_choice()
    """The errors are those of its mechanism, and *Get code* opens with it."""
    weighting: Weighting = public.choice(
        Weighting.SMOOTH, "Rows of one user", name="the weights", only_with=_ONLY_WEIGHTED
    )
    """Smooth weights keep all rows, and let those of a user above the bound count less. Bounded rows keep a random
    subset; libraries have these alone."""
    bound_from: BoundFrom = public.choice(BoundFrom.VALUES, "Bound from", name="the source of the bound")
    """The best bound for the values leaks unless they are public. The bound from counts is best for the paper's bound,
    which uses only the rows per user, α, β and γ."""
    base: BaseKind = public.choice(BaseKind.UNIFORM, "Base distribution ν", name="the base distribution")
    """The distribution of the answer without data: no answer lies outside. Choose it without looking at the values.
    Programs use its range alone; four standard deviations around a normal."""
    # The numbers of the base should be public, but whoever sees the values may have read them off.
    # They go with a uniform base. A program may leave them out; the page asks for them.
    low: float | None = range_end(None, "Lowest, L", "lowest value L", shared="lower", **_RANGE_FIELD)
    """No answer lies below. Take it from what you know, not from data."""
    high: float | None = range_end(None, "Highest, U", "highest value U", shared="upper", **_RANGE_FIELD)
    """No answer lies above. Take it from what you know, not from data."""
    center: float | None = of_values.number(
        None, "Mean of ν", (-LARGEST_VALUE, LARGEST_VALUE), name="the mean of ν", **NORMAL_FIELD
    )
    """In the values' unit, not from data."""
    spread: float | None = of_values.number(
        None,
        "Standard deviation of ν",
        (1e-9, LARGEST_VALUE),
        name="the standard deviation of ν",
        **NORMAL_FIELD,
    )
    """In the values' unit, not from data."""
    edges: str | None = of_values.text(None, "Bin edges", name="the edges of ν", **HISTOGRAM_FIELD)
    """Ascending numbers with commas, one more than weights."""
    masses: str | None = of_values.text(
        None, "Weights of the bins", name="the weights of the bins of ν", initial="1, 1", **HISTOGRAM_FIELD
    )
    """Numbers from 0, with commas."""
    neighbours: Neighbours = public.choice(
        Neighbours.REPLACE_VALUES,
        "What ε protects",
        LABEL_BY_RELATION,
        name="what epsilon protects",
        only_with=_ONLY_WEIGHTED,
    )
    """One user's values: rows per user are public. A user and all their rows: they are private, too; so libraries
    have it."""
    own_bound: float | None = own_bound("rows per user", placeholder="rows", width=180)
    """A bound that you use today."""
    # These three are chosen together. The tab on the base says what beta is on these values.
    alpha: float = of_data.number(0.05, "α, distance in rank", (0.0, 0.5), name="α", place=TAB)
    """Distance in rank that counts as near the quantile."""
    beta: float = of_data.number(0.05, "β, mass of ν near q", (1e-300, 1.0), name="β", place=TAB)
    """Mass of ν within α of the quantile; *Base distribution* has its value here."""
    gamma: float = of_data.number(0.05, "γ, half the risk", (1e-12, 0.499), name="γ", place=TAB)
    """The bound fails with probability at most 2γ."""
    population: bool = public.flag(False, "Distance to the population's quantile", place=TAB)
    """Adds the sampling error of the rows (claim 5)."""

    def __post_init__(self) -> None:
        """Set a cap and users who come and go for a program that knows nothing else, and check the settings."""
        # Links and calls may have been written for another program.
        if isinstance(self.program, Program) and self.program not in WEIGHTED_PROGRAMS:
            object.__setattr__(self, "weighting", Weighting.CAP)
            object.__setattr__(self, "neighbours", Neighbours.ADD_OR_REMOVE_USER)
        super().__post_init__()

    def _check_together(self, problems: Problems) -> None:
        """Add problems of the quantiles, of the base distribution and of the bounds."""
        self._check_quantiles(problems)
        self._check_base(problems)
        self._check_bound(problems)

    def _check_quantiles(self, problems: Problems) -> None:
        """Check that the quantiles are few, distinct, and strictly between 0 and 1."""
        entered_quantiles = _read_numbers(problems, "quantiles", self.quantiles)
        if entered_quantiles is None:
            return
        if not 1 <= len(entered_quantiles) <= MAX_QUANTILES:
            problems.add(f"ask for 1 to {MAX_QUANTILES} quantiles; got {len(entered_quantiles)}")
        if len(set(entered_quantiles)) < len(entered_quantiles):
            problems.add("a quantile is asked for twice")
        for q in entered_quantiles:
            if not 0.0 < q < 1.0:
                problems.add(
                    f"a quantile lies strictly between 0 and 1 (the median is 0.5); got {format_entered(q)}"
                )

    def _check_base(self, problems: Problems) -> None:
        """Check that the settings of the base distribution fit its kind and make a distribution."""
        num_problems = len(problems.entries)
        values_by_name: dict[str, float | None] = {}
        if self.base is BaseKind.HISTOGRAM:
            bin_edges = _read_numbers(problems, "edges", self.edges)
            _read_numbers(problems, "masses", self.masses)
            values_by_name = {f"edge {k + 1}": bin_edge for k, bin_edge in enumerate(bin_edges or ())}
        elif self.base is BaseKind.UNIFORM:
            values_by_name = dict(zip(("lowest answer", "highest answer"), self._range_ends, strict=True))
        for end_name, entered_end in (("the lowest value L", self.low), ("the highest value U", self.high)):
            if entered_end is not None and self.base is not BaseKind.UNIFORM:
                problems.add(f"{end_name} can be set only with a uniform base distribution")
        problems.between(-LARGEST_VALUE, LARGEST_VALUE, **values_by_name)
        if self.base is not BaseKind.NORMAL and len(problems.entries) == num_problems:
            with problems.collecting():
                self.build_base()

    def _check_bound(self, problems: Problems) -> None:
        """Check that there is a bound if users are protected, and that the user's own bound is of its kind."""
        if self.protects_users and self.weighting is Weighting.NONE:
            unbounded_sentence = "without a bound a user who is added may have any number of rows"
            remedy_sentence = "Choose smooth weights or bounded rows, or protect one user's values only"
            problems.add(unbounded_sentence, remedy=remedy_sentence)
        if self.own_bound is not None:
            bound_by_name = {"your own bound": self.own_bound}
            if self.weighting is Weighting.CAP:
                problems.whole(1, MAX_SIZE, **bound_by_name)
            else:
                problems.between(1e-3, MAX_SIZE, **bound_by_name)

    @property
    def _range_ends(self) -> tuple[float, float]:
        """Return the entered ends of a uniform base; 0 and 1 replace ends that are not entered."""
        return 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high

    @property
    def answer_range(self) -> tuple[float, float] | None:
        """Return (lowest, highest) answer that can come out, or None if any can."""
        if self.base is BaseKind.NORMAL and self.program is Program.BEST:
            return None
        base_breaks = self.build_base().breaks
        return float(base_breaks[0]), float(base_breaks[-1])

    @property
    def base_range(self) -> tuple[float, float]:
        """Return the lowest and the highest end of the base; of a normal one four standard deviations around it."""
        base_breaks = self._build_line_base(1.0, 0.0).breaks
        half_width = 4.0 * (self.spread or 0.0) if self.base is BaseKind.NORMAL else 0.0
        return float(base_breaks[0]) - half_width, float(base_breaks[-1]) + half_width

    @property
    def quantile_levels(self) -> tuple[float, ...]:
        """Return the entered quantiles as numbers between 0 and 1, ascending."""
        return tuple(sorted(_read_numbers(Problems(), "quantiles", self.quantiles) or ()))

    @property
    def epsilon_each(self) -> float:
        """Return the part of epsilon that each quantile takes."""
        return divide_epsilon(self.program, self.epsilon, len(self.quantile_levels))

    @property
    def mechanisms(self) -> tuple[Program, ...]:
        """Return the programs whose mechanisms are compared: the program, or several for the best known one."""
        if self.program is not Program.BEST:
            return (self.program,)
        is_bounded = self.protects_users and self.weighting is Weighting.CAP
        return BEST_OF if is_bounded else BEST_OF[:2]

    @property
    def fixed_bound(self) -> float | None:
        """Return the bound on rows that the program has built in, or None if it takes any."""
        return float(BIGQUERY_ROWS) if self.program is Program.BIGQUERY else None

    @property
    def protects_users(self) -> bool:
        """Return True if a user's presence and number of rows are protected, too."""
        return self.neighbours is Neighbours.ADD_OR_REMOVE_USER

    def compute_drawn_epsilon(self, quantile: float) -> float:
        """Return the epsilon of the draw of one quantile for neighbours that differ in one user's values."""
        return self.epsilon_each / compute_user_reach(quantile, self.neighbours)

    @property
    def other_relation_epsilon(self) -> float:
        """Return the epsilon that the draws of all quantiles together have under the relation not chosen."""
        if self.protects_users:
            return sum(self.compute_drawn_epsilon(q) for q in self.quantile_levels)
        # By addition a draw costs less than by replacement; see `dpcore.quantile.mechanism`.
        return sum(
            self.epsilon_each * compute_user_reach(q, Neighbours.ADD_OR_REMOVE_USER)
            for q in self.quantile_levels
        )

    @property
    def weight_kind(self) -> WeightKind:
        """Return the kind of weights; without a bound both kinds are the same."""
        return WeightKind.CAP if self.weighting is Weighting.CAP else WeightKind.SMOOTH

    def build_base(self, stretch: float = 1.0, shift: float = 0.0, mechanism: Program | None = None) -> Base:
        """Build the base distribution nu, or a program's candidates, from the entered range.

        Both can be made poorer: wider by ``stretch``, moved by ``shift``.

        Args:
            mechanism: The program whose candidates they are; None for that of the parameters.
            stretch: How many times as wide it is made about its middle.
            shift: How far it is moved, in its own widths: from end to end, four standard deviations of a normal.

        Raises:
            InvalidInput: The figures do not make a distribution.
        """
        mechanism_program = mechanism or self.program
        if mechanism_program is Program.BEST:
            return self._build_line_base(stretch, shift)
        self._build_line_base(stretch, shift)  # It checks the figures.
        base_lower, base_upper = self.base_range
        if stretch == 1.0 and shift == 0.0:
            # To the last digit: pages compare the range with one that was drawn.
            return lay_base(mechanism_program, base_lower, base_upper)
        midpoint, base_width = (base_lower + base_upper) / 2.0, base_upper - base_lower
        changed_ends = (
            midpoint + stretch * (base_end - midpoint) + shift * base_width
            for base_end in (base_lower, base_upper)
        )
        return lay_base(mechanism_program, *changed_ends)

    def _build_line_base(self, stretch: float, shift: float) -> Base:
        """Return the base distribution on the whole line, stretched about its middle, then moved as by `build_base`."""
        if self.base is BaseKind.NORMAL:
            assert self.center is not None
            assert self.spread is not None
            return NormalBase(self.center + 4.0 * shift * self.spread, self.spread * stretch)
        if self.base is BaseKind.UNIFORM:
            bin_edges, bin_masses = np.array(self._range_ends), np.ones(1)
            build_uniform_base(*self._range_ends)  # Its words for ends in the wrong order.
        else:
            bin_edges = np.array(_read_numbers(Problems(), "edges", self.edges) or ())
            bin_masses = np.array(_read_numbers(Problems(), "masses", self.masses) or ())
        if (stretch, shift) != (1.0, 0.0):
            midpoint, unstretched_width = (bin_edges[0] + bin_edges[-1]) / 2.0, bin_edges[-1] - bin_edges[0]
            bin_edges = midpoint + stretch * (bin_edges - midpoint) + shift * unstretched_width
        return HistogramBase(bin_edges, bin_masses)

    def build_rank_bound(self, histogram: ContributionHistogram) -> RankBound:
        """Return the paper's bound on the error of each quantile, from the numbers of rows alone."""
        public_rows = ASSUMED_ROWS if self.protects_users else None
        alpha_beta_gamma = self.alpha, self.beta, self.gamma
        return RankBound(
            histogram, self._least_drawn_epsilon, *alpha_beta_gamma, self.population, public_rows
        )

    @property
    def _least_drawn_epsilon(self) -> float:
        """Return the epsilon of the quantile with the most noise: the paper's bound is for one epsilon."""
        return min(self.compute_drawn_epsilon(q) for q in self.quantile_levels)

    @property
    def public_trade_off(self) -> float:
        """Return A of the best bound from counts, with `ASSUMED_ROWS` rows: no data are needed for it."""
        return compute_trade_off(
            ASSUMED_ROWS, self._least_drawn_epsilon, self.beta, self.gamma, self.population
        )


def _read_numbers(problems: Problems, field_name: str, entered_text: str | None) -> list[float] | None:
    """Parse numbers between commas, semicolons or blanks; return None, and add a problem of the field, if it fails."""
    if entered_text is not None and not isinstance(entered_text, str):
        problems.add(f"{field_name} must be text, such as '0.25, 0.5'; got {quote(entered_text)}")
        return None
    if entered_text is None or not entered_text.strip():
        problems.add(f"{field_name} is empty", remedy="Enter numbers with commas between them")
        return None
    if len(entered_text) > MAX_TEXT:
        problems.add(f"{field_name} has more than {MAX_TEXT} characters")
        return None
    parsed_numbers = []
    for number_text in re.split(r"[,;\s]+", entered_text.strip().strip(",;")):
        try:
            parsed_number = float(number_text)
        except ValueError:
            parsed_number = math.nan
        if not math.isfinite(parsed_number):
            problems.add(f"{field_name} must be finite numbers with commas between; got {number_text[:40]!r}")
            return None
        parsed_numbers.append(parsed_number)
    return parsed_numbers
