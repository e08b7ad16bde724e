"""The settings of the page *Linear regression*, the data that they generate, and the paper's two examples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import VALUE_BOUND_RANGE, Problems, require
from dpcore.common.parameters import LINE, REQUIRED, SOURCE, Option, Parameters, check_shared, of_data
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import build_from
from dpcore.common.wording import choose_word, format_count, format_entered
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression.problem import RegressionProblem

MAX_GENERATED_ROWS = 100_000
"""Most rows of generated data: about a minute of solving on two cores."""
MAX_FEATURES_OF_A_KIND = 20
"""Most generated features of either kind."""


class DataSource(Option):
    """The source of features, labels and owners."""

    GENERATED = "generated", "Generate"
    UPLOAD = "upload", "Upload a table"


class ResidualVarianceSource(Option):
    """The source of sigma^2."""

    ORDINARY = "ordinary-least-squares", "From labels"
    ENTERED = "entered", "Entered"


class SizeLaw(Option):
    """The reading of u_i ∝ i^−α, where u_i users have i rows."""

    ROUNDED = "rounded", "Each number of users rounded"
    LONG_TAIL = "long-tail", "A few very large users"


ASSUMPTIONS = (
    "Features, and who owns which row, are public; only labels are private (label privacy)",
    "Neighbouring data sets differ in the labels of one user's rows",
    "Labels are features × coefficients + independent noise of variance σ², also within a user",
    "Labels are clipped to [L, U], which come from knowledge of the quantity, not from the data; their bias is counted "
    "nowhere",
    "σ² is public. If it is read from private labels, ε does not cover what the choice of C gives away",
    "The best C depends on the features' units, as errors of coefficients are added up",
    "Each coefficient gets Laplace noise of scale B × (largest weight of a user) / ε",
)
"""The assumptions of the answers; sentences without their full stop."""


@dataclass(frozen=True)
class RegressionParameters(Parameters):
    """The question as a person enters it; it holds nothing that was computed from data.

    The page has data of its own: "of_data" is about these.
    """

    lower: float = of_data.number(REQUIRED, "Lowest label L", width=150, is_renewed=True, place=LINE)
    """Labels below are raised to it. Take it from what the quantity is, not from the data."""
    upper: float = of_data.number(REQUIRED, "Highest label U", width=150, is_renewed=True, place=LINE)
    """Labels above are lowered to it. Take it from what the quantity is, not from the data."""
    source: DataSource = of_data.choice(DataSource.GENERATED, "Data of this page", place=SOURCE)
    """Generated data, or a table that you upload."""
    variance_source: ResidualVarianceSource = of_data.choice(
        ResidualVarianceSource.ORDINARY, "Variance of a label around the model, σ²"
    )
    """The source of σ². An estimate from labels is as private as they are."""
    residual_variance: float | None = of_data.number(
        None,
        "σ²",
        (0.0, 1e18),
        name="the variance σ²",
        is_renewed=True,
        only_with=("variance_source", (ResidualVarianceSource.ENTERED,)),
    )
    """The variance of a label around the model, in the labels' unit squared."""
    num_rows: int = of_data.number(3000, "Rows n", (20, MAX_GENERATED_ROWS), name="rows n", place=SOURCE)
    """The rows that are generated. The paper uses 600 to 3,000."""
    informative: int = of_data.number(
        5, "Features with a coefficient", (1, MAX_FEATURES_OF_A_KIND), place=SOURCE
    )
    """The features on which labels depend. The paper uses 5."""
    uninformative: int = of_data.number(
        5, "Features without a coefficient", (0, MAX_FEATURES_OF_A_KIND), place=SOURCE
    )
    """The features on which labels do not depend. The paper uses 5."""
    label_noise: float = of_data.number(20.0, "Noise of the labels", (0.0, 1e6), place=SOURCE)
    """The standard deviation of the labels around the model. The paper uses 20."""
    exponent: float = of_data.number(2.0, "Exponent α of rows per user", (1.0, 5.0), place=SOURCE)
    """$u_i \\propto i^{-\\alpha}$ users have $i$ rows. A smaller α is more uneven; the paper uses 1 < α ≤ 2."""
    size_law: SizeLaw = of_data.choice(SizeLaw.ROUNDED, "Users with i rows", place=SOURCE)
    """Each $u_i$ is rounded, which gives what the paper says of its figures. Or sums of $u_i$ are rounded, so that one
    user may have half of all rows."""
    seed: int = of_data.number(1, "Seed", (0, 2**31), place=SOURCE)
    """The same seed gives the same data."""

    def _check_together(self, problems: Problems) -> None:
        """Add a problem if the label range is empty or too wide.

        If no field is wrong, also add what the generator of the data refuses.
        """
        if problems.ascending(lower=self.lower, upper=self.upper):
            problems.between(*VALUE_BOUND_RANGE, **{"upper − lower": self.value_bound})
        if not problems.entries:
            with problems.collecting():
                _ = self.generator

    @property
    def generator(self) -> RegressionGenerator:
        """Return the settings of the data generator."""
        return build_from(RegressionGenerator, self)

    @property
    def value_bound(self) -> float:
        """Return B = U - L."""
        return self.upper - self.lower

    def clip_labels(self, labelled_rows: LabelledRows) -> FloatArray:
        """Return a table's labels, clipped to [L, U]."""
        return np.clip(labelled_rows.labels, self.lower, self.upper)


