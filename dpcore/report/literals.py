"""Frozen parameter objects as Python code that builds them again."""

from __future__ import annotations

import enum
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

NUMBERS_PER_LINE = 12
"""Numbers of a list on one line."""


@dataclass
class Code:
    """Python code under construction, with the names that it imports.

    Attributes:
        imports: (module, name) of everything used.
    """

    imports: set[tuple[str, str]] = field(default_factory=set)

    def import_name(self, name: str, module: str) -> str:
        """Import ``name`` from ``module``, and return the name."""
        self.imports.add((module, name))
        return name

    def write(self, value: Any, indent: int = 0) -> str:
        """Write an expression that builds ``value``: numbers with every digit, texts quoted, objects by their fields.

        Fields that hold their default, or follow from others, are omitted.

        Raises:
            TypeError: A value of a kind that parameters do not hold.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, enum.Enum):
            value_type = type(value)
            return f"{self.import_name(value_type.__name__, value_type.__module__)}.{value.name}"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        if isinstance(value, np.ndarray):
            return self.write(value.tolist(), indent)
        if isinstance(value, tuple):
            items = ", ".join(self.write(item, indent) for item in value)
            return f"({items},)" if len(value) == 1 else f"({items})"
        if isinstance(value, list):
            return self._write_list(value, indent)
        if is_dataclass(value) and not isinstance(value, type):
            return self._write_object(value, indent)
        raise TypeError(f"cannot write {type(value).__name__} as Python")

    def _write_list(self, values: list[Any], indent: int) -> str:
        texts = [self.write(value, indent + 4) for value in values]
        if len(texts) <= NUMBERS_PER_LINE:
            return f"[{', '.join(texts)}]"
        pad = " " * (indent + 4)
        lines = [", ".join(texts[i : i + NUMBERS_PER_LINE]) for i in range(0, len(texts), NUMBERS_PER_LINE)]
        return "[\n" + "".join(f"{pad}{line},\n" for line in lines) + " " * indent + "]"

    def _write_object(self, value: Any, indent: int) -> str:
        value_type = type(value)
        name = self.import_name(value_type.__name__, value_type.__module__)
        pad = " " * (indent + 4)
        lines = []
        for entry in fields(value):
            field_value = getattr(value, entry.name)
            if entry.init and (entry.default is MISSING or not _is_default(field_value, entry.default)):
                lines.append(f"{pad}{entry.name}={self.write(field_value, indent + 4)},\n")
        arguments = "\n" + "".join(lines) + " " * indent if lines else ""
        return f"{name}({arguments})"

    def import_lines(self) -> list[str]:
        """List one import line per module, sorted."""
        modules: dict[str, list[str]] = {}
        for module, name in sorted(self.imports):
            modules.setdefault(module, []).append(name)
        return [f"from {module} import {', '.join(names)}" for module, names in modules.items()]


def _is_default(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
