"""The tabs of the page Many tasks below its answer."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.multitask import files
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from pages.multitask import answer, cached, card, detail_figures, methods, report
from pages.multitask import figures as multitask_charts
from pages.multitask import optimum as multitask_optimum
from pages.multitask.answer import MultitaskView
from pages.multitask.question import QUESTION
from pages.shared import cards, figures, file_button, session, take_away

TABLE_ROWS = 2_000
LARGE_FILE = 1_000_000
"""Pairs above which a person is told how long the file will be."""


def show_behind(view: MultitaskView, parameters: MultitaskParameters, said: Answer) -> None:
    """How sure the answer is, what it assumes, and the graph and budget that it is for."""
    cards.behind(said)
    st.caption(card.what_is_used(view.tasks, cached.budget(parameters.target)))


def show_weights(view: MultitaskView) -> None:
    """The total bound over mu, and the weights of the chosen mu."""
    optima = multitask_optimum.known_optima(view)
    multitask_optimum.show_beside(
        multitask_charts.exponent_picture(view, optima), multitask_charts.weight_picture(view)
    )


def show_users_and_tasks(view: MultitaskView, parameters: MultitaskParameters) -> None:
    """How much of the budget users use, and which users; how large tasks are, and what each gets."""
    multitask_optimum.show_beside(detail_figures.use_picture(view), detail_figures.user_picture(view))
    idle = view.problem.num_users - int((view.tasks.graph.tasks_per_user > 0).sum())
    if idle:
        st.caption(
            f"{wording.counted(idle, 'user')} without a task {wording.agreeing(idle, 'is', 'are')} left out of both."
        )
    st.markdown("**How large the tasks are**")
    figures.show_picture(multitask_charts.size_picture(view.tasks))
    _show_table(view, cached.budget(parameters.target).exact)


def _show_table(view: MultitaskView, budget: float) -> None:
    """One row per task."""
    columns, left_out = detail_figures.task_table(view, budget, TABLE_ROWS)
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
    cards.label(view.tasks.disclosure)


def _from_data() -> bool:
    return bool(st.session_state[QUESTION.key("source")] is TaskSource.DATA)


def show_budget(parameters: MultitaskParameters) -> None:
    """Exact and sufficient beta."""
    budgets, columns = cached.budget(parameters.target), cached.budgets(parameters.delta)
    left, right = st.columns([5, 6])
    left.markdown(_budget_sentences(budgets))
    with right:
        figures.show_picture(detail_figures.budget_picture(columns, parameters.epsilon, budgets.exact))


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


def show_files(view: MultitaskView, parameters: MultitaskParameters) -> None:
    """The whole answer; weights and code."""
    disclosure = view.tasks.disclosure
    optima = multitask_optimum.known_optima(view)
    data, budgets = session.dataset(), cached.budget(parameters.target)
    source = take_away.source(rows=True, disclosure=disclosure)
    take_away.draw(
        "many_tasks",
        disclosure,
        lambda: report.multitask_report(view, data, parameters, budgets, optima, source),
        methods.methods(view, parameters),
    )
    offered = {
        f"Chosen: μ = {card.exponent(view.rule.exponent)}": view.chosen,
        f"Uniform sampling, k = {answer.tasks_per_user(view.sampling):,}": view.sampling,
    }
    if optima is not None:
        offered["Exact optimum, problem (9)"] = optima.same_for_all
        offered["Exact optimum, free weights"] = optima.free
    if st.session_state.get(QUESTION.key("download")) not in offered:
        st.session_state[QUESTION.key("download")] = next(iter(offered))
    name = st.selectbox("Which weights", list(offered), key=QUESTION.key("download"))
    allocation = answer.with_budget(offered[name], budgets.exact)
    if allocation.reads_graph:
        st.caption(
            ":material/warning: These weights are computed from who contributes to what, so they are not part of "
            "a private mechanism."
        )
    task_file, label = f"{figures.file_name('task_weights', disclosure)}.csv", disclosure.label
    with st.container(horizontal=True):
        file_button.draw(
            "Task weights (CSV)",
            "task_weights.csv",
            disclosure,
            lambda: files.task_weights_csv(allocation, label),
            key="tasks_file_task",
        )
        file_button.draw(
            "User-task weights (CSV)",
            "user_task_weights.csv",
            disclosure,
            lambda: b"".join(piece.encode() for piece in files.pair_weights_csv(allocation, label)),
            key="tasks_file_user-task",
        )
        st.download_button(
            "Code (Python)",
            lambda: files.numpy_code(allocation, task_file),
            file_name="apply_weights.py",
            mime="text/x-python",
            key="tasks_file_code",
            on_click="ignore",
            icon=":material/download:",
        )
    pairs = view.tasks.graph.num_pairs
    st.caption(
        f"Label in both tables: *{disclosure.label}*. {wording.counted(pairs, 'line')} of user-task weights"
        + (f", about {pairs * 32 / 1e6:,.0f} MB" if pairs > LARGE_FILE else "")
        + ". Users and tasks are numbered from 0 in the order in which they first appear; the code computes "
        "every user's weights from the tasks' factors."
    )
    with st.expander("Look at the code"):
        st.code(files.numpy_code(allocation, task_file), language="python")
