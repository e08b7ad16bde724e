"""The text for a methods section, and the works that the app cites."""

from __future__ import annotations

import enum
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, Provenance, ReleaseFacts, classify
from dpcore.common.programs import Program, choose_library
from dpcore.common.version import VERSION
from dpcore.common.wording import format_entered

CITATION_PATTERN = re.compile(r"\[@([a-z]+[0-9]*)(?:, ([^\]]+))?\]")
"""How a text names a work: ``[@amin2019]``, or ``[@amin2019, section 3]``."""
_LATEX_BY_CHARACTER = {
    "ñ": r"{\~n}",
    "é": r"{\'e}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "|": r"$|$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "μ": r"$\mu$",
    "−": "$-$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "\N{EN DASH}": "--",
    "\N{NO-BREAK SPACE}": "~",
    "×": r"$\times$",
}
"""LaTeX for the letters and signs in sentences."""


@dataclass(frozen=True)
class Work:
    """A paper, or a program.

    Attributes:
        key: Of its BibTeX entry.
        entry_type: Of that entry: ``inproceedings``, ``article`` or ``misc``.
        authors: In order, ``Family, Given``; one without a comma is a group.
        title: As printed.
        year: Of publication; 0 for a program, which has a version.
        further_fields: What else the entry has, in order, as plain text.
    """

    key: str
    entry_type: str
    authors: tuple[str, ...]
    title: str
    year: int
    further_fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        """Return authors and year, as ``Amin et al., 2019``; of a program its name and version."""
        if not self.year:
            return f"{self.title} {self.further_fields.get('version', '')}".rstrip()
        family_names = [author.partition(",")[0] for author in self.authors]
        authors_text = f"{family_names[0]} et al." if len(family_names) > 2 else " and ".join(family_names)
        return f"{authors_text}, {self.year}"

    @property
    def bibtex(self) -> str:
        """Return the BibTeX entry, in ASCII, with the title's capitals protected."""
        bibtex_authors = (a if "," in a else f"{{{a}}}" for a in map(_escape_latex, self.authors))
        entry_fields = {"author": " and ".join(bibtex_authors), "title": f"{{{_escape_latex(self.title)}}}"}
        entry_fields |= {field_name: _escape_latex(text) for field_name, text in self.further_fields.items()}
        if self.year:
            entry_fields["year"] = str(self.year)
        field_lines = [f"  {field_name} = {{{text}}}," for field_name, text in entry_fields.items()]
        return "\n".join((f"@{self.entry_type}{{{self.key},", *field_lines, "}"))


def _escape_latex(text: str) -> str:
    """Replace the characters that LaTeX does not print as they are."""
    return "".join(_LATEX_BY_CHARACTER.get(letter, letter) for letter in text)


def _load_works() -> Mapping[str, Work]:
    """Read ``bibliography.toml``; return its works by key, with this version of the app in their texts."""
    entries_by_key = tomllib.loads(Path(__file__).with_name("bibliography.toml").read_text(encoding="utf-8"))
    works_by_key = {}
    for key, entry in entries_by_key.items():
        further_fields = {name: text.format(version=VERSION) for name, text in entry.pop("fields").items()}
        works_by_key[key] = Work(
            key, authors=tuple(entry.pop("authors")), further_fields=further_fields, **entry
        )
    return MappingProxyType(works_by_key)


WORKS = _load_works()
"""Every work by its key, in the order of ``bibliography.toml``, which holds them."""


def list_citations(citing_text: str) -> tuple[str, ...]:
    """List the keys of the works that a text cites, in order, each once.

    Args:
        citing_text: With works named as `CITATION_PATTERN` has it.

    Raises:
        KeyError: There is no such work.
    """
    return tuple(dict.fromkeys(WORKS[match[1]].key for match in CITATION_PATTERN.finditer(citing_text)))


