"""Try to beat the supremum: a search over instances with k groups.

It cannot succeed; watching it fail is the point. An evolution strategy on whole sizes, whole users and a real
noise ratio, all on log scales. What it returns is re-verified by the exact, certified optimisers of
`dpcore.mean` on that very instance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.gap_examples.compare import Comparison, build_problem_of_noise_ratio, compare, variance_ratios
from dpcore.gap_examples.two_groups import supremum

BATCH = 2_000
"""Instances evaluated between two looks at ``should_stop``: about 5 ms."""
_PARENTS, _FRESH = 100, 200
# Standard deviations of a child's log distance from its parent, drawn log-uniformly.
_LOG_STEPS = math.log(1e-4), 0.0


@dataclass(frozen=True)
class GapSearch:
    """The question: how large a ratio is there among instances of this kind?

    Attributes:
        num_groups: Groups of users, 2 to 8.
        largest_size: Most rows a user may have, 2 to 1e9.
        largest_group: Most users a group may have, 1 to 1e6.
        evaluations: Instances to try, 2,000 to 1e7; rounded up to whole batches.
        seed: Seed of the search.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.
    """

    num_groups: int = 3
    largest_size: int = 10**6
    largest_group: int = 1_000
    evaluations: int = 200_000
    seed: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.whole(2, 8, num_groups=self.num_groups)
            problems.whole(2, 10**9, largest_size=self.largest_size)
            problems.whole(1, 10**6, largest_group=self.largest_group)
            problems.whole(BATCH, 10**7, evaluations=self.evaluations)
            problems.whole(0, 2**63 - 1, seed=self.seed)


@dataclass(frozen=True)
class SearchResult:
    """The worst instance found.

    Attributes:
        comparison: The instance with both its optima, exact and certified; ``.ratio`` is the answer.
        evaluations: Instances tried.
        best_so_far: (instances tried, largest ratio until then) after every batch, shape (batches, 2).
        cancelled: Whether it was stopped.
        ended: How it ended, a sentence.
    """

    comparison: Comparison
    evaluations: int
    best_so_far: FloatArray
    cancelled: bool
    ended: str

    @property
    def shortfall(self) -> float:
        """Supremum minus the ratio found; above 0, since no instance reaches the supremum."""
        return supremum().ratio - self.comparison.ratio


def search(question: GapSearch, progress: Progress = silent, should_stop: ShouldStop = never) -> SearchResult:
    """Look for the instance with the largest ratio.

    Args:
        question: Where to look and for how long.
        progress: Called with the share done, in (0, 1].
        should_stop: Asked after every batch; true ends the search with the best instance so far.

    Returns:
        `SearchResult`; the same question gives the same answer, unless stopped.
    """
    rng = np.random.default_rng(question.seed)
    batches = -(-question.evaluations // BATCH)
    parents = np.empty((0, 2 * question.num_groups + 1))
    fitness = np.empty(0)
    history = []
    cancelled = False
    for done in range(1, batches + 1):
        candidates = np.concatenate((parents, _candidates(question, rng, parents)))
        new = variance_ratios(*_instances(question, candidates[len(parents) :])).ratio
        scores = np.concatenate((fitness, new))
        best = np.argsort(-scores, kind="stable")[:_PARENTS]
        parents, fitness = candidates[best], scores[best]
        history.append((done * BATCH, float(fitness[0])))
        progress(done / batches)
        if done < batches and should_stop():
            cancelled = True
            break
    tried = len(history) * BATCH
    comparison = _verified(question, parents[0])
    short = supremum().ratio - comparison.ratio
    how = "Stopped" if cancelled else "Finished"
    ended = (
        f"{how} after {wording.counted(tried, 'instance')}: the worst has ratio {comparison.ratio:.6f}, "
        f"{short:.2g} short of what no instance reaches. Re-verified by the exact optimisers."
    )
    return SearchResult(comparison, tried, np.array(history), cancelled, ended)


def _ranges(question: GapSearch) -> tuple[FloatArray, FloatArray]:
    """Ends of the search box in natural logs: k sizes, k numbers of users, the noise ratio."""
    k = question.num_groups
    top = np.log([question.largest_size] * k + [question.largest_group] * k)
    # With more noise than users the best weights are all alike, and the more noise the nearer is cap 1.
    noise = (math.log(1e-3), math.log(k * question.largest_group))
    return np.append(np.zeros(2 * k), noise[0]), np.append(top, noise[1])


def _candidates(question: GapSearch, rng: np.random.Generator, parents: FloatArray) -> FloatArray:
    low, high = _ranges(question)
    fresh = _FRESH if len(parents) else BATCH
    drawn = rng.uniform(low, high, size=(fresh, low.size))
    if not len(parents):
        return drawn
    steps = np.exp(rng.uniform(*_LOG_STEPS, size=(BATCH - fresh, 1)))
    # Half the coordinates stay, so that single ones can be tuned.
    moves = rng.random((BATCH - fresh, low.size)) < 0.5
    children = parents[rng.integers(len(parents), size=BATCH - fresh)]
    children = children + moves * steps * rng.standard_normal(children.shape)
    return np.concatenate((drawn, np.clip(children, low, high)))


def _instances(question: GapSearch, logs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole sizes (ascending), whole users and the noise ratio of each row of logs."""
    k = question.num_groups
    sizes = np.minimum(np.rint(np.exp(logs[..., :k])), question.largest_size)
    users = np.minimum(np.rint(np.exp(logs[..., k : 2 * k])), question.largest_group)
    order = np.argsort(sizes, axis=-1, kind="stable")
    return (
        np.take_along_axis(sizes, order, axis=-1),
        np.take_along_axis(users, order, axis=-1),
        np.exp(logs[..., 2 * k]),
    )


def _verified(question: GapSearch, logs: FloatArray) -> Comparison:
    sizes, users, rho = _instances(question, logs)
    return compare(build_problem_of_noise_ratio(ContributionHistogram.from_table(sizes, users), float(rho)))
