"""The check that a person can press: the same problem as written, handed to CVXPY, beside our own answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import streamlit as st

from dpcore.common import certificate
from dpcore.common.certificate import Solved
from dpcore.common.progress import ShouldStop
from pages.shared.base import tables
from pages.shared.fields import jobs


def show(
    key: str, question: Hashable, solve: Callable[[ShouldStop], tuple[Solved, ...]], what: str, too_large: str
) -> None:
    """A button that solves with both, and the two answers with their proofs and times.

    Args:
        key: In the session, of the work.
        question: What is solved.
        solve: Our answer and the other; ours alone where it is stopped before the other has begun.
        what: What the value is.
        too_large: Why it is not offered; empty where it is.
    """
    st.markdown("**Compare with CVXPY**")
    if too_large:
        st.caption(too_large)
        return
    st.caption(
        "CVXPY hands the problem as written to Clarabel, a general solver. Both answers are proved by the same rule: "
        "their value and a number that no answer goes below are computed from the data."
    )
    if st.button("Compare with CVXPY", key=f"{key}_start", icon=":material/balance:"):
        jobs.start(key, question, lambda _tell, stop: solve(stop), heavy=True)
    if jobs.watch(key, "Solving with both", measured=False):
        return
    done = jobs.result_of(key)
    if done is None or done[0] != question:
        return
    both: tuple[Solved, ...] = done[1]
    tables.show(
        {
            "Solver": [one.solver for one in both],
            what: [one.certificate.value for one in both],
            "No answer is below": [one.certificate.lower_bound for one in both],
            "Seconds": [one.seconds for one in both],
            "How it ended": [one.stop_reason for one in both],
        },
        f"{what} and time of both solvers",
        formats={what: "%.9g", "No answer is below": "%.9g", "Seconds": "%.3f"},
    )
    st.markdown(certificate.compare_results(*both) if len(both) == 2 else "Stopped before CVXPY had begun.")
