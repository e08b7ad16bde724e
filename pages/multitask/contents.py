"""The contents of the page Many tasks: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.parameters import LINE, MORE, OWN
from dpcore.common.privacy import Disclosure
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.multitask import exact, files
from dpcore.multitask.answer import answer, words
from dpcore.multitask.answer import plots as core_plots
from dpcore.multitask.answer.solution import (
    MultitaskSolution,
    Optima,
    WeightComparison,
    compute_total_ratio,
    count_tasks_per_user,
    rescale_budget,
)
from dpcore.multitask.experiment import FIGURES, ExperimentResult, run_experiment
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.weights import compute_skew
from dpcore.report.script import Code, Source
from pages.multitask import cached
from pages.multitask.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards, releases
from pages.shared.data import uploads
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.screen import plots
from pages.shared.session import session


def show_counts(solution: MultitaskSolution) -> None:
    """Draw the tab: the cost of releasing the sizes privately first."""
    st.markdown(
        "If task sizes are not public, release them first, for a part of β. **What does that cost?** The "
        "page simulates one draw of the noise; nothing is released."
    )
    fields.columns(QUESTION, [3, 3, 4, 2], "count_share", "count_max_tasks", "count_covers", "count_seed")
    simulation, allocation = cached.counts(solution), solution.comparison.allocation
    with_s, without = (
        simulation.compare_total(a, allocation) for a in (simulation.with_slack, simulation.without_slack)
    )
    counts = simulation.counts
    left_column, right_column = st.columns([5, 6])
    with left_column:
        with st.grid(2, min_column_width=140, gap="small"):
            of_exact = "of that with exact sizes"
            cards.single("Total bound with n̂ + s", f"{wording.number(with_s)}×", of_exact)
            cards.single("With n̂ alone, at least 1", f"{wording.number(without)}×", of_exact)
            cards.single(
                "Cost factor",
                f"{wording.number(simulation.cost_factor)}×",
                "theorem B.2",
                "(1/m) Σ (n̂ + s)/n: what the paper's bound for strongly convex losses loses by estimating.",
            )
            uncounted = f"{wording.number(counts.truncation)} for the uncounted"
            cards.single("Slack s", wording.counted(counts.slack, "user"), uncounted)
        st.markdown(answer.describe_counts(solution.comparison, simulation))
    with right_column:
        plots.draw(core_plots.plot_counts(solution.tasks, counts))
    st.badge("simulation: not a release", color="violet", icon=":material/casino:")
    cards.label(solution.tasks.disclosure)


def show(parameters: MultitaskParameters) -> None:
    """Draw the tab: inputs, button and figures, and below them the paper's figure at its setting."""
    _show_runs(parameters)
    st.divider()
    plots.show_paper_figure(FIGURES)


def _show_runs(parameters: MultitaskParameters) -> None:
    st.markdown(
        "Appendix C of the paper, run here: 100 linear regressions in 5 dimensions, each user in 20 of them "
        "on average; 80 % of the pairs train, 20 % test. **Which μ predicts best?** Weights are scaled so "
        "that every user spends the whole budget; within a repeat all μ share data and noise."
    )
    names = ("experiment_epsilons", "experiment_users", "experiment_repeats", "experiment_seed")
    columns = fields.columns(QUESTION, [3, 3, 2, 2, 3], *names)
    with columns[4]:
        is_started = fields.button("Run", "tasks_run", "play_arrow", width="stretch", is_main=True)
    question = parameters.experiment
    if is_started:
        jobs.start(
            QUESTION.key("experiment_job"),
            question,
            lambda progress, stop: run_experiment(question, progress, stop),
        )
    idle = "It has not run yet. With these defaults it takes about ten seconds."
    done = jobs.outcome(QUESTION.key("experiment_job"), "Running", question, idle)
    if done is None:
        return
    result = done[1]
    if not np.isfinite(result.rmse).any():
        st.info("Stopped before the first run was done.", icon=":material/stop_circle:")
        return
    _figures(result)


def _figures(result: ExperimentResult) -> None:
    experiment = result.experiment
    done = int(np.isfinite(result.rmse).sum())
    if not result.finished:
        st.caption(f":material/stop_circle: Stopped after {done:,} of {result.rmse.size:,} runs.")
    relative = st.toggle(
        "Relative to uniform weights (μ = 0)",
        value=True,
        key=QUESTION.key("relative"),
        persist_state="session",
        help="Each repeat's error over that of μ = 0 on the same data and noise. Off: the errors themselves.",
    )
    for a in range(len(experiment.algorithms)):
        for p, column in enumerate(st.columns(len(experiment.powers))):
            if not np.isfinite(result.rmse[a, p]).any():
                continue
            with column:
                plots.draw_titled(answer.plot_errors(result, a, p, relative))
    alt = "Best exponent per algorithm, skew and privacy budget, and what 1/2 gains over 0 and 1"
    tables.show(answer.tabulate_errors(result), alt, formats={"Its RMSE": "%.4f"})
    st.caption(
        f"{wording.counted(done, 'run')}; whiskers and ± are two standard errors over "
        f"{wording.counted(experiment.repeats, 'repeat')}, the last two columns paired: a minus sign means "
        f"that μ = 1/2 has the smaller error. δ = {wording.entered(experiment.delta)}. The paper gives neither "
        "regularisation nor clipping bounds nor steps; those used here were chosen on other seeds."
    )
    cards.label(Disclosure.PUBLIC)


