"""The tabs of Learning under a bound that are about the data, each drawn only while it is open."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.common import wording
from dpcore.common.parameters import Place
from dpcore.dataset import Dataset
from dpcore.learning.answer import words
from dpcore.learning.answer.found import list_capped_users
from dpcore.report import csv_files
from pages.learning import cached
from pages.learning.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots

BEST, OWN = "Best bound", "Your own bound"


def show_terms(answer: Answer, data: Dataset, main: Plot) -> None:
    """All bounds on the bias beside each other, on the axes of the main figure."""
    st.markdown(
        "What is known decides how well the bias can be bounded. Only **worst case ≤ share of rows cut ≤ log form** "
        "always holds; the forms with Var(H) can be larger or smaller than these. Twice the share of rows cut, "
        "$2(1 - n_\\tau/n)$, beats Corollary 1's $2\\sqrt{1 - n_\\tau/n}$ everywhere and needs nothing more."
    )
    terms = answer.plots["learning-terms"]()
    plots.draw(terms.with_limits(main.x.limits, main.y.limits))
    st.caption(
        "A line ends where nobody loses rows: its bias is 0 there, which a log axis cannot show. The line of "
        "Corollary 1 also ends where less than a quarter of the rows is kept, since it does not apply there."
    )
    others = cached.learning_rivals(data.digest, answer.parameters.about_data, data)
    rows = words.list_rival_rows(answer.solution, others, answer.parameters.own_cap)
    st.table(pd.DataFrame(rows), hide_index=True)
    cards.label(answer.disclosure)


def show_capped(answer: Answer) -> None:
    """Who loses rows."""
    found, own_cap = answer.solution, answer.parameters.own_cap
    whose: str | None = BEST
    if own_cap is not None:
        st.session_state.setdefault(QUESTION.key("whose_cap"), BEST)
        whose = fields.choice("Under which bound", {BEST: BEST, OWN: OWN}, QUESTION.key("whose_cap"))
    cap = own_cap if whose == OWN and own_cap is not None else found.choice.max_contributions
    columns, further = list_capped_users(found, cap)
    above = found.problem.histogram.users_above(cap)
    if not columns["size"].size:
        st.info(
            f"Nobody has more than {wording.counted(cap, 'row')}, so this bound leaves nothing out.",
            icon=":material/check:",
        )
        return
    st.markdown(
        f"**{wording.counted(above, 'user')}** {wording.agreeing(above, 'has', 'have')} more than "
        f"{wording.counted(cap, 'row')}. The heaviest come first; a share is that of one such user."
    )
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        key="learning_capped_table",
        column_config={
            "size": st.column_config.NumberColumn("Rows of the user", format="localized"),
            "users": st.column_config.NumberColumn("Users", format="localized"),
            "rows_cut": st.column_config.NumberColumn("Rows cut, all of them", format="localized"),
            "share_before": st.column_config.NumberColumn("Share of all rows", format="percent"),
            "share_after": st.column_config.NumberColumn("Share of the kept rows", format="percent"),
        },
    )
    if further:
        are = wording.agreeing(further, "is", "are")
        st.caption(f"{wording.counted(further, 'smaller size')} above the bound {are} not listed.")
    notes = figures.question_notes()
    cards.file_button(
        "Who loses rows (CSV)",
        "learning_capped.csv",
        answer.disclosure,
        lambda: csv_files.write_columns(columns, answer.disclosure, notes),
        quiet=True,
    )
    cards.label(answer.disclosure)


def show_files(answer: Answer) -> None:
    """The whole answer; choice and curves as files."""
    source = take_away.source()
    asked = QUESTION.asked(*(name for name, field in QUESTION.fields.items() if field.place is not Place.TAB))
    take_away.draw(
        "learning",
        answer.disclosure,
        lambda: report_content.of_answer(QUESTION, answer, source, asked=asked),
        answer.methods,
        words.describe_files(answer.disclosure.label),
        [("Curves (CSV)", name, make) for name, make in answer.files.items()],
    )
