"""The works that the app names, each once: as a sentence cites them, and as BibTeX."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dpcore.common.version import VERSION

CITED = re.compile(r"\[@([a-z]+[0-9]*)(?:, ([^\]]+))?\]")
"""How a text names a work: ``[@amin2019]``, or ``[@amin2019, section 3]``."""
_LATEX = {
    "ñ": r"{\~n}", "&": r"\&", "%": r"\%", "#": r"\#", "$": r"\$", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "|": r"$|$",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "μ": r"$\mu$", "−": "$-$", "±": r"$\pm$", "∞": r"$\infty$",
    "\N{EN DASH}": "--", "\N{NO-BREAK SPACE}": "~", "×": r"$\times$",
}  # fmt: skip
"""What letters and signs of our sentences are in LaTeX."""


@dataclass(frozen=True)
class Work:
    """A paper, or a program.

    Attributes:
        key: Of its BibTeX entry.
        kind: Of that entry: ``inproceedings``, ``article`` or ``misc``.
        authors: In order, ``Family, Given``; one without a comma is a group.
        title: As printed.
        year: Of publication; 0 for a program, which has a version.
        fields: What else the entry has, in order, as plain text.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: int
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """``Amin et al., 2019``, without brackets; a program's name with its version."""
        if not self.year:
            return f"{self.title} {self.fields['version']}" if "version" in self.fields else self.title
        families = [author.partition(",")[0] for author in self.authors]
        names = f"{families[0]} et al." if len(families) > 2 else " and ".join(families)
        return f"{names}, {self.year}"

    @property
    def bibtex(self) -> str:
        """The entry; capitals of the title are kept, and letters beyond ASCII are written as TeX has them."""
        named = (_latex(author) if "," in author else f"{{{_latex(author)}}}" for author in self.authors)
        held = {"author": " and ".join(named), "title": f"{{{_latex(self.title)}}}"}
        held |= {name: _latex(text) for name, text in self.fields.items()}
        if self.year:
            held["year"] = str(self.year)
        lines = [f"  {name} = {{{text}}}," for name, text in held.items()]
        return "\n".join((f"@{self.kind}{{{self.key},", *lines, "}"))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _works() -> Mapping[str, Work]:
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    works = {}
    for key, held in read.items():
        fields = {name: text.format(version=VERSION) for name, text in held.pop("fields").items()}
        works[key] = Work(key, authors=tuple(held.pop("authors")), fields=MappingProxyType(fields), **held)
    return MappingProxyType(works)


WORKS = _works()
"""Every work by its key, in the order of ``bibliography.toml``, which holds them."""


def cited(text: str) -> tuple[str, ...]:
    """Keys of the works that a text names, in order, each once.

    Args:
        text: With works named as `CITED` has it.

    Raises:
        KeyError: There is no such work.
    """
    keys = dict.fromkeys(found[1] for found in CITED.finditer(text))
    return tuple(WORKS[key].key for key in keys)


def with_names(text: str) -> str:
    """The text with each work as a reader meets it: ``(Amin et al., 2019, section 3)``; a program without brackets."""

    def named(found: re.Match[str]) -> str:
        work = WORKS[found[1]]
        words = ", ".join(filter(None, (work.short, found[2])))
        return f"({words})" if work.year else words

    return CITED.sub(named, text)


def as_latex(text: str) -> str:
    """The text for LaTeX with natbib: each work is cited by its key, in ASCII."""
    parts, at = [], 0
    for found in CITED.finditer(text):
        work, place = WORKS[found[1]], f"[{_latex(found[2])}]" if found[2] else ""
        named = "" if work.year else f"{_latex(work.short)} "
        parts += [_latex(text[at : found.start()]), f"{named}\\citep{place}{{{work.key}}}"]
        at = found.end()
    return "".join((*parts, _latex(text[at:])))


def bibtex(keys: Iterable[str]) -> str:
    """The entries of these works, in order, as one file."""
    return "\n\n".join(WORKS[key].bibtex for key in keys) + "\n"
