"""The runs of a study, and the budget by item, as files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpcore.factorisation.allocation import BudgetShares
from dpcore.factorisation.study import StudyResult


def runs_csv(result: StudyResult, label: str) -> str:
    """Write one line per model, epsilon, seed and bucket that was reached.

    Columns: model (name of a `ModelKind`), epsilon (empty for models without privacy), seed (from 0), items
    (``all``, or the bucket from 1, the rarest, to `BUCKETS`), rmse (in the ratings' unit), recall (empty where
    not measured).

    Args:
        result: Of the study.
        label: What the numbers are, written as a comment on top.
    """
    rows = []
    for model_kind in result.study.models:
        errors, recalls = (result.list_runs(model_kind, measure) for measure in ("rmse", "recall"))
        epsilons = result.study.epsilons if model_kind.is_private else ("",)
        for cell in np.argwhere(np.isfinite(errors[: len(epsilons)])):
            index, seed, bucket = cell
            numbers = errors[index, seed, bucket], recalls[index, seed, bucket]
            rows.append((model_kind.name.lower(), str(epsilons[index]), seed, bucket or "all", *numbers))
    columns = ("model", "epsilon", "seed", "items", "rmse", "recall")
    return f"# {label}\n{pd.DataFrame(rows, columns=columns).to_csv(index=False)}"


def budget_table(shares: Sequence[BudgetShares], spreads: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """Build a table of the budget by scheme, a row for each fifth of the items, the rarest first.

    Columns: ``fewest_ratings`` and ``most_ratings`` of an item in it, then for each scheme the share of all
    squared weights that its items get.

    Args:
        shares: Of each scheme.
        spreads: Fewest and most ratings of an item, of each fifth.
    """
    columns = {"fewest_ratings": [low for low, _ in spreads], "most_ratings": [high for _, high in spreads]}
    shares_by_scheme = {scheme_shares.scheme.value: scheme_shares.shares for scheme_shares in shares}
    return pd.DataFrame(
        {**columns, **shares_by_scheme}, index=pd.RangeIndex(1, len(spreads) + 1, name="fifth")
    )
