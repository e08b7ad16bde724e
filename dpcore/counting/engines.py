"""Engines that Ibis supports: addresses, credentials, connections, and the page's texts for counting on one.

Credentials come from the environment or from the engine's own profiles, never from an address. The table of engines
was checked against ``_from_url`` and ``do_connect`` in ``ibis/backends/<engine>/__init__.py`` of Ibis 12.0; a test
repeats this check.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import numpy as np

from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.wording import format_digits
from dpcore.counting import query
from dpcore.counting.count import CountResult, build_counted_dataset, convert_to_events, count_queries
from dpcore.counting.duck import PLACEHOLDERS, Columns, Steps, StoppedError, check_stop, note_placeholders
from dpcore.counting.facets import fetch_binned_values, note_copies
from dpcore.counting.public_rules import count_outside, note_outside
from dpcore.counting.reduce import Reduction
from dpcore.data import binned_values
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import MissingUsers, Roles, build_rule_layout, check_roles
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Contribution

if TYPE_CHECKING:
    from ibis.expr.types import Table


@dataclass(frozen=True)
class Engine:
    """A database engine that counts contributions with its own queries.

    Attributes:
        key: Scheme of its address, and Ibis's name.
        title: Display name.
        example_address: Example of an address.
        credentials_text: Source of its credentials, a sentence without its full stop.
        password_variable: Environment variable of the password, for engines whose driver gets an empty one from Ibis
            and then looks nowhere else; empty if the driver finds its credentials by itself.
        dialect: Ibis's name of its SQL dialect, for showing SQL without its driver; empty if it is the key.
        fixed_options: Further options of the connection, so that nothing is written to the engine.
    """

    key: str
    title: str
    example_address: str
    credentials_text: str
    password_variable: str = ""
    dialect: str = ""
    fixed_options: Mapping[str, Any] = field(default_factory=dict)


_ENGINES = (
    Engine("postgres", "PostgreSQL", "postgres://analyst@db.example.org:5432/shop", "PGPASSWORD, or ~/.pgpass"),
    Engine("pyspark", "Spark", "pyspark://", "the environment of the Spark session", dialect="databricks"),
    Engine("bigquery", "BigQuery", "bigquery://my-project/my_dataset", "gcloud auth application-default login"),
    # Otherwise Ibis creates a database there, called ibis_udfs.
    Engine("snowflake", "Snowflake", "snowflake://analyst@account/database/schema?warehouse=small&authenticator=externalbrowser",
           "the browser sign-on; or name a connection of ~/.snowflake/connections.toml: "
           "snowflake://?connection_name=mine", fixed_options={"create_object_udfs": False}),
    Engine("databricks", "Databricks", "databricks://",
           "DATABRICKS_SERVER_HOSTNAME, DATABRICKS_HTTP_PATH and DATABRICKS_TOKEN"),
    Engine("trino", "Trino", "trino://analyst@trino.example.org:443/catalog/schema",
           "TRINO_PASSWORD, which is sent over HTTPS; without it only the user's name is", "TRINO_PASSWORD"),
    Engine("clickhouse", "ClickHouse", "clickhouse://analyst@clickhouse.example.org:8443/shop?secure=True",
           "CLICKHOUSE_PASSWORD", "CLICKHOUSE_PASSWORD"),
    Engine("athena", "Athena", "athena://?s3_staging_dir=s3://my-bucket/staging/&region_name=eu-west-1", "AWS_PROFILE"),
    Engine("mysql", "MySQL", "mysql://analyst@db.example.org:3306/shop", "MYSQL_PWD", "MYSQL_PWD"),
    Engine("mssql", "SQL Server", "mssql://db.example.org:1433/shop?driver=ODBC+Driver+18+for+SQL+Server",
           "the Windows or Kerberos sign-on; with a user in the address, SQLCMDPASSWORD", "SQLCMDPASSWORD"),
    Engine("oracle", "Oracle", "oracle://analyst@db.example.org:1521/service", "ORACLE_PASSWORD", "ORACLE_PASSWORD"),
    Engine("duckdb", "A DuckDB file", "duckdb:///home/me/shop.duckdb", "none are needed",
           fixed_options={"read_only": True, "autoinstall_known_extensions": "false",
                          "autoload_known_extensions": "false"}),
)  # fmt: skip
ENGINES = {engine.key: engine for engine in _ENGINES}
"""Engines with an example; all other engines of Ibis can be used, too."""
_KEYS_BY_ALIAS = {"postgresql": "postgres", "spark": "pyspark"}
# Ibis turns their address into a path, and an empty one into the database ":memory:", which their drivers refuse.
_ENGINES_WITHOUT_ADDRESS = ("databricks", "athena")
_NAME_PART_PATTERN = re.compile(r'"([^"]+)"|([^."]+)')
_SECRET_PATTERN = re.compile(r"pass|pwd|secret|token|private_key|^auth$", re.IGNORECASE)
# Other engines would upload the file from this computer.
_ENGINES_THAT_READ_FILES = ("pyspark", "databricks", "duckdb")
_READERS_BY_ENDING = {".parquet": "read_parquet", ".csv": "read_csv"}
_READERS_BY_ENDING |= dict.fromkeys((".json", ".jsonl"), "read_json")


def is_address(source_text: str) -> bool:
    """Return True if a text begins with the scheme of an engine that Ibis knows, such as ``postgres:``."""
    address_scheme, colon, _ = source_text.partition(":")
    return bool(colon) and len(address_scheme) > 1 and _is_known(address_scheme)


def _is_known(address_scheme: str) -> bool:
    """Return True if Ibis has an engine of this scheme or its alias."""
    from importlib.metadata import entry_points

    engine_key = _KEYS_BY_ALIAS.get(address_scheme, address_scheme)
    known_schemes = (entry_point.name for entry_point in entry_points(group="ibis.backends"))
    return engine_key in ENGINES or engine_key in known_schemes


def connect(engine_address: str) -> Any:
    """Connect to an engine through Ibis.

    Args:
        engine_address: Such as ``postgres://analyst@host/database`` or ``spark:``.

    Raises:
        InvalidInput: The address contains a password, the driver is missing, or the engine does not answer.
    """
    import ibis

    address_scheme, _, address_remainder = engine_address.partition(":")
    engine_key = _KEYS_BY_ALIAS.get(address_scheme, address_scheme)
    engine = ENGINES.get(engine_key)
    engine_title = engine.title if engine else engine_key
    if not _is_known(address_scheme):
        engine_remedy = f"Choose one of {', '.join(ENGINES)}"
        raise refuse(f"no engine is called {shorten(address_scheme)}", remedy=engine_remedy)
    ibis_address = f"{engine_key}://{address_remainder.removeprefix('//')}"
    split_url = urlsplit(ibis_address)
    query_options = dict(parse_qsl(split_url.query))
    if split_url.password or any(_SECRET_PATTERN.search(option_name) for option_name in query_options):
        origin_phrase = engine.credentials_text if engine else "the environment, or the engine's own profile"
        engine_remedy = f"Leave it out; it is taken from {origin_phrase}"
        raise refuse("a password stands in the address", remedy=engine_remedy)
    connection_options = {} if engine is None else _build_options(engine, split_url)
    try:
        if engine_key in _ENGINES_WITHOUT_ADDRESS:
            return getattr(ibis, engine_key).connect(**query_options, **connection_options)
        backend = ibis.connect(ibis_address, **connection_options)
    except ImportError as error:
        engine_remedy = f"Install it: python -m pip install 'ibis-framework[{engine_key}]'"
        raise refuse(f"the driver for {engine_title} is not installed", remedy=engine_remedy) from error
    except Exception as error:  # every driver has its own
        raise refuse(f"{engine_title} does not answer as it should: {take_first_line(error)}") from error
    if engine_key == "postgres":
        # The server then ends its query if this process is killed. Servers before version 14 lack this setting.
        with suppress(Exception):
            backend.raw_sql("SET client_connection_check_interval = '1s'").close()
    return backend


def _build_options(engine: Engine, split_url: SplitResult) -> dict[str, Any]:
    """Return the fixed options of a connection and the password from the environment; refuse Oracle without one."""
    connection_options = dict(engine.fixed_options)
    if engine.key == "duckdb" and not (split_url.netloc or split_url.path):
        del connection_options["read_only"]  # not possible for a database in memory
    password = os.environ.get(engine.password_variable, "") if split_url.username else ""
    if password and engine.key == "trino":
        # Ibis accepts the password only if the host names the protocol.
        connection_options |= {"auth": password, "host": f"https://{split_url.hostname}"}
    elif password:
        connection_options["password"] = password
    elif engine.key == "oracle":
        needs_phrase = f"a user in the address and a password in {engine.password_variable}"
        raise refuse(f"{engine.title} needs {needs_phrase}")
    return connection_options


def take_first_line(driver_error: Exception) -> str:
    """Return the first line of a driver's error, at most 300 characters; the name of its class if it has no text."""
    return (str(driver_error).strip().splitlines() or [type(driver_error).__name__])[0].rstrip(".")[:300]


