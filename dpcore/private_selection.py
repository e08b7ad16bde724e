"""A bound selected privately straight from the data, without the private answer.

The question is asked of a made-up table with the names of the data's columns. So every refusal and every word depends
on what the person entered, and on nothing that a user did. The data are read once, by public rules
(`dpcore.counting.user_amounts`), and only the selection sees them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore import questions
from dpcore.common.errors import InvalidInput, refuse
from dpcore.common.privacy import Charge, Disclosure, classify
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.counting import frames
from dpcore.counting.held import File, Held
from dpcore.counting.memory_tables import is_table
from dpcore.counting.user_amounts import UserAmounts, read_user_amounts, roles_for
from dpcore.dataset import Contribution, Dataset, Pairs, Totals, Values
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice.answer import drawing
from dpcore.private_choice.release_bounds import BoundDraw, Bounded, drawable_totals, in_units

if TYPE_CHECKING:
    from dpcore.per_group.private_pair import PrivatePair
    from dpcore.private_choice.choice import PrivateChoice
    from dpcore.reply import Drawn


def select_privately(
    question: str,
    data: Any,
    settings: Mapping[str, Any],
    epsilon: float | None = None,
    *,
    largest: int = 10_000,
    margin: float = 0.0,
    unit: float | None = None,
    highest_amount: float | None = None,
    charge: Charge | None = None,
) -> Drawn:
    """Select the bound of a question privately: a DP release, fresh at every call.

    The answer on the private data is not computed, so no user decides whether there is one. Rows that name no user
    are left out, cells that hold no number count as 0, and negative totals count as 0. Data without rows are allowed.

    Args:
        question: Name of the call, such as ``"sum_bound"``.
        data: As the call takes it.
        settings: Those of the call by name, its columns and its epsilon among them.
        epsilon: Of the selection, on top of that of the release; 0.1 by default. For ``"private_bound"`` its own
            settings hold.
        largest: Public maximum of rows per user; no bound above it is selected.
        margin: Of sums and counts: how many users more than 1/epsilon to leave above the bound.
        unit: Of sums per group: what amounts are rounded to, public.
        highest_amount: Of sums per group: public maximum of one user's amount in a group.
        charge: Told what the selection guarantees before anything is drawn.

    Returns:
        What was selected, with its label and its program, and with nothing else of the data.

    Raises:
        InvalidInput: A setting or a column is missing or wrong, or the data are no table. No sentence depends on the
            rows of one user.
    """
    selectable = (*questions.SELECTABLE, "private_bound")
    if question not in selectable:
        raise refuse(f"a bound is selected privately for {', '.join(selectable)}; got {question!r}")
    beside = {"largest": largest, "margin": margin, "unit": unit, "highest_amount": highest_amount}
    columns = _columns(data, settings)
    stated = settings.get("disclosure", Disclosure.PRIVATE)
    provenance = data.provenance if isinstance(data, Dataset) else frames.provenance_of(stated)
    if not isinstance(provenance, Disclosure):
        raise refuse("a bound that is read off a DP release may be published, and needs no draw")
    stand_in = _stand_in(columns, classify(provenance))
    asked_of = {name: setting for name, setting in settings.items() if name not in columns}
    # The settings are checked before any row is read.
    reply = questions.reply_of(question, stand_in, asked_of | _named(question, columns))
    asked = reply.private_question(epsilon, **beside)
    amounts = _read(data, columns, asked)
    shown_as = _stand_in(columns, classify(provenance), amounts)
    if isinstance(asked, BoundDraw) and asked.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP):
        # Its program is that of the answer, which names the file.
        reply = questions.reply_of(question, shown_as, asked_of | _named(question, columns))
    return reply.reply_with_release(_draw(asked, amounts, columns, charge), asked, shown_as)


def _columns(data: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns by what they mean: those of the settings, or of data that were counted before."""
    columns = {name: settings.get(name) for name in ("user", "value", "group")}
    if isinstance(data, Dataset):
        columns["user"] = data.privacy_unit
        columns["value"] = data.values.column if data.values is not None else None
        if data.totals is not None and data.totals.column:
            columns["value"] = data.totals.column
        columns["group"] = (data.pairs.column, *data.pairs.further_columns) if data.pairs is not None else ()
    return columns


