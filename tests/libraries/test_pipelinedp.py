"""PipelineDP's programs, run with PipelineDP; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpcore.code import Quantity, write
from dpcore.code.read_program import read_parameters
from dpcore.code.release_spec import GroupSelection
from dpcore.code.with_selection import GAUSSIAN
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import compute_gaussian_epsilon
from dpcore.common.programs import Program, find_exact_sigma
from dpcore.per_group.selection_rules import SelectionRule, compute_keep_probabilities
from tests.dpcore.code import audit, files, together, unreadable
from tests.dpcore.code.specs import SPEC_BY_NAME, make_spec, run_program
from tests.libraries import audits, errors_of_runs, truth


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("binds", [False, True], ids=["binds nobody", "binds"])
@pytest.mark.parametrize("name", truth.list_programs(Program.PIPELINEDP))
def test_a_program_releases_what_plain_python_releases(name: str, binds: bool) -> None:
    case = truth.make_case(name, binds)
    expected = truth.compute_truth(case)
    for library in (Program.PYTHON, Program.PIPELINEDP):
        choice = truth.run_choice(case, library)
        assert expected.covers(choice), (library, choice - expected.expected, expected.tolerance)


@pytest.mark.usefixtures("folder")
def test_rows_are_counted_in_the_bins_of_the_page() -> None:
    truth.check_bins(Program.PIPELINEDP)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["sum", "count", "mean, cap", "means per group"])
def test_parameters_are_what_the_program_passes(name: str) -> None:
    choice = SPEC_BY_NAME[name]
    passed = run_program(choice, Program.PIPELINEDP)["params"]
    found = read_parameters(write(choice, Program.PIPELINEDP).text, "pipelinedp")["AggregateParams"]
    assert passed.noise_kind.name == found.pop("noise_kind")
    assert [str(metric) for metric in passed.metrics] == found.pop("metrics")
    assert {key: getattr(passed, key) for key in found} == found
    assert found


@pytest.mark.parametrize("noise", NoiseKind)
def test_fifty_runs_have_the_stated_error(noise: NoiseKind, capsys: pytest.CaptureFixture[str]) -> None:
    errors_of_runs.check_stated_error(Program.PIPELINEDP, noise, capsys)


@pytest.mark.parametrize("name", files.NASTY)
def test_a_program_reads_a_file_as_the_app_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for library in (Program.PYTHON, Program.PIPELINEDP):
        files.check_file(files.NASTY[name], library, tmp_path)


@pytest.mark.usefixtures("folder")
def test_one_program_divides_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    several = together.make_several()
    names = run_program(several, Program.PIPELINEDP)
    truth.check_together(several, names["released"], monkeypatch)
    # What the accountant gave to each release: its share, of a mean half of it twice.
    given = [found.mechanism_spec.eps for found in names["accountant"]._mechanisms]
    expected: list[float] = []
    for release in several.releases:
        halves = 2 if release.spec.quantity is Quantity.MEAN else 1
        expected += [
            release.num_parts
            * together.EPSILON
            / several.num_spent_parts
            * (several.num_spent_parts / 2**20)
            / halves
        ] * halves
    assert given == pytest.approx(expected, rel=1e-12)
    assert sum(map(Fraction, given)) <= Fraction(together.EPSILON)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-5)])
def test_gaussian_releases_have_the_noise_of_their_shares(
    epsilon: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its accountant composes losses on a grid: it draws the exact noise, up to the excess that errors count with."""
    asked = replace(together.make_several(NoiseKind.GAUSSIAN), epsilon=epsilon, delta=delta)
    names = run_program(asked, Program.PIPELINEDP)
    drawn = [found.mechanism_spec.noise_standard_deviation for found in names["accountant"]._mechanisms]
    expected: list[float] = []
    for release in asked.releases:
        halves = 2 if release.spec.quantity is Quantity.MEAN else 1
        exact = find_exact_sigma(epsilon, delta) / math.sqrt(release.num_parts / asked.num_spent_parts)
        expected += [exact * math.sqrt(halves)] * halves
    excess = [item / other_entry - 1.0 for item, other_entry in zip(drawn, expected, strict=True)]
    assert -1e-6 < min(excess) <= max(excess) < 5e-4, excess
    # What together they prove, exactly.
    mu = math.sqrt(math.fsum(item**-2.0 for item in drawn))
    assert compute_gaussian_epsilon(1.0 / mu, delta) <= epsilon * (1.0 + 1e-9)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["mean, cap, private counts, Gaussian", "means per group, Gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (3.0, 1e-5), (1e3, 1e-6)])
def test_both_numbers_of_a_gaussian_mean_have_the_exact_noise_of_one_budget(
    name: str, epsilon: float, delta: float
) -> None:
    names = run_program(replace(truth.CHOICES[name], epsilon=epsilon, delta=delta), Program.PIPELINEDP)
    drawn = [found.mechanism_spec.noise_standard_deviation for found in names["accountant"]._mechanisms]
    expected = math.sqrt(2.0) * find_exact_sigma(epsilon, delta)
    assert len(drawn) == 2
    assert all(0.9999 < deviation / expected < 1.0005 for deviation in drawn), (drawn, expected)


SELECTED = {rule.value: rule for rule in SelectionRule if rule.is_private}


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("rule", SELECTED)
def test_groups_are_selected_by_the_rule_of_the_page(
    rule: str, noise: NoiseKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own selector, asked for every number of users; both budgets are those of the page."""
    from pipeline_dp import dp_engine

    monkeypatch.chdir(tmp_path)
    rows = [
        f"u{user},{group}" for user in range(900) for group in ("a", "b'", "c") if group != "c" or user < 4
    ]
    Path("shop_events.csv").write_text("user_id,product\n" + "\n".join(rows) + "\n")
    selectors = []

    def record(*arguments: Any, make: Any = dp_engine._create_partition_selector) -> Any:
        selectors.append(make(*arguments))
        return selectors[-1]

    monkeypatch.setattr(dp_engine, "_create_partition_selector", record)
    delta = 1e-6 if noise is NoiseKind.GAUSSIAN else None
    selection = GroupSelection(rule, 1.0, 1e-6, 5)
    choice = make_spec(Quantity.GROUP_COUNTS, max_groups=3, selection=selection, noise=noise, delta=delta)
    names = run_program(choice, Program.PIPELINEDP)
    drawn = [selectors[-1].probability_of_keep(users) for users in range(500)]
    page = compute_keep_probabilities(SELECTED[rule], 1.0, 1e-6, 3, 499, min_users=5)
    # PyDP rounds the deviation of Gaussian noise up.
    assert page == pytest.approx(drawn, abs=2e-3 if rule == GAUSSIAN else 1e-12)
    assert page[4] == drawn[4] == 0.0 < page[5] < page[-1]
    counts = names["counts"]
    assert counts.keys() == {"a", "b'"}
    assert all(abs(count - 900) < 3.0 * 40.0 for count in counts.values())
    specs = [found.mechanism_spec for found in names["accountant"]._mechanisms]
    assert [spec.eps for spec in specs] == [1.0, 1.0]
    assert sorted(spec.delta for spec in specs) == ([1e-6, 1e-6] if delta else [0.0, 1e-6])


def test_one_program_reads_a_file_as_the_app_does_and_draws_the_noise_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for nasty in files.NASTY.values():
        together.check_file(nasty, Program.PIPELINEDP, tmp_path)
    for noise in NoiseKind:
        together.check_scale(Program.PIPELINEDP, noise, tmp_path)


@contextlib.contextmanager
def silenced(run: audit.Run) -> Iterator[None]:
    """Record what PipelineDP adds noise to, and return a constant; its trees of percentiles are out of reach."""
    from pipeline_dp import dp_computations

    def constant(mechanism: Any, exact: Any) -> float:
        run.inputs.append((mechanism, [float(exact)]))
        return 1e6

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_computations.AdditiveMechanism, "add_noise", constant)
        patch.setattr(dp_computations, "compute_dp_quantiles", lambda *_, **__: [1e6, 1e6])
        yield


def lost(asked: Any, run: audit.Run, other: audit.Run) -> float:
    """What the draws lose of epsilon; of delta with Gaussian noise, whose parameter is its standard deviation."""
    moved = [
        abs(a - b) / at.noise_parameter for (at, [a]), (_, [b]) in zip(run.inputs, other.inputs, strict=True)
    ]
    assert all(map(math.isfinite, moved))
    if asked.noise is NoiseKind.LAPLACE:
        return math.fsum(moved) / float(asked.epsilon)
    return audit.compute_delta(math.hypot(*moved) ** 2 / 2.0, asked.epsilon) / float(asked.delta)


@pytest.mark.parametrize("name", audits.programs(Program.PIPELINEDP))
def test_audit_of_neighbouring_tables(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    audits.check(name, Program.PIPELINEDP, tmp_path, silenced, lost)


def test_files_that_cannot_be_read_end_programs_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for disclosure in unreadable.DISCLOSURES:
        unreadable.check_endings(
            ["count", "mean, cap, private counts", "sums per group"], Program.PIPELINEDP, disclosure
        )
