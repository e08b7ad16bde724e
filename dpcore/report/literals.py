"""Frozen parameter objects as the Python that builds them again."""

from __future__ import annotations

import enum
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

PER_LINE = 12
"""Numbers of a list on one line."""


@dataclass
class Code:
    """Python in the making, with the names that it imports.

    Attributes:
        imports: (module, name) of everything used.
    """

    imports: set[tuple[str, str]] = field(default_factory=set)

    def use(self, name: str, module: str) -> str:
        """Import ``name`` from ``module``; returns the name."""
        self.imports.add((module, name))
        return name

    def of(self, value: Any, indent: int = 0) -> str:
        """An expression that builds ``value``: numbers with every digit, texts quoted, objects by their fields.

        Fields that hold their default, or follow from others, are left out.

        Raises:
            TypeError: A value of a kind that parameters do not hold.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, enum.Enum):
            kind = type(value)
            return f"{self.use(kind.__name__, kind.__module__)}.{value.name}"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        if isinstance(value, np.ndarray):
            return self.of(value.tolist(), indent)
        if isinstance(value, tuple):
            inside = ", ".join(self.of(one, indent) for one in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, list):
            return self._list(value, indent)
        if is_dataclass(value) and not isinstance(value, type):
            return self._object(value, indent)
        raise TypeError(f"cannot write {type(value).__name__} as Python")

    def _list(self, values: list[Any], indent: int) -> str:
        texts = [self.of(value, indent + 4) for value in values]
        if len(texts) <= PER_LINE:
            return f"[{', '.join(texts)}]"
        pad = " " * (indent + 4)
        lines = [", ".join(texts[i : i + PER_LINE]) for i in range(0, len(texts), PER_LINE)]
        return "[\n" + "".join(f"{pad}{line},\n" for line in lines) + " " * indent + "]"

    def _object(self, value: Any, indent: int) -> str:
        kind = type(value)
        name = self.use(kind.__name__, kind.__module__)
        pad = " " * (indent + 4)
        lines = []
        for f in fields(value):
            held = getattr(value, f.name)
            if f.init and (f.default is MISSING or not _same(held, f.default)):
                lines.append(f"{pad}{f.name}={self.of(held, indent + 4)},\n")
        inside = "\n" + "".join(lines) + " " * indent if lines else ""
        return f"{name}({inside})"

    def import_lines(self) -> list[str]:
        """One line per module, sorted."""
        modules: dict[str, list[str]] = {}
        for module, name in sorted(self.imports):
            modules.setdefault(module, []).append(name)
        return [f"from {module} import {', '.join(names)}" for module, names in modules.items()]


def _same(held: Any, default: Any) -> bool:
    return type(held) is type(default) and bool(held == default)
