"""How each program draws a quantile: its candidates, its law, and its part of epsilon.

| | picks | from |
|---|---|---|
| best known | exponential mechanism under any base distribution, or what OpenDP or PipelineDP do | the whole line |
| plain Python | exponential mechanism | 2,000 candidates, laid evenly |
| OpenDP | permute-and-flip | 1,001 candidates, laid evenly |
| Tumult | exponential mechanism | the interval from L to U |
| PipelineDP, BigQuery | a walk down a tree with noise on every node | 16^4 leaves, laid evenly |

Source: OpenDP 0.16.0, Tumult Analytics 0.21.0 and PipelineDP 0.3.1 with PyDP 1.1.5, which the tests run; for BigQuery
the source of ZetaSQL's APPROX_QUANTILES, as the mechanism of PERCENTILE_CONT is not public.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from dpcore.code import with_opendp, with_python
from dpcore.common.programs import Program
from dpcore.contributions import FloatArray, IntArray
from dpcore.quantile.base_distribution import Base, CandidateBase, build_uniform_base
from dpcore.quantile.rows import Rows

WEIGHTED_PROGRAMS = (Program.PYTHON, Program.BEST)
"""The programs with smooth weights, and with a guarantee if only values change. The others bound rows of users who come
and go."""
BEST_OF = (Program.BEST, Program.OPENDP, Program.PIPELINEDP)
"""The mechanisms that the best known one is picked from: the exponential one on the whole line, permute-and-flip, and
the tree. The tree is for bounded rows of users who come and go; it serves all quantiles with the whole of epsilon."""
TREE_PROGRAMS = (Program.PIPELINEDP, Program.BIGQUERY)
"""The programs whose error is simulated."""
BIGQUERY_ROWS = 5
"""The rows of a user that BigQuery counts at most, drawn at random: kPerUserArrayAggLimit of ZetaSQL's rewriter."""
_TREE_HEIGHT, _NUM_BRANCHES = 4, 16
_NUM_LEAVES = _NUM_BRANCHES**_TREE_HEIGHT
_MIN_COUNT_SHARE = 0.005
"""Children below this share of their siblings' noisy sum count as empty; quantiles are held as far from 0 and 1."""
_QUANTILE_TOLERANCE = 1e-6
_MAX_TRIALS, _TRIALS_PER_SUBSAMPLE = 1000, 25
"""Simulated releases of a tree: at least so many in all, and so many for each random choice of rows."""


def lay_base(program: Program, lower: float, upper: float) -> Base:
    """Build a program's base between two ends: its candidates, equally likely, or the uniform one if it has none."""
    if program is Program.OPENDP:
        num_steps = with_opendp.NUM_CANDIDATES - 1
        step_positions = np.arange(num_steps + 1.0)
    elif program is Program.PYTHON:
        num_steps = with_python.NUM_CANDIDATES
        step_positions = np.arange(num_steps) + 0.5
    else:
        return build_uniform_base(lower, upper)
    return CandidateBase.build_even(np.unique(lower + (upper - lower) * step_positions / num_steps))


def divide_epsilon(program: Program, epsilon: float, num_quantiles: int) -> float:
    """Return the epsilon of each quantile: all of it in PipelineDP, whose tree serves all, else an equal share."""
    if program is Program.PIPELINEDP:
        return epsilon
    return epsilon / (num_quantiles + (1 if program is Program.BIGQUERY else 0))


# Nodes on [0, 1], denser toward 0, where the integrand falls as exp(-u sum p) with a sum of up to the candidates.
_PANEL_EDGES = np.concatenate(([0.0], 4.0 ** np.arange(-6.0, 0.5)))
_GAUSS_NODES, _GAUSS_WEIGHTS = (np.array(x) for x in np.polynomial.legendre.leggauss(8))
_U_NODES = (_PANEL_EDGES[:-1, None] + np.diff(_PANEL_EDGES)[:, None] * (_GAUSS_NODES + 1.0) / 2.0).ravel()
_U_WEIGHTS = (np.diff(_PANEL_EDGES)[:, None] * _GAUSS_WEIGHTS / 2.0).ravel()
# Knots of 1 - p, dense toward 0. Interpolation between them, linear in the root of 1 - p, errs by 1e-5 once integrated.
_NUM_KNOTS = 257
_LOG_MIN_RATIO = -36.0
_KNOTS = np.linspace(0.0, 1.0, _NUM_KNOTS) ** 2
_KNOTS_TIMES_U = np.outer(1.0 - _KNOTS, _U_NODES)
_LOG_BEYOND_SQUARES = np.log1p(-_KNOTS_TIMES_U) + _KNOTS_TIMES_U + _KNOTS_TIMES_U**2 / 2.0
_INVERSE_FACTORS = np.ascontiguousarray((1.0 / (1.0 - _KNOTS_TIMES_U)).T)


