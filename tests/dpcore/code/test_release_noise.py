"""The standard error and the interval that programs print, against OpenDP's own account and against draws."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.common.programs import Program
from tests.dpcore.code.specs import SPEC_BY_NAME, run_program


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    sample = Path(__file__).resolve().parents[3] / "sample_data" / "shop_events.csv"
    (empty_folder / "shop_events.csv").write_text(sample.read_text(encoding="utf-8"), encoding="utf-8")
    return empty_folder


@pytest.fixture
def run_for_json(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a program with ``--json``: its names, and what it printed."""
    monkeypatch.setattr(sys, "argv", ["program.py", "--json"])

    def run(name: str, library: Program) -> tuple[dict[str, Any], dict[str, Any]]:
        capsys.readouterr()
        names = run_program(SPEC_BY_NAME[name], library)
        return names, json.loads(capsys.readouterr().out)

    return run


@pytest.mark.long_but("count, Gaussian", "sum", "mean, cap")
@pytest.mark.parametrize(
    "name",
    [
        "mean, cap",
        "mean, cap, Gaussian",
        "count",
        "count, Gaussian",
        "sum",
        "groups",
        "groups, Gaussian",
        "rows per group",
        "sums per group",
    ],
)
def test_the_noise_that_is_printed_is_what_opendp_says_of_its_query(name: str, run_for_json: Any) -> None:
    names, printed = run_for_json(name, Program.OPENDP)
    step = names["RANGE"] / names["STEPS"] if "STEPS" in names else 1.0
    step /= names.get("kept", 1.0)
    # OpenDP adds up a discrete Gaussian for its accuracy: without end where its scale is in steps of 2^-30.
    has_accuracy = "STEPS" not in names or "Gaussian" not in name
    summary = names["query"].summarize(alpha=0.05 if has_accuracy else None)
    scale = float(summary["scale"][0])
    z = np.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + 1) if scale < 1e6 else np.array([])
    laplace = "Laplace" in summary["distribution"][0]
    weights = np.exp(-np.abs(z) / scale) if laplace else np.exp(-((z / scale) ** 2) / 2.0)
    by_sum = scale * math.sqrt(2.0 if laplace else 1.0)
    if z.size:
        by_sum = math.sqrt(float((z * z * weights).sum() / weights.sum()))
    assert printed["noise_standard_error"] == pytest.approx(by_sum * step, rel=1e-6)
    # OpenDP's accuracy is the half-width, of whole noise the next whole number.
    half_width = float(summary["accuracy"][0]) * step if has_accuracy else 1.959964 * by_sum * step
    assert printed["noise_half_width_95"] == pytest.approx(half_width, abs=1.0001, rel=1e-3)


@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
@pytest.mark.parametrize("name", ["mean, cap, private counts", "mean, smooth, private counts"])
def test_the_standard_error_of_a_mean_is_that_of_its_noise(
    name: str, library: Program, run_for_json: Any
) -> None:
    """20,000 draws of both sums: their deviation is within 3 %, and 95 of 100 are within the half-width."""
    names, printed = run_for_json(name, library)
    low, high = names["LOWER"], names["UPPER"]
    sums = (
        list(names["sums"])
        if library is Program.OPENDP
        else [names["total"], (high - low) * names["rows"] - names["total"]]
    )
    truth = low + (high - low) * sums[0] / sum(sums)
    generator = np.random.default_rng(5)
    above, below = np.array(sums)[:, None] + generator.laplace(0.0, names["SENSITIVITY"], (2, 20_000))
    means = low + (high - low) * above / (above + below)
    # The program reads the deviation off its own noisy result.
    own = printed["noise_standard_error"]
    assert own == pytest.approx(float(np.sqrt(np.mean((means - truth) ** 2))), rel=0.12)
    assert 0.93 <= float(np.mean(np.abs(means - truth) <= printed["noise_half_width_95"])) <= 0.99


@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
def test_a_quantile_has_no_interval(library: Program, run_for_json: Any) -> None:
    _, printed = run_for_json("quantile, cap", library)
    assert printed["noise_standard_error"] is None
    assert printed["noise_half_width_95"] is None
    assert len(printed["released"]) == 2
