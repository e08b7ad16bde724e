"""A DP histogram of the contribution histogram: one DP release, after which everything may be explored.

Every user sits in one public bin: exact sizes up to a limit, then geometric up to a public maximum.
Adding or removing a user moves one count by 1: L1 and squared L2 sensitivity 1. Replacing one by another moves at most
two counts by 1 each: 2 and 2. Noise goes on every bin, empty ones too: leaving those out would show which are empty.

The noisy counts become whole, non-negative users without phantom heavy ones. This post-processing looks at nothing but
released numbers and public bins, so it costs no privacy.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import mechanisms
from dpcore.common.checks import EPSILON_RANGE, InvalidInput, Problems, refuse
from dpcore.common.privacy import Charge, Disclosure, Neighbours, ReleaseFacts
from dpcore.common.wording import choose_word, format_count, format_entered
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray, IntArray, read_only
from dpcore.dataset import Contribution, Dataset

MAX_BINS = 20_000
"""More bins than that only add noise; each is drawn by OpenDP at about 7 microseconds."""
GROWTH_RANGE = (1.001, 1000.0)


@dataclass(frozen=True)
class PublicBins:
    """Bins of rows per user, chosen without looking at the data.

    Sizes 1 to ``exact_up_to`` have a bin each; above, bins grow geometrically up to ``largest``. A user with
    more than ``largest`` rows counts as one with ``largest``: every user sits in exactly one bin.

    Attributes:
        exact_up_to: Largest size with a bin of its own, at least 1.
        largest: Public maximum of rows per user, at least ``exact_up_to``: from what the quantity is, or from
            how the data were collected, not from the data.
        growth: How much wider each further bin is, in `GROWTH_RANGE`; bins hold at least one size.

    Raises:
        InvalidInput: A figure is out of its range, or there would be more than `MAX_BINS` bins.
    """

    exact_up_to: int = 10
    largest: int = 10_000
    growth: float = 1.3

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            is_valid = problems.whole(1, MAX_BINS, exact_up_to=self.exact_up_to)
            is_valid &= problems.whole(1, MAX_SIZE, largest=self.largest)
            is_valid &= problems.between(*GROWTH_RANGE, growth=self.growth)
            if is_valid and self.largest < self.exact_up_to:
                problems.add(
                    f"largest must be at least exact_up_to; got {self.largest:,} and {self.exact_up_to:,}"
                )
            elif is_valid and self.lower.size > MAX_BINS:
                problems.add(f"these are more than {MAX_BINS:,} bins", remedy="Use a larger growth")

    @cached_property
    def lower(self) -> IntArray:
        """Return the smallest size of each bin, ascending from 1, shape (k,)."""
        smallest_sizes = list(range(1, int(self.exact_up_to) + 1))
        next_smallest_size = int(self.exact_up_to) + 1
        while next_smallest_size <= self.largest and len(smallest_sizes) <= MAX_BINS:
            smallest_sizes.append(next_smallest_size)
            next_smallest_size = max(next_smallest_size + 1, math.floor(next_smallest_size * self.growth))
        return read_only(np.array(smallest_sizes, dtype=np.int64))

    @cached_property
    def upper(self) -> IntArray:
        """Return the largest size of each bin, shape (k,); that of the last bin is ``largest``."""
        return read_only(np.append(self.lower[1:] - 1, np.int64(self.largest)))

    @cached_property
    def representative(self) -> IntArray:
        """Return the size that stands for the users of each bin: its geometric middle, rounded, shape (k,).

        It must not depend on the data. The geometric middle sqrt(lower upper) is the exact mean of sizes in a bin
        where users fall off as size^(-3/2), between log-uniform (size^-1) and Zipf (size^-2), as contribution counts
        do; the arithmetic middle is right for a flat histogram and overstates rows. Measured without noise at growth
        1.3 on the Online Retail samples: rows 0.0 to 0.5 % too many, with the arithmetic middle 0.5 to 1.3 %
        (`benchmarks/private.py`).
        """
        geometric_middles = np.rint(np.sqrt(self.lower.astype(np.float64) * self.upper.astype(np.float64)))
        return read_only(geometric_middles.astype(np.int64))

    def count_users(self, histogram: ContributionHistogram) -> IntArray:
        """Count the users in each bin, shape (k,); those above ``largest`` in the last one.

        Private.

        Raises:
            InvalidInput: More users in all than 64 bits count.
        """
        if histogram.num_users >= 2**63:  # The sums below would wrap around.
            raise refuse("there are more users than 64 bits can count")
        # The last bin has no upper end here: it takes those above ``largest`` too.
        bin_indices = np.searchsorted(self.lower, histogram.sizes, side="right") - 1
        num_users_per_bin = np.zeros(self.lower.size, dtype=np.int64)
        np.add.at(num_users_per_bin, bin_indices, histogram.users)
        return num_users_per_bin

    @property
    def sentence(self) -> str:
        """Return a phrase that describes the bins."""
        num_bins, largest_text = self.lower.size, format_count(int(self.largest), "row")
        num_wider_bins = num_bins - int(self.exact_up_to)
        grows_or_grow = choose_word(num_wider_bins, "grows", "grow")
        return (
            f"{format_count(num_bins, 'bin')}: each size up to {int(self.exact_up_to):,}, then {num_wider_bins:,} "
            "that "
            f"{grows_or_grow} by a factor of {format_entered(self.growth)} up to {largest_text} per user"
        )


@dataclass(frozen=True)
class NoiseShape:
    """The law of the noise on one count.

    Attributes:
        variance: Above 0.
        tail_scale: b where tails fall as exp(-|z| / b), as Laplace noise's do; 0 for Gaussian tails.
    """

    variance: float
    tail_scale: float


PHANTOM_CHANCE = 0.05
"""How likely a tail without users may look as if it had some, at most, for each tail count."""
FIT_TAIL_RATIO = 3.0
"""The power law is read off where the tail count is this many times the last that is believed."""
EXPONENT_RANGE = (1.5, 5.0)
"""Range of the power law. With 1.5 the users beyond a size have three times as many rows on average (Pareto's
law: a / (a - 1)). An exponent of 1 overstated rows when measured."""


def fit_users(noisy_counts: npt.ArrayLike, noise_shape: NoiseShape, smallest_sizes: IntArray) -> IntArray:
    """Fit whole numbers of users of at least 0 to noisy counts per bin.

    The nearest falling tail counts, and a power law beyond the last that stands out from the noise. Measured beside
    four others on Online Retail's lines / invoices / customers per product, default bins, 400 simulated copies
    (`benchmarks/private.py`). Error in rows is relative, root mean square; regret is that of the standard error of
    Mean's best smooth weights at epsilon = 1:

    ==========  =====================  =========================  =======================
    fit         rows, epsilon 0.1      95 % regret, epsilon 0.1   median, epsilon 0.01
    ==========  =====================  =========================  =======================
    CLIP        55 % / 1,129 % / 91 %  0.07 % / 3.6 % / 0.12 %    2.0 % / 81 % / 2.7 %
    SIMPLEX     50 % / 869 % / 80 %    0.06 % / 2.2 % / 0.09 %    0.8 % / 34 % / 1.1 %
    ISOTONIC    40 % / 667 % / 58 %    0.06 % / 1.2 % / 0.08 %    0.7 % / 8.1 % / 0.8 %
    TRUNCATED   18 % / 100 % / 13 %    0.06 % / 1.0 % / 0.07 %    3.5 % / 24 % / 4.5 %
    this one    18 % / 160 % / 27 %    0.06 % / 0.6 % / 0.07 %    0.6 % / 0.4 % / 1.4 %
    ==========  =====================  =========================  =======================

    A few phantom users of 10,000 rows outweigh everybody: the first three fill the tail with them. Truncating
    lets no phantom in but takes true heavy users out, which a sum and a small epsilon do not forgive (lines, sum at
    epsilon = 1, median regret at epsilon_choice 0.1: TRUNCATED 796 %, this one 11 %). All keep the number of users
    within 0.2 % at epsilon 0.1, but for CLIP: 0.8 to 2.1 % too many.

    Args:
        noisy_counts: Released counts, one per bin in ascending order of size, shape (k,).
        noise_shape: On each of them.
        smallest_sizes: Smallest size of each bin, shape (k,).

    Returns:
        Users per bin, shape (k,).
    """
    tails = sum_tails(np.asarray(noisy_counts, dtype=np.float64))
    phantom_limits = compute_phantom_limits(tails.size, noise_shape)
    bin_indices_above_noise = np.flatnonzero(tails > phantom_limits)
    last_bin = int(bin_indices_above_noise[-1]) if bin_indices_above_noise.size else -1
    tails[last_bin + 1 :] = 0.0
    tails = fit_falling_tails(tails)
    if 0 <= last_bin < tails.size - 1:
        # No more than the noise can hide: more would have stood out.
        tails_beyond = _extend_by_power_law(tails, smallest_sizes.astype(np.float64), last_bin)
        tails[last_bin + 1 :] = np.minimum(tails_beyond, phantom_limits[last_bin + 1 :])
    return count_from_tails(tails)


def count_from_tails(tails: FloatArray) -> IntArray:
    """Convert tail counts to whole numbers of users per bin; at least 0 if the tails fall."""
    # Rounding the tails, not the counts: half users do not add up over a hundred bins.
    rounded_tail_counts = np.rint(np.maximum(tails, 0.0)).astype(np.int64)
    return np.asarray(rounded_tail_counts - np.append(rounded_tail_counts[1:], 0))


def compute_phantom_limits(num_bins: int, noise_shape: NoiseShape) -> FloatArray:
    """Compute for each tail count a limit that noise alone exceeds with probability at most `PHANTOM_CHANCE`.

    The last of ``num_bins`` tail counts has the noise of one bin, the first that of all: shape (bins,).

    Source: Bernstein's inequality for sums of j sub-exponential terms, sqrt(2 j v L) + b L with
        L = ln(1 / chance) (Boucheron, Lugosi, Massart 2013, theorem 2.10).
    """
    j, log_chance = np.arange(num_bins, 0, -1, dtype=np.float64), math.log(1.0 / PHANTOM_CHANCE)
    gaussian_limits = np.sqrt(2.0 * j * noise_shape.variance * log_chance)
    return np.asarray(gaussian_limits + noise_shape.tail_scale * log_chance)


def sum_tails(bin_counts: FloatArray) -> FloatArray:
    """Compute for each bin the sum of its count and those of all later bins, same shape."""
    return np.asarray(np.cumsum(bin_counts[::-1])[::-1])


def fit_falling_tails(tails: FloatArray) -> FloatArray:
    """Fit the nearest non-increasing sequence to noisy tail counts, in least squares with weights 1 / variance.

    The last of k tail counts has the noise of one bin, the first that of k: weights 1, ..., 1 / k.

    Source: Hay, Rastogi, Miklau, Suciu 2010, Boosting the accuracy of differentially private histograms through
        consistency, section 3 (isotonic regression as post-processing).
    """
    from scipy.optimize import isotonic_regression

    tail_weights = 1.0 / np.arange(tails.size, 0, -1)
    return np.asarray(isotonic_regression(tails, weights=tail_weights, increasing=False).x)


def _extend_by_power_law(tails: FloatArray, lower: FloatArray, last_bin: int) -> FloatArray:
    """Compute the tail counts beyond ``last_bin`` by the power law through the last believed tail counts.

    Its exponent is limited to `EXPONENT_RANGE`.
    """
    high_bin_indices = np.flatnonzero(tails[: last_bin + 1] >= FIT_TAIL_RATIO * tails[last_bin])
    start_bin = int(high_bin_indices[-1]) if high_bin_indices.size else 0
    exponent = EXPONENT_RANGE[0]
    if start_bin < last_bin:
        exponent = np.log(tails[start_bin] / tails[last_bin]) / np.log(lower[last_bin] / lower[start_bin])
    exponent = min(max(float(exponent), EXPONENT_RANGE[0]), EXPONENT_RANGE[1])
    return np.asarray(tails[last_bin] * (lower[last_bin] / lower[last_bin + 1 :]) ** exponent)


NOTHING_LEFT_MESSAGE = (
    "No users are left in the histogram: there are too few of them for this much noise. Choose with a larger epsilon, "
    "with fewer bins, or without these data"
)
TOO_MANY_USERS_MESSAGE = (
    f"a DP histogram holds at most {MAX_USERS:,} users in each bin, and there are more. "
    "No histogram was drawn, and no ε was spent"
)

DEFAULT_BINS = PublicBins()


class HistogramNoise(enum.Enum):
    """The noise on the counts; values are the words of labels."""

    LAPLACE = mechanisms.DISCRETE_LAPLACE
    GAUSSIAN = mechanisms.DISCRETE_GAUSSIAN


@dataclass(frozen=True)
class HistogramParameters:
    """The settings of a DP histogram, all of them public.

    Attributes:
        epsilon_choice: Privacy budget of the copy, in `dpcore.common.checks.EPSILON_RANGE`.
        bins: Public bins of rows per user.
        noise: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        neighbours: Add or remove one user, or replace one user.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon_choice: float
    bins: PublicBins = DEFAULT_BINS
    noise: HistogramNoise = HistogramNoise.LAPLACE
    delta: float | None = None
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon_choice=self.epsilon_choice)
            problems.of_kind(PublicBins, bins=self.bins)
            problems.of_kind(HistogramNoise, noise=self.noise)
            if (self.delta is None) == (self.noise is HistogramNoise.GAUSSIAN):
                problems.add("Gaussian noise goes with a delta, and Laplace noise with none")
            elif self.delta is not None:
                problems.inside(0.0, 1.0, delta=self.delta)
            if self.neighbours not in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER):
                problems.add(
                    "neighbours must add or remove one user or replace one user: a copy of public counts needs no noise"
                )

    @property
    def sensitivity(self) -> int:
        """Return by how much one user changes the counts, in L1 and, equally, in squared L2."""
        return 2 if self.neighbours is Neighbours.REPLACE_USER else 1

    @property
    def scale(self) -> float:
        """Return the scale of the noise in users: b of discrete Laplace, sigma of discrete Gaussian noise."""
        if self.delta is None:
            return mechanisms.find_laplace_scale(self.sensitivity, self.epsilon_choice)
        return mechanisms.find_gaussian_scale(self.sensitivity, self.epsilon_choice, self.delta)

    @property
    def noise_shape(self) -> NoiseShape:
        """Return the variance and tails of the noise on one count, in users."""
        return compute_noise_shape(self.noise, self.scale)


