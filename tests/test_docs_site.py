"""The site that `make docs` builds: whole, without a warning, and without a request to another computer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.html")}
    assert pages >= {
        path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "docs").glob("*.md")
    }
    assert "mean_bound" in (tmp_path / "docs" / "api.html").read_text(encoding="utf-8")
    for page in pages:
        html = (tmp_path / f"{page}.html").read_text(encoding="utf-8")
        loads = re.findall(r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["'](.*?)["']""", html)
        assert not [address for address in loads if address.startswith(("http", "//"))], page