def compute_permute_and_flip(log_ratios: FloatArray) -> FloatArray:
    """Compute the probability that permute-and-flip picks each candidate, to about 1e-5 of it.

    The candidate with the largest score plus exponential noise is picked. With p_i the ratio exp((s_i - s_max) / b) and
    u = exp(-(t - s_max) / b) at the winning value t this is

        P(i) = p_i * integral over u from 0 to 1 of prod over j != i of (1 - u p_j).

    Args:
        log_ratios: Scores over the scale b of the noise, less their maximum or not, shape (subsamples, k).

    Returns:
        Shape (subsamples, k); each line sums to 1.

    Source: McKenna and Sheldon 2020; Ding et al. 2021 for the exponential noise.
    """
    # Candidates are sorted into bins of p, so that the product costs as much as the bins, whatever k is. Sums of p and
    # p^2 are exact, so that many small p add up to no error. Columns that nobody picks are left out.
    log_ratios = log_ratios - log_ratios.max(axis=1, keepdims=True)
    likely_indices = np.flatnonzero((log_ratios > _LOG_MIN_RATIO).any(axis=0))
    first_index, stop_index = likely_indices[0], likely_indices[-1] + 1
    probability_ratios = np.exp(log_ratios[:, first_index:stop_index])
    knot_positions = np.sqrt(1.0 - probability_ratios)
    knot_positions *= _NUM_KNOTS - 1
    knot_indices = np.minimum(knot_positions.astype(np.int64), _NUM_KNOTS - 2)
    knot_shares = knot_positions - knot_indices
    knot_indices += (np.arange(probability_ratios.shape[0]) * _NUM_KNOTS)[:, None]
    flat_indices, num_flat_knots = knot_indices.ravel(), probability_ratios.shape[0] * _NUM_KNOTS
    upper_counts = np.bincount(flat_indices, knot_shares.ravel(), num_flat_knots)
    knot_counts = np.bincount(flat_indices, minlength=num_flat_knots) - upper_counts
    knot_counts[1:] += upper_counts[:-1]
    ratio_sums = probability_ratios.sum(axis=1)
    squared_ratio_sums = np.einsum("ij,ij->i", probability_ratios, probability_ratios)
    log_products = knot_counts.reshape(-1, _NUM_KNOTS) @ _LOG_BEYOND_SQUARES
    log_products -= ratio_sums[:, None] * _U_NODES + squared_ratio_sums[:, None] * (_U_NODES**2 / 2.0)
    integrals_at_knots = ((np.exp(log_products) * _U_WEIGHTS) @ _INVERSE_FACTORS).ravel()
    integral_differences = np.diff(integrals_at_knots, append=0.0)
    probabilities = np.zeros(log_ratios.shape)
    interpolated_integrals = (
        integrals_at_knots[knot_indices] + knot_shares * integral_differences[knot_indices]
    )
    probabilities[:, first_index:stop_index] = probability_ratios * interpolated_integrals
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def simulate_tree(
    rows: Rows, tree_range: tuple[float, float], quantile: float, noise_scale: float, max_rows: float
) -> FloatArray:
    """Simulate releases of a quantile from a tree of noisy counts.

    The same noise, times its scale, and the same random rows are drawn at every call for the same rows, so that bounds
    are compared under one noise.

    Args:
        rows: The rows, with the seeds of the random choice of rows.
        tree_range: L and U; values outside count as the nearer end.
        quantile: q.
        noise_scale: b of the Laplace noise on every node, in rows.
        max_rows: The most rows of a user that are counted.

    Returns:
        The answers in the values' unit, shape (trials,).

    Source: google/differential-privacy, cc/algorithms/quantile-tree.h, `GetQuantile`.
    """
    rows_before = _find_leaves(rows, *tree_range)
    num_trials_per_subsample = count_trials(rows)
    num_trials = rows.random_orders.num_orders * num_trials_per_subsample
    noise_of_scale_1 = _draw_noise(rows.random_orders.first_seed, num_trials)
    place_blocks, first_trial = [], 0
    for kept_counts in rows.count_kept(max_rows):
        # With no bound to draw for there is one choice of rows, for all trials.
        subsample_indices = np.repeat(np.arange(kept_counts.shape[0]), num_trials_per_subsample)
        if max_rows >= rows.histogram.max_size:
            subsample_indices = np.zeros(noise_of_scale_1.shape[0], dtype=np.int64)
        block_noise = np.rint(
            noise_scale * noise_of_scale_1[first_trial : first_trial + subsample_indices.size]
        )
        place_blocks.append(_walk_tree(rows_before, kept_counts, subsample_indices, quantile, block_noise))
        first_trial += subsample_indices.size
    answer_places = np.concatenate(place_blocks)
    return np.asarray((1.0 - answer_places) * tree_range[0] + answer_places * tree_range[1])


