"""What a training sees and what its noise does, for every bound G and both ways of sampling. Sums over the histogram.

Neighbours, clip norm and noise are those of `dpcore.examples_per_user.noise`. Both ways see as many examples a step as
are expected, B: with n_G examples kept, an example or a user is drawn with probability q = B / n_G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.errors import refusal
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.examples_per_user.noise import multiplier_at_most
from dpcore.examples_per_user.parameters import ExamplesParameters, Way

DENSE_UNTIL = 64
"""Up to here bounds between the powers of two are tried, too."""
DIGITS_OF_RATE, DIGITS_OF_DIVISOR = 3, 4
"""Significant ones: a rate is a constant that stands in a program, and the noise is that of the rate as shown."""


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def bounds_to_try(histogram: ContributionHistogram) -> tuple[int, ...]:
    """G that are tried, ascending: no more than the heaviest user has, above which only the noise would grow."""
    most = histogram.max_size
    powers = [2**i for i in range(most.bit_length())]
    between = [3 * 2**i for i in range(6) if 3 * 2**i <= DENSE_UNTIL]
    return tuple(sorted({one for one in (*powers, *between, most) if one <= most}))


@dataclass(frozen=True)
class Option:
    """One bound with one way of sampling.

    Attributes:
        way: Who is drawn.
        bound: G.
        kept: n_G, examples kept in all.
        kept_share: Of all examples.
        rate: q, the probability of each draw, as a program has it.
        divisor: What a step's noisy sum is divided by: B, or the users whom a step is expected to see.
        multiplier: Standard deviation of the noise on a step's sum, in clip norms.
        at_most: Whether that is a bound by Rényi accounting, up to about 12 % more than is needed.
        norm: κ: norm of what is clipped over that of one example, by the r that was entered.
        noise: Standard deviation of the noise on a step's mean gradient, per parameter, in norms of an example's
            gradient.
        noise_error: Root of the squared error that noise leaves, by the estimate; all errors in norms of an example's
            gradient.
        drawing_error: That of drawing batches.
        data_error: That of having so few users and examples.
    """

    way: Way
    bound: int
    kept: float
    kept_share: float
    rate: float
    divisor: float
    multiplier: float
    at_most: bool
    norm: float
    noise: float
    noise_error: float
    drawing_error: float
    data_error: float

    @property
    def error(self) -> float:
        """The estimate of the whole training's error."""
        return math.hypot(self.noise_error, self.drawing_error, self.data_error)


def option(
    histogram: ContributionHistogram,
    parameters: ExamplesParameters,
    way: Way,
    bound: int,
    multiplier: float | None = None,
) -> Option | None:
    """One bound with one way; None where B is more than the examples that it keeps.

    The estimate is that of a mean of d numbers over T steps. A gradient of squared norm 1 is r of what all of a user's
    examples share, and 1 − r of its own. With m_u examples kept of user u, N users and M of them expected in a step:

        examples drawn:  d σ²/(B² T) + (1 − q)/(B T) + (1 − r)/n_G + r Σ m_u²/n_G²
        users drawn:     d (σ κ/M)²/T + (1 − q) κ²/(M T) + κ²/N,   κ² = r + (1 − r) mean(1/m_u)

    Source: derived here; Charles et al. 2024 (arXiv 2407.07737) compare the two ways by heuristics of their own.

    Args:
        histogram: Of the users' examples.
        parameters: The question.
        way: Examples or users are drawn.
        bound: G, at least 1.
        multiplier: The noise multiplier where it is known; by default the quick bound.
    """
    of, r = parameters, parameters.alike
    kept, users = float(histogram.kept_rows(float(bound))), float(histogram.num_users)
    if of.batch > kept:
        return None
    rate = min(_rounded(of.batch / kept, DIGITS_OF_RATE), 1.0)
    sigma = multiplier
    by_user = way is Way.USERS
    if sigma is None:
        sigma = multiplier_at_most(1 if by_user else bound, rate, of.epsilon, of.delta, of.steps)
    inverse, squares = _inverse_and_squares(histogram, bound)
    if by_user:
        norm, divisor = math.sqrt(r + (1.0 - r) * inverse / users), _rounded(rate * users, DIGITS_OF_DIVISOR)
        drawing, data = norm * math.sqrt((1.0 - rate) / (divisor * of.steps)), norm / math.sqrt(users)
    else:
        norm, divisor = 1.0, of.batch
        drawing = math.sqrt((1.0 - rate) / (divisor * of.steps))
        data = math.sqrt((1.0 - r) / kept + r * squares / kept**2)
    noise = sigma * norm / divisor
    return Option(
        way=way,
        bound=bound,
        kept=kept,
        kept_share=kept / float(histogram.num_rows),
        rate=rate,
        divisor=divisor,
        multiplier=sigma,
        at_most=multiplier is None and rate < 1.0,
        norm=norm,
        noise=noise,
        noise_error=noise * math.sqrt(of.dimension / of.steps),
        drawing_error=drawing,
        data_error=data,
    )


