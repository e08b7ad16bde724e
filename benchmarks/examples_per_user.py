"""Does the estimate of User-level DP-SGD rank bounds as accuracy does? Softmax regression on digits of invented users.

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


class UserDesign(enum.Enum):
    """Designs of which digits a user has."""

    DIVERSE = "any digits"
    SIMILAR = "one or two kinds of digits"


@dataclass(frozen=True, eq=False)
class Digits:
    """The digits, dealt to invented users.

    Attributes:
        features: Of norm 1, shape (rows, 65); those of a user follow each other.
        labels: 0 to 9, shape (rows,).
        user: Codes, ascending, shape (rows,).
        picking_digits: (features, labels) on which learning rates are picked.
        testing_digits: Likewise, on which accuracy is measured.
        gradient_similarity: r, the share of a gradient that a user's digits share at the first step; of public digits.
    """

    features: FloatArray
    labels: IntArray
    user: IntArray
    picking_digits: tuple[FloatArray, IntArray]
    testing_digits: tuple[FloatArray, IntArray]
    gradient_similarity: float

    @property
    def histogram(self) -> ContributionHistogram:
        """Return the histogram of digits per user."""
        return ContributionHistogram.from_counts(np.bincount(self.user))


@functools.cache
def deal_digits(design: UserDesign) -> Digits:
    """Deal the sample out to invented users.

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
    user_rows = np.arange(TEST + PICK, len(table))
    sizes = rng.permutation(np.array(SIZES))
    if design is UserDesign.SIMILAR:
        # In the order of their labels: neighbours in that order have one kind, or two.
        user_rows = user_rows[np.argsort(labels[user_rows], kind="stable")]
    user = np.repeat(np.arange(sizes.size), sizes)
    x, y = features[user_rows], labels[user_rows]
    held_out = [(features[block], labels[block]) for block in (slice(TEST, TEST + PICK), slice(0, TEST))]
    return Digits(x, y, user, held_out[0], held_out[1], _estimate_similarity(x, y, user))


