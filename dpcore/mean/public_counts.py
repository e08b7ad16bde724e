"""A mean from users with several rows each: the best cap, the best smooth weights, and the error of each.

Setting (Epasto et al. 2020, section 3): contribution counts are public. Values lie in [0, B] with variance sigma^2 and
are independent. Neighbours differ in one user's values. The release adds Laplace noise for epsilon-DP, or the noise of
another program. All errors here are variances in (unit of the values)^2.

`MeanProblem.target` and the fields after it choose the target and the model of users; the defaults are the paper's.
The other models are `dpcore.mean.models.CountsOnly`, `dpcore.mean.table_values.KnownValues` and the following one.

**Population.** The mean is that of the population that users come from; rows of one user are correlated. A row is mu
+ a_l + e with Var a = rho sigma^2 and Var e = (1 - rho) sigma^2, independent of each other and of the number of rows
of a user. For given weights of users it is best to spread each over the user's rows evenly. The variance is then
sigma^2 sum_l u_l^2 / x_l with x_l = s_l / (1 + (s_l - 1) rho): the problem of `dpcore.common.weights` in effective
sizes. So its optimum is the best among all weights of users. At rho = 0 it is Epasto et al. 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import noise_error, weights
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.parameters import Option
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import DrawnNoise, Program, find_noise
from dpcore.common.wording import format_number
from dpcore.contributions import ContributionHistogram, FloatArray, NumSizes
from dpcore.mean.models import (
    BoundCurve,
    BoundOptimum,
    CountsModel,
    CountsOnly,
    MeanError,
    Numerators,
    describe_trivial_search,
    find_interval_around,
)
from dpcore.mean.table_values import KnownValues, TableValues
from dpcore.mean.user_sums import sum_prefixes

NEIGHBOURS = Neighbours.REPLACE_VALUES
"""The relation of the guarantee of this setting."""
INDEPENDENT_ROWS_ASSUMPTION = "Rows are independent draws with one variance, also those of one user"
CLAMPED_ASSUMPTION = (
    "Values are clamped to the stated bounds, which come from knowledge of the quantity, not from the data"
)
LAPLACE_NOISE_ASSUMPTION = "Noise is Laplace noise with scale B × (largest weight of a user) / ε"
MOVED_INTO_RANGE = "A released mean outside [L, U] is moved to its nearer end"
UPPER_BOUND_ASSUMPTION = (
    f"{MOVED_INTO_RANGE}. The error is that before this step, an upper bound for every mean in [L, U]"
)
ASSUMPTIONS = (
    "How many rows each user has is public, and so is a bound chosen from it; only values are private. If the counts "
    "are private too, the bound chosen here leaks",
    "Neighbouring data sets differ in the values of one user's rows, not in the user's presence",
    INDEPENDENT_ROWS_ASSUMPTION,
    CLAMPED_ASSUMPTION,
    LAPLACE_NOISE_ASSUMPTION,
    UPPER_BOUND_ASSUMPTION,
)
"""Assumptions of this module; sentences without their full stop."""


@dataclass(frozen=True)
class WeightGrowth:
    """The weight of a user with s rows up to a bound: w(s) = s (row_factor + effective_factor / (1 + (s - 1) rho)).

    A user with s rows weighs w(min(s, h)), spread evenly over the rows. At rho = 0, or if ``effective_factor`` is 0,
    that is min(s, h) up to a factor, the smooth weights of Epasto et al. 2020.

    Attributes:
        row_factor: Weight for each row, 1 or 0.
        effective_factor: Weight for each unit of the user's effective size.
        user_share: rho in [0, 1].
    """

    row_factor: float = 1.0
    effective_factor: float = 0.0
    user_share: float = 0.0

    def compute_user_weights(self, sizes: npt.ArrayLike) -> FloatArray:
        """Return w(s) at numbers of rows above 0, of their shape; w is increasing."""
        s = np.asarray(sizes, dtype=np.float64)
        effective_weight = self.effective_factor / (1.0 + (s - 1.0) * self.user_share)
        return np.asarray(s * (self.row_factor + effective_weight))

    def compute_scaled_weights(self, threshold: float, sizes: npt.ArrayLike) -> FloatArray:
        """Return min(h, c w(s)) for threshold h, with the factor c that makes c w(h) = h."""
        if self.is_plain:
            return np.asarray(np.minimum(threshold, sizes))
        return np.asarray(np.minimum(threshold, self.compute_user_weights(sizes) * self._scale(threshold)))

    def compute_coefficients(self, threshold: float) -> tuple[float, float]:
        """Return ``row_factor`` and ``effective_factor``, both multiplied by the factor of `compute_scaled_weights`."""
        weight_scale = 1.0 if self.is_plain else self._scale(threshold)
        return self.row_factor * weight_scale, self.effective_factor * weight_scale

    def _scale(self, threshold: float) -> float:
        """Return h / w(h), the factor that makes a user with h rows weigh h."""
        return threshold / float(self.compute_user_weights(threshold))

    @property
    def is_plain(self) -> bool:
        """Return True if w(s) is proportional to s."""
        return self.effective_factor == 0.0


class Population(CountsModel):
    """The model of correlated rows for the mean of a population; at rho = 0 that of Epasto et al. 2020."""

    @cached_property
    def _effective_sizes(self) -> weights.EffectiveSizes:
        """Return the users' effective sizes, rows as if independent: s / (1 + (s - 1) rho)."""
        return weights.EffectiveSizes(self.histogram, self.user_share)

    @cached_property
    def _squares_below(self) -> FloatArray:
        """Return the sum of s^2 over the users of the first k sizes, for k = 0 .. K, shape (K + 1,)."""
        return sum_prefixes(self.histogram.sizes.astype(np.float64) ** 2 * self.histogram.users)

    def measure_smooth(self, thresholds: FloatArray, num_distinct_up_to: NumSizes | None = None) -> MeanError:
        """Return the error if a user with s rows weighs as much as one with min(h, s)."""
        effective_sizes = self._effective_sizes
        losses = weights.compute_smooth_losses(effective_sizes, effective_sizes.convert(thresholds))
        sampling_variances = self.value_variance * losses.squared_weights
        return MeanError(np.asarray(sampling_variances), self.unit_noise_variance * losses.largest_weight**2)

    def measure_capped(self, caps: FloatArray, num_distinct_up_to: NumSizes | None = None) -> MeanError:
        """Return the error of caps: sigma^2 (rho sum_l k_l^2 + (1 - rho) n_h) / n_h^2, with rows kept at random."""
        h = np.asarray(caps, dtype=np.float64)
        k = self.histogram.count_sizes_up_to(h) if num_distinct_up_to is None else num_distinct_up_to
        rows_below, num_users_above, _ = self.histogram.compute_sums_after(k)
        kept_rows = rows_below + h * num_users_above
        scaled_square_sum = self._squares_below[k] / kept_rows + h * (h / kept_rows) * num_users_above
        rho = self.user_share
        sampling_variances = self.value_variance * ((rho * scaled_square_sum + (1.0 - rho)) / kept_rows)
        return MeanError(np.asarray(sampling_variances), self.unit_noise_variance * (h / kept_rows) ** 2)

    def find_best_smooth(self) -> BoundOptimum:
        """Return the best of all weights, with the dual bound of `dpcore.common.weights`."""
        optimum = weights.find_best_smooth(
            self._effective_sizes, self.value_variance / self.unit_noise_variance
        )
        bound = self._convert_to_rows(optimum.bound)
        return self._convert_optimum(optimum, bound, self.measure_smooth(np.asarray(bound)))

    def find_best_cap(self) -> BoundOptimum:
        """Return the best cap; for independent rows, that of `dpcore.common.weights`."""
        if self.user_share:
            return self.cap_curve.minimise(is_integer=True)
        optimum = weights.find_best_cap(self.histogram, self.value_variance / self.unit_noise_variance)
        return self._convert_optimum(optimum, optimum.bound, self.measure_capped(np.asarray(optimum.bound)))

    def _convert_optimum(self, optimum: weights.Optimum, bound: float, mean_error: MeanError) -> BoundOptimum:
        """Return an optimum of `weights` as one of this model, with its bound in rows and its squared error."""
        # Both sides are recomputed: the value by the formula of the error, the lower bound by its own scale.
        lower_bound = self.unit_noise_variance * optimum.certificate.lower_bound
        certificate = Certificate(float(mean_error.squared_error), lower_bound, optimum.certificate.argument)
        return BoundOptimum(
            bound, certificate, describe_trivial_search(self.histogram) or optimum.stop_reason
        )

    def _convert_to_rows(self, effective_size: float) -> float:
        """Return the number of rows with the given effective size, clipped to the two sizes around it."""
        sizes, rho = self.histogram.sizes, self.user_share
        k = min(int(np.searchsorted(self._effective_sizes.convert(sizes), effective_size)), sizes.size - 1)
        lower_size, upper_size = float(sizes[max(k - 1, 0)]), float(sizes[k])
        # x = s / (1 + (s - 1) rho), solved for s; at rho = 1 every user has the effective size 1, whatever s.
        denominator = 1.0 - rho * effective_size
        num_rows_of_user = effective_size * (1.0 - rho) / denominator if denominator > 0.0 else upper_size
        return min(max(num_rows_of_user, lower_size), upper_size)

    def compute_coefficients(self, threshold: float) -> tuple[float, float]:
        """Return the coefficients of `WeightGrowth` for the best weights: a user weighs their effective size."""
        return 0.0, 1.0

    @cached_property
    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        rho = self.user_share
        rows_below, num_users_above, _ = self.histogram.compute_sums_after(slice(1, -1))
        numerators = Numerators(
            self.value_variance * (rho * self._squares_below[1:-1] + (1.0 - rho) * rows_below),
            self.value_variance * (1.0 - rho) * num_users_above,
            self.unit_noise_variance + self.value_variance * rho * num_users_above,
        )
        return BoundCurve(self.histogram, lambda h, k: self.measure_capped(h, k).squared_error, numerators)


