"""The error on the card, against releases drawn by the generated program: a few cells of `benchmarks/programs.py`.

OpenDP's noise takes no seed. Where nothing is wrong, a cell lies beyond 5 standard errors, about 9 % here, with
probability below 1e-6.
"""

from __future__ import annotations

import pytest

from benchmarks import programs

CELLS = [
    ("rows", "python", "Gaussian", "support tickets", 0.1),
    ("rows", "opendp", "Gaussian", "few users", 3.0),
    ("sum", "python", "Gaussian", "one heavy user", 3.0),
    ("sum", "opendp", "Laplace", "one heavy user", 3.0),
]


@pytest.mark.long_but("sum-python-Gaussian-one heavy user-3.0")
@pytest.mark.parametrize(("kind", "library", "noise", "table", "epsilon"), CELLS)
def test_the_stated_error_is_that_of_the_programs_releases(
    kind: str, library: str, noise: str, table: str, epsilon: float
) -> None:
    with programs.write_tables() as files:
        file, rows = files[table]
        reply = programs.ask_call(
            programs.RELEASE_KINDS[kind], file, epsilon, noise, library, disclosure="public"
        )
        result = programs.measure_cell(kind, rows, reply, library, num_samples=60, num_draws=50)
    assert abs(result.z) <= 5.0
    assert result.scale_ratio == (None if library == "python" else pytest.approx(1.0, rel=1e-5))
