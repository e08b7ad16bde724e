"""The heaviest users of the data in use: ranks and sizes, never who they are."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Contribution, Dataset

WORDS = {
    Contribution.ROWS: "Rows",
    Contribution.DISTINCT_TASKS: "Distinct tasks",
    Contribution.TOTAL: "Total",
}


def show(data: Dataset) -> None:
    """Show the heaviest users as a small table, folded up."""
    sizes = data.histogram.heaviest_sizes(10)
    shares = sizes / data.histogram.num_rows
    with st.expander("The heaviest users", icon=":material/leaderboard:"):
        together = (
            f"The {wording.number(sizes.size)} heaviest users hold" if sizes.size > 1 else "One user holds"
        )
        share = wording.percent(float(shares.sum()))
        st.markdown(f"{together} {share} of all contributions. Who they are is not kept.")
        st.table(
            pd.DataFrame(
                {
                    "Rank": [wording.number(rank) for rank in range(1, sizes.size + 1)],
                    WORDS[data.contribution]: [wording.number(size) for size in sizes.tolist()],
                    "Share of all": [wording.percent(share) for share in shares.tolist()],
                }
            ).set_index("Rank")
        )
