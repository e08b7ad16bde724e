"""Alternating least squares without privacy, and with it: algorithm 3 of Krichene et al. 2023 with algorithm 1.

Only item vectors and noisy counts are released. Each user's vector is clipped to length 1 and each rating to the
public range before they enter a sum, so that a rating of weight w adds at most w Gamma_y to an item's vector, and at
most w times `matrix_movement` to the half of its matrix that is released. A user's own offset is taken off their
ratings at home before these are clipped: it is computed from their own ratings and what was released, and moves no
sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.errors import refusal
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme, WeightedRatings, allocate, noisy_counts
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.descent import Steps, descended, expected_weights
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange, solved_users
from dpcore.factorisation.normal_equations import Sums, add_item_sums, solved
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.examples import clip_rows

RIDGE_TO_NOISE = 10.0
"""What the ridge of the items grows by with the noise. Found on generated ratings of 6,000 users, between 3 and 30 for
every epsilon from 1 to 20: on ratings of one's own such a search would cost budget."""
OnSweep = Callable[[int], None]
"""Told after each sweep how many are done."""


@dataclass(frozen=True, eq=False)
class PrivateFit:
    """What a private fit releases, and how.

    Attributes:
        model: The item vectors; its settings have the ridge that was used.
        counts: Noisy counts, shape (num_items,); None where the scheme needs none.
        spending: The budget, and the noise that it sets.
        scheme: Who got the budget.
    """

    model: FactorModel
    counts: FloatArray | None
    spending: Spending
    scheme: Scheme


def matrix_movement(offset: float) -> float:
    """The most that a user vector of length 1 adds to the released half of a matrix, in Frobenius norm.

    The half of x x^T on and above the diagonal has squared norm (|x|^4 + sum_k x_k^4) / 2. With |x| = 1 and one
    coordinate fixed at o, the sum of fourth powers is at most o^4 + (1 - o^2)^2, where the rest is one coordinate: at
    o = 0.9 this is 0.92. Ours; Krichene et al. 2023 take the whole matrix, which is 1.
    """
    return math.sqrt((1.0 + offset**4 + (1.0 - offset**2) ** 2) / 2.0)


def clipped(user_vectors: FloatArray, settings: FactorSettings, bound: float) -> FloatArray:
    """User vectors clipped to length ``bound``, their offset coordinate kept.

    Source: Krichene et al. 2023, algorithm 1, line 2.
    """
    fixed = int(settings.offset > 0.0)
    # A little less, so that no rounding of the sums' precision lifts a vector above the bound.
    room = math.sqrt(max(bound**2 * (1.0 - 1e-6) - settings.offset**2, 0.0))
    learned = clip_rows(user_vectors[:, fixed:], room) if room else 0.0 * user_vectors[:, fixed:]
    return np.hstack([user_vectors[:, :fixed], learned])


def own_offsets(user_vectors: FloatArray, settings: FactorSettings) -> tuple[FloatArray, FloatArray]:
    """Each user's own offset in the ratings' unit, shape (num_users,), and their vectors without it."""
    if not settings.own:
        return np.zeros(user_vectors.shape[0]), user_vectors
    return settings.own * user_vectors[:, -1], user_vectors[:, :-1]


