"""Files a person takes away. Every file carries the label of what it was computed from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore import mean
from dpcore.common.documents import certificate_fields, write_choice_document
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.parameters import assumptions
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


def mean_choice_json(
    dataset: Dataset,
    parameters: mean.MeanParameters,
    problem: mean.MeanProblem,
    cap: mean.CapChoice,
    smooth: mean.SmoothChoice,
) -> str:
    """Return the question and its answer as JSON, indented, with a schema version.

    Numbers the person entered stand under ``question``; numbers computed from the data stand under ``data``
    and ``answer``, each of which names its label.
    """
    label = dataset.provenance.label
    # Without values the worst case, a public figure, has stood in for them.
    stand_in = parameters.variance_source is mean.VarianceSource.FROM_VALUES and dataset.values is None
    used = mean.VarianceSource.WORST_CASE if stand_in else parameters.variance_source
    private = isinstance(problem, private_counts.PrivateCountsProblem)
    setting = _PRIVATE_COUNTS if private else _PUBLIC_COUNTS
    data = {
        "value_variance": problem.value_variance,
        "value_variance_from": used.value,
        "value_variance_label": label if used is mean.VarianceSource.FROM_VALUES else "public input",
    }
    answer = {
        "max_contributions": cap.max_contributions,
        "rows_kept_at_cap": float(dataset.histogram.kept_rows(cap.max_contributions)),
        "cap": error_parts(cap),
        "threshold": smooth.threshold,
        "smooth": error_parts(smooth),
    }
    if problem.table is None:
        read_share = parameters.likeness is mean.Likeness.FROM_VALUES and dataset.values is not None
        data |= {
            "user_share": problem.user_share,
            "user_share_label": label if read_share else "public input",
        }
    asked = {**to_values(parameters), **setting}
    return write_choice_document(dataset, "mean", asked, data, answer, assumptions(problem))


_PUBLIC_COUNTS = {
    "neighbours": mean.NEIGHBOURS.value,
    "mechanism": "Laplace",
    "errors_are": "exact",
    "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 3",
}


_PRIVATE_COUNTS = {
    "neighbours": private_counts.NEIGHBOURS.value,
    "mechanism": "Laplace, on the pair of sums of w (y - L) and w (U - y)",
    "errors_are": private_counts.ERROR_IS,
    "source": "Sweet Spot; Epasto et al. 2020 has public counts only",
}


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
