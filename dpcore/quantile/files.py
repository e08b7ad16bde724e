"""Files about a quantile that a person takes away; each carries the label of the data it was computed from."""

from __future__ import annotations

import numpy as np

from dpcore.common.privacy import Provenance
from dpcore.contributions import ContributionHistogram
from dpcore.quantile.mechanism import WeightKind
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
