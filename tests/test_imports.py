"""The import rule of the house, read from the source: rooms, questions, circles, and no user interface in the core."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

SHARED = {
    "dpcore": {"common", "data", "counting", "code", "answer", "report", "cli", "contributions", "dataset"},
    "pages": {"shared"},
}
"""Rooms that know no question. Every other folder of `dpcore` and `pages` is a question."""
ORDER = ("common", "data", "counting", "code", "answer", "report", "cli")
"""Shared rooms of the core: one may import those before it. `contributions` and `dataset` stand beside `common`."""
ROOMS = (
    "base", "speed", "figure", "server", "fields", "data", "figures", "card", "session", "screen", "shell",
    "report", "render"
)  # fmt: skip
"""Rooms of `pages/shared`; one may import those before it."""
INTERNALS = ROOT / "pages/shared/streamlit_internals.py"
"""What is private in Streamlit; every room may import it."""
BUILT_ON = {
    "factorisation": {"multitask": "each item is a task there: its weights, budget, counts and algorithms"},
    "gap_examples": {
        "mean": "it compares the two answers of that question",
        "regression": "its examples of linear regression are solved by that question's method",
    },
    "private_choice": {
        "mean": "it chooses the bound of a mean",
        "total": "it chooses the bound of a sum",
        "per_group": "it chooses the pair of bounds of a release per group",
        "quantile": "it chooses the bound of a quantile",
        "learning": "it chooses the bound of a learner",
    },
    "plan": {
        "mean": "a mean is one of its lines",
        "total": "so are sums and counts",
        "per_group": "so are counts and sums per group",
        "quantile": "so are quantiles",
    },
    "papers": {
        "regression": "it collects the figures that questions make of their paper",
        "training": "likewise",
        "total": "likewise",
        "learning": "likewise",
        "data_owners": "likewise",
        "multitask": "likewise",
        "factorisation": "likewise",
    },
    "start": {"total": "the first trade-off is that of a count of rows"},
}
"""The questions that a question may import, and why."""

UI_PACKAGES = {"streamlit", "plotly", "altair", "matplotlib", "pages", "app"}
RENDERERS = (
    "dpcore.report.charts",
    "dpcore.report.labels",
    "dpcore.report.plotly_figures",
    "dpcore.report.plotly_script",
    "dpcore.report.report_html",
)
"""What makes pictures of plots: the one place of the core that knows Plotly, which nothing else of it imports."""
# Slow to import (over half a second each): inside functions only.
HEAVY = ("scipy.stats", "cvxpy", "dp_accounting", "opendp")

MODULE = re.compile(r"(?<![\w`/.])(?:dpcore|pages)(?:\.[a-z_]+)+(?![\w`])")


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@functools.cache
def questions() -> set[str]:
    """Names of all questions: folders in the core or in the pages that are no shared room."""
    return {
        path.name
        for folder, shared in SHARED.items()
        for path in (ROOT / folder).iterdir()
        if path.is_dir() and path.name not in shared and path.name != "__pycache__"
    }


@functools.cache
def parsed(source: str) -> ast.Module:
    """A source file's syntax: every test here reads the same files."""
    return ast.parse(source)


HOLDS_STATEMENTS = ast.stmt | ast.excepthandler | ast.match_case


