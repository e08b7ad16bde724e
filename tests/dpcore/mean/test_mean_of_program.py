"""A mean under the noise of a program: releases by the program's own mechanism err as the card says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.code import write
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.reply import Reply
from tests.dpcore.code import audit
from tests.dpcore.code.specs import run_program

EVENTS = Path(__file__).resolve().parents[3] / "sample_data" / "shop_events.csv"
SHOP = samples.load("shop-events")
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
TRUNCATIONS, DRAWS = 400, 10


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sample_data").mkdir()
    (tmp_path / "sample_data" / "shop_events.csv").write_bytes(EVENTS.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(program: str, **settings: Any) -> Reply:
    defaults = {"epsilon": 1.0, "lower": 0, "upper": 100, "counts": "private"}
    return ss.mean_bound(SHOP, program=program, **{**defaults, **settings})


@pytest.mark.long
@pytest.mark.parametrize("program", [Program.PYTHON, Program.OPENDP])
@pytest.mark.parametrize("noise", [{}, GAUSSIAN])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_releases_err_as_the_card_says(
    folder: Path, program: Program, noise: dict[str, Any], epsilon: float
) -> None:
    """4,000 draws of the program's own mechanism over 400 truncations; 4 standard errors fail in 1 of 15,000."""
    reply = ask(program.value, epsilon=epsilon, **noise)
    observed = audit.Run()
    with audit.silenced(observed):
        names = run_program(reply.answer.code.forms[0][1], program)
    ((mechanism, _),) = [(at, exact) for at, exact in observed.inputs if len(exact) == 2]
    assert names["MAX_ROWS"] == reply.bound
    amounts = pd.read_csv(EVENTS)[["user_id", "amount"]]
    truth, squares = float(amounts["amount"].mean()), []
    values, users = amounts["amount"].clip(0.0, 100.0).to_numpy(), pd.factorize(amounts["user_id"])[0]
    generator = np.random.default_rng(4)
    for _ in range(TRUNCATIONS):
        # The first rows of each user after a shuffle.
        order = np.lexsort((generator.random(values.size), users))
        starts = np.r_[0, np.flatnonzero(np.diff(users[order])) + 1]
        place = np.arange(values.size) - np.repeat(starts, np.diff(np.r_[starts, values.size]))
        kept = values[order][place < reply.bound]
        sums = [float(kept.sum()), float((100.0 - kept).sum())]
        noisy = np.array([mechanism(sums) for _ in range(DRAWS)])
        rows = np.maximum(noisy.sum(axis=1) / 100.0, 1.0)
        means = np.clip(50.0 + (noisy[:, 0] - noisy[:, 1]) / 2.0 / rows, 0.0, 100.0)
        squares.append(float(np.mean((means - truth) ** 2)))
    standard_error = float(np.std(squares, ddof=1)) / math.sqrt(TRUNCATIONS)
    assert abs(np.mean(squares) - reply.error**2) <= 4.0 * standard_error
    assert standard_error < 0.04 * reply.error**2


def test_page_call_and_program_of_a_mean_with_private_counts_agree(folder: Path) -> None:
    """The pair has one budget in OpenDP's program: half of the variance that the context's split would have."""
    pair, split = (ask(program, variance_source="worst", likeness="none") for program in ("OpenDP", "Tumult"))
    assert pair.code() == write(pair.answer.code.forms[0][1], Program.OPENDP).text
    assert "RhoZCDP" not in split.code()
    assert pair.error < split.error < math.sqrt(2.0) * pair.error
    document = json.loads(pair.answer.write_json())
    assert document["question"]["program"] == "OpenDP"
    assert document["question"]["mechanism"].startswith("Laplace, on the pair")


def test_everything_follows_the_noise() -> None:
    laplace, gaussian = ask("Tumult"), ask("Tumult", **GAUSSIAN)
    assert "RhoZCDPBudget(RHO / 2)" in gaussian.code()
    assert "PureDPBudget(0.5)" in laplace.code()
    assert "δ = 0.000001" in gaussian.answer.methods.text
    assert "zero-concentrated" in gaussian.answer.methods.text
    assert any("Gaussian noise of standard deviation" in sentence for sentence in gaussian.answer.assumptions)
    assert any(
        "hash" in difference or "same rows" in difference for difference in gaussian.answer.assumptions
    )
    document = json.loads(gaussian.answer.write_json())
    assert document["question"]["mechanism"].startswith("Gaussian, on the sums")
    assert document["answer"]["cap"]["gaussian_deviation"] > 0.0
    # Half of rho each costs nothing with Gaussian noise.
    assert gaussian.error == ask("OpenDP", **GAUSSIAN).error
    assert ask("BigQuery", **GAUSSIAN).error == ask("BigQuery").error > laplace.error
