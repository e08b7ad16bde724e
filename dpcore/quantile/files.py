"""Files about a quantile that a person takes away; each carries the label of the data it was computed from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.common.documents import finite_or_none, write_choice_document
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.quantile import mechanism
from dpcore.quantile.mechanism import QuantileOutput, WeightKind
from dpcore.quantile.optimal_bound import QuantileChoice
from dpcore.quantile.parameters import QuantileParameters
from dpcore.report.csv_files import write_columns


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


def choice_json(
    dataset: Dataset,
    parameters: QuantileParameters,
    bound: float,
    choices: Sequence[QuantileChoice],
    outputs: Sequence[QuantileOutput],
) -> str:
    """Return the question and its answer as JSON, indented, with a schema version.

    Args:
        dataset: With values.
        parameters: What the person chose.
        bound: h in use, in rows per user.
        choices: The best bound of each kind for the values; may be empty.
        outputs: The answers' distributions at ``bound``, one per quantile.
    """
    question = {
        **to_values(parameters),
        "neighbours": parameters.neighbours.value,
        "mechanism": "exponential mechanism on the weighted rank",
        "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, appendix B",
    }
    answer = {
        "bound": bound,
        "bound_label": dataset.provenance.label,
        "best_for_the_values": [
            {
                "weights": choice.kind.value,
                "bound": choice.bound,
                "expected_rank_error": choice.rank_error,
                # One subsample alone has none.
                "standard_error_over_subsamples": finite_or_none(choice.standard_error),
                "subsamples": choice.subsamples,
                "expected_rank_error_without_bound": choice.unbounded_rank_error,
                "ended": choice.ended,
            }
            for choice in choices
        ],
        "quantiles": [
            {
                "quantile": output.quantile,
                "epsilon": parameters.epsilon_each,
                "expected_rank_error": output.expected_rank_error,
                "subsamples": int(output.subsample_errors.size),
                "least_rank_error": output.least_rank_error,
                "mean_answer": output.mean,
                "interval_95": list(output.interval()),
                "largest_user_weight": output.largest_user_weight,
            }
            for output in outputs
        ],
    }
    assumptions = mechanism.assumptions(parameters.neighbours)
    return write_choice_document(dataset, "quantile", question, {}, answer, assumptions)