@dataclass(frozen=True)
class RegressionGenerator:
    """Data as the paper generates them.

    Attributes:
        num_rows: n; the ranges of this and of all others are those of `RegressionParameters`.
        informative: Features with a coefficient.
        uninformative: Features without.
        label_noise: Standard deviation of the labels' noise, in their unit.
        exponent: alpha of the power law of rows per user.
        size_law: How the law is rounded to whole users.
        seed: Seed of the generator.

    Raises:
        InvalidInput: A field is out of its range, or there are not twice as many rows as features.

    Source: Epasto et al. 2020, section 6 and appendix E.1.1.
    """

    num_rows: int = RegressionParameters.num_rows
    informative: int = RegressionParameters.informative
    uninformative: int = RegressionParameters.uninformative
    label_noise: float = RegressionParameters.label_noise
    exponent: float = RegressionParameters.exponent
    size_law: SizeLaw = RegressionParameters.size_law
    seed: int = RegressionParameters.seed

    def __post_init__(self) -> None:
        with Problems() as problems:
            check_shared(problems, RegressionParameters, self)
            if not problems.entries and self.num_rows < 2 * self.num_features:
                features_phrase = format_count(self.num_features, "feature")
                needs_verb = choose_word(self.num_features, "needs", "need")
                problems.add(f"{features_phrase} {needs_verb} at least {2 * self.num_features} rows")

    @property
    def num_features(self) -> int:
        """Return the number of features, d."""
        return self.informative + self.uninformative

    def generate(self) -> GeneratedTable:
        """Generate the table with its true coefficients; the same seed gives the same table."""
        return generate_table(**vars(self))

    def build_dataset(self) -> tuple[Dataset, FloatArray]:
        """Generate the table as a public data set; return (data set, its true coefficients)."""
        table = self.generate()
        feature_names = tuple(f"x{j + 1}" for j in range(self.num_features))
        dataset = Dataset(
            name=f"Generated, {self.num_rows:,} rows",
            source=(
                "Generated as in Epasto et al. 2020, appendix E.1.1: "
                f"{format_count(self.informative, 'feature')} with and {self.uninformative} without a coefficient, "
                f"noise {format_entered(self.label_noise)}, rows per user by a power law of exponent "
                f"{format_entered(self.exponent)} ({self.size_law.label.lower()}), seed {self.seed}."
            ),
            disclosure=Disclosure.PUBLIC,
            histogram=ContributionHistogram.from_counts(np.bincount(table.user_codes)),
            table=LabelledRows(table.features, table.labels, table.user_codes, feature_names, "y"),
        )
        return dataset, table.coefficients


