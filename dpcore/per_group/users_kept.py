"""How many users of each group are kept by L0, and what they add, jointly and exactly: what a selection depends on.

User u keeps group g with probability p = min(1, L0 / k_u) and then adds m_ug; users are independent. With N the users
kept and S what they add, P(n) = P(N = n), A(n) = E[S; N = n] and Q(n) = E[S^2; N = n] are coefficients of
E[z^N e^(sS)] up to s^2, a product over users of 1 - p + p z e^(s m). The product is taken as a binary tree over each
group's users, for many groups at once: polynomials in z multiply by plain convolution while they are short and by the
fast Fourier transform after that, so that a group of n users costs about n log(n)^2, and nothing is approximated. Users
with p = 1 shift N and S, and stay out of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupProblem

BLOCK = 1 << 16
"""Users whose polynomials are multiplied at once: 3 arrays of about twice as many numbers each."""
SHORT = 4
"""Levels of the tree, up to degree 2^SHORT, that are multiplied by plain convolution."""


@dataclass(frozen=True, eq=False)
class PairsByGroup:
    """The pairs of a problem sorted by group.

    Attributes:
        groups: Group codes, ascending, shape (num_pairs,).
        sizes: Number of groups of each pair's user, likewise.
        amounts: What each pair adds, likewise.
        num_groups: Entries of arrays by group, as the pairs have them.
    """

    groups: IntArray
    sizes: IntArray
    amounts: FloatArray
    num_groups: int

    @classmethod
    def of(cls, problem: PerGroupProblem) -> PairsByGroup:
        """Sort the pairs of a problem."""
        order = np.argsort(problem.pairs.group_codes, kind="stable")
        per_user = problem.pairs.groups_per_user
        return cls(
            problem.pairs.group_codes[order],
            np.repeat(per_user, per_user)[order],
            problem.amounts[order],
            problem.pairs.num_entries,
        )

    @property
    def most_users(self) -> int:
        """Return the users of the group that has most."""
        return int(np.bincount(self.groups).max())


@dataclass(frozen=True, eq=False)
class KeptMoments:
    """What a rule keeps of every group; each of shape (num_entries,).

    Attributes:
        kept: Probability that the group is kept.
        square: E[(S - target)^2; kept], without noise.
    """

    kept: FloatArray
    square: FloatArray


def kept_moments(
    pairs: PairsByGroup,
    max_groups: int,
    tables: npt.ArrayLike,
    max_amount: float | None = None,
    targets: FloatArray | None = None,
) -> list[KeptMoments]:
    """Return what each of several rules keeps of every group.

    Args:
        pairs: The pairs.
        max_groups: L0, at least 1: the users' sample of groups.
        tables: Probability of keeping a group by its number of users, shape (num_rules, most_users + 1).
        max_amount: L-infinity, clips what is added; None where only the probability of keeping is wanted.
        targets: What S is compared with, shape (num_entries,); only with ``max_amount``.

    Returns:
        One entry per rule; ``square`` is 0 where no ``max_amount`` is given.
    """
    of_rules = np.atleast_2d(np.asarray(tables, dtype=np.float64))
    number = pairs.num_groups
    certain = pairs.sizes <= max_groups
    amounts = None if max_amount is None else np.minimum(pairs.amounts, max_amount)
    alike = amounts is not None and bool(amounts[0] == amounts.min() == amounts.max())
    always = np.bincount(pairs.groups[certain], minlength=number)
    offset = np.zeros(number)
    if amounts is not None:
        assert targets is not None
        offset = np.bincount(pairs.groups[certain], amounts[certain], number) - targets
    drawn = ~certain
    users = np.bincount(pairs.groups[drawn], minlength=number)
    starts = np.cumsum(users) - users
    share = max_groups / pairs.sizes[drawn]
    added = None if amounts is None or alike else amounts[drawn]
    kept, square = (np.empty((of_rules.shape[0], number)) for _ in range(2))
    for chosen, width in _batches(users):
        place = np.arange(width)
        held = place < users[chosen, None]
        at = np.where(held, starts[chosen, None] + place, 0)
        p = np.where(held, share[at] if share.size else 0.0, 0.0)
        m = None if added is None else np.where(held, added[at] if added.size else 0.0, 0.0)
        product = _product(p, m)
        # Places beyond the users of a group have the coefficient 0: what the table says there does not matter.
        n = np.minimum(always[chosen, None] + np.arange(width + 1), of_rules.shape[1] - 1)
        by_size = [np.einsum("gn,cgn->cg", table[n], product) for table in of_rules]
        d = offset[chosen]
        for rule, sums in enumerate(by_size):
            # A probability but for the rounding of the transform.
            kept[rule, chosen] = np.clip(sums[0], 0.0, 1.0)
            if amounts is None:
                square[rule, chosen] = 0.0
            elif alike:  # S is a multiple of N.
                gap = (d[:, None] + float(amounts[0]) * np.arange(width + 1)) ** 2
                square[rule, chosen] = np.einsum("gn,gn,gn->g", of_rules[rule][n], gap, product[0])
            else:
                square[rule, chosen] = sums[2] + d * (2.0 * sums[1] + d * sums[0])
    return [KeptMoments(k, np.maximum(s, 0.0)) for k, s in zip(kept, square, strict=True)]


def _batches(users: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Yield the groups of up to 1, 2, 4 ... users that are drawn, as many at a time as fit a block."""
    level = np.zeros(users.size, dtype=np.int64)
    level[users > 1] = np.ceil(np.log2(users[users > 1])).astype(np.int64)
    order = np.argsort(level, kind="stable")
    edges = np.searchsorted(level[order], np.arange(level.max(initial=0) + 2))
    for j, (begin, end) in enumerate(pairwise(edges)):
        step = max(1, BLOCK >> j)
        for first in range(int(begin), int(end), step):
            yield order[first : min(first + step, int(end))], 1 << j


