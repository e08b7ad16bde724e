"""Simulated copies: a job beside the page. The curves before stand until the new ones are there."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice import answer
from pages.private_choice.answer import Copies
from pages.private_choice.question import QUESTION
from pages.shared.fields import jobs, kept_work
from pages.shared.session import session

JOB, USERS_JOB = QUESTION.key("curves_job"), QUESTION.key("users_job")
KEPT = QUESTION.key("copies")


def over_epsilon(data: Dataset, parameters: PrivateParameters) -> Copies:
    """Costs of copies over budgets of the choice: those that are asked for, or as far as they are known."""
    kept = _finished(JOB)
    job: jobs.Job | None = st.session_state.get(JOB)
    question, histogram = (data.digest, parameters), data.histogram
    same = kept is not None and _curve_of(*kept[0]) == _curve_of(*question) and not kept[1].cancelled
    if job is None or job.question != question:
        curve = kept[1].over_epsilon if same and kept is not None else ()
        _start(JOB, question, lambda tell, stop: answer.simulate(histogram, parameters, curve, tell, stop))
        kept = _finished(JOB) or kept
    if kept is None or kept[0][0] != data.digest:
        return Copies()
    asked, found = kept
    if asked == question:
        return found
    return replace(found, at=None, earlier=not same)


def over_users(data: Dataset, parameters: PrivateParameters) -> Copies:
    """The same over numbers of users."""
    job: jobs.Job | None = st.session_state.get(USERS_JOB)
    question, histogram = (data.digest, parameters), data.histogram
    if job is None or job.question != question:
        _start(
            USERS_JOB,
            question,
            lambda tell, stop: comparison.copy_curves(parameters, histogram, tell, stop, epsilons=()),
        )
    done = jobs.result_of(USERS_JOB)
    if done is None or done[0] != question:
        return Copies()
    return Copies(over_users=done[1].over_users, cancelled=done[1].cancelled)


def _start(key: str, question: tuple[str, PrivateParameters], simulate: jobs.Work) -> None:
    """Simulate beside the page what was not simulated before."""
    kept_work.start(key, question, session.same_for_all(), simulate, lambda found: not found.cancelled)


def _curve_of(digest: str, parameters: PrivateParameters) -> tuple[str, PrivateParameters]:
    return digest, answer.without_budget(parameters)


def _finished(key: str) -> tuple[tuple[str, PrivateParameters], Copies] | None:
    """The last costs that were simulated, with their question; a new job does not take them away."""
    done = jobs.result_of(key)
    if done is not None:
        st.session_state[KEPT] = done
    kept: tuple[tuple[str, PrivateParameters], Copies] | None = st.session_state.get(KEPT)
    return kept
