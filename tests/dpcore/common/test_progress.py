"""How far a search has come, from its gap."""

import math

import pytest

from dpcore.common.progress import measure_progress


def test_half_of_the_digits_are_half_of_the_way() -> None:
    assert measure_progress(1e-4, 1e-8) == pytest.approx(0.5)
    assert measure_progress(1e-6, 1e-8) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("gap", "tolerance", "share"),
    [(1e-8, 1e-8, 1.0), (0.0, 1e-8, 1.0), (-1e-12, 1e-8, 1.0), (1.0, 1e-8, 0.0), (7.0, 1e-8, 0.0),
     (math.inf, 1e-8, 0.0), (0.5, 1.0, 1.0), (1.5, 1.0, 0.0)],
)  # fmt: skip
def test_the_ends(gap: float, tolerance: float, share: float) -> None:
    assert measure_progress(gap, tolerance) == share
