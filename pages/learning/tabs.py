"""The tabs of Learning under a cap that are about the data, each drawn only while it is open."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.report import csv_files
from pages.learning import answer as learning_view
from pages.learning import cached, methods, report
from pages.learning import figures as learning_charts
from pages.learning.answer import LearningView, Limits
from pages.learning.question import QUESTION
from pages.shared import cards, fields, figures, file_button, take_away

BEST, OWN = "Best cap", "Your cap"


def show_terms(view: LearningView, parameters: LearningParameters, data: Dataset, limits: Limits) -> None:
    """All bounds on the bias beside each other."""
    st.markdown(
        "What is known decides how well the bias can be bounded. Only **worst case ≤ share of rows cut ≤ log form** "
        "always holds; the forms with Var(H) can be larger or smaller than these. Twice the share of rows cut, "
        "$2(1 - n_\\tau/n)$, beats Corollary 1's $2\\sqrt{1 - n_\\tau/n}$ everywhere and needs nothing more."
    )
    figures.show_picture(learning_charts.terms_picture(view, parameters.own_cap, data.provenance, limits))
    st.caption(
        "A line ends where nobody is capped: its bound is 0 there, which a log axis cannot show. The line of "
        "Corollary 1 also ends where less than a quarter of the rows is kept, since it does not apply there."
    )
    others = cached.learning_rivals(data.digest, parameters.about_data, data)
    st.table(pd.DataFrame(learning_view.rival_rows(view, others, parameters.own_cap)), hide_index=True)
    cards.label(data.provenance)


def show_capped(view: LearningView, parameters: LearningParameters, data: Dataset) -> None:
    """Who loses rows."""
    whose: str | None = BEST
    if parameters.own_cap is not None:
        st.session_state.setdefault(QUESTION.key("whose_cap"), BEST)
        whose = fields.choice("Under which cap", {BEST: BEST, OWN: OWN}, QUESTION.key("whose_cap"))
    cap = (
        parameters.own_cap
        if whose == OWN and parameters.own_cap is not None
        else view.choice.max_contributions
    )
    columns, further = learning_view.capped_rows(view, cap)
    above = view.problem.histogram.users_above(cap)
    if not columns["size"].size:
        st.info(
            f"Nobody has more than {wording.counted(cap, 'row')}, so this cap throws nothing away.",
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
        st.caption(f"{wording.counted(further, 'smaller size')} above the cap {are} not listed.")
    notes = figures.question_notes()
    file_button.draw(
        "Who is capped (CSV)",
        "learning_capped.csv",
        data.provenance,
        lambda: csv_files.columns_csv(columns, data.provenance, notes),
        quiet=True,
    )
    cards.label(data.provenance)


def show_files(view: LearningView, parameters: LearningParameters, data: Dataset) -> None:
    """The whole answer; choice and curves as files."""
    kind, source, notes = data.provenance, take_away.source(), figures.question_notes()
    take_away.draw(
        "learning",
        kind,
        lambda: report.learning_report(view, data, parameters, source),
        methods.methods(view, data, parameters),
        "**Choice** holds the question, the best cap, what each part contributes, and the proof. **Curves** hold the "
        "bound in its parts and every bound on the bias, twice, one line per cap; what does not apply is `inf`. "
        f"Label in both: *{kind.label}*.",
        [("Curves (CSV)", "learning_curves.csv", lambda: csv_files.columns_csv(view.curves, kind, notes))],
    )