def known_optima(comparison: WeightComparison) -> Optima | None:
    """Return both optima for these tasks; None if they have not been computed."""
    done = jobs.result_of(QUESTION.key("optimum_job"))
    if done is None or done[0] != _optimum_question(comparison):
        return None
    optima: Optima = done[1]
    return optima


def _optimum_question(comparison: WeightComparison) -> tuple[str, str]:
    return comparison.tasks.key, comparison.problem.loss.name


def show_optimum(comparison: WeightComparison) -> None:
    """Draw the tab of the exact optima: a button, then the comparison."""
    tasks, loss = comparison.tasks, comparison.problem.loss
    st.markdown(
        "If the graph of users and tasks is public, the weights can be computed from it. **Compare like "
        "with like:** problem (9) gives all users of a task the same weight and clips nobody, so compare it "
        "with weights that clip nobody. Clipped weights differ between users; compare them with the optimum "
        "over weights that are free for every user and task."
    )
    if st.button(
        "Find the exact optima", type=fields.main_button(), icon=":material/target:", key="tasks_find"
    ):
        jobs.start(
            QUESTION.key("optimum_job"),
            _optimum_question(comparison),
            lambda progress, stop: answer.find_optima(tasks, loss, progress, stop),
        )
        if known_optima(comparison) is not None:
            st.rerun()  # The card above is drawn already, without them.
    if jobs.watch(QUESTION.key("optimum_job"), "Solving"):
        return
    optima = known_optima(comparison)
    if optima is None:
        st.caption(
            "The optima have not been computed for these tasks and this loss. Millions of pairs take seconds; "
            "ε, δ and μ do not matter."
        )
    else:
        _show_methods(comparison, optima)
        _show_beside(comparison, optima)
    _show_check(comparison)


def _show_check(comparison: WeightComparison) -> None:
    problem, pairs, max_pairs = comparison.problem, comparison.tasks.graph.num_pairs, exact.MAX_PAIRS
    releases.show(
        QUESTION.key("cvxpy_job"),
        _optimum_question(comparison),
        lambda stop: exact.compare_with_cvxpy(problem, stop),
        "Total bound for β = 1",
        f"A general solver takes too long for {wording.counted(pairs, 'pair')} of a user and a task; the comparison is "
        f"offered up to {max_pairs:,}."
        if pairs > max_pairs
        else "",
    )
    cards.label(comparison.tasks.disclosure)


def _show_methods(comparison: WeightComparison, optima: Optima) -> None:
    methods = cached.list_compared_allocations(comparison, optima)
    tables.show(
        {
            "Users of a task": [
                "weigh the same" if m.optimum is optima.task_optimum else "may differ" for m in methods
            ],
            "Weights": [m.name for m in methods],
            "Total bound": [compute_total_ratio(m.allocation, optima.user_task_optimum) for m in methods],
            "Above the optimum of its kind": [100.0 * max(m.above_optimum, 0.0) for m in methods],
            "Largest weight skew": [100.0 * m.weight_skew.largest for m in methods],
        },
        "Total error bound of every way of dividing the budget, beside the optimum of its kind",
        formats={
            "Total bound": ("%.3f", "1 is the exact optimum over free weights."),
            "Above the optimum of its kind": "%.2f %%",
            "Largest weight skew": (
                "%.1f %%",
                "Share of a task's weight that moves to other users, at worst.",
            ),
        },
    )
    for name, optimum in (("Problem (9)", optima.task_optimum), ("Free weights", optima.user_task_optimum)):
        assert optimum.certificate is not None
        st.caption(f"**{name}.** {optimum.stop_reason} {optimum.certificate.sentence}")


def _show_beside(comparison: WeightComparison, optima: Optima) -> None:
    free = compute_skew(optima.user_task_optimum)
    plots.draw_beside(core_plots.plot_optimum(comparison, optima), core_plots.plot_skew(comparison, free))
    st.markdown(answer.describe_free_weights(free))
    cards.label(comparison.tasks.disclosure)


TABLE_ROWS = 2_000
LARGE_FILE = 1_000_000
"""Pairs above which a person is told how long the file will be."""


