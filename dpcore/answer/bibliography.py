"""The works that the app cites, each once: as a sentence cites them, and as BibTeX."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dpcore.common.version import VERSION

CITATION = re.compile(r"\[@([a-z]+[0-9]*)(?:, ([^\]]+))?\]")
"""How a text names a work: ``[@amin2019]``, or ``[@amin2019, section 3]``."""
_LATEX_SYMBOLS = {
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
        """Return ``Amin et al., 2019``, without brackets; a program's name with its version."""
        if not self.year:
            return f"{self.title} {self.fields['version']}" if "version" in self.fields else self.title
        families = [author.partition(",")[0] for author in self.authors]
        names = f"{families[0]} et al." if len(families) > 2 else " and ".join(families)
        return f"{names}, {self.year}"

    @property
    def bibtex(self) -> str:
        """Return the entry; capitals of the title stay, and letters beyond ASCII are written in TeX."""
        author_names = (
            _escape_latex(author) if "," in author else f"{{{_escape_latex(author)}}}"
            for author in self.authors
        )
        entry_fields = {"author": " and ".join(author_names), "title": f"{{{_escape_latex(self.title)}}}"}
        entry_fields |= {name: _escape_latex(text) for name, text in self.fields.items()}
        if self.year:
            entry_fields["year"] = str(self.year)
        lines = [f"  {name} = {{{text}}}," for name, text in entry_fields.items()]
        return "\n".join((f"@{self.kind}{{{self.key},", *lines, "}"))


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_SYMBOLS.get(letter, letter) for letter in text)


def _load_works() -> Mapping[str, Work]:
    entries = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    works = {}
    for key, entry in entries.items():
        fields = {name: text.format(version=VERSION) for name, text in entry.pop("fields").items()}
        works[key] = Work(key, authors=tuple(entry.pop("authors")), fields=MappingProxyType(fields), **entry)
    return MappingProxyType(works)


WORKS = _load_works()
"""Every work by its key, in the order of ``bibliography.toml``, which holds them."""


def list_citations(text: str) -> tuple[str, ...]:
    """List the keys of the works that a text cites, in order, each once.

    Args:
        text: With works named as `CITATION` has it.

    Raises:
        KeyError: There is no such work.
    """
    keys = dict.fromkeys(match[1] for match in CITATION.finditer(text))
    return tuple(WORKS[key].key for key in keys)


def insert_names(text: str) -> str:
    """Replace each citation by the work's name: ``(Amin et al., 2019, section 3)``; a program without brackets."""

    def name_work(match: re.Match[str]) -> str:
        work = WORKS[match[1]]
        citation = ", ".join(filter(None, (work.short, match[2])))
        return f"({citation})" if work.year else citation

    return CITATION.sub(name_work, text)


def to_latex(text: str) -> str:
    """Convert the text to LaTeX with natbib: each work is cited by its key, in ASCII."""
    pieces, position = [], 0
    for match in CITATION.finditer(text):
        work, page_option = WORKS[match[1]], f"[{_escape_latex(match[2])}]" if match[2] else ""
        program_name = "" if work.year else f"{_escape_latex(work.short)} "
        pieces += [
            _escape_latex(text[position : match.start()]),
            f"{program_name}\\citep{page_option}{{{work.key}}}",
        ]
        position = match.end()
    return "".join((*pieces, _escape_latex(text[position:])))


def write_bibtex(keys: Iterable[str]) -> str:
    """Write the entries of these works, in order, as one file."""
    return "\n\n".join(WORKS[key].bibtex for key in keys) + "\n"
