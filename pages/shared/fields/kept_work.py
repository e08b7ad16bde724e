"""Light work whose answers are kept: one that is known already takes the place of the work."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pages.shared.base import cache
from pages.shared.fields import jobs


def start(key: str, question: Hashable, for_all: bool, work: jobs.Work, whole: Callable[[Any], bool]) -> None:
    """Start work beside the page; not where its answer is known: that is the result at once.

    Args:
        key: In the session; also the name under which answers are kept.
        question: What it works on.
        for_all: Whether all sessions share the answers, as in `cache.answers`.
        work: What to do.
        whole: Whether an answer is one, and not what there was when it was stopped.
    """
    answers = cache.answers(key, for_all)
    if (known := answers.known(question)) is not None:
        jobs.put(key, question, known)
        return
    jobs.start(
        key,
        question,
        lambda tell, stop: answers.found(question, lambda: work(tell, stop), whole),
        seconds=0.0,
        light=True,
    )