class Target(Option):
    """The mean that the release estimates."""

    TABLE = "table", "This table"
    """The mean of the rows in this table."""
    POPULATION = "population", "People like these"
    """The mean of the distribution that users and their rows come from."""


@dataclass(frozen=True)
class MeanProblem:
    """The problem of releasing the mean of all rows with epsilon-DP.

    Attributes:
        histogram: Rows per user; public in this setting.
        epsilon: Privacy budget, above 0.
        value_bound: B, the length of the interval that values are clamped to, above 0, in the values' unit.
        value_variance: sigma^2, the variance of one row, at least 0, in the values' unit squared. Values in
            [0, B] cannot vary by more than B^2 / 4; larger figures are allowed, since the formulas are.
        target: The mean that the release estimates.
        user_share: rho in [0, 1], the share of sigma^2 that lies between users; at 0 rows are independent.
        table_values: The values themselves, if the target is their mean: the error then assumes nothing about users and
            does not use sigma^2 and rho. None if the values must not be used.
        mechanism: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        program: The program whose noise the error is of; plain Python's is that of the paper.

    Raises:
        InvalidInput: A parameter is not finite or out of its range; all problems at once.
    """

    histogram: ContributionHistogram
    epsilon: float
    value_bound: float
    value_variance: float
    target: Target = field(default=Target.POPULATION, kw_only=True)
    user_share: float = field(default=0.0, kw_only=True)
    table_values: TableValues | None = field(default=None, kw_only=True)
    mechanism: NoiseKind = field(default=NoiseKind.LAPLACE, kw_only=True)
    delta: float | None = field(default=None, kw_only=True)
    program: Program = field(default=Program.PYTHON, kw_only=True)

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range, or if their ratio leaves float64."""
        with Problems() as problems:
            noise_error.check_noise(problems, self.mechanism, self.epsilon, self.delta)
            problems.positive(value_bound=self.value_bound)
            problems.of_kind(Program, program=self.program)
            problems.non_negative(value_variance=self.value_variance)
            problems.of_kind(Target, target=self.target)
            problems.between(0.0, 1.0, user_share=self.user_share)
            if self.table_values is not None and self.target is not Target.TABLE:
                problems.add("values are read where the target is the mean of this table, and only there")
        # Every optimum depends on the parameters through this ratio alone; beyond float64 it would be 0, inf or NaN.
        if not (0.0 < self._unit_noise_variance < math.inf and self.trade_off <= weights.MAX_TRADE_OFF):
            raise refuse(
                "epsilon, value_bound and value_variance are so far apart that their ratio leaves float64",
                remedy="Express the values in another unit",
            )

    @property
    def num_aggregates(self) -> int:
        """Return 1: one sum is released with noise."""
        return 1

    @cached_property
    def noise(self) -> DrawnNoise:
        """Return the noise that the program draws with the whole budget; BigQuery's with the budget of an aggregate."""
        budget_arguments = self.mechanism, self.epsilon, self.delta
        return find_noise(self.program, *budget_arguments, num_aggregates=self.num_aggregates)

    @cached_property
    def _unit_noise_variance(self) -> float:
        """Return the variance of the noise if one user holds all the weight: 2 (B / epsilon)^2 for Laplace noise."""
        scale = self.noise.unit_scale * self.value_bound
        return self.noise.kind.unit_variance * (scale * scale)  # A square by ** raises where it overflows.

    @property
    def relative_noise(self) -> float:
        """Return the largest variance of the noise over B^2 if one user holds all the weight, over all means."""
        return self.noise.kind.unit_variance * self.noise.unit_scale**2

    def write_scale(self, scale_factor: float, weight_text: str) -> str:
        """Write the scale of a noise: ``scale 2 × B × h / ε``.

        Args:
            scale_factor: Factor on the scale of the whole budget.
            weight_text: What the scale is proportional to.
        """
        factor, scale_name, ending = scale_factor * self.noise.unit_scale, "standard deviation", ""
        if self.noise.kind is NoiseKind.LAPLACE:
            factor, scale_name, ending = factor * self.epsilon, "scale", " / ε"
        is_one = math.isclose(factor, 1.0, rel_tol=1e-9)
        return f"{scale_name} {'' if is_one else f'{format_number(factor)} × '}{weight_text}{ending}"

    @property
    def noise_sentence(self) -> str:
        """Return the assumption about the noise, without its full stop."""
        scale_text = self.write_scale(1.0, "B × (largest weight of a user)")
        return f"Noise is {self.noise.kind.value} noise with {scale_text}"

    @property
    def proof_limit(self) -> str:
        """Return what a certificate's argument adds about the error that it is for; empty for the exact error."""
        return ""

    @cached_property
    def model(self) -> CountsOnly | KnownValues | Population:
        """Return the model of users: of their known values, else of correlated rows, for the target mean."""
        if self.table_values is not None:
            return KnownValues(self.table_values, self._unit_noise_variance)
        model_class = CountsOnly if self.target is Target.TABLE else Population
        return model_class(self.histogram, self._unit_noise_variance, self.value_variance, self.user_share)

    @cached_property
    def trade_off(self) -> float:
        """Return A = sigma^2 / (2 (B / epsilon)^2), the trade-off of `dpcore.common.weights`."""
        return self.value_variance / self._unit_noise_variance


