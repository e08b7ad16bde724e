"""What a person may write of an answer in a methods section: sentences, and the works that they cite."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dpcore.answer.bibliography import as_latex, bibtex, cited, with_names
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Neighbours, Provenance, ReleaseFacts, kind_of

NEIGHBOURS = {
    Neighbours.REPLACE_VALUES: "if they differ in the values of one user; how many rows each user has is "
    "treated as public",
    Neighbours.ADD_OR_REMOVE_USER: "if one user, with all of that user's rows, is added or removed",
    Neighbours.REPLACE_USER: "if one user, with all of that user's rows, is replaced by another; the number "
    "of users is treated as public",
}
"""When two data sets are neighbours, as it stands in a sentence."""

FROM_PRIVATE = (
    "the private data themselves: the guarantee above does not cover that choice, and no number computed from the "
    "data is reported here."
)
FROM_RELEASE = (
    "a differentially private release of the data{}, whose budget comes on top of the one stated above; errors are "
    "computed as if that release were the data."
)
FROM_PUBLIC = "public data."
"""What a choice was computed from, as it ends the last sentence."""


def noise(kind: str) -> str:
    """The noise of a kind with the work that calibrates it: ``Laplace noise [@dwork2006]``."""
    named = {
        "Laplace": "Laplace noise [@dwork2006]",
        "Gaussian": "exactly calibrated Gaussian noise [@balle2018]",
    }
    return named[kind]


def guarantee(released: str, epsilon: float, neighbours: Neighbours | str, delta: float = 0.0) -> str:
    """The sentences that say what was released and what protects it.

    Args:
        released: The subject, with its verb: ``The mean was released``.
        epsilon: As promised; it is said with all its digits.
        neighbours: When two data sets are neighbours; a text goes on after ``Two data sets are neighbours``.
        delta: As promised, 0 for a pure guarantee.
    """
    relation = neighbours if isinstance(neighbours, str) else NEIGHBOURS[neighbours]
    pair, budget = "ε", f"ε = {wording.entered(epsilon)}"
    if delta:
        pair, budget = "(ε, δ)", f"{budget} and δ = {wording.entered(delta)}"
    promised = f"{released} with user-level {pair}-differential privacy at {budget}."
    return f"{promised} Two data sets are neighbours {relation}."


class Chosen(enum.Enum):
    """How the number came about that the sentences are about."""

    ON_DATA = "computed from the data"
    ENTERED = "entered by the person; what was computed of it is no choice"
    DRAWN = "drawn by a private mechanism"


@dataclass(frozen=True)
class Methods:
    """What a question has to say of its answer, in whole sentences that name works as ``[@amin2019]``.

    Attributes:
        guarantee: What was released and what protects it; it holds nothing but what the person entered.
        found: What was done, with the bound and its error, which were computed from the data.
        withheld: The same without a number, a word or a choice that depends on the data: it stands in place of
            ``found`` where they are private.
        disclosure: Of the data behind the answer.
        rule: By what the choice was made; nothing but what was entered.
        nothing: Where the answer is to release nothing, the sentence that says so: it stands in place of all others
            but the last, unless the data are private.
        what: What was computed or drawn, with an article and in the singular.
        chosen: How it came about.
    """

    guarantee: str
    found: str
    withheld: str
    disclosure: Provenance
    rule: str
    nothing: str = ""
    what: str = "The bound"
    chosen: Chosen = Chosen.ON_DATA

    @property
    def is_withheld(self) -> bool:
        """Whether what was computed from the data is left out, since they are private."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def shown(self) -> Provenance:
        """What the sentences are: of private data they hold nothing but public input."""
        return Disclosure.PUBLIC if self.is_withheld else self.disclosure

    @property
    def _marked(self) -> str:
        if self.nothing and not self.is_withheld:
            return f"{self.nothing} {self._origin}"
        done = self.withheld if self.is_withheld else self.found
        return " ".join(filter(None, (self.guarantee, done, self.rule, self._origin)))

    @property
    def _origin(self) -> str:
        if self.chosen is Chosen.DRAWN:
            return f"{self.what} was drawn with [@sweetspot]."
        begin = (
            f"{'This' if self.nothing and not self.is_withheld else self.what} was computed with [@sweetspot]"
        )
        if self.chosen is Chosen.ENTERED:
            return (
                f"{begin} from the private data and is not reported here."
                if self.is_withheld
                else f"{begin}."
            )
        if self.is_withheld:
            return f"{begin} from {FROM_PRIVATE}"
        if kind_of(self.disclosure) is Disclosure.PUBLIC:
            return f"{begin} from {FROM_PUBLIC}"
        facts = ""
        if isinstance(self.disclosure, ReleaseFacts):
            of = self.disclosure
            facts = f" ({of.guarantee}; {of.neighbours.short}; {of.mechanism})"
        return f"{begin} from {FROM_RELEASE.format(facts)}"

    @property
    def text(self) -> str:
        """The sentences as they are printed."""
        return with_names(self._marked).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def latex(self) -> str:
        """The same for LaTeX, with citations by the keys of `bibtex`."""
        return as_latex(self._marked)

    @property
    def works(self) -> tuple[str, ...]:
        """Keys of the works that the sentences cite, in order."""
        return cited(self._marked)

    @property
    def bibtex(self) -> str:
        """The entries of these works."""
        return bibtex(self.works)
