"""The question: features, who owns which row, the labels' bound and noise, and epsilon. All of it public."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.privacy import LaplaceNoise
from dpcore.contributions import ByDigest, ContributionHistogram, FloatArray, IntArray
from dpcore.regression.whitening import RANK_TOLERANCE, Whitened, dependent_columns, whiten

MAX_ENTRIES = 30_000_000
"""Rows times features: 8 bytes each, and the solver holds up to 17 copies (measured; 4 GB)."""
MAX_FEATURES = 50
"""The dual has d^2 unknowns, its Hessian d^4 entries: 50 MB at 50 features."""


@dataclass(frozen=True, eq=False)
class RegressionProblem(ByDigest):
    """The question: estimate the coefficients of a linear model from private labels with epsilon-DP.

    The total variance adds up variances of coefficients, each in (unit of the label / unit of its
    feature)^2, so the best estimator depends on the features' units; nothing is rescaled here.

    Attributes:
        features: X, finite, full column rank, shape (num_rows, num_features), each column in its own unit.
        user_codes: Who owns each row, whole numbers, shape (num_rows,), in any order.
        epsilon: Privacy budget, above 0.
        value_bound: B, the length of the interval that labels are clipped to, above 0, in the labels' unit.
        residual_variance: sigma^2, the variance of one label around the model, at least 0, labels' unit squared.
        feature_names: One name per column; x1, x2, ... where none are given.

    Raises:
        InvalidInput: Wrong shapes, numbers not finite, too few rows, linearly dependent columns (named), a
            parameter out of its range; all problems at once.
    """

    features: FloatArray
    user_codes: IntArray
    epsilon: float
    value_bound: float
    residual_variance: float
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        with Problems() as problems:
            features = _checked_features(self.features, problems)
            codes = _checked_codes(self.user_codes, None if features is None else features.shape[0], problems)
            names = _checked_names(
                self.feature_names, None if features is None else features.shape[1], problems
            )
            self._check_question(problems)
        assert features is not None
        assert codes is not None
        for array in (features, codes):
            # Digest and factors are computed once: nobody may change the arrays behind them.
            array.flags.writeable = False
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "user_codes", codes)
        object.__setattr__(self, "feature_names", names)
        with problems:
            self._check_ratio(problems)
            if self.whitened.condition > 1.0 / RANK_TOLERANCE:
                columns = ", ".join(names[j] for j in dependent_columns(features))
                problems.add(
                    f"the features are linearly dependent: {columns} can be written through the others",
                    remedy="Leave these out, or one level of each one-hot group, or the intercept",
                )

    def _check_question(self, problems: Problems) -> None:
        problems.positive(epsilon=self.epsilon, value_bound=self.value_bound)
        problems.non_negative(residual_variance=self.residual_variance)

    def _check_ratio(self, problems: Problems) -> None:
        if not (0.0 < self.unit_noise < math.inf and math.isfinite(self.trade_off)):
            problems.add(
                "epsilon, value_bound and residual_variance are so far apart that their ratio leaves float64",
                remedy="Express the labels in another unit",
            )

    def with_settings(
        self, epsilon: float, value_bound: float, residual_variance: float
    ) -> RegressionProblem:
        """Return another question about the same features and owners, which are neither checked nor sorted again.

        Args:
            epsilon: As in `RegressionProblem`.
            value_bound: As in `RegressionProblem`.
            residual_variance: As in `RegressionProblem`.

        Raises:
            InvalidInput: As for a new problem.
        """
        new: RegressionProblem = object.__new__(RegressionProblem)
        values = {
            "features": self.features,
            "user_codes": self.user_codes,
            "feature_names": self.feature_names,
            "epsilon": epsilon,
            "value_bound": value_bound,
            "residual_variance": residual_variance,
            # Cached, not fields: they depend on features and owners alone.
            "whitened": self.whitened,
            "histogram": self.histogram,
        }
        for name, value in values.items():
            object.__setattr__(new, name, value)
        with Problems() as problems:
            new._check_question(problems)
        with problems:
            new._check_ratio(problems)
        return new

    @property
    def num_rows(self) -> int:
        """Return the number of rows, n."""
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        """Return the number of columns, d."""
        return int(self.features.shape[1])

    @property
    def num_users(self) -> int:
        """Return the number of users with at least one row, m."""
        return int(self.whitened.starts.size)

    @property
    def unit_noise(self) -> float:
        """Return 2 d (B / epsilon)^2: the noise in all coefficients together per unit of (largest user weight)^2."""
        return self.num_features * LaplaceNoise.for_release(self.value_bound, self.epsilon).variance

    @property
    def trade_off(self) -> float:
        """Return A = sigma^2 / unit_noise: variances divided by `unit_noise` are A sum c^2 + (max_l sum |c|)^2."""
        return self.residual_variance / self.unit_noise

    @cached_property
    def whitened(self) -> Whitened:
        """Return the rows sorted by user and the constraint C X = I in well-conditioned coordinates."""
        return whiten(self.features, self.user_codes)

    @cached_property
    def histogram(self) -> ContributionHistogram:
        """Return the rows per user."""
        return ContributionHistogram.from_counts(self.whitened.sizes)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 hash of the content, hexadecimal."""
        content = hashlib.sha256(b"regression/1")
        # The shape too: bytes alone do not tell rows from columns.
        parameters = (self.features.shape, self.epsilon, self.value_bound, self.residual_variance)
        content.update(repr((*parameters, self.feature_names)).encode())
        content.update(self.features.tobytes())
        content.update(self.user_codes.tobytes())
        return content.hexdigest()


