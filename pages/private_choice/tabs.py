"""The tabs of Choose privately below its answer."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.parameters import Place, applies
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.private_choice import comparison
from dpcore.private_choice.answer import PrivateSolution, build_answer, plots, words
from dpcore.private_choice.answer import selection as selections
from dpcore.private_choice.answer.answer import methods
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.comparison import Copies
from dpcore.private_choice.parameters import NUMBER_NAMES, NumberKind, PrivateParameters
from dpcore.report.content import Line, Report
from pages.per_group import inputs as per_group_inputs
from pages.per_group.question import QUESTION as PER_GROUP
from pages.private_choice import actions, on_card, work
from pages.private_choice.question import QUESTION
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.card.releases import spent_lines
from pages.shared.fields import fields, jobs, runner, setting
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.session import session

PROGRESS_HEIGHT = 44
"""In pixels: kept free for a line of progress, so that nothing moves when it comes and goes."""


def behind(answer: Answer) -> None:
    """Draw what the two ways are, what either costs, and what is assumed."""
    choice_text = actions.describe_choice(answer.parameters.purpose)
    st.markdown(f"- **Private copy.** {actions.COPY_IS}\n- **Direct choice.** {choice_text}")
    cards.behind(answer)


def leak(solution: PrivateSolution) -> None:
    """Draw why a bound chosen in the clear leaks."""
    data = solution.data
    effect = work.leak(data.digest, comparison.without_budget(solution.parameters), data)
    st.markdown(
        f"{words.leak_sentence(solution, effect, data.release is not None)} The ε of the release does not cover that: "
        "there are two remedies, and each costs an ε of its own."
    )
    figures.draw(plots.leak(effect, data))
    cards.label(data.provenance)


def over_users(solution: PrivateSolution) -> None:
    """Draw what either way would cost with fewer users or more."""
    st.markdown("Every user is taken so many times: shares stay, noise matters less.")
    data, parameters = solution.data, solution.parameters
    copies, run = work.copies_over_users(data, parameters)
    figures.draw(plots.over_users(solution, work.direct_over_users(data.digest, parameters, data), copies))
    show_progress(run, copies)
    cards.label(data.provenance)


def show_progress(run: runner.Run, copies: Copies) -> None:
    """Draw how far the simulation is, in one line that is always there."""
    with st.container(height=PROGRESS_HEIGHT, border=False):
        doing = run.search.doing_at[Stage.EARLIER] if copies.earlier else run.search.doing
        if not jobs.watch(run.key, doing) and copies.cancelled:
            st.caption("The simulation of private copies was stopped early.")


def files(solution: PrivateSolution) -> None:
    """Draw the downloads of the whole answer, with what was selected."""
    choices, ledger, source = actions.choices(), session.get_ledger(), report_content.source()
    parameters, copies, data = solution.parameters, solution.copies, solution.data

    def content() -> Report:
        # At the budget of the choice the cost of a copy is made up for; the curve of the settings before is left out.
        cost = copies.at_budget or comparison.copy_cost(parameters, data.histogram)
        curve = () if copies.earlier else copies.over_epsilon
        final = replace(solution, copies=replace(copies, at_budget=cost, over_epsilon=curve))
        answer = build_answer(data, parameters, final)
        report = report_content.of_answer(QUESTION, answer, source, setting_labels=_report_labels(parameters))
        # What was selected, and what everything selected cost: the user's own doing, which tells nothing of the data.
        lines = (*(_line(number, selection) for number, selection in choices), *spent_lines(ledger))
        return replace(report, releases=lines, methods=None)

    report_content.draw("private", data.provenance, content, methods(solution, actions.numbers(), ledger))


def _report_labels(parameters: PrivateParameters) -> dict[str, str]:
    """Return the labels in a report of the fields that apply."""
    applying = [
        name
        for name in QUESTION.list_fields(Place.LINE, Place.MORE)
        if applies(QUESTION.fields[name].only_with, parameters.__getattribute__)
    ]
    return QUESTION.get_labels(*applying) | {"epsilon": "ε of the release that will use it"}


def _line(number: NumberKind, selection: words.Selection) -> Line:
    name, text = wording.capital(NUMBER_NAMES[number]), words.format_selection(selection)
    if not isinstance(selection, PrivateChoice):
        return Line(name, text, selection.facts)
    rows = wording.counted(selection.value, "row") if selection.value == 1.0 else f"{text} rows"
    return Line(name, rows, selection.facts, number=selection.value)


def value_range() -> None:
    """Draw the form of a value range, selected with an ε of its own."""
    if on_card.range_form(session.get_original().dataset):
        st.rerun()


def pair() -> None:
    """Draw the button for the pair of bounds of *Per group*, selected with one ε."""
    data = session.dataset()
    st.markdown(
        "To how many groups may one user add, and how much to each? Both numbers are drawn at once, with one "
        f"ε. {words.PAIR_AIM}"
    )
    if data.pairs is None and data.pair_sizes is None:
        st.info("These data have no groups: load them in *Your data* with a group in each row.")
        return
    try:
        parameters = per_group_parameters()
    except InvalidInput as refusal:
        st.info(" ".join(f"{wording.capital(problem.message)}." for problem in refusal.problems))
        return
    try:
        request = selections.build_pair_request(parameters, actions.selection_settings())
    except InvalidInput as refusal:
        fields.show_problems(refusal.problems)
        return
    if parameters.statistic is Statistic.SUM:
        fields.draw_row(QUESTION, "pair_unit", "pair_largest")
    if isinstance(request, selections.MissingInput):
        st.info(request.sentence)
        return
    offer = on_card.BoundSelection(request)
    st.markdown(f"{offer.cost} What is released is set on *Per group*.")
    if offer.dropped:
        st.markdown(offer.dropped)
    fields.button(offer.name, "private_pair_draw", "casino", offer.draw, help=offer.help)
    st.page_link(session.page_file("Per group"), label="Per group", icon=":material/table_rows:")


def per_group_parameters() -> PerGroupParameters:
    """Return the release that *Per group* is set to.

    Raises:
        InvalidInput: Its settings do not fit together.
    """
    fields.start(PER_GROUP, uses_shared_data=False)
    state, key = st.session_state, PER_GROUP.key
    statistic, noise = state[key("statistic")], state[key("mechanism")]
    is_mean = statistic is Statistic.MEAN
    return PerGroupParameters(
        state[keys.EPSILON],
        statistic if statistic in per_group_inputs.list_statistics(session.dataset()) else Statistic.ROWS,
        noise,
        state[key("delta")] if noise is NoiseKind.GAUSSIAN else None,
        state[key("neighbours")],
        lower=setting.read_value(PER_GROUP, "lower") if is_mean else None,
        upper=setting.read_value(PER_GROUP, "upper") if is_mean else None,
        num_groups=None if state[key("num_groups")] is None else int(state[key("num_groups")]),
    )
