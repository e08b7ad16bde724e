"""What the package needs, read from the requirements files when it is built, so that no requirement stands twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Requirements(MetadataHookInterface):
    """`requirements-core.txt` for everybody; what `requirements.txt` adds to it for the extra `app`."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = self._listed("requirements-core.txt")
        metadata["optional-dependencies"] = {"app": self._listed("requirements.txt")}

    def _listed(self, name: str) -> list[str]:
        lines = Path(self.root, name).read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip() and not line.startswith(("#", "-r "))]