def _checked_features(values: npt.ArrayLike, problems: Problems) -> FloatArray | None:
    try:
        features = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        problems.add("features must be numbers")
        return None
    if features.ndim != 2 or features.size == 0:
        problems.add(f"features must have rows and columns; got shape {features.shape}")
        return None
    n, d = features.shape
    bad = ~np.isfinite(features)
    if bad.any():
        row, column = np.unravel_index(int(np.argmax(bad)), features.shape)
        problems.add(
            f"features must be finite numbers; {int(bad.sum()):,} of {bad.size:,} entries fail",
            location=f"row {row + 1}, column {column + 1}",
            remedy="Leave out rows with missing values",
        )
        return None
    if d > MAX_FEATURES:
        problems.add(f"there are {d:,} features; at most {MAX_FEATURES} are handled")
    if n * d > MAX_ENTRIES:
        problems.add(f"{n:,} rows with {d:,} features are {n * d:,} entries; at most {MAX_ENTRIES:,} fit")
    if n < d:
        problems.add(f"{d:,} coefficients need at least as many rows; got {n:,}")
    return features if d <= MAX_FEATURES and n * d <= MAX_ENTRIES and n >= d else None


def _checked_codes(values: npt.ArrayLike, num_rows: int | None, problems: Problems) -> IntArray | None:
    codes = np.asarray(values)
    if codes.dtype.kind == "f" and np.all(np.isfinite(codes)) and np.all(codes == np.floor(codes)):
        codes = codes.astype(np.int64)
    if codes.dtype.kind not in "iu":
        problems.add("user_codes must be whole numbers, one per row")
        return None
    if codes.ndim != 1 or (num_rows is not None and codes.size != num_rows):
        expected = "" if num_rows is None else f"; expected {num_rows:,} entries"
        problems.add(f"user_codes must name one owner per row; got shape {codes.shape}{expected}")
        return None
    return codes.astype(np.int64)


def _checked_names(names: Sequence[str], num_features: int | None, problems: Problems) -> tuple[str, ...]:
    if num_features is None:
        return tuple(names)
    if not names:
        return tuple(f"x{j + 1}" for j in range(num_features))
    if len(names) != num_features or len(set(names)) != len(names):
        problems.add(f"feature_names must be {num_features} different names; got {len(names)}")
    return tuple(str(name) for name in names)
