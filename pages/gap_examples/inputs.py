"""What a person enters on the page on the largest gap, step by step, as one validated parameters object."""

from __future__ import annotations

import dataclasses

import pandas as pd
import streamlit as st

from dpcore import gap_examples, mean
from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput
from dpcore.gap_examples.parameters import (
    EVALUATIONS,
    HEAVY_SIZES,
    LIGHT_SIZES,
    MAX_RUNS,
    MAX_TABLE_SIZE,
    MAX_TABLE_USERS,
    NOISE_PER_USER_RANGE,
    NUM_USERS,
    REGRESSION_G,
    THEOREM_G,
    table_histogram,
)
from dpcore.gap_examples.simulation import MIN_RUNS
from pages.gap_examples.question import QUESTION
from pages.shared import catalogue, fields, jobs, keys, missing

TITLE = "How much can weights gain?"
SIZE_COLUMN, USERS_COLUMN = "Rows per user", "Users"
NOISE_NAMES = {mean.VarianceSource.WORST_CASE: "Worst case", mean.VarianceSource.ENTERED: "Entered"}
EXAMPLE_NAMES = {1: "Example 1: far points", 3: "Example 3: all of length 1"}
INSTANCE_NAMES = {
    gap_examples.InstanceKind.THEOREM_2: "The paper's example",
    gap_examples.InstanceKind.TWO_GROUPS: "Two groups, as set there",
    gap_examples.InstanceKind.LARGEST: "Nearly the largest ratio",
    gap_examples.InstanceKind.TABLE: "The table of Try to break it",
    gap_examples.InstanceKind.DATA: "The data in use",
}


def defaults() -> None:
    """Put the default of every field in place, for widgets that are not drawn yet."""
    start = gap_examples.GapParameters(epsilon=1.0)
    fields.defaults(
        {
            key: getattr(start, name)
            for name, key in catalogue.page(TITLE).widgets.items()
            if key != keys.EPSILON
        },
        {} if entered() else {QUESTION.key("noise_variance"): 0.1},
    )


def entered() -> bool:
    """Whether sigma^2 is entered."""
    return bool(st.session_state.get(QUESTION.key("noise")) is mean.VarianceSource.ENTERED)


LABELS = {
    "epsilon": "ε",
    "noise_variance": "σ²",
    "table_noise_ratio": "Noise ratio ρ",
    "seed": "Seed",
    "runs": "Runs N",
}


def parameters() -> gap_examples.GapParameters | None:
    """The question as the session has it. None, with the sentences on the page, where it does not hold together."""
    unused = () if entered() else ("noise_variance",)
    found: gap_examples.GapParameters | None = fields.build(QUESTION, LABELS, unused=unused)
    return found


def with_table(chosen: gap_examples.GapParameters) -> gap_examples.GapParameters:
    """The question with the table as it was last edited, which is known only once the editor is drawn."""
    return dataclasses.replace(chosen, table=st.session_state[QUESTION.key("table")])


def noise() -> None:
    """Where sigma^2 of the person's data comes from."""
    with st.container(horizontal=True):
        fields.choice(
            "Variance of one row's value, σ²",
            NOISE_NAMES,
            QUESTION.key("noise"),
            "Values lie in [0, 1] here (B = 1), so the worst case is 1/4. Divide your σ² by B² to enter it.",
        )
        if entered():
            fields.number("σ², values in [0, 1]", QUESTION.key("noise_variance"), width=220)
    if entered():
        missing.say_cleared({QUESTION.key("noise_variance"): "σ²"})


def theorem_2() -> None:
    """The slider of the paper's example."""
    _steps("g: g users with 1 row, g users with g rows", THEOREM_G, QUESTION.key("g"))


def two_groups() -> None:
    """The sliders of the step on two groups."""
    with st.grid(3, min_column_width=220):
        st.slider(
            "Light users, p (%)",
            1,
            NUM_USERS - 1,
            key=QUESTION.key("light_users"),
            persist_state="session",
            help="The others, q = 1 − p, are heavy.",
        )
        _steps("Rows of a heavy user, R times a light one's", HEAVY_SIZES, QUESTION.key("heavy_size"))
        _steps("Rows of a light user, s", LIGHT_SIZES, QUESTION.key("light_size"))


def noise_per_user() -> None:
    """The slider of the step with the noise set free."""
    st.slider(
        "Noise per user, t = ρ / m",
        *NOISE_PER_USER_RANGE,
        step=0.01,
        key=QUESTION.key("noise_per_user"),
        persist_state="session",
        help="t = 2 (B/ε)² / (σ² m), m users in all: how noisy the release is for its number of users.",
    )


def regression() -> None:
    """Which example, and its slider."""
    fields.choice("Instance", EXAMPLE_NAMES, QUESTION.key("example"))
    _steps("g", REGRESSION_G, QUESTION.key("regression_g"))


