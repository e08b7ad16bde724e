"""The setting of *Mean*, as far as a private choice goes by it: one release has one setting on both pages."""

from __future__ import annotations

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.private_choice.parameters import PrivateParameters
from pages.mean import elsewhere
from pages.private_choice.question import QUESTION

SHARE = QUESTION.key("variance_share")
FOLLOWED = QUESTION.key("variance_followed")


USERS = QUESTION.key("user_share")
USERS_FOLLOWED = QUESTION.key("users_followed")


def follow(data: Dataset) -> None:
    """Take up what *Mean* goes by of values and users, where that has changed; nothing read off private values."""
    _follow_users(data)
    there, state = elsewhere.build_answer(data), st.session_state
    share = PrivateParameters(1.0).variance_share
    setting = None if there is None else there.setting
    if setting is not None and not (setting.uses_values and data.is_private):
        # Where all values are the same, nothing is to be chosen: the page says so of an empty share.
        share = min(setting.variance_share or 0.0, share) or share
    before = state.get(FOLLOWED, PrivateParameters(1.0).variance_share)
    if share != before and state[SHARE] in (before, None):
        state[SHARE] = share
    state[FOLLOWED] = share


def _follow_users(data: Dataset) -> None:
    share, state = elsewhere.share_between_users(data), st.session_state
    before = state.get(USERS_FOLLOWED, QUESTION.first("user_share"))
    if share != before and state[USERS] in (before, None):
        state[USERS] = share
    state[USERS_FOLLOWED] = share
