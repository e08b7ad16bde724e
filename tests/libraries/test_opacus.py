"""The programs for Opacus; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

import contextlib
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
    digits.check_epoch("Opacus", sampling, tmp_path)


@pytest.mark.parametrize("sampling", WAYS)
def test_noise_has_the_size_that_was_accounted(sampling: Sampling, tmp_path: Path) -> None:
    digits.check_noise("Opacus", sampling, tmp_path, moved)


def moved(space: dict[str, Any]) -> Any:
    """How far the one step moved the weights: it leaves its gradient behind, which is divided already."""
    return space["model"]._module.weight.grad.detach().numpy()


@pytest.mark.parametrize("sampling", WAYS)
def test_nasty_files_and_empty_steps(sampling: Sampling, tmp_path: Path) -> None:
    digits.check_nasty("Opacus", sampling, tmp_path)


@contextlib.contextmanager
def silenced(run: audit.Run) -> Iterator[None]:
    """Let a step record its sum of clipped gradients, and move by nothing."""
    import torch
    from opacus.optimizers import DPOptimizer, optimizer

    add_noise, default_rng = DPOptimizer.add_noise, np.random.default_rng

    def constant(step: Any) -> None:
        for parameter in step.params:
            run.inputs.append((None, parameter.summed_grad.flatten().tolist()))
            parameter.summed_grad.zero_()
        add_noise(step)

    torch.manual_seed(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DPOptimizer, "add_noise", constant)
        patch.setattr(optimizer, "_generate_noise", lambda *_, reference, **__: torch.zeros_like(reference))
        patch.setattr(np.random, "default_rng", lambda *_: default_rng(0))
        yield


@pytest.mark.parametrize("sampling", WAYS)
def test_audit_of_neighbouring_tables(sampling: Sampling, tmp_path: Path) -> None:
    digits.check_neighbours("Opacus", sampling, tmp_path, silenced)
