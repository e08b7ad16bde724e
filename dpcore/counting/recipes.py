"""The command, the Python code and the SQL that count on an engine, for the page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from dpcore.counting import query
from dpcore.counting.engines import Engine
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.dataset import Contribution


@dataclass(frozen=True)
class Recipe:
    """The shell command, the Python code and the SQL for counting on an engine."""

    command: str
    python: str
    sql: str


def recipe(engine: Engine, roles: Roles, table: str) -> Recipe:
    """Write the command, the code and the SQL of the histogram.

    Args:
        engine: One of `ENGINES`.
        roles: Roles of the columns of a table of events.
        table: Name of the table in the engine.
    """
    unit = roles.privacy_unit or ("user_id",)
    words = ["python", "-m", "dpcore.counting", "--from", engine.address, "--table", table]
    for column in unit:
        words += ["--user", column]
    for column in roles.groups:
        words += ["--task", column]
    words += ["--value", roles.value] if roles.value is not None else []
    words += (
        ["--count", COUNT_OPTIONS[roles.contribution]] if roles.contribution is not Contribution.ROWS else []
    )
    words += ["--missing-users", "one"] if roles.missing_users is MissingUsers.ONE_USER else []
    words += ["--to", "histogram.csv"]
    return Recipe(
        " ".join(shlex.quote(word) for word in words), _python(engine, roles, table, unit),
        histogram_sql(engine, roles, table),
    )  # fmt: skip


COUNT_OPTIONS = {
    Contribution.ROWS: "rows",
    Contribution.DISTINCT_TASKS: "distinct-tasks",
    Contribution.TOTAL: "total",
}
"""The value of ``--count`` for each kind of contribution."""


def _python(engine: Engine, roles: Roles, table: str, unit: tuple[str, ...]) -> str:
    arguments = [f"user={unit[0]!r}"]
    arguments += [f"further_user={unit[1:]!r}"] if unit[1:] else []
    arguments += [
        f"{role}={column!r}" for role in ("task", "value") if (column := getattr(roles, role)) is not None
    ]
    arguments += [f"further_task={roles.further_task!r}"] if roles.groups[1:] else []
    imports = [
        "from dpcore.common.privacy import Disclosure",
        "from dpcore.data.column_roles import Roles, TableKind",
    ]
    if roles.contribution is not Contribution.ROWS:
        imports.append("from dpcore.dataset import Contribution")
        arguments.append(f"contribution=Contribution.{roles.contribution.name}")
    if roles.missing_users is MissingUsers.ONE_USER:
        imports = [line.replace("import Roles", "import MissingUsers, Roles") for line in imports]
        arguments.append("missing_users=MissingUsers.ONE_USER")
    return "\n".join(
        [
            "from dpcore import counting",
            *imports,
            "",
            f"backend = counting.connect({engine.address!r})",
            f"table = counting.open_table(backend, {table!r})",
            f"roles = Roles(TableKind.EVENTS, {', '.join(arguments)})",
            f"counted = counting.count_table(table, roles, Disclosure.PRIVATE, name={table!r})",
            "print(counted.dataset.histogram)",
        ]
    )


def histogram_sql(engine: Engine, roles: Roles, table: str) -> str:
    """Return the SQL of the histogram on an engine, or a comment if Ibis cannot write it without the driver."""
    import ibis
    import ibis.common.exceptions
    from ibis.expr.operations import DatabaseTable, Namespace

    if not roles.privacy_unit:
        return ""
    columns = [*roles.privacy_unit, *roles.groups, *([roles.value] if roles.value is not None else [])]
    kinds = {c: "float64" if c == roles.value else "string" for c in columns}
    # A database table, so that `query` does not cache an expression with these names.
    rows = DatabaseTable(table, ibis.schema(kinds), None, Namespace()).to_expr()
    for has_nan in (True, False):
        try:
            users = query.per_user(query.events(rows, roles, has_nan=has_nan), roles.contribution)
            return query.to_sql(query.histogram(users, roles.contribution), engine.dialect)
        except (ibis.common.exceptions.IbisError, NotImplementedError, AttributeError, ValueError):
            continue
    return f"-- Ibis writes this SQL once the driver for {engine.title} is installed."
