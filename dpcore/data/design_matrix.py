"""Features, labels and users from a table of text cells: one-hot columns, an intercept, missing values.

A categorical column with k levels becomes k - 1 columns of 0 and 1; the level left out is its reference (Epasto
et al. 2020, appendix E.1.1, "dropping one category").
If the cells are private, the levels must be public, as their names and number enter every release: they are then
listed, and any other level counts as the reference. Rows with a missing value are left out, with a note. All problems
are reported at once, with their file lines.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_count
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.cell_numbers import MAX_NUMBER, NUMBER_TEXT, BoolArray, read_numbers
from dpcore.data.column_names import and_more, shorten
from dpcore.data.column_roles import refuse_wrong_columns
from dpcore.data.guessed_roles import guess_roles
from dpcore.data.tables import Table, TableLayout
from dpcore.dataset import MAX_TABLE_ENTRIES, Dataset, LabelledRows

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "intercept"
LABEL_NAMES = frozenset({"label", "target", "outcome", "response", "class", "y"})
"""Column names that are proposed as the label."""
MAX_LEVELS = 50
"""Largest number of levels of a categorical column; each but one becomes a feature."""

MAX_FEATURES = 50
"""Largest number of columns of the matrix: each costs a pass over all rows, and models here are small."""
RowCheck = Callable[[FloatArray, IntArray, tuple[str, ...]], object]
"""Check of features, users and names of the features; it raises `InvalidInput` if a model cannot use them."""

_INFINITE_PATTERN = re.compile(r"[+-]?inf(inity)?|.*[0-9].*", re.IGNORECASE)


class FeatureKind(enum.Enum):
    """The way a column enters the model."""

    NUMERIC = "number"
    CATEGORIES = "categories"


@dataclass(frozen=True)
class Feature:
    """A column as a feature, a number or one-hot.

    Of categories one level has no column: the reference, or the most frequent one if none is stated.

    Attributes:
        column: Name of the column.
        encoding: Number or one-hot.
        reference: The level that is left out (categories); empty for the most frequent one.
        further_levels: The public list of all other levels, in the order of their columns; empty to take those of the
            cells.
    """

    column: str
    encoding: FeatureKind = FeatureKind.NUMERIC
    reference: str = ""
    further_levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """The roles of the columns of a table for a model.

    Attributes:
        label: Column to predict.
        user: Column of users.
        features: Columns to predict from.
        intercept: True to begin with a column of ones.
        positive: The cell text of the class that counts as 1 (all others as 0); public. Empty if the label is numeric.
    """

    label: str
    user: str
    features: tuple[Feature, ...]
    intercept: bool = True
    positive: str = ""


def read_levels(column_name: str, levels_text: str) -> Feature:
    """Build a categorical feature from a list of levels, one per line with the reference first.

    Raises:
        InvalidInput: Fewer than two levels, too many, or a repeated one.
    """
    level_names = [level_line.strip() for level_line in levels_text.splitlines() if level_line.strip()]
    levels_location = f"the levels of column {shorten(column_name)}"
    with Problems() as problems:
        if len(level_names) < 2:
            problems.add("at least two are needed, the reference level and another", levels_location)
        if len(level_names) > MAX_LEVELS:
            problems.add(f"there are {len(level_names):,}; at most {MAX_LEVELS} are handled", levels_location)
        repeated_names = sorted(
            shorten(level_name) for level_name, count in Counter(level_names).items() if count > 1
        )
        if repeated_names:
            message = f"{', '.join(repeated_names[:3])}{and_more(len(repeated_names) - 3)} stands twice"
            problems.add(message, levels_location, "Write each level once")
    return Feature(column_name, FeatureKind.CATEGORIES, level_names[0], tuple(level_names[1:]))


def list_levels(table: Table, column_name: str) -> tuple[str, ...]:
    """Return the distinct filled cells of a column, the most frequent first, ties in alphabetical order."""
    column_cells = table.frame[column_name]
    level_counts = column_cells[(column_cells != "").to_numpy(bool)].value_counts(sort=False)
    level_names = [str(counted_level) for counted_level in level_counts.index]
    return tuple(sorted(level_names, key=lambda level: (-level_counts[level], level)))


def is_numeric(table: Table, column_name: str) -> bool:
    """Return True if a column holds numbers with unambiguous marks, and all other cells are missing."""
    column_numbers = read_numbers(table, column_name)
    is_readable = column_numbers.marks.problem is None and not column_numbers.text_mask.any()
    return is_readable and bool(np.isfinite(column_numbers.values).any())


def guess_design(table: Table, allows_words: bool = False) -> Design:
    """Guess the label, the user column and the features.

    The label and the user are found by name; else they are the last column of numbers and the first column. Features
    are the useful ones of the others.

    Args:
        table: A table with at least one column.
        allows_words: True if the label may be a column of words.
    """
    roles = guess_roles(table)
    user_column = roles.user or table.columns[0]
    other_columns = [column for column in table.columns if column != user_column]
    numeric_columns = [column for column in other_columns if is_numeric(table, column)]
    label_column = (numeric_columns or other_columns or [user_column])[-1]
    if roles.value in other_columns:
        label_column = roles.value
    possible_labels = other_columns if allows_words else numeric_columns
    label_columns = [column for column in possible_labels if column.strip().casefold() in LABEL_NAMES]
    label_column = label_columns[0] if label_columns else label_column
    feature_columns = [column for column in other_columns if column != label_column]
    return Design(label_column or user_column, user_column, guess_features(table, feature_columns))


def guess_features(
    table: Table,
    feature_columns: Sequence[str],
    features_by_column: Mapping[str, Feature] | None = None,
    keeps_all: bool = False,
) -> tuple[Feature, ...]:
    """Guess how columns enter the model: as in ``features_by_column``, as numbers, or else as categories.

    Args:
        table: The table.
        feature_columns: Some of its columns.
        features_by_column: Columns that are known to be categories.
        keeps_all: True to keep columns of one level or of very many; they are left out otherwise.
    """
    features = []
    for column in feature_columns:
        if features_by_column and column in features_by_column:
            features.append(features_by_column[column])
        elif is_numeric(table, column):
            features.append(Feature(column))
        elif 2 <= len(level_names := list_levels(table, column)) <= MAX_LEVELS // 2 or keeps_all:
            features.append(Feature(column, FeatureKind.CATEGORIES, level_names[0] if level_names else ""))
    return tuple(features)


@dataclass
class _Reading:
    """The columns read so far for a model, with missing cells, problems and notes."""

    table: Table
    problems: Problems = field(default_factory=Problems)
    notes: list[str] = field(default_factory=list)
    missing_mask_by_column: dict[str, BoolArray] = field(default_factory=dict)
    decimal_marks: dict[str, str] = field(default_factory=dict)

    def describe_lines(self, bad_mask: BoolArray) -> str:
        """Return the lines of the first three bad rows as text, and how many more there are."""
        bad_rows = np.flatnonzero(bad_mask)
        lines_text = ", ".join(f"{self.table.get_line_number(int(bad_row)):,}" for bad_row in bad_rows[:3])
        further_lines_text = f" and {bad_rows.size - 3:,} more" if bad_rows.size > 3 else ""
        return f"line{'s' if bad_rows.size > 1 else ''} {lines_text}{further_lines_text}"

    def read_number_column(self, column_name: str, cell_remedy: str) -> FloatArray:
        """Read a column as numbers, NaN for missing cells; note which are missing.

        Blank cells, NA and the like are missing. Other texts, and numbers beyond the limit, are added as problems.
        """
        column_numbers = read_numbers(self.table, column_name)
        column_marks = column_numbers.marks
        self.notes += [column_marks.note_text] if column_marks.note_text else []
        self.decimal_marks[column_name] = column_marks.decimal_mark
        self.problems.extend([column_marks.problem] if column_marks.problem is not None else [])
        # Cells that say inf, or have digits and are not finite, such as 1e999.
        infinite_mask = column_numbers.not_finite_mask.copy()
        odd_rows = np.flatnonzero(infinite_mask)
        odd_cells = self.table.frame[column_name].iloc[odd_rows]
        infinite_mask[odd_rows] = [_INFINITE_PATTERN.fullmatch(str(cell)) is not None for cell in odd_cells]
        too_large_mask = infinite_mask | (np.abs(column_numbers.values) > MAX_NUMBER)
        missing_word_mask = column_numbers.not_finite_mask & ~infinite_mask
        self.missing_mask_by_column[column_name] = column_numbers.blank_mask | missing_word_mask
        messages = "text where a number must stand", f"no {NUMBER_TEXT}"
        for bad_mask, cell_message in zip((column_numbers.text_mask, too_large_mask), messages, strict=True):
            if bad_mask.any():
                first_location = f"{self.describe_lines(bad_mask)}, column {shorten(column_name)}"
                self.problems.add(cell_message, first_location, cell_remedy)
        return column_numbers.values

    def read_labels(self, design: Design) -> FloatArray:
        """Read the label as numbers; if the design names a class, 1 for its cells and 0 for others."""
        if not design.positive:
            return self.read_number_column(design.label, "Correct these cells, or choose another label")
        return np.asarray(self.read_text_column(design.label) == design.positive, dtype=np.float64)

    def read_text_column(self, column_name: str) -> pd.Series:
        """Return the cells of a column as text; note that blank ones are missing."""
        column_cells = self.table.frame[column_name]
        self.missing_mask_by_column[column_name] = (column_cells == "").to_numpy(bool)
        return column_cells


def build_dataset(
    table: Table, design: Design, disclosure: Disclosure, check_rows: RowCheck | None = None
) -> Dataset:
    """Build the dataset with the facet `table`: features, labels and users of the complete rows.

    Args:
        table: Result of `dpcore.counting.read_table`.
        design: Roles of the columns.
        disclosure: Public or private, as the user states.
        check_rows: Further check of a model on the features.

    Returns:
        The dataset; its notes name the rows with missing values, which are left out.

    Raises:
        InvalidInput: Roles overlap or are missing, cells cannot be read, a category has too few or too many
            levels, too few rows, or the check fails; all problems that can be detected at once.
    """
    import pandas as pd

    _check_roles(table, design)
    reading = _Reading(table)
    reading.notes += table.notes
    labels = reading.read_labels(design)
    user_cells = reading.read_text_column(design.user)
    numbers_by_column: dict[str, FloatArray] = {}
    for feature in design.features:
        if feature.encoding is FeatureKind.NUMERIC:
            number_remedy = "Correct these cells, take the column as categories, or leave it out"
            numbers_by_column[feature.column] = reading.read_number_column(feature.column, number_remedy)
        else:
            reading.read_text_column(feature.column)
    reading.problems.raise_if_any()
    complete_row_indices = _find_complete_rows(reading)
    # Levels are those of the remaining rows: a level without rows would be a column of zeros.
    named_blocks: list[tuple[FloatArray, list[str]]] = []
    for feature in design.features:
        if feature.encoding is FeatureKind.NUMERIC:
            named_blocks.append(
                (numbers_by_column[feature.column][complete_row_indices, None], [feature.column])
            )
        else:
            named_blocks.append(_encode_one_hot(reading, feature, complete_row_indices))
    reading.problems.raise_if_any()
    if design.intercept:
        named_blocks.insert(
            0, (np.ones((complete_row_indices.size, 1)), [_make_unique(INTERCEPT, table.columns)])
        )
    _check_size(
        reading, complete_row_indices.size, sum(block_values.shape[1] for block_values, _ in named_blocks)
    )
    feature_matrix = np.hstack([block_values for block_values, _ in named_blocks])
    feature_names: tuple[str, ...] = ()
    for name in (name for _, block_names in named_blocks for name in block_names):
        feature_names += (_make_unique(name, feature_names),)  # It may be that of a level of another column.
    user_codes = np.asarray(pd.factorize(user_cells.iloc[complete_row_indices])[0], dtype=np.int64)
    if check_rows is not None:
        check_rows(feature_matrix, user_codes, feature_names)
    text_columns = tuple(name for name in reading.missing_mask_by_column if name not in reading.decimal_marks)
    table_layout = TableLayout(table.layouts, tuple(reading.decimal_marks.items()), filled=text_columns)
    source_text, rows_per_user = f"File {table.name}. {explain_design(design)}", np.bincount(user_codes)
    return Dataset(
        table.name, source_text, disclosure, ContributionHistogram.from_counts(rows_per_user), (design.user,),
        table=LabelledRows(feature_matrix, labels[complete_row_indices], user_codes, feature_names, design.label),
        notes=tuple(reading.notes), layout=table_layout if table.layouts else None,
    )  # fmt: skip


def explain_design(design: Design) -> str:
    """Write the design as one sentence: label, features and user column."""
    feature_phrases = ["an intercept"] if design.intercept else []
    for feature in design.features:
        is_category = feature.encoding is FeatureKind.CATEGORIES
        encoding_text = f" (one-hot, without {shorten(feature.reference)})" if is_category else ""
        feature_phrases.append(shorten(feature.column) + encoding_text)
    label_text = shorten(design.label) + (f" = {shorten(design.positive)}" if design.positive else "")
    return f"{label_text} from {', '.join(feature_phrases)}; users in column {shorten(design.user)}."


def _check_roles(table: Table, design: Design) -> None:
    """Raise InvalidInput for columns that do not exist or have two roles, and for a design without features."""
    role_columns = [("the user", design.user), ("the label", design.label)]
    with Problems() as problems:
        role_columns += [("a feature", feature.column) for feature in design.features]
        refuse_wrong_columns(problems, table.columns, role_columns, table.name)
        if not design.features and not design.intercept:
            problems.add("there are no features", remedy="Choose at least one column, or the intercept")


def _find_complete_rows(reading: _Reading) -> IntArray:
    """Return the indices of the rows without missing cells, and add a note on the others.

    Raise InvalidInput if no row is complete.
    """
    masks_by_column = {
        column_name: mask for column_name, mask in reading.missing_mask_by_column.items() if mask.any()
    }
    left_out_mask = np.any([np.zeros(len(reading.table.frame), bool), *masks_by_column.values()], axis=0)
    complete_row_indices = np.flatnonzero(~left_out_mask)
    if masks_by_column:
        mask_items = list(masks_by_column.items())[:10]
        line_texts = [f"{shorten(column)}: {reading.describe_lines(mask)}" for column, mask in mask_items]
        noun_forms = "row with a missing value was", "rows with missing values were"
        count_text = format_count(int(left_out_mask.sum()), *noun_forms)
        reading.notes.append(f"{count_text} left out ({'; '.join(line_texts)}).")
    if not complete_row_indices.size:
        worst_column = max(masks_by_column, key=lambda column: int(masks_by_column[column].sum()))
        raise refuse("no row is complete", remedy=f"Leave out columns such as {shorten(worst_column)}")
    return complete_row_indices


def _encode_one_hot(
    reading: _Reading, feature: Feature, kept_row_indices: IntArray
) -> tuple[FloatArray, list[str]]:
    """Return (columns of 0 and 1, one for each level but the reference, in the kept rows; their names).

    If there are problems, which are added, it is one column of zeros.
    """
    import pandas as pd

    cells = reading.table.frame[feature.column].iloc[kept_row_indices]
    if feature.further_levels:  # The levels are public, so no check may depend on the cells.
        indicators = (cells.to_numpy(str)[:, None] == np.array(feature.further_levels)).astype(np.float64)
        return indicators, [f"{feature.column}: {other_level}" for other_level in feature.further_levels]
    level_codes, distinct_cells = pd.factorize(cells, sort=True)
    location, num_levels = f"column {shorten(feature.column)}", len(distinct_cells)
    level_names = [str(other_level) for other_level in distinct_cells]
    if num_levels < 2:
        reading.problems.add("only one level is left", location, "Leave it out")
    elif num_levels > MAX_LEVELS:
        levels_message = f"{num_levels:,} levels; at most {MAX_LEVELS} are handled"
        reading.problems.add(levels_message, location, "Group its levels")
    reference_level = feature.reference or str(cells.mode().iloc[0])
    if reference_level not in level_names:
        reading.problems.add("the reference level stands in no complete row", location, "Choose another one")
    if reading.problems.entries:
        return np.zeros((kept_row_indices.size, 1)), [feature.column]
    indicator_codes = [
        level_index for level_index, level_name in enumerate(level_names) if level_name != reference_level
    ]
    indicators = (level_codes[:, None] == np.array(indicator_codes)).astype(np.float64)
    return indicators, [f"{feature.column}: {level_names[level_index]}" for level_index in indicator_codes]


def _check_size(reading: _Reading, num_rows: int, num_columns: int) -> None:
    """Raise InvalidInput if the matrix has too many columns, too many entries or too few rows."""
    if num_columns > MAX_FEATURES:
        message = f"{num_columns:,} features after one-hot encoding; at most {MAX_FEATURES} are handled"
        reading.problems.add(message, remedy="Leave columns out, or group levels")
    if num_rows * num_columns > MAX_TABLE_ENTRIES:
        reading.problems.add(f"{num_rows * num_columns:,} entries; at most {MAX_TABLE_ENTRIES:,} fit")
    if num_rows <= num_columns:
        message = (
            f"{format_count(num_columns, 'coefficient')} need more complete rows than the {num_rows:,} here"
        )
        reading.problems.add(message, remedy="Leave features out")
    reading.problems.raise_if_any()


def _make_unique(feature_name: str, used_names: tuple[str, ...]) -> str:
    """Return the name, with apostrophes behind it if it is used already."""
    while feature_name in used_names:
        feature_name += "'"
    return feature_name
