"""Files a person takes away. Every file carries the label of the data it was computed from."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpcore import gap_examples, learning, mean
from dpcore.common.documents import choice_document, document, finite
from dpcore.common.privacy import LABEL_COLUMN, Provenance
from dpcore.common.text_fields import to_values
from dpcore.contributions import FloatArray
from dpcore.data.tables import harmless, harmless_line
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.mean import private_counts


def columns_csv(
    columns: Mapping[str, npt.ArrayLike], sensitivity: Provenance, notes: Sequence[str] = ()
) -> str:
    """A CSV with one column per entry and a last column ``label`` saying what the numbers are.

    Args:
        columns: Column name to values; all of one length. Floats keep every digit.
        sensitivity: Of the data that the numbers were computed from.
        notes: Go on top, one line each behind ``# ``, with a line for the label: `pandas.read_csv` with
            ``comment="#"`` passes them over.
    """
    frame = pd.DataFrame({harmless(name): _harmless(np.asarray(values)) for name, values in columns.items()})
    frame[LABEL_COLUMN] = sensitivity.label
    table = frame.to_csv(index=False, lineterminator="\n")
    if not notes:
        return table
    if "#" in table:  # In quotes it begins no comment.
        table = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    lines = [f"these numbers: {sensitivity.label}", *notes]
    return "".join(f"# {harmless_line(' '.join(line.split()))}\n" for line in lines) + table


def _harmless(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind not in "OUT":
        return values
    return np.array([harmless(v) if isinstance(v, str) else v for v in values.tolist()], dtype=object)


def histogram_csv(dataset: Dataset) -> str:
    """How many users have how many rows, as *Your data* opens it: columns ``size``, ``users``, ``label``.

    The label makes it more than numbers: from a DP release it brings epsilon back (`upload.stated_release`).
    """
    histogram = dataset.histogram
    return columns_csv({"size": histogram.sizes, "users": histogram.users}, dataset.provenance)


def weights_csv(problem: mean.MeanProblem, threshold: float, cap: int, sensitivity: Provenance) -> str:
    """Weights per distinct size, for the smooth weights and for the cap.

    Columns: ``size`` (rows per user), ``users``, ``row_weight`` (smooth weight of one row of such a user),
    ``user_weight`` (of all their rows), ``rows_kept_at_cap``, ``capped_row_weight`` (of a kept row), ``label``.
    Over the file, the sum of users * size * row_weight is 1, and so is that of
    users * rows_kept_at_cap * capped_row_weight.

    Args:
        problem: The question.
        threshold: Threshold of the smooth weights, in rows per user.
        cap: Upper bound on contributions per user.
        sensitivity: Of the data.

    Source: Epasto et al. 2020, lemma 3 and claim 2.
    """
    sizes = problem.histogram.sizes
    row_weight = mean.user_weight(problem, threshold, sizes)
    return columns_csv(
        {
            "size": sizes,
            "users": problem.histogram.users,
            "row_weight": row_weight,
            "user_weight": row_weight * sizes,
            "rows_kept_at_cap": np.minimum(sizes, cap),
            "capped_row_weight": np.full(sizes.shape, 1.0 / float(problem.histogram.kept_rows(cap))),
        },
        sensitivity,
    )


def pair_weights_csv(
    problem: private_counts.PrivateCountsProblem, threshold: float, cap: int, sensitivity: Provenance
) -> str:
    """Weights per distinct size where counts are private too: not divided by n_h, which nobody may know.

    Columns: ``size`` (rows per user), ``users``, ``row_weight`` = min(h, size) / size, ``user_weight`` =
    min(h, size), ``rows_kept_at_cap`` (each with weight 1), ``label``. Laplace noise of scale B h / epsilon
    goes on each of the two sums, with h the threshold or the cap.

    Args:
        problem: The question.
        threshold: Threshold of the smooth weights, in rows per user.
        cap: Upper bound on contributions per user.
        sensitivity: Of the data.
    """
    sizes = problem.histogram.sizes
    kept = np.minimum(threshold, sizes.astype(np.float64))
    return columns_csv(
        {
            "size": sizes,
            "users": problem.histogram.users,
            "row_weight": kept / sizes,
            "user_weight": kept,
            "rows_kept_at_cap": np.minimum(sizes, cap),
        },
        sensitivity,
    )


def mean_choice_json(
    dataset: Dataset,
    parameters: mean.MeanParameters,
    problem: mean.MeanProblem,
    cap: mean.CapChoice,
    smooth: mean.SmoothChoice,
) -> str:
    """The question and its answer as JSON, indented, with a schema version.

    Numbers the person entered stand under ``question``; numbers computed from the data stand under ``data``
    and ``answer``, each of which names its label.
    """
    label = dataset.provenance.label
    # Without values the worst case, a public figure, has stood in for them.
    stand_in = parameters.noise is mean.NoiseSource.FROM_VALUES and dataset.values is None
    used = mean.NoiseSource.WORST_CASE if stand_in else parameters.noise
    private = isinstance(problem, private_counts.PrivateCountsProblem)
    setting = _PRIVATE_COUNTS if private else _PUBLIC_COUNTS
    data = {
        "contribution": dataset.contribution.value,
        "num_users": dataset.histogram.num_users,
        "num_rows": dataset.histogram.num_rows,
        "noise_variance": problem.noise_variance,
        "noise_variance_from": used.value,
        "noise_variance_label": label if used is mean.NoiseSource.FROM_VALUES else "public input",
    }
    answer = {
        "max_contributions": cap.max_contributions,
        "rows_kept_at_cap": float(dataset.histogram.kept_rows(cap.max_contributions)),
        "cap": _errors(cap),
        "threshold": smooth.threshold,
        "smooth": _errors(smooth),
    }
    assumptions = private_counts.ASSUMPTIONS if private else mean.ASSUMPTIONS
    return choice_document(dataset, "mean", {**to_values(parameters), **setting}, data, answer, assumptions)


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


def _errors(choice: mean.CapChoice | mean.SmoothChoice) -> dict[str, Any]:
    return {
        "standard_error": choice.standard_error,
        "variance": choice.variance,
        "sampling_variance": choice.sampling_variance,
        "privacy_variance": choice.privacy_variance,
        # What goes into the mechanism: Laplace noise of scale b has variance 2 b^2.
        "laplace_scale": math.sqrt(choice.privacy_variance / 2.0),
        "proved_relative_gap": choice.certificate.relative_gap,
        "proof": choice.certificate.argument,
    }


INSTANCE_SCHEMA = "sweetspot/gap-instance/1"


def instance_csv(problem: mean.MeanProblem, sensitivity: Provenance) -> str:
    """An instance as a histogram, which *Your data* opens, with its noise ratio in every line.

    Columns: ``size`` (rows per user), ``users``, ``noise_ratio`` (rho = 2 (B / epsilon)^2 / sigma^2, in rows),
    ``label``.

    Args:
        problem: The instance.
        sensitivity: Of the data behind it.
    """
    histogram = problem.histogram
    return columns_csv(
        {
            "size": histogram.sizes,
            "users": histogram.users,
            "noise_ratio": np.full(histogram.sizes.shape, gap_examples.noise_ratio(problem)),
        },
        sensitivity,
    )


def instance_json(comparison: gap_examples.Comparison, sensitivity: Provenance) -> str:
    """An instance with both its optima and their proofs as JSON, indented, with a schema version.

    ``epsilon_for_unit_values`` is the epsilon that gives the noise ratio for values in [0, 1] of worst-case
    variance 1/4.

    Args:
        comparison: The instance and its optima.
        sensitivity: Of the data behind it.
    """
    problem, rho = comparison.problem, comparison.noise_ratio
    instance = {
        "sizes": problem.histogram.sizes.tolist(),
        "users": problem.histogram.users.tolist(),
        "noise_ratio": finite(rho),
        "epsilon_for_unit_values": math.sqrt(8.0 / rho) if math.isfinite(rho) else None,
    }
    answer = {
        "ratio": comparison.ratio,
        "ratio_at_least": comparison.ratio_at_least,
        "ratio_at_most": comparison.ratio_at_most,
        "max_contributions": comparison.cap.max_contributions,
        "cap": _errors(comparison.cap),
        "threshold": comparison.smooth.threshold,
        "smooth": _errors(comparison.smooth),
    }
    return document(
        INSTANCE_SCHEMA,
        label=sensitivity.label,
        instance=instance,
        answer=answer,
        largest_ratio_of_any_instance=gap_examples.supremum().ratio,
        source="Epasto et al. 2020, section 3.3; the largest ratio: docs/gap.md",
    )


def learning_curves(problem: optimal_cap.BiasProblem, fractions: npt.ArrayLike) -> dict[str, FloatArray]:
    """The bound of a capped learner in its parts, and every bound on the bias (twice), as columns.

    Columns: ``cap_rows``, ``tau_0``, ``kept_share``, ``largest_share``, ``users_capped``, ``bias_twice``,
    ``finite_sample``, ``privacy_noise``, ``bound``, and ``twice_`` and its name for every bound on the bias. What
    does not apply is infinite.

    Args:
        problem: The question.
        fractions: tau_0 in (0, 1], shape (q,).
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    at, parts = optimal_cap.statistics(problem.histogram, tau_0), optimal_cap.error_parts(problem, tau_0)
    return {
        "cap_rows": tau_0 * problem.histogram.num_rows,
        "tau_0": tau_0,
        "kept_share": at.kept_share,
        "largest_share": at.max_share,
        "users_capped": at.users_capped,
        "bias_twice": parts.bias,
        "finite_sample": parts.finite_sample,
        "privacy_noise": parts.privacy,
        "bound": parts.total,
        **{
            f"twice_{term.value}": 2.0 * values
            for term, values in optimal_cap.bias_terms(problem, tau_0).items()
        },
    }


