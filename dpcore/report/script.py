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

MOST_SIZES = 500
"""Distinct sizes of a public histogram that a script holds itself; longer ones are read from their file."""
USES, ANSWER, FIGURES = "What it uses", "The answer", "Figures"


@dataclass(frozen=True)
class Source:
    """Where a script gets the data from.

    Attributes:
        dataset: The data.
        sample: Key of the sample that they are; empty for none.
        generator: What generated them, a parameters object of `dpcore.data.generators`; None for nothing.
        rows: Whether the answer needs more than the histogram: values, totals or tasks.
        disclosure: Of the answer, where it rests on something else than the data; None for that of the data.
        cell: Writes the cell *The data* of a question that needs more than ``data``; None for `dataset_cell`.
    """

    dataset: Dataset
    sample: str = ""
    generator: Any = None
    rows: bool = False
    disclosure: Provenance | None = None
    cell: DataCell | None = None

    @property
    def kind(self) -> Provenance:
        """Of what the script prints."""
        return self.dataset.provenance if self.disclosure is None else self.disclosure


Call = tuple[str, Mapping[str, Any]]
"""Name of a function of `dpcore` that asks a question, and its settings as a person writes them."""
DataCell = Callable[[Code, Source, bool], str]
"""From the script in the making, the source, and whether only what is public may be named, to Python."""


def of_answer(
    title: str,
    parameters: Any,
    source: Source,
    package: str,
    made: datetime,
    public_only: bool,
    call: Call | None,
) -> str:
    """The script.

    Args:
        title: Of the page.
        parameters: The page's parameters object; entered by the person.
        source: The data.
        package: The question's package with ``build_answer``, such as ``dpcore.mean.answer``.
        made: When.
        public_only: Leave out the name of private data as well; their numbers are in no script.
        call: The function of `dpcore` that asks this, and its settings; None if there is none, and ``build_answer``
            is called.
    """
    code = Code()
    code.use("on_white", "dpcore.report.plotly_figures")
    numbers = "label, number in answer.numbers.iterrows()"
    if call is None:
        numbers = "label, number in ((one.label, one) for one in answer.numbers)"
        code.use("build_answer", package)
        asked = f"parameters = {code.of(parameters)}\nanswer = build_answer(data, parameters)"
    else:
        name, settings = call
        code.use(name, "dpcore")
        lines = "".join(f"    {setting}={code.of(value)},\n" for setting, value in settings.items())
        asked = f"# `help({name})` says what each setting is.\nanswer = {name}(\n    data,\n{lines})"
    data = (source.cell or dataset_cell)(code, source, public_only)
    following = {
        USES: "\n".join(code.import_lines()),
        "The data": data,
        ANSWER: f"{_ASKED}\n{asked}\n{_ANSWER.format(numbers=numbers)}",
        "How sure it is, and what is assumed": _BEHIND,
        FIGURES: _FIGURES,
    }
    return _joined(title, source, made, following)


_ASKED = """
# One call, with what was entered. What is proved of its choice, the next cell says.
""".strip()
_ANSWER = """
print(answer.headline)
for {numbers}:
    print(f"{{label}}: {{number.text}}")
    if number.note:
        print(f"  {{number.note}}")
""".strip()
_BEHIND = """
for name, sentence in answer.all_facts:
    print(f"{name}: {sentence}")
# A certificate holds the value that was found, and a number that no other choice goes below.
for what, certificate, ended in answer.proofs:
    print(f"{what}, how sure: {ended} {certificate.sentence}")
for assumption in answer.all_assumptions:
    print(f"Assumed: {assumption}.")
"""
_FIGURES = """
# A plot is data: `plot.columns` holds what is drawn. Each becomes a file that opens in a browser without a network.
for make in answer.plots.values():
    plot = make()
    on_white(plot).write_html(f"{plot.key}.html", include_plotlyjs="directory")
    print(f"Figure: {plot.key}.html")
"""


def _joined(title: str, source: Source, made: datetime, following: Mapping[str, str]) -> str:
    head = _HEAD.format(title=title, version=VERSION, made=made.strftime("%Y-%m-%d"), label=_label(source))
    return "\n\n\n".join([head, *(f"# %% {name}\n{text.strip()}" for name, text in following.items())]) + "\n"


def _label(source: Source) -> str:
    if source.kind is Disclosure.PRIVATE:
        return (
            "It holds what was entered and no number of the data. What it prints and draws is computed from private\n"
            "data: do not publish that."
        )
    return f"Label of what it prints and draws: {source.kind.label}."


