"""Tumult's programs, run on Spark; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpcore.code import Quantity, write
from dpcore.code.read_program import read_parameters
from dpcore.code.release_spec import GroupSelection
from dpcore.code.with_selection import LAPLACE
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.per_group.selection_rules import SelectionRule, compute_keep_probabilities, find_whole_threshold
from tests.dpcore.code import audit, files, together, unreadable
from tests.dpcore.code.specs import SPEC_BY_NAME, make_spec, run_program
from tests.libraries import audits, errors_of_runs, truth


@pytest.fixture(scope="module", autouse=True)
def spark(folder: Path) -> Iterator[None]:
    """The session that the programs find. By default Spark cuts every query into 200 tasks, for 400 users."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield
    session.stop()


@pytest.mark.parametrize("binds", [False, True], ids=["binds nobody", "binds"])
@pytest.mark.parametrize("name", truth.list_programs(Program.TUMULT))
def test_a_program_releases_what_plain_python_releases(name: str, binds: bool) -> None:
    case = truth.make_case(name, binds)
    expected = truth.compute_truth(case)
    for library in (Program.PYTHON, Program.TUMULT):
        choice = truth.run_choice(case, library)
        assert expected.covers(choice), (library, choice - expected.expected, expected.tolerance)


@pytest.mark.usefixtures("folder")
def test_rows_are_counted_in_the_bins_of_the_page() -> None:
    truth.check_bins(Program.TUMULT)


@pytest.mark.parametrize("noise", NoiseKind)
def test_fifty_runs_have_the_stated_error(noise: NoiseKind, capsys: pytest.CaptureFixture[str]) -> None:
    errors_of_runs.check_stated_error(Program.TUMULT, noise, capsys)


