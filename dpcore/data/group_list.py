"""The public list of groups as a person writes it: names, or the edges of bins of numbers or dates.

Page, call, command and program read it alike, so that the program's groups are those that the page counted.
"""

from __future__ import annotations

import bisect
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpcore.common.checks import refuse
from dpcore.contributions import IntArray
from dpcore.data.bin_edges import find_reader, name_bins, parse_edges
from dpcore.data.tables import BLANKS
from dpcore.dataset import LONGEST_TASK_NAME, Dataset

MAX_CHARACTERS = 500_000
"""Longest list; one of 30,000 groups has about so many characters."""


def parse_groups(text: str | None) -> tuple[str, ...]:
    """Parse the names of a public list, one a line or as a JSON list; empty if there is no list.

    Raises:
        InvalidInput: A name is empty or stands there twice, or the list is too long.
    """
    if text is None or not text.strip():
        return ()
    if len(text) > MAX_CHARACTERS:
        raise refuse(f"the list of groups has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    filled_lines = [filled_line for filled_line in re.split("[\r\n]", text) if filled_line.strip(BLANKS)]
    if text.lstrip().startswith("["):
        try:
            json_names = json.loads(text)
            filled_lines = json_names if all(isinstance(name, str) for name in json_names) else filled_lines
        except ValueError:  # A name may begin with a bracket.
            pass
    group_names = [name.strip(BLANKS) for name in filled_lines]
    if "" in group_names:
        empty_name_remedy = "Remove it: rows with an empty cell are in no group"
        raise refuse("the list of groups has an empty name", remedy=empty_name_remedy)
    if repeated_names := [name for name, num_lines in Counter(group_names).items() if num_lines > 1]:
        repeat_message = f"the list of groups has {repeated_names[0][:40]!r} twice"
        raise refuse(repeat_message, remedy="Name each group once; blanks around a name do not count")
    return tuple(group_names)


def write_groups(groups_or_path: Any) -> Any:
    """Convert a public list to the text of its field.

    A path is read as a file with one name a line, and other iterables become a JSON list. A text, and anything else,
    is returned as it is.

    Raises:
        InvalidInput: The file cannot be read.
    """
    if isinstance(groups_or_path, Path):
        try:
            return groups_or_path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason_text = getattr(error, "strerror", None) or "it is not UTF-8"
            raise refuse(f"the list of groups {groups_or_path.name} cannot be read: {reason_text}") from None
    if isinstance(groups_or_path, str) or not isinstance(groups_or_path, Iterable):
        return groups_or_path
    return json.dumps([str(group_name) for group_name in groups_or_path], ensure_ascii=False)


def find_groups(groups_text: str | None, edges_text: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (names of the groups, edges) of a public list.

    The names are those of the list, without edges, or those of the bins. Both are empty without a list.

    Raises:
        InvalidInput: The list or the edges cannot be read, or both are given.
    """
    for argument_name, entered_text in (("list of groups", groups_text), ("edges of bins", edges_text)):
        if not isinstance(entered_text, str | None):
            raise refuse(f"the {argument_name} must be a text; got {str(entered_text)[:40]}")
    group_names, bin_edges = parse_groups(groups_text), parse_edges(edges_text)
    if group_names and bin_edges:
        raise refuse("the public list of groups and edges of bins do not go together", "", "Leave one empty")
    return (name_bins(bin_edges), bin_edges) if bin_edges else (group_names, ())


def code_cells(group_cells: Sequence[str], groups: Sequence[str], edges: Sequence[str] = ()) -> IntArray:
    """Return for each cell the index of its group in the list, or of its bin; -1 for none, shape (cells,).

    Args:
        group_cells: Names in the data, without blanks around them; as `Dataset.task_names`, cut to `LONGEST_TASK_NAME`.
        groups: The list.
        edges: Edges of bins, of which ``groups`` are the names; empty for a list of names.
    """
    index_by_name = {group[:LONGEST_TASK_NAME]: group_index for group_index, group in enumerate(groups)}
    if not edges:
        return np.array([index_by_name.get(group_cell, -1) for group_cell in group_cells], dtype=np.int64)
    read_cell, group_codes = find_reader(edges), []
    edge_values = list(map(read_cell, edges))
    for group_cell in group_cells:
        try:
            bin_index = bisect.bisect_right(edge_values, read_cell(group_cell)) - 1
        except ValueError:
            bin_index = -1
        group_codes.append(bin_index if bin_index < len(groups) else -1)
    return np.array(group_codes, dtype=np.int64)


def code_groups(dataset: Dataset, groups: Sequence[str], edges: Sequence[str] = ()) -> IntArray:
    """Return for each group of a dataset's pairs its index in the list, or that of its bin; -1 for none.

    Args:
        dataset: The dataset.
        groups: The list.
        edges: Edges of bins, of which ``groups`` are the names; empty for a list of names.

    Raises:
        InvalidInput: The data hold no names, or none of the list.
    """
    if not dataset.task_names:
        no_names_message = "these data hold no names of groups, so that a list cannot be compared with them"
        names_remedy = "Read the file again, or enter how many groups are on the list instead"
        raise refuse(no_names_message, remedy=names_remedy)
    list_indices = code_cells(dataset.task_names, groups, edges)
    if not (list_indices >= 0).any():
        names_remedy = "Write names as they stand in the cells, or edges that the cells lie between"
        raise refuse("no group on the public list is in the data", remedy=names_remedy)
    return list_indices
