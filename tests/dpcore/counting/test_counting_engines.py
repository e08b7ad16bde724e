"""What is said of each engine, against the source of the Ibis that is installed: no driver is needed for that."""

import ast
import contextlib
import importlib.util
import inspect
from pathlib import Path
from urllib.parse import unquote_plus, urlsplit

import ibis
import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution

BACKENDS = Path(importlib.util.find_spec("ibis.backends").origin).parent
KEPT = ("_from_url", "_convert_kwargs", "do_connect")
NEEDS_ITS_DRIVER = ("pyspark",)  # its address becomes a Spark session; `make test-engines` connects for real


class FromPath:
    """As `ibis.backends.UrlFromPath`, for engines of which we say that its way of reading an address does not fit."""

    def _from_url(self, url, **kwargs):
        return self.connect(
            database=Path(url.netloc + url.path) if url.netloc + url.path else ":memory:", **kwargs
        )


def without_driver(key):
    """The backend of Ibis with its reading of an address and the arguments of its `do_connect`, and no more."""
    tree = ast.parse((BACKENDS / key / "__init__.py").read_text(encoding="utf-8"))
    backend = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Backend")
    from_path = any(getattr(base, "id", "") == "UrlFromPath" for base in backend.bases)
    functions = {node.name: node for node in backend.body
            if isinstance(node, ast.FunctionDef) and node.name in KEPT}  # fmt: skip
    functions["do_connect"].body = [ast.Pass()]
    for node in functions.values():
        node.returns = None
        for argument in [*node.args.args, *node.args.kwonlyargs, node.args.kwarg]:
            if argument is not None:
                argument.annotation = None
    names = {"unquote_plus": unquote_plus, "contextlib": contextlib, "ast": ast, "ArrowCursor": None}
    exec(compile(ast.fix_missing_locations(ast.Module(list(functions.values()), [])), key, "exec"), names)

    class Backend(FromPath):
        name = key

        def _convert_kwargs(self, kwargs):
            pass

        def connect(self, **kwargs):
            bound = inspect.signature(names["do_connect"]).bind(self, **kwargs).arguments
            further = next((k for k in ("kwargs", "config", "_") if k in bound), "")
            self.given = {k: v for k, v in bound.items() if k not in ("self", further)}
            self.given |= bound.get(further, {})
            return self

    for name in ("_from_url", "_convert_kwargs"):
        if name in names:
            setattr(Backend, name, names[name])
    return Backend(), from_path


