"""Tables that are counted already: one row per user with a count, and histograms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram
from dpcore.data.column_roles import Roles, user_hint
from dpcore.data.messages import COUNT_REMEDY, SEVERAL_ROWS_REMEDY
from dpcore.data.reading import Reading, Reduced, codes_of, totals_of
from dpcore.data.tables import shown


def from_counts(reading: Reading, roles: Roles) -> Reduced:
    """What a table of one row per user gives."""
    assert roles.count is not None
    rows = reading.rows_with_user(roles)
    counts = reading.whole_numbers(roles.count, rows, MAX_SIZE, COUNT_REMEDY)
    codes = np.arange(rows.size, dtype=np.int64)
    if roles.user is not None:
        cells = reading.table.frame[roles.user].iloc[rows]
        codes = codes_of(cells)
        _, first = np.unique(codes, return_index=True)
        again = (first[codes] != np.arange(codes.size)) & (cells != "").to_numpy(bool)
        reading.flag(
            again,
            rows,
            roles.user,
            "the user has a row already",
            SEVERAL_ROWS_REMEDY,
            lambda i: reading.line(rows[first[codes[i]]]),
        )
    reading.problems.raise_if_any()
    kept = reading.leave_out(counts == 0, rows, "user with a count of 0", "users with a count of 0")
    if not kept.any():
        reading.problems.add("all counts are 0", f"column {shown(roles.count)}", "Choose another column")
        reading.problems.raise_if_any()
    # Only rows without a user can share a code here. float64 is exact: counts are at most 1e12.
    per_user = np.bincount(codes[kept], weights=counts[kept])
    histogram = ContributionHistogram.from_counts(per_user[per_user > 0])
    hint = user_hint(roles, reading.table.columns, histogram.num_users, histogram.max_size)
    reading.notes += [hint] if hint else []
    return histogram, None, totals_of(reading, histogram, None, None, ""), None


def from_histogram(reading: Reading, roles: Roles) -> Reduced:
    """What a table of one row per size gives."""
    assert roles.size is not None
    assert roles.users is not None
    rows = np.arange(len(reading.table.frame), dtype=np.int64)
    remedy = "It must be a whole number; if it is not one, choose another column"
    sizes = reading.whole_numbers(roles.size, rows, MAX_SIZE, remedy)
    users = reading.whole_numbers(roles.users, rows, MAX_USERS, remedy)
    reading.problems.raise_if_any()
    kept = reading.leave_out(sizes == 0, rows, "row of size 0", "rows of size 0")
    kept &= reading.leave_out((users == 0) & kept, rows, "size that nobody has", "sizes that nobody has")
    if not kept.any():
        reading.problems.add(
            "no row has a size above 0 that anybody has",
            f"columns {shown(roles.size)} and {shown(roles.users)}",
            "Choose other columns",
        )
        reading.problems.raise_if_any()
    again = pd.Series(sizes[kept]).duplicated().to_numpy(bool)
    if again.any():
        rows_repeat = "1 row repeats" if again.sum() == 1 else f"{int(again.sum()):,} rows repeat"
        first = reading.line(rows[kept][int(np.argmax(again))])
        reading.notes.append(
            f"{rows_repeat} a size that stood before (first: {first}); their users were added up."
        )
    return ContributionHistogram.from_table(sizes[kept], users[kept]), None, None, None
