"""The settings of the page *Multi-task weights*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import LINE, OWN, TAB, Option, Parameters, of_data, public
from dpcore.common.text_fields import build_from, parse_checked_numbers, parse_numbers
from dpcore.multitask.experiment import Experiment, HeavyTailed, SkewedTasks
from dpcore.multitask.problem import DELTA_RANGE, Loss, PrivacyTarget
from dpcore.multitask.weights import BudgetFit, WeightRule

MAX_PAGE_CELLS = 200_000_000
"""Users times tasks: they are drawn in about 1.5 s."""
MAX_PAGE_PAIRS = 10_000_000
MAX_PAGE_USERS, MAX_PAGE_TASKS = 200_000, 10_000
"""0.3 GB, drawn in about 1 s."""
MAX_EPSILONS = 4
MAX_REPEATS = 100
MAX_EXPERIMENT_USERS = 50_000
SEED_RANGE = (0, 2**32 - 1)


class TaskSource(Option):
    """The source of the graph of users and tasks."""

    DATA = "data", "Your data"
    SKEWED = "skewed", "Generated, skewed"
    HEAVY_TAILED = "heavy-tailed", "Generated, heavy tails"


IF_GENERATED = ("source", (TaskSource.SKEWED, TaskSource.HEAVY_TAILED))
IF_SKEWED = ("source", (TaskSource.SKEWED,))
IF_HEAVY_TAILED = ("source", (TaskSource.HEAVY_TAILED,))


@dataclass(frozen=True)
class MultitaskParameters(Parameters):
    """The settings of the page *Multi-task weights*: everything but the data."""

    delta: float = public.number(1e-5, "δ", DELTA_RANGE, name="δ", width=110, place=LINE)
    """The probability with which ε may fail, well below 1 / (number of users)."""
    source: TaskSource = public.choice(TaskSource.SKEWED, "Users and tasks", uses_select_box=True)
    """Skewed tasks are the paper's (appendix C); heavy tails look like a catalogue."""
    # Whoever generates tasks may make them like the data: as many users, as uneven.
    num_users: int = of_data.number(
        10_000, "Users", (1, MAX_PAGE_USERS), name="the number of users", only_with=IF_GENERATED
    )
    """n."""
    num_tasks: int = of_data.number(
        100, "Tasks", (1, MAX_PAGE_TASKS), name="the number of tasks", only_with=IF_GENERATED
    )
    """m."""
    tasks_per_user: float = of_data.number(
        20.0, "Tasks per user", name="the number of tasks per user", only_with=IF_GENERATED
    )
    """On average."""
    skew: float = of_data.number(1.0, "Skew a", (0.01, 100.0), only_with=IF_SKEWED)
    """Popularity has density $a x^{a-1}$: 1 is more skewed than 2."""
    zipf_exponent: float = of_data.number(1.0, "Zipf exponent", (0.0, 3.0), only_with=IF_HEAVY_TAILED)
    """The $i$-th task is as popular as $i^{-s}$."""
    user_spread: float = of_data.number(1.0, "User spread", (0.0, 3.0), only_with=IF_HEAVY_TAILED)
    """Standard deviation of the logarithm of tasks per user."""
    graph_seed: int = public.number(
        1, "Seed", SEED_RANGE, name="seed of the generated tasks", only_with=IF_GENERATED
    )
    """The seed of the generator."""
    loss: Loss = public.choice(Loss.STRONGLY_CONVEX, "Loss")
    """Any loss plus λ|θ|² is strongly convex. By the paper it decides the best μ."""
    # The step is that of the curve, so that the best exponent can be set.
    exponent: float = of_data.number(
        0.5, "Weight exponent μ", (0.0, 1.0), slider=(0.0, 1.0, 0.025), format="%.3g", width=180, place=LINE
    )
    """A task with n users weighs n^−μ. By the paper, 1/4 is best for convex and 1/2 for strongly convex losses."""
    fit: BudgetFit = public.choice(BudgetFit.CLIPPED, "Fit to the budget", uses_select_box=True)
    """An average user would spend β/c, and users above β are scaled down; or every user is scaled to exactly β."""
    log_constant: float = public.number(
        1.0, "C", (1e-3, 1e3), name="C in c = C log n", only_with=("fit", (BudgetFit.LOGARITHMIC,))
    )
    """In c = C log n; the paper leaves it open."""
    max_tasks: int | None = of_data.number(
        None,
        "Your own sampling",
        (1, 10**9),
        name="your own sampling",
        placeholder="tasks per user",
        place=OWN,
    )
    """Optional: the tasks per user that you keep today, drawn at random."""
    count_share: float = public.number(0.05, "Share of β for counts", (0.001, 0.9), place=TAB)
    """Learning keeps the rest."""
    count_max_tasks: int = of_data.number(
        20, "Tasks counted per user, k", (1, 10**9), name="the number of tasks counted per user", place=TAB
    )
    """Drawn at random. More bring more noise; fewer make the counts too low."""
    count_covers: bool = public.flag(True, "Let s cover what is not counted", place=TAB)
    """Then n̂ + s is at least n for every task with probability 99 %. Privacy holds either way."""
    count_seed: int = public.number(1, "Seed", SEED_RANGE, name="seed of the private counts", place=TAB)
    """The seed of the noise."""
    experiment_epsilons: str = public.text("1, 5", "Privacy budgets ε", max_length=60, place=TAB)
    """One to four numbers."""
    experiment_users: int = of_data.number(
        10_000, "Users", (100, MAX_EXPERIMENT_USERS), name="the number of users in the experiment", place=TAB
    )
    """The paper has 10,000."""
    experiment_repeats: int = public.number(5, "Repeats", (1, MAX_REPEATS), place=TAB)
    """Independent ones."""
    experiment_seed: int = public.number(1, "Seed", SEED_RANGE, name="seed of the experiment", place=TAB)
    """The seed of everything."""

    def _check_together(self, problems: Problems) -> None:
        """Add problems of fields together: a generated graph that is too large, tasks per user, bad epsilons."""
        if self.source is not TaskSource.DATA and not problems.entries:
            if self.num_users * self.num_tasks > MAX_PAGE_CELLS:
                problems.add(f"users times tasks must be at most {MAX_PAGE_CELLS:,}")
            tasks_per_user_by_name = {"the number of tasks per user": self.tasks_per_user}
            is_mean_possible = problems.between(1.0, float(self.num_tasks), **tasks_per_user_by_name)
            if is_mean_possible and self.num_users * self.tasks_per_user > MAX_PAGE_PAIRS:
                problems.add(f"users times tasks per user must be at most {MAX_PAGE_PAIRS:,}")
        epsilons_name = "epsilons of the experiment"
        for epsilon in parse_checked_numbers(problems, epsilons_name, self.experiment_epsilons, MAX_EPSILONS):
            problems.between(*EPSILON_RANGE, **{"each epsilon of the experiment": epsilon})

    @property
    def target(self) -> PrivacyTarget:
        """Return the guarantee that is asked for, (epsilon, delta)."""
        return PrivacyTarget(self.epsilon, self.delta)

    @property
    def rule(self) -> WeightRule:
        """Return the rule of the weights: the exponent, the fit to the budget, and C."""
        return WeightRule(self.exponent, self.fit, self.log_constant)

    @property
    def generator(self) -> SkewedTasks | HeavyTailed | None:
        """Return the generator of the graph; None if the data have it."""
        if self.source is TaskSource.SKEWED:
            return build_from(SkewedTasks, self, power=self.skew)
        if self.source is TaskSource.HEAVY_TAILED:
            return build_from(HeavyTailed, self, activity_spread=self.user_spread)
        return None

    @property
    def experiment(self) -> Experiment:
        """Return appendix C's experiment with the chosen users, seed, repeats and epsilons, and the page's delta."""
        return Experiment(
            epsilons=parse_numbers(self.experiment_epsilons),
            repeats=self.experiment_repeats,
            seed=self.experiment_seed,
            num_users=self.experiment_users,
            delta=self.delta,
        )