@pytest.fixture
def connected(monkeypatch):
    """Connects without a driver; gives what the driver would be given."""

    def connect(address, **environment):
        for engine in counting.ENGINES.values():
            if engine.password_variable:
                monkeypatch.delenv(engine.password_variable, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        backend, _ = without_driver(urlsplit(address).scheme)

        def ibis_connect(resource, **kwargs):
            from urllib.parse import parse_qsl, urlparse

            return backend._from_url(
                urlparse(resource), **(dict(parse_qsl(urlparse(resource).query)) | kwargs)
            )

        monkeypatch.setattr(ibis, "connect", ibis_connect)
        monkeypatch.setitem(ibis.__dict__, backend.name, backend)
        return counting.connect(address).given

    return connect


EXPECTED = {
    "postgres": {"host": "db.example.org", "port": 5432, "user": "analyst", "database": "shop"},
    "bigquery": {"project_id": "my-project", "dataset_id": "my_dataset"},
    "snowflake": {
        "user": "analyst", "account": "account", "database": "database", "schema": "schema", "warehouse": "small",
        "authenticator": "externalbrowser", "create_object_udfs": False,
    },
    "databricks": {},
    "trino": {"host": "https://trino.example.org", "port": 443, "user": "analyst", "database": "catalog",
              "schema": "schema", "auth": "s3cr3t"},
    "clickhouse": {"host": "clickhouse.example.org", "port": 8443, "user": "analyst", "database": "shop",
                   "secure": True, "password": "s3cr3t"},
    "athena": {"s3_staging_dir": "s3://my-bucket/staging/", "region_name": "eu-west-1"},
    "mysql": {"host": "db.example.org", "port": 3306, "user": "analyst", "database": "shop", "password": "s3cr3t"},
    "mssql": {"host": "db.example.org", "port": 1433, "database": "shop", "driver": "ODBC Driver 18 for SQL Server"},
    "oracle": {"host": "db.example.org", "port": 1521, "user": "analyst", "database": "service", "password": "s3cr3t"},
    "duckdb": {"database": Path("/home/me/shop.duckdb"), "read_only": True, "autoinstall_known_extensions": "false",
               "autoload_known_extensions": "false"},
}  # fmt: skip


@pytest.mark.parametrize("key", EXPECTED)
def test_an_address_reaches_the_driver_as_it_reads(connected, key):
    engine = counting.ENGINES[key]
    environment = {engine.password_variable: "s3cr3t"} if engine.password_variable else {}
    assert connected(engine.example_address, **environment) == EXPECTED[key]


def test_every_engine_is_looked_at_and_can_be_installed():
    from importlib.metadata import metadata

    assert {*EXPECTED, *NEEDS_ITS_DRIVER} == set(counting.ENGINES)
    assert set(counting.ENGINES) <= set(metadata("ibis-framework").get_all("Provides-Extra"))


def test_ibis_takes_the_address_of_databricks_and_athena_for_a_path():
    # The reason why they are connected without it; where this fails, Ibis reads their addresses now.
    for key in ("databricks", "athena"):
        assert without_driver(key)[1]


def test_a_password_goes_with_a_user_only(connected):
    assert "password" not in connected("mssql://db.example.org/shop", SQLCMDPASSWORD="s3cr3t")
    assert connected("mssql://me@db.example.org/shop", SQLCMDPASSWORD="s3cr3t")["password"] == "s3cr3t"
    assert connected("snowflake://?connection_name=mine") == {
        "connection_name": "mine",
        "create_object_udfs": False,
    }
    without = connected("trino://me@host:8080/c/s")
    assert without == {"user": "me", "host": "host", "port": 8080, "database": "c", "schema": "s"}
    with pytest.raises(InvalidInput, match="a password in ORACLE_PASSWORD"):
        connected("oracle://me@host/service")


@pytest.mark.parametrize(
    "address",
    [
        "mysql://me:s3cr3t@host/db", "mysql://me@host/db?passwd=s3cr3t", "databricks://?access_token=s3cr3t",
        "snowflake://me@account/db?password=s3cr3t", "athena://?aws_secret_access_key=s3cr3t&s3_staging_dir=s3://b/",
        "snowflake://me@account?private_key_file_pwd=s3cr3t", "trino://me@host/c?auth=s3cr3t",
    ],
)  # fmt: skip
def test_secrets_in_an_address_are_refused_and_not_repeated(address):
    with pytest.raises(InvalidInput, match="A password stands in the address") as refused:
        counting.connect(address)
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # Ibis 12.0 still calls what DuckDB 2.0 renames
def test_a_duckdb_file_is_only_read(tmp_path):
    import duckdb

    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE events AS SELECT range % 7 AS who FROM range(100)")
        connection.execute('CREATE SCHEMA logs; CREATE TABLE logs."events.2025" AS SELECT 1 AS dotted')
        connection.execute('CREATE TABLE "orders.2025" AS SELECT 1 AS main_dotted')
    backend = counting.connect(f"duckdb://{path}")
    for name, columns in {
        "events": ("who",),
        "main.events": ("who",),
        'logs."events.2025"': ("dotted",),
        '"orders.2025"': ("main_dotted",),
        "orders.2025": ("main_dotted",),
    }.items():
        assert counting.open_table(backend, name).columns == columns
    with pytest.raises(InvalidInput, match=r"Table none\.2025 cannot be opened"):
        counting.open_table(backend, "none.2025")
    with pytest.raises(duckdb.Error, match="read-only"):
        backend.raw_sql("CREATE TABLE other AS SELECT 1")
    backend.disconnect()


def test_the_code_for_an_engine_imports_what_there_is():
    roles = Roles(
        TableKind.EVENTS, user="user", task="task", contribution=Contribution.DISTINCT_TASKS,
        missing_users=MissingUsers.ONE_USER,
    )  # fmt: skip
    for engine in counting.ENGINES.values():
        imported = {}
        lines = counting.write_recipe(engine, roles, "events")[1].splitlines()
        exec("\n".join(line for line in lines if line.startswith("from ")), imported)
        assert {"counting", "Disclosure", "Roles", "Contribution", "MissingUsers"} <= set(imported)