def _steps(label: str, options: tuple[int, ...], key: str) -> None:
    st.select_slider(label, options, key=key, format_func=lambda n: f"{n:,}", persist_state="session")


def search() -> bool:
    """Where the search looks and for how long; whether to start."""
    with st.grid(4, min_column_width=170):
        st.slider("Groups of users", 2, 8, key=QUESTION.key("num_groups"), persist_state="session")
        _steps("Instances to try", EVALUATIONS, QUESTION.key("evaluations"))
        fields.number("Seed", QUESTION.key("seed"), whole=True)
        with st.container(height="stretch", vertical_alignment="bottom"):
            return st.button("Search", type=fields.main_button(), icon=":material/search:", key="gap_search")


def simulation() -> bool:
    """What to simulate and how often; whether to start."""
    with st.grid(3, min_column_width=220):
        fields.pick("Instance", INSTANCE_NAMES, QUESTION.key("simulated"))
        fields.number(
            "Runs N at each bound",
            QUESTION.key("runs"),
            f"{MIN_RUNS:,} to {MAX_RUNS:,}, of each mechanism. Four times as many runs halve the intervals.",
            whole=True,
        )
        with st.container(height="stretch", vertical_alignment="bottom"):
            return st.button(
                "Simulate", type=fields.main_button(), icon=":material/casino:", key="gap_simulate"
            )


def table() -> None:
    """The editable table of one's own instance, its noise, and some to start from."""
    state = st.session_state
    times = state.setdefault(QUESTION.key("table_round"), 0)
    editor = f"{QUESTION.key('table_editor_')}{times}"
    if editor not in state:
        # The editor forgets its edits where it is not drawn; then it starts from what they led to.
        state[QUESTION.key("table_base")] = state[QUESTION.key("table")]
    base = table_histogram(state[QUESTION.key("table_base")])
    edited = st.data_editor(
        pd.DataFrame({SIZE_COLUMN: base.sizes, USERS_COLUMN: base.users}),
        num_rows="dynamic",
        hide_index=True,
        key=editor,
        column_config={
            SIZE_COLUMN: st.column_config.NumberColumn(
                min_value=1, max_value=MAX_TABLE_SIZE, step=1, required=True, format="localized"
            ),
            USERS_COLUMN: st.column_config.NumberColumn(
                min_value=1, max_value=MAX_TABLE_USERS, step=1, required=True, format="localized"
            ),
        },
        alt="Your instance: groups of users with their rows per user and their number",
    )
    try:
        state[QUESTION.key("table")] = _text(edited)
    except InvalidInput as refused:
        fields.say(refused.problems)
        st.caption("The figures beside are for the table as it last held together.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fields.number(
            "Noise ratio ρ (rows)",
            QUESTION.key("table_noise_ratio"),
            "ρ = 2 (B/ε)²/σ². More noise makes smaller caps better.",
            width=190,
        )
        st.button(
            "Worst noise",
            on_click=_worst_noise,
            key="gap_worst_noise",
            icon=":material/vertical_align_top:",
            help="Set ρ where this table's ratio is largest.",
        )
    _starts()


def _text(edited: pd.DataFrame) -> str:
    filled = edited.dropna()
    if filled.empty:
        problems = Problems()
        problems.add("the table is empty", remedy="Give at least one group of users")
        problems.raise_if_any()
    return gap_examples.table_text(filled[SIZE_COLUMN].to_numpy(), filled[USERS_COLUMN].to_numpy())


def _worst_noise() -> None:
    histogram = table_histogram(st.session_state[QUESTION.key("table")])
    found = gap_examples.worst_noise_ratio(histogram.sizes, histogram.users)
    st.session_state[QUESTION.key("table_noise_ratio")] = float(f"{found:.9g}")


def _starts() -> None:
    problems = {
        "The paper's, g = 10": gap_examples.theorem_2_problem(10),
        "Nearly the largest": gap_examples.supremum().problem(),
    }
    done = jobs.result_of(QUESTION.key("search_job"))
    if done is not None:
        problems["What the search found"] = done[1].comparison.problem
    with st.container(horizontal=True):
        for i, (name, problem) in enumerate(problems.items()):
            st.button(name, key=f"gap_start_{i}", on_click=_fill, args=(problem,), icon=":material/input:")


def _fill(problem: mean.MeanProblem) -> None:
    histogram = problem.histogram
    st.session_state[QUESTION.key("table")] = gap_examples.table_text(histogram.sizes, histogram.users)
    st.session_state[QUESTION.key("table_noise_ratio")] = float(f"{gap_examples.noise_ratio(problem):.9g}")
    st.session_state[QUESTION.key("table_round")] += 1