def show_behind(answer: Answer) -> None:
    """Draw how sure the answer is, what it assumes, and the graph and budget that it is for."""
    cards.behind(answer)
    st.caption(words.describe_tasks(answer.solution))


def show_users_and_tasks(solution: MultitaskSolution) -> None:
    """Draw the use of the budget, the users who use it, the sizes of tasks, and a table of the tasks."""
    comparison = solution.comparison
    plots.draw_beside(core_plots.plot_use(comparison), core_plots.plot_users(comparison))
    idle = comparison.problem.num_users - int((solution.tasks.graph.tasks_per_user > 0).sum())
    if idle:
        st.caption(
            f"{wording.counted(idle, 'user')} without a task {wording.agreeing(idle, 'is', 'are')} left out of both."
        )
    plots.draw_titled(core_plots.plot_sizes(solution.tasks, has_all_tasks=True))
    _show_table(solution)


def _show_table(solution: MultitaskSolution) -> None:
    """Draw a table with one row per task."""
    columns, left_out = core_plots.tabulate_tasks(solution, TABLE_ROWS)
    number = st.column_config.NumberColumn
    uses_data, data = solution.parameters.source is TaskSource.DATA, session.dataset()
    names = uploads.list_task_names(data, "task") if uses_data else ()
    # Tasks without users are left out of the graph, and would shift the others' numbers.
    name_column = (
        {"name": [escape_formula(names[task]) for task in columns["task"]]}
        if names and _has_all(solution, data)
        else {}
    )
    st.dataframe(
        name_column | columns,
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
        if uses_data
        else "Tasks are numbered from 0 as drawn."
    )
    st.caption(note + number_from)
    cards.label(solution.tasks.disclosure)
    if uses_data:
        uploads.show_upload(QUESTION, data, "tasks")


def _has_all(solution: MultitaskSolution, data: Dataset) -> bool:
    return data.pairs is not None and solution.tasks.graph.num_tasks == data.pairs.num_tasks


def show_budget(parameters: MultitaskParameters) -> None:
    """Draw the exact and the sufficient beta."""
    budgets, columns = cached.budget(parameters.target), cached.budgets(parameters.delta)
    left_column, right_column = st.columns([5, 6])
    left_column.markdown(answer.describe_budgets(budgets))
    with right_column:
        plots.draw(core_plots.plot_budget(columns, parameters.epsilon, budgets.exact))


# --- downloads ----------------------------------------------------------------------------------------------


def name_settings(parameters: MultitaskParameters) -> dict[str, str]:
    """Return the names of the settings that the answer depends on, by field."""
    field_names = QUESTION.list_fields(LINE, MORE, OWN)
    return QUESTION.get_labels(*(name for name in field_names if name not in parameters.unused))


def _generated_cell(code: Code, source: Source, public_only: bool) -> str:
    return "data = None  # Users and tasks are generated, as the settings say."


def show_files(answer: Answer) -> None:
    """Offer the answer, the weights and the code as files."""
    solution: MultitaskSolution = answer.solution
    disclosure, parameters, comparison, optima = (
        answer.disclosure,
        solution.parameters,
        solution.comparison,
        solution.optima,
    )
    dataset = session.dataset() if parameters.source is TaskSource.DATA else None
    source = replace(
        report_content.source(needs_rows=True, disclosure=disclosure),
        write_cell=_generated_cell if dataset is None else None,
    )
    report_content.draw(
        "many_tasks",
        disclosure,
        lambda: report_content.of_answer(
            QUESTION,
            answer,
            source,
            setting_labels=name_settings(parameters),
            summary=words.summarise_tasks(solution, dataset),
        ),
        answer.methods,
    )
    allocations = {
        f"Chosen: μ = {words.format_exponent(comparison.rule.exponent)}": comparison.allocation,
        f"Uniform sampling, k = {count_tasks_per_user(comparison.sampling):,}": comparison.sampling,
    }
    if optima is not None:
        allocations["Exact optimum, problem (9)"] = optima.task_optimum
        allocations["Exact optimum, free weights"] = optima.user_task_optimum
    if st.session_state.get(QUESTION.key("download")) not in allocations:
        st.session_state[QUESTION.key("download")] = next(iter(allocations))
    name = st.selectbox("Which weights", list(allocations), key=QUESTION.key("download"))
    allocation = rescale_budget(allocations[name], solution.budgets.exact)
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
    pairs = solution.tasks.graph.num_pairs
    st.caption(
        f"Label in both tables: *{disclosure.label}*. {wording.counted(pairs, 'line')} of user-task weights"
        + (f", about {pairs * 32 / 1e6:,.0f} MB" if pairs > LARGE_FILE else "")
        + ". Users and tasks are numbered from 0 in the order in which they first appear; the code computes "
        "every user's weights from the tasks' factors."
    )
    with st.expander("Look at the code"):
        st.code(files.write_numpy_code(allocation, task_file), language="python")
