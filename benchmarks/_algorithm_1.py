"""An audit of the paper's algorithm 1: does the shared output tell more of a record than ε allows?

Algorithm 1 moves the personal part by the record that it draws, without noise, and takes later gradients of the shared
part there. So a record z of owner 0 acts on every later shared gradient of the owner's other records, which are drawn m
times as often as z; line 2 of the algorithm takes noise for z's own step alone. The instance makes the most of that:

    owner 0, records other than z:  h(x, u) = (L/2) |u + c x|,  c = 1/m,
    the record z, and its neighbour:  h(x, u) = −L x, and +L x,
    every other owner:  h = 0,

with u and x real, convex and L-Lipschitz. z and its neighbour have the same shared gradient, 0: whatever the shared
output tells of them has gone through x. The test looks at the average of u alone, which every other owner sees.

Source: Huang et al. 2023, algorithm 1, theorem 3.1; instance and test are ours.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.branch_and_bound import find_least_noise
from dpcore.common.privacy import compute_gaussian_sigma
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray

CONFIDENCE = 0.95
_BLOCK = 500
"""Steps whose random numbers are drawn at once."""


@dataclass(frozen=True)
class AuditInstance:
    """The constructed example, and what algorithm 1 is run with. L and D_U are 1: only ratios matter.

    Attributes:
        owners: n.
        records: m.
        epsilon: What is claimed.
        delta: Likewise.
        reach: D_X in units of D_U/c = m D_U.
    """

    owners: int = 2
    records: int = 50
    epsilon: float = 1.0
    delta: float = 1e-5
    reach: float = 100.0

    @property
    def steps(self) -> int:
        """Return T = (mn)², as in the paper's analysis."""
        return (self.owners * self.records) ** 2

    @property
    def personal_diameter(self) -> float:
        """Return D_X."""
        return self.reach * self.records

    @property
    def step_size(self) -> float:
        """Return the η that minimises the paper's bound R²/(ηT) + ηL²T (1/(mn) + ℓ log(1/δ)/(εmn)²), ℓ = 1."""
        total = self.owners * self.records
        spread = 1.0 / total + math.log(1.0 / self.delta) / (self.epsilon * total) ** 2
        return math.hypot(math.sqrt(self.owners) * self.personal_diameter, 1.0) / (
            self.steps * math.sqrt(spread)
        )


def compute_one_record_epsilon(multiplier: float, num_records: int, num_steps: int, delta: float) -> float:
    """Compute epsilon by RDP accounting for noisy steps that each draw one record of ``num_records``; replace-one.

    Args:
        multiplier: Standard deviation of a step's Gaussian noise, over how far a replaced record moves the step.
        num_records: Drawn from, without replacement within a step.
        num_steps: Of them.
        delta: In (0, 1).
    """
    from dp_accounting import GaussianDpEvent, NeighboringRelation, SampledWithoutReplacementDpEvent
    from dp_accounting.rdp import RdpAccountant

    with np.errstate(all="ignore"):  # As in `compute_gaussian_sigma`.
        accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        step_event = SampledWithoutReplacementDpEvent(num_records, 1, GaussianDpEvent(multiplier))
        accountant.compose(step_event, num_steps)
        return float(accountant.get_epsilon(delta))


@functools.cache
def find_accounted_noise(instance: AuditInstance) -> float:
    """Return the standard deviation, in units of L, of the least noise that RDP accepts for line 2 of algorithm 1.

    It takes one record of mn in each of T steps, replace-one, with a gradient that moves by at most 2L.
    """
    total = instance.owners * instance.records

    def compute_epsilon(multiplier: float) -> float:
        """Return ε of all steps at a noise multiplier."""
        return compute_one_record_epsilon(multiplier, total, instance.steps, instance.delta)

    # Where steps are many, a record's share of them acts like one release of its own.
    guess = math.sqrt(instance.steps) / total * compute_gaussian_sigma(instance.epsilon, instance.delta)
    # A record that is replaced moves the gradient by up to 2 L.
    return 2.0 * find_least_noise(compute_epsilon, instance.epsilon, max(guess, 1.0), 1e-3)


