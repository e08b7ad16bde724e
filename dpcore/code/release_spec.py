"""The release that a program is written for, its bound, and the columns of the data.

The table in ``names.md`` has the names of the same parameter in each library. There an em dash means that a library
has no name for it; the nearest one follows.

Sources, read 2026-11-21:

- OpenDP 0.16.0 (installed and run by the tests): https://docs.opendp.org/en/v0.16.0/api/python/opendp.context.html
  and https://docs.opendp.org/en/v0.16.0/api/python/opendp.extras.polars.html
- PipelineDP 0.3.1 (run by `make test-libraries`): https://pipelinedp.readthedocs.io/en/latest/pipeline_dp.html and
  github.com/OpenMined/PipelineDP, pipeline_dp/aggregate_params.py and pipeline_dp/data_extractors.py
- Tumult Analytics 0.21.0 (likewise): https://docs.tmlt.dev/analytics/latest/reference/ and
  github.com/opendp/tumult-analytics, src/tmlt/analytics/constraints/_truncation.py
- BigQuery: https://cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#dp_clause and
  https://cloud.google.com/bigquery/docs/reference/standard-sql/aggregate-dp-functions
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Real
from pathlib import Path

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, Provenance, ReleaseFacts
from dpcore.common.wording import format_count
from dpcore.data.tables import FileLayout, TableLayout

MAX_INTEGER = 10**12


class Quantity(enum.Enum):
    """The released quantity; the value is its name in a sentence."""

    MEAN = "mean"
    VARIANCE = "variance"
    DEVIATION = "standard deviation"
    SUM = "sum"
    COUNT = "count of rows"
    GROUP_COUNTS = "users per group"
    GROUP_ROWS = "rows per group"
    GROUP_SUMS = "sums per group"
    GROUP_MEANS = "means per group"
    QUANTILE = "quantile"
    MODEL = "model"
    TASK_WEIGHTS = "weighted sums per task"
    COEFFICIENTS = "coefficients of a linear model"
    CLASSIFIER = "linear classifier"


FIELDS_BY_QUANTITY: dict[Quantity, tuple[tuple[str, ...], ...]] = {
    Quantity.MEAN: (("max_rows",), ("threshold",)),
    Quantity.VARIANCE: (("max_rows",),),
    Quantity.DEVIATION: (("max_rows",),),
    Quantity.SUM: (("max_total",),),
    Quantity.COUNT: (("max_rows",),),
    Quantity.GROUP_COUNTS: (("max_groups",), ("max_norm",)),
    Quantity.GROUP_ROWS: (("max_groups", "max_rows"), ("max_norm",)),
    Quantity.GROUP_SUMS: (("max_groups", "max_total"), ("max_norm",)),
    Quantity.GROUP_MEANS: (("max_groups", "max_rows"),),
    Quantity.QUANTILE: (("max_rows",), ("threshold",)),
    Quantity.MODEL: (("max_rows",),),
    Quantity.TASK_WEIGHTS: (("exponent", "weight_budget"),),
    Quantity.COEFFICIENTS: (("largest_user_weight",),),
    Quantity.CLASSIFIER: (("threshold",),),
}
"""The fields that state the bound of each release: exactly one of the alternatives."""
_INTEGER_FIELDS = ("max_rows", "max_groups", "num_coefficients")
_LAPLACE_QUANTITIES = (Quantity.QUANTILE, Quantity.COEFFICIENTS)
"""Releases whose programs use Laplace noise or the exponential mechanism."""
_BOUND_FIELDS = frozenset(
    name for alternatives in FIELDS_BY_QUANTITY.values() for names in alternatives for name in names
)
PLAIN_PYTHON_QUANTITIES = (Quantity.TASK_WEIGHTS, Quantity.COEFFICIENTS, Quantity.CLASSIFIER)
"""Releases that only plain Python can express."""
GROUP_QUANTITIES = (Quantity.GROUP_COUNTS, Quantity.GROUP_ROWS, Quantity.GROUP_SUMS, Quantity.GROUP_MEANS)
"""Releases of one number per group."""
SPREAD_QUANTITIES = (Quantity.VARIANCE, Quantity.DEVIATION)
"""Releases of three sums, from which the variance follows; its root costs nothing."""
VALUE_QUANTITIES = (
    Quantity.MEAN,
    *SPREAD_QUANTITIES,
    Quantity.SUM,
    Quantity.QUANTILE,
    Quantity.GROUP_SUMS,
    Quantity.GROUP_MEANS,
)
"""Releases for which programs read the column of values."""


MODEL_QUANTITIES = (Quantity.COEFFICIENTS, Quantity.CLASSIFIER)
"""Releases for which only complete rows count."""


@dataclass(frozen=True)
class DescentRule:
    """A descent with a step-size rule, and a bound that may adapt to the users.

    Attributes:
        bounding_method: ``followed``, ``sums``, ``cap`` or ``weights``.
        clip: Norm to which a row's gradient is clipped.
        unit_noise: Noise of one release with the whole budget, in units of its sensitivity.
        count_noise_std: Standard deviation of the noise on the number of users within the bound, in every step.
        num_users_noise_std: Standard deviation of the noise on the number of users; 0 if it is public.
        momentum: In [0, 1).
        travel_limit: Largest product of step length, ``unit_noise`` and the root of the number of features.
        stable_limit: Largest product of step length and number of users.
        last_limited_step: Number of the last step that is limited by ``travel_limit``.
        fade_factor: Factor of the exponential moving average of the noisy gradients per step.
        growth_threshold: Squared length of that average, over the number of features, beyond which steps grow.
        forgetting_threshold: Likewise, beyond which the average of the iterates forgets by ``fade_factor``.
        growth_factor: Factor of growth or shrinkage of a step.
        max_growth: Largest step in multiples of ``travel_limit``.
        first_bound_divisor: Divisor of the first bound, which is the root of users over noise, and at least the
            threshold.
        clipped_users_over_noise: Target number of users beyond the bound, over ``unit_noise`` times the root of the
            number of features.
        bound_rate: Speed of the bound.
        max_log_change: Largest change of the logarithm of the bound in a step.
        bound_range: Limits of the bound.
    """

    bounding_method: str
    clip: float
    unit_noise: float
    count_noise_std: float
    num_users_noise_std: float
    momentum: float
    travel_limit: float
    stable_limit: float
    last_limited_step: int
    fade_factor: float
    growth_threshold: float
    forgetting_threshold: float
    growth_factor: float
    max_growth: float
    first_bound_divisor: float
    clipped_users_over_noise: float
    bound_rate: float
    max_log_change: float
    bound_range: tuple[float, float]

    def describe_bound(self, bound: float) -> str:
        """Describe in a phrase how users are bounded, and how gradients of single rows are, if they are."""
        clip_phrase = f", gradients of rows shortened to {self.clip!r}" if self.clip < 1.0 else ""
        return {
            "followed": "users' sums of gradients clipped at a bound that follows a private quantile of them",
            "sums": f"users' sums of gradients clipped to that of {bound!r} rows",
            "cap": f"at most {int(bound)} rows per user, drawn at random{clip_phrase}",
            "weights": f"smooth weights, no user above the weight of {bound!r} rows{clip_phrase}",
        }[self.bounding_method]


@dataclass(frozen=True)
class ClassifierTraining:
    """The settings of the training of a linear classifier; all of them are public.

    Attributes:
        number_ranges: Numeric columns, each with its range, which is mapped to [-1, 1].
        category_levels: Categorical columns, each with the levels that have an indicator.
        has_intercept: True if one feature is 1 in every row.
        max_feature_norm: Largest norm of a row's features, above 0; they are divided by it.
        positive_above: Labels above it are 1, all others -1.
        slope_expression: Derivative of the loss by the margin, a NumPy expression in ``margin``.
        num_steps: Number of steps, T.
        learning_rate: Learning rate, η.
        first_averaged_step: Number of the first step, from 1, whose iterate is averaged; with a rule all are, with
            growing weights.
        radius: Radius of the ball that contains θ.
        gradient_noise_std: Standard deviation of the noise on a step's summed gradient.
        weight_noise_std: Standard deviation of the noise on the sum of weights; 0 if it is public.
        sampling_rate: Probability that a user takes part in a step.
        rule: Rule for steps and bound in place of ``learning_rate``, ``weight_noise_std`` and ``sampling_rate``;
            ``gradient_noise_std`` is then relative to the bound.
        positive_class: The class that is 1 if labels are words (all others are -1); empty if ``positive_above``
            decides.
    """

    number_ranges: tuple[tuple[str, tuple[float, float]], ...]
    category_levels: tuple[tuple[str, tuple[str, ...]], ...]
    has_intercept: bool
    max_feature_norm: float
    positive_above: float
    slope_expression: str
    num_steps: int
    learning_rate: float
    first_averaged_step: int
    radius: float
    gradient_noise_std: float
    weight_noise_std: float
    sampling_rate: float = 1.0
    rule: DescentRule | None = None
    positive_class: str = ""


@dataclass(frozen=True)
class GroupSelection:
    """The private selection of the groups that are released, by their numbers of users.

    Attributes:
        rule: ``truncated geometric``, ``Laplace threshold`` or ``Gaussian threshold``.
        epsilon: Its part of the budget, beside that of the amounts.
        delta: Likewise, in (0, 1).
        min_users: Pre-threshold: groups of fewer users are never released; at least 1.
    """

    rule: str
    epsilon: float
    delta: float
    min_users: int = 1


@dataclass(frozen=True)
class ReleaseSpec:
    """A release under a bound, with all that code needs to apply it.

    Attributes:
        quantity: The released quantity.
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        disclosure: Provenance of the bound; private means computed from private data, a release has its facts.
        neighbours: The relation under which the bound was chosen.
        delta: In (0, 1), or None if the release is epsilon-DP.
        noise: The noise under which the bound was chosen.
        max_rows: Upper bound on rows per user, an integer of at least 1; for a release per group, per user and group.
        threshold: Upper bound on a user's weight in rows (smooth weights), real-valued, above 0.
        weight_of_rows: a of smooth weights for a mean: a user with s rows weighs s (a + b / (1 + (s - 1) rho)), up to
            the threshold; at least 0.
        weight_of_users: b, at least 0; at 0 all rows of users up to the threshold weigh the same.
        user_share: rho in [0, 1], the correlation of the rows of one user.
        clamps_users: True if the smooth weights of a mean clamp each user's deviation from the middle of the range to
            half of its width times the threshold; False if each row is clamped.
        max_total: Upper end of the range that a user's total is clamped to, in the column's unit; for a release per
            group, their total in a group.
        min_total: Lower end of it.
        max_groups: Upper bound on groups per user, an integer.
        max_norm: T, upper bound on the norm of a user's vector over all groups: L1 with Laplace, L2 with Gaussian
            noise.
        scales_vector: True to bound the norm by scaling all groups of a user; else by one cap for all of them.
        exponent: mu of task weights, in [0, 1].
        weight_budget: beta, the largest sum of a user's squared task weights, above 0.
        inflation: c of task weights, above 0: they are scaled for a budget of beta / c. None if the user must enter it.
        fills_every_budget: True to scale every user's task weights up to the whole budget.
        largest_user_weight: The largest sum of absolute weights of one user's labels.
        num_coefficients: Number of released coefficients.
        lower: Lower end of the range of values; for a quantile the lower end of the base.
        upper: Upper end of the range; above ``lower``.
        quantiles: The released quantiles, each strictly between 0 and 1.
        file: The data's file.
        bigquery_table: The data's table in BigQuery.
        privacy_unit: Columns that together identify a user.
        value_column: Column of values or labels.
        group_column: Column of groups or tasks.
        groups: Names of the public list of groups, or of bins; empty if the person has to write them.
        edges: Edges of the bins, as texts; empty for groups that the cells name.
        selection: The private selection of groups, whose budget adds to ``epsilon`` and ``delta``; None for a list.
        has_known_columns: True if the names are the data's own; else they are placeholders.
        row_description: Meaning of a row if it is not a row of the file, a phrase; else empty.
        training: Training of a classifier; given if and only if one is released.
        layout: Layout of the data's files; None if unknown.
        range_facts: Facts of the private selection of ``lower`` and ``upper``, if there was one.
        replacement_epsilon: Epsilon for replacing one user, if ``epsilon`` is that for adding or removing one at which
            a library draws the same noise; else None.

    Raises:
        InvalidInput: A field is missing, does not belong to the release, or is out of its range; all at once.
    """

    quantity: Quantity
    epsilon: float
    disclosure: Provenance
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    delta: float | None = None
    noise: NoiseKind = NoiseKind.LAPLACE
    max_rows: int | None = None
    threshold: float | None = None
    weight_of_rows: float = 1.0
    weight_of_users: float = 0.0
    user_share: float = 0.0
    clamps_users: bool = False
    max_total: float | None = None
    min_total: float = 0.0
    max_groups: int | None = None
    max_norm: float | None = None
    scales_vector: bool = False
    exponent: float | None = None
    weight_budget: float | None = None
    inflation: float | None = 1.0
    fills_every_budget: bool = False
    largest_user_weight: float | None = None
    num_coefficients: int = 1
    lower: float | None = None
    upper: float | None = None
    quantiles: tuple[float, ...] = ()
    file: str = "events.csv"
    bigquery_table: str = "your_project.your_dataset.events"
    privacy_unit: tuple[str, ...] = ("user_id",)
    value_column: str = "value"
    group_column: str = "group"
    groups: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    selection: GroupSelection | None = None
    has_known_columns: bool = False
    row_description: str = ""
    training: ClassifierTraining | None = None
    layout: TableLayout | None = None
    range_facts: ReleaseFacts | None = None
    replacement_epsilon: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if self.range_facts is not None and (self.lower is None or self.upper is None):
                problems.add("a range that was drawn has both ends")
            self._check_bound(problems)
            self._check_delta(problems)
            self._check_values(problems)
            problems.whole(1, 10**6, coefficients=self.num_coefficients)
            if (self.quantity is Quantity.CLASSIFIER) != (self.training is not None):
                problems.add("a classifier, and nothing else, says how it is trained")
            names = (*self.privacy_unit, self.value_column, self.group_column, self.file, self.bigquery_table)
            if not self.privacy_unit or not all(isinstance(name, str) and name for name in names):
                problems.add("columns, file and table must have names")
        # Plain Python numbers, so that repr is a literal in every language.
        for field in fields(self):
            field_value = getattr(self, field.name)
            if field.name in _INTEGER_FIELDS and field_value is not None:
                object.__setattr__(self, field.name, int(field_value))
            elif isinstance(field_value, Real) and not isinstance(field_value, bool):
                object.__setattr__(self, field.name, float(field_value) + 0.0)  # No negative zero.
        object.__setattr__(self, "quantiles", tuple(float(quantile) for quantile in self.quantiles))

    def _check_bound(self, problems: Problems) -> None:
        """Add problems unless exactly the fields of one bound are given, within their ranges."""
        given_names = {bound_name for bound_name in _BOUND_FIELDS if getattr(self, bound_name) is not None}
        if given_names not in [set(names) for names in FIELDS_BY_QUANTITY[self.quantity]]:
            bounds_text = " or ".join(" and ".join(names) for names in FIELDS_BY_QUANTITY[self.quantity])
            problems.add(f"the bound of a {self.quantity.value} is {bounds_text}, and nothing else")
        for bound_name in ("max_rows", "max_groups"):
            if bound_name in given_names:
                problems.whole(1, MAX_INTEGER, **{bound_name: getattr(self, bound_name)})
        for bound_name in ("threshold", "max_norm", "weight_budget", "largest_user_weight"):
            if bound_name in given_names:
                problems.positive(**{bound_name: getattr(self, bound_name)})
        problems.non_negative(weight_of_rows=self.weight_of_rows, weight_of_users=self.weight_of_users)
        problems.between(0.0, 1.0, user_share=self.user_share)
        if (self.weight_of_rows, self.weight_of_users) != (1.0, 0.0) and not self.reweights_rows:
            problems.add("weights that grow otherwise than rows belong to the smooth weights of a mean")
        if self.clamps_users and (self.quantity is not Quantity.MEAN or self.threshold is None):
            problems.add("users' deviations are clamped for the smooth weights of a mean only")
        if "exponent" in given_names:
            problems.between(0.0, 1.0, exponent=self.exponent)
        if self.inflation is not None:
            problems.positive(inflation=self.inflation)
        end_fields = {"max_total": self.max_total, "min_total": self.min_total}
        if self.max_total is not None and problems.finite(**end_fields) and self.min_total >= self.max_total:
            problems.add("the range that a user's total is clamped to is empty")

    def _check_delta(self, problems: Problems) -> None:
        """Add a problem if delta is out of (0, 1), missing with Gaussian noise, or the release has no such noise."""
        if self.delta is not None:
            problems.inside(0.0, 1.0, delta=self.delta)
        if self.noise is NoiseKind.GAUSSIAN and self.delta is None:
            problems.add("Gaussian noise needs a delta")
        if self.noise is NoiseKind.GAUSSIAN and self.quantity in _LAPLACE_QUANTITIES:
            problems.add(f"the noise on a {self.quantity.value} is Laplace noise")

    def _check_values(self, problems: Problems) -> None:
        """Add problems if the range of values is missing or empty where it is needed, or quantiles do not fit."""
        other_quantities = (Quantity.MEAN, Quantity.GROUP_MEANS, Quantity.QUANTILE, Quantity.COEFFICIENTS)
        if self.quantity in (*SPREAD_QUANTITIES, *other_quantities):
            problems.ascending(**{"the lower value bound": self.lower, "the upper one": self.upper})
        if (self.quantity is Quantity.QUANTILE) != bool(self.quantiles):
            problems.add("a quantile, and nothing else, says which quantiles are asked for")
        for quantile in self.quantiles:
            problems.inside(0.0, 1.0, **{"a quantile": quantile})

    @property
    def reweights_rows(self) -> bool:
        """Return True for a mean with smooth weights that are not proportional to rows below the threshold."""
        is_plain = (self.weight_of_rows, self.weight_of_users) == (1.0, 0.0)
        return not is_plain and self.quantity is Quantity.MEAN and self.threshold is not None

    @property
    def is_private(self) -> bool:
        """Return True if the bound was computed from private data."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def is_of_public_data(self) -> bool:
        """Return True if the data are public, so that a program may take the list of groups from them.

        If the bound is a DP release, the bound is public, but not the data.
        """
        return self.disclosure is Disclosure.PUBLIC and self.has_known_columns

    @property
    def reading_layout(self) -> TableLayout:
        """Return the layout with which programs read the data: the known one, or the usual one for the file name."""
        return self.layout or TableLayout((FileLayout.by_name(self.file),))

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Return the columns that programs read as numbers, each once."""
        if self.quantity in MODEL_QUANTITIES:
            number_ranges = () if self.training is None else self.training.number_ranges
            feature_columns = tuple(column_name for column_name, _ in number_ranges)
            return tuple(
                dict.fromkeys((self.value_column, *feature_columns, *dict(self.reading_layout.numbers)))
            )
        if self.reading_layout.yes_text and self.value_column == self.reading_layout.share_column:
            return ()  # Its cells are compared with a text.
        value_columns = (self.value_column,) if self.quantity in VALUE_QUANTITIES else ()
        dropped_column = self.reading_layout.dropped_column
        return tuple(dict.fromkeys((*value_columns, *([dropped_column] if dropped_column else []))))

    @property
    def is_in_libraries(self) -> bool:
        """Return True unless plain Python alone can express the release."""
        is_weighted_quantile = self.quantity is Quantity.QUANTILE and self.threshold is not None
        return not is_weighted_quantile and self.quantity not in PLAIN_PYTHON_QUANTITIES

    @property
    def is_in_every_library(self) -> bool:
        """Return True if PipelineDP, Tumult and BigQuery can express the release, as well as OpenDP."""
        return self.is_in_libraries and self.max_norm is None and not self.clamps_users

    @property
    def has_public_counts(self) -> bool:
        """Return True if everybody's number of rows is taken as public."""
        return self.neighbours is Neighbours.REPLACE_VALUES

    @property
    def epsilon_per_quantile(self) -> float:
        """Return the epsilon of each quantile: an even share, rounded down so that their sum is never above."""
        num_quantiles = max(len(self.quantiles), 1)
        quantile_epsilon = self.epsilon / num_quantiles
        while Fraction(quantile_epsilon) * num_quantiles > Fraction(self.epsilon):
            quantile_epsilon = math.nextafter(quantile_epsilon, 0.0)
        return quantile_epsilon

    @property
    def bound_text(self) -> str:
        """Return the bound as a phrase, for comments and descriptions."""
        if self.max_norm is not None:
            norm_name = "L1" if self.noise is NoiseKind.LAPLACE else "L2"
            verb_text = "scaled" if self.scales_vector else "capped"
            return f"what a user adds to all groups {verb_text} to an {norm_name} norm of at most {self.max_norm!r}"
        if self.max_groups is not None and self.quantity is not Quantity.GROUP_COUNTS:
            groups_text = f"at most {format_count(self.max_groups, 'group')} per user"
            if self.max_rows is not None:
                return f"{groups_text}, and at most {format_count(self.max_rows, 'row')} in each"
            return f"{groups_text}, and each total in a group clamped to [{self.min_total!r}, {self.max_total!r}]"
        if self.max_rows is not None:
            return f"at most {format_count(self.max_rows, 'row')} per user"
        if self.training is not None and self.training.rule is not None:
            return self.training.rule.describe_bound(float(self.threshold or 0.0))
        if self.threshold is not None:
            correlation_text = (
                f", rows of one user alike by {self.user_share!r}" if self.reweights_rows else ""
            )
            clamping_text = ""
            if self.clamps_users:
                clamping_text = ", each user's deviation from the middle of the range clamped"
            weights_text = f"smooth weights, no user above the weight of {self.threshold!r} rows"
            return f"{weights_text}{correlation_text}{clamping_text}"
        if self.max_total is not None:
            return f"each user's total clamped to [{self.min_total!r}, {self.max_total!r}]"
        if self.max_groups is not None:
            return f"at most {format_count(self.max_groups, 'group')} per user"
        if self.exponent is not None:
            return f"task weights with exponent {self.exponent!r} within a budget of {self.weight_budget!r} per user"
        return f"row weights, no user above {self.largest_user_weight!r} in total"


@dataclass(frozen=True)
class Code:
    """A finished program for one library, as text, with its differences from the page; empty if it has none.

    Attributes:
        text: The program; empty if the library cannot express the release.
        language: ``python`` or ``sql``.
        file_name: Name of the file.
        differences: Differences between the library and the assumptions of the page, and the nearest alternatives,
            sentences; the program has them, too.
    """

    text: str
    language: str
    file_name: str
    differences: tuple[str, ...]


def read_name_table() -> str:
    """Return the Markdown table of the names that parameters have in all libraries."""
    return Path(__file__).with_name("names.md").read_text(encoding="utf-8").rstrip("\n")
