"""Choose privately: a private copy or a direct choice, and what either costs."""

import functools
from collections.abc import Collection
from dataclasses import replace

import streamlit as st

from dpcore.answer.section import Cached
from dpcore.code.forms import summed_column
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.private_choice.answer import build_answer
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.private_choice.scores import checked_users
from dpcore.total.answer import solve
from dpcore.total.parameters import TotalParameters
from pages.mean import elsewhere
from pages.private_choice import actions, tabs, work
from pages.private_choice.question import QUESTION, PageParameters
from pages.shared.base import keys
from pages.shared.fields import fields, runner, setting
from pages.shared.figures import figures
from pages.shared.screen import inputs, layout
from pages.shared.session import session
from pages.total.question import QUESTION as TOTAL

SUM_OF_A_COLUMN = (
    "The bound is on rows, so it is for a **count of rows**. The bound of a **sum of a column** is drawn on *Sum and "
    "count*."
)
SUM_OF_THE_TOTAL = "A row is one unit of {} here, so the bound is for its **sum**."
AIMS = {
    Measure.ABSOLUTE: "it minimises the expected error",
    Measure.RMSE: "it minimises the root mean squared error",
    Measure.BOUND: "it minimises bias plus mean noise",
}
data = session.dataset()


def body(areas: layout.PageSlots) -> None:
    """Read the inputs, and show what either way costs, with its button."""
    actions.show_account()
    page_parameters = read_inputs(areas)
    parameters = None if page_parameters is None else page_parameters.question
    if parameters is not None:
        st.session_state[keys.PAGE_PARAMETERS] = page_parameters
        try:
            checked_users(session.get_original().dataset.histogram)
            checked_users(data.histogram)
        except InvalidInput as refusal:
            parameters = None
            with areas.notes:
                fields.show_problems(refusal.problems)
    if parameters is not None:
        show_costs(parameters, areas)
    with areas.answer:
        actions.show(parameters, data)


def read_inputs(areas: layout.PageSlots) -> PageParameters | None:
    """Draw the inputs; return None, with the sentences on the page, if they do not fit together."""
    fields.start(QUESTION)
    follow_mean()
    without_guess = st.session_state[QUESTION.key("guess")] is None
    if without_guess:
        fields.refill(QUESTION, "guess_factor")

    def name_the_sum(unused: Collection[str]) -> bool:
        if "margin" not in unused:
            column = summed_column(data)
            st.caption(SUM_OF_THE_TOTAL.format(wording.plain(column)) if column else SUM_OF_A_COLUMN)
        return False

    return inputs.read_inputs(
        QUESTION,
        areas,
        hidden=lambda name: name == "guess_factor" and without_guess,
        # ε of the choice stands beside that of the release.
        widgets={
            "purpose": lambda: fields.draw_all(QUESTION, "selection_epsilon", "purpose"),
            "selection_epsilon": lambda: None,
        },
        ask_first=name_the_sum,
    )


def follow_mean() -> None:
    """Take over the settings of *Mean* on values and users if they changed; nothing read off private values."""
    _follow("user_share", "users_followed", elsewhere.share_between_users(data), QUESTION.first("user_share"))
    mean = elsewhere.build_answer(data)
    share = first_share = PrivateParameters(1.0).variance_share
    release = None if mean is None else mean.setting
    if release is not None and not (release.uses_values and data.is_private):
        # Where all values are the same, nothing is to be chosen: the page says so of an empty share.
        share = min(release.variance_share or 0.0, first_share) or first_share
    _follow("variance_share", "variance_followed", share, first_share)


def _follow(name: str, followed: str, value: float, first_value: float) -> None:
    """Set a field to the value of *Mean*, unless the user entered another one here."""
    state, key, followed_key = st.session_state, QUESTION.key(name), QUESTION.key(followed)
    previous = state.get(followed_key, first_value)
    if value != previous and state[key] in (previous, None):
        state[key] = value
    state[followed_key] = value


def show_costs(parameters: PrivateParameters, areas: layout.PageSlots) -> None:
    """Draw the figure of costs, the card, and the tabs."""
    exact = work.solve(data.digest, parameters, data)
    copies, run = work.copies_over_epsilon(data, parameters)
    solution = replace(exact, copies=copies)
    answer = build_answer(data, parameters, solution)
    smooth = parameters.purpose is Wanted.SMOOTH
    difference = elsewhere.differing(data, answer.setting, solution.best, smooth)
    if difference := difference or difference_from_total(parameters, solution.best):
        areas.bottom.caption(difference)
    with areas.figure:
        figures.draw(answer.plots["private-cost-epsilon"]())
        tabs.show_progress(run, copies)
    contents: dict[str, layout.Content] = {
        "Leak and size": {
            "Why the number leaks": lambda: tabs.leak(solution),
            "More or fewer users": lambda: tabs.over_users(solution),
        },
        "Range or pair": {"A value range": tabs.value_range, "A pair per group": tabs.pair},
    }
    files = functools.partial(tabs.files, solution)
    layout.show_answer(areas, QUESTION, answer, contents, files, key="private_card", draw_behind=tabs.behind)


def difference_from_total(parameters: PrivateParameters, number: float) -> str:
    """Return one sentence on why *Sum and count* finds another bound for the same count; empty if it does not."""
    if parameters.purpose is not Wanted.SUM:
        return ""
    fields.start(TOTAL, uses_shared_data=False)
    measure = st.session_state[TOTAL.key("objective")]
    noise, own_noise = setting.read_value(TOTAL, "mechanism"), parameters.release_noise
    delta = setting.read_value(TOTAL, "delta") if noise is NoiseKind.GAUSSIAN else None
    try:
        total = TotalParameters(parameters.epsilon, mechanism=noise, delta=delta, objective=measure)
    except InvalidInput:
        return ""
    bound = runner.compute(Cached(solve, (data, total))).bound
    same = measure is Measure.BOUND and not parameters.margin
    same &= (noise, delta) == (own_noise, parameters.release_delta)
    if same or bound == number:  # Of two bounds with the same error either is best.
        return ""
    noise_text = f" with {noise.value} noise" if noise is not own_noise else ""
    if noise is own_noise and delta != parameters.release_delta:
        noise_text = f" with δ = {wording.entered(delta or 0.0)}"
    margin = (
        f" and keeps a margin of {wording.counted(parameters.margin, 'user')}" if parameters.margin else ""
    )
    return (
        f"*Sum and count* finds {wording.number(bound)} for this release, this page {wording.number(number)}: "
        f"{AIMS[measure]}{noise_text}, this page bias plus mean {own_noise.value} noise{margin}."
    )


layout.show(QUESTION, body)
