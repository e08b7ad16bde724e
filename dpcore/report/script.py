"""A choice as a Python script in cells: the same data and parameters, the same numbers, the same curves.

A script makes the call that the page makes, and its figures are a loop over the answer's plots. It holds what was
entered, never a number of private data: those it reads from the person's own files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.version import VERSION
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.design_matrix import Design
from dpcore.dataset import Dataset
from dpcore.report.literals import Code

MAX_INLINE_SIZES = 500
"""Distinct sizes of a public histogram that a script holds itself; longer ones are read from their file."""
IMPORTS_TITLE, ANSWER_TITLE, FIGURES_TITLE = "What it uses", "The answer", "Figures"


@dataclass(frozen=True)
class Source:
    """The data source of a script.

    Attributes:
        dataset: The data set.
        sample: Key of the sample, if it is one; empty for none.
        generator: The parameters object of `dpcore.data.generators` that generated it; None for none.
        needs_rows: Whether the answer needs more than the histogram: values, totals or tasks.
        disclosure: The disclosure of the answer if it differs from that of the data; None for that of the data.
        write_cell: Writes the cell *The data* of a question that needs more than ``data``; None for
            `write_dataset_cell`.
    """

    dataset: Dataset
    sample: str = ""
    generator: Any = None
    needs_rows: bool = False
    disclosure: Provenance | None = None
    write_cell: DataCell | None = None

    @property
    def shown_disclosure(self) -> Provenance:
        """Return the disclosure of what the script prints."""
        return self.dataset.provenance if self.disclosure is None else self.disclosure


Call = tuple[str, Mapping[str, Any]]
"""Name of a function of `dpcore` that answers a question, and its settings as a person writes them."""
DataCell = Callable[[Code, Source, bool], str]
"""From the code under construction, the source, and whether only public names may appear, to Python."""


def write_script(
    title: str,
    parameters: Any,
    source: Source,
    package: str,
    created: datetime,
    public_only: bool,
    call: Call | None,
) -> str:
    """Write the script.

    Args:
        title: Title of the page.
        parameters: The page's parameters object; entered by the person.
        source: The data source.
        package: The question's package with ``build_answer``, such as ``dpcore.mean.answer``.
        created: The time of the script.
        public_only: Omit the name of private data, too; their numbers are in no script.
        call: The function of `dpcore` that answers this, and its settings; None if there is none, and ``build_answer``
            is called.
    """
    code = Code()
    code.import_name("draw_on_white", "dpcore.report.plotly_figures")
    code.import_name("list_plots", "dpcore.answer.section")
    numbers = "label, number in answer.numbers.iterrows()"
    if call is None:
        numbers = "label, number in ((one.label, one) for one in answer.numbers)"
        code.import_name("build_answer", package)
        call_code = f"parameters = {code.write(parameters)}\nanswer = build_answer(data, parameters)"
    else:
        name, settings = call
        code.import_name(name, "dpcore")
        lines = "".join(f"    {setting}={code.write(value)},\n" for setting, value in settings.items())
        call_code = f"# `help({name})` says what each setting is.\nanswer = {name}(\n    data,\n{lines})"
    data_cell = (source.write_cell or write_dataset_cell)(code, source, public_only)
    cells = {
        IMPORTS_TITLE: "\n".join(code.import_lines()),
        "The data": data_cell,
        ANSWER_TITLE: f"{_CALL_COMMENT}\n{call_code}\n{_ANSWER_CODE.format(numbers=numbers)}",
        "How sure it is, and what is assumed": _PROOFS_CODE,
        FIGURES_TITLE: _FIGURES_CODE,
    }
    return _join_cells(title, source, created, cells)


_CALL_COMMENT = """
# One call, with what was entered. What is proved of its choice, the next cell says.
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
# A certificate holds the value that was found, and a number that no other choice goes below.
for what, certificate, ended in answer.proofs:
    print(f"{what}, how sure: {ended} {certificate.sentence}")
for assumption in answer.all_assumptions:
    print(f"Assumed: {assumption}.")
"""
_FIGURES_CODE = """
# A plot is data: `plot.columns` holds what is drawn. Each becomes a file that opens in a browser without a network.
for plot in list_plots(answer, data):
    draw_on_white(plot).write_html(f"{plot.key}.html", include_plotlyjs="directory")
    print(f"Figure: {plot.key}.html")
