"""What a person enters on the page Many tasks, as one validated parameters object."""

from __future__ import annotations

import zlib

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.multitask.fit import Fit
from dpcore.multitask.parameters import MOST_REPEATS, LossKind, MultitaskParameters, TaskSource
from pages.multitask.answer import MultitaskView
from pages.multitask.card import FIT_NAMES, SOURCE_NAMES
from pages.shared import catalogue, fields, keys, ranges, session

WIDGETS = catalogue.page("Many tasks").widgets
NAMES = {
    "epsilon": "ε",
    "delta": "δ",
    "log_constant": "C",
    "num_users": "Users",
    "num_tasks": "Tasks",
    "tasks_per_user": "Tasks per user",
    "skew": "Skew a",
    "zipf_exponent": "Zipf exponent",
    "user_spread": "User spread",
    "graph_seed": "Seed of the generated tasks",
    "count_share": "Share of β for counts",
    "count_max_tasks": "Tasks counted per user",
    "count_seed": "Seed of the private counts",
    "experiment_users": "Users in the experiment",
    "experiment_repeats": "Repeats",
    "experiment_seed": "Seed of the experiment",
}
"""Fields that must not be empty, by their labels."""
LOSS_NAMES = {LossKind.STRONGLY_CONVEX: "Strongly convex", LossKind.CONVEX: "Convex"}
MARKS = {0.0: "0: uniform", 0.25: "1/4: convex", 0.5: "1/2: strongly convex", 1.0: "1"}
"""The exponents that the paper names."""
STEP = 0.05
DEFAULTS = MultitaskParameters(ranges.DEFAULT_EPSILON)


def defaults(data: Dataset) -> None:
    """Fill what is not there yet; propose where the tasks come from whenever other data were loaded."""
    state = st.session_state
    version = session.data_version()
    proposed = TaskSource.DATA if data.pairs is not None else DEFAULTS.source
    if state.get(keys.TASKS_SOURCE_FOR) is None:
        state.setdefault(keys.TASKS_SOURCE, proposed)
    elif state[keys.TASKS_SOURCE_FOR] != version:
        state[keys.TASKS_SOURCE] = proposed
    state[keys.TASKS_SOURCE_FOR] = version
    for name, key in WIDGETS.items():
        if name not in ("epsilon", "source"):
            fields.defaults({key: getattr(DEFAULTS, name)})


def read() -> MultitaskParameters | None:
    """The parameters as entered. None, with the sentences on the page, where they do not fit together."""
    found: MultitaskParameters | None = fields.build("Many tasks", NAMES, aside=("max_tasks",))
    return found


def question(data: Dataset) -> None:
    """Where the tasks come from, the loss, how weights are fitted, delta."""
    fit = st.session_state[keys.TASKS_FIT]
    with fields.row():
        fields.pick(
            "Users and tasks",
            {source: SOURCE_NAMES[source] for source in TaskSource},
            keys.TASKS_SOURCE,
            "Skewed tasks are those of the paper's appendix C; heavy tails look like a catalogue.",
            width=190,
        )
        fields.choice(
            "Loss",
            LOSS_NAMES,
            keys.TASKS_LOSS,
            "Strongly convex: ridge regression, or any loss plus λ|θ|². It sets which μ is best by the paper.",
        )
        fields.pick(
            "Fit to the budget",
            FIT_NAMES,
            keys.TASKS_FIT,
            "Weights are scaled so that an average user would spend β/c, then users above β are scaled "
            "down. Or every user is scaled up or down to exactly β.",
            width=190,
        )
        fields.number(
            "δ",
            keys.TASKS_DELTA,
            "Of (ε, δ)-differential privacy. Well below one over the number of users.",
            width=110,
        )
        if fit is Fit.LOGARITHMIC:
            fields.number(
                "C", keys.TASKS_LOG_CONSTANT, "c = C log n. The paper leaves this constant open.", width=110
            )
    if st.session_state[keys.TASKS_SOURCE] is not TaskSource.DATA:
        _generator(link=data.pairs is None)


