"""The settings of the page *Multi-task weights*: everything but the data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.text_fields import parse_checked_numbers, parse_numbers
from dpcore.dataset import Pairs
from dpcore.multitask.budget import DELTA_RANGE, PrivacyTarget
from dpcore.multitask.experiment import Experiment
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.problem import Loss
from dpcore.multitask.synthetic import HeavyTailed, SkewedTasks

MAX_PAGE_CELLS = 200_000_000
"""Users times tasks that a page draws while a person waits: about 1.5 s."""
MAX_PAGE_PAIRS = 10_000_000
MAX_PAGE_USERS, MAX_PAGE_TASKS = 200_000, 10_000
"""Of a page's generated data: 0.3 GB, about 1 s."""
MAX_EPSILONS = 4
MAX_REPEATS = 100
MAX_EXPERIMENT_USERS = 50_000


class TaskSource(enum.Enum):
    """The source of the graph of users and tasks."""

    DATA = "data"
    SKEWED = "skewed"
    HEAVY_TAILED = "heavy-tailed"


class LossKind(enum.Enum):
    """`Loss` by name, as a link has it."""

    STRONGLY_CONVEX = "strongly-convex"
    CONVEX = "convex"

    @property
    def loss(self) -> Loss:
        """Return the `Loss` of this name."""
        return Loss.CONVEX if self is LossKind.CONVEX else Loss.STRONGLY_CONVEX


@dataclass(frozen=True)
class MultitaskParameters:
    """The question on the page, without the data.

    Attributes:
        epsilon: Privacy budget.
        delta: Of the guarantee, in `dpcore.multitask.budget.DELTA_RANGE`.
        source: The data's pairs, or one of two generators.
        loss: Convex or strongly convex.
        exponent: mu in [0, 1].
        fit: How weights are brought within users' budgets.
        log_constant: C where c = C log n.
        max_tasks: Tasks per user kept by uniform sampling, to compare with; None for the best number.
        num_users: n of the generators.
        num_tasks: m of the generators.
        tasks_per_user: On average, of the generators.
        skew: a of the skewed tasks.
        zipf_exponent: s of the heavy-tailed tasks.
        user_spread: Of the heavy-tailed tasks' users, standard deviation of a logarithm.
        graph_seed: Of the generators.
        count_share: Share of the budget beta spent on private counts, in (0, 1).
        count_max_tasks: Tasks per user that are counted.
        count_covers: Whether the slack covers what counting so few tasks misses.
        count_seed: Of the private counts' noise.
        experiment_epsilons: Of the experiment, separated by spaces or commas.
        experiment_users: n of the experiment.
        experiment_repeats: Independent runs of the experiment.
        experiment_seed: Of the experiment.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    delta: float = 1e-5
    source: TaskSource = TaskSource.SKEWED
    loss: LossKind = LossKind.STRONGLY_CONVEX
    exponent: float = 0.5
    fit: BudgetFit = BudgetFit.CLIPPED
    log_constant: float = 1.0
    max_tasks: int | None = None
    num_users: int = 10_000
    num_tasks: int = 100
    tasks_per_user: float = 20.0
    skew: float = 1.0
    zipf_exponent: float = 1.0
    user_spread: float = 1.0
    graph_seed: int = 1
    count_share: float = 0.05
    count_max_tasks: int = 20
    count_covers: bool = True
    count_seed: int = 1
    experiment_epsilons: str = "1, 5"
    experiment_users: int = 10_000
    experiment_repeats: int = 5
    experiment_seed: int = 1

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(*DELTA_RANGE, delta=self.delta)
            problems.between(0.0, 1.0, exponent=self.exponent)
            problems.between(1e-3, 1e3, log_constant=self.log_constant)
            if self.max_tasks is not None:
                problems.whole(1, 10**9, max_tasks=self.max_tasks)
            self._check_generator(problems)
            problems.between(0.001, 0.9, count_share=self.count_share)
            problems.whole(1, 10**9, count_max_tasks=self.count_max_tasks)
            for name in ("graph_seed", "count_seed", "experiment_seed"):
                problems.whole(0, 2**32 - 1, **{name: getattr(self, name)})
            self._check_experiment(problems)

    def _check_generator(self, problems: Problems) -> None:
        """Add the problems of the generator's settings."""
        sizes_hold = problems.whole(1, MAX_PAGE_USERS, num_users=self.num_users)
        sizes_hold &= problems.whole(1, MAX_PAGE_TASKS, num_tasks=self.num_tasks)
        problems.between(0.01, 100.0, skew=self.skew)
        problems.between(0.0, 3.0, zipf_exponent=self.zipf_exponent, user_spread=self.user_spread)
        if sizes_hold and self.num_users * self.num_tasks > MAX_PAGE_CELLS:
            problems.add(f"users times tasks must be at most {MAX_PAGE_CELLS:,}")
        if sizes_hold and problems.between(1.0, float(self.num_tasks), tasks_per_user=self.tasks_per_user):
            pairs = self.num_users * self.tasks_per_user
            if pairs > MAX_PAGE_PAIRS:
                problems.add(f"users times tasks per user must be at most {MAX_PAGE_PAIRS:,}")

    def _check_experiment(self, problems: Problems) -> None:
        """Add the problems of the experiment's settings."""
        problems.whole(1, MAX_REPEATS, experiment_repeats=self.experiment_repeats)
        problems.whole(100, MAX_EXPERIMENT_USERS, experiment_users=self.experiment_users)
        names = "epsilons of the experiment"
        for epsilon in parse_checked_numbers(problems, names, self.experiment_epsilons, MAX_EPSILONS):
            problems.between(*EPSILON_RANGE, experiment_epsilons=epsilon)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return the epsilons of the experiment, ascending, each once.

        Raises:
            ValueError: Not numbers.
        """
        return parse_numbers(self.experiment_epsilons)

    @property
    def target(self) -> PrivacyTarget:
        """Return (epsilon, delta)."""
        return PrivacyTarget(self.epsilon, self.delta)

    @property
    def generator(self) -> SkewedTasks | HeavyTailed | None:
        """Return the generator of the graph; None if the data have it."""
        if self.source is TaskSource.SKEWED:
            return SkewedTasks(self.num_users, self.num_tasks, self.skew, self.tasks_per_user)
        if self.source is TaskSource.HEAVY_TAILED:
            return HeavyTailed(
                self.num_users, self.num_tasks, self.tasks_per_user, self.zipf_exponent, self.user_spread
            )
        return None

    @property
    def experiment(self) -> Experiment:
        """Return appendix C's experiment with the chosen seeds, repeats and epsilons."""
        return Experiment(
            epsilons=self.epsilons,
            repeats=self.experiment_repeats,
            seed=self.experiment_seed,
            num_users=self.experiment_users,
            delta=self.delta,
        )


def draw_pairs(generator: SkewedTasks | HeavyTailed, seed: int) -> Pairs:
    """Draw the generator's graph for this seed.

    Raises:
        InvalidInput: Not a single pair came up.
    """
    return generator.draw(np.random.default_rng(seed))
