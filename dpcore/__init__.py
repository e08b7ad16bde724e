"""The pure core of Sweet Spot: how much may one user contribute to a differentially private release?

``dpcore.mean_bound(data, epsilon=1, lower=0, upper=100)`` and its kin ask a question of a person's own data, one call
each; ``dir(dpcore)`` lists them. The mathematics stands in modules that are imported by name
(``from dpcore import mean``). No module knows Streamlit, and a call loads the modules that it needs. See
``dpcore/README.md`` for notation and layers.
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
