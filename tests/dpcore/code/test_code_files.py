"""Programs read a file as the app does: as many users and rows, the same amounts, and no user above the bound."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

from dpcore.code import LIBRARIES, ClassifierTraining, Quantity, ReleaseSpec, write
from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.common.strict_json import JsonValue
from dpcore.counting import count, open_files, read_table
from dpcore.data import saved_dataset, tables
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.design_matrix import Design, Feature, FeatureKind, build_dataset
from dpcore.dataset import Dataset, LabelledRows
from dpcore.report import script
from dpcore.report.script import CodeBuilder
from tests.dpcore.code import files
from tests.dpcore.code.files import FURTHER, GROUP, NASTY, USER, VALUE, Nasty
from tests.dpcore.code.specs import MODULES, run_program

ALL_FOUR = pytest.mark.parametrize(
    "library", [library for library in LIBRARIES if library is not Program.BIGQUERY]
)
ALL_FILES = {**NASTY, **FURTHER}
PYTHON_AND_OPENDP = pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])


def in_the_app(nasty: Nasty, folder: Path, small_bytes: int) -> Dataset:
    (folder / nasty.name).write_bytes(nasty.content())
    library = MissingUsers.ONE_USER if nasty.layout.missing_is_a_user else MissingUsers.LEAVE_OUT
    roles = Roles(TableKind.EVENTS, user=USER, value=VALUE, task=GROUP, missing_users=library)
    source = open_files([folder / nasty.name], small_bytes=small_bytes)
    if names := nasty.layout.files[0].names:
        assert source.columns == tuple(f"column {at}" for at in range(1, len(names) + 1))
        source = source.with_names(names)
    return count(source, roles, Disclosure.PRIVATE).dataset


@pytest.mark.few(3)
@pytest.mark.long_but(
    "thousands marks-0", "German Excel-5000000", "Parquet-5000000", "UTF-16-5000000", "workbook-0"
)
@pytest.mark.parametrize("small_bytes", [5_000_000, 0])
@pytest.mark.parametrize("name", ALL_FILES)
def test_the_app_says_how_it_read_a_file(name: str, small_bytes: int, empty_folder: Path) -> None:
    nasty = ALL_FILES[name]
    data = in_the_app(nasty, empty_folder, small_bytes)
    assert data.layout == nasty.layout
    assert data.histogram.num_users == len(nasty.sizes())
    assert data.histogram.num_rows == len(nasty.rows)
    np.testing.assert_allclose(np.sort(data.values.values), sorted(amount for *_, amount in nasty.rows))
    # A script from Downloads brings the same data again.
    code = CodeBuilder()
    cell = script.write_dataset_cell(code, script.ScriptSource(data, needs_rows=True), False)
    script_names: dict[str, Any] = {}
    exec("\n".join([*code.list_import_lines(), cell]), script_names)
    assert script_names["data"].histogram == data.histogram
    np.testing.assert_allclose(np.sort(script_names["data"].values.values), np.sort(data.values.values))
    # A session file carries it, and it is no part of what the data are.
    saved = saved_dataset.to_json(data).dataset_json
    problems = Problems()
    reopened = saved_dataset.from_json(JsonValue(saved, "", problems))
    assert not problems.entries
    assert reopened.layout == data.layout
    assert reopened.digest == data.digest


@pytest.mark.few(6)
@pytest.mark.thinned
@PYTHON_AND_OPENDP
@pytest.mark.parametrize("name", ALL_FILES)
def test_a_program_counts_users_and_rows_as_the_app_does(
    name: str, library: Program, empty_folder: Path
) -> None:
    files.check_file(ALL_FILES[name], library, empty_folder)


@pytest.mark.thinned
@pytest.mark.parametrize("cell", ["", "abc", "1.5", "12.34,5", "1e999", "nan"])
@ALL_FOUR
def test_a_cell_that_is_no_number_stops_a_program_before_it_spends(
    cell: str, library: Program, empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the app refuses such a file; no library is used before, so that no epsilon is spent."""
    modules = MagicMock()
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, modules)
    nasty = NASTY["German Excel"]
    (empty_folder / nasty.name).write_bytes(nasty.content() + f"u1;p1;{cell}\n".encode())
    with pytest.raises(SystemExit, match="Nothing was released, and no epsilon was spent"):
        files.run_nasty(nasty, library, Quantity.SUM, max_total=1.0)
    assert [name for name, *_ in modules.mock_calls if not name.endswith("enable_features")] == []


