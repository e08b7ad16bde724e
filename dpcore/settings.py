"""Settings as a person writes them: options by value or name, and former names, accepted for one version."""

from __future__ import annotations

import contextlib
import enum
import sys
import types
import typing
import warnings
from collections.abc import Mapping
from typing import Any

from dpcore.common.checks import refuse
from dpcore.common.text_fields import list_field_types

MOST_LETTERS = 20
"""Longest name of an option that is written in full."""


def find_options_type(hint: Any) -> type[enum.Enum] | None:
    """Return the enumeration of which a setting is a member; None if it is of another type."""
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    return hint if isinstance(hint, type) and issubclass(hint, enum.Enum) else None


def find_option(options: type[enum.Enum], value: Any) -> enum.Enum | None:
    """Return the option of this value or name, in any case; None if there is none."""

    def normalise(text: object) -> str:
        return str(text).lower().replace("-", "_")

    for option in options:
        if normalise(value) in (normalise(option.value), normalise(option.name)):
            return option
    return None


def name_option(option: enum.Enum) -> str:
    """Return the text by which a person names an option: its value in links if that is short, else its name."""
    return str(option.value) if len(str(option.value)) <= MOST_LETTERS else option.name.lower()


def list_options(options: type[enum.Enum]) -> str:
    """List the options of an enumeration for a sentence."""
    return ", ".join(repr(name_option(option)) for option in options)


def rename_former(call: str, parameters_type: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under today's names and values, with a `DeprecationWarning` for each former one.

    Args:
        call: Name of the call, for the sentences.
        parameters_type: Class of its parameters, whose fields say their former names.
        settings: As a person wrote them.

    Raises:
        InvalidInput: A setting stands under both names.
    """
    # Here, as NumPy comes with it, and the list of commands needs none.
    from dpcore.common.parameters import list_former_names

    former_names, renamed = list_former_names(parameters_type), dict(settings)
    for former_name in sorted(set(former_names) & set(settings)):
        name = former_names[former_name]
        if settings.get(name) is not None:
            message = f"{name} stands here under its former name {former_name}, too"
            raise refuse(message, remedy=f"Leave out {former_name}")
        _warn(f"{former_name} of {call} is now called {name}; the former name will go with the next version")
        renamed[name] = renamed.pop(former_name)
    for name, hint in list_field_types(parameters_type).items():
        options, text = find_options_type(hint), renamed.get(name)
        if options is not None and isinstance(text, str) and find_option(options, text) is None:
            with contextlib.suppress(ValueError):
                option = options(text)  # Only `_missing_` of the enumeration knows a former value.
                message = f"{text!r} of {name} is now called {option.value!r}"
                _warn(f"{message}; the former value will go with the next version")
                renamed[name] = option
    return renamed


def _warn(message: str) -> None:
    """Warn in the line that calls `dpcore`: Python shows no `DeprecationWarning` that points into a package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "dpcore":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DeprecationWarning, stacklevel=level)
