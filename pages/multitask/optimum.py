"""The tab of the page Many tasks with the exact optima: a button, then like beside like."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.multitask import exact
from dpcore.multitask.answer import answer
from dpcore.multitask.answer import plots as core_plots
from dpcore.multitask.answer.found import Optima, WeightComparison, compute_total_ratio
from dpcore.multitask.weights import compute_skew
from pages.multitask import cached
from pages.multitask.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards, solver_check
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots


def known_optima(weighed: WeightComparison) -> Optima | None:
    """Both optima for these tasks, where they were computed."""
    done = jobs.result_of(QUESTION.key("optimum_job"))
    if done is None or done[0] != _optimum_question(weighed):
        return None
    optima: Optima = done[1]
    return optima


def _optimum_question(weighed: WeightComparison) -> tuple[str, str]:
    return weighed.tasks.key, weighed.problem.loss.name


def show_optimum(weighed: WeightComparison) -> None:
    """The exact optima: a button, then like beside like."""
    tasks, loss = weighed.tasks, weighed.problem.loss
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
            _optimum_question(weighed),
            lambda progress, stop: answer.find_optima(tasks, loss, progress, stop),
        )
        if known_optima(weighed) is not None:
            st.rerun()  # The card above is drawn already, without them.
    if jobs.watch(QUESTION.key("optimum_job"), "Solving"):
        return
    optima = known_optima(weighed)
    if optima is None:
        st.caption(
            "The optima have not been computed for these tasks and this loss. Millions of pairs take seconds; "
            "ε, δ and μ do not matter."
        )
    else:
        _show_methods(weighed, optima)
        _show_beside(weighed, optima)
    _show_check(weighed)


def _show_check(weighed: WeightComparison) -> None:
    problem, pairs, most = weighed.problem, weighed.tasks.graph.num_pairs, exact.MAX_PAIRS
    solver_check.show(
        QUESTION.key("cvxpy_job"),
        _optimum_question(weighed),
        lambda stop: exact.compare_with_cvxpy(problem, stop),
        "Total bound for β = 1",
        f"A general solver takes too long for {wording.counted(pairs, 'pair')} of a user and a task; the comparison is "
        f"offered up to {most:,}."
        if pairs > most
        else "",
    )
    cards.label(weighed.tasks.disclosure)


def _show_methods(weighed: WeightComparison, optima: Optima) -> None:
    found = cached.methods(weighed, optima)
    tables.show(
        {
            "Users of a task": [
                "weigh the same" if m.optimum is optima.task_optimum else "may differ" for m in found
            ],
            "Weights": [m.name for m in found],
            "Total bound": [compute_total_ratio(m.allocation, optima.user_task_optimum) for m in found],
            "Above the optimum of its kind": [100.0 * max(m.above_optimum, 0.0) for m in found],
            "Largest weight skew": [100.0 * m.weight_skew.largest for m in found],
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
    for name, one in (("Problem (9)", optima.task_optimum), ("Free weights", optima.user_task_optimum)):
        assert one.certificate is not None
        st.caption(f"**{name}.** {one.stop_reason} {one.certificate.sentence}")


def _show_beside(weighed: WeightComparison, optima: Optima) -> None:
    free = compute_skew(optima.user_task_optimum)
    plots.draw_beside(core_plots.plot_optimum(weighed, optima), core_plots.plot_skew(weighed, free))
    st.markdown(answer.describe_free_weights(free))
    cards.label(weighed.tasks.disclosure)
