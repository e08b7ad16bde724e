"""The release for OpenDP: its Polars context.

Names and behaviour were checked against opendp 0.16.0 with polars 1.36.1, which the tests run (2026-11-21):
https://docs.opendp.org/en/v0.16.0/api/python/opendp.extras.polars.html (``truncate_per_group``,
``Margin.max_length``, ``dp.sum``, ``dp.quantile``, ``dp.len``) and
https://docs.opendp.org/en/v0.16.0/api/python/opendp.context.html (``Context.compositor``, ``unit_of``,
``loss_of``). ``truncate_num_groups`` is not used: in 0.16.0 it keeps one group fewer than asked for (ranks start
at 1 and are compared with ``< k``), and with ``keep="sample"`` it fails on a grouping column.
"""

from __future__ import annotations

import re
from typing import Any

from dpcore.code import common, with_selection
from dpcore.code.release_noise import find_release_noise
from dpcore.code.release_spec import GROUP_QUANTITIES, Code, Quantity, ReleaseSpec
from dpcore.common.programs import Program
from dpcore.data.tables import FileKind

LIBRARY_NAME = "OpenDP 0.16"
POLARS_REQUIREMENTS = "pip install 'opendp[polars]>=0.16,<0.17'"
REQUIREMENTS = f"{POLARS_REQUIREMENTS} pandas"
SELECTION_REQUIREMENTS = "pip install 'opendp>=0.16,<0.17' pandas"
RELATION_SENTENCE = (
    f"{common.ADD_OR_REMOVE_SENTENCE} unit_of(contributions=1, identifier=...) declares this; changes=1 in its place "
    "would replace one user."
)
NUM_CANDIDATES = 1001
PAIRED_SUMS_SENTENCE = (
    "OpenDP's context would split the budget between sums and rows. Polars keeps the bound, and OpenDP's mechanism "
    "adds the noise to one vector of them: that no user adds more to it rests on this program."
)


def write_program(spec: ReleaseSpec) -> Code:
    """Write the program of a release, or only the sentences on why there is none."""
    if spec.selection is not None:
        return with_selection.write_program(spec, Program.OPENDP, LIBRARY_NAME, SELECTION_REQUIREMENTS)
    body_text = _render_body(spec) if spec.is_in_libraries else ""
    releases_vector = spec.quantity is Quantity.GROUP_MEANS or common.has_noisy_rows(spec)
    is_polars_query = spec.max_norm is None and not releases_vector
    relation_sentence = RELATION_SENTENCE if is_polars_query else common.ADD_OR_REMOVE_SENTENCE
    requirements_text = (
        POLARS_REQUIREMENTS if has_short_program(spec) else common.add_readers(REQUIREMENTS, spec)
    )
    differences = _list_differences(spec)
    return common.assemble_code(
        spec, LIBRARY_NAME, relation_sentence, differences, body_text, requirements_text
    )


def has_short_program(spec: ReleaseSpec) -> bool:
    """Return True if a short program reads the file by Polars alone.

    That is for one plain text or Parquet file of public data. Not for private data: a lone quotation mark in one
    user's cell ends Polars' reader with lines of other users in its message. Besides, the need for more than a cast
    is itself private.
    """
    table_layout, (file_layout, *other_layouts) = spec.reading_layout, spec.reading_layout.files
    is_utf8_text = file_layout.kind is FileKind.TEXT and file_layout.encoding in ("utf-8", "ascii")
    is_utf8_text &= len(file_layout.separator) == 1
    is_one_file = (is_utf8_text or file_layout.kind is FileKind.PARQUET) and not other_layouts
    has_plain_layout = not (
        file_layout.skip or file_layout.packing or file_layout.names or file_layout.folder_cells
    )
    has_missing_rule = (
        table_layout.missing_is_a_user
        or table_layout.has_missing_rule
        or bool(table_layout.yes_text or table_layout.filters)
    )
    needs_marks = any(table_layout.find_decimal_mark(column_name) for column_name in spec.number_columns)
    # Polars takes some names for patterns of names.
    column_names = (*spec.privacy_unit, spec.value_column, spec.group_column)
    has_plain_names = (
        len(spec.privacy_unit) == 1
        and spec.value_column != spec.group_column
        and all(re.fullmatch(r"\w[\w ]*", column_name) for column_name in column_names)
    )
    is_tidy_file = is_one_file and has_plain_layout and not has_missing_rule and not needs_marks
    is_release = spec.is_in_libraries and spec.quantity is not Quantity.MODEL and spec.selection is None
    is_of_public_data = spec.is_of_public_data and not spec.groups
    return is_release and is_of_public_data and is_tidy_file and has_plain_names


def _list_differences(spec: ReleaseSpec) -> list[str]:
    """List sentences on what differs from the page, or on why there is no program."""
    quantity, is_smooth = spec.quantity, spec.threshold is not None
    if quantity is Quantity.CLASSIFIER:
        return [common.NO_TRAINING_SENTENCE.format(library="OpenDP")]
    if quantity in _REFUSAL_BY_QUANTITY:
        return [_REFUSAL_BY_QUANTITY[quantity]]
    differences = [common.describe_public_counts(spec), common.describe_gaussian_noise(spec)]
    differences.append(common.describe_clamped_mean(spec))
    if quantity is Quantity.QUANTILE and is_smooth:
        return [
            "OpenDP's quantile counts all rows alike, so smooth weights cannot be expressed. The closest option is a "
            "bound on rows per user, for which this library has code; plain Python has the smooth weights."
        ]
    if quantity is Quantity.QUANTILE:
        differences.append(
            f"OpenDP picks from {NUM_CANDIDATES:,} candidates, laid evenly over the range, by permute-and-flip "
            "(McKenna and Sheldon 2020); rows equal to a candidate are left out of its score."
        )
    if quantity is Quantity.MODEL:
        differences.append(
            "OpenDP has no learner with a bound on rows per user. The code only applies the bound; the learner "
            "that gets the rows must provide the privacy. It must count a user's rows together (user-level DP, or "
            "group privacy for MAX_ROWS)."
        )
    if quantity in GROUP_QUANTITIES:
        differences += [common.PUBLIC_GROUPS_SENTENCE, common.describe_replacement(spec)]
    if quantity in GROUP_QUANTITIES and spec.max_norm is not None:
        differences.append(
            "OpenDP's context bounds groups and rows one by one, not the norm of a user's whole vector. Polars brings "
            "the vectors to it, and OpenDP's mechanism adds the noise for that norm: that no vector exceeds it rests "
            "on this program."
        )
    if quantity is Quantity.GROUP_MEANS or common.has_noisy_rows(spec):
        differences.append(PAIRED_SUMS_SENTENCE)
    return differences


_REFUSAL_BY_QUANTITY = {
    Quantity.TASK_WEIGHTS: "OpenDP's context cannot bound a user's squared weights over all tasks together. The "
    "closest option is a bound on tasks per user, truncate_per_group; plain Python has the task weights.",
    Quantity.COEFFICIENTS: "OpenDP's context bounds each sum by itself, while here all coefficients share one bound on "
    "a user's weight. The context has no similar option; plain Python adds OpenDP's noise to the vector.",
}


def _render_body(spec: ReleaseSpec) -> str:
    """Render the program without head and notes."""
    release_noise = find_release_noise(spec, Program.OPENDP)
    template_values: dict[str, Any] = {"tidy": has_short_program(spec), "noise": release_noise}
    template_values |= {"candidates": NUM_CANDIDATES, "public_rows": common.PUBLIC_ROWS_SENTENCE}
    return common.render_program("with_opendp.py", spec, **template_values)
