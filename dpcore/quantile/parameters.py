"""What a person chooses for a private quantile, as one validated object: everything but the data."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, Problems, quote
from dpcore.common.privacy import Neighbours
from dpcore.common.text_fields import MAX_TEXT
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.quantile.base_distribution import Base, HistogramBase, NormalBase, uniform_base
from dpcore.quantile.mechanism import NEIGHBOURS, WeightKind, user_reach
from dpcore.quantile.optimal_bound import RankBound, trade_off_of

MAX_QUANTILES = 5
"""Quantiles that may be asked for together."""
PUBLIC_ROWS = 1_000_000
"""Rows that the best bound from counts takes for granted where how many there are is private; see `RankBound`."""
LARGEST_VALUE = 1e12
"""Ends of the base distribution lie within plus and minus this, in the values' unit."""


class BaseKind(enum.Enum):
    """Form of the base distribution nu."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    HISTOGRAM = "histogram"


class Weighting(enum.Enum):
    """How rows are weighted."""

    SMOOTH = "smooth"
    CAP = "cap"
    NONE = "none"


class BoundFrom(enum.Enum):
    """Where the bound h comes from."""

    VALUES = "values"
    COUNTS = "counts"


def choose_defaults(data: Dataset) -> Mapping[str, Any]:
    """Return what holds of these data where nobody says otherwise, by setting of `QuantileParameters`.

    A bound that is read off private values leaks, and so do the numbers of rows of private users: their bound comes
    from the counts, and these are protected too.
    """
    return {
        "bound_from": BoundFrom.COUNTS if data.is_private else BoundFrom.VALUES,
        "neighbours": Neighbours.ADD_OR_REMOVE_USER if data.is_private else Neighbours.REPLACE_VALUES,
    }


@dataclass(frozen=True)
class QuantileParameters:
    """What a person chooses on the Quantile page: everything but the data.

    Attributes:
        epsilon: Privacy budget for all quantiles together, in `dpcore.common.checks.EPSILON_RANGE`.
        quantiles: Up to `MAX_QUANTILES` distinct numbers strictly between 0 and 1, as text with commas.
        base: Form of the base distribution; its figures are given for that form only, in the values' unit.
        low: Lower end, for a uniform base; 0 where missing.
        high: Upper end, for a uniform base; 1 where missing.
        center: Mean, for a normal base.
        spread: Standard deviation, for a normal base.
        edges: Bin edges, ascending, as text with commas, for a histogram.
        masses: Weight of each bin, as text with commas, for a histogram.
        weighting: Smooth weights, a cap, or no bound.
        bound_from: The best bound for the values, or the best by the numbers of rows alone.
        own_bound: A bound h to compare with it, in rows per user, whole for a cap; None for none.
        alpha: Distance in rank at which the paper's bound judges the base, in [0, 1/2].
        beta: Mass that the base is believed to give to within alpha of the quantile, in (0, 1].
        gamma: Half the probability that the paper's bound fails, in (0, 1/2).
        population: Whether the paper's bound is on the distance to the population's quantile.
        neighbours: What epsilon protects: one user's values, or one user added or removed with all their rows.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    quantiles: str = "0.5"
    base: BaseKind = BaseKind.UNIFORM
    low: float | None = None
    high: float | None = None
    center: float | None = None
    spread: float | None = None
    edges: str | None = None
    masses: str | None = None
    weighting: Weighting = Weighting.SMOOTH
    bound_from: BoundFrom = BoundFrom.VALUES
    own_bound: float | None = None
    alpha: float = 0.05
    beta: float = 0.05
    gamma: float = 0.05
    population: bool = False
    neighbours: Neighbours = Neighbours.REPLACE_VALUES

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            self._check_quantiles(problems)
            self._check_base(problems)
            self._check_bound(problems)
            problems.between(0.0, 0.5, alpha=self.alpha)
            problems.between(1e-300, 1.0, beta=self.beta)
            problems.between(1e-12, 0.499, gamma=self.gamma)

    def _check_quantiles(self, problems: Problems) -> None:
        levels = _numbers(problems, quantiles=self.quantiles)
        if levels is None:
            return
        if not 1 <= len(levels) <= MAX_QUANTILES:
            problems.add(f"ask for 1 to {MAX_QUANTILES} quantiles; got {len(levels)}")
        if len(set(levels)) < len(levels):
            problems.add("a quantile is asked for twice")
        for q in levels:
            if not 0.0 < q < 1.0:
                problems.add(
                    f"a quantile lies strictly between 0 and 1 (the median is 0.5); got {wording.entered(q)}"
                )

    def _check_base(self, problems: Problems) -> None:
        needed = {
            BaseKind.UNIFORM: ("low", "high"),
            BaseKind.NORMAL: ("center", "spread"),
            BaseKind.HISTOGRAM: ("edges", "masses"),
        }
        num_problems = len(problems.entries)
        for base, names in needed.items():
            for name in names:
                value = getattr(self, name)
                if base is self.base and value is None and base is not BaseKind.UNIFORM:
                    problems.add(f"{name} is needed for a {base.value} base distribution")
                elif base is not self.base and value is not None:
                    problems.add(f"{name} goes only with a {base.value} base distribution")
        if len(problems.entries) > num_problems:
            return
        if self.base is BaseKind.HISTOGRAM:
            edges = _numbers(problems, edges=self.edges)
            _numbers(problems, masses=self.masses)
            ends: dict[str, float | None] = {f"edge {k + 1}": edge for k, edge in enumerate(edges or ())}
        elif self.base is BaseKind.UNIFORM:
            ends = dict(zip(("lowest answer", "highest answer"), self._ends, strict=True))
        else:
            ends = {"mean of the base": self.center}
            problems.between(1e-9, LARGEST_VALUE, spread=self.spread)
        problems.between(-LARGEST_VALUE, LARGEST_VALUE, **ends)
        if len(problems.entries) == num_problems:
            with problems.collecting():
                self.base_distribution()

    def _check_bound(self, problems: Problems) -> None:
        if self.neighbours not in NEIGHBOURS:
            problems.add("a quantile protects the values of one user, or one user added or removed")
        elif self.protects_users and self.weighting is Weighting.NONE:
            problems.add(
                "whoever is added may have any number of rows, so that without a bound there is no guarantee",
                remedy="Choose smooth weights or bounded rows, or protect one user's values only",
            )
        if self.own_bound is None:
            return
        if self.weighting is Weighting.CAP:
            problems.whole(1, MAX_SIZE, **{"your own bound": self.own_bound})
        else:
            problems.between(1e-3, MAX_SIZE, **{"your own bound": self.own_bound})

    @property
    def _ends(self) -> tuple[float, float]:
        return 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high

    @property
    def answer_range(self) -> tuple[float, float] | None:
        """Return (lowest, highest) answer that can come out, or None if any can."""
        if self.base is BaseKind.NORMAL:
            return None
        edges = self.base_distribution().breaks
        return float(edges[0]), float(edges[-1])

    @property
    def asked(self) -> tuple[float, ...]:
        """Return the quantiles, ascending."""
        return tuple(sorted(_numbers(Problems(), quantiles=self.quantiles) or ()))

    @property
    def epsilon_each(self) -> float:
        """Return the even part of epsilon that each quantile takes."""
        return self.epsilon / len(self.asked)

    @property
    def protects_users(self) -> bool:
        """Return True if a user's presence and number of rows are protected, too."""
        return self.neighbours is Neighbours.ADD_OR_REMOVE_USER

    def drawn_epsilon(self, quantile: float) -> float:
        """Epsilon of the draw of one quantile where only one user's values change, at most."""
        return self.epsilon_each / user_reach(quantile, self.neighbours)

    @property
    def epsilon_of_other(self) -> float:
        """Epsilon of the same draws under the other relation of the two, for all quantiles together."""
        if self.protects_users:
            return sum(self.drawn_epsilon(q) for q in self.asked)
        # By addition a draw costs max(q, 1 - q) of what it costs by replacement; see `dpcore.quantile.mechanism`.
        return sum(self.epsilon_each * max(q, 1.0 - q) for q in self.asked)

    @property
    def kind(self) -> WeightKind:
        """Return what to compute with; without a bound both kinds are the same."""
        return WeightKind.CAP if self.weighting is Weighting.CAP else WeightKind.SMOOTH

    def base_distribution(self, stretch: float = 1.0, shift: float = 0.0) -> Base:
        """Return the base distribution nu, or a poorer one.

        Args:
            stretch: How many times as wide it is made about its middle.
            shift: How far it is moved, in its own widths: from end to end, four standard deviations of a normal.

        Raises:
            InvalidInput: The figures do not make a distribution.
        """
        if self.base is BaseKind.NORMAL:
            assert self.center is not None
            assert self.spread is not None
            return NormalBase(self.center + 4.0 * shift * self.spread, self.spread * stretch)
        if self.base is BaseKind.UNIFORM:
            edges, masses = np.array(self._ends), np.ones(1)
            uniform_base(*self._ends)  # Its words for ends in the wrong order.
        else:
            edges = np.array(_numbers(Problems(), edges=self.edges) or ())
            masses = np.array(_numbers(Problems(), masses=self.masses) or ())
        if (stretch, shift) != (1.0, 0.0):
            midpoint, width = (edges[0] + edges[-1]) / 2.0, edges[-1] - edges[0]
            edges = midpoint + stretch * (edges - midpoint) + shift * width
        return HistogramBase(edges, masses)

    def rank_bound(self, histogram: ContributionHistogram) -> RankBound:
        """Return the paper's bound on the error of each quantile, from the numbers of rows alone."""
        rows = PUBLIC_ROWS if self.protects_users else None
        return RankBound(
            histogram, self._least_drawn, self.alpha, self.beta, self.gamma, self.population, rows
        )

    @property
    def _least_drawn(self) -> float:
        """The paper's bound is for one epsilon: that of the quantile with the most noise."""
        return min(self.drawn_epsilon(q) for q in self.asked)

    @property
    def public_trade_off(self) -> float:
        """Return A of the best bound from counts, with `PUBLIC_ROWS` rows: no data are needed for it."""
        return trade_off_of(PUBLIC_ROWS, self._least_drawn, self.beta, self.gamma, self.population)


def _numbers(problems: Problems, **texts: str | None) -> list[float] | None:
    """The numbers of a text, parted by commas, semicolons or blanks; None, with the problem, where it has others."""
    ((name, text),) = texts.items()
    if text is not None and not isinstance(text, str):
        problems.add(f"{name} must be text, such as '0.25, 0.5'; got {quote(text)}")
        return None
    if text is None or not text.strip():
        problems.add(f"{name} is empty", remedy="Enter numbers with commas between them")
        return None
    if len(text) > MAX_TEXT:
        problems.add(f"{name} has more than {MAX_TEXT} characters")
        return None
    numbers = []
    for piece in re.split(r"[,;\s]+", text.strip().strip(",;")):
        try:
            number = float(piece)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            problems.add(f"{name} must be finite numbers with commas between them; got {piece[:40]!r}")
            return None
        numbers.append(number)
    return numbers
