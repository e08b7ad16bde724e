"""What stands below the answer of Plan: the lines, their shares, one bound for all, files."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.errors import InvalidInput
from dpcore.dataset import Dataset
from dpcore.plan.answer import words
from pages.plan import cached
from pages.plan.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots


def show_behind(answer: Answer) -> None:
    """Every line with its share, bound and error, and what stands behind the plan."""
    tables.show(words.table(answer.found), "Share, bound and error of every number", height="content")
    st.caption(words.TABLE_NOTE)
    cards.behind(replace(answer, numbers=answer.numbers[:2]))


def show_shares(answer: Answer) -> None:
    """Shares as bars, beside an equal split."""
    plots.show(answer.plots["plan-shares"]())
    cards.label(answer.disclosure)


def show_one_bound(data: Dataset, answer: Answer) -> None:
    """What one truncation of the table for all lines costs."""
    try:
        one = cached.one_truncation(data.digest, answer.parameters, answer.found, data)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return
    st.markdown(words.one_bound(one, answer.found))
    tables.show(words.one_bound_table(one, answer.found), "Errors under one bound on rows", height="content")
    cards.label(answer.disclosure)


def show_files(answer: Answer) -> None:
    """The tab of downloads."""
    source = take_away.source(rows=True)
    take_away.draw(
        "plan",
        answer.disclosure,
        lambda: report_content.of_answer(QUESTION, answer, source),
        answer.methods,
        f"**Choice** holds every line with its share, bound and error. Label: *{answer.disclosure.label}*.",
    )
