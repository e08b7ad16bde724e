"""What tests and benchmarks take from our modules is there: no type checker reads them, and some run seldom."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
INVENTED_NAMES = {"no_such_question"}


def find_module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def list_missing_names(code: str) -> list[str]:
    """List attributes that a script reads of modules it has imported, and that these do not have."""
    nodes = list(ast.walk(ast.parse(code)))
    modules_by_name = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("dpcore", "pages"):
            package = importlib.import_module(node.module)
            for alias in node.names:
                imported_object = getattr(package, alias.name, None) or find_module(
                    f"{node.module}.{alias.name}"
                )
                if isinstance(imported_object, ModuleType):
                    modules_by_name[alias.asname or alias.name] = imported_object
        elif isinstance(node, ast.Import):
            aliases = [a for a in node.names if a.asname and a.name.partition(".")[0] in ("dpcore", "pages")]
            modules_by_name |= {a.asname: importlib.import_module(a.name) for a in aliases}
    # A variable of the same name hides the module.
    local_names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    local_names |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return [
        f"{node.value.id}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules_by_name.keys() - local_names
        and node.attr not in INVENTED_NAMES
        and not hasattr(modules_by_name[node.value.id], node.attr)
    ]


def test_a_renamed_function_is_missed():
    code = "from dpcore import mean\nimport dpcore as ss\nmean.find_best_cap(mean.best_cap, ss.mean_bound)"
    assert list_missing_names(code) == ["mean.best_cap"]


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_tests_and_benchmarks_take_what_modules_have(folder):
    missing_by_path = {
        str(path.relative_to(ROOT)): list_missing_names(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "toy" not in path.parts
    }
    assert {path: names for path, names in missing_by_path.items() if names} == {}
