"""Which range the values at hand ask for: the tab with its search over the bound on rows beside it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.answer.value_range import RANGE_SOURCE
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, value_range
from dpcore.mean.answer import MeanSolution, ranges
from dpcore.mean.value_range import RangeChoice
from pages.mean.question import QUESTION
from pages.shared.base import tables
from pages.shared.base.cache import cached
from pages.shared.card import cards
from pages.shared.fields import fields, jobs, setting
from pages.shared.fields.search import Search
from pages.shared.screen import plots
from pages.shared.screen import value_range as screen
from pages.shared.session import session, stand_ins

SEARCH = Search[RangeChoice](QUESTION.key("range_search"))
AT_ONCE_SECONDS = 0.3


@cached(max_entries=4)
def _ranges(
    digest: str, parameters: MeanParameters, _data: Dataset, _found: MeanSolution
) -> tuple[ranges.Ranges, Plot, Plot]:
    found = ranges.choose_ranges(_data, _found, parameters)
    return found, ranges.plot_over_upper(found, _data), ranges.plot_over_lower(found, _data)


def show(answer: Answer, data: Dataset) -> None:
    """The tab."""
    if not ranges.has_range_choice(data):
        if data.values is None:
            stand_ins.show_stand_in(data, "values, one per row", "Bring data with values")
        else:
            st.markdown("All values are the same, or too large to square: no range is better than another.")
        return
    look = ", **a private look**: no ε covers a range that is chosen by it." if data.is_private else "."
    st.markdown(
        f"**A range that you know is the first choice**: it costs nothing. Enter it {RANGE_SOURCE} What follows "
        "is read off "
        f"the values{look}"
    )
    found, upper, lower = _ranges(data.digest, answer.parameters, data, answer.solution)
    _ask(found, data)
    at_work = jobs.watch(SEARCH.key, "Looking for the best range and bound")
    joint = SEARCH.found(None).value
    tables.show(
        ranges.build_table(found, joint),
        "The range in use beside the best ones, with the three parts of the error of each",
    )
    _offer(found, joint, data, at_work)
    cards.label(
        data.provenance,
        after="\n".join(f"- {one}" for one in ranges.describe_ranges(found, joint)),
    )
    plots.draw_beside(upper, lower)


def _ask(found: ranges.Ranges, data: Dataset) -> None:
    """Start the search over the bound on rows, where it is not the one that was asked last."""
    problem = found.rows.problem

    def work(tell: jobs.Tell, stop: Callable[[], bool]) -> RangeChoice:
        return value_range.best_joint(problem, progress=tell, should_stop=stop)

    SEARCH.ask(
        (data.digest, problem.epsilon),
        work,
        lambda choice: choice.certificate.proves(value_range.TOLERANCE * 1.05),
        session.same_for_all(),
        AT_ONCE_SECONDS,
        light=True,
    )


def _offer(found: ranges.Ranges, joint: RangeChoice | None, data: Dataset, at_work: bool) -> None:
    """The button that enters the best range for all pages; of private values none, but a private draw."""
    if data.is_private:
        st.caption(
            "None of these is entered here: a range that was read off private values would leak into all that is "
            "released with it. It can be drawn privately, with an ε of its own."
        )
        screen.offer_draw(data)
        return
    best = found.best_range if joint is None else joint
    if at_work or not ranges.is_usable(found.rows.problem, best):
        return
    low, high = ranges.round_outward(best)
    if (low, high) == (found.lower, found.upper):
        st.caption("The range in use is the best one.")
        return
    fields.button(
        f"Use L = {wording.entered(low)}, U = {wording.entered(high)}",
        "mean_use_range",
        "straighten",
        lambda: setting.enter({"lower": low, "upper": high}),
    )
