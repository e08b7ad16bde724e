"""A population whose users differ in how likely they contribute, and the effect of a cap on its samples.

The chance of a user to contribute the next row follows a power law. Row i comes from user J_i, drawn independently
with P(J_i = j) = p_j, p_j = j^-(1 + alpha) / zeta(1 + alpha), j = 1, 2, ... Small alpha spreads rows over many users;
large alpha gives nearly all to a few.

Source: Amin et al. 2019, sections 5 to 7.

A cap on a sample of n rows has expectations, and simulated draws. User j's number of rows is Binomial(n, p_j), so
every expectation of a sum over users is a sum of binomial expectations; no sample is needed. The paper averages 100
draws instead (figure 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import refuse, require
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import format_entered
from dpcore.contributions import FloatArray, SumsAtBounds
from dpcore.learning.bias_bounds import CapStatistics

ALPHA_RANGE = (0.05, 10.0)
"""Below, single users' shares fall so slowly that float64 runs out of user numbers."""

FRACTION_RANGE = (1e-15, 1.0)

NUM_TABLED_POWERS = 4096
"""Powers up to here are summed one by one; beyond, by Euler and Maclaurin."""


@dataclass(frozen=True)
class PowerLaw:
    """Participation p_j proportional to j^-(1 + alpha), j = 1, 2, ...

    Attributes:
        alpha: Between 0.05 and 10.

    Raises:
        InvalidInput: ``alpha`` is out of its range.

    Source: Amin et al. 2019, section 7 ("Pareto distributions").
    """

    alpha: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if ``alpha`` is out of its range."""
        require.between(*ALPHA_RANGE, alpha=self.alpha)

    @property
    def exponent(self) -> float:
        """Return 1 + alpha."""
        return 1.0 + self.alpha

    @cached_property
    def normaliser(self) -> float:
        """Return zeta(1 + alpha), the sum of j^-(1 + alpha)."""
        return float(self._sum_zeta_from(np.array(1.0)))

    @property
    def largest_share(self) -> float:
        """Return p_1, the share of the heaviest user."""
        return 1.0 / self.normaliser

    def compute_probabilities(self, user_numbers: npt.ArrayLike) -> FloatArray:
        """Return p_j at user numbers j >= 1, any shape (real numbers allowed, for integrals)."""
        return np.asarray(np.asarray(user_numbers, dtype=np.float64) ** -self.exponent / self.normaliser)

    def _sum_zeta_from(self, first_users: FloatArray) -> FloatArray:
        """Return the Hurwitz zeta function of each first user: the sum over j >= that number of j^-(1 + alpha)."""
        from scipy.special import zeta

        return np.asarray(zeta(self.exponent, first_users))

    def compute_tail_mass(self, user_numbers: npt.ArrayLike) -> FloatArray:
        """Return the mass of all users beyond number K, the sum over j > K of p_j; K whole, any shape."""
        return self._sum_zeta_from(np.asarray(user_numbers, dtype=np.float64) + 1.0) / self.normaliser

    def count_users_above(self, shares: npt.ArrayLike) -> FloatArray:
        """Return K(share), the number of users with p_j > share, for share > 0 of any shape; float64, whole."""
        h = np.asarray(shares, dtype=np.float64)
        user_counts = np.floor((h * self.normaliser) ** (-1.0 / self.exponent))
        # The root is rounded; ask the probabilities themselves on either side.
        user_counts = np.where(
            self.compute_probabilities(user_counts + 1.0) > h, user_counts + 1.0, user_counts
        )
        above_mask = self.compute_probabilities(np.maximum(user_counts, 1.0)) > h
        return np.asarray(np.where((user_counts > 0.0) & ~above_mask, user_counts - 1.0, user_counts))

    def compute_uncapped_mass(self, fractions: npt.ArrayLike) -> FloatArray:
        """Return the sum of p_j over users with p_j <= tau_0, by Hurwitz zeta.

        Args:
            fractions: tau_0 above 0, any shape.

        Source: Amin et al. 2019, figure 2.
        """
        return self.compute_tail_mass(self.count_users_above(fractions))

    def compute_kept_share(self, fractions: npt.ArrayLike) -> FloatArray:
        """Return the sum over j of min(p_j, tau_0), to which n_tau / n tends as n grows.

        The paper's text keeps only the uncapped mass; capped users keep tau_0 each.

        Source: Amin et al. 2019, proposition 5, Q(tau_0).
        """
        tau_0 = np.asarray(fractions, dtype=np.float64)
        num_users_above = self.count_users_above(tau_0)
        return np.asarray(self.compute_tail_mass(num_users_above) + tau_0 * num_users_above)

    def compute_sums_at(self, shares: npt.ArrayLike) -> SumsAtBounds:
        """Return the sums over users at or below, and above, a share: mass, number, and sum of 1 / p_j.

        The counterpart of `ContributionHistogram.compute_sums_at` in shares; ``rows_at_or_below`` is a mass.
        """
        num_users_above = self.count_users_above(shares)
        inverse_sums = np.asarray(self.normaliser * self._sum_powers(num_users_above))
        return SumsAtBounds(self.compute_tail_mass(num_users_above), num_users_above, inverse_sums)

    @cached_property
    def _cumulative_powers(self) -> FloatArray:
        """Return the sums of the first 0 to `NUM_TABLED_POWERS` powers j^(1 + alpha)."""
        return np.concatenate(([0.0], np.cumsum(np.arange(1.0, NUM_TABLED_POWERS + 1.0) ** self.exponent)))

    def _sum_powers(self, num_powers: FloatArray) -> FloatArray:
        """Return the sum over j <= K of j^s, s = 1 + alpha, K whole.

        Beyond the table sum_{j=J+1}^K j^s = [x^(s+1) / (s+1) + x^s / 2 + s x^(s-1) / 12]_J^K - ..., the next
        term s (s-1) (s-2) x^(s-3) / 720 being below 1e-11 of the first.
        """
        s = self.exponent

        def evaluate_primitive(x: FloatArray) -> FloatArray:
            """Return x^(s+1) / (s+1) + x^s / 2 + s x^(s-1) / 12 at each x."""
            return np.asarray(x ** (s + 1.0) / (s + 1.0) + x**s / 2.0 + s * x ** (s - 1.0) / 12.0)

        tabled_sums = self._cumulative_powers[np.minimum(num_powers, NUM_TABLED_POWERS).astype(np.int64)]
        primitives_at_ends = evaluate_primitive(np.maximum(num_powers, float(NUM_TABLED_POWERS)))
        return np.asarray(
            tabled_sums + (primitives_at_ends - evaluate_primitive(np.array(float(NUM_TABLED_POWERS))))
        )


def check_fractions(fractions: npt.ArrayLike) -> FloatArray:
    """Return tau_0 as a float64 array of its shape, all within `FRACTION_RANGE`.

    Raises:
        InvalidInput: A fraction outside [1e-15, 1].
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    if not np.all((tau_0 >= FRACTION_RANGE[0]) & (tau_0 <= FRACTION_RANGE[1])):
        smallest_fraction_text, largest_fraction_text = (format_entered(limit) for limit in FRACTION_RANGE)
        raise refuse(f"tau_0 must lie between {smallest_fraction_text} and {largest_fraction_text}")
    return tau_0


