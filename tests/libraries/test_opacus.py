"""The programs for Opacus; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpcore.examples_per_user import Sampling
from tests.libraries import digits

WAYS = (Sampling.EXAMPLES, Sampling.USERS)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_one_epoch_has_no_user_above_the_bound_and_our_noise_multiplier(
    way: Sampling, tmp_path: Path
) -> None:
    digits.check_epoch("Opacus", way, tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_noise_has_the_size_that_was_accounted(way: Sampling, tmp_path: Path) -> None:
    digits.check_noise("Opacus", way, tmp_path, moved)


def moved(space: dict[str, Any]) -> Any:
    """How far the one step moved the weights: it leaves its gradient behind, which is divided already."""
    return space["model"]._module.weight.grad.detach().numpy()


@pytest.mark.parametrize("way", WAYS)
def test_nasty_files_and_empty_steps(way: Sampling, tmp_path: Path) -> None:
    digits.check_nasty("Opacus", way, tmp_path)