def _inverse_and_squares(histogram: ContributionHistogram, bound: int) -> tuple[float, float]:
    """Sum over users of 1/m_u, and of m_u², with m_u = min(s_u, G)."""
    above = float(histogram.users_above(float(bound)))
    few = histogram.sizes <= bound
    sizes, users = histogram.sizes[few].astype(np.float64), histogram.users[few].astype(np.float64)
    return (
        float((users / sizes).sum()) + above / bound,
        float((users * sizes**2).sum()) + above * float(bound) ** 2,
    )


def with_alike(
    histogram: ContributionHistogram, parameters: ExamplesParameters, of: Option, r: float
) -> Option:
    """The same option if a user's examples were as alike as ``r``; its noise multiplier does not depend on that."""
    found = option(histogram, replace(parameters, alike=r), of.way, of.bound, of.multiplier)
    assert found is not None
    return replace(found, at_most=of.at_most)


@dataclass(frozen=True)
class Options:
    """All that was tried.

    Attributes:
        tried: Options by way, ascending in G; those that are possible.
        too_small: G that keep less than B examples, ascending.
        best: The option of the least estimated error, of the ways that were asked about.
    """

    tried: dict[Way, tuple[Option, ...]]
    too_small: tuple[int, ...]
    best: Option

    def within(self, share: float = 0.05) -> tuple[int, int]:
        """From which to which G, of those tried around the best one, the estimate is at most ``share`` more."""
        of = self.tried[self.best.way]
        at = next(i for i, one in enumerate(of) if one.bound == self.best.bound)
        limit = (1.0 + share) * self.best.error
        low = high = at
        while low > 0 and of[low - 1].error <= limit:
            low -= 1
        while high + 1 < len(of) and of[high + 1].error <= limit:
            high += 1
        return of[low].bound, of[high].bound


def find(histogram: ContributionHistogram, parameters: ExamplesParameters) -> Options:
    """Try all bounds with both ways.

    Raises:
        InvalidInput: B is more than all examples; or no noise keeps ε.
    """
    if parameters.batch > histogram.num_rows:
        raise refusal(
            f"the expected batch B = {parameters.batch:,.6g} is more than all {histogram.num_rows:,} examples",
            "",
            "Take a smaller B: at most all examples can be in a step",
        )
    bounds = bounds_to_try(histogram)
    tried = {
        way: tuple(one for bound in bounds if (one := option(histogram, parameters, way, bound)) is not None)
        for way in (Way.EXAMPLES, Way.USERS)
    }
    possible = {one.bound for one in tried[Way.EXAMPLES]}
    if parameters.way is Way.BOTH:
        # At G = 1 both ways are one mechanism, which is called drawing examples.
        candidates = [*tried[Way.EXAMPLES], *(one for one in tried[Way.USERS] if one.bound > 1)]
    else:
        candidates = [*tried[parameters.way]]
    best = min(candidates, key=lambda one: one.error)
    return Options(tried, tuple(bound for bound in bounds if bound not in possible), best)


def columns_of(options: tuple[Option, ...]) -> dict[str, FloatArray]:
    """Options as columns of shape (options,)."""
    names = ("bound", "kept_share", "rate", "multiplier", "noise", "error")
    return {name: np.array([float(getattr(one, name)) for one in options]) for name in names}
