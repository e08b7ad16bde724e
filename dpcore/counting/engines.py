"""Engines that Ibis speaks to: their addresses, where their credentials come from, and connecting.

Credentials come from the environment or from the engine's own profiles, never from an address. What is said of each
engine was checked against ``_from_url`` and ``do_connect`` in ``ibis/backends/<engine>/__init__.py`` of Ibis 12.0; a
test reads them again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from dpcore.common.errors import refuse
from dpcore.data.column_names import shown

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
        password: Environment variable that is handed over as the password, where Ibis gives the driver an empty one,
            so that the driver looks nowhere else; empty where the driver finds its credentials by itself.
        fixed: What Ibis is told besides: nothing is written to the engine.
    """

    key: str
    title: str
    address: str
    credentials: str
    dialect: str
    password: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)


_ALL = (
    Engine("postgres", "PostgreSQL", "postgres://analyst@db.example.org:5432/shop",
           "PGPASSWORD, or a line in ~/.pgpass", "postgres"),
    Engine("pyspark", "Spark", "pyspark://",
           "spark-defaults.conf and the environment of the Spark session", "databricks"),
    Engine("bigquery", "BigQuery", "bigquery://my-project/my_dataset",
           "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS", "bigquery"),
    # Else Ibis creates a database of its own there, called ibis_udfs.
    Engine("snowflake", "Snowflake", "snowflake://analyst@account/database/schema?warehouse=small&authenticator=externalbrowser",
           "the browser sign-on; or name a connection of ~/.snowflake/connections.toml: "
           "snowflake://?connection_name=mine", "snowflake", fixed={"create_object_udfs": False}),
    Engine("databricks", "Databricks", "databricks://",
           "DATABRICKS_SERVER_HOSTNAME, DATABRICKS_HTTP_PATH and DATABRICKS_TOKEN", "databricks"),
    Engine("trino", "Trino", "trino://analyst@trino.example.org:443/catalog/schema",
           "TRINO_PASSWORD, which is sent over HTTPS; without it only the user's name is", "trino", "TRINO_PASSWORD"),
    Engine("clickhouse", "ClickHouse", "clickhouse://analyst@clickhouse.example.org:8443/shop?secure=True",
           "CLICKHOUSE_PASSWORD", "clickhouse", "CLICKHOUSE_PASSWORD"),
    Engine("athena", "Athena", "athena://?s3_staging_dir=s3://my-bucket/staging/&region_name=eu-west-1",
           "AWS_PROFILE, or the AWS environment variables", "athena"),
    Engine("mysql", "MySQL", "mysql://analyst@db.example.org:3306/shop", "MYSQL_PWD", "mysql", "MYSQL_PWD"),
    Engine("mssql", "SQL Server", "mssql://db.example.org:1433/shop?driver=ODBC+Driver+18+for+SQL+Server",
           "the Windows or Kerberos sign-on; with a user in the address, SQLCMDPASSWORD", "mssql", "SQLCMDPASSWORD"),
    Engine("oracle", "Oracle", "oracle://analyst@db.example.org:1521/service", "ORACLE_PASSWORD", "oracle",
           "ORACLE_PASSWORD"),
    Engine("duckdb", "A DuckDB file", "duckdb:///home/me/shop.duckdb", "none are needed", "duckdb",
           fixed={"read_only": True, "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}),
)  # fmt: skip
ENGINES = {engine.key: engine for engine in _ALL}
"""Engines with an example of their own; every other one that Ibis knows can be named too."""
_ALIASES = {"postgresql": "postgres", "spark": "pyspark"}
# Ibis makes a path of their address, and a database ":memory:" of none, which their drivers do not know.
_NO_ADDRESS = ("databricks", "athena")
_NAME_PARTS = re.compile(r'"([^"]+)"|([^."]+)')
_SECRET = re.compile(r"pass|pwd|secret|token|private_key|^auth$", re.IGNORECASE)
# Others would take the file from this computer and send it.
_READS_FILES = ("pyspark", "databricks", "duckdb")
_FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}


def is_address(text: str) -> bool:
    """Return True if a text names an engine, not a file."""
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
        raise refuse(f"no engine is called {shown(scheme)}", remedy=f"Choose one of {known}")
    target = f"{key}:{rest if rest.startswith('//') else '//' + rest}"
    parts = urlsplit(target)
    asked = dict(parse_qsl(parts.query))
    if parts.password or any(_SECRET.search(name) for name in asked):
        where = ENGINES[key].credentials if key in ENGINES else "the environment, or the engine's own profile"
        what = "a password stands in the address, where other programs and the shell's history can read it"
        raise refuse(what, remedy=f"Leave it out; it is taken from {where}")
    options = _options(key, parts)
    try:
        if key in _NO_ADDRESS:
            return getattr(ibis, key).connect(**asked, **options)
        backend = ibis.connect(target, **options)
    except ImportError as error:
        remedy = f"Install it: python -m pip install 'ibis-framework[{key}]'"
        raise refuse(f"the driver for {title} is not installed", remedy=remedy) from error
    except Exception as error:  # every driver has its own
        raise refuse(f"{title} does not answer as it should: {first_line(error)}") from error
    if key == "postgres":
        # It then ends its query if this process is killed. Servers before version 14 have no such setting.
        with contextlib.suppress(Exception):
            backend.raw_sql("SET client_connection_check_interval = '1s'").close()
    return backend


def _options(key: str, parts: SplitResult) -> dict[str, Any]:
    """Return what Ibis is told besides the address."""
    engine = ENGINES.get(key)
    if engine is None:
        return {}
    options = dict(engine.fixed)
    if key == "duckdb" and not (parts.netloc or parts.path):
        del options["read_only"]  # one in memory cannot be
    password = os.environ.get(engine.password, "") if engine.password and parts.username else ""
    if password and key == "trino":
        # Ibis takes the password for one only where the host names the protocol.
        options |= {"auth": password, "host": f"https://{parts.hostname}"}
    elif password:
        options["password"] = password
    elif key == "oracle":
        what = f"{engine.title} needs a user in the address and a password in {engine.password}"
        raise refuse(what, remedy=f"Set {engine.password}")
    return options


def first_line(error: Exception) -> str:
    """Return what an engine's driver said, short enough for a sentence."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.rstrip(".")[:300]


def open_table(backend: Any, name: str) -> Table:
    """Return a table of an engine, or files that the engine itself reads.

    Args:
        backend: The connection.
        name: Of the table, as ``schema.table`` where need be. A name with a dot in it may stand in double quotes.

    Raises:
        InvalidInput: The engine has no such table or file.
    """
    reader = next((method for end, method in _FILES.items() if name.rstrip("/").endswith(end)), None)
    try:
        if reader is not None and backend.name in _READS_FILES:
            # Else NaN in place of a user would be one: https://github.com/duckdb/duckdb/issues/25521.
            nan = {"can_have_nan": True} if (backend.name, reader) == ("duckdb", "read_parquet") else {}
            return getattr(backend, reader)(name, **nan)
        try:
            *above, last = [quoted or plain for quoted, plain in _NAME_PARTS.findall(name)]
            return backend.table(
                last, database=tuple(above) if len(above) > 1 else above[0] if above else None
            )
        except Exception:
            with suppress(Exception):
                return backend.table(name)  # with a dot in its name
            raise
    except Exception as error:  # every driver has its own
        what = f"table {shown(name)} cannot be opened: {first_line(error)}"
        raise refuse(what, remedy="Check its name, its schema, and your rights to read it") from error