def _product(p: FloatArray, m: FloatArray | None) -> FloatArray:
    """Return P, and with amounts A and Q, of each group's users, shape (1 or 3, groups, width + 1).

    Args:
        p: Probability that each user is kept, 0 for none, shape (groups, width), width a power of two.
        m: What each adds; None for P alone.
    """
    groups, width = p.shape
    number = 1 if m is None else 3
    # Coefficients first, then the users of all groups: every step works on whole rows.
    x = np.zeros((number, 2, groups * width))
    flat = p.ravel()
    x[0, 0], x[0, 1] = 1.0 - flat, flat
    if m is not None:
        x[1, 1] = flat * m.ravel()
        x[2, 1] = x[1, 1] * m.ravel()
    while x.shape[2] > groups and x.shape[1] <= 1 << SHORT:
        x = _convolved(x[:, :, 0::2], x[:, :, 1::2])
    x = np.ascontiguousarray(x.transpose(0, 2, 1))
    while x.shape[1] > groups:
        x = _transformed(x[:, 0::2], x[:, 1::2])
    return x


def _convolved(x: FloatArray, y: FloatArray) -> FloatArray:
    number, length, rows = x.shape
    out = np.zeros((number, 2 * length - 1, rows))
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for i in range(length):
        here = slice(i, i + length)
        out[0, here] += x[0, i] * y[0]
        if number == 3:
            out[1, here] += x[0, i] * y[1] + x[1, i] * y[0]
            out[2, here] += x[0, i] * y[2] + x[2, i] * y[0] + (2.0 * x[1, i]) * y[1]
    return out


def _transformed(x: FloatArray, y: FloatArray) -> FloatArray:
    from scipy import fft

    number, _, length = x.shape
    full = 2 * length - 1
    size = fft.next_fast_len(full, real=True)
    a, b = fft.rfft(x, size, axis=2), fft.rfft(y, size, axis=2)
    out = np.empty_like(a)
    out[0] = a[0] * b[0]
    if number == 3:
        out[1] = a[0] * b[1] + a[1] * b[0]
        out[2] = a[0] * b[2] + a[2] * b[0] + 2.0 * a[1] * b[1]
    return np.asarray(fft.irfft(out, size, axis=2)[:, :, :full])