MAX_EXPECTED_ROWS = 10**9
MAX_SIMULATED_ROWS = 10**7

NUM_HEAD_USERS = 1024
"""Users summed one by one. Up to 1e9 rows, the users beyond them change from capped to uncapped over more than five
user numbers. So the sum over them equals an integral to well below 1e-9 of the total."""

QUADRATURE_RULE = np.polynomial.legendre.leggauss(8)
"""Points and weights of Gauss and Legendre on [-1, 1]."""
SURELY_DECIDED_EXPONENT = 45.0
"""A binomial is taken as surely on one side where Chernoff's exponent is larger (probability below 3e-20)."""

MAX_ARRAY_CELLS = 200_000


def convert_to_rows(tau_0: FloatArray, n: int) -> FloatArray:
    """Return the caps tau_0 n in rows; a product within rounding of a whole number counts as that number."""
    tau = tau_0 * n
    rounded_caps = np.rint(tau)
    return np.where(np.abs(tau - rounded_caps) <= 1e-12 * tau, rounded_caps, tau)


def _compute_binomial_parts(n: int, p: FloatArray, tau: FloatArray) -> tuple[FloatArray, ...]:
    """Return (E min(X, tau), E (X - tau)_+, P(X > tau)) for X ~ Binomial(n, p) and real tau >= 1, elementwise.

    With t = floor(tau) and I the regularised incomplete beta function, P(X > tau) = I_p(t + 1, n - t) and
    E[X; X > tau] = n p P(Binomial(n - 1, p) >= t) = n p I_p(t, n - t).
    """
    from scipy.special import betainc

    p, tau = np.broadcast_arrays(p, tau)
    mean_rows = n * p
    with np.errstate(divide="ignore"):
        # Chernoff: either tail is at most exp(-exponent) on its side of the mean.
        positive_means = np.where(mean_rows > 0.0, mean_rows, np.finfo(float).tiny)
        chernoff_exponents = tau * np.log(tau / positive_means) - tau + mean_rows
    decided_mask = chernoff_exponents > SURELY_DECIDED_EXPONENT
    surely_capped_mask = decided_mask & (mean_rows > tau)
    surely_uncapped_mask = (decided_mask & (mean_rows <= tau)) | (tau >= n)
    kept_rows = np.where(surely_capped_mask, tau, mean_rows)
    excess_rows = np.where(surely_capped_mask, mean_rows - tau, 0.0)
    capped_probabilities = np.where(surely_capped_mask, 1.0, 0.0)
    undecided_mask = ~(surely_capped_mask | surely_uncapped_mask)
    if undecided_mask.any():
        q, undecided_caps, m = p[undecided_mask], tau[undecided_mask], mean_rows[undecided_mask]
        t = np.floor(undecided_caps)
        rows_beyond_cap = n - t
        exceed_probabilities = betainc(t + 1.0, rows_beyond_cap, q)
        # E[X; X > tau] loses digits to E[X] and the other way round: each is taken from its own side.
        upper_probabilities = betainc(t, rows_beyond_cap, q)
        lower_probabilities = betainc(rows_beyond_cap, t, 1.0 - q)
        capped_rows = undecided_caps * exceed_probabilities
        kept_rows[undecided_mask] = m * lower_probabilities + capped_rows
        excess_rows[undecided_mask] = np.maximum(m * upper_probabilities - capped_rows, 0.0)
        capped_probabilities[undecided_mask] = exceed_probabilities
    return kept_rows, excess_rows, capped_probabilities


