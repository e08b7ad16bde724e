"""The dual of the problem, which no feasible matrix can go below, and Newton's method on it.

The dual is a lower bound for every feasible C, and its multipliers are found exactly. Divided by `unit_noise` the
problem is, with W = C^T and a = sigma^2 / unit_noise (`trade_off`),

    minimise  a sum w_ij^2 + t^2   over  A^T W = E,  sum_{i in S_l, j} |w_ij| <= t for every user l.

With a d x d matrix M of multipliers for the constraint and lambda_l >= 0 for the users, minimising the
Lagrangian over W and t leaves, with G = A M (n x d) the price of each entry,

    D(M, lambda) = <M, E> - (sum_l lambda_l)^2 / 4 - sum_ij max(|G_ij| - lambda_l(i), 0)^2 / (4 a)
                 = <M, E> - Q(M, lambda).

Given M, the best lambda gives every user the same excess theta = a sum_l lambda_l, or less at lambda_l = 0:

    sum_{i in S_l, j} max(|G_ij| - lambda_l, 0) = theta,

so each lambda_l(theta) is read off that user's sorted prices, and theta is where a convex, decreasing,
piecewise linear function meets a line: Newton's method from the left is exact after finitely many steps.
Since Q is homogeneous of degree 2, the best multiple of M gives the bound <M, E>^2 / (4 Q).
The entries with |G_ij| > lambda_l are those that the best W for this M uses. For a = 0 they are the ties at
lambda_l = max |G_ij|, and the last term of Q is gone.

Source: the problem is Epasto et al. 2020, theorem 6; the dual and the rule above are ours.

Newton's method on the dual is exact within a few steps where sampling noise counts, and a warm start elsewhere.
The dual is a concave, once differentiable, piecewise quadratic function of the
d x d matrix M, with gradient E - A^T W(M). One step costs one pass over the data whatever the number of
non-zero entries, so it is the method of choice where C is dense. Where privacy noise rules (a m small), it is
nearly piecewise linear and Newton stalls; then the problem is smoothed by a larger a, whose solution says
which entries matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.regression.problem import Whitened


@dataclass(frozen=True, eq=False)
class PricedEntries:
    """The prices that M puts on all entries, and the best multipliers of the users.

    Attributes:
        prices: G = A M, shape (n, d).
        user_multipliers: lambda, shape (m,).
        used_positions: Flat positions i d + j of the entries with |G_ij| > lambda_l, grouped by user, shape (k,).
        price_excesses: |G_ij| - lambda_l there, positive, shape (k,).
        reward: <M, E>.
        penalty: Q(M, lambda).
    """

    prices: FloatArray
    user_multipliers: FloatArray
    used_positions: IntArray
    price_excesses: FloatArray
    reward: float
    penalty: float

    @property
    def lower_bound(self) -> float:
        """Return the highest D(s M) over s >= 0, a lower bound on every feasible objective.

        Objectives are divided by the problem's unit noise. The result is 0 if no s gives a bound above 0.
        """
        # s <M, E> - s^2 Q is highest at s = <M, E> / (2 Q).
        return self.reward**2 / (4.0 * self.penalty) if self.reward > 0.0 and self.penalty > 0.0 else 0.0

    def build_weights(self, trade_off: float) -> FloatArray:
        """Return the W that minimises the Lagrangian: sign(G) max(|G| - lambda, 0) / (2 a), shape (n, d).

        a, ``trade_off``, must be above 0. W need not be feasible.
        """
        w = np.zeros(self.prices.shape)
        w.ravel()[self.used_positions] = self._compute_entry_weights(trade_off)
        return w

    def sum_weighted_rows(self, whitened: Whitened, trade_off: float) -> FloatArray:
        """Return a^T W for the W of `build_weights`, shape (d, d), from its non-zero entries alone."""
        d = self.prices.shape[1]
        row_positions, column_indices = self.used_positions // d, self.used_positions % d
        entry_weights = self._compute_entry_weights(trade_off)
        weighted_sums = np.empty((d, d))
        for j in range(d):
            in_column_mask = column_indices == j
            weighted_sums[:, j] = (
                whitened.row_matrix[row_positions[in_column_mask]].T @ entry_weights[in_column_mask]
            )
        return weighted_sums

    def _compute_entry_weights(self, trade_off: float) -> FloatArray:
        """Return the entries of the W of `build_weights` at the used positions, shape (k,)."""
        price_signs = np.sign(self.prices.ravel()[self.used_positions])
        return np.asarray(price_signs * self.price_excesses / (2.0 * trade_off))


@dataclass(frozen=True, eq=False)
class _SortedPrices:
    """Prices that may exceed their user's multiplier, descending within each user.

    Attributes:
        positions: Flat positions i d + j of the entries, shape (k,).
        absolute_prices: |G| there, shape (k,).
        starts: Where each user's entries begin, shape (m,): every user has at least one.
        price_sums: Sums of the absolute prices from the user's start, shape (k,).
        theta_breaks: theta at which the next smaller entry of the user comes in: sum - rank * value, shape (k,).
    """

    positions: IntArray
    absolute_prices: FloatArray
    starts: IntArray
    price_sums: FloatArray
    theta_breaks: FloatArray

    @property
    def entries_per_user(self) -> IntArray:
        """Return the number of entries of each user, shape (m,)."""
        return np.diff(self.starts, append=self.absolute_prices.size)


def _sort_candidates(whitened: Whitened, absolute_prices: FloatArray, trade_off: float) -> _SortedPrices:
    """Sort within each user the absolute prices that may exceed the user's multiplier, and leave out the others.

    An upper bound on theta follows from lambda_l <= max |G| of the user, and lambda_l is at most theta below that
    maximum. So what is further below never counts. Sorting all would cost most of the time.
    """
    d = absolute_prices.shape[1]
    largest_prices = np.maximum.reduceat(absolute_prices.ravel(), whitened.starts * d)
    largest_theta = trade_off * float(largest_prices.sum())
    # A little lower, so that rounding leaves out no entry that ties with the bound.
    smallest_needed_prices = np.maximum(largest_prices - largest_theta, 0.0) * (1.0 - 1e-12)
    candidate_positions = np.flatnonzero(
        (absolute_prices >= smallest_needed_prices[whitened.row_users, None]).ravel()
    )
    users_of_entries = whitened.row_users[candidate_positions // d]
    descending_prices = absolute_prices.ravel()[candidate_positions]
    order_by_user_and_price = np.lexsort((-descending_prices, users_of_entries))
    candidate_positions = candidate_positions[order_by_user_and_price]
    descending_prices = descending_prices[order_by_user_and_price]
    user_starts = np.flatnonzero(np.diff(users_of_entries, prepend=-1))
    entries_per_user = np.diff(user_starts, append=users_of_entries.size)
    price_sums = np.cumsum(descending_prices)
    price_sums -= np.repeat(price_sums[user_starts] - descending_prices[user_starts], entries_per_user)
    ranks_in_user = np.arange(1, users_of_entries.size + 1) - np.repeat(user_starts, entries_per_user)
    theta_breaks = price_sums - ranks_in_user * descending_prices
    theta_breaks[user_starts] = -1.0  # The largest entry is always in.
    return _SortedPrices(candidate_positions, descending_prices, user_starts, price_sums, theta_breaks)


def _compute_multipliers(sorted_prices: _SortedPrices, theta: float) -> tuple[FloatArray, FloatArray]:
    """Return (lambda(theta) of each user, its derivative from the right), each of shape (m,)."""
    # Values descend within a user, so that breaks ascend, by r (v_r - v_(r+1)): the entries that count are the first
    # ones.
    used_flags = (sorted_prices.theta_breaks <= theta).astype(np.int64)
    used_counts = np.add.reduceat(used_flags, sorted_prices.starts)
    multipliers = (sorted_prices.price_sums[sorted_prices.starts + used_counts - 1] - theta) / used_counts
    return np.maximum(multipliers, 0.0), np.where(multipliers > 0.0, -1.0 / used_counts, 0.0)


def find_root_from_left(
    evaluate_with_slope: Callable[[float], tuple[float, float]], trade_off: float
) -> float:
    """Find the theta >= 0 with theta = a f(theta), for a convex, decreasing, piecewise linear f.

    Args:
        evaluate_with_slope: f and its derivative from the right.
        trade_off: a >= 0.
    """
    theta = 0.0
    for _ in range(500):  # Finite by convexity; 5 to 15 in practice.
        value_of_f, right_derivative = evaluate_with_slope(theta)
        # A convex function lies above its tangents, so a step from the left never passes the root.
        next_theta = (
            trade_off * (value_of_f - right_derivative * theta) / (1.0 - trade_off * right_derivative)
        )
        if not next_theta > theta * (1.0 + 1e-15):
            break
        theta = next_theta
    return theta


def price_entries(whitened: Whitened, trade_off: float, m: FloatArray) -> PricedEntries:
    """Price all entries for this M and find the users' multipliers with which its lower bound is highest.

    Args:
        whitened: The data.
        trade_off: a = sigma^2 / unit_noise, at least 0.
        m: M, multipliers of A^T W = E, shape (d, d), any finite matrix.
    """
    prices = whitened.row_matrix @ m
    sorted_prices = _sort_candidates(whitened, np.abs(prices), trade_off)

    def sum_multipliers(theta: float) -> tuple[float, float]:
        """Return (sum_l lambda_l(theta), its derivative from the right)."""
        user_multipliers, right_derivatives = _compute_multipliers(sorted_prices, theta)
        return float(user_multipliers.sum()), float(right_derivatives.sum())

    theta = find_root_from_left(sum_multipliers, trade_off)
    user_multipliers, _ = _compute_multipliers(sorted_prices, theta)
    price_excesses = sorted_prices.absolute_prices - np.repeat(
        user_multipliers, sorted_prices.entries_per_user
    )
    used_mask = price_excesses > 0.0 if trade_off > 0.0 else price_excesses >= 0.0
    used_positions, used_excesses = sorted_prices.positions[used_mask], price_excesses[used_mask]
    # Weak duality holds for any lambda of at least 0: what theta is off by makes the bound looser, never wrong.
    multiplier_penalty = float(user_multipliers.sum()) ** 2 / 4.0
    if trade_off > 0.0:
        multiplier_penalty += float(used_excesses @ used_excesses) / (4.0 * trade_off)
    multiplier_reward = float(np.vdot(m, whitened.constraint_target))
    return PricedEntries(
        prices, user_multipliers, used_positions, used_excesses, multiplier_reward, multiplier_penalty
    )


MAX_CHUNK_NUMBERS = 2_000_000
"""Numbers held at a time for the Hessian: 16 MB."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A multiplier M that the dual ascent reached, with its prices and gradient.

    Attributes:
        m: M, scaled by its best factor.
        priced_entries: Prices and multipliers there.
        gradient: E - A^T W(M), shape (d, d).
        relative_gradient_size: The gradient's largest entry relative to the largest of E: 0 at the optimum.
    """

    m: FloatArray
    priced_entries: PricedEntries
    gradient: FloatArray
    relative_gradient_size: float


def _sum_user_products(
    matrix: FloatArray, row_users: IntArray, price_signs: FloatArray, user_weights: FloatArray
) -> FloatArray:
    """Return sum_l weight_l u_l u_l^T, shape (d^2, d^2).

    u_l has d^2 entries: for each column, the signed sum of the user's rows.

    Args:
        matrix: Rows that any entry uses, shape (k, d), grouped by owner.
        row_users: Owner of each, ascending, shape (k,).
        price_signs: -1, 0 or 1 per entry, shape (k, d).
        user_weights: Per user, shape (m,); users with weight 0 are passed over.
    """
    d = matrix.shape[1]
    product_sum = np.zeros((d * d, d * d))
    weighted_rows = np.flatnonzero(user_weights[row_users] > 0.0)
    first_row_of_users = weighted_rows[np.flatnonzero(np.diff(row_users[weighted_rows], prepend=-1))]
    num_users_per_chunk = max(MAX_CHUNK_NUMBERS // (d * d), 1)
    for first_index in range(0, first_row_of_users.size, num_users_per_chunk):
        chunk_first_rows = first_row_of_users[first_index : first_index + num_users_per_chunk]
        stop_row = [*first_row_of_users[first_index + num_users_per_chunk :][:1], row_users.size][0]
        chunk_rows = np.arange(chunk_first_rows[0], stop_row)
        chunk_rows = chunk_rows[user_weights[row_users[chunk_rows]] > 0.0]
        chunk_starts = np.flatnonzero(np.diff(row_users[chunk_rows], prepend=-1))
        u = np.empty((chunk_starts.size, d, d))
        for j in range(d):
            u[:, j] = np.add.reduceat(
                matrix[chunk_rows] * price_signs[chunk_rows, j, None], chunk_starts, axis=0
            )
        flat_user_sums = u.reshape(chunk_starts.size, d * d)
        product_sum += flat_user_sums.T @ (flat_user_sums * user_weights[row_users[chunk_first_rows], None])
    return product_sum


def compute_hessian(whitened: Whitened, trade_off: float, priced_entries: PricedEntries) -> FloatArray:
    """Compute the generalised Hessian of Q at M, times 2 a, shape (d^2, d^2); M is read column after column.

    W(M) depends on M directly, through the multipliers (a change in the sum of a user's p_l entries changes lambda_l
    by 1/p_l of it) and through theta, which all binding users share. A binding user with one entry cancels out.
    """
    d = priced_entries.prices.shape[1]
    used_row_positions, entry_rows = np.unique(priced_entries.used_positions // d, return_inverse=True)
    used_matrix, row_users = whitened.row_matrix[used_row_positions], whitened.row_users[used_row_positions]
    used_counts = np.bincount(row_users[entry_rows], minlength=whitened.starts.size)
    binding_mask = (priced_entries.user_multipliers > 0.0) & (used_counts > 0)
    inverse_used_counts = np.where(binding_mask, 1.0 / np.maximum(used_counts, 1), 0.0)
    price_signs = np.zeros((used_row_positions.size, d))
    used_prices = priced_entries.prices.ravel()[priced_entries.used_positions]
    price_signs[entry_rows, priced_entries.used_positions % d] = np.sign(used_prices)
    shared_direction = (used_matrix.T @ (price_signs * inverse_used_counts[row_users, None])).T.ravel()
    # A binding user with one entry: u u^T is taken off what A^T A has of it, whole. Only now, as through theta it
    # counts in `shared_direction` still.
    one_entry_mask = binding_mask & (used_counts == 1)
    price_signs[one_entry_mask[row_users]] = 0.0
    hessian = np.zeros((d * d, d * d))
    for j in range(d):
        a = used_matrix[np.flatnonzero(price_signs[:, j])]
        hessian[j * d : (j + 1) * d, j * d : (j + 1) * d] = a.T @ a
    hessian -= _sum_user_products(
        used_matrix, row_users, price_signs, np.where(one_entry_mask, 0.0, inverse_used_counts)
    )
    # theta = a sum of lambda_l, and lambda_l falls by 1/p_l of a rise in theta, so that d theta = a <shared_direction,
    # dM> / (1 + a sum of 1/p_l); what lambda_l falls by goes to the user's entries.
    theta_factor = trade_off / (1.0 + trade_off * float(inverse_used_counts.sum()))
    return np.asarray(hessian + theta_factor * np.outer(shared_direction, shared_direction))


def _evaluate_dual(whitened: Whitened, trade_off: float, m: FloatArray) -> DualPoint:
    """Evaluate the dual at the multiple of M with the highest lower bound: prices, multipliers and gradient.

    If no multiple has a lower bound above 0, it is evaluated at M itself.
    """
    priced_entries, best_multiple = price_entries(whitened, trade_off, m), 0.0
    if priced_entries.lower_bound > 0.0:
        best_multiple = priced_entries.reward / (2.0 * priced_entries.penalty)
    if best_multiple > 0.0 and abs(best_multiple - 1.0) > 1e-15:
        # Everything is homogeneous in M: no second pass over the data.
        m = m * best_multiple
        priced_entries = replace(
            priced_entries,
            prices=priced_entries.prices * best_multiple,
            user_multipliers=priced_entries.user_multipliers * best_multiple,
            price_excesses=priced_entries.price_excesses * best_multiple,
            reward=priced_entries.reward * best_multiple,
            penalty=priced_entries.penalty * best_multiple**2,
        )
    gradient = whitened.constraint_target - priced_entries.sum_weighted_rows(whitened, trade_off)
    relative_gradient_size = float(np.abs(gradient).max() / np.abs(whitened.constraint_target).max())
    return DualPoint(m, priced_entries, gradient, relative_gradient_size)


def ascend_dual(
    whitened: Whitened, trade_off: float, m: FloatArray, num_steps: int, may_end: Callable[[DualPoint], bool]
) -> DualPoint:
    """Take damped Newton steps from M on, each of which raises the dual; return the last point.

    Args:
        whitened: The data.
        trade_off: a > 0.
        m: Where to start, shape (d, d); its scale does not matter.
        num_steps: At most so many steps.
        may_end: Called at every point; ends the ascent by returning True.

    Returns:
        The last, hence highest, point.
    """
    d = whitened.row_matrix.shape[1]
    dual_point = _evaluate_dual(whitened, trade_off, m)
    damping = 1e-8
    for _ in range(num_steps):
        if may_end(dual_point):
            break
        hessian = compute_hessian(whitened, trade_off, dual_point.priced_entries) / (2.0 * trade_off)
        largest_curvature = float(np.diag(hessian).max())
        # One entry per user, all of them binding: nothing to learn from here.
        if not largest_curvature > 0.0:
            break
        # Each try costs a pass over the data; twelve span as many orders of magnitude of damping.
        for _ in range(12):
            damped_hessian = hessian + damping * largest_curvature * np.eye(d * d)
            # Columns of M one after the other, as the Hessian has them.
            multiplier_step = np.linalg.solve(damped_hessian, dual_point.gradient.T.ravel()).reshape(d, d).T
            # The quadratic model gains half of gradient times step, and more where it is damped.
            predicted_gain = float(np.vdot(dual_point.gradient, multiplier_step)) / 2.0
            next_point = _evaluate_dual(whitened, trade_off, dual_point.m + multiplier_step)
            dual_gain = next_point.priced_entries.lower_bound - dual_point.priced_entries.lower_bound
            # Where the dual no longer tells two points apart, its gradient still does.
            is_within_rounding = (
                abs(dual_gain) <= 1e-12 * dual_point.priced_entries.lower_bound
                and next_point.relative_gradient_size < dual_point.relative_gradient_size
            )
            if dual_gain > 1e-4 * predicted_gain > 0.0 or is_within_rounding:
                break
            damping *= 10.0
        else:  # No try rose.
            break
        # As Levenberg and Marquardt: trust the quadratic model more where it kept its promise, less where not.
        damping = max(damping / 10.0, 1e-14) if dual_gain > 0.5 * predicted_gain else damping * 2.0
        dual_point = next_point
    return dual_point
