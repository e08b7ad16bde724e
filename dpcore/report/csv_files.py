"""Files that a person takes away. Every file carries the label of the data it was computed from."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.privacy import LABEL_COLUMN, Provenance
from dpcore.common.version import VERSION
from dpcore.data.column_names import escape_formula, escape_formulas_in_line
from dpcore.dataset import Dataset


def list_public_inputs(fields: Mapping[str, str]) -> list[str]:
    """List the program that made the file, and a line per public input."""
    return [f"Sweet Spot {VERSION}", *(f"public input: {name} = {text}" for name, text in fields.items())]


def write_columns(
    columns: Mapping[str, npt.ArrayLike], disclosure: Provenance, notes: Sequence[str] = ()
) -> str:
    """Write a CSV with one column per entry and a last column ``label`` that says how public the numbers are.

    Args:
        columns: Column name to values; all of one length. Floats keep every digit.
        disclosure: Of the data that the numbers were computed from.
        notes: Go on top, one line each behind ``# ``, with a line for the label: `pandas.read_csv` with
            ``comment="#"`` passes them over.
    """
    import pandas as pd

    frame = pd.DataFrame(
        {escape_formula(name): _make_harmless(np.asarray(values)) for name, values in columns.items()}
    )
    frame[LABEL_COLUMN] = disclosure.label
    table = frame.to_csv(index=False, lineterminator="\n")
    if not notes:
        return table
    if "#" in table:  # In quotes it begins no comment.
        table = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    lines = [f"these numbers: {disclosure.label}", *notes]
    return "".join(f"# {escape_formulas_in_line(' '.join(line.split()))}\n" for line in lines) + table


def _make_harmless(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind not in "OUT":
        return values
    return np.array([escape_formula(v) if isinstance(v, str) else v for v in values.tolist()], dtype=object)


def write_histogram(dataset: Dataset) -> str:
    """Write how many users have how many rows, as *Your data* opens it: columns ``size``, ``users``, ``label``.

    The label brings back the epsilon of a DP release (`counting.Source.stated_release`).
    """
    histogram = dataset.histogram
    return write_columns({"size": histogram.sizes, "users": histogram.users}, dataset.provenance)
