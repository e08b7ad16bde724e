"""Write `constraints.txt`: each package that the app needs, at the version in this environment, with its licence.

    python .make/constraints.py

Run it in an environment whose tests have passed. The requirements files hold the ranges that are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# Written by .make/constraints.py: the versions with which the tests last passed, each with the licence that it states.
#     pip install -r requirements.txt -c constraints.txt
"""


def read_requirements(file_name: str = "requirements.txt") -> Iterator[Requirement]:
    """Yield the requirements of a file, those of the files that it names with ``-r`` included."""
    for line in (ROOT / file_name).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            yield from read_requirements(line.removeprefix("-r "))
        elif line.strip() and not line.startswith("#"):
            yield Requirement(line)


def find_distributions() -> dict[str, Distribution]:
    """Return what the app needs on this platform, directly or through others, by canonical name."""
    distributions: dict[str, Distribution] = {}
    open_requirements = list(read_requirements())
    seen_extras: set[tuple[str, str]] = set()
    while open_requirements:
        requirement = open_requirements.pop()
        name = canonicalize_name(requirement.name)
        for extra in ["", *requirement.extras]:
            if (name, extra) in seen_extras:
                continue
            seen_extras.add((name, extra))
            try:
                distributions[name] = distribution(name)
            except PackageNotFoundError:
                raise SystemExit(f"{name} is not installed here.") from None
            for line in distributions[name].requires or ():
                further_requirement = Requirement(line)
                if further_requirement.marker is None or further_requirement.marker.evaluate(
                    {"extra": extra}
                ):
                    open_requirements.append(further_requirement)
    return distributions


def read_licence(package: Distribution) -> str:
    """Return the licence of a package's metadata: its expression, its short text or its classifiers."""
    metadata = package.metadata
    classifiers = [
        text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or () if "License ::" in text
    ]
    licence_text = metadata.get("License-Expression") or metadata.get("License") or ""
    if not licence_text or len(licence_text) > 60 or "\n" in licence_text:
        licence_text = ", ".join(classifiers) or licence_text
    return re.sub(r"\s+", " ", licence_text)[:60] or "see its files"


def main() -> None:
    """Write `constraints.txt`."""
    lines = [HEADER]
    for name, package in sorted(find_distributions().items()):
        if name != "setuptools":  # It comes with the interpreter, each with its own version.
            lines.append(f"{name}=={package.version}  # {read_licence(package)}\n")
    (ROOT / "constraints.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
