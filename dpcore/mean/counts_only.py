"""The mean of the rows in this very table, of which only counts, sigma^2 and rho are known.

Who has many rows says nothing about the values: users are exchangeable. The variance of what weights u miss the mean
of the rows at hand by is then sigma^2 sum_l (u_l - p_l)^2 / x_l, with p_l = s_l / n and the effective sizes
x_l = s_l / (1 + (s_l - 1) rho). A cap draws rows, too:

    sigma^2 [rho sum_l (k_l / n_h - p_l)^2 + (1 - rho) (1 / n_h - 1 / n)],      k_l = min(h, s_l).

sigma^2 is the variance of the rows at hand with n - 1 below, so that at rho = 0 a cap is a sample of n_h out of n rows
without replacement. What is best among all weights is u_l = min(t, p_l + nu x_l), by the conditions of Karush, Kuhn and
Tucker; ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, Reached, excess_sums, suffix_sums
from dpcore.mean.curves import ALL_PIECES, Best, BoundCurve, Losses, Pieces, rows_only


@dataclass(frozen=True)
class Growth:
    """How much users weigh up to a bound: w(s) = s (extra_rows + extra_users / (1 + (s - 1) rho)).

    A user with s rows weighs w(min(s, h)), spread evenly over the rows. At rho = 0, or without ``extra_users``, that is
    min(s, h) up to a factor, the smooth weights of Epasto et al. 2020.

    Attributes:
        extra_rows: 1 where every row counts for itself, 0 where only users do.
        extra_users: Weight of what a user's rows are worth together.
        user_share: rho in [0, 1].
    """

    extra_rows: float = 1.0
    extra_users: float = 0.0
    user_share: float = 0.0

    def of(self, rows: npt.ArrayLike) -> FloatArray:
        """Return w(s) at numbers of rows above 0, of their shape; it rises with them."""
        s = np.asarray(rows, dtype=np.float64)
        return np.asarray(s * (self.extra_rows + self.extra_users / (1.0 + (s - 1.0) * self.user_share)))

    def in_rows(self, threshold: float, rows: npt.ArrayLike) -> FloatArray:
        """Return the weights of users scaled so that at the threshold they are the threshold, which none exceeds."""
        if self.plain:
            return np.asarray(np.minimum(threshold, rows))
        return np.asarray(np.minimum(threshold, self.of(rows) * self._scale(threshold)))

    def coefficients(self, threshold: float) -> tuple[float, float]:
        """Return ``extra_rows`` and ``extra_users`` of weights that are scaled so."""
        scale = 1.0 if self.plain else self._scale(threshold)
        return self.extra_rows * scale, self.extra_users * scale

    def _scale(self, threshold: float) -> float:
        return threshold / float(self.of(threshold))

    @property
    def plain(self) -> bool:
        """Return True if w(s) is s."""
        return self.extra_users == 0.0


@dataclass(frozen=True)
class CountsOnly:
    """The model; see `dpcore.mean.models.Model` for what it says.

    Attributes:
        histogram: Rows per user.
        unit_noise: Variance of the noise for a user who holds all the weight, (unit)^2.
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
    def _sums(self) -> _Around:
        return _Around.of(self.histogram, self._effective)

    def _at(self, h: FloatArray, reached: Reached | None = None) -> _Around:
        """The sums on either side of bounds; ``reached`` says how many sizes lie at or below, where that is known."""
        known = np.searchsorted(self.histogram.sizes, h, side="right") if reached is None else reached
        return self._sums.taken(known)

    def _line(self, h: FloatArray, around: _Around) -> tuple[FloatArray, FloatArray]:
        """nu and t of the weights u_l = min(t, p_l + nu x_l) that grow no more from h rows on.

        All weights sum to 1, which gives nu in terms of one sign: the rows that a cap at h would cut, over n and
        sum_l min(x_l, x(h)).
        """
        rho, n = self.user_share, float(self.histogram.num_rows)
        worth = h / (1.0 + (h - 1.0) * rho)
        nu = around.excess(h) / n / (around.worth_below + around.users * worth)
        return np.asarray(nu), np.asarray(np.minimum(h, self.histogram.max_size) / n + nu * worth)

    def smooth(self, thresholds: FloatArray, reached: Reached | None = None) -> Losses:
        """When users weigh min(t, p + nu x), which grows no more from h rows on."""
        h = np.asarray(thresholds, dtype=np.float64)
        around, n, rho = self._at(h, reached), float(self.histogram.num_rows), self.user_share
        nu, t = self._line(h, around)
        # Sums of 1 / x, s / x and s^2 / x over the users above, with 1 / x = rho + (1 - rho) / s.
        inverse = (1.0 - rho) * around.inverse + rho * around.users
        rows = (1.0 - rho) * around.users + rho * around.rows
        squares = (1.0 - rho) * around.rows + rho * around.squares
        # sum over the users above of (t - p)^2 / x: three terms that cancel, down to below 0, where t is near every
        # p.
        above = np.maximum(t * (t * inverse - 2.0 * rows / n) + squares / n**2, 0.0)
        sampling = self.value_variance * (nu * (nu * around.worth_below) + above)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), t)

    def capped(self, caps: FloatArray, reached: Reached | None = None) -> Losses:
        """When at most h rows of each user are kept, drawn at random."""
        h = np.asarray(caps, dtype=np.float64)
        around, n, rho = self._at(h, reached), float(self.histogram.num_rows), self.user_share
        cut = around.excess(h) / n  # 1 - n_h / n
        kept = around.rows_below + h * around.users
        weight = h / kept
        above = weight * (weight * around.users - 2.0 * around.rows / n) + around.squares / n**2
        uneven = around.squares_below * (cut / kept) ** 2 + np.maximum(above, 0.0)
        sampling = self.value_variance * (rho * uneven + (1.0 - rho) * cut / kept)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), np.asarray(weight))

    def cap_curve(self) -> BoundCurve:
        """Return the error of caps over the bound."""
        at, rho, n = self._sums.between, self.user_share, float(self.histogram.num_rows)
        below, both = at.rows_below, self.value_variance
        # The formula of the module and the noise, times n_h^2. What no cap changes is left out:
        # sigma^2 (rho sum p^2 - (1 - rho) / n).
        pieces = Pieces(
            both * (rho * at.squares_below * (1.0 - 2.0 * below / n) + (1.0 - rho) * below),
            both * ((1.0 - rho) * at.users - 2.0 * rho * (at.rows * below + at.squares_below * at.users) / n),
            self.unit_noise + both * rho * at.users * (1.0 - 2.0 * at.rows / n),
        )
        return BoundCurve(self.histogram, lambda h, k: self.capped(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> Best:
        """Return the best cap over every piece."""
        found = self.cap_curve().best(whole=True)
        return Best(found.bound, found.certificate, rows_only(self.histogram) or ALL_PIECES)

    def growth(self, threshold: float) -> Growth:
        """n u_l = s_l + n nu x_l below the threshold, n nu a constant that depends on it."""
        h = np.asarray(float(threshold))
        nu, _ = self._line(h, self._at(h))
        extra = float(nu) * self.histogram.num_rows
        return Growth(1.0, extra, self.user_share) if self.user_share and extra else Growth()

    def best_smooth(self) -> Best:
        """Return the best weights of all, with a dual bound."""
        bound = self._threshold()
        value = self._direct(bound)
        ended = rows_only(self.histogram) or "Exact: the root of the optimality condition."
        lower = self.unit_noise * max(self.lower_bound(h) for h in (bound, float(self.histogram.max_size)))
        return Best(bound, Certificate(value, lower, "a dual bound computed from the same data"), ended)

    def _direct(self, h: float) -> float:
        """The error of the weights, user by user: the sums on either side lose digits where most weights are p."""
        nu, t = (float(part) for part in self._line(np.asarray(h), self._at(np.asarray(h))))
        missed = 0.0
        for block in self.histogram.blocks:
            x, p = self._effective[block], self.histogram.sizes[block] / self.histogram.num_rows
            missed += float((np.minimum(t - p, nu * x) ** 2 / x * self.histogram.users[block]).sum())
        return self.value_variance * missed + self.unit_noise * t**2

    def _threshold(self) -> float:
        """Where t = A sum_l (nu - (t - p_l) / x_l)_+, whose two sides cross once as t falls with h.

        The condition is checked at every size at once; on the piece where it turns, nu and t lie on a line.
        """
        sizes, a = self.histogram.sizes.astype(np.float64), self.value_variance / self.unit_noise
        reached = np.empty(sizes.size, dtype=bool)
        for block in self.histogram.blocks:
            above = self._sums.taken(slice(block.start + 1, block.stop + 1))
            nu, t = self._line(sizes[block], above)
            reached[block] = t >= a * self._pull(above, nu, t)
        reached[-1] = True  # At the largest size nobody lies above.
        k = int(np.argmax(reached))
        if k == 0:
            return float(sizes[0])
        at, n, rho = self._sums.taken(np.asarray(k)), float(self.histogram.num_rows), self.user_share
        users, rows = float(at.users), float(at.rows)
        inverse = (1.0 - rho) * float(at.inverse) + rho * users
        leaning = ((1.0 - rho) * users + rho * rows) / n
        worth, left = float(at.worth_below), rows / n  # 1 - sum of p below
        # As weights sum to 1, nu = (left - users t) / worth; that leaves a condition linear in t.
        t_best = a * (users * left / worth + leaning) / (1.0 + a * (inverse + users**2 / worth))
        nu_best = max((left - users * t_best) / worth, 0.0)
        # h / n + nu h / (1 + (h - 1) rho) = t, increasing in h: bisection, as roots of the quadratic cancel.
        low, high = float(sizes[k - 1]), float(sizes[k])
        for _ in range(100):
            h = (low + high) / 2.0
            if h / n + nu_best * h / (1.0 + (h - 1.0) * rho) < t_best:
                low = h
            else:
                high = h
        return (low + high) / 2.0

    def _pull(self, above: _Around, nu: FloatArray, t: FloatArray) -> FloatArray:
        """sum over the users above of nu - (t - p) / x."""
        rho, n = self.user_share, float(self.histogram.num_rows)
        inverse = (1.0 - rho) * above.inverse + rho * above.users
        leaning = ((1.0 - rho) * above.users + rho * above.rows) / n
        return np.asarray(nu * above.users - t * inverse + leaning)

    def lower_bound(self, h: float) -> float:
        """Return what no weights go below, in units of the noise's variance; tight at the best threshold.

        Lagrangian of  t^2 + A sum_l (u_l - p_l)^2 / x_l  with t >= u_l (multipliers lambda_l >= 0) and sum u = 1:
        minimising over t and u leaves  sum lambda p - (sum lambda)^2 / 4 - sum_l (mu - lambda_l)^2 x_l / (4 A).
        Take mu = 2 A nu and lambda_l = 2 A (nu - (t - p_l) / x_l)_+, and, where every user lies above h and
        sum lambda < 2 t, raise all of them until it is 2 t.
        """
        a, n = self.value_variance / self.unit_noise, float(self.histogram.num_rows)
        nu, t = (float(part) for part in self._line(np.asarray(h), self._at(np.asarray(h))))
        total = leaning = cost = 0.0
        for block in self.histogram.blocks:
            x, users = self._effective[block], self.histogram.users[block].astype(np.float64)
            p = self.histogram.sizes[block] / n
            pulls = np.maximum(nu - (t - p) / x, 0.0)
            misses = nu - pulls  # (mu - lambda) / (2 A)
            # Not a product of matrices: for so few terms its threads cost more than they save.
            total += 2.0 * a * float((users * pulls).sum())
            leaning += 2.0 * a * float((users * pulls * p).sum())
            cost += a * float((users * misses**2 * x).sum())
        if h <= float(self.histogram.min_size):
            more = max(2.0 * t - total, 0.0)
            total, leaning = total + more, leaning + more / float(self.histogram.num_users)  # sum of p is 1
        return leaning - total**2 / 4.0 - cost


@dataclass(frozen=True)
class _Around:
    """Sums over users on either side of a bound; entry k has k sizes at or below it."""

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
    def of(cls, histogram: ContributionHistogram, worth: FloatArray) -> _Around:
        s, c = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)

        def below(terms: FloatArray) -> FloatArray:
            return np.concatenate(([0.0], np.cumsum(terms)))

        rows, known = s * c, histogram.pieces_after(slice(None))  # The histogram keeps these three sums.
        squares = s * rows
        return cls(
            known.rows_at_or_below,
            below(squares),
            below(worth * c),
            known.users_above,
            suffix_sums(rows),
            suffix_sums(squares),
            known.inverse_above,
            np.append(s, 0.0),  # Behind the last size nobody is left to count it.
            excess_sums(s, known.users_above),
        )

    def excess(self, h: FloatArray) -> FloatArray:
        """Return the rows that a cap at h cuts: terms of one sign, as in `ContributionHistogram.excess`."""
        return np.asarray((self.next_size - h) * self.users + self.excess_from)

    def taken(self, k: Reached) -> _Around:
        """Return the sums at given numbers of sizes below."""
        return _Around(*(part[k] for part in vars(self).values()))

    @property
    def between(self) -> _Around:
        """Return the sums on every piece between two sizes."""
        return self.taken(slice(1, -1))
