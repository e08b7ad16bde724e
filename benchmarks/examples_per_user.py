"""Does the estimate of Examples per user rank bounds as accuracy does? Softmax regression on digits of invented users.

Run ``python benchmarks/examples_per_user.py`` from the root; half a minute. Noise is simulated with NumPy: nothing here
is a release. The digits are public; users are invented, of uneven sizes, and hold
either any digits or one or two kinds. Learning rates are picked on a part of the digits that is not the one accuracy is
measured on; both are held out.
"""

from __future__ import annotations

import enum
import functools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpcore.common.checks import refuse
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.samples import FOLDER
from dpcore.examples_per_user.candidates import Candidate, evaluate_candidate
from dpcore.examples_per_user.parameters import ExamplesParameters, Sampling

FILE = FOLDER / "digits.csv.gz"
CLASSES, TEST, PICK = 10, 360, 300
BOUNDS = (1, 2, 4, 8, 16, 32)
"""G that are tried; the last one is the heaviest user's size."""
BATCH, STEPS = 128.0, 60
RATES = (2.0, 8.0)
SEEDS = 6
SIZES = tuple(
    size for size, users in ((32, 10), (16, 16), (8, 26), (4, 40), (2, 54), (1, 85)) for _ in range(users)
)
"""Digits of each user, 1,137 in all."""
DESIGN_SEED = 7


class Kind(enum.Enum):
    """What digits a user has."""

    DIVERSE = "any digits"
    ALIKE = "one or two kinds of digits"


@dataclass(frozen=True, eq=False)
class Digits:
    """The digits, dealt to invented users.

    Attributes:
        features: Of norm 1, shape (rows, 65); those of a user follow each other.
        labels: 0 to 9, shape (rows,).
        user: Codes, ascending, shape (rows,).
        pick: (features, labels) on which learning rates are picked.
        test: Likewise, on which accuracy is measured.
        alike: r, the share of a gradient that a user's digits have in common at the first step; of public digits.
    """

    features: FloatArray
    labels: IntArray
    user: IntArray
    pick: tuple[FloatArray, IntArray]
    test: tuple[FloatArray, IntArray]
    alike: float

    @property
    def histogram(self) -> ContributionHistogram:
        """Digits per user."""
        return ContributionHistogram.from_counts(np.bincount(self.user))


@functools.cache
def digits(kind: Kind) -> Digits:
    """The sample, dealt out.

    Raises:
        InvalidInput: The file is missing.
    """
    if not FILE.is_file():
        raise refuse(f"the sample file {FILE.name} is missing from the folder sample_data")
    table = pd.read_csv(FILE).to_numpy(np.float64)
    rng = np.random.default_rng(DESIGN_SEED)
    table = table[rng.permutation(len(table))]
    pixels, labels = table[:, :-1], table[:, -1].astype(np.int64)
    features = np.c_[
        math.sqrt(0.96) * pixels / np.linalg.norm(pixels, axis=1, keepdims=True), np.full(len(table), 0.2)
    ]
    rest = np.arange(TEST + PICK, len(table))
    sizes = rng.permutation(np.array(SIZES))
    if kind is Kind.ALIKE:
        # In the order of their labels: neighbours in that order have one kind, or two.
        rest = rest[np.argsort(labels[rest], kind="stable")]
    user = np.repeat(np.arange(sizes.size), sizes)
    x, y = features[rest], labels[rest]
    held = [(features[part], labels[part]) for part in (slice(TEST, TEST + PICK), slice(0, TEST))]
    return Digits(x, y, user, held[0], held[1], _alike(x, y, user))