def test_groups_are_selected_by_the_rule_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism that Tumult builds has the page's threshold and scale; a table without groups ends alike."""
    from tmlt.core.measurements import spark_measurements
    from tmlt.core.utils.distributions import double_sided_geometric_cmf_exact

    used = []
    measurement = spark_measurements.GeometricPartitionSelection

    def record(self: Any, val: Any, call: Any = measurement.call) -> Any:
        used.append((self.threshold, float(self.alpha.to_float(round_up=True))))
        return call(self, val)

    monkeypatch.setattr(measurement, "call", record)
    path = tmp_path / "selected.csv"
    choice = make_spec(Quantity.GROUP_ROWS, max_groups=3, max_rows=2, file=str(path), epsilon=3.0)
    choice = replace(choice, selection=GroupSelection(LAPLACE, 3.0, 1e-6), disclosure=Disclosure.PRIVATE)
    rows = [
        f"u{user},{group}" for user in range(120) for group in ("a", "b'", "c") if group != "c" or user < 2
    ]
    for content, kept in ((rows, {"a", "b'"}), ([], set())):
        path.write_text("\n".join(["user_id,product", *content, ""]))
        totals = run_program(choice, Program.TUMULT)["totals"]
        assert totals.keys() == kept
        # Noise of scale 2: it is off by 40 with probability e^-20.
        assert all(abs(total - 120) < 40 for total in totals.values())
    assert used[0] == (find_whole_threshold(3.0, 1e-6, 3), pytest.approx(1.0))
    page = compute_keep_probabilities(SelectionRule.LAPLACE, 3.0, 1e-6, 3, 120, program=Program.TUMULT)
    tails = [
        1.0 - float(double_sided_geometric_cmf_exact(used[0][0] - users - 1, 1).to_float(True))
        for users in range(121)
    ]
    assert page[1:] == pytest.approx(tails[1:], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", files.NASTY)
def test_a_program_reads_a_file_as_the_app_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for library in (Program.PYTHON, Program.TUMULT):
        files.check_file(files.NASTY[name], library, tmp_path)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("noise", NoiseKind)
def test_one_program_divides_one_budget(noise: NoiseKind, monkeypatch: pytest.MonkeyPatch) -> None:
    from tmlt.analytics import Session

    scales: list[float] = []
    evaluate = Session.evaluate

    def recorded(session: Any, query: Any, budget: Any) -> Any:
        (found,) = session._noise_info(query, budget)
        scales.append(float(found["noise_parameter"]))
        return evaluate(session, query, budget)

    monkeypatch.setattr(Session, "evaluate", recorded)
    several = together.make_several(noise, quantile=True)
    names = run_program(several, Program.TUMULT)
    truth.check_together(several, names["released"], monkeypatch)
    expected: list[float] = []
    for release in several.releases:
        amount = release.num_parts / 2**20 * several.compute_total_budget(Program.TUMULT)
        if release.spec.quantity is Quantity.MEAN:
            half_range = 0.5 * ((release.spec.upper or 0.0) - (release.spec.lower or 0.0))
            rows = float(release.spec.max_rows or 0)
            expected += [scale(rows * half_range, amount / 2.0, noise), scale(rows, amount / 2.0, noise)]
        elif release.spec.quantity is Quantity.QUANTILE:
            # What it states is the epsilon of one row; by bounded range rho is epsilon^2 / 8.
            epsilon = amount if noise is NoiseKind.LAPLACE else math.sqrt(8.0 * amount)
            expected.append(epsilon / (release.spec.max_rows or 0))
        else:
            expected.append(scale(together.compute_move(release, noise), amount, noise))
    assert scales == pytest.approx(expected, rel=1e-6)


def scale(sensitivity: float, amount: float, noise: NoiseKind) -> float:
    """What Tumult calls the parameter of its noise: b, or sigma squared."""
    return sensitivity / amount if noise is NoiseKind.LAPLACE else sensitivity**2 / (2.0 * amount)


def test_one_program_reads_a_file_as_the_app_does_and_draws_the_noise_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for nasty in files.NASTY.values():
        together.check_file(nasty, Program.TUMULT, tmp_path)
    together.check_scale(Program.TUMULT, NoiseKind.LAPLACE, tmp_path)


@contextlib.contextmanager
def silenced(run: audit.Run) -> Iterator[None]:
    """Let every query of a session be answered as usual, and put a constant in the place of each number."""
    from pyspark.sql import functions
    from pyspark.sql.types import NumericType
    from tmlt.analytics import Session

    evaluate = Session.evaluate

    def constant(session: Any, query: Any, budget: Any) -> Any:
        answer = evaluate(session, query, budget)
        answer.count()  # it is drawn here
        run.inputs.append((None, [0.0] * answer.count()))
        for field in answer.schema.fields:
            if isinstance(field.dataType, NumericType):
                answer = answer.withColumn(field.name, functions.lit(1_000_000).cast(field.dataType))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "evaluate", constant)
        yield


@pytest.mark.parametrize("name", ["count", "count, Gaussian", "groups", "rows per group"])
def test_parameters_have_the_names_of_the_library(name: str) -> None:
    import tmlt.analytics

    choice = SPEC_BY_NAME[name]
    found = read_parameters(write(choice, Program.TUMULT).text, "tumult")
    queries = {key: found.pop(key) for key in [*found] if not hasattr(tmlt.analytics, key)}
    objects = {key: getattr(tmlt.analytics, key)(**arguments) for key, arguments in found.items()}
    assert len(objects) == (2 if choice.max_groups is None else 3)
    assert set(queries) == {"count"}
    for key, bound in {"MaxRowsPerID": choice.max_rows, "MaxGroupsPerID": choice.max_groups}.items():
        assert key not in objects or objects[key].max == bound


AUDITED = ("groups", "sum", "mean, cap, private counts", audits.SEVERAL)
"""One of each way to hand rows to a session: a run takes seconds."""


@pytest.mark.parametrize("name", AUDITED)
def test_audit_of_neighbouring_tables(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # What Tumult adds noise to is out of reach: its session bounds it.
    audits.check(name, Program.TUMULT, tmp_path, silenced, lambda *_: 0.0, audit.FEWEST)


def test_files_that_cannot_be_read_end_programs_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for disclosure in unreadable.DISCLOSURES:
        unreadable.check_endings(
            ["count", "mean, cap, private counts", "sums per group"], Program.TUMULT, disclosure
        )
