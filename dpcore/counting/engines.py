"""Engines that Ibis speaks to: connecting, and the command, code and SQL for each.

Credentials never pass through here: they come from the environment or from the engine's own profiles.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dpcore.counting import query
from dpcore.dataset import Contribution
from dpcore.errors import InvalidInput, Problem
from dpcore.roles import MissingUsers, Roles
from dpcore.tables import shown

if TYPE_CHECKING:
    from ibis.expr.types import Table


@dataclass(frozen=True)
class Engine:
    """One engine.

    Attributes:
        key: Scheme of its address, and Ibis's name.
        title: What people call it.
        address: An example.
        credentials: Where its credentials come from, a sentence without its full stop.
        dialect: Ibis's name of its SQL, where SQL can be shown without its driver.
    """

    key: str
    title: str
    address: str
    credentials: str
    dialect: str


_ALL = (
    Engine("postgres", "PostgreSQL", "postgres://analyst@db.example.org:5432/shop",
           "PGPASSWORD, or a line in ~/.pgpass", "postgres"),
    Engine("pyspark", "Spark", "pyspark://",
           "spark-defaults.conf and the environment of the Spark session", "databricks"),
    Engine("bigquery", "BigQuery", "bigquery://my-project/my_dataset",
           "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS", "bigquery"),
    Engine("snowflake", "Snowflake", "snowflake://analyst@account/database/schema?warehouse=small&authenticator=externalbrowser",
           "the browser sign-on, or ~/.snowflake/connections.toml", "snowflake"),
    Engine("databricks", "Databricks", "databricks://",
           "DATABRICKS_SERVER_HOSTNAME, DATABRICKS_HTTP_PATH and DATABRICKS_TOKEN", "databricks"),
    Engine("trino", "Trino", "trino://analyst@trino.example.org:8080/catalog/schema",
           "the environment of the Trino client", "trino"),
    Engine("clickhouse", "ClickHouse", "clickhouse://analyst@clickhouse.example.org:8123/shop",
           "CLICKHOUSE_PASSWORD where the client reads it, or a profile", "clickhouse"),
    Engine("athena", "Athena", "athena://?s3_staging_dir=s3://my-bucket/staging/",
           "AWS_PROFILE, or the AWS environment variables", "athena"),
    Engine("mysql", "MySQL", "mysql://analyst@db.example.org:3306/shop", "the [client] section of ~/.my.cnf", "mysql"),
    Engine("mssql", "SQL Server", "mssql://db.example.org/shop", "the Windows sign-on or an ODBC profile", "mssql"),
    Engine("oracle", "Oracle", "oracle://analyst@db.example.org:1521/shop", "an Oracle wallet", "oracle"),
    Engine("duckdb", "A DuckDB file", "duckdb:///home/me/shop.duckdb", "none are needed", "duckdb"),
)  # fmt: skip
ENGINES = {engine.key: engine for engine in _ALL}
"""Engines with an example of their own; every other one that Ibis knows can be named too."""
_ALIASES = {"postgresql": "postgres", "spark": "pyspark"}
# Others would take the file from this computer and send it.
_READS_FILES = ("pyspark", "databricks", "duckdb")
_FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}


def is_address(text: str) -> bool:
    """Whether a text names an engine, not a file."""
    scheme, mark, _ = text.partition(":")
    return bool(mark) and len(scheme) > 1 and _known(scheme)


def _known(scheme: str) -> bool:
    from importlib.metadata import entry_points

    key = _ALIASES.get(scheme, scheme)
    return key in ENGINES or any(entry.name == key for entry in entry_points(group="ibis.backends"))


def connect(address: str) -> Any:
    """Connect to an engine through Ibis.

    Args:
        address: Such as ``postgres://analyst@host/database`` or ``spark:``.

    Raises:
        InvalidInput: A password stands in it, its driver is missing, or it does not answer.
    """
    import ibis

    scheme, _, rest = address.partition(":")
    key = _ALIASES.get(scheme, scheme)
    title = ENGINES[key].title if key in ENGINES else key
    if not _known(scheme):
        known = ", ".join(ENGINES)
        raise InvalidInput([Problem(f"no engine is called {shown(scheme)}", "", f"Choose one of {known}")])
    if urlsplit(address).password:
        where = ENGINES[key].credentials if key in ENGINES else "the environment, or the engine's own profile"
        what = "a password stands in the address, where other programs and the shell's history can read it"
        raise InvalidInput([Problem(what, "", f"Leave it out; it is taken from {where}")])
    target = f"{key}:{rest if rest.startswith('//') else '//' + rest}"
    try:
        return ibis.connect(target)
    except ImportError as error:
        remedy = f"Install it: python -m pip install 'ibis-framework[{key}]'"
        raise InvalidInput([Problem(f"the driver for {title} is not installed", "", remedy)]) from error
    except Exception as error:  # every driver has its own
        raise InvalidInput(
            [Problem(f"{title} does not answer as it should: {_first_line(error)}")]
        ) from error


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.rstrip(".")[:300]


def open_table(backend: Any, name: str) -> Table:
    """A table of an engine by name (``schema.table`` where need be), or files that the engine itself reads.

    Raises:
        InvalidInput: The engine has no such table or file.
    """
    reader = next((method for end, method in _FILES.items() if name.rstrip("/").endswith(end)), None)
    try:
        if reader is not None and backend.name in _READS_FILES:
            return getattr(backend, reader)(name)
        *above, last = name.split(".")
        return (
            backend.table(last, database=tuple(above) if len(above) > 1 else above[0])
            if above
            else backend.table(last)
        )
    except Exception as error:  # every driver has its own
        what = f"table {shown(name)} cannot be opened: {_first_line(error)}"
        raise InvalidInput(
            [Problem(what, "", "Check its name, its schema, and your rights to read it")]
        ) from error


# --- what the page shows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How to count on an engine: for the shell, for Python, and the SQL that runs."""

    command: str
    python: str
    sql: str


