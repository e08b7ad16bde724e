"""The pure core of Sweet Spot: how much may one user contribute to a differentially private release?

``dpcore.mean_bound(data, epsilon=1, lower=0, upper=100)`` and its kin ask a question of a person's own data, one call
each. `help(dpcore.mean_bound)` says what one takes. These are all:

    count_bound: Find the best bound on rows per user for a count of rows.
    dropped_cells: Count the cells that `select_privately` would leave out or count as 0.
    examples_bound: Choose how many examples of a user a private training keeps, and whether it draws examples or users.
    group_bounds: Find the best pair of bounds for a release per group, and the best bound on a user's whole vector.
    learning_bound: Find the best bound on rows per user for a private learner.
    mean_bound: Find the best bound on rows per user for a mean, and the best smooth weights.
    owners: Decide by the bounds who should train together: the users of the data as owners, or entered owners.
    plan_bounds: Divide one budget among several statistics, each under the bound that is best for its share.
    private_bound: Compute what it costs to choose a bound with an epsilon of its own, directly or on a DP histogram.
    quantile_bound: Find the best bound for private quantiles, and the rank error of the answers.
    rating_weights: Choose which items get a user's budget in a recommender, and decide whether it beats item means.
    regression_weights: Compute the weights of rows in a linear regression of private labels on public features.
    select_privately: Select the bound of a question privately: a DP release, fresh at every call.
    select_range: Select privately the range that a mean clamps values to: a DP release, fresh at every call.
    sum_bound: Find the best bound on what one user adds to a sum.
    task_weights: Divide a user's privacy budget among tasks if one model per task is trained.
    training_bound: Find how much a user may weigh when a private classifier is trained.
    variance_bound: Find the best bound on rows per user for a variance.
    weights_gain: Compare the best cap with the best smooth weights, on these data and on the paper's examples.

The mathematics stands in modules that are imported by name (``from dpcore import mean``). No module knows Streamlit,
and a call loads the modules that it needs. See ``dpcore/README.md`` for notation and layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcore.common import version

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__version__ = version.VERSION
PRIVATE_CALLS = "select_privately", "select_range", "dropped_cells"
"""Calls of `dpcore.private_selection`."""


def __getattr__(attribute_name: str) -> Callable[..., Any]:
    # `from dpcore import mean` comes here first, too, and is to load no more than that.
    if attribute_name in PRIVATE_CALLS:
        from dpcore import private_selection

        private_call: Callable[..., Any] = getattr(private_selection, attribute_name)
        return private_call
    if attribute_name == "owners" or "_" in attribute_name.strip("_"):
        from dpcore import questions

        if attribute_name in questions.QUESTIONS:
            globals()[attribute_name] = questions.call_of(attribute_name)
            question_call: Callable[..., Any] = globals()[attribute_name]
            return question_call
    raise AttributeError(f"module 'dpcore' has no attribute {attribute_name!r}")


def __dir__() -> list[str]:
    from dpcore import questions

    return sorted(
        {*(name for name in globals() if name.startswith("__")), *questions.QUESTIONS, *PRIVATE_CALLS}
    )