def insert_names(citing_text: str) -> str:
    """Replace each citation by the work's name, as ``(Amin et al., 2019, section 3)``; programs without brackets."""

    def name_work(citation_match: re.Match[str]) -> str:
        """Return the text that replaces one citation."""
        cited_work = WORKS[citation_match[1]]
        citation_text = ", ".join(filter(None, (cited_work.short_name, citation_match[2])))
        return f"({citation_text})" if cited_work.year else citation_text

    return CITATION_PATTERN.sub(name_work, citing_text)


def to_latex(citing_text: str) -> str:
    """Convert the text to LaTeX with natbib citations, in ASCII."""
    latex_pieces, position = [], 0
    for match in CITATION_PATTERN.finditer(citing_text):
        cited_work, place_option = WORKS[match[1]], f"[{_escape_latex(match[2])}]" if match[2] else ""
        program_name = "" if cited_work.year else f"{_escape_latex(cited_work.short_name)} "
        latex_citation = f"{program_name}\\citep{place_option}{{{cited_work.key}}}"
        latex_pieces += [_escape_latex(citing_text[position : match.start()]), latex_citation]
        position = match.end()
    return "".join((*latex_pieces, _escape_latex(citing_text[position:])))


def write_bibtex(work_keys: Iterable[str]) -> str:
    """Return the BibTeX entries of these works, in order, as the text of one file."""
    return "\n\n".join(WORKS[work_key].bibtex for work_key in work_keys) + "\n"


TEXT_BY_NEIGHBOURS = {
    Neighbours.REPLACE_VALUES: "if they differ in the values of one user; how many rows each user has is "
    "treated as public",
    Neighbours.ADD_OR_REMOVE_USER: "if one user, with all of that user's rows, is added or removed",
    Neighbours.REPLACE_USER: "if one user, with all of that user's rows, is replaced by another; the number "
    "of users is treated as public",
}
"""The neighbouring relation of data sets, as the end of a sentence."""

PRIVATE_SOURCE_PHRASE = (
    "the private data: the guarantee above does not cover that choice, and none of their numbers is reported."
)
RELEASE_SOURCE_PHRASE = (
    "a differentially private release of the data{}, whose budget comes on top; errors are those on it."
)
PUBLIC_SOURCE_PHRASE = "public data."
"""The source of a choice, as the end of the last sentence."""


def cite_noise(noise_name: str, program: Program | None = None) -> str:
    """Return the name of a noise with its source, as ``Laplace noise [@dwork2006]``.

    That of Gaussian noise depends on the program.
    """
    gaussian_text = "exactly calibrated Gaussian noise [@balle2018]"
    if program in (Program.OPENDP, Program.TUMULT):
        gaussian_text = "Gaussian noise, calibrated by zero-concentrated differential privacy [@canonne2020],"
    return {"Laplace": "Laplace noise [@dwork2006]", "Gaussian": gaussian_text}[noise_name]


def cite_program_noise(program: Program, noise_kind: NoiseKind, chosen_noise_kind: NoiseKind) -> str:
    """Return the name of the noise that a program draws, with the library and its source.

    Args:
        program: The program, or the best known mechanism.
        noise_kind: The noise that it draws.
        chosen_noise_kind: The noise that was chosen; BigQuery may draw another one.
    """
    library = choose_library(program, chosen_noise_kind)
    return f"{library.value}'s {cite_noise(noise_kind.value, library)}"


def write_guarantee(clause: str, epsilon: float, neighbours: Neighbours | str, delta: float = 0.0) -> str:
    """Write two sentences: what was released under which guarantee, and which data sets are neighbours.

    Args:
        clause: Subject and verb: ``The mean was released``.
        epsilon: The promised epsilon; it is written with all its digits.
        neighbours: The neighbouring relation; a text continues ``Two data sets are neighbours``.
        delta: The promised delta, 0 for a pure guarantee.
    """
    relation_text = neighbours if isinstance(neighbours, str) else TEXT_BY_NEIGHBOURS[neighbours]
    symbols_text, budget_text = "ε", f"ε = {format_entered(epsilon)}"
    if delta:
        symbols_text, budget_text = "(ε, δ)", f"{budget_text} and δ = {format_entered(delta)}"
    guarantee_text = f"{clause} with user-level {symbols_text}-differential privacy at {budget_text}"
    return f"{guarantee_text}. Two data sets are neighbours {relation_text}."