def compute_noise_shape(noise_kind: HistogramNoise, noise_scale: float) -> NoiseShape:
    """Compute the variance and the tail scale of integer noise of this scale.

    Source: Canonne, Kamath, Steinke 2020: discrete Laplace has variance 1 / (2 sinh(1 / (2b))^2); discrete
        Gaussian at most sigma^2 (corollary 9).
    """
    if noise_kind is HistogramNoise.GAUSSIAN:
        return NoiseShape(noise_scale**2, 0.0)
    # Beyond 350 the square of sinh leaves float64, and the variance is 0 for every purpose.
    half_inverse_scale = 0.5 / noise_scale
    return NoiseShape(
        0.5 / math.sinh(half_inverse_scale) ** 2 if half_inverse_scale < 350.0 else 0.0, noise_scale
    )


@dataclass(frozen=True, eq=False)
class ReleasedHistogram:
    """One DP histogram: all of it may be published, under its label.

    Attributes:
        parameters: What was asked for.
        facts: What is guaranteed, as OpenDP proves it; the label of everything computed from the copy.
        noisy_counts: Users per bin as released, shape (k,), may be negative.
        fitted_users: Users per bin after post-processing, shape (k,), at least 0.
        histogram: The users at their bins' representative sizes; None where no user is left.
        scale: Of the noise, in users.
    """

    parameters: HistogramParameters
    facts: ReleaseFacts
    noisy_counts: IntArray
    fitted_users: IntArray
    histogram: ContributionHistogram | None
    scale: float

    @property
    def sentence(self) -> str:
        """Return one sentence on how the copy was made, or on why nothing is left of it."""
        if self.histogram is None:
            return f"{NOTHING_LEFT_MESSAGE}."
        return (
            f"{self.facts.mechanism[0].upper()}{self.facts.mechanism[1:]} noise of scale {self.scale:.4g} on the "
            f"users in each of {self.parameters.bins.sentence}; then fitted to a histogram that can be."
        )

    def to_dataset(self, name: str, contribution: Contribution = Contribution.ROWS) -> Dataset:
        """Convert the copy to a dataset that has only a histogram and is labelled as a DP release.

        Args:
            name: Public: what the person calls the data (a file's name), not something computed from them.
            contribution: What was counted as one contribution, as the person chose.

        Raises:
            InvalidInput: No user is left.
        """
        if self.histogram is None:
            raise InvalidInput([NOTHING_LEFT_MESSAGE])
        return Dataset(
            name=f"DP histogram of {name}",
            source=self.sentence,
            disclosure=Disclosure.DP_RELEASE,
            histogram=self.histogram,
            contribution=contribution,
            release=self.facts,
        )


