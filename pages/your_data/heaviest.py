"""The heaviest users of the data in use: ranks and sizes, never who they are."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore import counting
from dpcore.common import wording
from dpcore.dataset import Contribution, Dataset

WORDS = {
    Contribution.ROWS: "Rows",
    Contribution.DISTINCT_TASKS: "Distinct tasks",
    Contribution.TOTAL: "Total",
}


def show(data: Dataset) -> None:
    """Show the heaviest users as a small table, folded up."""
    heavy = counting.list_heaviest(data.histogram)
    with st.expander("The heaviest users", icon=":material/leaderboard:"):
        together = (
            f"The {wording.number(heavy.ranks.size)} heaviest users hold"
            if heavy.ranks.size > 1
            else "One user holds"
        )
        st.markdown(
            f"{together} {wording.percent(heavy.share)} of all contributions. Who they are is not kept."
        )
        shares = heavy.sizes / data.histogram.num_rows
        st.table(
            pd.DataFrame(
                {
                    "Rank": [wording.number(rank) for rank in heavy.ranks.tolist()],
                    WORDS[data.contribution]: [wording.number(size) for size in heavy.sizes.tolist()],
                    "Share of all": [wording.percent(share) for share in shares.tolist()],
                }
            ).set_index("Rank")
        )