def round_outwards(least_value: float, largest_value: float) -> tuple[float, float]:
    """Return an interval that holds both values, with ends of at most two significant digits and a length above 0."""
    largest_end = max(abs(least_value), abs(largest_value))
    rounding_unit = 10.0 ** (math.floor(math.log10(largest_end)) - 1) if largest_end > 0.0 else 1.0
    lower = math.floor(least_value / rounding_unit) * rounding_unit
    upper = math.ceil(largest_value / rounding_unit) * rounding_unit
    return float(f"{lower:.6g}"), float(f"{upper if upper > lower else lower + rounding_unit:.6g}")


RowKinds = tuple[FloatArray, IntArray, IntArray]
"""Rows of one user with the same features: these, shape (kinds, 2), whose they are, ascending, and how many."""


def list_rows_of_example_1(g: int) -> RowKinds:
    """Return the rows of example 1: two directions, each with g^2 + 1 users of one kind of row.

    In the first direction one user has a row of length g, and the others g rows of length 1. In the second one user
    has g rows, and the others one.
    """
    num_light_users = g * g
    features = np.zeros((2 * num_light_users + 2, 2))
    features[: num_light_users + 1, 0] = 1.0
    features[0, 0] = g
    features[num_light_users + 1 :, 1] = 1.0
    num_repetitions = np.ones(2 * num_light_users + 2, dtype=np.int64)
    num_repetitions[1 : num_light_users + 2] = g
    return features, np.arange(2 * num_light_users + 2), num_repetitions


def list_rows_of_example_3(g: int) -> RowKinds:
    """Return the rows of example 3, in two directions.

    User 0 has g rows in the first. Each of g others has 1 row in the first and g - 1 in the second.
    """
    features = np.concatenate(([[1.0, 0.0]], np.tile([[1.0, 0.0], [0.0, 1.0]], (g, 1))))
    user_codes = np.concatenate(([0], np.repeat(np.arange(1, g + 1), 2)))
    return features, user_codes, np.concatenate(([g], np.tile([1, g - 1], g)))


def _build_problem(row_kinds: RowKinds, value_bound: float, residual_variance: float) -> RegressionProblem:
    """Build the problem of an example at epsilon = 2, each kind of row repeated as often as given."""
    features, user_codes, num_repetitions = row_kinds
    all_features = np.repeat(features, num_repetitions, axis=0)
    row_users = np.repeat(user_codes, num_repetitions)
    return RegressionProblem(all_features, row_users, 2.0, value_bound, residual_variance)


def example_1(g: int) -> RegressionProblem:
    """Build the problem of example 1, labels without noise: the least variance is exactly 1 / (g^2 + 1)^2.

    In the second direction g^2 + 1 users share a total of 1 at best, so t >= 1 / (g^2 + 1), and that much is
    more than enough in the first. Every cap costs at least 1 / (4 g^3).

    Args:
        g: Whole, 1 to 300.

    Source: Epasto et al. 2020, example 1 and claim 3. (The C given there, with 1/g^2 per data point, does
        not satisfy C X = I; 1/g^3 does, and the variance 1/g^4 stands.)
    """
    require.whole(1, 300, g=g)
    return _build_problem(list_rows_of_example_1(g), 1.0, 0.0)


def example_3(g: int) -> RegressionProblem:
    """Build the problem of example 3, rows of length 1: the least variance is at most 6/g, any cap's about g/9 or more.

    Args:
        g: Whole, 2 to 1,000 (the paper asks for 8 or more).

    Source: Epasto et al. 2020, example 3 and claim 9: sigma = 1 and 2 d (B / epsilon)^2 = g.
    """
    require.whole(2, 1000, g=g)
    return _build_problem(list_rows_of_example_3(g), float(np.sqrt(g)), 1.0)


@dataclass(frozen=True, eq=False)
class GeneratedTable:
    """Generated features, labels and users of a regression, with the true coefficients.

    Attributes:
        features: X, standard normal, shape (num_rows, num_features).
        labels: y = X beta + noise, shape (num_rows,).
        user_codes: Owners, shape (num_rows,).
        coefficients: beta, shape (num_features,); the uninformative ones are 0.
    """

    features: FloatArray
    labels: FloatArray
    user_codes: IntArray
    coefficients: FloatArray


