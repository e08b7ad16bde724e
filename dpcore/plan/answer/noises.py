"""The same plan with Laplace and with Gaussian noise, each as the program's own accountant draws it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common import noise_error, wording
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.common.privacy import rounded_up
from dpcore.dataset import Dataset
from dpcore.plan.answer.found import PlanFound, exact_epsilon, find
from dpcore.plan.answer.words import amount
from dpcore.plan.budget import Program
from dpcore.plan.curves import RankCurve
from dpcore.plan.lines import Released
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, planned, rank_v


@dataclass(frozen=True, eq=False)
class Noises:
    """Both.

    Attributes:
        laplace: Errors of all lines with Laplace noise, in their units; empty where no epsilon is enough.
        gaussian: Likewise with Gaussian noise.
        totals: What the objective makes of either, Laplace first: the size of all errors over wanted errors, the
            largest, or the least epsilon; infinite where no epsilon is enough.
        delta: Of the Gaussian noise.
        spent: Epsilon that the Gaussian noise really spends; None where no exact account of it is known.
        split: Whether the shares are those of the plan, as the program divides epsilon and delta among Gaussian
            releases, which no plan here is made for.
    """

    laplace: tuple[float, ...]
    gaussian: tuple[float, ...]
    totals: tuple[float, float]
    delta: float
    spent: float | None
    split: bool = False


class LaterFacts(Mapping[str, str]):
    """Facts with a further one, whose sentence is made when somebody reads it: an exact account loads for 2 s."""

    def __init__(self, facts: Mapping[str, str], name: str, make: Callable[[], str]) -> None:
        self._facts, self._name, self._make = facts, name, functools.cache(make)

    def __getitem__(self, name: str) -> str:
        return self._make() if name == self._name else self._facts[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._facts
        yield self._name

    def __len__(self) -> int:
        return len(self._facts) + 1


def both(data: Dataset, parameters: PlanParameters, found: PlanFound) -> Noises:
    """The plan beside the best one with the other noise: same lines, same epsilon, same objective, same program.

    Args:
        data: The data.
        parameters: The question.
        found: What was found for both.
    """
    if parameters.program is Program.PIPELINEDP:
        return _divided(data, parameters, found)
    gaussian = parameters.noise is NoiseKind.GAUSSIAN
    delta = parameters.delta if parameters.delta is not None else DEFAULT_DELTA
    other = replace(
        parameters,
        noise=NoiseKind.LAPLACE if gaussian else NoiseKind.GAUSSIAN,
        delta=None if gaussian else delta,
    )
    try:
        # A quantile's errors take most of the time, and the exponential mechanism draws it with either noise.
        beside = find(data, other, _other_lines(data, other, found.planned))
    except InvalidInput:
        # Beyond every epsilon: that no epsilon is enough for a line shows with either noise.
        beside = None
    ours, theirs = _errors(found), () if beside is None else _errors(beside)
    totals = _total(parameters, found), math.inf if beside is None else _total(parameters, beside)
    of_gaussian = found if gaussian else beside
    return Noises(
        theirs if gaussian else ours,
        ours if gaussian else theirs,
        (totals[1], totals[0]) if gaussian else totals,
        delta,
        None if of_gaussian is None else exact_epsilon(of_gaussian),
    )


def _errors(found: PlanFound) -> tuple[float, ...]:
    return tuple(line.error for line in found.lines)


def _total(parameters: PlanParameters, found: PlanFound) -> float:
    if parameters.objective is Objective.REACH:
        return found.budget.epsilon
    return found.size(found.lines, parameters.objective is Objective.LARGEST)


def _other_lines(
    data: Dataset, other: PlanParameters, lines: Sequence[PlannedLine]
) -> tuple[PlannedLine, ...]:
    """The lines for the other noise."""
    ranked = [line for line in lines if line.line.released is Released.QUANTILE]
    rest = "; ".join(line.line.text for line in lines if line not in ranked)
    found = iter(planned(data, replace(other, lines=rest)) if rest else ())
    return tuple(_of_noise(line, other.noise) if line in ranked else next(found) for line in lines)


def _of_noise(line: PlannedLine, noise: NoiseKind) -> PlannedLine:
    """A quantile's line: the errors are the same, and its epsilon takes another share of what adds up."""
    assert isinstance(line.curve, RankCurve)
    before = NoiseKind.LAPLACE if noise is NoiseKind.GAUSSIAN else NoiseKind.GAUSSIAN
    one = np.ones(1)
    return replace(line, curve=line.curve.stretched(float((rank_v(one, noise) / rank_v(one, before))[0])))


