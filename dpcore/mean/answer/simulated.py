"""A mean with private counts, simulated beside its delta-method error: what to run, its results, and their plot."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import Axis, Curve, Look, Plot, Points
from dpcore.common import wording
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import log_spaced
from dpcore.mean import simulation
from dpcore.mean.answer.found import MeanFound
from dpcore.mean.answer.words import UNIT
from dpcore.mean.private_counts import PrivateCountsProblem, Release
from dpcore.mean.simulation import MeanSimulation, Setup

POINTS = 7
NORMAL_95 = 1.96

CAP, SMOOTH, USUAL, CENTRED = (
    "Bounded rows",
    "Smooth weights",
    "Bounded rows, usual split of ε",
    "Bounded rows, split of ε, values centred",
)
LOOKS = {CAP: Look.CAP, SMOOTH: Look.SMOOTH, USUAL: Look.USUAL}


@dataclass(frozen=True)
class Plan:
    """What is to be simulated.

    Attributes:
        problem: With its expected mean.
        best: The best bound of each mechanism.
        bounds: Further bounds at which each is simulated; may be empty.
        runs: How many times the mechanism is run at each bound.
    """

    problem: PrivateCountsProblem
    best: tuple[tuple[str, float], ...]
    bounds: tuple[float, ...]
    runs: int

    def setups(self) -> tuple[tuple[str, Setup], ...]:
        """(name, setup) of everything to simulate: the best bounds first, then the curve."""
        releases = {USUAL: Release.SPLIT, CENTRED: Release.CENTRED_SPLIT}
        made = []
        for name, bound in (*self.best, *((name, h) for name in LOOKS for h in self.bounds)):
            problem = replace(self.problem, release=releases.get(name, Release.PAIR))
            made.append((name, Setup(problem, bound, capped=name != SMOOTH)))
        return tuple(made)


def plan(found: MeanFound, value_mean: float | None, runs: int) -> Plan:
    """What to simulate for this answer; ``value_mean`` counts from L."""
    assert isinstance(found.problem, PrivateCountsProblem)
    assert found.usual is not None
    histogram = found.problem.histogram
    curve = log_spaced(float(histogram.min_size), float(histogram.max_size), POINTS)
    best = (
        (CAP, float(found.cap.max_contributions)),
        (SMOOTH, found.smooth.threshold),
        (USUAL, float(found.usual.cap.max_contributions)),
        (CENTRED, float(found.usual.centred.max_contributions)),
    )
    problem = simulation.value_mean_for(found.problem, value_mean)
    return Plan(problem, best, tuple(float(h) for h in np.unique(np.round(curve))), runs)


Results = tuple[tuple[str, Setup, MeanSimulation], ...]


def run(asked: Plan, progress: Progress = silent, should_stop: ShouldStop = never) -> Results:
    """Simulate; the work of a job."""
    named = asked.setups()
    setups = [setup for _, setup in named]
    results = simulation.simulate_all(setups, asked.runs, progress=progress, should_stop=should_stop)
    # Where it was stopped only setups at the end are missing, so that the two lists stay in step.
    return tuple((name, setup, one) for (name, setup), (_, one) in zip(named, results, strict=False))


def approximate(setup: Setup, bounds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Delta-method standard error of a setup's mechanism at any bounds."""
    error = mean.capped_error if setup.capped else mean.smooth_error
    return np.asarray(np.sqrt(error(setup.problem, bounds).variance))


def interval(one: MeanSimulation) -> tuple[float, float]:
    """95 % confidence interval of the root of the mean squared error."""
    half_width = NORMAL_95 * one.standard_error
    return (
        math.sqrt(max(one.mean_squared_error - half_width, 0.0)),
        math.sqrt(one.mean_squared_error + half_width),
    )


def columns(results: Results) -> dict[str, npt.ArrayLike]:
    """The results as columns."""
    return {
        "mechanism": [name for name, _, _ in results],
        "bound": [setup.bound for _, setup, _ in results],
        "delta_method_error": [float(approximate(setup, setup.bound)) for _, setup, _ in results],
        "simulated_error": [math.sqrt(one.mean_squared_error) for _, _, one in results],
        "simulated_low_95": [interval(one)[0] for _, _, one in results],
        "simulated_high_95": [interval(one)[1] for _, _, one in results],
        "bias": [one.bias for _, _, one in results],
        "runs": [one.runs for _, _, one in results],
        "contribution_counts": ["private too"] * len(results),
    }


def plot(found: MeanFound, asked: Plan, results: Results, main: Plot) -> Plot:
    """Simulated errors as points over the delta method's curves, at the simulated mean of the values.

    Args:
        found: What the page found.
        asked: What was simulated.
        results: What came of it.
        main: The main figure, whose axes it has.
    """
    guides: dict[str, npt.ArrayLike] = {"bounds": found.bounds}
    items: list[Curve | Points] = []
    for name, look in LOOKS.items():
        setup = next(s for n, s in asked.setups() if n == name)
        guides[name] = approximate(setup, found.bounds)
        items.append(Curve(f"{name}, delta method", "bounds", name, look))
        items.append(
            Points(
                f"{name}, simulated",
                "bound",
                "simulated_error",
                look,
                "simulated_low_95",
                "simulated_high_95",
                ("mechanism", name),
                f"Points: simulated, with 95{wording.PERCENT} intervals",
            )
        )
    return Plot(
        "mean-simulation",
        "Simulated errors beside the delta method",
        "Simulated standard errors as points beside the curves of the delta method.",
        main.x,
        Axis("standard error", UNIT, main.y.limits),
        columns(results),
        tuple(items),
        main.disclosure,
        guides,
    )
