"""The programs for JAX Privacy; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.examples_per_user.parameters import Sampling
from tests.dpcore.code import audit
from tests.libraries import digits

WAYS = (Sampling.EXAMPLES, Sampling.USERS)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("sampling", WAYS)
def test_one_epoch_has_no_user_above_the_bound_and_our_noise_multiplier(
    sampling: Sampling, tmp_path: Path
) -> None:
    digits.check_epoch("JAX Privacy", sampling, tmp_path)


@pytest.mark.parametrize("sampling", WAYS)
def test_noise_has_the_size_that_was_accounted(sampling: Sampling, tmp_path: Path) -> None:
    digits.check_noise("JAX Privacy", sampling, tmp_path, lambda space: space["parameters"]["w"])


@pytest.mark.parametrize("sampling", WAYS)
def test_nasty_files_and_empty_steps(sampling: Sampling, tmp_path: Path) -> None:
    digits.check_nasty("JAX Privacy", sampling, tmp_path)


@contextlib.contextmanager
def silenced(run: audit.Run) -> Iterator[None]:
    """Let a step record its sum of clipped gradients, and move by nothing; where nobody is drawn the sum is 0."""
    import jax
    from jax_privacy import clipping

    clipped_grad, default_rng = clipping.clipped_grad, np.random.default_rng

    class Gradient:
        def __init__(self, *values: Any, **options: Any) -> None:
            self._gradient = clipped_grad(*values, **options)
            self.sensitivity = self._gradient.sensitivity

        def __call__(self, *values: Any) -> Any:
            total = self._gradient(*values)
            run.inputs[-2:] = [(None, np.asarray(total[name]).ravel().tolist()) for name in values[0]]
            return jax.tree.map(jax.numpy.zeros_like, total)

    def constant(_: Any, shape: tuple[int, ...]) -> Any:
        run.inputs.append((None, [0.0] * math.prod(shape)))
        return jax.numpy.zeros(shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clipping, "clipped_grad", Gradient)
        patch.setattr(jax.random, "normal", constant)
        patch.setattr(np.random, "default_rng", lambda *_: default_rng(0))
        yield


@pytest.mark.parametrize("sampling", WAYS)
def test_audit_of_neighbouring_tables(sampling: Sampling, tmp_path: Path) -> None:
    digits.check_neighbours("JAX Privacy", sampling, tmp_path, silenced)