def _named(question: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that the call takes."""
    asked = questions.ASKED[question]
    return {name: column for name, column in columns.items() if name in asked.columns and column is not None}


def _stand_in(columns: dict[str, Any], disclosure: Disclosure, amounts: UserAmounts | None = None) -> Dataset:
    """Return a made-up table of three users with these columns; of the data it has the file's name and format."""
    user, group = frames.several(columns["user"]), frames.several(columns["group"])
    value, sizes = columns["value"], np.array([1, 2, 3])
    pairs = None
    if group:
        added: dict[str, Any] = {}
        if value is not None:
            added = {
                "sums": sizes,
                "sums_of_squares": sizes,
                "value_column": value,
                "value_range": (1.0, 1.0),
            }
        pairs = Pairs(
            np.arange(3),
            np.zeros(3, dtype=np.int64),
            1,
            group[0],
            rows=sizes,
            further_columns=tuple(group[1:]),
            **added,
        )
    histogram = ContributionHistogram.from_counts(sizes)
    return Dataset(
        name=amounts.name if amounts is not None and amounts.name else "data",
        source="A made-up table.",
        disclosure=disclosure,
        histogram=histogram,
        privacy_unit=tuple(user),
        values=None if value is None else Values(np.repeat(np.arange(3), sizes), np.ones(6), value),
        totals=Totals.of_contributions(histogram) if value is None else Totals(sizes, value),
        pairs=pairs,
        layout=None if amounts is None else amounts.layout,
    )


def _read(data: Any, columns: dict[str, Any], asked: drawing.Asked) -> UserAmounts:
    """Return what the selection is drawn from."""
    of_groups = isinstance(asked, PrivatePairProblem)
    of_values = of_groups and asked.parameters.statistic is Statistic.SUM  # type: ignore[union-attr]
    of_values |= isinstance(asked, BoundDraw) and asked.wanted is Bounded.TOTAL
    if isinstance(data, Dataset):
        return _of_dataset(data)
    if isinstance(data, ContributionHistogram):
        return UserAmounts(data)
    user, group, value = frames.several(columns["user"]), frames.several(columns["group"]), columns["value"]
    named = [*user, *group, *([value] if value is not None else [])]
    if isinstance(data, str | os.PathLike):
        data = [data]
    paths: Sequence[File] | None = None
    names: list[str] | None = None
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        paths = [Path(one) for one in data]
    elif is_table(data):
        paths, names = [Held(frames.as_parquet(data, named))], [frames.FRAME]
    if paths is None:
        return UserAmounts(_counts(data))
    if not user:
        try:
            return _of_dataset(frames.to_dataset(data, value=value, group=group or None))
        except InvalidInput:
            what = "the data cannot be read without a column of users"
            raise refuse(what, remedy="Say which column names the user: user=…") from None
    roles = roles_for(user, group, value, of_groups=of_groups, of_values=of_values)
    read = read_user_amounts(paths, names, roles, named)
    return _of_dataset(read) if isinstance(read, Dataset) else read


def _counts(data: Any) -> ContributionHistogram:
    """Return the histogram of rows per user; what is no whole number of at least 1 is left out."""
    try:
        counts = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        counts = np.zeros((0, 0))
    if counts.ndim != 1:
        raise refuse("data must be a table, the path of a file, rows per user as numbers, or a histogram")
    counts = np.floor(np.minimum(counts[counts >= 1.0], MAX_SIZE))  # NaN is not.
    return ContributionHistogram.from_counts(counts) if counts.size else ContributionHistogram.nobody()


def _of_dataset(data: Dataset) -> UserAmounts:
    """Return the amounts of data that were counted before."""
    if data.contribution is not Contribution.ROWS:
        raise refuse(
            "a bound is selected straight from rows here", remedy="Draw it from the answer: answer.draw(…)"
        )
    totals = drawable_totals(data)
    if data.pairs is None:
        return UserAmounts(data.histogram, totals, name=data.name, layout=data.layout)
    rows = np.ones_like(data.pairs.user_codes) if data.pairs.rows is None else data.pairs.rows
    return UserAmounts(
        data.histogram, totals, data.pairs.user_codes, rows, data.pairs.sums, data.layout, data.name
    )


def _draw(
    asked: drawing.Asked, amounts: UserAmounts, columns: dict[str, Any], charge: Charge | None
) -> PrivateChoice | PrivatePair:
    from dpcore.per_group import private_pair
    from dpcore.private_choice import choice

    if isinstance(asked, PrivatePairProblem):
        label = " × ".join(frames.several(columns["group"]))
        return private_pair.choose(asked, _pairs(amounts), charge, label)
    if isinstance(asked, BoundDraw) and asked.wanted is Bounded.TOTAL:
        totals = np.zeros(0) if amounts.totals is None else amounts.totals
        units = in_units(totals, asked.unit, asked.largest)
        return choice.choose(asked.choice, units, charge, columns["value"] or "")
    return choice.choose(asked.choice, amounts.histogram, charge)


def _pairs(amounts: UserAmounts) -> UserGroupPairs | None:
    """Return the pairs with made-up codes of groups: the selection asks only how many groups each user is in."""
    if amounts.user_codes is None or amounts.rows is None or not amounts.user_codes.size:
        return None
    users = amounts.user_codes
    starts = np.flatnonzero(np.r_[True, np.diff(users) != 0])
    groups = np.arange(users.size) - np.repeat(starts, np.diff(np.r_[starts, users.size]))
    return UserGroupPairs(users, groups, amounts.rows, int(groups.max()) + 1, amounts.sums)
