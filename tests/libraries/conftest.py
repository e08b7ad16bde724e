"""The tests of one library, in whose environment this runs; without one, only what needs no library is collected."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.libraries import truth

LIBRARY = os.environ.get("SWEETSPOT_LIBRARY", "")
collect_ignore = [
    f"test_{name}.py"
    for name in ("pipelinedp", "tumult", "opacus", "jaxprivacy", "truth")
    if name != (LIBRARY or "truth")
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the working folder, with the sample events COPIES times over, each time with users of other names."""
    folder = tmp_path_factory.mktemp("copies")
    head, *rows = truth.EVENTS.read_text(encoding="utf-8").splitlines()
    assert head.startswith("user_id,")
    lines = [f"{copy}_{row}" for copy in range(truth.COPIES) for row in rows]
    (folder / truth.EVENTS.name).write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    # For the whole session: Spark finds files from where it was started.
    with contextlib.chdir(folder):
        yield folder