def _estimate_similarity(x: FloatArray, y: IntArray, user: IntArray) -> float:
    """Estimate r of the gradients at the first step, less their mean: products of two digits of a user over squares."""
    gradients = np.einsum("ic,if->icf", 1.0 / CLASSES - np.eye(CLASSES)[y], x).reshape(len(y), -1)
    gradients -= gradients.mean(axis=0)
    starts = np.flatnonzero(np.r_[True, np.diff(user) > 0])
    sums, sizes = np.add.reduceat(gradients, starts), np.bincount(user)
    squares = (gradients**2).sum()
    pairs = (sums**2).sum() - squares
    similarity = pairs / float((sizes * (sizes - 1)).sum()) / (squares / len(y))
    return float(np.clip(similarity, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Accuracies of all trainings of one design.

    Attributes:
        design: Of users.
        gradient_similarity: r that the estimates go by.
        options: Every bound with every way, with its noise multiplier and its estimate.
        accuracy: On the part for testing, shape (options, seeds), at the picked rates.
        rates: Picked learning rate of each option.
        noiseless_accuracy: Accuracy without noise, all examples drawn; the mean over seeds.
    """

    design: UserDesign
    gradient_similarity: float
    options: tuple[Candidate, ...]
    accuracy: FloatArray
    rates: FloatArray
    noiseless_accuracy: float

    @property
    def seeds(self) -> int:
        """Return the number of trainings of each option."""
        return int(self.accuracy.shape[1])

    @property
    def mean_accuracy(self) -> FloatArray:
        """Return the mean accuracy, shape (options,)."""
        return np.asarray(self.accuracy.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Return the standard error of the mean, shape (options,); NaN with one seed."""
        if self.seeds < 2:
            return np.full(len(self.options), np.nan)
        return np.asarray(self.accuracy.std(axis=1, ddof=1) / math.sqrt(self.seeds))


def list_options(design: UserDesign, epsilon: float, delta: float) -> tuple[Candidate, ...]:
    """List the bounds and samplings that are trained, with their noise multipliers by Rényi accounting.

    Raises:
        InvalidInput: No noise keeps ε.
    """
    data = deal_digits(design)
    dimension = CLASSES * data.features.shape[1]
    parameters = ExamplesParameters(
        epsilon, delta, BATCH, STEPS, dimension=dimension, gradient_similarity=data.gradient_similarity
    )
    candidates = [
        evaluate_candidate(data.histogram, parameters, sampling, bound)
        for sampling in (Sampling.EXAMPLES, Sampling.USERS)
        for bound in BOUNDS
    ]
    return tuple(candidate for candidate in candidates if candidate is not None)


def train(design: UserDesign, epsilon: float, delta: float, seeds: int = SEEDS) -> TrainingResult:
    """Train every option with every seed and learning rate.

    Args:
        design: What digits a user has.
        epsilon: Privacy budget of each training.
        delta: Likewise.
        seeds: Draws of kept examples, batches and noise, at least 1.
    """
    data, private = deal_digits(design), list_options(design, epsilon, delta)
    options = (*private, build_noiseless_option(data))
    picking, testing = np.zeros((2, seeds, len(options), len(RATES)))
    for seed, i, j in np.ndindex(picking.shape):
        theta = _train_once(data, options[i], RATES[j], np.random.default_rng((seed, i, j)))
        picking[seed, i, j], testing[seed, i, j] = (
            _compute_accuracy(theta, data.picking_digits),
            _compute_accuracy(theta, data.testing_digits),
        )
    best = picking.mean(axis=0).argmax(axis=1)
    accuracy = np.take_along_axis(testing, best[None, :, None], axis=2)[:, :, 0].T
    rates = np.array(RATES)[best[:-1]]
    return TrainingResult(
        design, data.gradient_similarity, private, accuracy[:-1], rates, float(accuracy[-1].mean())
    )


def build_noiseless_option(data: Digits) -> Candidate:
    """Build the option that may draw all digits and adds no noise."""
    dimension = CLASSES * data.features.shape[1]
    parameters = ExamplesParameters(
        1.0, batch_size=BATCH, steps=STEPS, dimension=dimension, gradient_similarity=data.gradient_similarity
    )
    candidate = evaluate_candidate(data.histogram, parameters, Sampling.EXAMPLES, BOUNDS[-1], 0.0)
    assert candidate is not None
    return candidate


def draw_kept_rows(user: IntArray, bound: int, rng: np.random.Generator) -> IntArray:
    """Draw at most ``bound`` rows of each user by a rule that looks at that user alone; ascending."""
    order = np.lexsort((rng.random(user.size), user))
    starts = np.flatnonzero(np.r_[True, np.diff(user) > 0])
    rank = np.arange(user.size) - starts[user]
    return np.asarray(np.sort(order[rank < bound]))


def _train_once(data: Digits, option: Candidate, rate: float, rng: np.random.Generator) -> FloatArray:
    """Train softmax regression by noisy steps; return the sum of the last half of the iterates, (classes, features)."""
    rows = draw_kept_rows(data.user, option.bound, rng)
    x, y, user = data.features[rows], np.eye(CLASSES)[data.labels[rows]], data.user[rows]
    theta = np.zeros((CLASSES, x.shape[1]))
    average = np.zeros_like(theta)
    num_users = int(user[-1]) + 1
    for step in range(STEPS):
        if option.sampling is Sampling.USERS:
            batch = np.flatnonzero((rng.random(num_users) < option.rate)[user])
        else:
            batch = np.flatnonzero(rng.random(user.size) < option.rate)
        total = _sum_clipped(theta, x[batch], y[batch], user[batch], option)
        total += option.multiplier * option.gradient_norm * rng.standard_normal(theta.shape)
        theta = theta - rate * total / option.divisor
        # Added up and not divided: the class of the largest score is the same.
        average += theta if step >= STEPS // 2 else 0.0
    return average


def _sum_clipped(
    theta: FloatArray, x: FloatArray, y: FloatArray, user: IntArray, option: Candidate
) -> FloatArray:
    """Sum gradients clipped to 1, or users' mean gradients clipped to κ."""
    if not user.size:
        return np.zeros_like(theta)
    scores = x @ theta.T
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    residual = scores / scores.sum(axis=1, keepdims=True) - y
    if option.sampling is Sampling.EXAMPLES:
        norms = np.linalg.norm(residual, axis=1, keepdims=True) * np.linalg.norm(x, axis=1, keepdims=True)
        return np.asarray((residual / np.maximum(norms, 1.0)).T @ x)
    gradients = (residual[:, :, None] * x[:, None, :]).reshape(user.size, -1)
    starts = np.flatnonzero(np.r_[True, np.diff(user) > 0])
    means = np.add.reduceat(gradients, starts) / np.diff(np.r_[starts, user.size])[:, None]
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray(
        (means / np.maximum(norms / option.gradient_norm, 1.0)).sum(axis=0).reshape(theta.shape)
    )


def _compute_accuracy(theta: FloatArray, test_digits: tuple[FloatArray, IntArray]) -> float:
    """Return the share of the digits that are classified right."""
    x, y = test_digits
    return float(((x @ theta.T).argmax(axis=1) == y).mean())


def print_design(design: UserDesign, epsilon: float, delta: float) -> None:
    """Print accuracy beside the estimate, for every bound and way of drawing."""
    trained = train(design, epsilon, delta)
    print(
        f"\nA user has {design.value}: ε = {epsilon:g}, δ = {delta:g}, r = {trained.gradient_similarity:.2f}, "
        f"{trained.seeds} seeds; accuracy without noise {trained.noiseless_accuracy:.3f}"
    )
    print(f"{'drawn':<10}{'G':>4}{'noise':>9}{'estimate':>10}{'accuracy':>18}{'rate':>6}")
    rows = zip(trained.options, trained.mean_accuracy, trained.standard_error, trained.rates, strict=True)
    for option_, mean, error, rate in rows:
        accuracy = f"{mean:.3f} ± {error:.3f}"
        print(
            f"{option_.sampling.value:<10}{option_.bound:>4}{option_.multiplier:>9.3g}{option_.error:>10.3g}"
            f"{accuracy:>18}{rate:>6.3g}"
        )


if __name__ == "__main__":
    for each in UserDesign:
        print_design(each, 2.0, 1e-5)
