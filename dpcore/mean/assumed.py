"""What the answers for a mean rest on, by what is asked; sentences without their full stop."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.mean import private_counts, public_counts
from dpcore.mean.models import Target

INDEPENDENT = "Rows are independent draws with one variance, also those of one user"
"""What the settings assume of users where nothing else is said; the third of their sentences."""
TABLE_READ = (
    "The error is that on the rows in this table, about their mean before clamping; nothing is assumed of users",
    "The rows that a bound keeps are drawn at random. Where a library keeps the first rows, the error is another one",
)
EXCHANGEABLE = (
    "The error is that about the mean of the rows in this table",
    "Who has many rows says nothing about the values, and rows that a bound keeps are drawn at random",
)
POPULATION = (
    "The error is that about the mean of the population that users come from, whatever their number of rows"
)


def assumptions(problem: public_counts.MeanProblem) -> tuple[str, ...]:
    """The sentences of the setting, with what is assumed of users in the place of independent rows."""
    private = isinstance(problem, private_counts.PrivateCountsProblem)
    setting = private_counts.ASSUMPTIONS if private else public_counts.ASSUMPTIONS
    at = setting.index(INDEPENDENT)
    return (*setting[:at], *of_users(problem), *setting[at + 1 :])


def of_users(problem: public_counts.MeanProblem) -> tuple[str, ...]:
    """What the error assumes of users and their rows, and which mean it is about."""
    if problem.table is not None:
        return TABLE_READ
    share = wording.number(problem.user_share, 2)
    alike = (
        f"A share of {share} of a row's variance lies between users; the rest are differences within a user"
    )
    alike = INDEPENDENT if problem.user_share == 0.0 else alike
    if problem.target is Target.TABLE:
        return (*EXCHANGEABLE, alike)
    return (alike, POPULATION) if problem.user_share else (alike,)
