"""Files a person takes away. Every file carries the label of what it was computed from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore import mean
from dpcore.common.privacy import Provenance
from dpcore.common.strict_json import certificate_fields
from dpcore.mean import private_counts
from dpcore.report.csv_files import write_columns


def weights_csv(problem: mean.MeanProblem, threshold: float, cap: int, disclosure: Provenance) -> str:
    """Return the weights per distinct size, for the smooth weights and for the cap.

    Columns: ``size`` (rows per user), ``users``, ``row_weight`` (smooth weight of one row of such a user),
    ``user_weight`` (of all their rows), ``rows_kept_at_cap``, ``capped_row_weight`` (of a kept row), ``label``.
    Over the file, the sum of users * size * row_weight is 1, and so is that of
    users * rows_kept_at_cap * capped_row_weight.

    Args:
        problem: The question.
        threshold: Threshold of the smooth weights, in rows per user.
        cap: Upper bound on contributions per user.
        disclosure: Whether the data are public, private or a release; the file names it.

    Source: Epasto et al. 2020, lemma 3 and claim 2.
    """
    sizes = problem.histogram.sizes
    row_weight = mean.user_weight(problem, threshold, sizes)
    return write_columns(
        {
            "size": sizes,
            "users": problem.histogram.users,
            "row_weight": row_weight,
            "user_weight": row_weight * sizes,
            "rows_kept_at_cap": np.minimum(sizes, cap),
            "capped_row_weight": np.full(sizes.shape, 1.0 / float(problem.histogram.kept_rows(cap))),
        },
        disclosure,
    )


def pair_weights_csv(
    problem: private_counts.PrivateCountsProblem, threshold: float, cap: int, disclosure: Provenance
) -> str:
    """Return the weights per distinct size where counts are private too: not divided by n_h, which nobody may know.

    Columns: ``size`` (rows per user), ``users``, ``row_weight`` = user_weight / size, ``user_weight`` =
    min(h, size), or where users differ their growing weight, at most h, ``rows_kept_at_cap`` (each with weight 1),
    ``label``. Laplace noise of scale B h / epsilon
    goes on each of the two sums, with h the threshold or the cap.

    Args:
        problem: The question.
        threshold: Threshold of the smooth weights, in rows per user.
        cap: Upper bound on contributions per user.
        disclosure: Whether the data are public, private or a release; the file names it.
    """
    sizes = problem.histogram.sizes
    kept = mean.growth(problem, threshold).scaled_weights(threshold, sizes.astype(np.float64))
    return write_columns(
        {
            "size": sizes,
            "users": problem.histogram.users,
            "row_weight": kept / sizes,
            "user_weight": kept,
            "rows_kept_at_cap": np.minimum(sizes, cap),
        },
        disclosure,
    )


def error_parts(choice: mean.CapChoice | mean.SmoothChoice) -> dict[str, Any]:
    """Return the error of a choice with its parts and its proof, as every file of choices holds it."""
    return {
        "standard_error": choice.standard_error,
        "variance": choice.variance,
        "sampling_variance": choice.sampling_variance,
        "privacy_variance": choice.privacy_variance,
        **({"shift": choice.shift} if choice.shift else {}),
        # What goes into the mechanism: Laplace noise of scale b has variance 2 b^2.
        "laplace_scale": math.sqrt(choice.privacy_variance / 2.0),
        **certificate_fields(choice.certificate),
    }
