"""What stands below the answer of Plan: the lines, their shares, one bound for all, files."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import streamlit as st

from dpcore import questions
from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.plan.answer import add_noise_comparison, noises, words
from dpcore.plan.lines import LineStatistic
from dpcore.plan.one_truncation import find_bound_over_groups
from dpcore.report import settings_file
from pages.plan import cached
from pages.plan.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots


def show_behind(answer: Answer) -> None:
    """Every line with its share, bound and error, and what stands behind the plan."""
    tables.show(
        words.tabulate_plan(answer.solution), "Share, bound and error of every number", height="content"
    )
    st.caption(words.TABLE_NOTE)
    cards.behind(replace(answer, numbers=answer.numbers[:2]))


def show_shares(answer: Answer) -> None:
    """Shares as bars, beside an equal split."""
    plots.show(answer.plots["plan-shares"]())
    cards.label(answer.disclosure)


def show_noises(data: Dataset, answer: Answer) -> None:
    """Laplace against Gaussian noise, both as the program draws them."""
    both = cached.both_noises(data.digest, answer.parameters, answer.solution, data)
    st.markdown(wording.capital(noises.write_comparison(both, answer.solution, answer.parameters)))
    if columns := noises.tabulate_comparison(both, answer.solution):
        tables.show(columns, "Errors with either noise", height="content")
    cards.label(answer.disclosure)


def show_one_bound(data: Dataset, answer: Answer) -> None:
    """What one truncation of the table for all lines costs."""
    try:
        one = cached.one_truncation(data.digest, answer.parameters, answer.solution, data)
    except InvalidInput as refused:
        fields.say(refused.problems)
    else:
        st.markdown(words.describe_common_bound(one, answer.solution))
        tables.show(
            words.tabulate_common_bound(one, answer.solution),
            "Errors under one bound on rows",
            height="content",
        )
    for line in answer.solution.lines:
        if line.planned.line.statistic is LineStatistic.GROUP_ROWS and not line.is_dropped:
            with contextlib.suppress(InvalidInput):  # Rows in no group, which is said above.
                of_all = find_bound_over_groups(data, answer.parameters, line.planned, line.v)
                st.markdown(words.describe_bound_over_groups(line, *of_all))
    cards.label(answer.disclosure)


def show_files(data: Dataset, answer: Answer) -> None:
    """The tab of downloads."""
    source = take_away.source(rows=True)
    take_away.draw(
        "plan",
        answer.disclosure,
        lambda: report_content.of_answer(QUESTION, add_noise_comparison(answer, data), source),
        answer.methods,
        f"**Choice** holds every line with its share, bound and error. Label: *{answer.disclosure.label}*.",
    )
    if not settings_file.can_read_again(data):
        return
    st.markdown(
        "**plan.toml** holds what you entered, with the names of your columns: `sweet-spot plan plan.toml data.csv` "
        "gives this answer in a shell, and `docs/plan.md` says how Python does. Label: *public input*."
    )
    cards.file_button("Settings (TOML)", "plan.toml", Disclosure.PUBLIC, lambda: settings_of(data, answer))


def settings_of(data: Dataset, answer: Answer) -> str:
    """Return what was entered, as a file for the command."""
    call = questions.call_with(QUESTION.name, answer.parameters)
    assert call is not None
    name, settings = call
    by_line = {"lines": [line.text for line in answer.parameters.parsed_lines]}
    return settings_file.write_settings(
        (name, settings | by_line), questions.command_of(name), data, questions.QUESTIONS[name].columns
    )
