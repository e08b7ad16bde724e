"""What a person enters to ask the question, as one validated object: for pages, links and files."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, VALUE_BOUND_RANGE, Problems
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import build_from
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression.examples import Synthetic, synthetic
from dpcore.regression.problem import RegressionProblem

MAX_GENERATED_ROWS = 100_000
"""Rows that a page generates: about a minute of solving at worst on two cores."""
MAX_PART = 20
"""Informative, and uninformative, features that a page generates at most."""


class DataSource(enum.Enum):
    """Where features, labels and owners come from."""

    GENERATED = "generated"
    UPLOAD = "upload"


class ResidualVarianceSource(enum.Enum):
    """Where sigma^2 comes from."""

    ORDINARY = "ordinary-least-squares"
    ENTERED = "entered"


ASSUMPTIONS = (
    "Features, and who owns which row, are public; only labels are private (label privacy)",
    "Neighbouring data sets differ in the labels of one user's rows",
    "Labels follow the linear model: label = features × coefficients + noise, with independent noise of "
    "variance σ², also within a user",
    "Labels are clipped to [L, U], which come from knowledge of the quantity, not from the data; the bias that "
    "clipping brings is counted nowhere",
    "σ² is public. Read from private labels it is not: then ε does not cover what the choice of C gives away",
    "Errors of coefficients are added up as they are, so the best C depends on the features' units",
    "Each coefficient gets Laplace noise of scale B × (largest weight of a user) / ε",
)
"""What the answers rest on; sentences without their full stop."""


@dataclass(frozen=True)
class RegressionGenerator:
    """Data as the paper generates them.

    Attributes:
        num_rows: n, 20 to `MAX_GENERATED_ROWS`.
        informative: Features with a coefficient, 1 to `MAX_PART`.
        uninformative: Features without, 0 to `MAX_PART`.
        label_noise: Standard deviation of the labels' noise, in their unit.
        exponent: alpha of the power law of rows per user, 1 to 5.
        seed: Of the generator, at least 0.

    Raises:
        InvalidInput: A field is out of its range, or there are not twice as many rows as features.

    Source: Epasto et al. 2020, section 6 and appendix E.1.1.
    """

    num_rows: int = 3000
    informative: int = 5
    uninformative: int = 5
    label_noise: float = 20.0
    exponent: float = 2.0
    seed: int = 1

    def __post_init__(self) -> None:
        with Problems() as problems:
            rows = problems.whole(20, MAX_GENERATED_ROWS, num_rows=self.num_rows)
            parts = problems.whole(1, MAX_PART, informative=self.informative)
            parts &= problems.whole(0, MAX_PART, uninformative=self.uninformative)
            problems.between(0.0, 1e6, label_noise=self.label_noise)
            problems.between(1.0, 5.0, exponent=self.exponent)
            problems.whole(0, 2**31, seed=self.seed)
            if rows and parts and self.num_rows < 2 * self.num_features:
                features = wording.counted(self.num_features, "feature")
                needs = wording.agreeing(self.num_features, "needs", "need")
                problems.add(f"{features} {needs} at least {2 * self.num_features} rows")

    @property
    def num_features(self) -> int:
        """d."""
        return self.informative + self.uninformative

    def generate(self) -> Synthetic:
        """The table with its true coefficients."""
        return synthetic(
            self.num_rows, self.informative, self.uninformative, self.label_noise, self.exponent, self.seed
        )

    def dataset(self) -> tuple[Dataset, FloatArray]:
        """The table as a public data set, and its true coefficients."""
        made = self.generate()
        names = tuple(f"x{j + 1}" for j in range(self.num_features))
        data = Dataset(
            name=f"Generated, {self.num_rows:,} rows",
            source=(
                f"Generated as in Epasto et al. 2020, appendix E.1.1: {self.num_rows:,} rows, "
                f"{wording.counted(self.informative, 'feature')} with and {self.uninformative} without a "
                f"coefficient, noise {wording.entered(self.label_noise)}, rows per user by a power law of exponent "
                f"{wording.entered(self.exponent)}, seed {self.seed}."
            ),
            disclosure=Disclosure.PUBLIC,
            histogram=ContributionHistogram.from_counts(np.bincount(made.user_codes)),
            table=LabelledRows(made.features, made.labels, made.user_codes, names, "y"),
        )
        return data, made.coefficients


@dataclass(frozen=True)
class RegressionParameters:
    """The question as a person enters it; holds nothing that was computed from data.

    Attributes:
        epsilon: Privacy budget.
        lower: L, labels below are raised to it, in the labels' unit.
        upper: U, labels above are lowered to it; B = U - L.
        source: Generated data or an upload. Of data that are given it is the last.
        variance_source: Where sigma^2 comes from.
        residual_variance: sigma^2 where it is entered, labels' unit squared; None otherwise.
        num_rows: n of generated data; see `RegressionGenerator` for this and what follows.
        informative: Generated features with a coefficient.
        uninformative: Generated features without one.
        label_noise: Standard deviation of the generated labels' noise, in their unit.
        exponent: alpha of the power law of rows per user of generated data.
        seed: Of the generator.

    Raises:
        InvalidInput: A field is out of its range; all problems at once.
    """

    epsilon: float
    lower: float
    upper: float
    source: DataSource = DataSource.GENERATED
    variance_source: ResidualVarianceSource = ResidualVarianceSource.ORDINARY
    residual_variance: float | None = None
    num_rows: int = RegressionGenerator.num_rows
    informative: int = RegressionGenerator.informative
    uninformative: int = RegressionGenerator.uninformative
    label_noise: float = RegressionGenerator.label_noise
    exponent: float = RegressionGenerator.exponent
    seed: int = RegressionGenerator.seed

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if problems.finite(lower=self.lower, upper=self.upper):
                low, high = VALUE_BOUND_RANGE
                if not low <= self.upper - self.lower <= high:
                    problems.add(
                        f"upper must lie above lower, by {wording.entered(low)} to {wording.entered(high)}; got lower "
                        f"{self.lower!r} and upper {self.upper!r}"
                    )
            if self.variance_source is ResidualVarianceSource.ENTERED:
                if self.residual_variance is None:
                    problems.add(
                        "residual_variance is missing", remedy="Enter σ², or take it from the labels"
                    )
                else:
                    problems.between(0.0, 1e18, residual_variance=self.residual_variance)
            elif self.residual_variance is not None:
                problems.add(
                    "residual_variance is given but not used", remedy="Leave it out, or choose entered"
                )
            with problems.collecting():
                _ = self.generator

    @property
    def generator(self) -> RegressionGenerator:
        """What generates the data."""
        return build_from(RegressionGenerator, self)

    @property
    def value_bound(self) -> float:
        """B = U - L."""
        return self.upper - self.lower

    def clipped(self, table: LabelledRows) -> FloatArray:
        """Labels as they enter the release."""
        return np.clip(table.labels, self.lower, self.upper)

    def problem(self, table: LabelledRows, residual_variance: float) -> RegressionProblem:
        """The question on these data, with sigma^2 as entered or read off the clipped labels."""
        return self.asked_of(rows_of(table), residual_variance)

    def asked_of(self, rows: RegressionProblem, residual_variance: float) -> RegressionProblem:
        """The question on the features and owners of another question."""
        return rows.with_settings(self.epsilon, self.value_bound, residual_variance)


def rows_of(table: LabelledRows) -> RegressionProblem:
    """Features and owners, checked and sorted, under a question that `RegressionProblem.with_settings` replaces."""
    return RegressionProblem(table.features, table.user_codes, 1.0, 1.0, 1.0, table.feature_names)