def _generator(link: bool) -> None:
    heavy = st.session_state[keys.TASKS_SOURCE] is TaskSource.HEAVY_TAILED
    entries = [
        (keys.TASKS_USERS, "Users", "n", True),
        (keys.TASKS_TASKS, "Tasks", "m", True),
        (keys.TASKS_PER_USER, "Tasks per user", "On average.", False),
        *(
            (
                (keys.TASKS_ZIPF, "Zipf exponent", "The $i$-th task is as popular as $i^{-s}$.", False),
                (
                    keys.TASKS_SPREAD,
                    "User spread",
                    "Standard deviation of the log of a user's tasks.",
                    False,
                ),
            )
            if heavy
            else (
                (
                    keys.TASKS_SKEW,
                    "Skew a",
                    "Popularity has density $a x^{a-1}$: 1 is more skewed than 2.",
                    False,
                ),
            )
        ),
        (keys.TASKS_GRAPH_SEED, "Seed", "The same seed draws the same users and tasks.", True),
    ]
    columns = st.columns(len(entries) + link, vertical_alignment="bottom")
    for column, (key, label, text, whole) in zip(columns, entries, strict=False):
        with column:
            fields.number(label, key, text, whole=whole)
    if link:
        with columns[-1]:
            st.page_link(
                session.page_file("Your data"),
                label="Bring data",
                icon=":material/upload:",
                help="Bring a table with one row per contribution, a user column and a task column.",
            )


def exponent_slider() -> None:
    """mu, with the values that the paper names as buttons."""
    st.slider(
        "Exponent μ: how much small tasks are favoured",
        0.0,
        1.0,
        step=STEP,
        key=keys.TASKS_EXPONENT,
        persist_state="session",
        help="A task with $n$ users gets weight $n^{-\\mu}$. 0: all tasks alike. 1/4 and 1/2 are best by the paper "
        "for convex and strongly convex losses.",
    )
    with st.container(horizontal=True, gap="small", key="tasks_marks"):
        for value, label in MARKS.items():
            st.button(label, key=f"tasks_mark_{value:g}", type="tertiary", on_click=_mark, args=(value,))


def axis_version(view: MultitaskView) -> str:
    """Names the axes' ranges: they are offered anew with other tasks, another loss or another fit."""
    rule = view.rule.with_exponent(0.0)
    return f"{zlib.crc32(repr((view.tasks.key, view.problem.loss, rule)).encode()):08x}"


def _mark(value: float) -> None:
    st.session_state[keys.TASKS_EXPONENT] = value


def own_sampling() -> None:
    """k of the sampling to compare with."""
    fields.number(
        "Compare your own sampling: tasks per user",
        keys.TASKS_MAX_TASKS,
        "Optional: the number k of tasks per user that you keep today, drawn at random.",
        whole=True,
    )


def counts() -> None:
    """Of the private counts."""
    columns = st.columns([3, 3, 4, 2], vertical_alignment="bottom")
    with columns[0]:
        fields.number(
            "Share of β for counts", keys.TASKS_COUNT_SHARE, "Between 0.001 and 0.9; learning keeps the rest."
        )
    with columns[1]:
        fields.number(
            "Tasks counted per user, k",
            keys.TASKS_COUNT_MAX,
            "Drawn at random from each user's. More means more noise, fewer means counts that are too low.",
            whole=True,
        )
    with columns[2]:
        st.toggle(
            "Let s cover what is not counted",
            key=keys.TASKS_COUNT_COVERS,
            persist_state="session",
            help="Then n̂ + s is at least n for every task with probability 99 %. Without it, clipping may "
            "cost more; privacy holds either way.",
        )
    with columns[3]:
        fields.number("Seed", keys.TASKS_COUNT_SEED, "Of this simulation's noise.", whole=True)


def experiment() -> bool:
    """Of the experiment; whether it is to start."""
    columns = st.columns([3, 3, 2, 2, 3], vertical_alignment="bottom")
    with columns[0]:
        st.text_input(
            "Privacy budgets ε",
            key=keys.TASKS_EPSILONS,
            persist_state="session",
            max_chars=60,
            help="One to four numbers, separated by commas.",
        )
    with columns[1]:
        fields.number(
            "Users", keys.TASKS_EXPERIMENT_USERS, "100 to 50,000; the paper has 10,000.", whole=True
        )
    with columns[2]:
        fields.number(
            "Repeats", keys.TASKS_REPEATS, f"1 to {MOST_REPEATS} independent draws of all.", whole=True
        )
    with columns[3]:
        fields.number("Seed", keys.TASKS_EXPERIMENT_SEED, "The same seed gives the same figure.", whole=True)
    with columns[4]:
        return st.button(
            "Run",
            type=fields.main_button(),
            icon=":material/play_arrow:",
            key="tasks_run",
            width="stretch",
        )
