"""OpenDP's searches for a scale, shortened."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pytest

CLOSE = 1e-9
"""How close to the best scale a search comes, of the scale: no test here tells less than 1e-8 of it."""


def _least_scale(make: Callable[[float], Any], d_in: Any, d_out: Any, **_: Any) -> Any:
    """Return the measurement of the least scale that is private enough, as OpenDP's search finds it, to `CLOSE`.

    OpenDP goes on to the last bit and asks about 1,140 times, 1 s to 3 s a query. What comes out passed OpenDP's own
    check, so it is never less than asked.
    """
    return make(_nearest_passing(make, d_in, d_out))


def _nearest_passing(make: Callable[[float], Any], d_in: Any, d_out: Any, **_: Any) -> float:
    """Find a scale, or what shares of a budget are multiplied by so that they keep it together: to `CLOSE` of it.

    OpenDP asks 58 times, a quarter of the time that a small query or program takes.
    """

    def passes(number: float) -> bool:
        return bool(make(number).check(d_in, d_out))

    # Nearly always the loss is a power of the number: then the fourth question is the last.
    if isinstance(d_out, float):
        first_loss, second_loss = (float(make(number).map(d_in)) for number in (1.0, 2.0))
        if 0.0 < first_loss != second_loss > 0.0:
            power = math.log2(second_loss / first_loss)
            guess = (d_out / first_loss) ** (1.0 / power)
            step = math.copysign(CLOSE / 2.0, power) * guess
            if passes(guess - step) and not passes(guess + step):
                return guess - step
    if not passes(2.0**-30):  # Of a scale, the larger the more private.
        return _least_passing(passes)
    return 1.0 / _least_passing(lambda inverse: passes(1.0 / inverse))


def _least_passing(passes: Callable[[float], bool], **_: Any) -> float:
    high = 1.0
    while not passes(high):
        high *= 4.0
    low = high / 4.0
    while passes(low):
        low, high = low / 4.0, low
    while high - low > CLOSE * high:
        midpoint = (low + high) / 2.0
        low, high = (low, midpoint) if passes(midpoint) else (midpoint, high)
    return high


@pytest.fixture(scope="module", autouse=True)
def resolved_once() -> Iterator[None]:
    """Search the scale of a query once: OpenDP searches when it is released and again when it is described."""
    from opendp import context, prelude
    from opendp.extras import polars
    from opendp.extras.polars import LazyFrameQuery

    resolve = LazyFrameQuery.resolve
    resolved: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def once(query: Any) -> Any:
        if query not in resolved:
            resolved[query] = resolve(query)
        return resolved[query]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LazyFrameQuery, "resolve", once)
        patch.setattr(polars, "binary_search_chain", _least_scale)
        patch.setattr(polars, "binary_search", _least_passing)
        for module in (context, prelude):
            patch.setattr(module, "binary_search_param", _nearest_passing)
        yield
