"""Files to take away: C as Parquet, released coefficients as CSV, the choice as JSON. Each carries its label."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpcore.common.documents import MADE_WITH, certificate_fields, write_choice_document
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.regression.draw import Draw
from dpcore.regression.estimate import LinearEstimate, coefficient_variances, user_weights
from dpcore.regression.parameters import ASSUMPTIONS, RegressionParameters, ResidualVarianceSource
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapCurve

CHOICE_SCHEMA = "sweetspot/regression/1"


def matrix_parquet(problem: RegressionProblem, estimate: LinearEstimate, disclosure: Provenance) -> bytes:
    """C, one line per row of the data: ``row`` (from 0, complete rows only), ``user_code``, one column a coefficient.

    The released coefficients are the sums over rows of these numbers times the clipped label, plus noise. The
    label and the noise's scale stand in the file's metadata.
    """
    frame = pd.DataFrame({"row": np.arange(problem.num_rows), "user_code": problem.user_codes})
    for j, name in enumerate(distinct_from(problem.feature_names, ("row", "user_code"))):
        frame[name] = estimate.matrix[j]
    frame.attrs = {
        "label": disclosure.label,
        "made_with": MADE_WITH,
        "epsilon": problem.epsilon,
        "value_bound": problem.value_bound,
        "residual_variance": problem.residual_variance,
        "laplace_scale": estimate.noise.scale,
        "proved_relative_gap": estimate.certificate.relative_gap,
    }
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def user_table(problem: RegressionProblem, estimate: LinearEstimate) -> pd.DataFrame:
    """Return what each user weighs, a row per user code in the order in which users first appear.

    Columns: ``rows``, ``weight`` (sum over coefficients and the user's rows of |C|: the largest sets the noise),
    ``share`` (of all weights).
    """
    of = user_weights(problem, estimate)
    columns = {"rows": of.sizes, "weight": of.total, "share": of.total / of.total.sum()}
    return pd.DataFrame(columns, index=pd.Index(of.user_codes, name="user"))


def distinct_from(names: Sequence[str], taken: tuple[str, ...]) -> list[str]:
    """The names of coefficients, a word behind those that are taken: as often as it takes to be like no other name."""
    found = []
    for name in names:
        shown = name
        while shown in taken or (shown != name and shown in names):
            shown = f"{shown} (coefficient)"
        found.append(shown)
    return found


def released_csv(draws: Sequence[Draw]) -> str:
    """Return every draw of the coefficients, one line per coefficient.

    Columns: ``draw``, ``coefficient``, ``value``, ``noise_scale``, ``half_width_95``, ``label``.
    """
    frames = [
        pd.DataFrame(
            {
                "draw": number,
                "coefficient": [escape_formula(name) for name in draw.names],
                "value": draw.coefficients.release.values,
                "noise_scale": draw.coefficients.release.scale,
                "half_width_95": draw.half_widths,
                "label": draw.coefficients.facts.label,
            }
        )
        for number, draw in enumerate(draws, 1)
    ]
    return pd.concat(frames).to_csv(index=False, lineterminator="\n")


def choice_json(
    dataset: Dataset,
    parameters: RegressionParameters,
    problem: RegressionProblem,
    estimate: LinearEstimate,
    caps: CapCurve | None,
) -> str:
    """Return the question and its answer as JSON, indented, with a schema version.

    What the person entered stands under ``question``, what was computed from the data under ``data`` and
    ``answer``, each with its label. C itself is in the Parquet file.
    """
    entered = parameters.variance_source is ResidualVarianceSource.ENTERED
    variances = coefficient_variances(problem, estimate)
    question = {
        **to_values(parameters),
        "data_source": parameters.source.value,  # ``source`` is the work that the method is from, in every choice.
        "mechanism": "Laplace",
        "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 5",
    }
    data = {
        "feature_names": list(problem.feature_names),
        "residual_variance": problem.residual_variance,
        "residual_variance_label": "public input" if entered else dataset.provenance.label,
    }
    answer = {
        "total_variance": estimate.variance,
        "sampling_variance": estimate.sampling_variance,
        "privacy_variance": estimate.privacy_variance,
        "laplace_scale": estimate.noise.scale,
        "largest_user_weight": estimate.largest_user_weight,
        "standard_errors": np.sqrt(variances).tolist(),
        **certificate_fields(estimate.certificate),
        "ended": estimate.stop_reason,
        "max_contributions": None if caps is None else caps.max_contributions,
        "best_cap_total_variance": None if caps is None else float(caps.variance[caps.best]),
    }
    release = "linear regression with private labels"
    return write_choice_document(dataset, release, question, data, answer, ASSUMPTIONS, CHOICE_SCHEMA)