def learning_choice_json(
    dataset: Dataset,
    parameters: learning.LearningParameters,
    choice: optimal_cap.CapChoice,
    within: tuple[int, int],
) -> str:
    """The question of a capped learner and its answer as JSON; sections as in `mean_choice_json`.

    Args:
        dataset: The data.
        parameters: What was entered.
        choice: The best whole cap.
        within: (smallest, largest) cap within 5 % of the best bound.
    """
    privacy = parameters.privacy
    question = {
        **{k: v for k, v in to_values(parameters).items() if k not in learning.NOT_ABOUT_DATA},
        "bias_bound": parameters.bias.title,
        "bias_needs": parameters.bias.needs,
        "privacy_term": {
            "constant": privacy.constant,
            "power": privacy.power,
            "log_power": privacy.log_power,
        },
        "neighbours": optimal_cap.NEIGHBOURS.value,
        "source": "Amin et al. 2019, Bounding User Contributions, theorem 1 and section 6",
    }
    data = {
        "contribution": dataset.contribution.value,
        "num_users": dataset.histogram.num_users,
        "num_rows": dataset.histogram.num_rows,
    }
    answer = {
        "max_contributions": choice.max_contributions,
        "tau_0": choice.fraction,
        "bound": choice.total,
        "bias_twice": choice.bias,
        "finite_sample": choice.finite_sample,
        "privacy_noise": choice.privacy,
        "promises_something": choice.total < 1.0,
        "kept_share": choice.kept_share,
        "users_capped": choice.users_capped,
        "caps_within_5_percent": list(within),
        "proved_relative_gap": finite(choice.certificate.relative_gap),
        "proof": choice.certificate.argument,
    }
    return choice_document(dataset, "learning under a cap", question, data, answer, learning.ASSUMPTIONS)
