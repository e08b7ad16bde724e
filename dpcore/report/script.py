"""A choice as a Python script in cells.

The script has the same data and parameters, the same numbers, the same curves. It makes the call that the page makes,
and its figures are a loop over the answer's plots. It holds what was entered, never a number of private data: those
it reads from the person's own files.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.version import VERSION
from dpcore.data.column_roles import MissingUsers, Roles, TableKind, name_size_column, name_users_column
from dpcore.data.design_matrix import Design
from dpcore.dataset import Dataset
from dpcore.report.settings_file import Call, list_reading_options

NUMBERS_PER_LINE = 12
"""Numbers of a list on one line."""


@dataclass
class CodeBuilder:
    """Python code under construction, with what it imports as (module, name).

    Attributes:
        imports: (module, name) of everything used.
    """

    imports: set[tuple[str, str]] = field(default_factory=set)

    def import_name(self, name: str, module_name: str) -> str:
        """Add an import of ``name`` from ``module_name`` and return the name."""
        self.imports.add((module_name, name))
        return name

    def write(self, any_value: Any, indent: int = 0) -> str:
        """Return a Python expression that builds ``any_value``; numbers have all digits.

        Of an object, fields that hold their default, or follow from others, are omitted.

        Raises:
            TypeError: A value of a kind that parameters do not hold.
        """
        if isinstance(any_value, np.generic):
            any_value = any_value.item()
        if isinstance(any_value, enum.Enum):
            value_type = type(any_value)
            return f"{self.import_name(value_type.__name__, value_type.__module__)}.{any_value.name}"
        if any_value is None or isinstance(any_value, bool | int | float | str):
            return repr(any_value)
        if isinstance(any_value, np.ndarray):
            return self.write(any_value.tolist(), indent)
        if isinstance(any_value, tuple):
            entries_code = ", ".join(self.write(contained_value, indent) for contained_value in any_value)
            return f"({entries_code},)" if len(any_value) == 1 else f"({entries_code})"
        if isinstance(any_value, list):
            return self._write_list(any_value, indent)
        if is_dataclass(any_value) and not isinstance(any_value, type):
            return self._write_object(any_value, indent)
        raise TypeError(f"cannot write {type(any_value).__name__} as Python")

    def _write_list(self, list_values: list[Any], indent: int) -> str:
        """Return the expression of a list, on several lines if it is long."""
        entry_codes = [self.write(list_value, indent + 4) for list_value in list_values]
        if len(entry_codes) <= NUMBERS_PER_LINE:
            return f"[{', '.join(entry_codes)}]"
        indentation = " " * (indent + 4)
        starts = range(0, len(entry_codes), NUMBERS_PER_LINE)
        entry_lines = [", ".join(entry_codes[start : start + NUMBERS_PER_LINE]) for start in starts]
        return (
            "[\n"
            + "".join(f"{indentation}{entry_line},\n" for entry_line in entry_lines)
            + " " * indent
            + "]"
        )

    def _write_object(self, dataclass_object: Any, indent: int) -> str:
        """Return the call that builds a dataclass object; fields that hold their default are omitted."""
        value_type = type(dataclass_object)
        class_name = self.import_name(value_type.__name__, value_type.__module__)
        indentation = " " * (indent + 4)
        argument_lines = []
        for f in fields(dataclass_object):
            field_value = getattr(dataclass_object, f.name)
            if f.init and (f.default is MISSING or not _is_default(field_value, f.default)):
                argument_lines.append(f"{indentation}{f.name}={self.write(field_value, indent + 4)},\n")
        arguments_code = "\n" + "".join(argument_lines) + " " * indent if argument_lines else ""
        return f"{class_name}({arguments_code})"

    def list_import_lines(self) -> list[str]:
        """Return the import statements, one per module, sorted."""
        names_by_module: dict[str, list[str]] = {}
        for module_name, imported_name in sorted(self.imports):
            names_by_module.setdefault(module_name, []).append(imported_name)
        return [
            f"from {imported_module} import {', '.join(imported_names)}"
            for imported_module, imported_names in names_by_module.items()
        ]


def _is_default(field_value: Any, default_value: Any) -> bool:
    """Return True if a value equals the default and has the same type."""
    return type(field_value) is type(default_value) and bool(field_value == default_value)


MAX_INLINE_SIZES = 500
"""Distinct sizes of a public histogram that a script holds itself; longer ones are read from their file."""
IMPORTS_TITLE, ANSWER_TITLE, FIGURES_TITLE = "What it uses", "The answer", "Figures"


@dataclass(frozen=True)
class ScriptSource:
    """The dataset of a script, with the sample or generator behind it if there is one.

    Attributes:
        dataset: The data set.
        sample_key: Key of the sample, if it is one; empty for none.
        generator: The parameters object of `dpcore.data.samples` that generated it; None for none.
        needs_rows: Whether the answer needs more than the histogram: values, totals or tasks.
        disclosure: The disclosure of the answer if it differs from that of the data; None for that of the data.
        write_data_cell: Writes the cell *The data* of a question that needs more than ``data``; None for
            `write_dataset_cell`.
    """

    dataset: Dataset
    sample_key: str = ""
    generator: Any = None
    needs_rows: bool = False
    disclosure: Provenance | None = None
    write_data_cell: DataCell | None = None

    @property
    def shown_disclosure(self) -> Provenance:
        """Return the disclosure of what the script prints: the answer's if it differs, else the data's."""
        return self.dataset.provenance if self.disclosure is None else self.disclosure


DataCell = Callable[[CodeBuilder, ScriptSource, bool], str]
"""From the code under construction, the source, and whether only public names may appear, to Python."""


def write_script(
    page_title: str,
    parameters: Any,
    source: ScriptSource,
    package_name: str,
    created_at: datetime,
    public_only: bool,
    call: Call | None,
) -> str:
    """Return the text of a Python script that computes an answer again.

    Args:
        page_title: Title of the page.
        parameters: The page's parameters object; entered by the person.
        source: The data source.
        package_name: The question's package with ``build_answer``, such as ``dpcore.mean.answer``.
        created_at: The time of the script.
        public_only: Omit the name of private data, too; their numbers are in no script.
        call: The function of `dpcore` that answers this, and its settings; None if there is none, and ``build_answer``
            is called.
    """
    code_builder = CodeBuilder()
    code_builder.import_name("draw_on_white", "dpcore.report.plotly_figures")
    code_builder.import_name("list_plots", "dpcore.answer.section")
    numbers_code = "label, number in answer.numbers.iterrows()"
    if call is None:
        numbers_code = "label, number in ((one.label, one) for one in answer.numbers)"
        code_builder.import_name("build_answer", package_name)
        call_code = f"parameters = {code_builder.write(parameters)}\nanswer = build_answer(data, parameters)"
    else:
        call_name, settings = call
        code_builder.import_name(call_name, "dpcore")
        argument_codes = (
            f"    {setting_name}={code_builder.write(setting_value)},\n"
            for setting_name, setting_value in settings.items()
        )
        help_comment = f"# `help({call_name})` says what each setting is."
        call_code = f"{help_comment}\nanswer = {call_name}(\n    data,\n{''.join(argument_codes)})"
    # First: it adds to the imports.
    data_code = (source.write_data_cell or write_dataset_cell)(code_builder, source, public_only)
    code_by_cell_title = {
        IMPORTS_TITLE: "\n".join(code_builder.list_import_lines()),
        "The data": data_code,
        ANSWER_TITLE: f"{_CALL_COMMENT}\n{call_code}\n{_ANSWER_CODE.format(numbers=numbers_code)}",
        "How sure it is, and what is assumed": _PROOFS_CODE,
        FIGURES_TITLE: _FIGURES_CODE,
    }
    header_texts = {
        "title": page_title,
        "made": created_at.strftime("%Y-%m-%d"),
        "label": _write_label(source),
    }
    cell_texts = [
        f"# %% {cell_title}\n{cell_code.strip()}" for cell_title, cell_code in code_by_cell_title.items()
    ]
    return "\n\n\n".join([_HEADER_TEMPLATE.format(version=VERSION, **header_texts), *cell_texts]) + "\n"


_CALL_COMMENT = """
# One call, with what was entered.
""".strip()
_ANSWER_CODE = """
print(answer.headline)
for {numbers}:
    print(f"{{label}}: {{number.text}}")
    if number.note:
        print(f"  {{number.note}}")
