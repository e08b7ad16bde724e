"""The search: at once where it is short, else a job beside the page. The answer before stands until the new one."""

from __future__ import annotations

from dpcore.answer.stage import Stage
from dpcore.dataset import Dataset
from dpcore.per_group.answer import DistributionSolution, PerGroupSolution, check, solve
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from pages.per_group import cached
from pages.per_group.question import QUESTION
from pages.shared.fields import jobs
from pages.shared.fields.search import Found, Search

SEARCH = Search[PerGroupSolution | DistributionSolution](QUESTION.key("job"))
SHORT, SHORT_MEAN = 60_000, 3_000
"""Pairs up to which an answer is computed at once: a few tenths of a second."""
HEAVY = 1_000_000
"""Pairs from which on a search waits until no other heavy work runs: it takes a few hundred MB and up to minutes."""


def is_long(data: Dataset, parameters: PerGroupParameters) -> bool:
    """Return whether the search is done beside the page."""
    if data.pairs is None:
        return False
    most = SHORT_MEAN if parameters.statistic is Statistic.MEAN else SHORT
    return parameters.selection.private or data.pairs.user_codes.size > most


def found_for(
    data: Dataset, parameters: PerGroupParameters
) -> Found[PerGroupSolution | DistributionSolution]:
    """Return what is found, or what was for an earlier question on these data while the search runs.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if not is_long(data, parameters):
        return Found(cached.found(data.digest, parameters, data), Stage.FINAL)
    question = data.digest, parameters
    assert data.pairs is not None
    if not SEARCH.asks(question):
        check(data, parameters)
    SEARCH.ask(
        question,
        lambda tell, stop: solve(data, parameters, tell, stop),
        seconds=jobs.POLL_SECONDS,
        heavy=data.pairs.user_codes.size >= HEAVY,
    )
    return SEARCH.found(lambda before: before[0] == data.digest)
