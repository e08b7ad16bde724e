"""A choice as a Python script in cells: the same data and parameters, the same numbers, the same curves.

A script holds what the person entered, never a number of private data: those it reads from the person's own files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpcore.common.privacy import Provenance, Sensitivity
from dpcore.common.version import VERSION
from dpcore.data.column_roles import Roles, TableKind
from dpcore.dataset import Dataset
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.regression.design_matrix import Design
from dpcore.regression.parameters import DataSource, RegressionParameters
from dpcore.report.literals import Code
from dpcore.report.script_bodies import Body

MOST_SIZES = 500
"""Distinct sizes of a public histogram that a script holds itself; longer ones are read from their file."""


@dataclass(frozen=True)
class Source:
    """Where a script gets the data from.

    Attributes:
        dataset: The data.
        sample: Key of the sample that they are; empty for none.
        generator: What generated them, a parameters object of `dpcore.data.generators`; None for nothing.
        design: What the columns of a table for a regression mean; None where that is not known.
        rows: Whether the answer needs more than the histogram: values, totals or tasks.
        sensitivity: Of the answer, where it rests on something else than the data; None for that of the data.
    """

    dataset: Dataset
    sample: str = ""
    generator: Any = None
    design: Design | None = None
    rows: bool = False
    sensitivity: Provenance | None = None

    @property
    def kind(self) -> Provenance:
        """Of what the script prints."""
        return self.dataset.provenance if self.sensitivity is None else self.sensitivity


def script(
    title: str, parameters: Any, source: Source, bodies: Sequence[Body], made: datetime, public_only: bool
) -> str:
    """The script.

    Args:
        title: Of the page.
        parameters: The page's parameters object; entered by the person.
        source: The data.
        bodies: What to compute and draw, in order.
        made: When.
        public_only: Leave out the name of private data as well; their numbers are in no script.
    """
    code = Code({("pathlib", "Path")})
    for body in bodies:
        code.use_all(body.imports)
    question = f"parameters = {code.of(parameters)}"
    data = _data_cell(code, parameters, source, public_only)
    cells = [
        ("The question, as it was entered", question),
        ("The data", data),
        *(("The answer", body.answer) for body in bodies),
        ("Drawing", _DRAWING),
        *(("Figures", body.figures) for body in bodies),
    ]
    if "Path(" not in data:
        code.imports.discard(("pathlib", "Path"))
    whole = ["import math", ""] if any("math." in body.answer + body.figures for body in bodies) else []
    imports = [*whole, "import numpy as np", "import plotly.graph_objects as go", ""]
    lines = [*imports, *code.import_lines(), "", "", _SAY, ""]
    head = _HEAD.format(title=title, version=VERSION, made=made.strftime("%Y-%m-%d"), label=_label(source))
    parts = [head, "# %% What it uses\n" + "\n".join(lines)]
    parts += [f"# %% {name}\n{text.strip()}" for name, text in cells]
    return "\n\n".join(part.rstrip("\n") for part in parts).replace("\n\n# %%", "\n\n\n# %%") + "\n"


def _label(source: Source) -> str:
    if source.kind is Sensitivity.PRIVATE:
        return (
            "It holds what was entered and no number of the data. What it prints and draws is computed from private\n"
            "data: do not publish that."
        )
    return f"Label of what it prints and draws: {source.kind.label}."


def _data_cell(code: Code, parameters: Any, source: Source, public_only: bool) -> str:
    if isinstance(parameters, RegressionParameters):
        return _table_cell(code, parameters, source, public_only)
    if isinstance(parameters, MultitaskParameters):
        return _graph_cell(code, parameters, source, public_only)
    return _dataset_cell(code, source, public_only)


def _dataset_cell(code: Code, source: Source, public_only: bool) -> str:
    data = source.dataset
    if source.sample:
        code.use("samples", "dpcore.data")
        return f"data = samples.load({source.sample!r})"
    if source.generator is not None:
        code.use("generators", "dpcore.data")
        return f"data = generators.dataset({code.of(source.generator)})"
    if source.rows and data.privacy_unit:
        return _events_cell(code, source, public_only)
    kind = code.of(data.sensitivity)
    few = data.sensitivity is Sensitivity.PUBLIC and data.histogram.sizes.size <= MOST_SIZES
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
    private = data.sensitivity is Sensitivity.PRIVATE
    name = "histogram-PRIVATE-do-not-publish.csv" if private else "histogram.csv"
    roles = code.of(Roles(TableKind.HISTOGRAM, size="size", users="users"))
    return (
        "# From the page Your data, button Histogram (CSV).\n"
        f"FILE = Path({name!r})\n"
        f"data = {_read(code, roles, kind)}"
    )


def _events_cell(code: Code, source: Source, public_only: bool) -> str:
    data = source.dataset
    user, *further = data.privacy_unit
    value = data.values.column if data.values is not None else data.totals.column if data.totals else ""
    task = data.pairs.column if data.pairs is not None else data.tasks.column if data.tasks else ""
    roles = Roles(
        TableKind.EVENTS,
        user=user,
        value=value or None,
        task=task or None,
        further_user=tuple(further),
        contribution=data.contribution,
    )
    name = "your-file.csv" if public_only and data.is_private else data.name
    return (
        "# The file that was loaded in Your data: the answer needs its rows.\n"
        f"FILE = Path({name!r})\n"
        f"data = {_read(code, code.of(roles), code.of(data.sensitivity))}"
    )


def _read(code: Code, roles: str, kind: str) -> str:
    code.use("build_dataset", "dpcore.data.upload")
    code.use("read_table", "dpcore.data.upload")
    return f"build_dataset(read_table(FILE.read_bytes(), FILE.name), {roles}, {kind})"


def _table_cell(code: Code, parameters: RegressionParameters, source: Source, public_only: bool) -> str:
    if parameters.source is DataSource.GENERATED:
        return "data, true_coefficients = parameters.generator.dataset()"
    data = source.dataset
    code.use("design_matrix", "dpcore.regression")
    code.use("read_table", "dpcore.data.upload")
    name = "your-table.csv" if public_only and data.is_private else data.name
    design = "design_matrix.guess(table)" if source.design is None else code.of(source.design)
    return (
        f"# The table that was loaded on the page.\nFILE = Path({name!r})\n"
        "table = read_table(FILE.read_bytes(), FILE.name)\n"
        f"design = {design}\n"
        f"data = design_matrix.build(table, design, {code.of(data.sensitivity)})"
    )


def _graph_cell(code: Code, parameters: MultitaskParameters, source: Source, public_only: bool) -> str:
    code.use("TaskGraph", "dpcore.multitask.graph")
    code.use("without_empty_tasks", "dpcore.multitask.graph")
    if parameters.source is not TaskSource.DATA:
        code.use("draw_pairs", "dpcore.multitask.parameters")
        return (
            "pairs, _ = without_empty_tasks(draw_pairs(parameters.generator, parameters.graph_seed))\n"
            "graph = TaskGraph.from_pairs(pairs, parameters.generator.num_users)"
        )
    return (
        f"{_dataset_cell(code, source, public_only)}\n"
        "pairs, _ = without_empty_tasks(data.pairs)\n"
        "num_users = max(data.histogram.num_users, int(pairs.user_codes[-1]) + 1)\n"
        "graph = TaskGraph.from_pairs(pairs, num_users)"
    )


_HEAD = '''"""{title}: a choice made with Sweet Spot {version} on {made}, computed again.