@functools.cache
def imports(source: str) -> tuple[tuple[int, str, bool], ...]:
    """(relative level, dotted name, at the top of the module) of everything a source file imports.

    Imports inside functions and under TYPE_CHECKING count, too. ``from a import b`` gives ``a.b``, since b may be a
    module.
    """
    names: list[tuple[int, str, bool]] = []
    waiting: list[tuple[ast.AST, bool]] = [(parsed(source), True)]
    for node, at_top in waiting:
        if isinstance(node, ast.Import):
            names += [(0, alias.name, at_top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            begins = f"{node.module}." if node.module else ""
            names += [(node.level, begins + alias.name, at_top) for alias in node.names]
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        # Not the expressions, which are nine tenths of all nodes and import nothing.
        children = [c for c in ast.iter_child_nodes(node) if isinstance(c, HOLDS_STATEMENTS)]
        waiting += [(child, at_top and not inside) for child in children]
    return tuple(names)


def named_modules(source: str) -> Iterator[str]:
    """Dotted names of our modules in strings, as `importlib` and look-ups take them."""
    if not any(
        MODULE.search(line)
        for line in source.splitlines()
        if not line.lstrip().startswith(("from ", "import "))
    ):
        return  # To walk through every node of every file took 5 of the 8 seconds of these tests.
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from MODULE.findall(node.value)


def room(dotted: str) -> str:
    """The folder of the core or of the pages that a dotted name of ours lies in."""
    return dotted.split(".")[1]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def breaches(module: str, source: str) -> list[str]:
    """What a file imports against the rule, one entry per imported name."""
    here = room(module)
    shared = here in SHARED[module.split(".")[0]]
    sentences = []
    named = list(named_modules(source)) if shared else []
    for name in [*(name for _, name, _ in imports(source)), *named]:
        top, *rest = name.split(".")
        if top not in SHARED or not rest or rest[0] not in questions():
            continue
        if shared:
            sentences.append(f"{module} is a shared room and imports {name}")
        elif rest[0] != here and rest[0] not in BUILT_ON.get(here, ()):
            sentences.append(f"{module} imports {name}, another question")
    return sentences


def test_shared_rooms_know_no_question_and_questions_do_not_know_each_other() -> None:
    sentences = [
        breach
        for folder in SHARED
        for path in python_files(folder)
        if len(path.relative_to(ROOT / folder).parts) > 1
        for breach in breaches(module_name(path), path.read_text(encoding="utf-8"))
    ]
    assert sentences == []


def core_violations(module: str, source: str) -> list[str]:
    """What a file of the core imports against the rules that have no exception."""
    sentences = []
    for level, imported, at_top in imports(source):
        top, *rest = imported.split(".")
        if level:
            sentences.append(f"imports {imported} relatively")
        if top in UI_PACKAGES and not (module in RENDERERS and top == "plotly"):
            sentences.append(f"imports {imported}; the core knows no user interface")
        if at_top and any((imported + ".").startswith(heavy + ".") for heavy in HEAVY):
            sentences.append(f"imports {imported} at its top; it is slow, import it inside a function")
        if top == "dpcore" and module in ORDER and rest and rest[0] in ORDER[ORDER.index(module) + 1 :]:
            sentences.append(f"imports {imported} from a later room")
    return sentences


def test_core_modules_keep_the_rule() -> None:
    sentences = [
        f"{path.relative_to(ROOT)} {core_violation}"
        for path in python_files("dpcore")
        for core_violation in core_violations(
            module_name(path)
            if module_name(path) in RENDERERS
            else path.relative_to(ROOT / "dpcore").parts[0].removesuffix(".py"),
            path.read_text(encoding="utf-8"),
        )
    ]
    assert sentences == []


def test_the_core_needs_no_library_but_those_of_its_list() -> None:
    names = ("requirements-core.txt", "requirements.txt")
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)
    named = {name.replace("-", "_") for name in re.findall(r"^([a-z][a-z0-9-]*)", text, flags=re.MULTILINE)}
    called = {"markdown_it_py": "markdown_it", "ibis_framework": "ibis"}
    brought = {"pyarrow", "markupsafe"}  # by ibis-framework[duckdb], and by Jinja2
    listed = {called.get(name, name) for name in named - {"streamlit"}} | brought
    for path in python_files("dpcore"):
        used = {name.split(".")[0] for _, name, _ in imports(path.read_text(encoding="utf-8"))}
        ours = {"dpcore", *sys.stdlib_module_names}
        assert used - ours <= listed, path


def test_the_mathematics_does_not_know_the_answers_made_of_it() -> None:
    wings = {path.parent for path in (ROOT / "dpcore").glob("*/answer/__init__.py")}
    assert {ROOT / f"dpcore/{name}/answer" for name in ("mean", "total")} <= wings
    for wing in wings:
        inside = module_name(wing / "__init__.py")
        for path in set(wing.parent.rglob("*.py")) - set(wing.rglob("*.py")):
            imported = [name for _, name, _ in imports(path.read_text(encoding="utf-8"))]
            assert not [name for name in imported if f"{name}.".startswith(f"{inside}.")], path


def test_rooms_of_the_shared_machinery_stand_in_an_order() -> None:
    shared = ROOT / "pages/shared"
    assert {path.name for path in shared.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(
        ROOMS
    )
    assert [path.name for path in shared.glob("*.py")] == [INTERNALS.name]
    for path in set(python_files("pages/shared")) - {INTERNALS}:
        index = ROOMS.index(path.relative_to(shared).parts[0])
        for _, name, _ in imports(path.read_text(encoding="utf-8")):
            if name.startswith("pages.shared."):
                room_imported = name.split(".")[2]
                assert room_imported in {*ROOMS[: index + 1], INTERNALS.stem}, (
                    f"{path} imports {name}, a later room"
                )


def private_imports(source: str) -> list[str]:
    """Return what a file imports of Streamlit besides its public names, at run time: types alone are no dependence."""
    if "streamlit." not in source and "from streamlit" not in source:
        return []  # To take the types out of every file took 4 of the 6 seconds of these tests.
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names = [name for _, name, _ in imports(ast.unparse(tree))]
    return [name for name in names if re.match(r"streamlit\.", name)]


def test_one_file_names_what_is_private_in_streamlit() -> None:
    files = [*python_files("pages"), *python_files("dpcore"), ROOT / "app.py"]
    paths = [path for path in files if private_imports(path.read_text(encoding="utf-8"))]
    assert paths == [INTERNALS]
    source = INTERNALS.read_text(encoding="utf-8")
    private = private_imports(source)
    # Inside functions: a missing name must not end the import.
    assert not [name for _, name, at_top in imports(source) if at_top and name in private]
    assert not [name for _, name, _ in imports(source) if name.startswith("pages")]


def test_there_are_no_circles() -> None:
    # So every module can be imported first, and alone.
    files = {module_name(path): path for folder in SHARED for path in python_files(folder)}
    needs: dict[str, set[str]] = {}
    for name, path in files.items():
        # Those inside functions and under TYPE_CHECKING, too: a circle that is broken late is still one.
        wanted = {i for _, i, _ in imports(path.read_text(encoding="utf-8"))}
        imported = {i if i in files else i.rpartition(".")[0] for i in wanted}
        # A package's __init__ gathers its modules, which do not need it to be there.
        needs[name] = {n for n in imported if n in files and n != name and not name.startswith(n + ".")}
    # The catalogue imports the questions by names that it builds, at its top.
    needs["pages.shared.base.catalogue"] |= {n for n in files if re.fullmatch(r"pages\.\w+\.question", n)}
    # Take away what needs nothing, and what nothing needs, until only circles are left.
    while loose := {
        n for n, wanted in needs.items() if not wanted or not any(n in w for w in needs.values())
    }:
        needs = {name: wanted - loose for name, wanted in needs.items() if name not in loose}
    assert not needs, f"these import each other: {sorted(needs)}"


def test_dp_accounting_is_called_in_one_guarded_place() -> None:
    # Its warnings depend on the processor, and warnings are errors here: `privacy` settles them.
    callers = {
        str(path.relative_to(ROOT))
        for folder in SHARED
        for path in python_files(folder)
        if any(
            name.split(".")[0] == "dp_accounting" for _, name, _ in imports(path.read_text(encoding="utf-8"))
        )
    }
    assert callers == {"dpcore/common/privacy.py"}


def test_pages_import_neither_the_app_nor_a_page() -> None:
    for path in python_files("pages"):
        for level, imported, _ in imports(path.read_text(encoding="utf-8")):
            pieces = imported.split(".")
            assert level == 0, f"{path} imports {imported} relatively"
            assert pieces[0] not in {"app", "tests"}, f"{path} imports {imported}"
            assert pieces[0] != "pages" or "page" not in pieces[2:3], (
                f"{path} imports {imported}: Streamlit runs pages"
            )


def test_no_module_directly_in_pages() -> None:
    # Streamlit would take it for its own folder of automatic pages and run it without app.py.
    assert [p.name for p in (ROOT / "pages").glob("*.py")] == []


@pytest.mark.parametrize(
    ("module", "source", "word"),
    [
        ("mean", "import streamlit as st", "user interface"),
        ("mean", "def f():\n    import plotly.graph_objects as go", "user interface"),
        ("common", "from dpcore.data import tables", "later room"),
        ("mean", "from . import weights", "relatively"),
        ("mean", "import cvxpy", "slow"),
        ("mean", "from scipy import stats", "slow"),
    ],
)
def test_the_rule_of_the_core_can_fail(module: str, source: str, word: str) -> None:
    (sentence,) = core_violations(module, source)
    assert word in sentence


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pages.shared.base.cache", "from pages.mean import answer"),
        ("pages.shared.base.cache", "def f():\n    from dpcore.mean import MeanProblem"),
        ("pages.shared.base.cache", "if TYPE_CHECKING:\n    from dpcore import mean"),
        ("pages.shared.base.cache", "import_module('pages.mean.answer')"),
        ("dpcore.code.release_spec", "from dpcore.total.parameters import Summed"),
        ("dpcore.mean.private_counts", "from dpcore.learning import participation"),
        ("pages.mean.card", "from pages.quantile import card"),
    ],
)
def test_the_rule_of_questions_can_fail(module: str, source: str) -> None:
    assert len(breaches(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dpcore.private_choice.comparison", "from dpcore import mean"),
        ("pages.mean.card", "from dpcore.mean import MeanProblem\nfrom pages.shared import cards"),
        ("pages.shared.card.cards", "from dpcore.common import wording"),
    ],
)
def test_the_rule_lets_good_imports_pass(module: str, source: str) -> None:
    assert breaches(module, source) == []


