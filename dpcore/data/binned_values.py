"""The values of each user in public bins, which an engine counts, as a file.

The file has the public ``bins``, the name of the ``value_column``, whether rows were left out that have no value
(``drops_missing``), and four lists without names of users:

- ``bins_per_user``: the number of bins that hold values of a user, for each user, those with the fewest rows first;
- ``rows``: the number of rows in each of these bins;
- ``means``: the mean of their values;
- ``standard_deviations``: the standard deviation of their values, 0 below and above all bins.
"""

from __future__ import annotations

import json
import math

import numpy as np
import numpy.typing as npt

from dpcore.common import strict_json
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import Codec
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.data.cell_numbers import MAX_NUMBER
from dpcore.data.column_roles import Roles, TableKind, build_rule_layout
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import MAX_VALUES, Dataset, Totals, Values

SCHEMA = "sweetspot/binned-values/1"
MAX_BYTES = 150_000_000
"""Largest file that is read: the largest number of entries takes about 100 MB."""
MAX_ENTRIES = 2_000_000
"""Largest number of pairs of a user and a bin: 32 bytes each, 64 MB."""
BINNED_NOTE = "Values are known by user and bin, not by row; programs read the table itself."


def build_values(
    user_codes: npt.ArrayLike,
    num_rows_each: npt.ArrayLike,
    means: npt.ArrayLike,
    standard_deviations: npt.ArrayLike,
    *,
    column: str,
    bins: ValueBins,
) -> Values:
    """Build the facet of values from one entry per user and bin, with new codes that depend on the entries alone.

    Args:
        user_codes: Different integers for different users, shape (num_entries,), in any order.
        num_rows_each: Rows of each entry, at least 1, likewise.
        means: Mean of their values, finite, likewise.
        standard_deviations: Standard deviation of their values, at least 0, likewise.
        column: Name of the column of values.
        bins: The bins.
    """
    row_counts, entry_means = np.asarray(num_rows_each, dtype=np.int64), np.asarray(means, dtype=np.float64)
    _, user_indices = np.unique(np.asarray(user_codes, dtype=np.int64), return_inverse=True)
    rows_per_user = np.bincount(user_indices, row_counts)
    user_order = np.lexsort((np.bincount(user_indices, row_counts * entry_means), rows_per_user))
    new_codes = np.argsort(user_order)[user_indices]
    order = np.lexsort((entry_means, new_codes))
    entry_deviations = np.asarray(standard_deviations, dtype=np.float64)[order]
    return Values(new_codes[order], entry_means[order], column, row_counts[order], entry_deviations, bins)


def expand_rows(values: Values) -> Values:
    """Return values with one entry per row.

    Binned values are spread: the rows of an entry lie evenly around its mean within its bin, with its standard
    deviation as far as the bin allows. Other values are returned as they are. Raise InvalidInput if there are more
    than `MAX_VALUES` rows.
    """
    if values.num_rows_each is None or values.bins is None or values.standard_deviations is None:
        return values
    if values.num_rows > MAX_VALUES:
        row_limit_message = (
            f"this needs the rows one by one, and there are {values.num_rows:,}; at most {MAX_VALUES:,} fit"
        )
        raise refuse(row_limit_message, remedy="Count a sample of whole users")
    # Evenly spaced rows have the standard deviation d / sqrt(3) within mean +- d, but for few rows.
    half_widths = np.minimum(
        math.sqrt(3.0) * values.standard_deviations, values.bins.find_room(values.values)
    )
    num_rows_each, first_rows = values.num_rows_each, np.cumsum(values.num_rows_each) - values.num_rows_each
    row_numbers = np.arange(values.num_rows) - np.repeat(first_rows, num_rows_each)
    positions = (2.0 * row_numbers + 1.0) / np.repeat(
        num_rows_each, num_rows_each
    ) - 1.0  # evenly between -1 and 1
    row_values = np.repeat(values.values, num_rows_each) + np.repeat(half_widths, num_rows_each) * positions
    return Values(np.repeat(values.user_codes, num_rows_each), row_values, values.column)


def list_assumptions(dataset: Dataset, is_quantile: bool = False) -> tuple[str, ...]:
    """Return one sentence on the error of a mean or a quantile of binned values; none if values are not binned."""
    value_bins = None if dataset.values is None else dataset.values.bins
    return () if value_bins is None else (value_bins.describe_error(is_quantile),)


def write_values(dataset: Dataset) -> str:
    """Return the binned values of a dataset as the text of a JSON file; raise InvalidInput if there are none."""
    values = dataset.values
    if (
        values is None
        or values.bins is None
        or values.num_rows_each is None
        or values.standard_deviations is None
    ):
        raise refuse("binned values need an engine, a column of values and bins")
    json_members = {
        "schema": SCHEMA,
        "label": dataset.provenance.label,
        "value_column": values.column,
        "drops_missing": dataset.drops_missing,
        "bins": vars(values.bins),
        "bins_per_user": np.diff(np.append(values.first_entries, values.values.size)).tolist(),
        "rows": values.num_rows_each.tolist(),
        "means": values.values.tolist(),
        "standard_deviations": values.standard_deviations.tolist(),
    }
    return json.dumps(json_members, ensure_ascii=False) + "\n"


def read_values(json_bytes: bytes, file_name: str, disclosure: Disclosure) -> Dataset:
    """Build a dataset from a JSON file of binned values, which an engine count wrote.

    Args:
        json_bytes: The file.
        file_name: Name of the dataset.
        disclosure: Public or private, as the user states.

    Raises:
        InvalidInput: The file has another format, or its lists do not fit together; all problems at once.
    """
    document = strict_json.load_json(json_bytes, MAX_BYTES, "the file")
    members = document.read_members(
        {
            "schema": lambda node: node.choose({SCHEMA: SCHEMA}),
            "value_column": strict_json.read_text(500),
            "bins": lambda node: Codec(0, 0).read(node, ValueBins),
            "drops_missing": lambda node: node.get_boolean(),
            "bins_per_user": lambda node: node.get_numbers(MAX_ENTRIES, (1, MAX_ENTRIES), is_integer=True),
            "rows": lambda node: node.get_numbers(MAX_ENTRIES, (1, MAX_SIZE), is_integer=True),
            "means": lambda node: node.get_numbers(MAX_ENTRIES, (-MAX_NUMBER, MAX_NUMBER)),
            "standard_deviations": lambda node: node.get_numbers(MAX_ENTRIES, (0, 2.0 * MAX_NUMBER)),
        },
        {"label": strict_json.read_text(500)},
    )
    document.problems.raise_if_any()
    assert members is not None
    bins_per_user, *entry_arrays = (
        members[member_name] for member_name in ("bins_per_user", "rows", "means", "standard_deviations")
    )
    if any(entry_array.size != bins_per_user.sum() for entry_array in entry_arrays):
        document.refuse("rows, means and standard deviations must have one entry for each bin of each user")
    document.problems.raise_if_any()
    user_codes = np.repeat(np.arange(bins_per_user.size), bins_per_user)
    values = build_values(user_codes, *entry_arrays, column=members["value_column"], bins=members["bins"])
    histogram = ContributionHistogram.from_counts(values.rows_per_user)
    roles = Roles(TableKind.EVENTS, value=values.column, drops_missing=members["drops_missing"])
    return Dataset(
        file_name, f"File {file_name}, values by user in {members['bins'].text}.", disclosure, histogram,
        values=values, totals=Totals.of_contributions(histogram), notes=(BINNED_NOTE,),
        layout=build_rule_layout(roles),
    )  # fmt: skip
