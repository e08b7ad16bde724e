"""The answer to a question, in words, numbers and plots, for every reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpcore.answer.methods import Methods
from dpcore.answer.parts import ErrorPart
from dpcore.answer.plot import Plot
from dpcore.answer.section import Sections
from dpcore.answer.setting import ReleaseSetting
from dpcore.code.forms import CodeChoice
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Provenance, ReleaseFacts

RELEASE_ASSUMPTION = (
    "Everything is computed as if the DP release were the data: what the number costs on the data behind it, "
    "nobody can see"
)
Proof = tuple[str, Certificate, str]
"""The proved quantity, its certificate, and how the search ended."""


@dataclass(frozen=True)
class Number:
    """One number of an answer.

    Attributes:
        label: What it is.
        text: As it is read, with its unit where that belongs to it.
        note: What it compares with; empty for none.
        help: Explanation on demand; empty for none.
        value: With all its digits; None where it is not a single number.
        unit: Of ``value``; empty for none.
        key: How a program calls it; by default the label in lower case, its words joined by underscores.
        clipboard_text: What is copied of it, as a program takes it, where that is not the digits of ``value``, else
            ``text``.
    """

    label: str
    text: str
    note: str = ""
    help: str = ""
    value: float | int | None = None
    unit: str = ""
    key: str = ""
    clipboard_text: str = ""

    def __post_init__(self) -> None:
        key = self.key or "_".join(re.findall(r"\w+", self.label.lower()))
        object.__setattr__(self, "key", key)

    @property
    def text_to_copy(self) -> str:
        """Return its digits as a program takes them."""
        return self.clipboard_text or (self.text if self.value is None else wording.digits(self.value))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a question answers.

    Attributes:
        headline: What to do, one sentence, Markdown.
        detail: What changes how it is to be read, Markdown; empty for nothing.
        numbers: The number that was asked for, its error, and further ones.
        assumptions: Sentences without full stop.
        disclosure: Of the data behind the numbers; a release carries its facts.
        facts: Sentences by name: half and double, who is affected ...
        proofs: What is proved to be best; empty where nothing is claimed to be.
        code: What *Code for your library* writes; None where there is nothing to carry away.
        near_optimal: From where to where the bound costs little, one sentence; empty where that is not known.
        parameters: The question, as it was entered.
        solution: What the mathematics found, the object that words and plots are made of.
        plots: By key, each computed when it is asked for; the main figure first.
        make_methods: Makes what a methods section says, `methods`; None for nothing.
        choice: Question and answer as JSON with all digits; None for none.
        files: (name, content) of further files.
        setting: What the release is that the bound is for; None where nothing is released under a bound.
        bound: What was asked for, where that is not the value of the first number: a pair, say, or a function that
            makes a table of it. None otherwise.
        error: Its error, where that is not the value of the second number. None otherwise.
        sections: What a page shows in tabs.
        error_parts: What the error consists of, in the words and colours of the main figure; empty where it has no
            parts.
    """

    headline: str
    detail: str
    numbers: tuple[Number, ...]
    assumptions: tuple[str, ...]
    disclosure: Provenance
    facts: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()
    code: CodeChoice | None = None
    near_optimal: str = ""
    parameters: Any = None
    solution: Any = None
    plots: Mapping[str, Callable[[], Plot]] = field(default_factory=dict)
    make_methods: Callable[[], Methods | None] | None = None
    choice: Callable[[], str] | None = None
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    bound: Any = None
    setting: ReleaseSetting | None = None
    error: float | None = None
    error_parts: tuple[ErrorPart, ...] = ()
    sections: Sections = field(default_factory=dict)

    @cached_property
    def methods(self) -> Methods | None:
        """Return the text for a methods section; None if there is none."""
        return None if self.make_methods is None else self.make_methods()

    @property
    def all_facts(self) -> tuple[tuple[str, str], ...]:
        """Return the facts, with the interval of good bounds before them."""
        near_optimal_facts = [("Good enough", self.near_optimal)] if self.near_optimal else []
        return (*near_optimal_facts, *self.facts.items())

    @property
    def all_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions, with the one that a release adds for every question."""
        is_release = isinstance(self.disclosure, ReleaseFacts)
        return (*self.assumptions, *([RELEASE_ASSUMPTION] if is_release else []))

    def __str__(self) -> str:
        """Return headline, numbers, the interval of good bounds or the detail, and the label, a line each, as text."""
        numbers = "; ".join(f"{n.label}: {n.text} {n.note}".strip() for n in self.numbers[:2])
        second_text = (
            f"Good enough: {self.near_optimal}" if self.near_optimal else cut_first_sentence(self.detail)
        )
        lines = (self.headline, numbers, second_text, self.disclosure.label)
        return "\n".join(line.replace("**", "") for line in lines if line)


def cut_first_sentence(text: str) -> str:
    """Cut a text at its first full stop that ends a sentence."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", text, maxsplit=1)[0]


def without_numbers(parameters: Any, disclosure: Provenance, setting: ReleaseSetting | None = None) -> Answer:
    """Return the answer to a question that the data refuse; its bound can still be selected privately."""
    detail = "The notes above say why. A bound can still be drawn: the draw reads the data by fixed rules."
    headline = "These data have no answer of their own."
    return Answer(headline, detail, (), (), disclosure, parameters=parameters, setting=setting)