def _divided(data: Dataset, parameters: PlanParameters, found: PlanFound) -> Noises:
    """PipelineDP: a Gaussian release gets its share of epsilon and delta, each part of a mean half of both."""
    with_gaussian = replace(parameters, noise=NoiseKind.GAUSSIAN, delta=DEFAULT_DELTA, program=Program.PYTHON)
    squares, weights = [], []
    for line, of in zip(found.lines, planned(data, with_gaussian), strict=True):
        halves = 2.0 if of.line.released is Released.MEAN else 1.0
        share = line.share / halves
        v = math.inf
        if share > 0.0:
            sigma = noise_error.unit_scale(
                NoiseKind.GAUSSIAN, found.budget.epsilon * share, DEFAULT_DELTA * share
            )
            # Halves of rho instead would draw sqrt(2) sigma, which the curve holds already.
            v = sigma**2 / halves
        squares.append(float(of.curve.best(np.array([v])).squares[0]))
        weights.append(of.weight)
    errors = tuple(math.sqrt(square) for square in squares)
    if parameters.objective is Objective.SUM:
        counted = math.fsum(line.line.weight for line in found.planned)
        theirs = math.sqrt(math.fsum(w * s for w, s in zip(weights, squares, strict=True)) / counted)
        ours = found.size(found.lines, False)
    else:
        theirs = max(error / line.wanted for error, line in zip(errors, found.planned, strict=True))
        ours = found.size(found.lines, True)
    return Noises(_errors(found), errors, (ours, theirs), DEFAULT_DELTA, None, split=True)


def sentence(noises: Noises, found: PlanFound, parameters: PlanParameters) -> str:
    """Which noise errs less at this plan, both totals, and the epsilon that is really spent; without a capital."""
    laplace, gaussian = noises.totals
    at, program, reach = f"δ = {wording.entered(noises.delta)}", parameters.program.value, Objective.REACH
    said = (
        tuple(map(wording.number, noises.totals))
        if math.isinf(gaussian)
        else wording.apart(laplace, gaussian)
    )
    sizes = {
        Objective.SUM: "errors are {} times the wanted ones (root of the weighted mean square)",
        Objective.LARGEST: "the largest error is {} times the wanted one",
    }
    if noises.split:
        # Of the least epsilon the errors at these shares are compared, each with the error that is wanted.
        size = sizes.get(parameters.objective, sizes[Objective.LARGEST])
        return (
            f"with the Laplace noise of this plan {size.format(said[0])}. {program} divides ε and δ among Gaussian "
            f"releases; at these shares and {at} that is {said[1]} times, and no plan is made for it."
        )
    verb = "needs" if parameters.objective is reach else "errs"
    best = f"{'Laplace' if laplace < gaussian else 'Gaussian'} noise {verb} less"
    if laplace == gaussian:
        best = "both noises do alike"
    if parameters.objective is reach:
        each = [
            "no ε is enough" if math.isinf(total) else f"ε = {rounded_up(total, 4)} is enough"
            for total in noises.totals
        ]
        both_said = (
            f"with Laplace noise {each[0]} for all wanted errors, and with Gaussian noise at {at} {each[1]}"
        )
    else:
        both_said = (
            f"with Laplace noise {sizes[parameters.objective].format(said[0])}, and with Gaussian noise at {at} "
            f"{'they are' if parameters.objective is Objective.SUM else 'it is'} {said[1]} times"
        )
    return f"{best}. As {program} draws them, {both_said}. {_spent(noises, found, parameters)}"


def _spent(noises: Noises, found: PlanFound, parameters: PlanParameters) -> str:
    of_laplace = found.budget.epsilon
    if parameters.objective is Objective.REACH:
        of_laplace = noises.totals[0]
    if math.isinf(of_laplace):
        return ""
    laplace = f"Laplace noise spends ε = {rounded_up(of_laplace, 4)}, all of it"
    if noises.spent is None:
        return f"{laplace}; Gaussian noise beside a quantile spends at most ε, and no exact account is known here."
    return (
        f"{laplace}; the Gaussian noise really spends ε = {rounded_up(noises.spent, 4)}, by an exact account."
    )


def table(noises: Noises, found: PlanFound) -> dict[str, list[str]]:
    """Errors with either noise as columns of a table, a row per line; empty where one of them never is enough."""
    if not (noises.laplace and noises.gaussian):
        return {}
    return {
        "release": [line.planned.line.what for line in found.lines],
        **{
            name: [amount(line, error) for line, error in zip(found.lines, errors, strict=True)]
            for name, errors in (("Laplace", noises.laplace), ("Gaussian", noises.gaussian))
        },
    }