""".strip()
_PROOFS_CODE = """
for name, sentence in answer.all_facts:
    print(f"{name}: {sentence}")
for what, certificate, ended in answer.proofs:
    print(f"{what}, how sure: {ended} {certificate.sentence}")
for assumption in answer.all_assumptions:
    print(f"Assumed: {assumption}.")
"""
_FIGURES_CODE = """
# `plot.columns` holds what is drawn.
for plot in list_plots(answer, data):
    draw_on_white(plot).write_html(f"{plot.key}.html", include_plotlyjs="directory")
    print(f"Figure: {plot.key}.html")
"""


def _write_label(source: ScriptSource) -> str:
    """Write the sentence on what of the script and of its output may be published."""
    if source.shown_disclosure is Disclosure.PRIVATE:
        return (
            "It holds no number of the data. Its output is computed from private data: do not publish that."
        )
    return f"Label of what it prints and draws: {source.shown_disclosure.label}."


def write_dataset_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
    """Return the code that builds the `Dataset` as ``data``: from a sample, a generator, its numbers, or a file."""
    dataset = source.dataset
    if source.sample_key:
        code_builder.import_name("samples", "dpcore.data")
        return f"data = samples.load({source.sample_key!r})"
    if source.generator is not None:
        code_builder.import_name("samples", "dpcore.data")
        return f"data = samples.generate_dataset({code_builder.write(source.generator)})"
    if source.needs_rows and dataset.privacy_unit and dataset.release is None:
        return _write_events_cell(code_builder, source, public_only)
    disclosure_code = code_builder.write(dataset.disclosure)
    if source.needs_rows and dataset.values is not None and dataset.values.bins is not None:
        code_builder.import_name("read_summary", "dpcore.counting.files")
        data_file_name = "values.json" if public_only and dataset.is_private else dataset.name
        file_check_code = _write_file_check(
            code_builder, data_file_name, "Put the file of binned values into this folder."
        )
        return f"{file_check_code}\ndata = read_summary([FILE], provenance={disclosure_code})"
    holds_sizes = dataset.disclosure is Disclosure.PUBLIC and dataset.histogram.sizes.size <= MAX_INLINE_SIZES
    if holds_sizes or dataset.release is not None:
        code_builder.import_name("Dataset", "dpcore.dataset")
        code_builder.import_name("ContributionHistogram", "dpcore.contributions")
        sizes_expression, users_expression = map(
            code_builder.write, (dataset.histogram.sizes, dataset.histogram.users)
        )
        histogram_code = "ContributionHistogram(sizes, users)"
        if dataset.release is not None:
            histogram_code += f", release={code_builder.write(dataset.release)}"
        periods_code = f".in_periods({code_builder.write(dataset.periods)})" if dataset.periods else ""
        return (
            f"sizes = {sizes_expression}\nusers = {users_expression}\n"
            f"data = Dataset({dataset.name!r}, {dataset.source!r}, {disclosure_code}, {histogram_code}){periods_code}"
        )
    is_private = dataset.disclosure is Disclosure.PRIVATE
    data_file_name = "histogram-PRIVATE-do-not-publish.csv" if is_private else "histogram.csv"
    size_name = name_size_column(dataset.contribution, dataset.value_column)
    histogram_roles = Roles(TableKind.HISTOGRAM, size=size_name, users=name_users_column(dataset.periods))
    roles_code = code_builder.write(histogram_roles)
    remedy_sentence = "Download it on the page Data, button Histogram (CSV), into this folder."
    file_check_code = _write_file_check(code_builder, data_file_name, remedy_sentence)
    count_call = _write_count_call(code_builder, "[FILE]", roles_code, disclosure_code)
    return f"{file_check_code}\ndata = {count_call}"


def _write_file_check(code_builder: CodeBuilder, file_name: str, remedy_sentence: str) -> str:
    """Return the code that names a file and ends with a sentence if the file is missing."""
    code_builder.import_name("Path", "pathlib")
    return (
        f"FILE = Path({file_name!r})\nif not FILE.exists():\n"
        f'    raise SystemExit(f"The file {{FILE}} is missing. {remedy_sentence}")'
    )


def write_table_cell(
    code_builder: CodeBuilder,
    source: ScriptSource,
    public_only: bool,
    design: Design | None,
    module_name: str = "dpcore.data.design_matrix",
) -> str:
    """Return the code that builds ``data`` from a table with a label and features.

    Args:
        code_builder: Receives the imports of the cell.
        source: The data source.
        public_only: Whether names from private data are omitted.
        design: The meaning of the columns; None if it is not known and the script guesses again.
        module_name: The module whose ``build_dataset`` builds the data.
    """
    dataset = source.dataset
    code_builder.import_name("build_dataset", module_name)
    code_builder.import_name("read_table", "dpcore.counting")
    if design is None:
        code_builder.import_name("guess_design", "dpcore.data.design_matrix")
    file_name = "your-table.csv" if public_only and dataset.is_private else dataset.name
    return (
        "# The table that was loaded on the page.\n"
        f"{_write_file_check(code_builder, file_name, 'Put the table that was loaded on the page into this folder.')}\n"
        "table = read_table(FILE.read_bytes(), FILE.name)\n"
        f"design = {'guess_design(table)' if design is None else code_builder.write(design)}\n"
        f"data = build_dataset(table, design, {code_builder.write(dataset.disclosure)})"
    )


def _write_events_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
    """Return the code that counts ``data`` from the person's own files, of rows or of counts."""
    dataset = source.dataset
    user_column, *further_user_columns = dataset.user_columns
    pairs_or_tasks = dataset.pairs or dataset.tasks
    column_roles = Roles(
        TableKind.EVENTS,
        user=user_column,
        value=dataset.value_column or None,
        task=(pairs_or_tasks.column or None) if pairs_or_tasks is not None else None,
        further_task=pairs_or_tasks.further_columns if pairs_or_tasks is not None else (),
        further_user=tuple(further_user_columns),
        contribution=dataset.contribution,
        further_values=dataset.value_columns[1:],
    )
    file_names, column_names, reading_options = [dataset.name], tuple[str, ...](), dict[str, str]()
    if (table_layout := dataset.layout) is not None:
        column_names, reading_options = table_layout.files[0].names, list_reading_options(table_layout)
        file_names = [file_layout.name for file_layout in table_layout.files]
        column_roles = replace(
            column_roles,
            missing_users=MissingUsers.ONE_USER if table_layout.missing_is_a_user else MissingUsers.LEAVE_OUT,
            drops_missing=dataset.drops_missing,
            missing_constant=table_layout.missing_constant,
            yes_text=table_layout.yes_text,
            periods=table_layout.periods,
            filters=table_layout.filters,
            value=column_roles.value or table_layout.dropped_column or None,
        )
        if table_layout.count_column:
            kind = TableKind.COUNTS if dataset.pairs is None else TableKind.PAIRS
            column_roles = replace(column_roles, kind=kind, count=table_layout.count_column)
    if public_only and dataset.is_private:
        file_names = ["your-file.csv"]
    code_builder.import_name("Path", "pathlib")
    roles_code, disclosure_code = code_builder.write(column_roles), code_builder.write(dataset.disclosure)
    return (
        "# What was loaded in Data: the answer needs its rows.\n"
        f"FILES = {file_names!r}\nfor name in FILES:\n    if not Path(name).exists():\n"
        '        raise SystemExit(f"The file {name} is missing. Put what was loaded in Data into this folder.")\n'
        f"data = {_write_count_call(code_builder, 'FILES', roles_code, disclosure_code, column_names, reading_options)}"
    )


def _write_count_call(
    code_builder: CodeBuilder,
    files_code: str,
    roles_code: str,
    disclosure_code: str,
    column_names: Sequence[str] = (),
    reading_options: Mapping[str, str] | None = None,
) -> str:
    """Return the code that opens files and counts them; the arguments are code."""
    code_builder.import_name("count", "dpcore.counting")
    code_builder.import_name("open_files", "dpcore.counting")
    # Names are given where the files hold none.
    names_code = f".with_names({code_builder.write(list(column_names))})" if column_names else ""
    reading_code = "".join(
        f", {option_name}={option_text!r}" for option_name, option_text in (reading_options or {}).items()
    )
    return (
        f"count(open_files({files_code}{reading_code}){names_code}, {roles_code}, {disclosure_code}).dataset"
    )


_HEADER_TEMPLATE = '''"""{title}: a choice made with Sweet Spot {version} on {made}, computed again.

Run this file with a Python that has Sweet Spot installed. You can also put it into the folder of Sweet Spot's README
and run it there with the Python of .venv. It writes its figures into the folder that you run it in. Cells begin with
"# %%": editors and Jupyter (with jupytext) open it as a notebook.

{label}
"""'''
