"""What the package needs, read from the requirements files when it is built, so that no requirement stands twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Requirements(MetadataHookInterface):
    """`requirements-core.txt` for everybody; the extras of `requirements.txt`, of which the last has all."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = self._read_extras("requirements-core.txt")[""]
        extras = self._read_extras("requirements.txt")
        last_extra = list(extras)[-1]
        extras[last_extra] = [line for lines in extras.values() for line in lines]
        metadata["optional-dependencies"] = {name: lines for name, lines in extras.items() if name}

    def _read_extras(self, file_name: str) -> dict[str, list[str]]:
        """Return the requirements of a file by extra, those before the first under the empty name."""
        lines_by_extra: dict[str, list[str]] = {"": []}
        for line in Path(self.root, file_name).read_text(encoding="utf-8").splitlines():
            if line.startswith("# extra "):
                lines_by_extra[line.removeprefix("# extra ")] = []
            elif line.strip() and not line.startswith(("#", "-r ")):
                lines_by_extra[list(lines_by_extra)[-1]].append(line)
        return lines_by_extra