def simulate_shared_outputs(
    instance: AuditInstance,
    noise: float,
    runs: int,
    seed: int,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> tuple[FloatArray, FloatArray] | None:
    """Simulate the averaged shared output of algorithm 1, with the record and with its neighbour.

    Args:
        instance: The example.
        noise: Standard deviation on the shared gradient, in units of L.
        runs: Of each of the two.
        seed: Of all draws.
        progress: Told the share done.
        should_stop: Whether to give up.

    Returns:
        ū under z and under its neighbour, shape (runs,) each; None where it was stopped.
    """
    rng = np.random.default_rng(seed)
    n, m, step = instance.owners, instance.records, instance.step_size
    # The gradient of (1/2) |u + c x| is sign / 2 in u, and c sign / 2 in x.
    c, reach, pull = 1.0 / m, instance.personal_diameter / 2.0, 0.5 * step
    toward = np.r_[np.full(runs, step), np.full(runs, -step)]  # −η times the gradient ∓L of z
    u, x, total = np.zeros(2 * runs), np.zeros(2 * runs), np.zeros(2 * runs)
    for start in range(0, instance.steps, _BLOCK):
        if should_stop():
            return None
        block = min(_BLOCK, instance.steps - start)
        uniforms = rng.random((block, 2 * runs))
        # One record of mn is drawn: another one of owner 0, or z, or one of the others, which moves nothing.
        draws_other_record = uniforms < (m - 1) / (m * n)
        draws_record = (uniforms >= (m - 1) / (m * n)) & (uniforms < 1.0 / n)
        shift = rng.standard_normal((block, 2 * runs)) * (step * noise)
        for t in range(block):
            total += u
            sign = np.where(draws_other_record[t], np.sign(u + c * x), 0.0)
            x = np.clip(x - pull * c * sign + draws_record[t] * toward, -reach, reach)
            u = np.clip(u - pull * sign - shift[t], -0.5, 0.5)
        progress((start + block) / instance.steps)
    average = total / instance.steps
    return average[:runs], average[runs:]


@dataclass(frozen=True)
class AuditResult:
    """What a test of two sets of outputs shows.

    Attributes:
        epsilon: Lower bound on ε that holds with the confidence; 0 where nothing was found.
        true: How often the test said "the record" and was right.
        false: How often it said so and was wrong.
        runs: Of each, among which these were counted.
        threshold: Outputs on its side away from the neighbour's were called the record's.
        confidence: Of the bound.
    """

    epsilon: float
    true: int
    false: int
    runs: int
    threshold: float
    confidence: float


def bound_epsilon(
    record: FloatArray, neighbour: FloatArray, threshold: float, delta: float, confidence: float = CONFIDENCE
) -> AuditResult:
    """Return the ε shown by calling outputs below a threshold the record's; other outputs must give the threshold.

    For every test P(true) ≤ e^ε P(false) + δ. Both probabilities are bounded after Clopper and Pearson, each with half
    of what the confidence leaves.
    """
    from scipy.special import betaincinv

    runs = record.size
    true, false = int(np.sum(record < threshold)), int(np.sum(neighbour < threshold))
    risk = (1.0 - confidence) / 2.0
    true_lower_bound = float(betaincinv(true, runs - true + 1, risk)) if true else 0.0
    false_upper_bound = float(betaincinv(false + 1, runs - false, 1.0 - risk)) if false < runs else 1.0
    epsilon = math.log((true_lower_bound - delta) / false_upper_bound) if true_lower_bound > delta else 0.0
    return AuditResult(max(epsilon, 0.0), true, false, runs, threshold, confidence)


def bound_epsilon_on_halves(
    record: FloatArray, neighbour: FloatArray, delta: float, confidence: float = CONFIDENCE
) -> AuditResult:
    """Return the same with the threshold that shows most on one half of the outputs, judged on the other half."""
    half_size = record.size // 2
    first_half = np.sort(np.r_[record[:half_size], neighbour[:half_size]])
    best_threshold = max(
        first_half[:: max(first_half.size // 400, 1)].tolist(),
        key=lambda threshold: (
            bound_epsilon(record[:half_size], neighbour[:half_size], threshold, delta, confidence).epsilon
        ),
    )
    return bound_epsilon(record[half_size:], neighbour[half_size:], best_threshold, delta, confidence)
