"""The rows of a classifier and their owners, and scores of models."""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.common.checks import InvalidInput, Problems, refuse, require
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, read_only
from dpcore.data.design_matrix import Design, FeatureKind
from dpcore.dataset import Dataset, LabelledRows
from dpcore.training.mechanism import LossKind


@dataclass(frozen=True)
class Scaling:
    """Public bounds that scale features to norm at most 1; they are never computed from private data.

    A feature is clipped to its range and mapped to [-1, 1], or taken as it is and clipped to [-1, 1] where it
    has none (an intercept, an indicator). Rows longer than ``norm`` are shortened to it, then all are divided
    by it.

    Attributes:
        feature_ranges: (lowest, highest) of each feature, in its own unit; None for one that is taken as it is.
        norm: Norm that a mapped row has at most, above 0.

    Raises:
        InvalidInput: A range that is empty or not finite, or a norm that is not above 0; all at once.
    """

    feature_ranges: tuple[tuple[float, float] | None, ...]
    norm: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every range that is empty or not finite, and a norm that is not positive."""
        with Problems() as problems:
            for feature_number, value_range in enumerate(self.feature_ranges, 1):
                lower, upper = value_range or (-1.0, 1.0)
                range_text = f"the range of feature {feature_number}"
                is_finite = all(
                    problems.finite(**{f"an end of {range_text}": range_end}) for range_end in (lower, upper)
                )
                if is_finite and not (lower < upper and math.isfinite(upper - lower)):
                    problems.add(f"{range_text} must go from a lower to a higher number")
            problems.positive(norm=self.norm)

    def apply(self, features: FloatArray) -> FloatArray:
        """Clip features to their ranges and scale rows to norm at most 1 (within rounding), shape of ``features``.

        Raises:
            InvalidInput: There is not one range per column.
        """
        if len(self.feature_ranges) != features.shape[1]:
            raise refuse(f"{len(self.feature_ranges)} ranges for {features.shape[1]} features")
        # Halved before they are added up: the sum of two large ends may leave float64.
        halved_ranges = (
            np.array([range_or_none or (-1.0, 1.0) for range_or_none in self.feature_ranges]).reshape(-1, 2)
            / 2
        )
        halved_lower_ends, halved_upper_ends = halved_ranges.T
        centred_features = (features - (halved_lower_ends + halved_upper_ends)) / (
            halved_upper_ends - halved_lower_ends
        )
        scaled_features = np.clip(centred_features, -1.0, 1.0) / self.norm
        # Added up column by column: a row's result must not depend on where it stands (`release` rests on that).
        squared_norms = np.zeros(scaled_features.shape[0])
        for column_values in scaled_features.T:
            squared_norms += column_values * column_values
        return np.asarray(scaled_features / np.maximum(np.sqrt(squared_norms), 1.0)[:, None])


def list_numeric_columns(design: Design) -> tuple[str, ...]:
    """List the names of the columns that enter as numbers."""
    return tuple(feature.column for feature in design.features if feature.encoding is FeatureKind.NUMERIC)


def make_scaling(
    dataset: Dataset, design: Design, ranges_by_column: Mapping[str, tuple[float, float]]
) -> Scaling:
    """Build the scaling of a table from the public ranges of its columns that enter as numbers.

    Numbers are mapped to [-1, 1] by their ranges, indicators and the intercept stay. A row has a norm of at
    most the root of how many numbers, categorical columns (one indicator of each can be 1) and intercepts there
    are.

    Args:
        dataset: With the facet `table`.
        design: What its columns mean.
        ranges_by_column: Public range of each column that enters as a number.

    Raises:
        InvalidInput: A range is missing, empty or not finite.
    """
    assert dataset.table is not None
    numeric_columns = list_numeric_columns(design)
    missing_columns = [column for column in numeric_columns if column not in ranges_by_column]
    if missing_columns:
        raise InvalidInput([f"the range of {column} is missing" for column in missing_columns])
    # Features stand in the order of the design; a number keeps its column's name.
    feature_names = dataset.table.feature_names
    feature_ranges = tuple(
        ranges_by_column[name] if name in numeric_columns else None for name in feature_names
    )
    return Scaling(feature_ranges, math.sqrt(len(design.features) + design.intercept))


@dataclass(frozen=True, eq=False)
class ClassifierRows:
    """The rows that a classifier learns from or is judged on, sorted by user.

    Attributes:
        features: Norm of a row at most 1, shape (num_rows, num_features).
        signs: 1 or -1, shape (num_rows,).
        user_codes: 0 .. num_users - 1, ascending, each with at least one row, shape (num_rows,).
    """

    features: FloatArray
    signs: FloatArray
    user_codes: IntArray

    def __post_init__(self) -> None:
        for field_array in (self.features, self.signs, self.user_codes):
            read_only(field_array)

    @cached_property
    def sizes(self) -> IntArray:
        """Count the rows of each user, shape (num_users,)."""
        return np.bincount(self.user_codes).astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """Return the position of each user's first row, shape (num_users,)."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def signed_features(self) -> FloatArray:
        """Return y x of each row, shape of ``features``: margins are this times θ."""
        return self.features * self.signs[:, None]

    @cached_property
    def norms(self) -> FloatArray:
        """Compute the norm of each row's features, shape (num_rows,)."""
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.features, self.features)))

    @cached_property
    def histogram(self) -> ContributionHistogram:
        """Return the histogram of rows per user."""
        return ContributionHistogram.from_counts(self.sizes)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the content, hexadecimal: as private as the data."""
        content_hash = hashlib.sha256()
        for field_array in (self.features, self.signs, self.user_codes):
            content_hash.update(np.ascontiguousarray(field_array).tobytes())
        return content_hash.hexdigest()

    @property
    def num_rows(self) -> int:
        """Return n, the number of rows."""
        return int(self.user_codes.size)

    @property
    def num_users(self) -> int:
        """Return m, the number of users."""
        return int(self.sizes.size)

    @property
    def num_features(self) -> int:
        """Return d, the number of features."""
        return int(self.features.shape[1])

    def select_users(self, user_codes: IntArray) -> ClassifierRows:
        """Select the rows of some users, by their codes, and number these users anew from 0 in the same order."""
        selected_user_mask = np.zeros(self.num_users, dtype=bool)
        selected_user_mask[user_codes] = True
        selected_row_mask = selected_user_mask[self.user_codes]
        codes_of_kept_rows = (np.cumsum(selected_user_mask) - 1)[self.user_codes[selected_row_mask]].astype(
            np.int64
        )
        return ClassifierRows(
            self.features[selected_row_mask], self.signs[selected_row_mask], codes_of_kept_rows
        )


def prepare_rows(labelled_rows: LabelledRows, scaling: Scaling, positive_above: float) -> ClassifierRows:
    """Clip and scale the rows of a table and sort them by user; a label above the threshold is 1, any other -1.

    Args:
        labelled_rows: Features, labels and owners.
        scaling: One range per feature.
        positive_above: The threshold, public, in the labels' unit.

    Raises:
        InvalidInput: Ranges do not fit, or the threshold is not finite.
    """
    require.finite(positive_above=positive_above)
    row_order = np.argsort(labelled_rows.user_codes, kind="stable")
    user_codes = np.unique(labelled_rows.user_codes[row_order], return_inverse=True)[1].astype(np.int64)
    label_signs = np.where(labelled_rows.labels[row_order] > positive_above, 1.0, -1.0)
    return ClassifierRows(scaling.apply(labelled_rows.features[row_order]), label_signs, user_codes)


def hold_out(rows: ClassifierRows, test_share: float, seed: int) -> tuple[ClassifierRows, ClassifierRows]:
    """Split users at random into those to train on and those held out; all rows of a user go to one side.

    Args:
        rows: Of at least two users.
        test_share: Share of the users held out, strictly between 0 and 1; at least one user stays on either side.
        seed: Of the draw.

    Raises:
        InvalidInput: ``test_share`` out of range, or fewer than two users.
    """
    with Problems() as problems:
        problems.inside(0.0, 1.0, **{"the share of users that is held out": test_share})
        if rows.num_users < 2:
            problems.add("one user cannot be split into users to train on and users held out")
    num_test = min(max(round(test_share * rows.num_users), 1), rows.num_users - 1)
    shuffled_users = np.random.default_rng([seed, 2]).permutation(rows.num_users)
    test_users, training_users = np.sort(shuffled_users[:num_test]), np.sort(shuffled_users[num_test:])
    return rows.select_users(training_users), rows.select_users(test_users)


def concatenate_rows(rows: ClassifierRows, other_rows: ClassifierRows) -> ClassifierRows:
    """Return the rows of some users and of others together; the codes of the others are raised to follow."""
    return ClassifierRows(
        np.concatenate((rows.features, other_rows.features)),
        np.concatenate((rows.signs, other_rows.signs)),
        np.concatenate((rows.user_codes, other_rows.user_codes + rows.num_users)),
    )


_BLOCK_CELLS = 400_000


class Measure(enum.Enum):
    """The measure of a score, and its position in the last axis of a table of scores."""

    LOSS = "loss"
    ACCURACY = "accuracy"


class ScoreUnit(enum.Enum):
    """The units of a mean score: all rows count equally, or all users do; both agree unless heavy users differ."""

    ROWS = "rows"
    USERS = "users"


SCORE_SHAPE = (len(ScoreUnit), len(Measure))


def score_models(rows: ClassifierRows, loss: LossKind, theta: FloatArray) -> FloatArray:
    """Compute mean loss and accuracy of several models, over rows and over users, shape (runs, 2, 2).

    Args:
        rows: Whose rows they are judged on.
        loss: Of a row.
        theta: Shape (num_features, runs).

    Returns:
        Shape (runs, 2, 2): over rows and over users; loss, and share of rows told right (a margin of 0 counts half).
    """
    num_runs = theta.shape[1]
    model_scores = np.zeros((num_runs, *SCORE_SHAPE))
    equal_user_weights = 1.0 / rows.num_users / rows.sizes[rows.user_codes]
    row_weights_per_unit = np.stack((np.full(rows.num_rows, 1.0 / rows.num_rows), equal_user_weights))
    block_size = max(_BLOCK_CELLS // num_runs, 1)
    for first_row_index in range(0, rows.num_rows, block_size):
        row_slice = slice(first_row_index, first_row_index + block_size)
        margins = rows.signed_features[row_slice] @ theta
        row_accuracies = 0.5 * (np.sign(margins) + 1.0)
        for measure_index, row_scores in enumerate((loss.evaluate(margins), row_accuracies)):
            model_scores[:, :, measure_index] += (row_weights_per_unit[:, row_slice] @ row_scores).T
    return model_scores


def score_guess(rows: ClassifierRows, loss: LossKind, common_score: float) -> FloatArray:
    """Compute loss and accuracy of a model with one score for every row, over rows and over users, shape (2, 2)."""
    rows_of_ones = replace(rows, features=np.ones((rows.num_rows, 1)))
    return np.asarray(score_models(rows_of_ones, loss, np.array([[common_score]]))[0])
