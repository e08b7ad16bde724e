"""Docstrings name only attributes and arguments that exist."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def parse_files() -> dict[Path, ast.Module]:
    """Return the syntax of every file: not at import, as every worker imports every test."""
    return {
        path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("dpcore", "pages")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@functools.cache
def find_classes() -> dict[str, ast.ClassDef]:
    """Return all classes by name."""
    return {
        node.name: node
        for tree in parse_files().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def list_described(node: ast.AST, heading: str) -> list[str]:
    """Return the names that a section of a docstring describes."""
    docstring = ast.get_docstring(node) or ""
    section = re.search(rf"^{heading}:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    return re.findall(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:", section[1], re.MULTILINE) if section else []


@functools.cache
def list_attributes(node: ast.ClassDef) -> frozenset[str]:
    """Return the names that a class or its bases define."""
    names = set()
    for item in ast.walk(node):
        if isinstance(item, ast.FunctionDef):
            names.add(item.name)
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            names.add(item.id)
        elif isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
            names.add(item.attr)
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        if (
            parent := find_classes().get(ast.unparse(name).rpartition(".")[2])
        ) is not None and parent is not node:
            names |= list_attributes(parent)
    return frozenset(names)


def list_unknown_names(node: ast.AST) -> set[str]:
    """Return the names that a docstring describes, and that its class or function does not have."""
    if isinstance(node, ast.ClassDef):
        described = {*list_described(node, "Attributes")}
        return described - list_attributes(node) if described else set()
    if not isinstance(node, ast.FunctionDef):
        return set()
    arguments = node.args
    names = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {*list_described(node, "Args")} - {name.arg for name in names if name is not None}


@pytest.mark.long
def test_what_is_described_exists() -> None:
    problems = [
        f"{path}: {node.name} describes {name}"  # type: ignore[attr-defined]
        for path, tree in parse_files().items()
        for node in ast.walk(tree)
        for name in list_unknown_names(node)
    ]
    assert problems == []


def test_a_name_that_does_not_exist_is_found() -> None:
    text = 'def f(a):\n    """Do it.\n\n    Args:\n        a: One.\n        b: Another.\n    """'
    assert list_unknown_names(ast.parse(text).body[0]) == {"b"}
