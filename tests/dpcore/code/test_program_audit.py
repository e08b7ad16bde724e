"""Plain Python's and OpenDP's programs on neighbouring tables: see `audit`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd
import pytest
import sqlglot

from dpcore.code import Quantity, ReleasePlan, ReleaseSpec, with_opendp, write
from dpcore.code.release_spec import VALUE_QUANTITIES
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from tests.cells import leave_repeats
from tests.dpcore.code import audit, together
from tests.dpcore.code.specs import SPEC_BY_NAME

MATRIX = "regression_matrix.parquet"
PRIVATE = {"file": audit.FILE, "disclosure": Disclosure.PRIVATE}
LIBRARIES = (Program.PYTHON, Program.OPENDP)
PYTHON_ALONE = ("quantile, smooth", "task weights", "coefficients", "classifier")
"""Releases that OpenDP has no program for. To write all programs here took each worker 0.6 s."""
RELEASES = [
    (name, library)
    for name in SPEC_BY_NAME
    for library in LIBRARIES
    if library is Program.PYTHON or name not in PYTHON_ALONE
]
SHORT = [name for name, choice in SPEC_BY_NAME.items() if with_opendp.has_short_program(choice)]
SEVERAL = [(NoiseKind.LAPLACE, Program.PYTHON), (NoiseKind.GAUSSIAN, Program.OPENDP)]


def _release_kind(cell: tuple[str, Program]) -> tuple[object, ...]:
    """What `make test` audits one release of: the others of a kind differ in their numbers or in how rows are kept."""
    choice = SPEC_BY_NAME[cell[0]]
    return choice.quantity, choice.noise, choice.has_public_counts, choice.clamps_users, cell[1]


def _program(name: str, library: Program, disclosure: Disclosure = Disclosure.PRIVATE) -> str:
    """A release, by default of private data, with the public lists that the program asks for."""
    choice = replace(SPEC_BY_NAME[name], **PRIVATE | {"disclosure": disclosure})
    if library is Program.OPENDP and choice.noise is NoiseKind.LAPLACE:
        # The exact numbers show within a tenth of what one user may add.
        choice = replace(choice, epsilon=1000.0)
    return audit.fill_inputs(write(choice, library).text)


ALL_NEIGHBOURS = ("sums per group",)
"""Releases that plain Python runs on every neighbour."""


def _tables(
    plan: ReleaseSpec | ReleasePlan, library: Program, name: str = ""
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the neighbours to run a program on, and the tables of at most one user."""
    choice = plan if isinstance(plan, ReleaseSpec) else plan.reading_spec
    quick = library is Program.PYTHON and isinstance(plan, ReleaseSpec)
    few = (*audit.FEW, *audit.EMPTY) if quick else audit.FEWEST
    if name in ALL_NEIGHBOURS and library is Program.PYTHON:
        return audit.list_neighbours(choice.has_public_counts), audit.EMPTY
    neighbours = {
        title: content
        for title, content in audit.list_neighbours(choice.has_public_counts).items()
        if title in few
    }
    return neighbours, {title: content for title, content in audit.EMPTY.items() if title in few}


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    rows = len(audit.ROWS)
    codes = pd.factorize(pd.Series(audit.ROWS).str.partition(",")[0])[0]
    weights = {"row": range(rows), "user_code": codes, "a": [0.01] * rows, "b": [-0.02] * rows}
    pd.DataFrame(weights).to_parquet(MATRIX)
    return empty_folder


AUDITED = leave_repeats(RELEASES, _release_kind)


@pytest.mark.parametrize(("name", "library"), AUDITED)
def test_a_program_tells_nothing_of_one_user_beyond_its_noise(
    name: str, library: Program, folder: Path
) -> None:
    choice, text = SPEC_BY_NAME[name], _program(name, library)
    base = audit.run(text, audit.join_rows(*audit.ROWS), folder)
    assert base.ending == "0"
    _check_something_was_drawn(choice, base)
    problems = []
    neighbours, _ = _tables(choice, library, name)
    for neighbour, content in neighbours.items():
        observed = audit.run(text, content, folder)
        problem = audit.describe_difference(base, observed)
        if not problem and neighbour not in audit.PRINTED_ONLY:
            problem = _beyond_the_budget(choice, library, base, observed)
        problems += [f"{neighbour}: {problem}"] if problem else []
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", leave_repeats(SHORT, lambda name: SPEC_BY_NAME[name].quantity))
def test_a_short_program_differs_by_what_its_noise_covers(name: str, folder: Path) -> None:
    """Its data are public, so that groups are read off them; what a user moves is bounded all the same."""
    choice, text = SPEC_BY_NAME[name], _program(name, Program.OPENDP, Disclosure.PUBLIC)
    assert "pl.scan_csv(" in text
    base = audit.run(text, audit.join_rows(*audit.ROWS), folder)
    assert base.ending == "0"
    _check_something_was_drawn(choice, base)
    users = ("an ordinary user", "a user with very many rows", "a user with negative amounts")
    tables = {user: audit.add_user(user) for user in users} | {"one user less": audit.remove_user()}
    if choice.has_public_counts:
        tables = {cell: audit.replace_cell(cell) for cell in ("9e99", "-50.5")}
    for title, content in tables.items():
        observed = audit.run(text, content, folder)
        assert audit.describe_difference(base, observed) == "", title
        assert _beyond_the_budget(choice, Program.OPENDP, base, observed) == "", title


