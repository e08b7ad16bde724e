"""The exact noise of the chosen bound, beside the page: until it is there, the quick bound on it stands."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.examples_per_user import ExamplesParameters
from dpcore.examples_per_user.answer import ExamplesSolution, solve_quickly
from pages.examples_per_user.question import QUESTION
from pages.shared.base.cache import cached
from pages.shared.fields import jobs
from pages.shared.fields.search import Search

SOON_SECONDS = 0.05
"""How long a run waits: an answer that was found before, or soon, stands at once."""
EXACT = Search[float | None](QUESTION.key("exact_job"))


@cached(max_entries=32)
def _quick(digest: str, parameters: ExamplesParameters, _data: Dataset) -> ExamplesSolution:
    return solve_quickly(_data.histogram, parameters)


def find(data: Dataset, parameters: ExamplesParameters) -> ExamplesSolution:
    """Return what is known now; the search of the exact noise is begun where it was not.

    Raises:
        InvalidInput: The expected batch is more than all examples.
    """
    found = _quick(data.digest, parameters, data)
    asked = found.exact_noise
    if asked is None:
        return found

    def is_whole(sigma: float | None) -> bool:
        return sigma is not None

    EXACT.ask(asked, lambda tell, stop: asked.search(stop), whole=is_whole, seconds=SOON_SECONDS)
    jobs.rerun_if_ended(EXACT.key)
    running, sigma = EXACT.running, EXACT.found().value
    # Stopped or failed: the quick bound is what there is.
    return found if sigma is None and not running else found.with_noise(sigma)


def show_state() -> None:
    """One line while the exact noise is searched for."""
    jobs.rerun_if_ended(EXACT.key)
    if EXACT.running:
        jobs.watch(EXACT.key, "Searching the least noise multiplier", measured=False)
    else:
        jobs.say_failure(EXACT.key)
