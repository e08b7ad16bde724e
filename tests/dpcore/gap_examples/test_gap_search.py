"""The search for a larger gap: what it returns is true, and it can be stopped."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.gap_examples.compare import compare
from dpcore.gap_examples.two_groups import supremum
from tests.dpcore.gap_examples.random_search import GapSearch, search


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_what_the_search_finds_is_confirmed_over_all_caps(groups: int) -> None:
    found = search(GapSearch(num_groups=groups, largest_size=3000, evaluations=40_000, seed=groups))
    problem = found.comparison.problem
    sizes, users = (x.astype(float) for x in (problem.histogram.sizes, problem.histogram.users))
    rho = 2.0 * (problem.value_bound / problem.epsilon) ** 2 / problem.value_variance
    caps = np.arange(1.0, sizes[-1] + 1.0)
    kept = (np.minimum(caps[:, None], sizes) * users).sum(axis=1)
    capped = (1.0 / kept + rho * (caps / kept) ** 2).min()
    h = np.geomspace(sizes[0], sizes[-1], 200_001)[:, None]
    each = np.minimum(h, sizes)
    each /= (each * users).sum(axis=1, keepdims=True)
    smooth = ((each**2 / sizes * users).sum(axis=1) + rho * each.max(axis=1) ** 2).min()
    assert found.comparison.ratio == pytest.approx(capped / smooth, rel=1e-7)
    assert found.comparison.ratio == pytest.approx(found.best_so_far[-1, 1], rel=1e-9)
    # It comes close, and cannot arrive.
    assert 1.55 < found.comparison.ratio < supremum().ratio
    assert found.shortfall > 0.0
    assert sizes.size <= groups
    assert sizes[-1] <= 3000


def test_the_search_is_repeatable_and_reports_progress() -> None:
    question, seen = GapSearch(evaluations=10_000, seed=3), []
    first, second = search(question, progress=seen.append), search(question)
    assert first.comparison.problem == second.comparison.problem
    assert seen == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert first.best_so_far[:, 0].tolist() == [2000, 4000, 6000, 8000, 10000]
    assert np.all(np.diff(first.best_so_far[:, 1]) >= 0.0)
    assert not first.cancelled


def test_a_stopped_search_returns_its_best_so_far() -> None:
    asked = iter([False, True])
    found = search(GapSearch(evaluations=100_000), should_stop=lambda: next(asked))
    assert found.cancelled
    assert found.evaluations == 4000
    assert found.ended.startswith("Stopped after 4,000")
    assert found.comparison.ratio == pytest.approx(compare(found.comparison.problem).ratio)


def test_bad_questions_are_refused_all_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        GapSearch(num_groups=1, largest_size=1, largest_group=0, evaluations=1, seed=-1)
    assert len(refused.value.problems) == 5