def compute_zipf_sizes(num_rows: int, exponent: float, size_law: SizeLaw = SizeLaw.ROUNDED) -> IntArray:
    """Compute the rows of each user, ascending, where the number of users with i rows is about 1 / i^exponent.

    `SizeLaw.ROUNDED` rounds each number of users, with the largest factor that leaves no more than n rows; the
    remaining rows are users of one row. `SizeLaw.LONG_TAIL` rounds the number of users with at most i rows, and cuts
    the largest user so that n rows come out.

    Args:
        num_rows: n, at least 1.
        exponent: alpha, above 1 in the paper.
        size_law: How the law is rounded to whole users.

    Source: Epasto et al. 2020, appendix E.1.1, which does not say how it rounds. Only the first reading gives the
        comparisons that it states of figure 2.
    """
    # Sizes from 1 to the largest all have a user, so that the largest is below √(2n).
    max_size = math.isqrt(2 * num_rows) if size_law is SizeLaw.ROUNDED else num_rows
    i = np.arange(1, max_size + 1, dtype=np.float64)
    relative_num_users = i**-exponent
    if size_law is SizeLaw.ROUNDED:
        fitting_factor, unfitting_factor = 0.0, float(num_rows)
        for _ in range(100):  # Twice as many halvings as a number has binary digits.
            middle_factor = (fitting_factor + unfitting_factor) / 2.0
            fits = np.round(middle_factor * relative_num_users) @ i <= num_rows
            fitting_factor, unfitting_factor = (
                (middle_factor, unfitting_factor) if fits else (fitting_factor, middle_factor)
            )
        num_users_per_size = np.round(fitting_factor * relative_num_users).astype(np.int64)
        num_users_per_size[0] += num_rows - int(num_users_per_size @ np.arange(1, max_size + 1))
        return np.repeat(np.arange(1, max_size + 1), num_users_per_size)
    cumulated_user_counts = np.round(
        np.cumsum(relative_num_users * (num_rows / float(relative_num_users @ i)))
    )
    num_users_per_size = np.diff(cumulated_user_counts, prepend=0.0).astype(np.int64)
    rows_of_each_user = np.repeat(np.arange(1, num_rows + 1), num_users_per_size)
    rows_of_each_user = rows_of_each_user[np.cumsum(rows_of_each_user) <= num_rows]
    num_remaining_rows = num_rows - int(rows_of_each_user.sum())
    return np.append(rows_of_each_user, num_remaining_rows) if num_remaining_rows else rows_of_each_user


def generate_table(
    num_rows: int,
    informative: int = 5,
    uninformative: int = 5,
    label_noise: float = 20.0,
    exponent: float = 1.5,
    seed: int = 0,
    size_law: SizeLaw = SizeLaw.ROUNDED,
) -> GeneratedTable:
    """Generate a table as the paper does: a linear model, a power law of rows per user, rows assigned at random.

    The model is that of scikit-learn's ``make_regression`` with no bias: standard normal features, coefficients of
    the informative ones uniform on [0, 100], normal noise.

    Args:
        num_rows: n, 1 to 5,000,000.
        informative: Features with a coefficient, 1 to 50.
        uninformative: Features without, 0 to 49.
        label_noise: Standard deviation of the noise, in the labels' unit.
        exponent: alpha of the power law of rows per user, above 0 and up to 5.
        seed: Of the generator.
        size_law: How the law is rounded to whole users.

    Source: Epasto et al. 2020, section 6 and appendix E.1.1.
    """
    rng = np.random.default_rng(seed)
    d = informative + uninformative
    coefficients = np.concatenate((100.0 * rng.random(informative), np.zeros(uninformative)))
    coefficients = coefficients[rng.permutation(d)]
    features = rng.standard_normal((num_rows, d))
    labels = features @ coefficients + label_noise * rng.standard_normal(num_rows)
    rows_of_each_user = compute_zipf_sizes(num_rows, exponent, size_law)
    user_codes = rng.permutation(np.repeat(np.arange(rows_of_each_user.size), rows_of_each_user))
    return GeneratedTable(features, labels, user_codes, coefficients)
