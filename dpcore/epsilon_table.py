"""A question at several epsilons: a table with the reply of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpcore.common.checks import EPSILON_RANGE, Problems, refuse

if TYPE_CHECKING:
    from dpcore.reply import Reply


def tabulate_replies(
    ask_question: Callable[[Any, Mapping[str, Any]], Reply],
    column_arguments: Collection[str],
    data: Any,
    settings: Mapping[str, Any],
    epsilons: Sequence[float],
) -> pd.DataFrame:
    """Answer a question at several epsilons, and read the data once.

    Args:
        ask_question: Answers the question about data with settings.
        column_arguments: Names of the settings that say how the data are read.
        data: As the call takes it.
        settings: Likewise.
        epsilons: At least one.

    Returns:
        A row for each epsilon (index), with bound, error, relative error (NaN if unknown), verdict and reply.

    Raises:
        InvalidInput: All that is wrong with data and settings.
    """
    if not epsilons:
        raise refuse("epsilon is an empty list", remedy="Give at least one")
    with Problems() as problems:
        wrong_epsilons = [e for e in epsilons if not problems.between(*EPSILON_RANGE, epsilon=e)]
        if wrong_epsilons:
            with problems.collecting():  # What else is wrong is told at once.
                ask_question(data, {**settings, "epsilon": wrong_epsilons[0]})
    replies: list[Reply] = []
    for epsilon in epsilons:
        reply = ask_question(data, {**settings, "epsilon": epsilon})
        if replies:
            # It was asked about counted data; in its call stand the columns that the first one counted.
            first_columns = {
                name: value for name, value in replies[0].call[1].items() if name in column_arguments
            }
            reply = replace(reply, call=(reply.call[0], {**first_columns, **reply.call[1]}))
        replies.append(reply)
        if data is not None:
            data = replies[0].subject
            settings = {name: value for name, value in settings.items() if name not in column_arguments}
    relative_errors = [reply.answer.relative_error for reply in replies]
    columns_by_name = {
        "bound": [reply.bound for reply in replies],
        "error": [reply.error for reply in replies],
        "relative_error": [float("nan") if r is None else r.share for r in relative_errors],
        "verdict": ["" if r is None else r.verdict.value for r in relative_errors],
        "reply": replies,
    }
    return pd.DataFrame(columns_by_name, index=pd.Index(epsilons, name="epsilon"))