"""


def _join_cells(title: str, source: Source, created: datetime, cells: Mapping[str, str]) -> str:
    header = _HEADER.format(
        title=title, version=VERSION, made=created.strftime("%Y-%m-%d"), label=_write_label(source)
    )
    return "\n\n\n".join([header, *(f"# %% {name}\n{text.strip()}" for name, text in cells.items())]) + "\n"


def _write_label(source: Source) -> str:
    if source.shown_disclosure is Disclosure.PRIVATE:
        return (
            "It holds what was entered and no number of the data. What it prints and draws is computed from private\n"
            "data: do not publish that."
        )
    return f"Label of what it prints and draws: {source.shown_disclosure.label}."


def write_dataset_cell(code: Code, source: Source, public_only: bool) -> str:
    """Write the cell that builds the `Dataset` of the person as ``data``: by name, by its numbers, or from a file."""
    dataset = source.dataset
    if source.sample:
        code.import_name("samples", "dpcore.data")
        return f"data = samples.load({source.sample!r})"
    if source.generator is not None:
        code.import_name("generators", "dpcore.data")
        return f"data = generators.dataset({code.write(source.generator)})"
    if source.needs_rows and dataset.privacy_unit:
        return _write_events_cell(code, source, public_only)
    disclosure = code.write(dataset.disclosure)
    is_short = dataset.disclosure is Disclosure.PUBLIC and dataset.histogram.sizes.size <= MAX_INLINE_SIZES
    if is_short or dataset.release is not None:
        code.import_name("Dataset", "dpcore.dataset")
        code.import_name("ContributionHistogram", "dpcore.contributions")
        sizes, users = code.write(dataset.histogram.sizes), code.write(dataset.histogram.users)
        release_argument = f", release={code.write(dataset.release)}" if dataset.release is not None else ""
        histogram = f"ContributionHistogram(sizes, users){release_argument}"
        return (
            f"sizes = {sizes}\nusers = {users}\n"
            f"data = Dataset({dataset.name!r}, {dataset.source!r}, {disclosure}, {histogram})"
        )
    private = dataset.disclosure is Disclosure.PRIVATE
    name = "histogram-PRIVATE-do-not-publish.csv" if private else "histogram.csv"
    roles = code.write(Roles(TableKind.HISTOGRAM, size="size", users="users"))
    file_check = _check_file(
        code, name, "Download it on the page Your data, button Histogram (CSV), into this folder."
    )
    return f"{file_check}\ndata = {_write_count_call(code, '[FILE]', roles, disclosure)}"


def _check_file(code: Code, name: str, remedy: str) -> str:
    """Write the lines that name a file and say in a sentence what to do if it is missing."""
    code.import_name("Path", "pathlib")
    return (
        f"FILE = Path({name!r})\nif not FILE.exists():\n"
        f'    raise SystemExit(f"The file {{FILE}} is missing. {remedy}")'
    )


def write_table_cell(
    code: Code, source: Source, public_only: bool, design: Design | None, package: str = "dpcore.data"
) -> str:
    """Write the cell of a table with a label and features; ``design_matrix`` of a package builds ``data`` from it.

    Args:
        code: Receives the imports of the cell.
        source: The data source.
        public_only: Whether names from private data are omitted.
        design: The meaning of the columns; None if it is not known and the script guesses again.
        package: The package whose ``design_matrix`` builds the data.
    """
    dataset = source.dataset
    code.import_name("design_matrix", package)
    code.import_name("read_table", "dpcore.counting")
    if design is None:
        code.import_name("guess", "dpcore.data.design_matrix")
    name = "your-table.csv" if public_only and dataset.is_private else dataset.name
    return (
        "# The table that was loaded on the page.\n"
        f"{_check_file(code, name, 'Put the table that was loaded on the page into this folder.')}\n"
        "table = read_table(FILE.read_bytes(), FILE.name)\n"
        f"design = {'guess(table)' if design is None else code.write(design)}\n"
        f"data = design_matrix.build(table, design, {code.write(dataset.disclosure)})"
    )


def _write_events_cell(code: Code, source: Source, public_only: bool) -> str:
    dataset = source.dataset
    user, *further_users = dataset.privacy_unit
    groups = dataset.pairs or dataset.tasks
    roles = Roles(
        TableKind.EVENTS,
        user=user,
        value=dataset.value_column or None,
        task=(groups.column or None) if groups is not None else None,
        further_task=groups.further_columns if groups is not None else (),
        further_user=tuple(further_users),
        contribution=dataset.contribution,
    )
    files, names = [dataset.name], tuple[str, ...]()
    if dataset.layout is not None:
        names = dataset.layout.files[0].names
        files = [file.name for file in dataset.layout.files]
        one_user = dataset.layout.missing_is_a_user
        roles = replace(roles, missing_users=MissingUsers.ONE_USER if one_user else MissingUsers.LEAVE_OUT)
    if public_only and dataset.is_private:
        files = ["your-file.csv"]
    code.import_name("Path", "pathlib")
    return (
        "# What was loaded in Your data: the answer needs its rows.\n"
        f"FILES = {files!r}\nfor name in FILES:\n    if not Path(name).exists():\n"
        '        raise SystemExit(f"The file {name} is missing. Put what was loaded in Your data into this folder.")\n'
        f"data = {_write_count_call(code, 'FILES', code.write(roles), code.write(dataset.disclosure), names)}"
    )


def _write_count_call(code: Code, files: str, roles: str, disclosure: str, names: Sequence[str] = ()) -> str:
    code.import_name("count", "dpcore.counting")
    code.import_name("open_files", "dpcore.counting")
    names_call = f".with_names({code.write(list(names))})" if names else ""  # where the files hold none
    return f"count(open_files({files}){names_call}, {roles}, {disclosure}).dataset"


_HEADER = '''"""{title}: a choice made with Sweet Spot {version} on {made}, computed again.

Run this file with a Python that Sweet Spot is installed in, or put it into the folder of Sweet Spot's README and run it
there with the Python of .venv. It prints the page's numbers and writes its figures as HTML files into the folder that
it is run in. Cells begin with "# %%": VS Code, PyCharm and Jupyter (with jupytext) open it as a notebook.

{label}
"""'''
