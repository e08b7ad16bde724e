"""One count of rows for all means of a plan, in place of a count of its own for each.

A mean releases sum w (y - L) and sum w (U - y) at one share: from both follow a sum and a number of rows. Where the
rows are released once for all means, a mean releases only the sum of y - c, with c the middle of [L, U]. All have one
bound h on rows: then the number of kept rows n_h is the same, whichever rows are kept. One user moves the sum by at
most h B / 2, B = U - L. The mean is c + sum / rows. With v_j and v_0 the squared noise scales of sum and rows, U the
variance of noise at scale 1 and m = mean - c, it errs, linearised, by

    alpha_j(h) + U (h / n_h)^2 (B^2 / 4 v_j + m^2 v_0),        rows by    excess(h)^2 + U h^2 v_0.

The count is the line *rows* of the plan, under the bound of the means, or one that only the means need. With a bound
the weighted sum of squares is a constant plus sum c_i v_i, and v_i = full v / share^P: a group that has a
share s of the budget has its least error, (sum c_i^(1 / (P + 1)))^(P + 1) full v / s^P, at parts in proportion to
c_i^(1 / (P + 1)). So the group is one line with a list of bounds, and the search with its proof is that of a plan.

A pair has B^2 / 2 + 2 m^2 in place of B^2 / 4 and m^2, and no share for rows: with one mean, or two near an end of
their range, it has less noise, with several more. All ways are solved, and the best is taken; means share a count all
or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS
from dpcore.dataset import Dataset
from dpcore.plan import curves
from dpcore.plan.least_sum import BudgetSplit, find_least_sum
from dpcore.plan.lines import Line, LineStatistic
from dpcore.plan.mean_lines import MAX_CAPS
from dpcore.plan.parameters import Budget, PlanParameters
from dpcore.plan.table import PlannedLine, find_whole_noise


def list_shared_splits(
    dataset: Dataset, parameters: PlanParameters, planned_lines: Sequence[PlannedLine], budget: Budget
) -> list[tuple[tuple[PlannedLine, ...], BudgetSplit]]:
    """List the best split if means share the line of rows, and that if they share a count that follows the lines.

    Each is left out if there is nothing to share, both if the program splits the share of a mean.

    Returns:
        The lines, those of rows and means with one bound and with the noise of the rows in their curves, and the split.
    """
    if parameters.program in MEAN_SPLITTING_PROGRAMS:
        return []
    # Nobody wants the count itself: it weighs nothing.
    rows_line, whole_noise = Line(LineStatistic.ROWS, weight=1e-6), find_whole_noise(parameters)
    count_curve = curves.BoundCurve([0.0], [budget.mechanism.unit_variance], [1.0], whole_noise=whole_noise)
    count_line = PlannedLine(rows_line, count_curve, float(dataset.histogram.num_rows), "rows", 1e100)
    shared_splits = (
        _share_rows(dataset, planned_lines, budget, min_num_means=1),
        _share_rows(dataset, (*planned_lines, count_line), budget, min_num_means=2),
    )
    return [lines_and_split for lines_and_split in shared_splits if lines_and_split is not None]


def _share_rows(
    dataset: Dataset, planned_lines: Sequence[PlannedLine], budget: Budget, min_num_means: int
) -> tuple[tuple[PlannedLine, ...], BudgetSplit] | None:
    """Find the split with the least weighted sum of squared errors if means take the last line of rows.

    None if there is none, or there are fewer means than ``min_num_means``.
    """
    parts_by_mean = {
        line_index: line.mean_parts
        for line_index, line in enumerate(planned_lines)
        if line.mean_parts and dataset.find_column(line.line.column).histogram == dataset.histogram
    }
    rows_line_indices = [
        line_index
        for line_index, line in enumerate(planned_lines)
        if line.line.statistic is LineStatistic.ROWS
    ][-1:]
    if not rows_line_indices or len(parts_by_mean) < min_num_means:
        return None
    bounds, has_all_bounds = curves.list_caps(dataset.histogram.max_size, MAX_CAPS)
    kept_rows, unit_variance = dataset.histogram.count_kept_rows(bounds), budget.mechanism.unit_variance
    rows_line, sharing_indices = planned_lines[rows_line_indices[0]], (*rows_line_indices, *parts_by_mean)
    squared_biases = (dataset.histogram.num_rows - kept_rows) ** 2
    # Per line of the group: error without noise, and the noise of its own at v_i = 1; rows are the first one.
    alphas, betas, count_betas = [squared_biases], [unit_variance * bounds**2], []
    for alpha, pair_beta, value_bound in parts_by_mean.values():
        sum_beta = unit_variance * (bounds / kept_rows * value_bound / 2.0) ** 2
        alphas.append(alpha)
        betas.append(sum_beta)
        # The pair's is 2 (B^2 / 4 + m^2), so that half of it less that of the sum is that of the rows.
        count_betas.append(pair_beta / 2.0 - sum_beta)
    sharing_weights = np.array([planned_lines[line_index].weight for line_index in sharing_indices])
    weighted_betas = sharing_weights[:, None] * np.array(betas)
    weighted_betas[0] += sharing_weights[1:] @ np.array(count_betas)
    power = budget.power
    shared_beta = (weighted_betas ** (1.0 / (power + 1.0))).sum(axis=0) ** (power + 1.0)
    shared_curve = curves.BoundCurve(
        sharing_weights @ np.array(alphas), shared_beta, bounds, has_all_bounds=has_all_bounds
    )
    other_indices = [
        line_index for line_index in range(len(planned_lines)) if line_index not in sharing_indices
    ]
    other_lines = [planned_lines[line_index] for line_index in other_indices]
    weights_of_split = np.array([*(line.weight for line in other_lines), 1.0])
    split = find_least_sum([*(line.curve for line in other_lines), shared_curve], weights_of_split, budget)
    shared_bound = float(shared_curve.find_optimum(budget.divide(split.shares[-1:])).bounds[0])
    bound_index = int(np.searchsorted(bounds, shared_bound))
    weighted_parts = weighted_betas[:, bound_index] ** (1.0 / (power + 1.0))
    shares = np.zeros(len(planned_lines))
    shares[other_indices] = split.shares[:-1]
    shares[list(sharing_indices)] = split.shares[-1] * weighted_parts / weighted_parts.sum()
    shared_lines = list(planned_lines)
    for sharing_index, line_index in enumerate(sharing_indices):
        line_beta, measure_release = betas[sharing_index][bound_index], None
        if sharing_index:
            # All shares grow together with the budget, so that the noise of the rows grows with that of the sum.
            rows_v_factor = float(shares[line_index] / shares[rows_line_indices[0]]) ** power
            line_beta += count_betas[sharing_index - 1][bound_index] * rows_v_factor
            if (square_moved := planned_lines[line_index].square_moved) is not None:
                measure_release = partial(square_moved, rows_v_factor=rows_v_factor)
        line_curve = curves.BoundCurve(
            [alphas[sharing_index][bound_index]],
            [line_beta],
            [shared_bound],
            has_all_bounds=has_all_bounds,
            whole_noise=None if sharing_index else getattr(rows_line.curve, "whole_noise", None),
            measure_release=measure_release,
        )
        shared_lines[line_index] = replace(planned_lines[line_index], curve=line_curve, shares_rows=True)
    certificate = split.certificate
    if certificate is not None:
        # Whole noise of the rows is a little less than the real noise of the proof.
        lower_bound = certificate.lower_bound - rows_line.weight * curves.MAX_VARIANCE_SAVED
        certificate = Certificate(certificate.value, lower_bound, certificate.argument)
    return tuple(shared_lines), BudgetSplit(shares, certificate)
