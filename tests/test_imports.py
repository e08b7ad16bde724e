"""The import rule of the house, read from the source: never upward, and no user interface in the core."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Lower layers first. A module may import from its own layer and from those before it, never from a later one.
# Packages of dpcore (several methods for one question) stand here by their own name.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"version", "wording", "errors", "checks", "progress"}),
    frozenset({"certificate", "privacy", "release", "contributions", "parameters"}),
    frozenset({"dataset", "weights"}),
    frozenset(
        {
            "documents",
            "synthetic",
            "samples",
            "text_bytes",
            "column_names",
            "records",
            "tables",
            "numerals",
            "roles",
            "upload",
            "upload_counts",
            "upload_reading",
            "upload_words",
            "counting",
            "user_effects",
            "design_matrix",
        }
    )  # data in and what it says
    | {"mean", "mean_private", "mean_simulation"}
    | {
        "amounts",
        "noise_error",
        "total",
        "total_signed",
        "total_strategies",
        "start_parameters",
        "total_parameters",
        "grouped_count",
    }
    | {"quantile", "quantile_base", "quantile_choice", "quantile_several", "quantile_parameters"}
    | {
        "bias",
        "bias_terms",
        "branch",
        "learning_bound",
        "participation",
        "participation_sample",
        "population",
    }
    | {"learning"}
    | {"gap", "multitask", "regression"},
    frozenset({"private", "export", "export_total", "export_quantile", "code"}),
    frozenset({"report"}),
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}

UI_PACKAGES = {"streamlit", "plotly", "altair", "matplotlib", "pages", "app"}
# Slow to import (over half a second each): inside functions only.
HEAVY = ("scipy.stats", "cvxpy", "dp_accounting", "opendp")


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(source: str) -> Iterator[tuple[int, str, bool]]:
    """(relative level, dotted name, at the top of the module) of everything a source file imports.

    ``from a import b`` gives ``a.b``, since b may be a module.
    """
    tree = ast.parse(source)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, id(node) not in inside
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}" if node.module else alias.name
                yield node.level, name, id(node) not in inside


def core_name(path: Path) -> str:
    """The name of a core file in `LAYERS`: its module, or the package it belongs to."""
    return path.relative_to(ROOT / "dpcore").parts[0].removesuffix(".py")


def core_violations(name: str, source: str) -> list[str]:
    """What in a core file breaks the rule, in words."""
    found = []
    for level, imported, at_top in imports(source):
        top, *rest = imported.split(".")
        if level:
            found.append(f"imports {imported} relatively")
        if top in UI_PACKAGES:
            found.append(f"imports {imported}; the core knows no user interface")
        if at_top and any((imported + ".").startswith(heavy + ".") for heavy in HEAVY):
            found.append(f"imports {imported} at its top; it is slow, import it inside a function")
        if top == "dpcore" and rest and rest[0] in LAYER_OF and name in LAYER_OF:
            if LAYER_OF[rest[0]] > LAYER_OF[name]:
                found.append(f"imports {imported} from a higher layer")
        elif top == "dpcore" and name != "__init__":
            found.append(f"imports {imported}, which is in no layer")
    return found


@pytest.mark.parametrize("path", python_files("dpcore"), ids=lambda p: str(p.relative_to(ROOT)))
def test_core_module_keeps_the_rule(path: Path) -> None:
    name = core_name(path)
    if name != "__init__":
        assert name in LAYER_OF, f"put {name} into a layer of LAYERS in {Path(__file__).name}"
    assert core_violations(name, path.read_text(encoding="utf-8")) == []


def test_dp_accounting_is_called_in_one_guarded_place() -> None:
    # Its warnings depend on the processor, and warnings are errors here: `privacy` settles them.
    callers = {
        str(path.relative_to(ROOT))
        for folder in ("dpcore", "pages")
        for path in python_files(folder)
        if any(
            name.split(".")[0] == "dp_accounting" for _, name, _ in imports(path.read_text(encoding="utf-8"))
        )
    }
    assert callers == {"dpcore/privacy.py"}


def test_core_has_no_circles() -> None:
    needs: dict[str, set[str]] = {}
    for path in python_files("dpcore"):
        name = core_name(path)
        wanted = (i.split(".") for _, i, at_top in imports(path.read_text(encoding="utf-8")) if at_top)
        needs.setdefault(name, set()).update(w[1] for w in wanted if w[0] == "dpcore" and len(w) > 1)
    for name in needs:
        needs[name] = {n for n in needs[name] if n in needs and n != name}
    while needs:
        free = {name for name, wanted in needs.items() if not wanted}
        assert free, f"these import each other: {sorted(needs)}"
        needs = {name: wanted - free for name, wanted in needs.items() if name not in free}


@pytest.mark.parametrize("path", python_files("pages/parts"), ids=lambda p: str(p.relative_to(ROOT)))
def test_parts_import_no_page(path: Path) -> None:
    for level, imported, _ in imports(path.read_text(encoding="utf-8")):
        parts = imported.split(".")
        assert level == 0, f"imports {imported} relatively"
        assert parts[0] not in {"app", "tests"}, f"imports {imported}"
        if parts[0] == "pages":
            assert parts[1] in {"parts", "shared"}, f"imports {imported}: a page"


def test_no_page_imports_the_app_or_another_page() -> None:
    for path in python_files("pages"):
        if path.relative_to(ROOT / "pages").parts[0] == "parts":
            continue
        for _, imported, _ in imports(path.read_text(encoding="utf-8")):
            parts = imported.split(".")
            assert parts[0] not in {"app", "tests"}, f"{path} imports {imported}"
            assert parts[0] != "pages" or parts[1] in {"parts", "shared"}, (
                f"{path} imports {imported}: a page"
            )


def test_no_module_directly_in_pages() -> None:
    # Streamlit would take it for its own folder of automatic pages and run it without app.py.
    assert [p.name for p in (ROOT / "pages").glob("*.py")] == []


def test_no_name_stands_in_two_layers() -> None:
    assert sum(len(names) for names in LAYERS) == len(LAYER_OF)


@pytest.mark.parametrize(
    ("name", "source", "word"),
    [
        ("mean", "import streamlit as st", "user interface"),
        ("mean", "def f():\n    import plotly.graph_objects as go", "user interface"),
        ("weights", "from dpcore import mean", "higher layer"),
        ("weights", "import dpcore.mean", "higher layer"),
        ("contributions", "from dpcore.dataset import Dataset", "higher layer"),
        ("mean", "from . import weights", "relatively"),
        ("mean", "from dpcore.unheard_of import x", "no layer"),
        ("mean", "import cvxpy", "slow"),
        ("mean", "from scipy import stats", "slow"),
    ],
)
def test_the_rule_can_fail(name: str, source: str, word: str) -> None:
    (found,) = core_violations(name, source)
    assert word in found


@pytest.mark.parametrize(
    "source",
    ["from dpcore import weights", "def f():\n    import cvxpy", "import numpy as np", "import math"],
)
def test_the_rule_lets_good_imports_pass(source: str) -> None:
    assert core_violations("mean", source) == []


def test_the_core_really_loads_no_user_interface() -> None:
    # The rule above reads text; this asks a fresh interpreter.
    import subprocess

    names = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in python_files("dpcore")
        if p.stem != "__init__"
    ]
    code = f"import sys\nfor n in {names!r}: __import__(n)\nprint(sorted({{'streamlit', 'plotly'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"
