"""Models of the values of a mean: only the counts are known, or the population that users come from.

**Only counts.** The mean is that of the rows in this table; counts, sigma^2 and rho are known. The number of rows of
a user tells nothing about the values: users are exchangeable. Weights u then miss the mean of the table by an error
of variance sigma^2 sum_l (u_l - p_l)^2 / x_l, with p_l = s_l / n and the effective sizes x_l = s_l / (1 + (s_l - 1)
rho). A cap also draws rows:

    sigma^2 [rho sum_l (k_l / n_h - p_l)^2 + (1 - rho) (1 / n_h - 1 / n)],      k_l = min(h, s_l).

sigma^2 is the variance of the rows of the table with the divisor n - 1, so that at rho = 0 a cap is a sample of n_h
out of n rows without replacement. The best of all weights are u_l = min(t, p_l + nu x_l), by the conditions of
Karush, Kuhn and Tucker; ours.

`CountsOnly.best_smooth` finds them in three steps:

1. *Piece*: check the optimality condition in t at every size; the first size where it holds ends the piece.
2. *Point*: on that piece nu is linear in t, so the condition is a linear equation in t.
3. *Bound*: convert t back to a number of rows h by bisection, as t rises with h.

**Population.** The mean is that of the population that users come from; rows of one user are correlated. A row is mu
+ a_l + e with Var a = rho sigma^2 and Var e = (1 - rho) sigma^2, independent of each other and of the number of rows
of a user. For given weights of users it is best to spread each over the user's rows evenly. The variance is then
sigma^2 sum_l u_l^2 / x_l with x_l = s_l / (1 + (s_l - 1) rho): the problem of `dpcore.common.weights` in effective
sizes. So its optimum is the best among all weights of users. At rho = 0 it is Epasto et al. 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpcore.common import weights
from dpcore.common.certificate import Certificate
from dpcore.common.parameters import Option
from dpcore.contributions import ContributionHistogram, FloatArray, SizeIndex, excess_sums, suffix_sums
from dpcore.mean.curves import ALL_PIECES, BoundCurve, BoundOptimum, Losses, Pieces, trivial_stop_reason


@dataclass(frozen=True)
class Growth:
    """The weight of a user with s rows up to a bound: w(s) = s (extra_rows + extra_users / (1 + (s - 1) rho)).

    A user with s rows weighs w(min(s, h)), spread evenly over the rows. At rho = 0, or without ``extra_users``, that is
    min(s, h) up to a factor, the smooth weights of Epasto et al. 2020.

    Attributes:
        extra_rows: Weight per row, 1 or 0.
        extra_users: Weight per effective row (the effective size of a user).
        user_share: rho in [0, 1].
    """

    extra_rows: float = 1.0
    extra_users: float = 0.0
    user_share: float = 0.0

    def user_weights(self, rows: npt.ArrayLike) -> FloatArray:
        """Return w(s) at numbers of rows above 0, of their shape; w is increasing."""
        s = np.asarray(rows, dtype=np.float64)
        return np.asarray(s * (self.extra_rows + self.extra_users / (1.0 + (s - 1.0) * self.user_share)))

    def scaled_weights(self, threshold: float, rows: npt.ArrayLike) -> FloatArray:
        """Return min(h, c w(s)) for threshold h, with the factor c that makes c w(h) = h."""
        if self.is_plain:
            return np.asarray(np.minimum(threshold, rows))
        return np.asarray(np.minimum(threshold, self.user_weights(rows) * self._scale(threshold)))

    def coefficients(self, threshold: float) -> tuple[float, float]:
        """Return ``extra_rows`` and ``extra_users`` multiplied by the factor of `scaled_weights`."""
        scale = 1.0 if self.is_plain else self._scale(threshold)
        return self.extra_rows * scale, self.extra_users * scale

    def _scale(self, threshold: float) -> float:
        return threshold / float(self.user_weights(threshold))

    @property
    def is_plain(self) -> bool:
        """Return True if w(s) is proportional to s."""
        return self.extra_users == 0.0


@dataclass(frozen=True)
class CountsOnly:
    """The model of exchangeable users for the mean of this table; see `dpcore.mean.models.Model`.

    Attributes:
        histogram: Rows per user.
        unit_noise: Variance of the noise if one user holds all the weight, (unit)^2.
        value_variance: sigma^2, (unit)^2.
        user_share: rho in [0, 1].
    """

    histogram: ContributionHistogram
    unit_noise: float
    value_variance: float
    user_share: float

    @cached_property
    def _effective(self) -> FloatArray:
        s = self.histogram.sizes.astype(np.float64)
        return np.asarray(s / (1.0 + (s - 1.0) * self.user_share))

    @cached_property
    def _sums(self) -> _BelowAboveSums:
        return _BelowAboveSums.from_histogram(self.histogram, self._effective)

    def _sums_at(self, h: FloatArray, size_index: SizeIndex | None = None) -> _BelowAboveSums:
        """Return the sums below and above bounds; ``size_index`` is the number of sizes at or below each, if known."""
        index = np.searchsorted(self.histogram.sizes, h, side="right") if size_index is None else size_index
        return self._sums.take(index)

    def _weight_coefficients(self, h: FloatArray, sums: _BelowAboveSums) -> tuple[FloatArray, FloatArray]:
        """Return nu and t of the weights u_l = min(t, p_l + nu x_l) that are constant from h rows on.

        All weights sum to 1, which gives nu as a quotient of positive terms, so that nothing cancels: the rows that a
        cap at h would cut, over n and sum_l min(x_l, x(h)).
        """
        rho, n = self.user_share, float(self.histogram.num_rows)
        worth = h / (1.0 + (h - 1.0) * rho)
        nu = sums.excess(h) / n / (sums.worth_below + sums.users * worth)
        return np.asarray(nu), np.asarray(np.minimum(h, self.histogram.max_size) / n + nu * worth)

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of the weights min(t, p + nu x) that are constant from h rows on."""
        h = np.asarray(thresholds, dtype=np.float64)
        sums, n, rho = self._sums_at(h, size_index), float(self.histogram.num_rows), self.user_share
        nu, t = self._weight_coefficients(h, sums)
        # Sums of 1 / x, s / x and s^2 / x over the users above, with 1 / x = rho + (1 - rho) / s.
        inverse = (1.0 - rho) * sums.inverse + rho * sums.users
        rows = (1.0 - rho) * sums.users + rho * sums.rows
        squares = (1.0 - rho) * sums.rows + rho * sums.squares
        # The sum over the users above of (t - p)^2 / x, as three terms; rounding can make it negative if t is near
        # every p.
        terms_above = np.maximum(t * (t * inverse - 2.0 * rows / n) + squares / n**2, 0.0)
        sampling = self.value_variance * (nu * (nu * sums.worth_below) + terms_above)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), t)

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of a cap that keeps at most h rows of each user, drawn at random."""
        h = np.asarray(caps, dtype=np.float64)
        sums, n, rho = self._sums_at(h, size_index), float(self.histogram.num_rows), self.user_share
        cut = sums.excess(h) / n  # 1 - n_h / n
        kept_rows = sums.rows_below + h * sums.users
        weight = h / kept_rows
        terms_above = weight * (weight * sums.users - 2.0 * sums.rows / n) + sums.squares / n**2
        uneven = sums.squares_below * (cut / kept_rows) ** 2 + np.maximum(terms_above, 0.0)
        sampling = self.value_variance * (rho * uneven + (1.0 - rho) * cut / kept_rows)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), np.asarray(weight))

    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        sums, rho, n = self._sums.between_sizes, self.user_share, float(self.histogram.num_rows)
        rows_below, variance = sums.rows_below, self.value_variance
        # The formula of the module and the noise, times n_h^2, without the constant sigma^2 (rho sum p^2 - (1 - rho) /
        # n).
        pieces = Pieces(
            variance * (rho * sums.squares_below * (1.0 - 2.0 * rows_below / n) + (1.0 - rho) * rows_below),
            variance
            * (
                (1.0 - rho) * sums.users
                - 2.0 * rho * (sums.rows * rows_below + sums.squares_below * sums.users) / n
            ),
            self.unit_noise + variance * rho * sums.users * (1.0 - 2.0 * sums.rows / n),
        )
        return BoundCurve(self.histogram, lambda h, k: self.capped(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> BoundOptimum:
        """Return the best cap, from the minimum of every piece."""
        optimum = self.cap_curve().minimise(is_integer=True)
        return BoundOptimum(
            optimum.bound, optimum.certificate, trivial_stop_reason(self.histogram) or ALL_PIECES
        )

    def growth(self, threshold: float) -> Growth:
        """Return the growth of the best weights below a threshold: n u_l = s_l + n nu x_l."""
        h = np.asarray(float(threshold))
        nu, _ = self._weight_coefficients(h, self._sums_at(h))
        extra = float(nu) * self.histogram.num_rows
        return Growth(1.0, extra, self.user_share) if self.user_share and extra else Growth()

    def best_smooth(self) -> BoundOptimum:
        """Return the best of all weights, with a dual bound."""
        bound = self._solve_threshold()
        value = self._exact_error(bound)
        stop_reason = trivial_stop_reason(self.histogram) or "Exact: the root of the optimality condition."
        lower = self.unit_noise * max(self.lower_bound(h) for h in (bound, float(self.histogram.max_size)))
        return BoundOptimum(
            bound, Certificate(value, lower, "a dual bound computed from the same data"), stop_reason
        )

    def _exact_error(self, h: float) -> float:
        """Return the squared error of the weights, summed over sizes; prefix sums lose digits where u is near p."""
        nu, t = (
            float(coefficient)
            for coefficient in self._weight_coefficients(np.asarray(h), self._sums_at(np.asarray(h)))
        )
        squared_errors = 0.0
        for block in self.histogram.blocks:
            x, p = self._effective[block], self.histogram.sizes[block] / self.histogram.num_rows
            squared_errors += float((np.minimum(t - p, nu * x) ** 2 / x * self.histogram.users[block]).sum())
        return self.value_variance * squared_errors + self.unit_noise * t**2

    def _solve_threshold(self) -> float:
        """Return h at which t = A sum_l (nu - (t - p_l) / x_l)_+, the optimality condition; its sides cross once.

        The condition is checked at all sizes at once; on the piece where it changes, nu is linear in t.
        """
        sizes, a = self.histogram.sizes.astype(np.float64), self.value_variance / self.unit_noise
        is_reached = np.empty(sizes.size, dtype=bool)
        for block in self.histogram.blocks:
            sums_above = self._sums.take(slice(block.start + 1, block.stop + 1))
            nu, t = self._weight_coefficients(sizes[block], sums_above)
            is_reached[block] = t >= a * self._total_pull(sums_above, nu, t)
        # Step 1. Invariant: `is_reached` is False before size k and True from it on, so the optimum lies in (k - 1, k].
        is_reached[-1] = True  # No user lies above the largest size.
        k = int(np.argmax(is_reached))
        if k == 0:
            return float(sizes[0])
        sums, n, rho = self._sums.take(np.asarray(k)), float(self.histogram.num_rows), self.user_share
        users, rows = float(sums.users), float(sums.rows)
        inverse = (1.0 - rho) * float(sums.inverse) + rho * users
        leaning = ((1.0 - rho) * users + rho * rows) / n
        worth, share_above = float(sums.worth_below), rows / n  # 1 - sum of p below
        # Step 2. As weights sum to 1, nu = (share_above - users t) / worth; the condition is then linear in t.
        t_best = a * (users * share_above / worth + leaning) / (1.0 + a * (inverse + users**2 / worth))
        nu_best = max((share_above - users * t_best) / worth, 0.0)
        # Step 3. Solve h / n + nu h / (1 + (h - 1) rho) = t by bisection: the roots of the quadratic would cancel.
        # Invariant: the left side is below t at `low` and at least t at `high`.
        low, high = float(sizes[k - 1]), float(sizes[k])
        for _ in range(100):
            h = (low + high) / 2.0
            if h / n + nu_best * h / (1.0 + (h - 1.0) * rho) < t_best:
                low = h
            else:
                high = h
        return (low + high) / 2.0

    def _total_pull(self, sums_above: _BelowAboveSums, nu: FloatArray, t: FloatArray) -> FloatArray:
        """Return the sum over the users above of nu - (t - p) / x."""
        rho, n = self.user_share, float(self.histogram.num_rows)
        inverse = (1.0 - rho) * sums_above.inverse + rho * sums_above.users
        leaning = ((1.0 - rho) * sums_above.users + rho * sums_above.rows) / n
        return np.asarray(nu * sums_above.users - t * inverse + leaning)

    def lower_bound(self, h: float) -> float:
        """Return a lower bound on the error of all weights, in units of the noise's variance; tight at the optimum.

        Lagrangian of  t^2 + A sum_l (u_l - p_l)^2 / x_l  with t >= u_l (multipliers lambda_l >= 0) and sum u = 1:
        minimising over t and u leaves  sum lambda p - (sum lambda)^2 / 4 - sum_l (mu - lambda_l)^2 x_l / (4 A).
        Take mu = 2 A nu and lambda_l = 2 A (nu - (t - p_l) / x_l)_+, and, where every user lies above h and
        sum lambda < 2 t, raise all of them until it is 2 t.
        """
        a, n = self.value_variance / self.unit_noise, float(self.histogram.num_rows)
        nu, t = (
            float(coefficient)
            for coefficient in self._weight_coefficients(np.asarray(h), self._sums_at(np.asarray(h)))
        )
        total = leaning = cost = 0.0
        for block in self.histogram.blocks:
            x, users = self._effective[block], self.histogram.users[block].astype(np.float64)
            p = self.histogram.sizes[block] / n
            pulls = np.maximum(nu - (t - p) / x, 0.0)
            residuals = nu - pulls  # (mu - lambda) / (2 A)
            # Not a product of matrices: for so few terms its threads cost more than they save.
            total += 2.0 * a * float((users * pulls).sum())
            leaning += 2.0 * a * float((users * pulls * p).sum())
            cost += a * float((users * residuals**2 * x).sum())
        if h <= float(self.histogram.min_size):
            missing = max(2.0 * t - total, 0.0)
            total, leaning = (
                total + missing,
                leaning + missing / float(self.histogram.num_users),
            )  # sum of p is 1
        return leaning - total**2 / 4.0 - cost


@dataclass(frozen=True)
class _BelowAboveSums:
    """Sums over users below and above a bound; entry k of each array is for k sizes at or below the bound."""

    rows_below: FloatArray
    squares_below: FloatArray
    worth_below: FloatArray
    users: FloatArray
    rows: FloatArray
    squares: FloatArray
    inverse: FloatArray
    next_size: FloatArray
    excess_from: FloatArray

    @classmethod
    def from_histogram(cls, histogram: ContributionHistogram, worth: FloatArray) -> _BelowAboveSums:
        s, c = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)

        def prefix_sums(terms: FloatArray) -> FloatArray:
            return np.concatenate(([0.0], np.cumsum(terms)))

        rows, pieces = s * c, histogram.pieces_after(slice(None))  # The histogram keeps these three sums.
        squares = s * rows
        return cls(
            pieces.rows_at_or_below,
            prefix_sums(squares),
            prefix_sums(worth * c),
            pieces.users_above,
            suffix_sums(rows),
            suffix_sums(squares),
            pieces.inverse_above,
            np.append(s, 0.0),  # After the last size there are no users above, so the value has no effect.
            excess_sums(s, pieces.users_above),
        )

    def excess(self, h: FloatArray) -> FloatArray:
        """Return the rows that a cap at h cuts; all terms have one sign, as in `ContributionHistogram.excess`."""
        return np.asarray((self.next_size - h) * self.users + self.excess_from)

    def take(self, k: SizeIndex) -> _BelowAboveSums:
        """Return the sums for the given numbers of sizes at or below."""
        return _BelowAboveSums(*(sums[k] for sums in vars(self).values()))

    @property
    def between_sizes(self) -> _BelowAboveSums:
        """Return the sums for every piece between two neighbouring sizes."""
        return self.take(slice(1, -1))


@dataclass(frozen=True)
class Population:
    """The model of correlated rows for the mean of a population; see `dpcore.mean.models.Model`.

    Attributes:
        histogram: Rows per user.
        unit_noise: Variance of the noise if one user holds all the weight, (unit)^2.
        value_variance: sigma^2, (unit)^2.
        user_share: rho in [0, 1].
    """

    histogram: ContributionHistogram
    unit_noise: float
    value_variance: float
    user_share: float

    @cached_property
    def _effective(self) -> weights.EffectiveSizes:
        return weights.EffectiveSizes(self.histogram, self.user_share)

    @cached_property
    def _squares_before(self) -> FloatArray:
        sizes = self.histogram.sizes.astype(np.float64)
        return np.concatenate(([0.0], np.cumsum(sizes**2 * self.histogram.users)))

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses if a user with s rows weighs as much as one with min(h, s)."""
        losses = weights.smooth_losses(self._effective, self._effective.convert(thresholds))
        sampling = self.value_variance * losses.squared_weights
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), losses.largest_weight)

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of caps: sigma^2 (rho sum_l k_l^2 + (1 - rho) n_h) / n_h^2, with rows kept at random."""
        h = np.asarray(caps, dtype=np.float64)
        k = self.histogram.count_sizes_up_to(h) if size_index is None else size_index
        rows_below, users_above, _ = self.histogram.pieces_after(k)
        kept_rows = rows_below + h * users_above
        correlated = self._squares_before[k] / kept_rows + h * (h / kept_rows) * users_above
        rho = self.user_share
        sampling = self.value_variance * ((rho * correlated + (1.0 - rho)) / kept_rows)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), np.asarray(h / kept_rows))

    def best_smooth(self) -> BoundOptimum:
        """Return the best of all weights, with the dual bound of `dpcore.common.weights`."""
        best = weights.best_smooth(self._effective, self.value_variance / self.unit_noise)
        bound = self._convert_to_rows(best.bound)
        value = float(self.smooth(np.asarray(bound)).error(self.unit_noise))
        lower = self.unit_noise * best.certificate.lower_bound
        stop_reason = trivial_stop_reason(self.histogram) or best.stop_reason
        return BoundOptimum(bound, Certificate(value, lower, best.certificate.argument), stop_reason)

    def _convert_to_rows(self, effective: float) -> float:
        """Return the number of rows with the given effective size, clipped to the two sizes around it."""
        sizes, rho = self.histogram.sizes, self.user_share
        effective_sizes = self._effective.convert(sizes)
        k = min(int(np.searchsorted(effective_sizes, effective)), sizes.size - 1)
        low, high = float(sizes[max(k - 1, 0)]), float(sizes[k])
        # x = s / (1 + (s - 1) rho), solved for s; at rho = 1 every user has the effective size 1, whatever s.
        remainder = 1.0 - rho * effective
        rows = effective * (1.0 - rho) / remainder if remainder > 0.0 else high
        return min(max(rows, low), high)

    def growth(self, threshold: float) -> Growth:
        """Return the growth of the best weights: a user weighs their effective size."""
        return Growth(0.0, 1.0, self.user_share) if self.user_share else Growth()

    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        sums, rho = self.histogram.pieces_at_sizes(), self.user_share
        rows_below, users_above = sums.rows_at_or_below[:-1], sums.users_above[:-1]
        pieces = Pieces(
            self.value_variance * (rho * self._squares_before[1:-1] + (1.0 - rho) * rows_below),
            self.value_variance * (1.0 - rho) * users_above,
            self.unit_noise + self.value_variance * rho * users_above,
        )
        return BoundCurve(self.histogram, lambda h, k: self.capped(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> BoundOptimum:
        """Return the best cap, from the minimum of every piece (though the curve has only one local minimum)."""
        minimum = self.cap_curve().minimise(is_integer=True)
        return BoundOptimum(
            minimum.bound, minimum.certificate, trivial_stop_reason(self.histogram) or ALL_PIECES
        )


class Target(Option):
    """The mean that the release estimates."""

    TABLE = "table", "This table"
    """The mean of the rows in this table."""
    POPULATION = "population", "People like these"
    """The mean of the distribution that users and their rows come from."""


class Model(Protocol):
    """A model of users, which gives the error of every bound."""

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of caps that keep at most h rows of each user, drawn at random.

        ``size_index`` is `ContributionHistogram.count_sizes_up_to`, if known.
        """

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses if a user with s rows weighs as much as one with min(h, s)."""

    def best_cap(self) -> BoundOptimum:
        """Return the best integer cap from the smallest to the largest size."""

    def best_smooth(self) -> BoundOptimum:
        """Return the best weights; the bound is the number of rows from which on a user's weight is constant."""

    def growth(self, threshold: float) -> Growth:
        """Describe the growth of a user's weight with their rows below that threshold."""

    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