@pytest.mark.parametrize(
    ("name", "library"), leave_repeats(RELEASES, lambda cell: (SPEC_BY_NAME[cell[0]].quantity, cell[1]))
)
def test_a_program_ends_alike_whether_there_is_one_user_or_none(
    name: str, library: Program, folder: Path
) -> None:
    choice, text = SPEC_BY_NAME[name], _program(name, library)
    _, tables = _tables(choice, library)
    observed = {title: audit.run(text, content, folder) for title, content in tables.items()}
    if choice.has_public_counts:  # Whether there are rows is public; a program still ends with a sentence.
        crashed = {
            title: at.ending
            for title, at in observed.items()
            if not at.ending.startswith(("0", "SystemExit"))
        }
        assert not crashed
        return
    assert observed["no row"].ending == "0"
    problems = {title: audit.describe_difference(observed["no row"], at) for title, at in observed.items()}
    assert not any(problems.values()), problems


@pytest.mark.long_but("NoiseKind.LAPLACE-Program.PYTHON-False")
@pytest.mark.parametrize("clamps_users", [False, True])
@pytest.mark.parametrize(("noise", "library"), SEVERAL)
def test_a_program_of_several_releases_tells_nothing_beyond_its_noise(
    noise: NoiseKind, library: Program, clamps_users: bool, folder: Path
) -> None:
    plan = together.make_several(noise, quantile=True, clamps_users=clamps_users, **PRIVATE)
    text, total = audit.fill_inputs(write(plan, library).text), plan.compute_total_budget(library)
    base = audit.run(text, audit.join_rows(*audit.ROWS), folder)
    assert base.ending == "0"
    problems = {}
    neighbours, empty = _tables(plan, library)
    for neighbour, content in neighbours.items():
        observed = audit.run(text, content, folder)
        problems[neighbour] = audit.describe_difference(base, observed)
        if not problems[neighbour] and library is Program.PYTHON and neighbour not in audit.PRINTED_ONLY:
            lost, is_rho = audit.compute_loss(base, observed)
            assert is_rho == (noise is NoiseKind.GAUSSIAN)
            problems[neighbour] = "" if lost <= total else f"the releases lose {lost} of {total}"
    none = audit.run(text, audit.EMPTY["no row"], folder)
    assert none.ending == "0"
    for title, content in empty.items():
        problems[title] = audit.describe_difference(none, audit.run(text, content, folder))
    assert not any(problems.values()), "\n".join(f"{name}: {at}" for name, at in problems.items() if at)


@pytest.mark.parametrize(("name", "library"), [at for at in RELEASES if at[0] in ("groups", "task weights")])
def test_a_program_without_its_public_lists_reads_nothing(name: str, library: Program, folder: Path) -> None:
    text = write(replace(SPEC_BY_NAME[name], **PRIVATE), library).text
    observed = audit.run(text, audit.join_rows(*audit.ROWS), folder)
    assert observed.ending.startswith("SystemExit")
    assert not observed.printed
    assert not observed.inputs
    assert "p1" not in observed.ending


def test_every_release_that_is_written_is_audited() -> None:
    written = [
        (name, library)
        for name, choice in SPEC_BY_NAME.items()
        for library in LIBRARIES
        if write(choice, library).text
    ]
    assert written == RELEASES


def _for_duckdb(sql: str) -> str:
    """Return the first statement with a table of the name events."""
    text = sqlglot.transpile(sql, read="bigquery", write="duckdb")[0]
    text = text.replace('"your_project"."your_dataset"."events"', "events")
    return text.replace("your_project.your_dataset.events", "events")


@pytest.mark.parametrize("name", SPEC_BY_NAME)
def test_bigquery_drops_or_replaces_what_is_no_number(name: str, folder: Path) -> None:
    choice = replace(SPEC_BY_NAME[name], **PRIVATE)
    sql = write(choice, Program.BIGQUERY).text
    if not sql or choice.quantity not in VALUE_QUANTITIES:
        return
    (inner, *_) = re.findall(r"SELECT \* REPLACE \(.*?FROM `[^`]+`\s*\)", sql, flags=re.S)
    cells = ("7.5", "YES", "True", "No", " false", "secret", "", "inf", "nan", "1,234", "1e101")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE events (user_id VARCHAR, product VARCHAR, amount VARCHAR)")
        connection.executemany("INSERT INTO events VALUES ('x', 'p1', ?)", [[cell] for cell in cells])
        rows = connection.execute(_for_duckdb(inner)).fetchall()
    expected = [0.0 if choice.lower is None else choice.lower] * 6
    assert [amount for *_, amount in rows] == [7.5, 1.0, 1.0, 0.0, 0.0, *expected]


