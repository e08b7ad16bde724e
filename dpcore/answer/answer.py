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
    "Everything is computed as if the DP release were the data; errors on the original data are unknown"
)
Proof = tuple[str, Certificate, str]
"""The proved quantity, its certificate, and how the search ended."""


@dataclass(frozen=True)
class Number:
    """One number of an answer.

    Attributes:
        label: The name of the number.
        text: The number as it is read, with its unit if that belongs to it.
        note: A comparison or remark; empty for none.
        help: Explanation on demand; empty for none.
        value: The number with all its digits; None if it is not a single number.
        unit: The unit of ``value``; empty for none.
        key: The name in programs; by default the label in lower case, its words joined by underscores.
        clipboard_text: The text to copy, if it is neither the digits of ``value`` nor ``text``.
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
        """Return the digits of the number, as a program reads them."""
        return self.clipboard_text or (self.text if self.value is None else wording.digits(self.value))


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question.

    Attributes:
        headline: The instruction, one sentence, Markdown.
        detail: The sentences that qualify the headline, Markdown; empty for none.
        numbers: The number that was asked for, its error, and further ones.
        assumptions: Sentences without full stop.
        disclosure: The disclosure of the data behind the numbers; a release carries its facts.
        facts: Sentences by name: half and double, who is affected ...
        proofs: The certificates; empty if nothing is claimed to be optimal.
        code: The choice that *Code for your library* writes; None if there is none.
        near_optimal: The near-optimal range, one sentence; empty if it is not known.
        parameters: The parameters as they were entered.
        solution: The solution that sentences and plots are made of.
        plots: The plots by key, each computed on demand; the main figure first.
        make_methods: The function that makes `methods`; None for none.
        choice: Parameters and answer as JSON with all digits; None for none.
        files: The content of further files, by name.
        setting: The release that the bound is for; None if nothing is released under a bound.
        bound: The optimum, if it is not the value of the first number: a pair, for example, or a function that makes
            a table of it. None otherwise.
        error: The error, if it is not the value of the second number. None otherwise.
        sections: What a page shows in tabs.
        error_parts: The parts of the error, in the words and colours of the main figure; empty for none.
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
        """Return the facts, the near-optimal range first."""
        near_optimal_facts = [("Good enough", self.near_optimal)] if self.near_optimal else []
        return (*near_optimal_facts, *self.facts.items())

    @property
    def all_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions, with the one that a release adds for every question."""
        is_release = isinstance(self.disclosure, ReleaseFacts)
        return (*self.assumptions, *([RELEASE_ASSUMPTION] if is_release else []))

    def __str__(self) -> str:
        """Return headline, numbers, the near-optimal range or the detail, and the label, a line each."""
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
