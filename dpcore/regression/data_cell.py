"""How a script of this question gets its table."""

from __future__ import annotations

from dpcore.data.design_matrix import Design
from dpcore.regression.parameters import DataSource, RegressionParameters
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source, table_cell


def data_cell(parameters: RegressionParameters, design: Design | None) -> DataCell:
    """The cell that puts the table into ``data``: generated again, or read from the person's file.

    Args:
        parameters: The question.
        design: What the columns of the person's table mean; None where that is not known and a script guesses again.
    """

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if parameters.source is DataSource.GENERATED:
            return "data, true_coefficients = parameters.generator.dataset()"
        return table_cell(code, source, public_only, design, "dpcore.regression")

    return cell
