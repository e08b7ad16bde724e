"""PipelineDP's programs, run with PipelineDP; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcore.code import Library
from tests.dpcore.code import files
from tests.libraries import truth


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("binds", [False, True], ids=["binds nobody", "binds"])
@pytest.mark.parametrize("name", truth.programs(Library.PIPELINEDP))
def test_a_program_releases_what_plain_python_releases(name: str, binds: bool) -> None:
    chosen = truth.case(name, binds)
    expected = truth.of(chosen)
    for library in (Library.PYTHON, Library.PIPELINEDP):
        released = truth.run(chosen, library)
        assert expected.holds(released), (library, released - expected.expected, expected.off)


@pytest.mark.parametrize("name", files.NASTY)
def test_a_program_reads_a_file_as_the_app_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for library in (Library.PYTHON, Library.PIPELINEDP):
        files.check(files.NASTY[name], library, tmp_path)