def recipe(engine: Engine, roles: Roles, table: str, numeric: Sequence[str] = ()) -> Recipe:
    """The command, the code and the SQL of the histogram.

    Args:
        engine: One of `ENGINES`.
        roles: Events; what each column means.
        table: Name of the table in the engine.
        numeric: Columns that hold numbers; the others are taken for text.
    """
    unit = roles.privacy_unit or ("user_id",)
    words = ["python", "-m", "dpcore.counting", "--from", engine.address, "--table", table]
    for column in unit:
        words += ["--user", column]
    for option, role in (("--task", roles.task), ("--value", roles.value)):
        words += [option, role] if role is not None else []
    words += (
        ["--count", COUNT_OPTIONS[roles.contribution]] if roles.contribution is not Contribution.ROWS else []
    )
    words += ["--missing-users", "one"] if roles.missing_users is MissingUsers.ONE_USER else []
    words += ["--to", "histogram.csv"]
    return Recipe(
        " ".join(shlex.quote(word) for word in words), _python(engine, roles, table, unit),
        histogram_sql(engine, roles, table, numeric),
    )  # fmt: skip


COUNT_OPTIONS = {
    Contribution.ROWS: "rows",
    Contribution.DISTINCT_TASKS: "distinct-tasks",
    Contribution.TOTAL: "total",
}
"""What the shell's ``--count`` calls each kind of contribution."""


def _python(engine: Engine, roles: Roles, table: str, unit: tuple[str, ...]) -> str:
    given = [f"user={unit[0]!r}"]
    given += [f"further_user={unit[1:]!r}"] if unit[1:] else []
    given += [
        f"{role}={column!r}" for role in ("task", "value") if (column := getattr(roles, role)) is not None
    ]
    imports = ["from dpcore.roles import Roles, TableKind"]
    if roles.contribution is not Contribution.ROWS:
        imports.insert(0, "from dpcore.dataset import Contribution")
        given.append(f"contribution=Contribution.{roles.contribution.name}")
    if roles.missing_users is MissingUsers.ONE_USER:
        imports = [line.replace("import Roles", "import MissingUsers, Roles") for line in imports]
        given.append("missing_users=MissingUsers.ONE_USER")
    return "\n".join(
        [
            "from dpcore import counting",
            *imports[:-1],
            "from dpcore.privacy import Sensitivity",
            imports[-1],
            "",
            f"backend = counting.connect({engine.address!r})",
            f"table = counting.open_table(backend, {table!r})",
            f"roles = Roles(TableKind.EVENTS, {', '.join(given)})",
            f"counted = counting.count_table(table, roles, Sensitivity.PRIVATE, name={table!r})",
            "print(counted.dataset.histogram)",
        ]
    )


def histogram_sql(engine: Engine, roles: Roles, table: str, numeric: Sequence[str] = ()) -> str:
    """The SQL of the histogram on an engine; a sentence where Ibis cannot write it without the driver."""
    import ibis
    import ibis.common.exceptions

    columns = [
        *(roles.privacy_unit or ("user_id",)),
        *(c for c in (roles.task, roles.value) if c is not None),
    ]
    kinds = {c: "float64" if c in numeric or c == roles.value else "string" for c in columns}
    unbound = ibis.table(kinds, name=table)
    if not roles.privacy_unit:
        return ""
    for has_nan in (True, False):
        try:
            expression = query.histogram(query.events(unbound, roles, has_nan=has_nan), roles)
            return str(ibis.to_sql(expression, dialect=engine.dialect))
        except (ibis.common.exceptions.IbisError, NotImplementedError, AttributeError, ValueError):
            continue
    return f"-- Ibis writes this SQL once the driver for {engine.title} is installed."