NUMBERS = {
    ",": {
        "1.234,5": 1234.5, "1.234": 1234.0, "12.345.678": 12345678.0, "1 234,5": 1234.5, "1'234,5": 1234.5,
        "1\u202f234": 1234.0, "-3,5": -3.5, "\u22123,5": -3.5, "+2": 2.0, ",5": 0.5, "5,": 5.0, "1e3": 1000.0,
        "1,5e-2": 0.015, "007": 7.0, " 4,5 ": 4.5,
        "1.5": None, "12.34": None, "1.2345,6": None, "1,2,3": None, "0.123": None, "1_000": None, "0x1F": None,
        "\u0661": None, "": None, "inf": None,
    },
    ".": {
        "1,234.5": 1234.5, "1,234": 1234.0, "1,234,567.25": 1234567.25, "1 234.5": 1234.5, "1.5": 1.5, ".5": 0.5,
        "1,5": None, "12,34": None, "1,2345.6": None, "1.2.3": None, "0,123": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("decimal", NUMBERS)
def test_marks_are_read_strictly(decimal: str, empty_folder: Path) -> None:
    text = write(
        replace(NASTY["German Excel"], layout=marked(decimal)).make_spec(Quantity.SUM, max_total=1.0),
        Program.PYTHON,
    )
    names: dict[str, Any] = {"pd": pd}
    tree = ast.parse(text.text)
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ("text", "numbers")
    ]
    exec(compile(ast.Module(functions, []), "program", "exec"), names)
    dataset = names["numbers"](pd.Series(list(NUMBERS[decimal])), decimal)
    finite = [float(cell) if np.isfinite(cell) else None for cell in dataset]
    assert finite == list(NUMBERS[decimal].values())


def marked(decimal: str) -> tables.TableLayout:
    return replace(NASTY["German Excel"].layout, numbers=((VALUE, decimal),))


@PYTHON_AND_OPENDP
def test_several_files_are_read_one_after_another(library: Program, empty_folder: Path) -> None:
    pieces = [NASTY["German Excel"], FURTHER["JSON Lines"]]
    for piece in pieces:
        (empty_folder / piece.name).write_bytes(piece.content().replace(b"12.", b"13."))
    layouts = [piece.layout.files[0] for piece in pieces]
    data = count(
        open_files([empty_folder / piece.name for piece in pieces]),
        Roles(TableKind.EVENTS, user=USER),
        Disclosure.PRIVATE,
    ).dataset
    assert data.layout == tables.TableLayout(tuple(layouts))
    for bound, truth in ((1, data.histogram.num_users), (10**6, data.histogram.num_rows)):
        choice = replace(pieces[0].make_spec(Quantity.COUNT, max_rows=bound), layout=data.layout)
        names = run_program(choice, library)
        assert len(names["events"] if library is Program.PYTHON else names["events"].collect()) == 2 * len(
            files.ROWS
        )
        if bound == 1:
            assert abs(names["count"] - truth) < 0.5


TABLE = """\
Wer;Menge;Art;Ziel
 a;1.234,5;rot;2,5
a ;7;blau;1,5
b;NA;rot;4
b;3,25; ;1
b;2.000;rot ;3,75
;1;rot;1
NA;4;blau;n/a
NA;5;blau;6,5
c;5,5;rot;2
c;8;blau;3
"""


def models_table() -> tuple[Dataset, LabelledRows]:
    features = (Feature("Menge"), Feature("Art", FeatureKind.CATEGORIES, "rot"))
    table = read_table(TABLE.encode("utf-16"), "tabelle.csv")
    data = build_dataset(table, Design("Ziel", "Wer", features), Disclosure.PUBLIC)
    assert data.table.labels.tolist() == [2.5, 1.5, 3.75, 6.5, 2.0, 3.0]  # rows in which nothing is missing
    return data, data.table


def test_the_labels_of_a_regression_are_those_of_the_page(empty_folder: Path) -> None:
    data, table = models_table()
    (empty_folder / "tabelle.csv").write_bytes(TABLE.encode("utf-16"))
    weights = pd.DataFrame({"row": range(6), "user_code": table.user_codes, "x": 1.0})
    weights.to_parquet("regression_matrix.parquet")
    choice = ReleaseSpec(
        Quantity.COEFFICIENTS, 1.0, Disclosure.PUBLIC, Neighbours.REPLACE_VALUES, largest_user_weight=2.0,
        lower=0.0, upper=5.0, file=data.name, layout=data.layout, has_known_columns=True, privacy_unit=("Wer",),
        value_column="Ziel",
    )  # fmt: skip
    names = run_program(choice, Program.PYTHON)
    assert names["labels"].tolist() == np.clip(table.labels, 0.0, 5.0).tolist()
    weights.iloc[1:].to_parquet("regression_matrix.parquet")
    with pytest.raises(SystemExit, match="no epsilon was spent"):
        run_program(choice, Program.PYTHON)


def test_the_rows_of_a_classifier_are_those_of_the_page(empty_folder: Path) -> None:
    data, table = models_table()
    (empty_folder / "tabelle.csv").write_bytes(TABLE.encode("utf-16"))
    training = ClassifierTraining(
        number_ranges=(("Menge", (0.0, 10.0)),), category_levels=(("Art", ("blau",)),), has_intercept=True,
        max_feature_norm=1.0, positive_above=2.2, slope_expression="margin - 1.0", num_steps=1, learning_rate=1.0,
        first_averaged_step=1, radius=1.0, gradient_noise_std=1.0, weight_noise_std=1.0,
    )  # fmt: skip
    choice = ReleaseSpec(
        Quantity.CLASSIFIER, 1.0, Disclosure.PUBLIC, threshold=2.0, delta=1e-6, training=training, file=data.name,
        layout=data.layout, has_known_columns=True, privacy_unit=("Wer",), value_column="Ziel",
    )  # fmt: skip
    names = run_program(choice, Program.PYTHON)
    features = {name: np.asarray(column) for name, column in names["features"].items()}
    assert list(features) == ["intercept", "Menge", "Art: blau"]
    mapped = np.clip(table.features[:, table.feature_names.index("Menge")], 0.0, 10.0) / 5.0 - 1.0
    np.testing.assert_allclose(features["Menge"], mapped)
    np.testing.assert_array_equal(
        features["Art: blau"], table.features[:, table.feature_names.index("Art: blau")]
    )
    np.testing.assert_array_equal(names["y"], np.where(table.labels > 2.2, 1.0, -1.0))
    np.testing.assert_array_equal(names["size"], np.bincount(table.user_codes)[table.user_codes])
