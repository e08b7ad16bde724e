"""The settings of the page *Multi-task weights*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import LINE, OWN, TAB, Option, Parameters, of_data, public
from dpcore.common.text_fields import parse_checked_numbers, parse_numbers
from dpcore.multitask.experiment import Experiment, HeavyTailed, SkewedTasks
from dpcore.multitask.problem import DELTA_RANGE, Loss, PrivacyTarget
from dpcore.multitask.weights import BudgetFit, WeightRule

MAX_PAGE_CELLS = 200_000_000
"""Users times tasks that a page draws while a person waits: about 1.5 s."""
MAX_PAGE_PAIRS = 10_000_000
MAX_PAGE_USERS, MAX_PAGE_TASKS = 200_000, 10_000
"""Size of a page's generated data: 0.3 GB, about 1 s."""
MAX_EPSILONS = 4
MAX_REPEATS = 100
MAX_EXPERIMENT_USERS = 50_000
SEEDS = (0, 2**32 - 1)


class TaskSource(Option):
    """The source of the graph of users and tasks."""

    DATA = "data", "Your data"
    SKEWED = "skewed", "Generated, skewed"
    HEAVY_TAILED = "heavy-tailed", "Generated, heavy tails"


GENERATED = ("source", (TaskSource.SKEWED, TaskSource.HEAVY_TAILED))
SKEWED = ("source", (TaskSource.SKEWED,))
HEAVY_TAILED = ("source", (TaskSource.HEAVY_TAILED,))