def open_table(backend: Any, name: str) -> Table:
    """Return a table of an engine, or files that the engine itself reads, as an Ibis table.

    Args:
        backend: The connection.
        name: Name of the table, with its schema if needed (``schema.table``). Names with a dot may be in double quotes.

    Raises:
        InvalidInput: The engine has no such table or file.
    """
    matching_endings = [ending for ending in _READERS_BY_ENDING if name.rstrip("/").endswith(ending)]
    reader_name = _READERS_BY_ENDING[matching_endings[0]] if matching_endings else None
    try:
        if reader_name is not None and backend.name in _ENGINES_THAT_READ_FILES:
            # Otherwise NaN in place of a user would count as a user: https://github.com/duckdb/duckdb/issues/25521.
            if (backend.name, reader_name) == ("duckdb", "read_parquet"):
                return backend.read_parquet(name, can_have_nan=True)
            return getattr(backend, reader_name)(name)
        try:
            *schema_names, table_name = [
                quoted_name or plain_name for quoted_name, plain_name in _NAME_PART_PATTERN.findall(name)
            ]
            database_name = tuple(schema_names) if len(schema_names) > 1 else "".join(schema_names) or None
            return backend.table(table_name, database=database_name)
        except Exception:
            with suppress(Exception):
                return backend.table(name)  # with a dot in its name
            raise
    except Exception as error:  # every driver has its own
        message = f"table {shorten(name)} cannot be opened: {take_first_line(error)}"
        raise refuse(message, remedy="Check its name and your rights to read it") from error


