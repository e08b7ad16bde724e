"""The search: at once where it is short, else a job beside the page. The answer before stands until the new one."""

from __future__ import annotations

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.per_group import PerGroupParameters, Statistic
from dpcore.per_group.answer import DistributionFound, PerGroupFound, check, find
from pages.per_group import cached
from pages.per_group.question import QUESTION
from pages.shared.fields import jobs

JOB, KEPT = QUESTION.key("job"), QUESTION.key("kept")
Found = PerGroupFound | DistributionFound
SHORT, SHORT_MEAN = 60_000, 3_000
"""Pairs up to which an answer is computed at once: a few tenths of a second."""
HEAVY = 1_000_000
"""Pairs from which on a search waits until no other heavy work runs: it takes a few hundred MB and up to minutes."""


def is_long(data: Dataset, parameters: PerGroupParameters) -> bool:
    """Whether the search is done beside the page."""
    if data.pairs is None:
        return False
    most = SHORT_MEAN if parameters.statistic is Statistic.MEAN else SHORT
    return parameters.selection.private or data.pairs.user_codes.size > most


def found_for(data: Dataset, parameters: PerGroupParameters) -> tuple[Found | None, bool]:
    """What is found, or what was for an earlier question on these data while the search runs; and whether it is that.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if not is_long(data, parameters):
        return cached.found(data.digest, parameters, data), False
    question = data.digest, parameters
    kept: tuple[tuple[str, PerGroupParameters], PerGroupFound] | None = st.session_state.get(KEPT)
    if kept is not None and kept[0] == question:
        return kept[1], False
    job: jobs.Job | None = st.session_state.get(JOB)
    if job is None or job.question != question:
        assert data.pairs is not None
        check(data, parameters)
        jobs.start(
            JOB,
            question,
            lambda tell, stop: find(data, parameters, tell, stop),
            heavy=data.pairs.user_codes.size >= HEAVY,
        )
    done = jobs.result_of(JOB)
    if done is not None and done[0] == question:
        st.session_state[KEPT] = done
        of: PerGroupFound = done[1]
        return of, False
    return (kept[1], True) if kept is not None and kept[0][0] == data.digest else (None, False)