@dataclass(frozen=True)
class _Choice:
    """The best smooth weights or the best cap: what both have."""

    sampling_variance: float
    privacy_variance: float
    shift: float
    certificate: Certificate
    stop_reason: str

    @cached_property
    def squared_error(self) -> float:
        """Return the expected squared error, (unit of the values)^2, with the shift squared."""
        return self.sampling_variance + self.privacy_variance + self.shift**2

    @cached_property
    def standard_error(self) -> float:
        """Return the square root of `variance`, in the values' unit."""
        return math.sqrt(self.squared_error)


@dataclass(frozen=True)
class SmoothChoice(_Choice):
    """The best smooth weights of a mean with public counts, with the parts of their error.

    Attributes:
        threshold: Real-valued h in rows per user: lighter users' rows all weigh the same, heavier users
            share the weight of h such rows among all of theirs.
        sampling_variance: Part of the expected squared error due to sampling.
        privacy_variance: Part due to privacy noise.
        shift: Part that is bias before noise, in the values' unit, with its sign; 0 where it is not known.
        certificate: The variance and a dual lower bound for *all* weights; if values are used, a bound for all
            thresholds.
        stop_reason: Sentence on how the search ended.
    """

    threshold: float


@dataclass(frozen=True)
class CapChoice(_Choice):
    """The best cap of a mean with public counts, with the parts of its error.

    Attributes:
        max_contributions: Integer h: at most h rows of each user are kept, with equal weights.
        sampling_variance: Part of the expected squared error due to sampling.
        privacy_variance: Part due to privacy noise.
        shift: Part that is bias before noise, in the values' unit, with its sign; 0 where it is not known.
        certificate: The variance and a lower bound for all integer caps.
        stop_reason: Sentence on how the search ended.
    """

    max_contributions: int


