"""Tumult's programs, run on Spark; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcore.code import Library
from tests.dpcore.code import files
from tests.libraries import truth


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
@pytest.mark.parametrize("name", truth.programs(Library.TUMULT))
def test_a_program_releases_what_plain_python_releases(name: str, binds: bool) -> None:
    chosen = truth.case(name, binds)
    expected = truth.of(chosen)
    for library in (Library.PYTHON, Library.TUMULT):
        released = truth.run(chosen, library)
        assert expected.holds(released), (library, released - expected.expected, expected.off)


@pytest.mark.parametrize("name", files.NASTY)
def test_a_program_reads_a_file_as_the_app_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for library in (Library.PYTHON, Library.TUMULT):
        files.check(files.NASTY[name], library, tmp_path)
