"""Growth: crossings against hand-made curves, and each error against a fit of its own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.common.errors import InvalidInput
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.growth import Growth, GrowthResult, run
from dpcore.factorisation.model import FactorSettings
from dpcore.factorisation.study import Kind, Study

STUDY = Study(epsilons=(50.0,), repeats=2, max_items=20, settings=FactorSettings(3, 2), with_recall=False)
GROWTH = Growth(GeneratedRatings(300, 40, 15.0, error_spread=0.3), (100, 1_000, 8_000), STUDY)


def crossed(*gains: tuple[float, ...]) -> list[float]:
    """Crossings of these curves over 100, 1,000 and 8,000 users, one per seed."""
    below = np.array(gains).T
    return list(GrowthResult(GROWTH, -below, np.zeros_like(below), True).crossings())


def test_crossings_are_interpolated_in_the_logarithm() -> None:
    assert crossed((-1.0, -0.5, 1.0)) == pytest.approx([1_000.0 * 8.0 ** (1.0 / 3.0)])
    # From 100 to 1,000 a third of the way is 100 times 10^(1/3).
    assert crossed((-1.0, 2.0, 3.0)) == pytest.approx([100.0 * 10.0 ** (1.0 / 3.0)])
    assert crossed((0.1, 0.1, 0.1), (-1.0, 1.0, -1.0)) == [100.0, math.inf]
    # The last crossing counts.
    assert crossed((1.0, -1.0, 1.0)) == pytest.approx([1_000.0 * 8.0**0.5])
    # A seed that is not complete says nothing.
    assert crossed((-1.0, math.nan, 1.0)) == []


def test_more_users_make_the_factorisation_better() -> None:
    result = run(GROWTH)
    assert result.finished
    assert np.all(np.diff(result.factorisation.mean(axis=1)) < 0.0)
    # With so little error in the ratings and this epsilon, taste is learned from a few thousand users.
    assert result.advantage[0].max() < result.advantage[-1].min()
    assert np.array_equal(run(GROWTH).factorisation, result.factorisation)
    fewer = run(replace(GROWTH, users=GROWTH.users[:2]))
    assert np.array_equal(fewer.item_means, result.item_means[:2])


def test_growth_stops_with_what_is_finished() -> None:
    told: list[tuple[float, GrowthResult | None]] = []

    def tell(share: float, so_far: GrowthResult | None = None) -> None:
        told.append((share, so_far))

    result = run(GROWTH, tell, lambda: len(told) >= 2)
    assert not result.finished
    assert np.isfinite(result.factorisation).sum() == 2
    assert [share for share, _ in told] == pytest.approx([100 / 18_200, 1_100 / 18_200])
    assert result.crossings().size == 0


def test_what_cannot_grow_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        Growth(GROWTH.population, (5, 5), replace(STUDY, epsilons=(1.0, 2.0)), Kind.ITEM_MEAN)
    assert len(refused.value.problems) == 3


def test_too_few_users_to_test_on_are_refused() -> None:
    few = Growth(GeneratedRatings(2, 10, 1.0), (2, 3), replace(STUDY, repeats=9))
    with pytest.raises(InvalidInput, match="Nothing is left to train on or to test"):
        run(few)
