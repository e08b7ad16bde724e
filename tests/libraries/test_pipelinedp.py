"""PipelineDP's programs, run with PipelineDP; `make test-libraries` calls it in an environment of its own."""

from __future__ import annotations

import pytest

from dpcore.code import Library
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
