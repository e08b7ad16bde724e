"""The tabs of the page Many tasks below its answer."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Sensitivity
from dpcore.multitask import files
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.problem import Allocation
from pages.multitask import (
    answer,
    cached,
    card,
    detail_figures,
    report,
)
from pages.multitask import (
    figures as multitask_charts,
)
from pages.multitask import (
    optimum as multitask_optimum,
)
from pages.multitask.answer import MultitaskView
from pages.multitask.question import QUESTION
from pages.shared import cards, figures, session, take_away

TABLE_ROWS = 2_000
LARGE_FILE = 1_000_000
"""Pairs above which a person is told how long the file will be."""


def when_there(view: MultitaskView | None, show: Callable[[MultitaskView], None]) -> None:
    """Show a tab that needs an answer, or say that there is none."""
    if view is None:
        st.caption("Nothing to show until there are tasks and settings that fit together; see above.")
    else:
        show(view)


def show_sizes(view: MultitaskView) -> None:
    """Task sizes, and the total bound over mu."""
    optima = multitask_optimum.known_optima(view)
    optimum = None if optima is None else view.total(optima.of_kind(view.rule.fit))
    left, right = st.columns(2)
    with left:
        st.markdown("**How large the tasks are**")
        figures.show(
            multitask_charts.size_figure(view.tasks),
            "many_tasks_sizes",
            multitask_charts.SIZE_ALT,
            multitask_charts.size_columns(view.tasks),
            view.tasks.sensitivity,
        )
    with right:
        st.markdown("**Which μ is best**")
        figures.show(
            multitask_charts.exponent_figure(view, optimum),
            "many_tasks_exponents",
            multitask_charts.exponent_alt(view),
            multitask_charts.exponent_columns(view, optimum),
            view.tasks.sensitivity,
        )


def show_users(view: MultitaskView) -> None:
    """How much of the budget users use, and which users."""
    left, right = st.columns(2)
    with left:
        st.markdown("**How much of their budget users use**")
        figures.show(
            detail_figures.use_figure(view),
            "many_tasks_use",
            "Share of users by the share of the budget that they use.",
            detail_figures.use_columns(view),
            view.tasks.sensitivity,
        )
    with right:
        st.markdown("**Who uses it**")
        figures.show(
            detail_figures.user_figure(view),
            "many_tasks_users",
            "Users with few tasks leave budget unused; those with many spend all of it.",
            detail_figures.user_columns(view),
            view.tasks.sensitivity,
        )
    idle = view.problem.num_users - int((view.tasks.graph.tasks_per_user > 0).sum())
    if idle:
        st.caption(
            f"{wording.counted(idle, 'user')} without a task {wording.agreeing(idle, 'is', 'are')} left out of both."
        )


def show_table(view: MultitaskView) -> None:
    """One row per task."""
    columns, left_out = detail_figures.task_table(view, TABLE_ROWS)
    number = st.column_config.NumberColumn
    st.dataframe(
        columns,
        hide_index=True,
        height=420,
        column_config={
            "task": number("Task", format="%d"),
            "users": number("Users", format="localized"),
            "weight": number(
                "Weight, mean", format="%.3g", help="Mean over the task's users, after fitting to β."
            ),
            "weight_ratio": number("Weight against uniform", format="%.2f"),
            "bound_ratio": number("Error bound against uniform", format="%.2f"),
            "share": st.column_config.ProgressColumn(
                "Share of the total error",
                format="percent",
                min_value=0.0,
                max_value=float(columns["share"].max()),
            ),
        },
        alt="Tasks with their size, weight and share of the total error, smallest task first",
    )
    note = (
        f"Smallest task first; {wording.counted(left_out, 'task')} in the middle left out. "
        if left_out
        else ""
    )
    number_from = (
        "Tasks are numbered from 0 in the order in which they first appear in your file."
        if _from_data()
        else "Tasks are numbered from 0 as drawn."
    )
    st.caption(note + number_from)
    cards.label(view.tasks.sensitivity)


def _from_data() -> bool:
    return bool(st.session_state[QUESTION.key("source")] is TaskSource.DATA)


def show_budget(parameters: MultitaskParameters | None) -> None:
    """Exact and sufficient beta."""
    if parameters is None:
        return
    budgets = cached.budget(parameters.target)
    left, right = st.columns([5, 6])
    with left:
        st.markdown(_budget_sentences(budgets))
    with right:
        columns = cached.budgets(parameters.delta)
        figures.show(
            detail_figures.budget_figure(columns, parameters.epsilon, budgets.exact),
            "many_tasks_budget",
            "The user budget against epsilon: the exact one lies above the paper's.",
            columns,
            Sensitivity.PUBLIC,
        )


def _budget_sentences(budgets: BudgetComparison) -> str:
    lines = [
        "| | β | weights | error bounds |",
        "|---|---|---|---|",
        f"| exact | {wording.number(budgets.exact, 4)} | 1 | 1 |",
    ]
    if budgets.sufficient is None or budgets.weight_gain is None:
        lines.append("| paper | does not apply: ε > log(1/δ) | | |")
        said = (
            "The paper's condition needs ε ≤ log(1/δ), which does not hold here; the exact conversion "
            "always applies."
        )
    else:
        gained = budgets.weight_gain
        lines.append(
            f"| paper | {wording.number(budgets.sufficient, 4)} | {1.0 / gained:.3f} | {gained**2:.3f}× |"
        )
        said = (
            f"At the same guarantee the exact conversion allows every weight to be {gained:.3f} times as "
            f"large; error bounds of strongly convex losses fall by {wording.percent(1.0 - 1.0 / gained**2)}."
        )
    return (
        "\n".join(lines)
        + f"\n\n{said} All that is released is one Gaussian mechanism with noise "
        + f"{wording.number(budgets.noise_multiplier)} times its sensitivity."
    )


# --- downloads ----------------------------------------------------------------------------------------------


def show_files(view: MultitaskView, parameters: MultitaskParameters | None) -> None:
    """The whole answer; weights and code."""
    sensitivity = view.tasks.sensitivity
    optima = multitask_optimum.known_optima(view)
    if parameters is not None:
        data, budgets = session.dataset(), cached.budget(parameters.target)
        source = take_away.source(rows=True, sensitivity=sensitivity)
        take_away.draw(
            "many_tasks",
            sensitivity,
            view.tasks.key,
            lambda: report.multitask_report(view, data, parameters, budgets, optima, source),
        )
    offered: dict[str, Allocation] = {
        f"Chosen: μ = {card.exponent(view.rule.exponent)}": view.chosen,
        f"Uniform sampling, k = {answer.tasks_per_user(view.sampling):,}": view.sampling,
    }
    if optima is not None:
        offered["Exact optimum, problem (9)"] = answer.with_budget(optima.same_for_all, view.problem)
        offered["Exact optimum, free weights"] = answer.with_budget(optima.free, view.problem)
    if st.session_state.get(QUESTION.key("download")) not in offered:
        st.session_state[QUESTION.key("download")] = next(iter(offered))
    name = st.selectbox("Which weights", list(offered), key=QUESTION.key("download"))
    allocation = offered[name]
    if allocation.reads_graph:
        st.caption(
            ":material/warning: These weights are computed from who contributes to what, so they are not part of "
            "a private mechanism."
        )
    task_file = f"{figures.file_name('task_weights', sensitivity)}.csv"
    with st.container(horizontal=True):
        for label, make, file, mime in (
            (
                "Task weights (CSV)",
                lambda: files.task_weights_csv(allocation, sensitivity.label),
                task_file,
                "text/csv",
            ),
            (
                "User-task weights (CSV)",
                lambda: b"".join(
                    piece.encode() for piece in files.pair_weights_csv(allocation, sensitivity.label)
                ),
                f"{figures.file_name('user_task_weights', sensitivity)}.csv",
                "text/csv",
            ),
            (
                "Code (Python)",
                lambda: files.numpy_code(allocation, task_file),
                "apply_weights.py",
                "text/x-python",
            ),
        ):
            st.download_button(
                label,
                make,
                file_name=file,
                mime=mime,
                key=f"tasks_file_{label.split(' ')[0].lower()}",
                on_click="ignore",
                icon=":material/download:",
            )
    pairs = view.tasks.graph.num_pairs
    st.caption(
        f"Label in both tables: *{sensitivity.label}*. {wording.counted(pairs, 'line')} of user-task weights"
        + (f", about {pairs * 32 / 1e6:,.0f} MB" if pairs > LARGE_FILE else "")
        + ". Users and tasks are numbered from 0 in the order in which they first appear; the code computes "
        "every user's weights from the tasks' factors."
    )
    with st.expander("Look at the code"):
        st.code(files.numpy_code(allocation, task_file), language="python")
