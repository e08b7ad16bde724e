"""Runs of a study as a file."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from dpcore.factorisation.measures import BUCKETS
from dpcore.factorisation.shares import BudgetShares
from dpcore.factorisation.study import KINDS, StudyResult


def runs_csv(result: StudyResult, label: str) -> str:
    """One line per model, epsilon, seed and bucket that was reached.

    Columns: model (name of a `Kind`), epsilon (empty for models without privacy), seed (from 0), items (``all``, or the
    bucket from 1, the rarest, to `BUCKETS`), rmse (in the ratings' unit), recall (empty where not measured).

    Args:
        result: Of the study.
        label: What the numbers are, written as a comment on top.
    """
    lines = [f"# {label}", "model,epsilon,seed,items,rmse,recall"]
    for place, kind in enumerate(KINDS):
        for at, epsilon in enumerate(result.study.epsilons):
            if at and not kind.is_private:
                break
            for seed in range(result.study.repeats):
                for bucket in range(1 + BUCKETS):
                    rmse = float(result.rmse[place, at, seed, bucket])
                    recall = float(result.recall[place, at, seed, bucket])
                    if not math.isfinite(rmse):
                        continue
                    where = repr(epsilon) if kind.is_private else ""
                    lines.append(
                        f"{kind.name.lower()},{where},{seed},{bucket or 'all'},{rmse!r},{recall!r}".replace(
                            "nan", ""
                        )
                    )
    return "\n".join(lines) + "\n"


def budget_table(shares: Sequence[BudgetShares], spreads: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """Who gets the budget, a row for each fifth of the items, the rarest first.

    Columns: ``fewest_ratings`` and ``most_ratings`` of an item in it, then for each scheme the share of all squared
    weights that its items get.

    Args:
        shares: Of each scheme.
        spreads: Fewest and most ratings of an item, of each fifth.
    """
    columns = {"fewest_ratings": [low for low, _ in spreads], "most_ratings": [high for _, high in spreads]}
    given = {of.scheme.value: of.shares for of in shares}
    return pd.DataFrame({**columns, **given}, index=pd.RangeIndex(1, len(spreads) + 1, name="fifth"))