class ChoiceSource(enum.Enum):
    """The source of the number that the sentences are about."""

    COMPUTED = "computed from the data"
    ENTERED = "entered by the person; what was computed of it is no choice"
    DRAWN = "drawn by a private mechanism"


@dataclass(frozen=True)
class Methods:
    """The sentences about an answer; they cite works as ``[@amin2019]``.

    Attributes:
        guarantee_text: The release and its protection; it holds only what the person entered.
        procedure: The procedure, with the bound and its error, which were computed from the data.
        public_procedure: The same without a number, a word or a choice that depends on the data: it replaces
            ``procedure`` if the data are private.
        disclosure: The disclosure of the data behind the answer.
        rule_sentence: The rule of the choice; it holds only what was entered.
        no_release_sentence: If the answer is to release nothing, the sentence about that: it replaces all others but
            the last, unless the data are private.
        subject_phrase: The result, with an article and in the singular.
        choice_source: The source of the result.
    """

    guarantee_text: str
    procedure: str
    public_procedure: str
    disclosure: Provenance
    rule_sentence: str
    no_release_sentence: str = ""
    subject_phrase: str = "The bound"
    choice_source: ChoiceSource = ChoiceSource.COMPUTED

    @property
    def is_withheld(self) -> bool:
        """Return True if the numbers computed from the data are omitted, since the data are private."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def shown_disclosure(self) -> Provenance:
        """Return the disclosure of the sentences: for private data they hold only public input."""
        return Disclosure.PUBLIC if self.is_withheld else self.disclosure

    @property
    def _text_with_citations(self) -> str:
        """Return the sentences as they may be shown, with citations as keys.

        For private data they hold no result.
        """
        if self.no_release_sentence and not self.is_withheld:
            return f"{self.no_release_sentence} {self._origin_sentence}"
        shown_procedure = self.public_procedure if self.is_withheld else self.procedure
        sentences = (self.guarantee_text, shown_procedure, self.rule_sentence, self._origin_sentence)
        return " ".join(filter(None, sentences))

    @property
    def _origin_sentence(self) -> str:
        """Return the last sentence: computed or drawn, and from private data, public data or a release."""
        if self.choice_source is ChoiceSource.DRAWN:
            return f"{self.subject_phrase} was drawn with [@sweetspot]."
        subject = "This" if self.no_release_sentence and not self.is_withheld else self.subject_phrase
        sentence_start = f"{subject} was computed with [@sweetspot]"
        if self.choice_source is ChoiceSource.ENTERED:
            sentence_end = " from the private data and is not reported here" if self.is_withheld else ""
            return f"{sentence_start}{sentence_end}."
        if self.is_withheld:
            return f"{sentence_start} from {PRIVATE_SOURCE_PHRASE}"
        if classify(self.disclosure) is Disclosure.PUBLIC:
            return f"{sentence_start} from {PUBLIC_SOURCE_PHRASE}"
        facts, release_guarantee = self.disclosure, ""
        if isinstance(facts, ReleaseFacts):
            release_guarantee = f" ({facts.guarantee}; {facts.neighbours.short}; {facts.mechanism})"
        return f"{sentence_start} from {RELEASE_SOURCE_PHRASE.format(release_guarantee)}"

    @property
    def text(self) -> str:
        """Return the sentences with the names of cited works."""
        return insert_names(self._text_with_citations).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def latex(self) -> str:
        """Return the sentences as LaTeX, with citations by the keys of `write_bibtex`."""
        return to_latex(self._text_with_citations)

    @property
    def bibtex(self) -> str:
        """Return the BibTeX entries of the works that the sentences cite."""
        return write_bibtex(list_citations(self._text_with_citations))
