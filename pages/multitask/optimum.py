"""The tab of the page Many tasks with the exact optima: a button, then like beside like."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.multitask.weight_skew import skew_of
from pages.multitask import answer, cached, compare, detail_figures
from pages.multitask import figures as multitask_charts
from pages.multitask.answer import MultitaskView
from pages.multitask.compare import Optima
from pages.multitask.question import QUESTION
from pages.shared import cards, fields, figures, jobs, tables


def known_optima(view: MultitaskView) -> Optima | None:
    """Both optima for these tasks, where they were computed."""
    done = jobs.result_of(QUESTION.key("optimum_job"))
    if done is None or done[0] != _optimum_question(view):
        return None
    found: Optima = done[1]
    return found


def _optimum_question(view: MultitaskView) -> tuple[str, str]:
    return view.tasks.key, view.problem.loss.name


def show_optimum(view: MultitaskView) -> None:
    """The exact optima: a button, then like beside like."""
    tasks, loss = view.tasks, view.problem.loss
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
            _optimum_question(view),
            lambda progress, stop: compare.find_optima(tasks, loss, progress, stop),
        )
        if known_optima(view) is not None:
            st.rerun()  # The card above is drawn already, without them.
    if jobs.watch(QUESTION.key("optimum_job"), "Solving"):
        return
    optima = known_optima(view)
    if optima is None:
        st.caption(
            "The optima have not been computed for these tasks and this loss. Millions of pairs take seconds; "
            "ε, δ and μ do not matter."
        )
        return
    _show_methods(view, optima)
    _show_beside(view, optima)


def _show_methods(view: MultitaskView, optima: Optima) -> None:
    found = cached.methods(view.tasks, view.problem.loss, view.rule.exponent, optima)
    tables.show(
        {
            "Users of a task": [
                "weigh the same" if m.optimum is optima.same_for_all else "may differ" for m in found
            ],
            "Weights": [m.name for m in found],
            "Total bound": [answer.total_ratio(m.allocation, optima.free) for m in found],
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
    for name, one in (("Problem (9)", optima.same_for_all), ("Free weights", optima.free)):
        assert one.certificate is not None
        st.caption(f"**{name}.** {one.ended} {one.certificate.sentence}")


def _show_beside(view: MultitaskView, optima: Optima) -> None:
    free = skew_of(optima.free)
    skews = {f"μ = {wording.entered(view.rule.exponent)}": view.weight_skew, "Free weights": free}
    show_beside(
        multitask_charts.optimum_picture(view, optima), detail_figures.skew_picture(view.tasks, skews)
    )
    ratio = free.user_size_ratio
    st.markdown(
        "Free weights are better because light users give more to each task than heavy ones can. The price is "
        "that a task then learns more from users with few tasks. Weighted by them, a task's users have "
        f"{wording.percent(1.0 - float(ratio.mean()))} fewer tasks on average, "
        f"{wording.percent(1.0 - float(ratio.min()))} at worst. That biases the task wherever light and heavy "
        "users answer differently, and no bound here counts it."
    )
    cards.label(view.tasks.disclosure)


def show_beside(*pictures: figures.Picture) -> None:
    """Pictures side by side, each below its title."""
    for column, picture in zip(st.columns(len(pictures)), pictures, strict=True):
        with column:
            st.markdown(f"**{picture.title}**")
            figures.show_picture(picture)
