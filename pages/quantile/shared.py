"""The bound that serves the quantiles of two data sets best; the work of a job. No Streamlit, no plotting."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcore.answer.against import SharedChoice, in_turn
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.shared_bound import Parts, Sharer, least_worst_regret
from dpcore.contributions import FloatArray, log_spaced
from dpcore.dataset import Dataset
from dpcore.quantile import QuantileProblem, WeightKind, optimal_bound
from dpcore.quantile.answer.found import SEARCH_POINTS
from dpcore.quantile.optimal_bound import ALL_CAPS, RankBound
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting

NOT_COMPARED = ("own_bound",)
ALL_TRIED = (
    "every bound that matters to either data set was tried, on the average over the subsamples of the search"
)
SOME_TRIED = "the error has no known shape in the bound, and only some bounds were tried"


def why_not(data: Sequence[Dataset], parameters: QuantileParameters) -> str:
    """Why no bound is looked for; empty where one is."""
    if parameters.bound_from is BoundFrom.VALUES and any(one.values is None for one in data):
        return "Both data sets must have values, or the bound must come from the numbers of rows (*More settings*)."
    if parameters.weighting is Weighting.NONE:
        return "Without weights there is no bound for two data sets to share."
    return ""


def shared_choice(
    data: Sequence[Dataset], parameters: QuantileParameters, progress: Progress, should_stop: ShouldStop
) -> SharedChoice | None:
    """The bound with its proof where there is one; None where it was stopped early.

    By the paper's bound, which needs numbers of rows alone, it is proved against every bound. By the values it is the
    best of those tried, and proved where these are all caps.
    """
    if parameters.bound_from is BoundFrom.COUNTS:
        return _by_counts(data, parameters)
    return _by_values(data, parameters, progress, should_stop)


def _by_counts(data: Sequence[Dataset], parameters: QuantileParameters) -> SharedChoice:
    kind = parameters.kind
    bounds = [parameters.rank_bound(one.histogram) for one in data]
    sharers = [_sharer(bound, kind) for bound in bounds]
    shared = least_worst_regret(sharers, kind is WeightKind.CAP)
    tried = (shared.bound, *(one.best for one in sharers))
    return SharedChoice(
        choice=_said(shared.bound),
        regrets=shared.regrets,
        certificate=shared.certificate,
        choices=tuple(_said(h) for h in tried),
        errors=tuple(tuple(one.error(h) for h in tried) for one in sharers),
        measure="by the paper's bound on the rank error",
    )


def _sharer(bound: RankBound, kind: WeightKind) -> Sharer:
    """The paper's bound in its parts: one data set alone shares it with nobody, and its best is found likewise."""

    def parts(h: FloatArray) -> Parts:
        falling, rising = bound.parts(kind, h)
        return falling, falling, rising

    def error(h: float) -> float:
        return float(bound.value(kind, h))

    limits = (float(bound.histogram.min_size), float(bound.histogram.max_size))
    # With 1 in place of its least error, the ratio is the error.
    alone = least_worst_regret([Sharer(error, limits[0], 1.0, 1.0, parts, limits)], kind is WeightKind.CAP)
    return Sharer(error, alone.bound, error(alone.bound), alone.certificate.lower_bound, parts, limits)


def _by_values(
    data: Sequence[Dataset], parameters: QuantileParameters, progress: Progress, should_stop: ShouldStop
) -> SharedChoice | None:
    kind, caps = parameters.kind, parameters.kind is WeightKind.CAP
    problems = []
    for one in data:
        assert one.values is not None
        whole = QuantileProblem(one.values, 0.5, 1.0, parameters.base_distribution())
        whole = whole.under(parameters.neighbours)
        asked = whole.with_epsilon(parameters.epsilon)
        problems.append(asked.on_search_subsamples() if caps else asked)
    low = min(problem.histogram.min_size for problem in problems)
    high = max(problem.histogram.max_size for problem in problems)
    everything = caps and high - low < ALL_CAPS
    h = np.arange(low, high + 1.0) if everything else _grid(low, high, caps)
    looks = 1 if everything else 2

    def errors(bounds: FloatArray, look: int) -> FloatArray:
        parts = looks * len(problems)
        return np.stack(
            [
                optimal_bound.rank_errors(
                    problem, kind, bounds, in_turn(progress, look * len(problems) + at, parts), should_stop,
                    parameters.asked,
                ).rank_error
                for at, problem in enumerate(problems)
            ]
        )  # fmt: skip

    at_bound = errors(h, 0)
    if not everything and not should_stop():
        at = _best(at_bound)
        finer = np.setdiff1d(_grid(h[max(at - 1, 0)], h[min(at + 1, h.size - 1)], caps), h)
        h, at_bound = np.append(h, finer), np.append(at_bound, errors(finer, 1), axis=1)
        order = np.argsort(h)
        h, at_bound = h[order], at_bound[:, order]
    if should_stop():
        return None
    least = at_bound.min(axis=1)
    worst = (at_bound / least[:, None]).max(axis=0)
    at = int(np.argmin(worst))
    places = (at, *(int(place) for place in at_bound.argmin(axis=1)))
    value = float(worst[at])
    return SharedChoice(
        choice=_said(float(h[at])),
        regrets=tuple(float(ratio) - 1.0 for ratio in at_bound[:, at] / least),
        certificate=Certificate(
            value, value if everything else -math.inf, ALL_TRIED if everything else SOME_TRIED
        ),
        choices=tuple(_said(float(h[place])) for place in places),
        errors=tuple(tuple(row[place] for place in places) for row in at_bound.tolist()),
        measure="by the rank error on the values",
        upwards="Expected rank error",
        best=(float(h[places[2]]), float(at_bound[1, places[2]])),
        curve=(h, at_bound[1]),
    )


def _best(errors: FloatArray) -> int:
    return int(np.argmin((errors / errors.min(axis=1)[:, None]).max(axis=0)))


def _grid(low: float, high: float, caps: bool) -> FloatArray:
    grid = log_spaced(low, high, SEARCH_POINTS)
    return np.unique(np.round(grid)) if caps else grid


def _said(bound: float) -> str:
    return "1 row per user" if bound == 1.0 else f"{wording.number(bound, 4)} rows per user"
