"""Several private quantiles of the same values at once, and the files about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import require
from dpcore.common.privacy import Provenance
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.quantile.mechanism import QuantileOutput, QuantileProblem, outputs
from dpcore.quantile.rows import WeightKind
from dpcore.report.content import write_columns

MAX_DRAWS = 1_000_000
_BLOCK_CELLS = 4_000_000


def compute_outputs(
    problem: QuantileProblem, quantiles: npt.ArrayLike, weighting: WeightKind, bound: float
) -> tuple[QuantileOutput, ...]:
    """Return the distributions of several quantiles at once, epsilon split evenly (basic composition).

    Args:
        problem: The question; its own ``quantile`` does not matter, its epsilon is for all together.
        quantiles: Each strictly between 0 and 1, shape (j,), j at least 1.
        weighting: Smooth weights or a cap.
        bound: h as in `dpcore.quantile.output`.

    Returns:
        One distribution per quantile, in the order of ``quantiles``.

    Raises:
        InvalidInput: A figure is out of its range.
    """
    return outputs(split(problem, quantiles), weighting, bound)


def split(problem: QuantileProblem, quantiles: npt.ArrayLike) -> list[QuantileProblem]:
    """Return the questions for several quantiles of the same rows, epsilon split evenly."""
    levels = np.asarray(quantiles, dtype=np.float64)
    epsilon = problem.epsilon / levels.size
    return [problem.with_changes(epsilon=epsilon, quantile=float(q)) for q in levels]


def sample_answers(
    distributions: Sequence[QuantileOutput],
    size: int,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Draw joint answers block by block, with NumPy noise: a simulation, not a release.

    Under a cap each quantile's answer has a subsample of its own. The independent answers are sorted, which costs
    no privacy, so that a larger quantile never gets a smaller answer.

    Args:
        distributions: From `compute_outputs`.
        size: Joint answers to draw, 1 to `MAX_DRAWS`.
        seed: Seed of NumPy's generator.
        progress: Called with the share done, from 0 to 1.
        should_stop: Called before each block; True ends with what there is.

    Returns:
        Answers in the values' unit, shape (draws, number of quantiles); fewer than ``size`` draws if stopped.

    Raises:
        InvalidInput: ``size`` out of its range.
    """
    require.whole(1, MAX_DRAWS, size=size)
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK_CELLS // distributions[0].probability.size)
    ranks = np.argsort(np.argsort([output.quantile for output in distributions]))
    samples = [np.empty((0, len(distributions)))]
    for start in range(0, size, block):
        if should_stop():
            break
        count = min(block, size - start)
        answers = [output.sample(count, generator) for output in distributions]
        samples.append(np.sort(answers, axis=0)[ranks].T)
        progress((start + count) / size)
    return np.concatenate(samples)


def weights_csv(
    histogram: ContributionHistogram, weighting: WeightKind, bound: float, disclosure: Provenance
) -> str:
    """Return the weights per distinct size for a quantile.

    Columns: ``size`` (rows per user), ``users``, ``rows_kept`` (of each such user, at random),
    ``row_weight`` (of a kept row), ``label``. Over the file, the sum of users * rows_kept * row_weight is 1.

    Args:
        histogram: Rows per user.
        weighting: Smooth weights or a cap.
        bound: h in rows per user.
        disclosure: Whether the data are public, private or a release; the file names it.

    Source: Epasto et al. 2020, section 4 (the weights) and appendix B.
    """
    sizes = histogram.sizes
    capped = weighting is WeightKind.CAP
    kept_rows = np.minimum(sizes, int(bound)) if capped else sizes
    weight = np.ones(sizes.shape) if capped else np.minimum(bound, sizes.astype(np.float64)) / sizes
    columns = {
        "size": sizes,
        "users": histogram.users,
        "rows_kept": kept_rows,
        "row_weight": weight / float(histogram.kept_rows(bound)),
    }
    return write_columns(columns, disclosure)
