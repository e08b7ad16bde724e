"""The comparisons over ε: calls the function `against_epsilon` of each question's answer, and caches its result."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from dpcore.answer.against import BoundComparison, MethodComparison
from pages.shared.base.cache import cached
from pages.shared.base.question import Question

KEY_EPSILON = 1.0
"""The ε of the key under which functions of ε are kept: they do not depend on the one in use."""


Comparison = BoundComparison | MethodComparison | str
"""A comparison over ε, or a sentence on why there is none."""


def find_comparison_function(question: Question) -> Callable[[Any, Any], Comparison] | None:
    """Return the function ``against_epsilon`` of the question's answer; None if it has none."""
    module = _import_answer_module(question.name)
    compare_over_epsilon: Callable[[Any, Any], Comparison] | None = getattr(module, "against_epsilon", None)
    return compare_over_epsilon


def _import_answer_module(name: str) -> Any:
    """Return the module that answers a question, from the core or beside its page; None if there is none."""
    packages = (f"dpcore.{name}", f"pages.{name}")
    # Asked of the folder first: `find_spec` raises where that is not there.
    modules = (f"{name}.answer" for name in packages if find_spec(name) and find_spec(f"{name}.answer"))
    return next(map(importlib.import_module, modules), None)


def build_cache_key(question: Question, parameters: Any) -> Any:
    """Return the parameters at one ε and without what no comparison depends on: the cache key of a comparison.

    Raises:
        InvalidInput: The parameters are not valid at that ε.
    """
    return reset_uncompared(parameters, _import_answer_module(question.name), KEY_EPSILON)


def reset_uncompared(parameters: Any, module: Any, epsilon: float) -> Any:
    """Return the parameters at an ε, with the fields in the module's ``NOT_COMPARED`` set to their defaults."""
    field_names = getattr(module, "NOT_COMPARED", ())
    defaults = {f.name: f.default for f in dataclasses.fields(parameters) if f.name in field_names}
    return dataclasses.replace(parameters, epsilon=epsilon, **defaults)


def compute_comparison(question: Question, parameters: Any, data: Any) -> Comparison:
    """Return what the question compares over ε on these data, cached, or a sentence on why it compares nothing.

    Args:
        question: The question.
        parameters: Its parameters object.
        data: A data set, or the page's own data, with ``digest``.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if find_comparison_function(question) is None:
        return "This page compares nothing over ε."
    return _compute_cached(question.name, data.digest, build_cache_key(question, parameters), data)


@cached(max_entries=8)
def _compute_cached(name: str, digest: str, parameters: Any, _data: Any) -> Comparison:
    comparison: Comparison = _import_answer_module(name).against_epsilon(_data, parameters)
    assert isinstance(comparison, BoundComparison | MethodComparison | str)
    return comparison
