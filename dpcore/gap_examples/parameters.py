"""What a person chooses on the page on the largest gap: everything but the data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.contributions import ContributionHistogram
from dpcore.gap_examples.compare import with_noise_ratio
from dpcore.gap_examples.search import GapSearch
from dpcore.gap_examples.simulation import MIN_RUNS
from dpcore.gap_examples.two_groups import supremum, theorem_2_problem, two_group_problem
from dpcore.mean import MeanParameters, MeanProblem, VarianceSource

NUM_USERS = 100
"""Users of the finite two-group instances, so that their shares are whole per cents."""
THEOREM_G = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1_000)
HEAVY_SIZES = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1_000, 10_000, 1_000_000)
LIGHT_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)
REGRESSION_G = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 70, 100)
EVALUATIONS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
NOISE_PER_USER_RANGE = (0.05, 1.5)
NOISE_RATIO_RANGE = (1e-6, 1e12)
MAX_RUNS = 1_000_000
MAX_SEED = 2**32 - 1
MAX_TABLE_ROWS = 8
MAX_TABLE_USERS = 10**6
MAX_TABLE_SIZE = 10**9
"""So that eight groups fit into a link's field, and the simulation's whole random numbers."""


class InstanceKind(enum.Enum):
    """Which instance is simulated."""

    THEOREM_2 = "theorem-2"
    TWO_GROUPS = "two-groups"
    LARGEST = "largest"
    TABLE = "table"
    DATA = "data"


def table_text(sizes: npt.ArrayLike, users: npt.ArrayLike) -> str:
    """A histogram as short text: ``26x1 31x1000000`` for 26 users with 1 row and 31 with a million.

    Raises:
        InvalidInput: It is no histogram of at most `MAX_TABLE_ROWS` sizes, or too large; all problems at once.
    """
    histogram = ContributionHistogram.from_table(sizes, users)
    with Problems() as problems:
        if histogram.sizes.size > MAX_TABLE_ROWS:
            problems.add(f"at most {MAX_TABLE_ROWS} groups; got {histogram.sizes.size}")
        if histogram.max_size > MAX_TABLE_SIZE:
            problems.add(f"rows per user must be at most {MAX_TABLE_SIZE:,}; got {histogram.max_size:,}")
        if int(histogram.users.max()) > MAX_TABLE_USERS:
            problems.add(f"a group has at most {MAX_TABLE_USERS:,} users; got {int(histogram.users.max()):,}")
    return " ".join(f"{u}x{s}" for s, u in zip(histogram.sizes, histogram.users, strict=True))


def table_histogram(text: str) -> ContributionHistogram:
    """The inverse of `table_text`.

    Raises:
        InvalidInput: The text is no such table.
    """
    try:
        pairs = [[int(number) for number in group.split("x")] for group in text.split()[:1_000]]
        users, sizes = zip(*pairs, strict=True)
    except ValueError:
        what = "a table reads like 26x1 31x1000, users x rows of each"
        raise refusal(what, remedy="Enter it anew") from None
    histogram = ContributionHistogram.from_table(sizes, users)
    table_text(histogram.sizes, histogram.users)
    return histogram


@dataclass(frozen=True)
class GapParameters:
    """The page's question, one group of fields for each of its steps.

    Attributes:
        epsilon: Privacy budget for the person's data.
        variance_source: Where their sigma^2 comes from, values lying in [0, 1]: worst case (1/4) or entered.
        value_variance: sigma^2 where it is entered, 0 to 1/4.
        g: Of theorem 2, one of `THEOREM_G`.
        light_users: Light users of two groups, in per cent (p), 1 to 99.
        heavy_size: R, how many times as many rows a heavy user has, one of `HEAVY_SIZES`.
        light_size: s, rows of a light user, one of `LIGHT_SIZES`.
        noise_per_user: t, in `NOISE_PER_USER_RANGE`.
        table: One's own instance, as `table_text`.
        table_noise_ratio: Its rho, in rows, in `NOISE_RATIO_RANGE`.
        num_groups: Of the search, 2 to 8.
        evaluations: Of the search, one of `EVALUATIONS`.
        seed: Of the search and of the simulation.
        example: Of linear regression, 1 or 3.
        regression_g: Its g, one of `REGRESSION_G`.
        simulated: Which instance is simulated.
        runs: How often each mechanism is run at each bound.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    variance_source: VarianceSource = VarianceSource.WORST_CASE
    value_variance: float | None = None
    g: int = 10
    light_users: int = 50
    heavy_size: int = 10
    light_size: int = 1
    noise_per_user: float = 0.6
    table: str = "50x1 30x5 20x40"
    table_noise_ratio: float = 5.0
    num_groups: int = 3
    evaluations: int = 1_000_000
    seed: int = 0
    example: int = 1
    regression_g: int = 5
    simulated: InstanceKind = InstanceKind.THEOREM_2
    runs: int = 5_000

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.variance_source is VarianceSource.FROM_VALUES:
                problems.add("variance_source must be worst or entered here")
            else:
                with problems.collecting():
                    self.mean_parameters()
            for name, value, choices in (
                ("g", self.g, THEOREM_G),
                ("heavy_size", self.heavy_size, HEAVY_SIZES),
                ("light_size", self.light_size, LIGHT_SIZES),
                ("evaluations", self.evaluations, EVALUATIONS),
                ("example", self.example, (1, 3)),
                ("regression_g", self.regression_g, REGRESSION_G),
            ):
                if value not in choices:
                    known = ", ".join(f"{choice:,}" for choice in choices)
                    problems.add(f"{name} must be one of {known}; got {str(value)[:40]}")
            problems.whole(1, NUM_USERS - 1, light_users=self.light_users)
            problems.between(*NOISE_PER_USER_RANGE, noise_per_user=self.noise_per_user)
            problems.between(*NOISE_RATIO_RANGE, table_noise_ratio=self.table_noise_ratio)
            problems.whole(MIN_RUNS, MAX_RUNS, runs=self.runs)
            problems.whole(0, MAX_SEED, seed=self.seed)
            with problems.collecting():
                table_histogram(self.table)
            with problems.collecting():
                GapSearch(num_groups=self.num_groups)

    def mean_parameters(self) -> MeanParameters:
        """The question on the person's data, as on the page Mean, values lying in [0, 1]."""
        return MeanParameters(
            self.epsilon, variance_source=self.variance_source, value_variance=self.value_variance
        )

    def two_groups(self) -> MeanProblem:
        """The finite instance of the step on two groups, at its own noise: rho = q m / s."""
        return two_group_problem(
            self.light_users, NUM_USERS - self.light_users, self.light_size * self.heavy_size, self.light_size
        )

    def own_instance(self) -> MeanProblem:
        """The instance that the person drew."""
        return with_noise_ratio(table_histogram(self.table), self.table_noise_ratio)

    def search_question(self) -> GapSearch:
        """What the search looks for."""
        return GapSearch(num_groups=self.num_groups, evaluations=self.evaluations, seed=self.seed)

    def simulated_problem(self, histogram: ContributionHistogram) -> MeanProblem:
        """The instance to simulate; ``histogram`` is that of the person's data."""
        if self.simulated is InstanceKind.THEOREM_2:
            return theorem_2_problem(self.g)
        if self.simulated is InstanceKind.TWO_GROUPS:
            return self.two_groups()
        if self.simulated is InstanceKind.LARGEST:
            return supremum().problem()
        if self.simulated is InstanceKind.TABLE:
            return self.own_instance()
        return self.mean_parameters().problem(histogram)