def dataset_cell(code: Code, source: Source, public_only: bool) -> str:
    """The cell that puts the `Dataset` of the person into ``data``: by name, by its numbers, or from a file."""
    data = source.dataset
    if source.sample:
        code.use("samples", "dpcore.data")
        return f"data = samples.load({source.sample!r})"
    if source.generator is not None:
        code.use("generators", "dpcore.data")
        return f"data = generators.dataset({code.of(source.generator)})"
    if source.rows and data.privacy_unit:
        return _events_cell(code, source, public_only)
    kind = code.of(data.disclosure)
    few = data.disclosure is Disclosure.PUBLIC and data.histogram.sizes.size <= MOST_SIZES
    if few or data.release is not None:
        code.use("Dataset", "dpcore.dataset")
        code.use("ContributionHistogram", "dpcore.contributions")
        sizes, users = code.of(data.histogram.sizes), code.of(data.histogram.users)
        facts = f", release={code.of(data.release)}" if data.release is not None else ""
        histogram = f"ContributionHistogram(sizes, users){facts}"
        return (
            f"sizes = {sizes}\nusers = {users}\n"
            f"data = Dataset({data.name!r}, {data.source!r}, {kind}, {histogram})"
        )
    private = data.disclosure is Disclosure.PRIVATE
    name = "histogram-PRIVATE-do-not-publish.csv" if private else "histogram.csv"
    roles = code.of(Roles(TableKind.HISTOGRAM, size="size", users="users"))
    found = _there(code, name, "Download it on the page Your data, button Histogram (CSV), into this folder.")
    return f"{found}\ndata = {_read(code, '[FILE]', roles, kind)}"


def _there(code: Code, name: str, remedy: str) -> str:
    """The lines that name a file and say in a sentence what to do where it is missing."""
    code.use("Path", "pathlib")
    return (
        f"FILE = Path({name!r})\nif not FILE.exists():\n"
        f'    raise SystemExit(f"The file {{FILE}} is missing. {remedy}")'
    )


def table_cell(
    code: Code, source: Source, public_only: bool, design: Design | None, package: str = "dpcore.data"
) -> str:
    """The cell of a table with a label and features, which ``design_matrix`` of a package builds into ``data``.

    Args:
        code: Takes what the cell imports.
        source: Where the data come from.
        public_only: Whether names from private data are left out.
        design: What the columns mean; None where that is not known and a script guesses again.
        package: Whose ``design_matrix`` builds it.
    """
    data = source.dataset
    code.use("design_matrix", package)
    code.use("read_table", "dpcore.counting")
    if design is None:
        code.use("guess", "dpcore.data.design_matrix")
    name = "your-table.csv" if public_only and data.is_private else data.name
    return (
        "# The table that was loaded on the page.\n"
        f"{_there(code, name, 'Put the table that was loaded on the page into this folder.')}\n"
        "table = read_table(FILE.read_bytes(), FILE.name)\n"
        f"design = {'guess(table)' if design is None else code.of(design)}\n"
        f"data = design_matrix.build(table, design, {code.of(data.disclosure)})"
    )


def _events_cell(code: Code, source: Source, public_only: bool) -> str:
    data = source.dataset
    user, *further = data.privacy_unit
    value = data.values.column if data.values is not None else data.totals.column if data.totals else ""
    groups = data.pairs or data.tasks
    roles = Roles(
        TableKind.EVENTS,
        user=user,
        value=value or None,
        task=(groups.column or None) if groups is not None else None,
        further_task=groups.further_columns if groups is not None else (),
        further_user=tuple(further),
        contribution=data.contribution,
    )
    files, names = [data.name], tuple[str, ...]()
    if data.layout is not None:
        names = data.layout.files[0].names
        files = [file.name for file in data.layout.files]
        one_user = data.layout.missing_is_a_user
        roles = replace(roles, missing_users=MissingUsers.ONE_USER if one_user else MissingUsers.LEAVE_OUT)
    if public_only and data.is_private:
        files = ["your-file.csv"]
    code.use("Path", "pathlib")
    return (
        "# What was loaded in Your data: the answer needs its rows.\n"
        f"FILES = {files!r}\nfor name in FILES:\n    if not Path(name).exists():\n"
        '        raise SystemExit(f"The file {name} is missing. Put what was loaded in Your data into this folder.")\n'
        f"data = {_read(code, 'FILES', code.of(roles), code.of(data.disclosure), names)}"
    )


def _read(code: Code, files: str, roles: str, kind: str, names: Sequence[str] = ()) -> str:
    code.use("count", "dpcore.counting")
    code.use("open_files", "dpcore.counting")
    named = f".with_names({code.of(list(names))})" if names else ""  # where the files hold none
    return f"count(open_files({files}){named}, {roles}, {kind}).dataset"


_HEAD = '''"""{title}: a choice made with Sweet Spot {version} on {made}, computed again.

Run this file with a Python that Sweet Spot is installed in, or put it into the folder of Sweet Spot's README and run it
there with the Python of .venv. It prints the page's numbers and writes its figures as HTML files into the folder that
it is run in. Cells begin with "# %%": VS Code, PyCharm and Jupyter (with jupytext) open it as a notebook.

{label}
"""'''