@dataclass(frozen=True)
class MultitaskParameters(Parameters):
    """The settings of the page *Multi-task weights*."""

    delta: float = public.number(1e-5, "δ", DELTA_RANGE, name="δ", width=110, place=LINE)
    """The probability with which ε may fail to hold. Choose it well below 1 / (number of users)."""
    source: TaskSource = public.choice(TaskSource.SKEWED, "Users and tasks", as_list=True)
    """Skewed tasks are those of the paper's appendix C. Heavy tails look like a catalogue."""
    # Whoever generates tasks may make them like the data: as many users, as uneven.
    num_users: int = of_data.number(
        10_000, "Users", (1, MAX_PAGE_USERS), name="the number of users", only_with=GENERATED
    )
    """The number of users, n."""
    num_tasks: int = of_data.number(
        100, "Tasks", (1, MAX_PAGE_TASKS), name="the number of tasks", only_with=GENERATED
    )
    """The number of tasks, m."""
    tasks_per_user: float = of_data.number(
        20.0, "Tasks per user", name="the number of tasks per user", only_with=GENERATED
    )
    """The average number of tasks per user, at most the number of tasks."""
    skew: float = of_data.number(1.0, "Skew a", (0.01, 100.0), only_with=SKEWED)
    """Popularity has density $a x^{a-1}$: 1 is more skewed than 2."""
    zipf_exponent: float = of_data.number(1.0, "Zipf exponent", (0.0, 3.0), only_with=HEAVY_TAILED)
    """The $i$-th task is as popular as $i^{-s}$."""
    user_spread: float = of_data.number(1.0, "User spread", (0.0, 3.0), only_with=HEAVY_TAILED)
    """The standard deviation of the logarithm of a user's number of tasks."""
    graph_seed: int = public.number(1, "Seed", SEEDS, name="seed of the generated tasks", only_with=GENERATED)
    """The same seed draws the same users and tasks."""
    loss: Loss = public.choice(Loss.STRONGLY_CONVEX, "Loss")
    """Ridge regression is strongly convex, and so is any loss plus λ|θ|². The loss decides which μ is best by the
    paper."""
    # The step is that of the curve, so that the best exponent can be set.
    exponent: float = of_data.number(
        0.5,
        "Favour small tasks, μ",
        (0.0, 1.0),
        name="the exponent μ",
        slider=(0.0, 1.0, 0.025),
        format="%.3g",
        width=180,
        place=LINE,
    )
    """A task with n users gets weight n^−μ. With 0, all tasks get the same weight. By the paper, 1/4 is best for convex
    losses and 1/2 for strongly convex ones."""
    fit: BudgetFit = public.choice(
        BudgetFit.CLIPPED, "Fit to the budget", name="how weights are fitted to the budget", as_list=True
    )
    """Clipping scales weights so that an average user would spend β/c, and then scales down users above β. Filling up
    scales every user up or down to exactly β."""
    log_constant: float = public.number(
        1.0, "C", (1e-3, 1e3), name="C in c = C log n", only_with=("fit", (BudgetFit.LOGARITHMIC,))
    )
    """The constant in c = C log n, which the paper leaves open."""
    max_tasks: int | None = of_data.number(
        None,
        "Your own sampling",
        (1, 10**9),
        name="tasks per user of your own sampling",
        placeholder="tasks per user",
        place=OWN,
    )
    """Optional: the number k of tasks per user that you keep today, drawn at random."""
    count_share: float = public.number(0.05, "Share of β for counts", (0.001, 0.9), place=TAB)
    """The share of the budget that counting takes; learning keeps the rest."""
    count_max_tasks: int = of_data.number(
        20, "Tasks counted per user, k", (1, 10**9), name="the number of tasks counted per user", place=TAB
    )
    """They are drawn at random from each user's tasks. More tasks bring more noise; fewer make the counts too low."""
    count_covers: bool = public.flag(True, "Let s cover what is not counted", place=TAB)
    """If on, n̂ + s is at least n for every task with probability 99 %. If off, clipping may cost more; privacy holds
    either way."""
    count_seed: int = public.number(1, "Seed", SEEDS, name="seed of the private counts", place=TAB)
    """The seed of this simulation's noise."""
    experiment_epsilons: str = public.text("1, 5", "Privacy budgets ε", max_length=60, place=TAB)
    """One to four numbers, separated by commas."""
    experiment_users: int = of_data.number(
        10_000, "Users", (100, MAX_EXPERIMENT_USERS), name="the number of users in the experiment", place=TAB
    )
    """The number of users; the paper has 10,000."""
    experiment_repeats: int = public.number(5, "Repeats", (1, MAX_REPEATS), place=TAB)
    """The number of independent repetitions."""
    experiment_seed: int = public.number(1, "Seed", SEEDS, name="seed of the experiment", place=TAB)
    """The same seed gives the same figure."""

    def _check_together(self, problems: Problems) -> None:
        if self.source is not TaskSource.DATA and not problems.entries:
            names = {"the number of tasks per user": self.tasks_per_user}
            if self.num_users * self.num_tasks > MAX_PAGE_CELLS:
                problems.add(f"users times tasks must be at most {MAX_PAGE_CELLS:,}")
            fits = problems.between(1.0, float(self.num_tasks), **names)
            if fits and self.num_users * self.tasks_per_user > MAX_PAGE_PAIRS:
                problems.add(f"users times tasks per user must be at most {MAX_PAGE_PAIRS:,}")
        text, name = self.experiment_epsilons, "epsilons of the experiment"
        for epsilon in parse_checked_numbers(problems, name, text, MAX_EPSILONS):
            problems.between(*EPSILON_RANGE, **{"each epsilon of the experiment": epsilon})

    @property
    def target(self) -> PrivacyTarget:
        """Return (epsilon, delta)."""
        return PrivacyTarget(self.epsilon, self.delta)

    @property
    def rule(self) -> WeightRule:
        """Return the rule of the weights."""
        return WeightRule(self.exponent, self.fit, self.log_constant)

    @property
    def generator(self) -> SkewedTasks | HeavyTailed | None:
        """Return the generator of the graph; None if the data have it."""
        users, tasks, mean = self.num_users, self.num_tasks, self.tasks_per_user
        if self.source is TaskSource.SKEWED:
            return SkewedTasks(users, tasks, self.skew, mean)
        if self.source is TaskSource.HEAVY_TAILED:
            return HeavyTailed(users, tasks, mean, self.zipf_exponent, self.user_spread)
        return None

    @property
    def experiment(self) -> Experiment:
        """Return appendix C's experiment with the chosen seeds, repeats and epsilons."""
        return Experiment(
            epsilons=parse_numbers(self.experiment_epsilons),
            repeats=self.experiment_repeats,
            seed=self.experiment_seed,
            num_users=self.experiment_users,
            delta=self.delta,
        )
