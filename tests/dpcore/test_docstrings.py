"""Docstrings name only attributes and arguments that exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREES = {
    path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
    for folder in ("dpcore", "pages")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
CLASSES = {
    node.name: node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
}


def list_described(node: ast.AST, heading: str) -> list[str]:
    """Return the names that a section of a docstring describes."""
    docstring = ast.get_docstring(node) or ""
    section = re.search(rf"^{heading}:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    return re.findall(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:", section[1], re.MULTILINE) if section else []


def list_attributes(node: ast.ClassDef) -> Iterator[str]:
    """Return the names that a class or its bases define."""
    for item in ast.walk(node):
        if isinstance(item, ast.FunctionDef):
            yield item.name
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            yield item.id
        elif isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
            yield item.attr
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        if (parent := CLASSES.get(ast.unparse(name).rpartition(".")[2])) is not None and parent is not node:
            yield from list_attributes(parent)


@pytest.mark.parametrize("path", TREES, ids=str)
def test_what_is_described_exists(path: Path) -> None:
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ClassDef):
            assert {*list_described(node, "Attributes")} <= {*list_attributes(node)}, node.name
        elif isinstance(node, ast.FunctionDef):
            arguments = node.args
            names = [
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ]
            assert {*list_described(node, "Args")} <= {name.arg for name in names if name is not None}, (
                node.name
            )