def release_histogram(
    histogram: ContributionHistogram, parameters: HistogramParameters, charge: Charge | None = None
) -> ReleasedHistogram:
    """Draw a DP histogram; every call draws again and spends its epsilon again.

    Args:
        histogram: Rows per user, private.
        parameters: What is asked for.
        charge: Told what the draw guarantees before anything is drawn.

    Returns:
        `ReleasedHistogram`; a function of the released counts and of public things only.

    Raises:
        InvalidInput: More than `MAX_USERS` users in one bin; nothing was drawn.
    """

    def build_facts(epsilon: float, delta: float) -> ReleaseFacts:
        """Build the guarantee of a copy with this epsilon and delta."""
        return ReleaseFacts(epsilon, delta, parameters.neighbours, parameters.noise.value)

    bins, bin_counts = parameters.bins, parameters.bins.count_users(histogram)
    if np.any(bin_counts > MAX_USERS):
        raise InvalidInput([TOO_MANY_USERS_MESSAGE])
    charge_noise = None if charge is None else lambda epsilon, delta: charge(build_facts(epsilon, delta))
    release = add_noise(bin_counts, parameters, charge_noise)
    # Of released counts, public bins and the law of the noise alone: from here on nothing costs privacy.
    noise_shape = compute_noise_shape(parameters.noise, release.scale)
    fitted_users = fit_users(release.values, noise_shape, bins.lower)
    release_facts = build_facts(release.epsilon, release.delta)
    copied_histogram = build_histogram(fitted_users, bins)
    return ReleasedHistogram(
        parameters,
        release_facts,
        read_only(release.values),
        read_only(fitted_users),
        copied_histogram,
        release.scale,
    )


def add_noise(
    bin_counts: IntArray, parameters: HistogramParameters, charge: mechanisms.ChargeBudget | None = None
) -> mechanisms.IntegerRelease:
    """Release the counts with discrete Laplace or Gaussian noise, drawn by OpenDP."""
    epsilon, delta, sensitivity = parameters.epsilon_choice, parameters.delta, parameters.sensitivity
    if delta is None:
        return mechanisms.release_discrete_laplace(bin_counts, sensitivity, epsilon, charge)
    return mechanisms.release_discrete_gaussian(bin_counts, sensitivity, epsilon, delta, charge)


def build_histogram(fitted_users: IntArray, bins: PublicBins) -> ContributionHistogram | None:
    """Build a histogram with the users of each bin at its representative size; None if there are no users."""
    bin_mask = fitted_users > 0
    if not np.any(bin_mask):
        return None
    # Noise may carry a count past what one size may hold; cutting it off looks at released numbers only.
    return ContributionHistogram(bins.representative[bin_mask], np.minimum(fitted_users[bin_mask], MAX_USERS))