def compute_smooth_error(mean_problem: MeanProblem, thresholds: npt.ArrayLike) -> MeanError:
    """Return the expected squared error under smooth weights in its parts, at ``thresholds`` h > 0 of any shape."""
    return mean_problem.model.measure_smooth(np.asarray(thresholds, dtype=np.float64))


def compute_capped_error(problem: MeanProblem, caps: npt.ArrayLike) -> MeanError:
    """Return the expected squared error under caps in its parts, at ``caps`` h > 0 of any shape."""
    return problem.model.measure_capped(np.asarray(caps, dtype=np.float64))


def compute_smooth_variance(problem: MeanProblem, thresholds: npt.ArrayLike) -> FloatArray:
    """Return v(h), expected squared error of the mean under smooth weights with threshold h.

    Args:
        problem: The question.
        thresholds: h > 0 in rows per user, any shape. The noise is that for a user with h rows, so above
            s_m it is more than any user needs.

    Returns:
        Variances in (unit of the values)^2, float64, of the shape of ``thresholds``.

    Source: Epasto et al. 2020, claim 1:
        v(h) = sigma^2 sum_l s_l (min(h, s_l) / (n_h s_l))^2 + 2 (B h / (eps n_h))^2.
    """
    return compute_smooth_error(problem, thresholds).squared_error