def count_trials(rows: Rows) -> int:
    """Return the number of simulated releases of a tree for each random choice of rows."""
    return max(_TRIALS_PER_SUBSAMPLE, -(-_MAX_TRIALS // rows.random_orders.num_orders))


def _find_leaves(rows: Rows, lower: float, upper: float) -> IntArray:
    """Return the number of rows in the leaves before each leaf and, last, in all leaves, shape (leaves + 1,)."""
    places_in_range = np.clip((rows.ordered_values - lower) / (upper - lower), 0.0, 1.0)
    row_leaves = (places_in_range * (_NUM_LEAVES - 1)).astype(np.int64)
    return np.searchsorted(row_leaves, np.arange(_NUM_LEAVES + 1))


@functools.lru_cache(maxsize=2)
def _draw_noise(seed: int, num_trials: int) -> FloatArray:
    """Draw Laplace noise of scale 1 for the children on each level of a walk, shape (trials, levels, children)."""
    return np.random.default_rng((seed, 1)).laplace(size=(num_trials, _TREE_HEIGHT, _NUM_BRANCHES))


def _walk_tree(
    rows_before: IntArray,
    kept_counts: npt.NDArray[np.int32],
    subsample_indices: IntArray,
    quantile: float,
    level_noise: FloatArray,
) -> FloatArray:
    """Walk from the root to the quantile, and return its place between the ends, from 0 to 1, shape (trials,).

    Args:
        rows_before: Number of rows in the leaves before each leaf, as of `_find_leaves`, shape (leaves + 1,).
        kept_counts: How many of the first i rows each subsample keeps, shape (subsamples, n + 1).
        subsample_indices: The subsample of each trial, shape (trials,).
        quantile: q.
        level_noise: Noise on the children of each level of the walk, in rows, shape (trials, levels, children).
    """
    num_trials = subsample_indices.size
    node_starts, node_sizes = np.zeros(num_trials, dtype=np.int64), np.full(num_trials, _NUM_LEAVES)
    node_quantiles = np.full(num_trials, min(max(quantile, _MIN_COUNT_SHARE), 1.0 - _MIN_COUNT_SHARE))
    # Invariant: the quantile is `node_quantiles` of the way through a node, by its start and size in leaves. A walk
    # whose children look empty stays where it is.
    for level in range(_TREE_HEIGHT):
        child_size = _NUM_LEAVES // _NUM_BRANCHES ** (level + 1)
        child_ends = node_starts[:, None] + child_size * np.arange(_NUM_BRANCHES + 1)
        rows_before_end = rows_before[np.minimum(child_ends, _NUM_LEAVES)]
        noisy_counts = (
            np.diff(kept_counts[subsample_indices[:, None], rows_before_end], axis=1) + level_noise[:, level]
        )
        total_counts = noisy_counts.sum(axis=1)
        filled_counts = np.where(noisy_counts >= total_counts[:, None] * _MIN_COUNT_SHARE, noisy_counts, 0.0)
        filled_total = filled_counts.sum(axis=1)
        goes_deeper = (node_sizes == child_size * _NUM_BRANCHES) & (total_counts > 0.0) & (filled_total > 0.0)
        cumulated_counts = np.cumsum(filled_counts, axis=1)
        target_counts = filled_total * (node_quantiles - _QUANTILE_TOLERANCE)
        child_indices = np.argmax(cumulated_counts >= target_counts[:, None], axis=1)
        counts_up_to_child, child_counts = (
            counts_per_child[np.arange(num_trials), child_indices]
            for counts_per_child in (cumulated_counts, noisy_counts)
        )
        counts_before_child = counts_up_to_child - child_counts
        with np.errstate(divide="ignore", invalid="ignore"):
            child_quantiles = (node_quantiles * filled_total - counts_before_child) / child_counts
        child_quantiles = np.clip(np.nan_to_num(child_quantiles, nan=1.0), 0.0, 1.0)
        node_quantiles = np.where(goes_deeper, child_quantiles, node_quantiles)
        node_starts = np.where(goes_deeper, node_starts + child_indices * child_size, node_starts)
        node_sizes = np.where(goes_deeper, child_size, node_sizes)
    return np.asarray((node_starts + node_quantiles * node_sizes) / _NUM_LEAVES)