def count_table(
    table: Table,
    roles: Roles,
    disclosure: Disclosure,
    *,
    name: str,
    counts_copies: bool = False,
    max_pairs: int | None = None,
    value_bins: ValueBins | None = None,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> CountResult:
    """Count contributions per user in a table of an engine, through Ibis.

    The engine returns the histogram, binned totals, the numbers of users per task and the distribution of pairs: no
    row, no user, no task. With ``max_pairs`` the pairs are fetched as codes, if they are that few.

    Args:
        table: An Ibis table, of any engine.
        roles: Roles of the columns of a table of events.
        disclosure: Public or private, as the user states.
        name: Name of the dataset.
        counts_copies: True to look for exact copies of rows, which costs the engine a pass over all columns.
        max_pairs: Largest number of pairs that may be fetched, at most `dpcore.counting.reduce.MAX_FETCHED_PAIRS`; the
            notes of a first run tell their number. None to fetch none.
        value_bins: Public bins in which the rows and the mean of each user's values are fetched, for means and
            quantiles; None to fetch none. There is no grouping column then, and a row is one contribution.
        progress: Called with the fraction done.
        should_stop: Called between queries.

    Raises:
        InvalidInput: The table cannot be counted; all problems at once.
    """
    import ibis.expr.operations as operations

    start_seconds = time.monotonic()
    check_roles(table.columns, roles, name)
    roles = convert_to_events(roles)
    if value_bins is not None and not can_bin_values(roles):
        message = "values by user need a column of values, no groups, and rows as contributions"
        raise refuse(message, remedy="Name --value, leave out --task and --count, or count twice")
    notes = [binned_values.BINNED_NOTE] if value_bins is not None else []
    steps = Steps(progress, count_queries(roles) + (value_bins is not None))
    value_type = None if roles.value is None or roles.yes_text else table[roles.value].type()
    if value_type is not None and not value_type.is_numeric():
        message = f"column {shorten(roles.value or '')} has the type {value_type}, not numbers"
        raise refuse(message, remedy="Convert it to numbers in a view, or choose another column")
    has_nan = bool(table.get_backend().has_operation(operations.IsNan))
    rows = query.select_events(table, roles, has_nan=has_nan)

    def run_query(query_expression: Table) -> Columns:
        """Run a query in the engine, unless Stop was pressed, and return its columns as arrays by name."""
        check_stop(should_stop)
        arrow_table = query_expression.to_pyarrow()
        steps.finish()
        arrays_by_name = {column: arrow_table[column].to_numpy() for column in arrow_table.column_names}
        # Some engines return sums of integers as decimals, in arrays of objects.
        return {c: a.astype(np.float64) if a.dtype.kind == "O" else a for c, a in arrays_by_name.items()}

    def query_number(query_expression: Table) -> int:
        """Run a query of one number in the engine, as one more step, and return it; null counts as 0."""
        steps.num_steps += 1
        (number_column,) = run_query(query_expression).values()
        return int(np.nan_to_num(number_column)[0])

    fetch_values = (
        partial(fetch_binned_values, run_query, roles.value or "", value_bins) if value_bins else None
    )
    try:
        if roles.periods is not None:
            steps.num_steps += 1
            note_outside(run_query(count_outside(table, roles.periods)), roles.periods, notes)
        facets = Reduction(
            rows, roles, tuple(table.columns), run_query, None, notes=notes, max_fetched_pairs=max_pairs or 0,
            fetch_values=fetch_values,
        ).reduce()  # fmt: skip
        has_text_users = query.list_user_columns(rows)[0] in query.list_text_columns(rows)
        if has_text_users and roles.contribution is Contribution.ROWS:
            note_placeholders(query_number(query.count_placeholders(rows, PLACEHOLDERS)), notes)
        if len(table.columns) > 2:
            num_copies = None
            if counts_copies:
                num_copies = query_number(query.count_copies(table, table.columns, roles, has_nan))
            note_copies(num_copies, notes)
    except StoppedError:
        return CountResult.build(start_seconds, None)
    except InvalidInput:
        raise
    except Exception as error:  # every driver has its own
        message = f"the engine could not answer: {take_first_line(error)}"
        raise refuse(message, remedy="Check the connection and your rights to read the table") from error
    rule_layout = build_rule_layout(roles)
    dataset = build_counted_dataset(facets, name, f"Table {name}.", roles, disclosure, notes, rule_layout)
    return CountResult.build(start_seconds, dataset)


def can_bin_values(roles: Roles) -> bool:
    """Return True if values of users can be counted in bins: there are values and no groups, and rows are counted."""
    return roles.value is not None and roles.task is None and roles.contribution is Contribution.ROWS


def write_recipe(
    engine: Engine, roles: Roles, table_name: str, value_bins: ValueBins | None = None
) -> tuple[str, str, str]:
    """Write the shell command, the Python code and the SQL that count the table of an engine.

    Args:
        engine: One of `ENGINES`.
        roles: Roles of the columns of a table of events.
        table_name: Name of the table in the engine.
        value_bins: Bins in which the values of each user are counted, too; None for the histogram alone.
    """
    user_columns = roles.privacy_unit or ("user_id",)
    command_words = ["python", "-m", "dpcore.counting", "--from", engine.example_address]
    command_words += ["--table", table_name]
    command_words += [word for key_column in user_columns for word in ("--user", key_column)]
    command_words += [word for key_column in roles.groups for word in ("--task", key_column)]
    command_words += ["--value", roles.value] if roles.value is not None else []
    if roles.contribution is not Contribution.ROWS:
        command_words += ["--count", COUNT_OPTIONS[roles.contribution]]
    command_words += ["--missing-users", "one"] if roles.missing_users is MissingUsers.ONE_USER else []
    missing_text = "" if roles.missing_rule is None else str(roles.missing_rule)
    filters_text = "; ".join(f.text for f in roles.filters)
    rule_options = {"--missing": missing_text, "--yes": roles.yes_text, "--filters": filters_text}
    if roles.periods is not None:
        rule_options |= {"--date": roles.periods.column, "--periods": roles.periods.span}
    command_words += [word for option, text in rule_options.items() if text for word in (option, text)]
    if value_bins is not None:
        bin_words = [format_digits(bin_number) for bin_number in vars(value_bins).values()]
        command_words += ["--values-to", "values.json", "--value-bins", *bin_words]
    python_code = _write_python(engine, roles, table_name, user_columns, value_bins)
    shell_command = shlex.join([*command_words, "--to", "histogram.csv"])
    return shell_command, python_code, write_sql(engine, roles, table_name, value_bins)


COUNT_OPTIONS = dict(zip(Contribution, ("rows", "distinct-tasks", "total"), strict=True))
"""The value of ``--count`` for each kind of contribution."""


def _write_python(
    engine: Engine, roles: Roles, table_name: str, user_columns: tuple[str, ...], value_bins: ValueBins | None
) -> str:
    """Write the Python code that counts the table of an engine."""
    import_code = bins_code = ""
    if value_bins is not None:
        import_code = "\nfrom dpcore.data.value_bins import ValueBins"
        bins_code = f", value_bins=ValueBins{tuple(vars(value_bins).values())}"
    columns_code = f"{list(user_columns)}, {roles.value!r}, {list(roles.groups)}"
    rules_by_argument: dict[str, Any] = {"missing": roles.missing_rule, "yes": roles.yes_text or None}
    rules_by_argument |= {"periods": roles.periods, "filters": roles.filters or None}
    rules_code = "".join(f", {name}={rule!r}" for name, rule in rules_by_argument.items() if rule is not None)
    import_code += "\nfrom dpcore.data.periods import Periods" if roles.periods is not None else ""
    import_code += "\nfrom dpcore.data.row_filter import RowFilter" if roles.filters else ""
    return f"""from dpcore import counting
from dpcore.common.privacy import Disclosure
from dpcore.data.column_roles import MissingUsers, Roles{import_code}
from dpcore.dataset import Contribution

backend = counting.connect({engine.example_address!r})
table = counting.open_table(backend, {table_name!r})
roles = Roles.of_events({columns_code}, {roles.contribution}, {roles.missing_users}{rules_code})
counted = counting.count_table(table, roles, Disclosure.PRIVATE, name={table_name!r}{bins_code})
print(counted.dataset.histogram)"""


def write_sql(engine: Engine, roles: Roles, table_name: str, value_bins: ValueBins | None = None) -> str:
    """Write the SQL of the histogram, and of the values by bin if there are bins, for an engine.

    An SQL comment if Ibis cannot; empty without a user column.
    """
    import ibis
    import ibis.common.exceptions

    if not roles.privacy_unit:
        return ""
    needed_columns = [*roles.privacy_unit, *roles.groups, *([roles.value] if roles.value is not None else [])]
    types_by_column = {column: "float64" if column == roles.value else "string" for column in needed_columns}
    types_by_column |= {} if roles.periods is None else {roles.periods.column: "timestamp"}
    types_by_column |= {f.column: "string" if f.is_of_text else "float64" for f in roles.filters}
    rows = ibis.table(types_by_column, name=table_name)
    for has_nan in (True, False):
        try:
            events = query.select_events(rows, roles, has_nan=has_nan)
            if roles.missing_rule is not None and roles.value is not None:
                events = query.settle_missing(events, roles.missing_constant)
            users_table = query.count_per_user(events, roles.contribution)
            queries = [query.count_users_by_size(users_table, roles.contribution)]
            if value_bins is not None:
                counted_rows = query.select_counted(events, roles.missing_users)
                queries.append(query.bin_user_values(counted_rows, *vars(value_bins).values()))
            return ";\n\n".join(
                query.to_sql(expression, engine.dialect or engine.key) for expression in queries
            )
        except (ibis.common.exceptions.IbisError, NotImplementedError, AttributeError, ValueError):
            continue
    return f"-- Ibis writes this SQL once the driver for {engine.title} is installed."
