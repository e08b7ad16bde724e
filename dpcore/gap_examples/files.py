"""Files that a person takes away. Every file carries the label of the data it was computed from."""

from __future__ import annotations

import math

import numpy as np

from dpcore import mean
from dpcore.common.privacy import Provenance
from dpcore.common.strict_json import finite_or_none, write_document
from dpcore.gap_examples.compare import Comparison, compute_noise_ratio
from dpcore.gap_examples.two_groups import supremum
from dpcore.mean.files import error_parts
from dpcore.report.csv_files import write_columns

INSTANCE_SCHEMA = "sweetspot/gap-instance/1"


def instance_csv(problem: mean.MeanProblem, disclosure: Provenance) -> str:
    """Write an instance as a histogram, which the page *Data* opens, with its noise ratio in every line.

    Columns: ``size`` (rows per user), ``users``, ``noise_ratio`` (rho = 2 (B / epsilon)^2 / sigma^2, in rows),
    ``label``.

    Args:
        problem: The instance.
        disclosure: Of the data behind it.
    """
    histogram = problem.histogram
    return write_columns(
        {
            "size": histogram.sizes,
            "users": histogram.users,
            "noise_ratio": np.full(histogram.sizes.shape, compute_noise_ratio(problem)),
        },
        disclosure,
    )


def instance_json(comparison: Comparison, disclosure: Provenance) -> str:
    """Write an instance with both its optima and their proofs as JSON, indented, with a schema version.

    ``epsilon_for_unit_values`` is the epsilon that gives the noise ratio for values in [0, 1] of worst-case
    variance 1/4.

    Args:
        comparison: The instance and its optima.
        disclosure: Of the data behind it.
    """
    problem, rho = comparison.problem, comparison.noise_ratio
    instance = {
        "sizes": problem.histogram.sizes.tolist(),
        "users": problem.histogram.users.tolist(),
        "noise_ratio": finite_or_none(rho),
        "epsilon_for_unit_values": math.sqrt(8.0 / rho) if math.isfinite(rho) else None,
    }
    answer = {
        "ratio": comparison.ratio,
        "ratio_at_least": comparison.ratio_at_least,
        "ratio_at_most": comparison.ratio_at_most,
        "max_contributions": comparison.cap.max_contributions,
        "cap": error_parts(comparison.cap),
        "threshold": comparison.smooth.threshold,
        "smooth": error_parts(comparison.smooth),
    }
    return write_document(
        INSTANCE_SCHEMA,
        label=disclosure.label,
        instance=instance,
        answer=answer,
        largest_ratio_of_any_instance=supremum().ratio,
        source="Epasto et al. 2020, section 3.3; the largest ratio: docs/gap.md",
    )
