"""What each question compares over ε: the function `against_epsilon` of its answer, kept for every ε."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from dpcore.answer.against import BoundComparison, MethodComparison
from pages.shared.base.cache import cached
from pages.shared.base.question import Question

AT_ONE = 1.0
"""The ε of the key under which functions of ε are kept: they do not depend on the one in use."""


Compared = BoundComparison | MethodComparison | str
"""What a question compares; in words, why it does not."""


def declared_by(of: Question) -> Callable[[Any, Any], Compared] | None:
    """Return the function ``against_epsilon`` of the question's answer; None where it declares none."""
    module = _answers(of.name)
    against: Callable[[Any, Any], Compared] | None = getattr(module, "against_epsilon", None)
    return against


def _answers(name: str) -> Any:
    """Return the module that answers a question: in the core, or beside its page; None without one."""
    places = (f"dpcore.{name}.answer", f"pages.{name}.answer")
    # Asked of the folder first: `find_spec` raises where that is not there.
    known = (at for at in places if find_spec(at.rpartition(".")[0]) and find_spec(at))
    return next((importlib.import_module(at) for at in known), None)


def asked(of: Question, parameters: Any) -> Any:
    """Return the question without what nothing that is compared depends on, and at one ε: the key of what is
    kept.

    Raises:
        InvalidInput: It cannot be asked at that ε.
    """
    return plain_question(parameters, _answers(of.name), AT_ONE)


def plain_question(parameters: Any, module: Any, epsilon: float) -> Any:
    """Return the parameters at an epsilon, with what the module names as not compared set to its defaults."""
    aside = getattr(module, "NOT_COMPARED", ())
    defaults = {f.name: f.default for f in dataclasses.fields(parameters) if f.name in aside}
    return dataclasses.replace(parameters, epsilon=epsilon, **defaults)


def compared(of: Question, parameters: Any, data: Any) -> Compared:
    """Return what the question compares on these data, kept for every ε; in words, why it does not.

    Args:
        of: The question.
        parameters: Its parameters object.
        data: A data set, or what the page has for itself, with ``digest``.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if declared_by(of) is None:
        return "This page compares nothing over ε."
    return _against(of.name, data.digest, asked(of, parameters), data)


@cached(max_entries=8)
def _against(name: str, digest: str, parameters: Any, _data: Any) -> Compared:
    answer: Compared = _answers(name).against_epsilon(_data, parameters)
    assert isinstance(answer, BoundComparison | MethodComparison | str)
    return answer