def compute_capped_variance(problem: MeanProblem, caps: npt.ArrayLike) -> FloatArray:
    """Return v'(h), expected squared error of the mean when at most h rows of each user are kept.

    Args:
        problem: The question.
        caps: h > 0 in rows per user, any shape.

    Returns:
        Variances in (unit of the values)^2, float64, of the shape of ``caps``.

    Source: Epasto et al. 2020, claim 2: v'(h) = sigma^2 / n_h + 2 (B h / (eps n_h))^2.
    """
    return compute_capped_error(problem, caps).squared_error


def find_best_smooth(problem: MeanProblem) -> SmoothChoice:
    """Find the best weights, or thresholds for a table's values, exactly, with a certificate; see `weights`."""
    optimum = problem.model.find_best_smooth()
    mean_error = problem.model.measure_smooth(np.asarray(optimum.bound))
    return SmoothChoice(*_describe_optimum(problem, mean_error, optimum), optimum.bound)


def find_best_cap(problem: MeanProblem) -> CapChoice:
    """Find the best integer cap in [s_1, s_m], exactly, with a certificate; see `weights.find_best_cap`."""
    optimum = problem.model.find_best_cap()
    mean_error = problem.model.measure_capped(np.asarray(optimum.bound))
    return CapChoice(*_describe_optimum(problem, mean_error, optimum), int(optimum.bound))


