"""The runs of a study, and the budget by item, as files."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from dpcore.factorisation.allocation import BudgetShares
from dpcore.factorisation.measures import BUCKETS
from dpcore.factorisation.study import MODEL_KINDS, StudyResult


def runs_csv(result: StudyResult, label: str) -> str:
    """Write one line per model, epsilon, seed and bucket that was reached.

    Columns: model (name of a `ModelKind`), epsilon (empty for models without privacy), seed (from 0), items
    (``all``, or the bucket from 1, the rarest, to `BUCKETS`), rmse (in the ratings' unit), recall (empty where
    not measured).

    Args:
        result: Of the study.
        label: What the numbers are, written as a comment on top.
    """
    lines = [f"# {label}", "model,epsilon,seed,items,rmse,recall"]
    for model_index, model_kind in enumerate(MODEL_KINDS):
        for epsilon_index, epsilon in enumerate(result.study.epsilons):
            if epsilon_index and not model_kind.is_private:
                break
            for seed in range(result.study.repeats):
                for bucket in range(1 + BUCKETS):
                    rmse = float(result.rmse[model_index, epsilon_index, seed, bucket])
                    recall = float(result.recall[model_index, epsilon_index, seed, bucket])
                    if not math.isfinite(rmse):
                        continue
                    epsilon_text = repr(epsilon) if model_kind.is_private else ""
                    lines.append(
                        f"{model_kind.name.lower()},{epsilon_text},{seed},{bucket or 'all'},"
                        + f"{rmse!r},{recall!r}".replace("nan", "")
                    )
    return "\n".join(lines) + "\n"


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