def item_sums(
    train: Ratings,
    weighted: WeightedRatings | None,
    item_vectors: FloatArray,
    settings: FactorSettings,
    limits: RatingRange,
    user_bound: float = math.inf,
) -> Sums:
    """One pass: every user solves for their vector, and the sums of all items are taken. Private.

    Args:
        train: All ratings of the users, from which they solve.
        weighted: The ratings that enter the sums, with weights; None for all of them with weight 1.
        item_vectors: Of the sweep before, shape (num_items, d).
        settings: Ridge of the users, and the offset.
        limits: The range of ratings.
        user_bound: Gamma_x: user vectors are clipped to this length, the offset kept.

    Returns:
        sum w x x^T and sum w y x of every item.
    """
    d = settings.dimension
    # In the sums' own precision a user's part is rounded by what the others add up to: in float32 a user could so move
    # a sum by 3e-4 more than is declared, in float64 by 1e-12.
    dtype = train.values.dtype if weighted is None else np.dtype(np.float64)
    into = Sums(np.zeros((train.num_items, d * (d + 1) // 2), dtype), np.zeros((train.num_items, d), dtype))
    counted = train if weighted is None else weighted.ratings
    for users, _, x in solved_users(train, item_vectors, settings, limits):
        own, x = own_offsets(x, settings)
        # A user solves from all of their ratings: of that, only the clipped vector enters what is released.
        if math.isfinite(user_bound):
            x = clipped(x, settings, user_bound)
        at = slice(int(counted.starts[users.start]), int(counted.starts[users.stop]))
        values = counted.values[at]
        if settings.own:
            values = values - np.repeat(own, np.diff(counted.starts[users.start : users.stop + 1])).astype(
                values.dtype
            )
        labels = limits.centred(values).astype(dtype)
        weights = np.ones_like(labels) if weighted is None else weighted.weights[at].astype(dtype, copy=False)
        add_item_sums(into, counted, users, at, x.astype(dtype), weights, np.asarray(weights * labels))
    return into


def fit(
    train: Ratings, settings: FactorSettings, limits: RatingRange, on_sweep: OnSweep | None = None
) -> FactorModel:
    """Alternating least squares without privacy, from random item vectors.

    The sums are taken in the precision of the ratings; what is solved is float64.
    """
    vectors = settings.first_item_vectors(train.num_items)
    for sweep in range(settings.sweeps):
        sums = item_sums(train, None, vectors, settings, limits)
        vectors = settings.with_own(solved(sums, settings.item_ridge))
        if on_sweep is not None:
            on_sweep(sweep + 1)
    return FactorModel(vectors, settings, limits)


def fit_private(
    train: Ratings,
    settings: FactorSettings,
    limits: RatingRange,
    scheme: Scheme,
    spending: Spending,
    exponent: float = 0.25,
    ridge_to_noise: float = RIDGE_TO_NOISE,
    seed: int = 0,
    on_sweep: OnSweep | None = None,
    should_stop: ShouldStop = never,
    steps: Steps | None = None,
) -> PrivateFit | None:
    """DPALS, or AdaDPSGD where steps are given: item vectors under user-level differential privacy.

    A simulation: floating-point noise, not hardened against attacks on the low bits.

    Args:
        train: The table.
        settings: Dimension, sweeps (those of ``spending`` count), ridges, offset.
        limits: The public range of ratings.
        scheme: Who gets a user's budget.
        spending: The budget; its ``max_items`` bounds a user's squared weights. Its share for counts is not spent where
            the scheme needs none, and goes to the sweeps.
        exponent: mu of the adaptive scheme.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        seed: Of noise and draws; schemes share the noise on sums of the same seed.
        on_sweep: Told after each sweep.
        should_stop: Asked before each sweep.
        steps: Of gradient descent (algorithm 2), which must be the releases of ``spending``; None for sums and their
            solution (algorithm 1), with two releases. Steps need noisy counts under every scheme.

    Returns:
        The fit; None where it was stopped. With mu^2 as in `dpcore.factorisation.budget`, it is a Gaussian mechanism
        under adding or removing one user.

    Raises:
        InvalidInput: The releases of ``spending`` are not those that are made.

    Source: Krichene et al. 2023, algorithm 3 with algorithms 1 and 2; Chien et al. 2021.
    """
    releases = 2 if steps is None else steps.number
    if spending.releases != releases:
        raise refusal(f"the budget is for {spending.releases} releases in a sweep, and {releases} are made")
    # Weights of mu = 0 depend on no count: where nothing is set aside for counts, none are taken.
    alike = scheme is Scheme.ADAPTIVE and exponent == 0.0 and spending.count_share == 0.0
    counting = (scheme.needs_counts and not alike) or steps is not None
    if not counting:
        spending = replace(spending, count_share=0.0)
    # A stream for each: a scheme that takes no counts has the same noise on its sums.
    for_counts, for_draw, for_sums = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    k = spending.max_items
    counts = noisy_counts(train, k, spending.count_noise, for_counts) if counting else None
    weighted = allocate(
        train, scheme, k, np.ones(train.num_items) if counts is None else counts, exponent, for_draw
    )
    settings = replace(
        settings,
        sweeps=spending.sweeps,
        item_ridge=settings.item_ridge + ridge_to_noise * spending.noise,
    )
    vectors = settings.first_item_vectors(train.num_items)
    start = np.zeros(settings.dimension)
    for sweep in range(spending.sweeps):
        if should_stop():
            return None
        if steps is not None:
            assert counts is not None
            totals = expected_weights(counts, exponent if scheme is Scheme.ADAPTIVE else 0.0)
            own, users = own_offsets(FactorModel(vectors, settings, limits).user_vectors(train), settings)
            vectors, start = descended(
                vectors[:, : settings.dimension], start, _at_home(weighted, own, settings),
                clipped(users, settings, 1.0), settings, limits, steps, spending.noise, totals, for_sums,
            )  # fmt: skip
        else:
            sums = item_sums(train, weighted, vectors, settings, limits, user_bound=1.0)
            released = with_noise(sums, spending.noise, limits.label_bound, for_sums, settings.offset)
            vectors = solved_privately(released, settings, limits)
        vectors = settings.with_own(vectors)
        if on_sweep is not None:
            on_sweep(sweep + 1)
    return PrivateFit(FactorModel(vectors, settings, limits), counts, spending, scheme)


def _at_home(weighted: WeightedRatings, own: FloatArray, settings: FactorSettings) -> WeightedRatings:
    """The ratings that count, each less its user's own offset."""
    if not settings.own:
        return weighted
    of = weighted.ratings
    values = of.values - np.repeat(own, np.diff(of.starts)).astype(of.values.dtype)
    return WeightedRatings(Ratings(of.starts, of.items, values, of.num_items), weighted.weights)


def with_noise(
    sums: Sums, noise: float, label_bound: float, rng: np.random.Generator, offset: float = 0.0
) -> Sums:
    """The sums as they are released: Gaussian noise on every entry on and above the diagonals, and on the vectors.

    Args:
        sums: Of user vectors of length at most 1 and labels of at most ``label_bound``.
        noise: s.
        label_bound: Gamma_y.
        rng: Source of the noise.
        offset: o, the coordinate that all user vectors share.
    """
    return Sums(
        sums.matrices + noise * matrix_movement(offset) * rng.standard_normal(sums.matrices.shape),
        sums.vectors + noise * label_bound * rng.standard_normal(sums.vectors.shape),
    )


def solved_privately(released: Sums, settings: FactorSettings, limits: RatingRange) -> FloatArray:
    """Item vectors from the released sums: post-processing, which costs no privacy.

    The matrix is projected on the positive semidefinite cone (algorithm 1, line 7) before the ridge is added. With an
    offset coordinate, the ridge draws an item to the overall mean rating instead of the midpoint; that mean comes from
    the same released sums, whose noise averages out over the items (ours).
    """
    matrices, vectors = released.unfolded().astype(np.float64), released.vectors.astype(np.float64)
    start = np.zeros(settings.dimension)
    if settings.offset > 0.0:
        start[0] = overall_mean(released, settings, limits) / settings.offset
    values, directions = np.linalg.eigh(matrices)
    # The ridge is on what an item is off from ``start``: the equations are solved for that.
    rest = vectors - matrices @ start
    turned = np.einsum("mkj,mk->mj", directions, rest)
    turned /= np.maximum(values, 0.0) + settings.item_ridge
    return np.asarray(start + np.einsum("mij,mj->mi", directions, turned))


def overall_mean(released: Sums, settings: FactorSettings, limits: RatingRange) -> float:
    """Mean rating less the midpoint, weighted as the sums are, from what was released; 0 where noise hides it."""
    # The first entry of an item's matrix is offset^2 times its weights, that of its vector offset times its labels.
    weight = float(released.matrices[:, 0].sum()) / settings.offset**2
    total = float(released.vectors[:, 0].sum()) / settings.offset
    if weight <= 0.0:
        return 0.0
    return min(max(total / weight, -limits.label_bound), limits.label_bound)