def _alike(x: FloatArray, y: IntArray, user: IntArray) -> float:
    """r of the gradients at the first step, less their mean: products of two digits of a user over squares of one."""
    gradients = np.einsum("ic,if->icf", 1.0 / CLASSES - np.eye(CLASSES)[y], x).reshape(len(y), -1)
    gradients -= gradients.mean(axis=0)
    starts = np.flatnonzero(np.r_[True, np.diff(user) > 0])
    sums, sizes = np.add.reduceat(gradients, starts), np.bincount(user)
    squares = (gradients**2).sum()
    pairs = (sums**2).sum() - squares
    found = pairs / float((sizes * (sizes - 1)).sum()) / (squares / len(y))
    return float(np.clip(found, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Trained:
    """What was trained.

    Attributes:
        kind: Of users.
        alike: r that the estimates go by.
        options: Every bound with every way, with its noise multiplier and its estimate.
        accuracy: On the part for testing, shape (options, seeds), at the picked rates.
        rates: Picked learning rate of each option.
        without: Accuracy without noise, all examples drawn; the mean over seeds.
    """

    kind: Kind
    alike: float
    options: tuple[Candidate, ...]
    accuracy: FloatArray
    rates: FloatArray
    without: float

    @property
    def seeds(self) -> int:
        """Trainings of each option."""
        return int(self.accuracy.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean accuracy, shape (options,)."""
        return np.asarray(self.accuracy.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean; not a number with one seed."""
        if self.seeds < 2:
            return np.full(len(self.options), np.nan)
        return np.asarray(self.accuracy.std(axis=1, ddof=1) / math.sqrt(self.seeds))


def options_for(kind: Kind, epsilon: float, delta: float) -> tuple[Candidate, ...]:
    """Bounds and ways that are trained, with their noise multipliers by Rényi accounting.

    Raises:
        InvalidInput: No noise keeps ε.
    """
    data = digits(kind)
    dimension = CLASSES * data.features.shape[1]
    asked = ExamplesParameters(
        epsilon, delta, BATCH, STEPS, dimension=dimension, gradient_similarity=data.alike
    )
    found = [
        evaluate_candidate(data.histogram, asked, way, bound)
        for way in (Sampling.EXAMPLES, Sampling.USERS)
        for bound in BOUNDS
    ]
    return tuple(one for one in found if one is not None)


def train(kind: Kind, epsilon: float, delta: float, seeds: int = SEEDS) -> Trained:
    """Train every option with every seed and learning rate.

    Args:
        kind: What digits a user has.
        epsilon: Privacy budget of each training.
        delta: Likewise.
        seeds: Draws of kept examples, batches and noise, at least 1.
    """
    data, private = digits(kind), options_for(kind, epsilon, delta)
    options = (*private, option_without_noise(data))
    picking, testing = np.zeros((2, seeds, len(options), len(RATES)))
    for seed, i, j in np.ndindex(picking.shape):
        theta = _trained(data, options[i], RATES[j], np.random.default_rng((seed, i, j)))
        picking[seed, i, j], testing[seed, i, j] = _accuracy(theta, data.pick), _accuracy(theta, data.test)
    best = picking.mean(axis=0).argmax(axis=1)
    accuracy = np.take_along_axis(testing, best[None, :, None], axis=2)[:, :, 0].T
    rates = np.array(RATES)[best[:-1]]
    return Trained(kind, data.alike, private, accuracy[:-1], rates, float(accuracy[-1].mean()))


def option_without_noise(data: Digits) -> Candidate:
    """All digits may be drawn, and nothing is added."""
    dimension = CLASSES * data.features.shape[1]
    asked = ExamplesParameters(
        1.0, batch_size=BATCH, steps=STEPS, dimension=dimension, gradient_similarity=data.alike
    )
    found = evaluate_candidate(data.histogram, asked, Sampling.EXAMPLES, BOUNDS[-1], 0.0)
    assert found is not None
    return found


def kept_rows(user: IntArray, bound: int, rng: np.random.Generator) -> IntArray:
    """Rows of at most ``bound`` examples of each user, drawn by a rule that looks at that user alone; ascending."""
    order = np.lexsort((rng.random(user.size), user))
    starts = np.flatnonzero(np.r_[True, np.diff(user) > 0])
    rank = np.arange(user.size) - starts[user]
    return np.asarray(np.sort(order[rank < bound]))


def _trained(data: Digits, of: Candidate, rate: float, rng: np.random.Generator) -> FloatArray:
    """Softmax regression by noisy steps; the sum of the last half of the iterates, shape (classes, features)."""
    rows = kept_rows(data.user, of.bound, rng)
    x, y, user = data.features[rows], np.eye(CLASSES)[data.labels[rows]], data.user[rows]
    theta = np.zeros((CLASSES, x.shape[1]))
    average = np.zeros_like(theta)
    num_users = int(user[-1]) + 1
    for step in range(STEPS):
        if of.sampling is Sampling.USERS:
            drawn = np.flatnonzero((rng.random(num_users) < of.rate)[user])
        else:
            drawn = np.flatnonzero(rng.random(user.size) < of.rate)
        total = _clipped_sum(theta, x[drawn], y[drawn], user[drawn], of)
        total += of.multiplier * of.norm * rng.standard_normal(theta.shape)
        theta = theta - rate * total / of.divisor
        # Added up and not divided: the class of the largest score is the same.
        average += theta if step >= STEPS // 2 else 0.0
    return average


def _clipped_sum(
    theta: FloatArray, x: FloatArray, y: FloatArray, user: IntArray, of: Candidate
) -> FloatArray:
    """Sum of gradients clipped to 1, or of users' mean gradients clipped to κ."""
    if not user.size:
        return np.zeros_like(theta)
    scores = x @ theta.T
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    residual = scores / scores.sum(axis=1, keepdims=True) - y
    if of.sampling is Sampling.EXAMPLES:
        norms = np.linalg.norm(residual, axis=1, keepdims=True) * np.linalg.norm(x, axis=1, keepdims=True)
        return np.asarray((residual / np.maximum(norms, 1.0)).T @ x)
    gradients = (residual[:, :, None] * x[:, None, :]).reshape(user.size, -1)
    starts = np.flatnonzero(np.r_[True, np.diff(user) > 0])
    means = np.add.reduceat(gradients, starts) / np.diff(np.r_[starts, user.size])[:, None]
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray((means / np.maximum(norms / of.norm, 1.0)).sum(axis=0).reshape(theta.shape))


def _accuracy(theta: FloatArray, of: tuple[FloatArray, IntArray]) -> float:
    x, y = of
    return float(((x @ theta.T).argmax(axis=1) == y).mean())


def show(kind: Kind, epsilon: float, delta: float) -> None:
    """Print accuracy beside the estimate, for every bound and way of drawing."""
    trained = train(kind, epsilon, delta)
    print(
        f"\nA user has {kind.value}: ε = {epsilon:g}, δ = {delta:g}, r = {trained.alike:.2f}, {trained.seeds} seeds; "
        f"accuracy without noise {trained.without:.3f}"
    )
    print(f"{'drawn':<10}{'G':>4}{'noise':>9}{'estimate':>10}{'accuracy':>18}{'rate':>6}")
    rows = zip(trained.options, trained.mean, trained.standard_error, trained.rates, strict=True)
    for option_, mean, error, rate in rows:
        accuracy = f"{mean:.3f} ± {error:.3f}"
        print(
            f"{option_.sampling.value:<10}{option_.bound:>4}{option_.multiplier:>9.3g}{option_.error:>10.3g}"
            f"{accuracy:>18}{rate:>6.3g}"
        )


if __name__ == "__main__":
    for each in Kind:
        show(each, 2.0, 1e-5)
