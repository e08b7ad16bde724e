"""How a script of this question gets its table."""

from __future__ import annotations

from dpcore.regression.design_matrix import Design
from dpcore.regression.parameters import DataSource, RegressionParameters
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source


def data_cell(parameters: RegressionParameters, design: Design | None) -> DataCell:
    """The cell that puts the table into ``data``: generated again, or read from the person's file.

    Args:
        parameters: The question.
        design: What the columns of the person's table mean; None where that is not known and a script guesses again.
    """

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if parameters.source is DataSource.GENERATED:
            return "data, true_coefficients = parameters.generator.dataset()"
        data = source.dataset
        code.use("design_matrix", "dpcore.regression")
        code.use("read_table", "dpcore.counting")
        name = "your-table.csv" if public_only and data.is_private else data.name
        meaning = "design_matrix.guess(table)" if design is None else code.of(design)
        return (
            f"# The table that was loaded on the page.\nFILE = Path({name!r})\n"
            "table = read_table(FILE.read_bytes(), FILE.name)\n"
            f"design = {meaning}\n"
            f"data = design_matrix.build(table, design, {code.of(data.disclosure)})"
        )

    return cell
