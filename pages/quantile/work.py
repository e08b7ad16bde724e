"""The answer on the page: a first one within the run, the exact one by a job beside the page."""

from __future__ import annotations

from dataclasses import replace

from dpcore.answer.stage import Stage
from dpcore.common.progress import ShouldStop
from dpcore.dataset import Dataset
from dpcore.quantile.answer import QuantileFound
from dpcore.quantile.answer import found as core
from dpcore.quantile.parameters import QuantileParameters
from pages.quantile import cached
from pages.quantile.question import QUESTION
from pages.shared.base import cache
from pages.shared.fields import jobs
from pages.shared.fields.search import Found, Search

AT_ONCE_SECONDS, FIRST_VISIT_SECONDS = 0.03, 0.4
"""What is done so soon is shown at once, without a first answer before it. Where nothing is shown yet, it may take
longer than after a slider has moved."""
AT_ONCE_ROWS = 500
"""Up to so many rows a search ends so soon: 6 ms of processor time for 30 rows, 17 for 300, 160 for the shop purchases.
Of more rows it is not waited for where a first answer can be computed."""
KNOWN = 64
"""Searches whose best bounds are kept; each holds a few hundred numbers."""
SHARED, SHARED_ROWS = 16, 50_000
"""Whole answers that are kept for all sessions, of data that are the same for all: 80 bytes a row, so of so many rows
at most. A class that moves one slider then waits for no thread of each person's own."""
SEARCH = Search[QuantileFound](QUESTION.key("search_job"), SHARED)
DOING = {
    Stage.FIRST: "A first answer, from fewer bounds and subsamples. The exact one follows",
    Stage.EARLIER: "The answer for the settings before. The new one follows",
}
"""What is said beside an answer that stands in for the exact one."""


def search_question(parameters: QuantileParameters) -> QuantileParameters:
    """Return the parameters with all that the search does not depend on set to one value."""
    default = QuantileParameters(1.0)
    same = ("weighting", "bound_from", "own_bound", "alpha", "beta", "gamma", "population")
    return replace(parameters, **{name: getattr(default, name) for name in same})


def find(data: Dataset, parameters: QuantileParameters, for_all: bool) -> Found[QuantileFound]:
    """Return the exact answer where it is known or quickly found. Otherwise a job looks for it, and another
    stands in.

    That is a first answer where the rows are few enough to compute one, else the answer for the settings before.
    ``for_all``: whether the data are a sample or generated, so that what one session finds serves all.
    """
    assert data.values is not None
    p = parameters
    # All that sorting the rows depends on, and nothing that a slider moves.
    base = tuple(map(str, (p.base, p.low, p.high, p.center, p.spread, p.edges, p.masses)))
    whole, few = cached.quantile_rows(data.digest, base, p, data.values)
    whole, few = whole.under(p.neighbours), None if few is None else few.under(p.neighbours)
    known, searched = (
        cache.answers(f"{SEARCH.key}_choices", for_all, KNOWN),
        (data.digest, search_question(p)),
    )
    choices, problem = known.known(searched), whole.with_epsilon(p.epsilon)

    def compute(tell: jobs.Tell, stop: ShouldStop) -> QuantileFound:
        def search() -> core.Choices:
            return core.search(problem, p.asked, tell, stop)

        return core.compute(p, problem, known.found(searched, search, lambda found: not found.cancelled))

    def first_answer() -> QuantileFound | None:
        if few is None:
            return None
        return cached.first_answer(data.digest, p, choices is not None, few.with_epsilon(p.epsilon), choices)

    seconds, rows = FIRST_VISIT_SECONDS, data.values.values.size
    if SEARCH.job is not None:
        brief = choices is not None or few is None or rows <= AT_ONCE_ROWS
        seconds = AT_ONCE_SECONDS if brief else 0.0
    shared = for_all and rows <= SHARED_ROWS
    SEARCH.ask(
        (data.digest, p),
        compute,
        (lambda answer: not answer.choices.cancelled) if shared else None,
        for_all=True,
        seconds=seconds,
        light=choices is None,
    )
    return SEARCH.found(lambda before: before[0] == data.digest, first_answer)