def test_the_core_really_loads_no_user_interface_and_the_first_noise_waits_for_nothing() -> None:
    # The rule above reads text; this asks a fresh interpreter. `opendp.prelude` loads scikit-learn, and Polars, where
    # they are installed: 1 s.
    texts = {path for path in python_files("dpcore") if module_name(path) in RENDERERS}
    names = [module_name(p) for p in python_files("dpcore") if p.stem != "__main__" and p not in texts]
    code = f"""
import sys
from dpcore.common import mechanisms
mechanisms.release_laplace([0.5], 1.0, 1.0)
mechanisms.release_discrete_laplace([1], 1, 1.0)
mechanisms.release_discrete_gaussian([1], 1, 1.0, 1e-6)
mechanisms.exponential_mechanism([1, 2], 1, 1.0)
print(sorted({{'opendp.prelude', 'polars', 'sklearn'}} & set(sys.modules)))
for n in {names!r}: __import__(n)
print(sorted({{'streamlit', 'plotly'}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["[]", "[]"], done.stderr


@pytest.mark.long
def test_the_first_answer_on_a_file_waits_for_no_library_that_it_does_not_use() -> None:
    # Ibis with its SQL dialects alone took as long as all the rest.
    code = """
import sys
import dpcore as ss
columns = {'user': 'user_id', 'value': 'amount'}
ss.mean_bound('sample_data/shop_events.csv', **columns, epsilon=1, lower=0, upper=200)
ss.group_bounds('sample_data/shop_events.csv', **columns, group='product', epsilon=1)
print(sorted({name.partition('.')[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    loaded = set(ast.literal_eval(done.stdout or "[]"))
    assert {"duckdb", "numpy"} <= loaded, done.stderr
    unused = {
        "ibis",
        "sqlglot",
        "jinja2",
        "opendp",
        "dp_accounting",
        "polars",
        "sklearn",
        "openpyxl",
        "cvxpy",
    }
    assert loaded & (unused | {"streamlit", "plotly", "matplotlib"}) == set()


@pytest.mark.long
def test_the_first_figure_does_not_wait_for_pandas() -> None:
    # It takes 0.2 s to load; what Start draws is read and drawn without it.
    names = [
        "pages.shared.base.catalogue",
        "pages.shared.shell",
        "pages.shared.screen.layout",
        "dpcore.start.answer",
    ]
    code = f"import sys\nfor n in {names!r}: __import__(n)\nfrom dpcore.data import samples\n"
    code += "samples.load('online-retail-lines')\nprint('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == "False", done.stderr


def test_the_readme_of_the_core_names_modules_that_are_there() -> None:
    text = (ROOT / "dpcore/README.md").read_text(encoding="utf-8")
    layers = text[text.index("## Layers") : text.index("## How to read a certificate")]
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", layers)) - {"parameters"}
    known = {module_name(path).removeprefix("dpcore.") for path in python_files("dpcore")}
    assert named <= known, f"no such module: {sorted(named - known)}"
    folders = {
        path.name for path in (ROOT / "dpcore").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert folders <= named, f"not named: {sorted(folders - named)}"