Put this file into the folder of Sweet Spot's README, where Python finds dpcore, and run it there with the Python of
.venv or another that has what requirements.txt asks for. It prints the page's numbers and writes its figures as HTML
files into the folder that it is run in. Cells begin with "# %%": VS Code, PyCharm and Jupyter (with jupytext) open it
as a notebook.

{label}
"""'''
_SAY = '''def say(name, text):
    """Print one number under its name."""
    print(f"{name}: {text}")'''
_DRAWING = '''
BLUE, ORANGE, GREEN, PURPLE, GREY = "#2C7FB8", "#D55E00", "#009E73", "#B0609C", "#7F7F7F"


def figure(title, x, y, log="xy"):
    """An empty figure; ``log`` names its logarithmic axes."""
    fig = go.Figure(layout={"template": "plotly_white", "title": {"text": title}})
    fig.update_xaxes(title_text=x, type="log" if "x" in log else "linear")
    return fig.update_yaxes(title_text=y, type="log" if "y" in log else "linear")


def line(fig, name, x, y, color, dash="solid"):
    """Add a curve; what is not above 0 has no place on a log axis and is left out."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if fig.layout.yaxis.type == "log":
        x, y = x[y > 0.0], y[y > 0.0]
    fig.add_scatter(x=x, y=y, name=name, mode="lines", line={"color": color, "dash": dash})


def point(fig, name, x, y, color):
    """Mark a point."""
    fig.add_scatter(x=[x], y=[y], name=name, mode="markers", marker={"color": color, "size": 12})


def keep(fig, name):
    """Write the figure to a file that opens in a browser without a network."""
    fig.write_html(f"{name}.html", include_plotlyjs="directory")
    print(f"Figure: {name}.html")
'''