def test_the_audit_finds_what_no_noise_covers(folder: Path) -> None:
    """The checks above are able to fail: a count printed as it is, a list of groups, and too little noise."""
    text = _program("groups", Program.PYTHON)
    base, more = audit.join_rows(*audit.ROWS), audit.add_user("a user with very many rows")
    leaks = {
        "prints": text + "\nprint(len(events))\n",
        "draws vectors": text + "\nadd_noise([1.0] * len(events), 1.0)\n",
        "ends with": text + "\nassert len(events) < 99\n",
    }
    for problem, leak in leaks.items():
        assert problem in audit.describe_difference(
            audit.run(leak, base, folder), audit.run(leak, more, folder)
        )
    weak = text.replace("MAX_GROUPS = 3", "MAX_GROUPS = 1").replace("head(MAX_GROUPS)", "head(3)")
    assert weak != text
    runs = [
        audit.run(weak, content, folder) for content in (base, audit.add_user("a user with very many rows"))
    ]
    assert "lose" in _beyond_the_budget(SPEC_BY_NAME["groups"], Program.PYTHON, *runs)


ROW_WEIGHTS_AFTER_CLAMPING = {
    '(weight * (users["mean"] - MIDDLE)).clip(-LIMIT, LIMIT)': 'users["count"] * '
    '(users["mean"] - MIDDLE).clip((LOWER - UPPER) / 2, (UPPER - LOWER) / 2)'
}
OFF_THE_MIDDLE = {
    "LIMIT = (LOWER + UPPER) / 2,": "LIMIT = LOWER + (UPPER - LOWER) / 4,",
    "clip(-LIMIT, LIMIT)": "clip(-LIMIT / 2, 1.5 * LIMIT)",
    "half + deviations": "half / 2 + deviations",
    "half - deviations": "1.5 * half - deviations",
}


@pytest.mark.parametrize("wrong_lines", [{}, ROW_WEIGHTS_AFTER_CLAMPING, OFF_THE_MIDDLE])
def test_the_audit_finds_wrong_clamps_of_users(wrong_lines: dict[str, str], folder: Path) -> None:
    """A weight of all rows after clamping, or a centre off the middle, needs more noise than the program draws."""
    name = "mean, users, private counts"
    text = _program(name, Program.PYTHON)
    for right, wrong in wrong_lines.items():
        head, code = text.split("\ndef add_noise", 1)
        assert right in code
        text = f"{head}\ndef add_noise{code.replace(right, wrong)}"
    base = audit.run(text, audit.join_rows(*audit.ROWS), folder)
    problems = [
        _beyond_the_budget(
            SPEC_BY_NAME[name], Program.PYTHON, base, audit.run(text, audit.add_user(user), folder)
        )
        for user in ("a user with very many rows", "a user with huge amounts", "an ordinary user")
    ]
    assert any("lose" in problem for problem in problems) is bool(wrong_lines), problems


def _check_something_was_drawn(choice: ReleaseSpec, observed: audit.Run) -> None:
    if choice.quantity not in (Quantity.MODEL, Quantity.CLASSIFIER):
        assert observed.inputs or observed.frames
        assert observed.printed


def _beyond_the_budget(choice: ReleaseSpec, library: Program, base: audit.Run, observed: audit.Run) -> str:
    """What is wrong with the sums before noise; empty where nothing is."""
    if observed.frames:
        return _beyond_the_bounds(choice, base, observed)
    lost, is_rho = audit.compute_loss(base, observed)
    epsilon = 1000.0 if library is Program.OPENDP and not is_rho else choice.epsilon
    if not is_rho:
        return "" if lost <= epsilon else f"the draws lose epsilon = {lost}"
    delta = audit.compute_delta(lost, epsilon)
    return "" if delta <= choice.delta * (1 + 1e-6) else f"the draws lose delta = {delta} at {epsilon}"


def _beyond_the_bounds(choice: ReleaseSpec, base: audit.Run, observed: audit.Run) -> str:
    """How OpenDP's context moved, with noise that a tenth of the bound covers at epsilon = 1000."""
    if choice.noise is NoiseKind.GAUSSIAN or choice.quantity is Quantity.QUANTILE:
        return ""  # Noise of a small epsilon, or values that no bound holds for.
    steps = float(observed.names.get("STEPS", 1))
    most = (choice.max_rows or 1) * (choice.max_groups or 1)
    if choice.quantity is Quantity.GROUP_COUNTS:
        most = choice.max_groups or 1
    problems = []
    for frame, other in zip(base.frames, observed.frames, strict=True):
        for column, numbers in frame.items():
            unit = steps if column == "total" or (column == "rows" and choice.threshold is not None) else 1.0
            moved_total = sum(abs(a - b) for a, b in zip(numbers, other[column], strict=True))
            if moved_total > 1.1 * most * unit:
                problems.append(f"{column} moves by {moved_total / unit} where {most} is allowed")
    return ", ".join(problems)
