"""Files to take away: C as Parquet, released coefficients as CSV. Each carries its label."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpcore.common.privacy import Provenance
from dpcore.common.strict_json import MADE_WITH
from dpcore.data.column_names import escape_formula
from dpcore.regression.draw import Draw
from dpcore.regression.estimate import LinearEstimate, user_weights
from dpcore.regression.problem import RegressionProblem


def matrix_parquet(problem: RegressionProblem, estimate: LinearEstimate, disclosure: Provenance) -> bytes:
    """Write C as Parquet, one line per row of the data.

    Columns: ``row`` (from 0, complete rows only), ``user_code``, and one per coefficient. The released coefficients
    are the sums over rows of these numbers times the clipped label, plus noise. The label and the noise's scale stand
    in the file's metadata.
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
    weights = user_weights(problem, estimate)
    columns = {"rows": weights.sizes, "weight": weights.total, "share": weights.total / weights.total.sum()}
    return pd.DataFrame(columns, index=pd.Index(weights.user_codes, name="user"))


def distinct_from(names: Sequence[str], taken: tuple[str, ...]) -> list[str]:
    """Return the names of coefficients, with a word after those that are taken, repeated until all names differ."""
    distinct_names = []
    for name in names:
        new_name = name
        while new_name in taken or (new_name != name and new_name in names):
            new_name = f"{new_name} (coefficient)"
        distinct_names.append(new_name)
    return distinct_names


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
