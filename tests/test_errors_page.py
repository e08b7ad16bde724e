"""docs/errors.md lists every message about data, with what to do; placeholders are written as dots."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_ABOUT_FILES = (
    "samples.py",
    "task_facets.py",
    "totals_per_user.py",
)  # arguments of generators, and arrays
PATHS = [path for room in ("counting", "data") for path in sorted((ROOT / "dpcore" / room).glob("*.py"))]


def write_text(node: ast.expr | None, names: Mapping[str, ast.expr]) -> str:
    """Return a text as the code writes it, with dots for what is not known before it runs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(write_text(part, names) for part in node.values)
    if isinstance(node, ast.BinOp):
        return write_text(node.left, names) + write_text(node.right, names)
    if isinstance(node, ast.Name) and node.id in names:
        return write_text(names[node.id], {})
    return "…"


def list_names(nodes: Iterator[ast.AST]) -> dict[str, ast.expr]:
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    return {
        target.id: node.value
        for node in assignments
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def list_messages(paths: list[Path]) -> set[tuple[str, str, str]]:
    """Return file, message and remedy of every problem that is written in the code."""
    trees = {path.name: ast.parse(path.read_text("utf-8")) for path in paths}
    constants = {name: node for tree in trees.values() for name, node in list_names(iter(tree.body)).items()}
    messages = set()
    for file_name, tree in trees.items():
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args]
            for call in calls:
                called = ast.unparse(call.func)
                if called not in ("refuse", "InputProblem") and not re.fullmatch(r"\w*problems\.add", called):
                    continue
                earlier = (node for node in ast.walk(function) if getattr(node, "lineno", 0) <= call.lineno)
                names = constants | list_names(earlier)
                remedies = [*call.args[2:3], *(each.value for each in call.keywords if each.arg == "remedy")]
                remedy = write_text(remedies[0], names) if remedies else ""
                messages.add((file_name, re.sub("…+", "…", write_text(call.args[0], names)), remedy))
    return {entry for entry in messages if re.search("[a-z]{3}", entry[1])}


def test_every_message_stands_on_the_page() -> None:
    page = " ".join((ROOT / "docs/errors.md").read_text("utf-8").replace("\\|", "|").split())
    messages = list_messages([path for path in PATHS if path.name not in NOT_ABOUT_FILES])
    assert len(messages) > 100
    assert [message for _, message, _ in sorted(messages) if " ".join(message.split()) not in page] == []


def test_the_messages_of_starting_are_those_of_the_code() -> None:
    page = (ROOT / "docs/errors.md").read_text("utf-8")
    section = page.partition("## Installing and starting\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
    messages = [message for row in rows[1:] for message in row.split("<br>")]
    assert len(messages) > 10
    files = [*(ROOT / "dpcore/cli").glob("*.py"), ROOT / "dpcore/common/extras.py"]
    trees = [ast.parse(path.read_text("utf-8")) for path in (*files, ROOT / "pages/shared/server/access.py")]
    texts = {write_text(node, {}) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr)}
    known = "\n".join([*texts, (ROOT / "Makefile").read_text("utf-8")])
    assert [message for message in messages if message not in known] == []