def _choose_tail_nodes(law: PowerLaw, n: int, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes x > HEAD + 1/2 and weights for sums over the users beyond, shape (len(tau), q).

    In y = log x, where n p(x) = tau a user changes from capped to uncapped over a width of about
    1 / (s sqrt(tau)); pieces double in length away from there and stay below 1.5. Beyond, the integrands
    fall like exp(-(s (t + 1) - 1) y), so 40 over that rate is as far as is needed.
    """
    s = law.exponent
    log_start = np.log(NUM_HEAD_USERS + 0.5)
    log_centres = np.maximum(np.log(n / (tau * law.normaliser)) / s, log_start)
    log_widths = 1.0 / (s * np.sqrt(tau))
    offsets_in_widths = np.concatenate(([0.0], 2.0 ** np.arange(0.0, 12.0)))
    # Doubling offsets, cut to steps of at most 1.5, out to 45.
    offsets = np.minimum(log_widths[:, None] * offsets_in_widths, 1.5)
    offsets = np.concatenate((offsets, np.broadcast_to(np.arange(3.0, 45.0, 1.5), (tau.size, 28))), axis=1)
    log_stops = log_centres + 40.0 / (s * (np.floor(tau) + 1.0) - 1.0) + 8.0 * log_widths
    log_breakpoints = log_centres[:, None] + np.concatenate((-offsets[:, :0:-1], offsets), axis=1)
    log_breakpoints = np.clip(log_breakpoints, log_start, np.maximum(log_stops, log_start)[:, None])
    rule_points, rule_weights = QUADRATURE_RULE
    half_widths = np.diff(log_breakpoints, axis=1)[:, :, None] / 2.0
    x = np.exp((log_breakpoints[:, :-1, None] + half_widths) + half_widths * rule_points)
    return x.reshape(tau.size, -1), (x * half_widths * rule_weights).reshape(tau.size, -1)


def _sum_over_users(law: PowerLaw, n: int, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sums over all users of E min(X_j, tau), E (X_j - tau)_+ and P(X_j > tau), for tau >= 1 of shape (q,).

    The first two add up to n, but each is summed by itself: their small values lose no digits.
    """
    cap_column = tau[:, None]
    head_users = np.arange(1.0, NUM_HEAD_USERS + 1.0)
    head_kept, head_excess, head_capped = _compute_binomial_parts(
        n, law.compute_probabilities(head_users), cap_column
    )
    x, weights = _choose_tail_nodes(law, n, tau)
    _, node_excess, node_capped = _compute_binomial_parts(n, law.compute_probabilities(x), cap_column)
    # Midpoint rule: sum_{j > J} g(j) = integral from J + 1/2 + g'(J + 1/2) / 24 - ...
    edge_probabilities = law.compute_probabilities(np.array([float(NUM_HEAD_USERS), NUM_HEAD_USERS + 1.0]))
    _, edge_excess, edge_capped = _compute_binomial_parts(n, edge_probabilities, cap_column)
    tail_excess = np.maximum((node_excess * weights).sum(axis=1) + np.diff(edge_excess)[:, 0] / 24.0, 0.0)
    tail_kept_rows = n * float(law.compute_tail_mass(float(NUM_HEAD_USERS))) - tail_excess
    tail_capped = (node_capped * weights).sum(axis=1) + np.diff(edge_capped)[:, 0] / 24.0
    return (
        head_kept.sum(axis=1) + np.maximum(tail_kept_rows, 0.0),
        head_excess.sum(axis=1) + tail_excess,
        np.maximum(head_capped.sum(axis=1) + tail_capped, 0.0),
    )


def build_statistics(
    tau_0: FloatArray, kept_share: FloatArray, cut_share: FloatArray, num_users_capped: FloatArray
) -> CapStatistics:
    """Build the `CapStatistics` of a sample from averages of one shape; total variation and chi-squared are nan."""
    nans = np.full(tau_0.shape, np.nan)
    # tau_0 / E[n_tau / n] rises with tau_0, since the expectation is concave and 0 at 0.
    max_shares = np.where(kept_share > 0.0, tau_0 / np.where(kept_share > 0.0, kept_share, 1.0), np.nan)
    return CapStatistics(
        tau_0, kept_share, cut_share, num_users_capped, np.minimum(max_shares, 1.0), nans, nans
    )


def compute_expectations(law: PowerLaw, num_rows: int, fractions: npt.ArrayLike) -> CapStatistics:
    """Compute the expected share of rows kept and the expected number of users capped in a sample of n rows.

    The share is E[n_tau / n] = sum_j E[min(Binomial(n, p_j), tau)] / n.

    Args:
        law: The population.
        num_rows: n, whole, from 1 to 1e9.
        fractions: tau_0 in [1e-15, 1], any shape; tau = tau_0 n may be real.

    Returns:
        Expected shares and users capped, to about 1e-9 relative; below one row all users seen count as capped.

    Raises:
        InvalidInput: ``num_rows`` or a fraction out of its range.

    Source: Amin et al. 2019, figure 3, without its simulation.
    """
    require.whole(1, MAX_EXPECTED_ROWS, num_rows=num_rows)
    n = int(num_rows)
    tau_0 = check_fractions(fractions)
    tau = np.atleast_1d(convert_to_rows(tau_0, n)).ravel()
    kept_rows, expected_cut_rows = np.empty(tau.shape), np.empty(tau.shape)
    expected_users_capped = np.empty(tau.shape)
    chunk_size = max(1, MAX_ARRAY_CELLS // NUM_HEAD_USERS)
    for chunk_start in range(0, tau.size, chunk_size):
        chunk_slice = slice(chunk_start, chunk_start + chunk_size)
        # Users seen at all are those whose rows exceed 0; E min(X, 1) is the same number.
        chunk_sums = _sum_over_users(law, n, np.maximum(tau[chunk_slice], 1.0))
        kept_rows[chunk_slice], expected_cut_rows[chunk_slice], expected_users_capped[chunk_slice] = (
            chunk_sums
        )
    kept_share, cut_share, num_users_capped = (
        np.where(tau < 1.0, value_below_one_row, cap_values).reshape(tau_0.shape)
        for value_below_one_row, cap_values in (
            (0.0, kept_rows / n),
            (1.0, expected_cut_rows / n),
            (kept_rows, expected_users_capped),
        )
    )
    return build_statistics(tau_0, kept_share, cut_share, num_users_capped)


@dataclass(frozen=True)
class SimulatedSamples:
    """Simulated samples: what each cap keeps, and of how many users it takes rows, in each draw.

    Attributes:
        fractions: tau_0, shape (q,).
        kept_shares: n_tau / n per draw and tau_0, shape (draws, q).
        users_capped: Users with more than tau rows, shape (draws, q).
        is_stopped: True if the simulation was stopped; the draws made until then are here.
    """

    fractions: FloatArray
    kept_shares: FloatArray
    users_capped: FloatArray
    is_stopped: bool


def draw_rows_per_user(law: PowerLaw, num_rows: int, rng: np.random.Generator) -> FloatArray:
    """Return the rows per user seen in one sample of n rows, in no particular order.

    Heavy users' counts are one multinomial; the rest are rows from j > J, where the rounded Pareto variable
    Y = (J + 1/2) U^(-1/alpha) proposes j with probability proportional to the integral of y^-s over
    j +- 1/2, which exceeds j^-s by the factor 1 + s (s + 1) / (24 j^2) + O(j^-4); accepting with its
    inverse leaves j^-s.
    """
    s, last_head_user = law.exponent, float(NUM_HEAD_USERS)
    head_probabilities = law.compute_probabilities(np.arange(1.0, last_head_user + 1.0))
    # What is left for all others may come out a rounding below 0.
    tail_probability = max(1.0 - float(head_probabilities.sum()), 0.0)
    row_counts = rng.multinomial(num_rows, np.append(head_probabilities, tail_probability))
    tail_users = np.empty(0)
    num_missing = int(row_counts[-1])
    while num_missing:
        # 1 - random() is never 0, of which there is no such power.
        proposals = np.rint((last_head_user + 0.5) * (1.0 - rng.random(num_missing)) ** (-1.0 / law.alpha))
        accepted_mask = rng.random(num_missing) * (1.0 + s * (s + 1.0) / 24.0 / proposals / proposals) < 1.0
        tail_users = np.concatenate((tail_users, proposals[accepted_mask]))
        num_missing = int(row_counts[-1]) - tail_users.size
    tail_row_counts = np.unique(tail_users, return_counts=True)[1]
    head_row_counts = row_counts[:-1]
    return np.concatenate((head_row_counts[head_row_counts > 0], tail_row_counts)).astype(np.float64)


def simulate(
    law: PowerLaw,
    num_rows: int,
    fractions: npt.ArrayLike,
    num_draws: int = 100,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> SimulatedSamples:
    """Draw samples of n rows, as the paper does, and count the rows that each cap keeps and the users above it.

    Args:
        law: The population.
        num_rows: n, whole, from 1 to 1e7.
        fractions: tau_0 in [1e-15, 1], shape (q,).
        num_draws: Samples, 1 to 100,000.
        seed: Of the random numbers.
        progress: Told the share of draws made.
        should_stop: Asked before each draw.

    Returns:
        `SimulatedSamples`.

    Raises:
        InvalidInput: ``num_rows`` or a fraction out of its range.

    Source: Amin et al. 2019, figure 3.
    """
    require.whole(1, MAX_SIMULATED_ROWS, num_rows=num_rows)
    tau_0 = np.atleast_1d(check_fractions(fractions))
    tau, rng = convert_to_rows(tau_0, num_rows), np.random.default_rng(seed)
    kept_shares, num_users_capped = np.empty((2, num_draws, tau.size))
    num_drawn = 0
    while num_drawn < num_draws and not should_stop():
        rows_per_user = np.sort(draw_rows_per_user(law, num_rows, rng))
        cumulative_rows = np.concatenate(([0.0], np.cumsum(rows_per_user)))
        num_uncapped = np.searchsorted(rows_per_user, tau, side="right")
        num_users_capped[num_drawn] = rows_per_user.size - num_uncapped
        kept_rows = cumulative_rows[num_uncapped] + tau * num_users_capped[num_drawn]
        kept_shares[num_drawn] = np.where(tau < 1.0, 0.0, kept_rows / num_rows)
        num_drawn += 1
        progress(num_drawn / num_draws)
    return SimulatedSamples(
        tau_0, kept_shares[:num_drawn], num_users_capped[:num_drawn], num_drawn < num_draws
    )
