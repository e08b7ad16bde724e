"""The tabs of the page Many tasks below its answer."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.parameters import LINE, MORE, OWN
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.multitask import files
from dpcore.multitask.answer import MultitaskSolution, words
from dpcore.multitask.answer import answer as answer_answer
from dpcore.multitask.answer import plots as core_plots
from dpcore.multitask.answer.found import count_tasks_per_user, rescale_budget
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.report.script import Code, Source
from pages.multitask import cached
from pages.multitask.question import QUESTION
from pages.shared.card import cards
from pages.shared.data import item_list
from pages.shared.figures import figures
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots
from pages.shared.session import session

TABLE_ROWS = 2_000
LARGE_FILE = 1_000_000
"""Pairs above which a person is told how long the file will be."""


def show_behind(answer: Answer) -> None:
    """Draw how sure the answer is, what it assumes, and the graph and budget that it is for."""
    cards.behind(answer)
    st.caption(words.describe_tasks(answer.solution))


def show_users_and_tasks(found: MultitaskSolution) -> None:
    """Draw the use of the budget, the users who use it, the sizes of tasks, and a table of the tasks."""
    weighed = found.comparison
    plots.draw_beside(core_plots.plot_use(weighed), core_plots.plot_users(weighed))
    idle = weighed.problem.num_users - int((found.tasks.graph.tasks_per_user > 0).sum())
    if idle:
        st.caption(
            f"{wording.counted(idle, 'user')} without a task {wording.agreeing(idle, 'is', 'are')} left out of both."
        )
    plots.draw_titled(core_plots.plot_sizes(found.tasks, has_all_tasks=True))
    _show_table(found)


def _show_table(found: MultitaskSolution) -> None:
    """Draw a table with one row per task."""
    columns, left_out = core_plots.tabulate_tasks(found, TABLE_ROWS)
    number = st.column_config.NumberColumn
    own, data = found.parameters.source is TaskSource.DATA, session.dataset()
    names = item_list.list_task_names(data, "task") if own else ()
    # Tasks without users are left out of the graph, and would shift the others' numbers.
    called = (
        {"name": [escape_formula(names[at]) for at in columns["task"]]}
        if names and _has_all(found, data)
        else {}
    )
    st.dataframe(
        called | columns,
        hide_index=True,
        height=420,
        column_config={
            "name": st.column_config.TextColumn("Name"),
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
        if own
        else "Tasks are numbered from 0 as drawn."
    )
    st.caption(note + number_from)
    cards.label(found.tasks.disclosure)
    if own:
        item_list.show_upload(QUESTION, data, "tasks")


def _has_all(found: MultitaskSolution, data: Dataset) -> bool:
    return data.pairs is not None and found.tasks.graph.num_tasks == data.pairs.num_tasks


def show_budget(parameters: MultitaskParameters) -> None:
    """Draw the exact and the sufficient beta."""
    budgets, columns = cached.budget(parameters.target), cached.budgets(parameters.delta)
    left, right = st.columns([5, 6])
    left.markdown(answer_answer.describe_budgets(budgets))
    with right:
        plots.draw(core_plots.plot_budget(columns, parameters.epsilon, budgets.exact))


# --- downloads ----------------------------------------------------------------------------------------------


def name_settings(parameters: MultitaskParameters) -> dict[str, str]:
    """Return the names of the settings that the answer depends on, by field."""
    placed = QUESTION.placed(LINE, MORE, OWN)
    return QUESTION.asked(*(name for name in placed if name not in parameters.unused))


def _generated_cell(code: Code, source: Source, public_only: bool) -> str:
    return "data = None  # Users and tasks are generated, as the settings say."


def show_files(answer: Answer) -> None:
    """Offer the answer, the weights and the code as files."""
    found: MultitaskSolution = answer.solution
    disclosure, parameters, weighed, optima = (
        answer.disclosure,
        found.parameters,
        found.comparison,
        found.optima,
    )
    own = session.dataset() if parameters.source is TaskSource.DATA else None
    source = replace(
        take_away.source(needs_rows=True, disclosure=disclosure),
        write_cell=_generated_cell if own is None else None,
    )
    take_away.draw(
        "many_tasks",
        disclosure,
        lambda: report_content.of_answer(
            QUESTION,
            answer,
            source,
            setting_labels=name_settings(parameters),
            summary=words.summarise_tasks(found, own),
        ),
        answer.methods,
    )
    offered = {
        f"Chosen: μ = {words.format_exponent(weighed.rule.exponent)}": weighed.allocation,
        f"Uniform sampling, k = {count_tasks_per_user(weighed.sampling):,}": weighed.sampling,
    }
    if optima is not None:
        offered["Exact optimum, problem (9)"] = optima.task_optimum
        offered["Exact optimum, free weights"] = optima.user_task_optimum
    if st.session_state.get(QUESTION.key("download")) not in offered:
        st.session_state[QUESTION.key("download")] = next(iter(offered))
    name = st.selectbox("Which weights", list(offered), key=QUESTION.key("download"))
    allocation = rescale_budget(offered[name], found.budgets.exact)
    if allocation.reads_graph:
        st.caption(
            ":material/warning: These weights are computed from who contributes to what, so they are not part of "
            "a private mechanism."
        )
    task_file, label = f"{figures.write_file_name('task_weights', disclosure)}.csv", disclosure.label
    with st.container(horizontal=True):
        cards.file_button(
            "Task weights (CSV)",
            "task_weights.csv",
            disclosure,
            lambda: files.write_task_weights(allocation, label),
            key="tasks_file_task",
        )
        cards.file_button(
            "User-task weights (CSV)",
            "user_task_weights.csv",
            disclosure,
            lambda: b"".join(piece.encode() for piece in files.write_pair_weights(allocation, label)),
            key="tasks_file_user-task",
        )
        st.download_button(
            "Code (Python)",
            lambda: files.write_numpy_code(allocation, task_file),
            file_name="apply_weights.py",
            mime="text/x-python",
            key="tasks_file_code",
            on_click="ignore",
            icon=":material/download:",
        )
    pairs = found.tasks.graph.num_pairs
    st.caption(
        f"Label in both tables: *{disclosure.label}*. {wording.counted(pairs, 'line')} of user-task weights"
        + (f", about {pairs * 32 / 1e6:,.0f} MB" if pairs > LARGE_FILE else "")
        + ". Users and tasks are numbered from 0 in the order in which they first appear; the code computes "
        "every user's weights from the tasks' factors."
    )
    with st.expander("Look at the code"):
        st.code(files.write_numpy_code(allocation, task_file), language="python")