def _describe_optimum(
    problem: MeanProblem, mean_error: MeanError, optimum: BoundOptimum
) -> tuple[float, float, float, Certificate, str]:
    """Return the fields of `_Choice` for an optimum."""
    certificate = optimum.certificate
    if problem.proof_limit:
        certificate = replace(certificate, argument=f"{certificate.argument}{problem.proof_limit}")
    parts = float(mean_error.sampling_variance), float(mean_error.privacy_variance), float(mean_error.shift)
    return *parts, certificate, optimum.stop_reason


def find_weight_growth(mean_problem: MeanProblem, threshold: float) -> WeightGrowth:
    """Return how a user's best smooth weight grows with their rows; plain growth if rows are independent."""
    if not mean_problem.user_share:
        return WeightGrowth()
    row_factor, effective_factor = mean_problem.model.compute_coefficients(threshold)
    if not effective_factor:
        return WeightGrowth()
    return WeightGrowth(row_factor, effective_factor, mean_problem.user_share)


def compute_row_weight(problem: MeanProblem, threshold: float, sizes: npt.ArrayLike) -> FloatArray:
    """Return the weight of one row of a user of each size; over all rows of all users weights sum to 1.

    Args:
        problem: The question.
        threshold: h > 0 in rows per user.
        sizes: Rows per user, at least 1, any shape.

    Returns:
        min(h, s) / (s n_h), float64 of the shape of ``sizes``. Where users differ, `WeightGrowth` of
        min(h, s) in the place of min(h, s).

    Source: Epasto et al. 2020, lemma 3.
    """
    s = np.asarray(sizes, dtype=np.float64)
    weight_growth = find_weight_growth(problem, threshold)
    if weight_growth.is_plain:
        return np.asarray(np.minimum(threshold, s) / s / problem.histogram.count_kept_rows(threshold))
    user_weights = weight_growth.compute_user_weights(np.minimum(threshold, problem.histogram.sizes))
    total_weight = user_weights @ problem.histogram.users.astype(np.float64)
    return np.asarray(weight_growth.compute_user_weights(np.minimum(threshold, s)) / s / total_weight)


def find_cap_stretches(
    problem: MeanProblem, relative_excess: float = 0.05, cap_choice: CapChoice | None = None
) -> tuple[tuple[int, int], ...]:
    """Return the intervals of caps whose standard error is at most (1 + ``relative_excess``) times the least.

    Args:
        problem: The question.
        relative_excess: Share by which the standard error may exceed the smallest one.
        cap_choice: The best cap; None to compute it here.

    Returns:
        (smallest, largest) cap of each interval from 1 to s_m, in rows per user, ascending. For independent rows there
        is one: v' is quasi-convex on [s_1, s_m] and falls below s_1, where only the sampling error changes. A cap
        above s_m keeps no more rows than s_m.
    """
    cap_choice = find_best_cap(problem) if cap_choice is None else cap_choice
    # The excess is relative to the standard error; the limit is a variance.
    max_squared_error = cap_choice.squared_error * (1.0 + relative_excess) ** 2
    intervals = problem.model.cap_curve.find_intervals_within(max_squared_error, is_integer=True)
    return tuple((int(first_cap), int(last_cap)) for first_cap, last_cap in intervals)


def find_caps_within(problem: MeanProblem, relative_excess: float = 0.05) -> tuple[int, int]:
    """Return the interval of `find_cap_stretches` that contains the best cap."""
    cap_choice = find_best_cap(problem)
    first_cap, last_cap = find_interval_around(
        find_cap_stretches(problem, relative_excess, cap_choice), cap_choice.max_contributions
    )
    return int(first_cap), int(last_cap)
