"""Many tasks: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import MAX_REPEATS, LossKind, MultitaskParameters, TaskSource
from pages.shared.base.question import DELTA, Facet, Field, From, Question, public
from pages.shared.data import item_list


def propose(data: Dataset, now: Mapping[str, Any]) -> dict[str, Any]:
    """The tasks of the data where they have some; otherwise a generator, the one in use if there is one."""
    if data.pairs is not None:
        return {"source": TaskSource.DATA}
    return {"source": MultitaskParameters.source} if now["source"] in (None, TaskSource.DATA) else {}


def generator_fields(source: TaskSource) -> tuple[str, ...]:
    """The fields that a generator uses; none for the data's own tasks."""
    if source is TaskSource.DATA:
        return ()
    uneven = ("zipf_exponent", "user_spread") if source is TaskSource.HEAVY_TAILED else ("skew",)
    return ("num_users", "num_tasks", "tasks_per_user", *uneven, "graph_seed")


STEP = 0.025
"""Of the slider of mu: every mu that the curve tries is one of its steps, so that the best one can be set."""

QUESTION = Question(
    name="multitask",
    title="Many tasks",
    icon=":material/account_tree:",
    url_path="many-tasks",
    group="Models",
    lead="You train one model per task, say per product, with (ε, δ)-differential privacy. "
    "**Which tasks get a user's budget?**",
    sentence="I train one model per task: how should each user's privacy budget be divided among their tasks?",
    release="One model per task",
    answers_from=(Facet.GROUPS,),
    parameters=MultitaskParameters,
    fields={
        "delta": DELTA,
        "source": public(
            "Users and tasks",
            "Skewed tasks are those of the paper's appendix C; heavy tails look like a catalogue.",
            options={
                TaskSource.DATA: "Your data",
                TaskSource.SKEWED: "Generated, skewed",
                TaskSource.HEAVY_TAILED: "Generated, heavy tails",
            },
            as_list=True,
        ),
        "loss": public(
            "Loss",
            "Strongly convex: ridge regression, or any loss plus λ|θ|². It sets which μ is best by the paper.",
            options={LossKind.STRONGLY_CONVEX: "Strongly convex", LossKind.CONVEX: "Convex"},
        ),
        # The page shows which one is best for the data, and a person sets that one.
        "exponent": Field(
            "Favour small tasks, μ",
            "A task with $n$ users gets weight $n^{-\\mu}$. 0: all tasks alike. 1/4 and 1/2 are best by the "
            "paper for convex and strongly convex losses.",
            report_label="Exponent μ",
            slider=(0.0, 1.0, STEP),
            format="%.3g",
            width=180,
        ),
        "fit": public(
            "Fit to the budget",
            "Weights are scaled so that an average user would spend β/c, then users above β are scaled down. "
            "Or every user is scaled up or down to exactly β.",
            report_label="How weights are fitted to the budget",
            options={
                BudgetFit.CLIPPED: "Clip, c = 1",
                BudgetFit.LOGARITHMIC: "Clip, c = C log n",
                BudgetFit.NOBODY_CLIPPED: "Clip nobody",
                BudgetFit.FULL: "Fill everybody up",
            },
            as_list=True,
        ),
        "log_constant": public(
            "C", "c = C log n. The paper leaves this constant open.", report_label="C in c = C log n"
        ),
        "max_tasks": Field(
            "Compare your own sampling",
            "Optional: the number k of tasks per user that you keep today, drawn at random.",
            report_label="Tasks per user of your own sampling",
            placeholder="tasks per user",
        ),
        # Whoever generates tasks may make them like the data: as many users, as uneven.
        "num_users": Field(
            "Users", "The number of users, n.", name="The number of users", report_label="Users generated"
        ),
        "num_tasks": Field(
            "Tasks", "The number of tasks, m.", name="The number of tasks", report_label="Tasks generated"
        ),
        "tasks_per_user": Field(
            "Tasks per user",
            "The average number of tasks per user.",
            name="The number of tasks per user",
            report_label="Tasks per user, on average",
        ),
        "skew": Field(
            "Skew a",
            "Popularity has density $a x^{a-1}$: 1 is more skewed than 2.",
            report_label="Skew a of the tasks",
        ),
        "zipf_exponent": Field(
            "Zipf exponent",
            "The $i$-th task is as popular as $i^{-s}$.",
            report_label="Zipf exponent of the tasks",
        ),
        "user_spread": Field("User spread", "The standard deviation of the log of a user's number of tasks."),
        "graph_seed": public(
            "Seed", "The same seed draws the same users and tasks.", name="Seed of the generated tasks"
        ),
        "count_share": public("Share of β for counts", "Between 0.001 and 0.9; learning keeps the rest."),
        "count_max_tasks": Field(
            "Tasks counted per user, k",
            "They are drawn at random from each user's tasks. More bring more noise; fewer make the counts too "
            "low.",
            name="The number of tasks counted per user",
        ),
        "count_covers": public(
            "Let s cover what is not counted",
            "Then n̂ + s is at least n for every task with probability 99 %. Without it, clipping may cost "
            "more; privacy holds either way.",
        ),
        "count_seed": public(
            "Seed", "The seed of this simulation's noise.", name="Seed of the private counts"
        ),
        "experiment_epsilons": public(
            "Privacy budgets ε", "One to four numbers, separated by commas.", max_length=60
        ),
        "experiment_users": Field(
            "Users", "100 to 50,000; the paper has 10,000.", name="The number of users in the experiment"
        ),
        "experiment_repeats": public("Repeats", f"1 to {MAX_REPEATS} independent repetitions."),
        "experiment_seed": public(
            "Seed", "The same seed gives the same figure.", name="Seed of the experiment"
        ),
    },
    also=item_list.ENTRIES
    | From.PUBLIC.each("tabs", "relative")
    | From.DATA.each("optimum_job", "cvxpy_job", "experiment_job", "download"),
    propose=propose,
    proposed=("source",),
)
