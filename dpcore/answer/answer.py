"""The answer to a question, in words, numbers and plots, for every reader."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from dpcore.answer.methods import Methods
from dpcore.answer.plot import Plot, Style
from dpcore.answer.section import Sections
from dpcore.answer.unit import state_unit
from dpcore.code.forms import OfferedPrograms
from dpcore.code.release_spec import Quantity
from dpcore.common.certificate import Certificate
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Neighbours, Provenance, ReleaseFacts
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS, Program
from dpcore.common.strict_json import CHOICE_SCHEMA, write_document
from dpcore.common.text_fields import to_values
from dpcore.common.wording import PERCENT, format_digits, format_percent
from dpcore.dataset import Dataset

MAX_VARIANCE_SHARE = 0.25
"""Variance of a value over (U - L)^2 that no values exceed (Popoviciu's inequality)."""


@dataclass(frozen=True)
class ReleaseSetting:
    """The setting of a release. On the same data, settings with the same `basis` have the same best bound.

    Attributes:
        statistic: The released statistic.
        epsilon: The epsilon of the release, without that of a private selection of its bound.
        neighbours: The neighbouring relation.
        column_name: The column that is released; empty for the rows themselves.
        lower: Smaller values are raised to it; None if values do not matter, or no range is known.
        upper: Larger values are lowered to it.
        variance_share: sigma^2 over (upper - lower)^2 that the bound depends on; None if it depends on none.
        mean_share: (mean - lower) / (upper - lower) that it depends on; None for the mean with the largest error.
        uses_values: Whether anything was computed from the values.
        targets_table_mean: Whether the bound is best for the mean of the table itself, not for that of a population.
        is_best_on_values: Whether it is best on the values themselves, so that nothing is assumed of them.
        user_share: rho, the share of the variance that is taken to lie between users; 0 for independent rows.
        noise: The noise that is added.
        delta: The delta of the release; None with pure epsilon-DP.
        measure: The error that the best bound of a sum or a count minimises; None for other releases.
        margin_users: How many users more than 1/epsilon the bound of a count leaves above it.
        program: The program whose noise the bound of a mean, a sum or a count is best for.
    """

    statistic: Quantity
    epsilon: float
    neighbours: Neighbours
    column_name: str = ""
    lower: float | None = None
    upper: float | None = None
    variance_share: float | None = None
    mean_share: float | None = None
    uses_values: bool = False
    targets_table_mean: bool = False
    is_best_on_values: bool = False
    user_share: float = 0.0
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    measure: Measure | None = None
    margin_users: float = 0.0
    program: Program = Program.PYTHON

    @property
    def protects_counts(self) -> bool:
        """Return True if the number of rows of each user is protected, too."""
        return self.neighbours is not Neighbours.REPLACE_VALUES

    @property
    def basis(self) -> ReleaseSetting:
        """Return the setting with one fixed value in every field that the best bound does not depend on, such as names.

        At the mean with the worst error, a release with private counts errs as one with public counts. For
        independent rows the mean of a table errs less than that of a population by a constant.
        """
        is_mean = self.statistic is Quantity.MEAN
        is_unsplit_laplace = self.noise is NoiseKind.LAPLACE and self.program not in MEAN_SPLITTING_PROGRAMS
        return replace(
            self,
            column_name="",
            lower=None,
            upper=None,
            uses_values=False,
            # Laplace noise of a mean's whole budget is the same in all programs.
            program=Program.PYTHON if is_mean and is_unsplit_laplace else self.program,
            targets_table_mean=self.targets_table_mean and self.user_share > 0.0,
            variance_share=None if self.is_best_on_values else self.variance_share,
            neighbours=Neighbours.REPLACE_VALUES if is_mean and self.mean_share is None else self.neighbours,
            # A mean of 0.3 errs as one of 0.7: p^2 + (1 - p)^2.
            mean_share=None if self.mean_share is None else min(self.mean_share, 1.0 - self.mean_share),
        )

    def list_differences(self, other_setting: ReleaseSetting) -> tuple[str, ...]:
        """List the names of fields that differ and decide the best bound; empty if both have the same best bound."""
        bases = self.basis, other_setting.basis
        return tuple(f.name for f in fields(self) if not _is_same(*(getattr(b, f.name) for b in bases)))


def _is_same(first_value: Any, second_value: Any) -> bool:
    """Return True if the values are equal; two floats if they differ by at most one part in 10^9."""
    if isinstance(first_value, float) and isinstance(second_value, float):
        return math.isclose(first_value, second_value, rel_tol=1e-9)
    return bool(first_value == second_value)


BIAS, SAMPLING, NOISE = "Bias", "Sampling", "Noise"
STYLE_BY_PART: Mapping[str, Style] = {BIAS: Style.BIAS, SAMPLING: Style.SAMPLING, NOISE: Style.PRIVACY}
"""Styles of the parts of an error: bias from the bound, random sampling besides the noise, and the noise."""


@dataclass(frozen=True)
class ErrorPart:
    """One part of the error at the bound of an answer, as its card shows it.

    Attributes:
        name: `BIAS`, `SAMPLING` or `NOISE`.
        value: Its size, in the unit of the error.
        text: The same as it is read.
    """

    name: str
    value: float
    text: str


def build_error_parts(
    part_sizes: Mapping[str, float], format_part_size: Callable[[float], str]
) -> tuple[ErrorPart, ...]:
    """Build the parts of an answer's error from their sizes by name; ``format_part_size`` formats a size."""
    return tuple(
        ErrorPart(part_name, float(part_size), format_part_size(float(part_size)))
        for part_name, part_size in part_sizes.items()
    )


class Verdict(StrEnum):
    """The use of a release, by its error over the released value; `RelativeError.limit_text` states the limit."""

    USEFUL = "useful"
    ROUGH = "rough"
    NOT_USEFUL = "not useful"


ROUGH_ABOVE, NOT_USEFUL_ABOVE = 0.1, 0.5


@dataclass(frozen=True)
class RelativeError:
    """The error of an answer over the size of what is released; the verdict follows from it alone.

    Attributes:
        share: The error over that size, at least 0.
        base_phrase: That size: ``the count``, or what stands in for a value that was not read.
        remark: A further sentence for the card; empty for none.
        error_phrase: The error with its verb, the beginning of a sentence that `text` ends.
        limit_factor: The limits of the verdict are multiplied by it.
    """

    share: float
    base_phrase: str
    remark: str = ""
    error_phrase: str = "the error is"
    limit_factor: float = 1.0

    @property
    def verdict(self) -> Verdict:
        """Return whether the release is useful, rough or not useful; an infinite or undefined share is not useful."""
        if self.share <= self.limit_factor * ROUGH_ABOVE:
            return Verdict.USEFUL
        return Verdict.ROUGH if self.share <= self.limit_factor * NOT_USEFUL_ABOVE else Verdict.NOT_USEFUL

    @property
    def limit_text(self) -> str:
        """Return the limit that the error keeps or exceeds: ``up to 10 %``."""
        limit = self.limit_factor * (NOT_USEFUL_ABOVE if self.verdict is Verdict.NOT_USEFUL else ROUGH_ABOVE)
        return f"{'up to' if self.verdict is Verdict.USEFUL else 'over'} {100.0 * limit:g}{PERCENT}"

    @property
    def text(self) -> str:
        """Return the share with the words for its base, as in ``1.5 % of the count``.

        A share above 1,000 % is ``over 1,000 %``.
        """
        share_text = format_percent(self.share) if self.share <= 10.0 else f"over {format_percent(10.0)}"
        return f"{share_text} of {self.base_phrase}"


@dataclass(frozen=True)
class Alternative:
    """Another mechanism with less error than the one in the headline.

    Attributes:
        sentence: What it is, and how much error it saves.
        form_prefix: The beginning of the name of its form in the answer's `code`.
    """

    sentence: str
    form_prefix: str


RELEASE_ASSUMPTION = "The DP release is taken for the data; errors on the original data are unknown"
Proof = tuple[str, Certificate, str]
"""The proved quantity, its certificate, and how the search ended."""


@dataclass(frozen=True)
class Number:
    """One named number of an answer, as text and with all digits, with remarks.

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
        """Set an empty key to the label in lower case, its words joined by underscores."""
        object.__setattr__(self, "key", self.key or "_".join(re.findall(r"\w+", self.label.lower())))

    @property
    def text_to_copy(self) -> str:
        """Return the text that is copied: ``clipboard_text``, else all digits of ``value``, else ``text``."""
        return self.clipboard_text or (self.text if self.value is None else format_digits(self.value))


@dataclass(frozen=True)
class Stored:
    """A result in place of the function that computes it, for a pickle.

    Attributes:
        result: What the function returned.
    """

    result: Any

    def __call__(self) -> Any:
        """Return the result."""
        return self.result


@dataclass(frozen=True, eq=False)
class Answer:
    """A solution as a person reads it: sentences, numbers, plots, programs and label.

    Attributes:
        headline: The instruction, one sentence, Markdown.
        detail: The sentences that qualify the headline, Markdown; empty for none.
        caveat: Sentences without which the headline misleads, Markdown; the card has them below it. Empty for none.
        numbers: The number that was asked for, its error, and further ones.
        assumptions: Sentences without full stop.
        disclosure: The disclosure of the data behind the numbers; a release carries its facts.
        facts: Sentences by name: half and double, who is affected ...
        proofs: The certificates; empty if nothing is claimed to be optimal.
        code: The choice that *Get code* writes; None if there is none.
        near_optimal: The near-optimal range, one sentence; empty if it is not known.
        parameters: The parameters as they were entered.
        solution: The solution that sentences and plots are made of.
        plots: The plots by key, each computed on demand; the main figure first.
        make_methods: The function that makes `methods`; None for none.
        write_json: Parameters and answer as JSON with all digits; None for none.
        files: The content of further files, by name.
        setting: The release that the bound is for; None if nothing is released under a bound.
        bound: The optimum, if it is not the value of the first number: a pair, for example, or a function that makes
            a table of it. None otherwise.
        error: The error, if it is not the value of the second number. None otherwise.
        sections: What a page shows in tabs.
        unit_text: The unit of privacy and the price for a whole person, where the unit is not the user; else empty.
        error_parts: The parts of the error, in the words and colours of the main figure; empty for none.
        relative_error: The error over the released value, and the verdict on it; None if it is not known.
        alternative: Another mechanism with less error; None if there is none.

    Examples:
        >>> import dpcore as ss
        >>> answer = ss.count_bound([3] * 100, epsilon=1, disclosure="public").answer
        >>> print(answer.headline, answer.numbers[0].value, answer.disclosure.label)
        Keep at most 3 rows per user. 3.0 public input
    """

    headline: str
    detail: str
    numbers: tuple[Number, ...]
    assumptions: tuple[str, ...]
    disclosure: Provenance
    facts: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()
    code: OfferedPrograms | None = None
    near_optimal: str = ""
    parameters: Any = None
    solution: Any = None
    plots: Mapping[str, Callable[[], Plot]] = field(default_factory=dict)
    make_methods: Callable[[], Methods | None] | None = None
    write_json: Callable[[], str] | None = None
    files: Mapping[str, Callable[[], str | bytes]] = field(default_factory=dict)
    bound: Any = None
    setting: ReleaseSetting | None = None
    error: float | None = None
    error_parts: tuple[ErrorPart, ...] = ()
    relative_error: RelativeError | None = None
    alternative: Alternative | None = None
    caveat: str = ""
    sections: Sections = field(default_factory=dict)
    unit_text: str = ""

    @cached_property
    def methods(self) -> Methods | None:
        """Return the text for a methods section; None if there is none.

        Computed once.
        """
        return None if self.make_methods is None else self.make_methods()

    @property
    def all_facts(self) -> tuple[tuple[str, str], ...]:
        """Return (name, sentence) of caveat, verdict, near-optimal range and alternative, if any, then of all facts."""
        leading_facts = {
            "Caveat": self.caveat,
            "Verdict": self.verdict_sentence,
            "Near-optimal": self.near_optimal,
        }
        leading_facts["Less error"] = self.alternative.sentence if self.alternative else ""
        return (
            *((fact_name, sentence) for fact_name, sentence in leading_facts.items() if sentence),
            *self.facts.items(),
        )

    @property
    def error_split_texts(self) -> tuple[str, tuple[str, ...], str]:
        """Return (what is split, a text for each part of the error, a note on how they make it up).

        Parts are shares if they, or their squares, add up to the error, or its square; else sizes. The squares of
        independent parts add up to the squared error. A bias and noise of either sign partly cancel.
        """
        part_sizes = [part.value for part in self.error_parts]
        error = self.numbers[1].value if len(self.numbers) > 1 and self.error is None else self.error
        for size_exponent, split_phrase in ((1, "Made of"), (2, "Squared error")):
            powers = [size**size_exponent for size in part_sizes]
            if error and math.isclose(sum(powers), error**size_exponent, rel_tol=1e-6):
                return split_phrase, tuple(format_percent(value / sum(powers)) for value in powers), ""
        parts_cancel = (
            error is not None and len(part_sizes) > 1 and max(part_sizes) <= error < sum(part_sizes)
        )
        cancellation_note = "(they partly cancel)" if parts_cancel else ""
        return "", tuple(part.text for part in self.error_parts), cancellation_note

    @property
    def verdict_sentence(self) -> str:
        """Return the verdict with its reason, as ``useful, the error is 1.5 % of the count.``; empty without one."""
        if (relative := self.relative_error) is None:
            return ""
        return f"{relative.verdict}, {relative.error_phrase} {relative.text}. {relative.remark}".rstrip()

    @property
    def all_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions, and one more if the data are a DP release."""
        return self.assumptions + (RELEASE_ASSUMPTION,) * isinstance(self.disclosure, ReleaseFacts)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: results in place of functions.

        Solution, files and sections are left out, as they need the data.
        """
        values_by_field_name = {f.name: getattr(self, f.name) for f in fields(self)}
        values_by_field_name |= {"solution": None, "files": {}, "sections": {}}
        values_by_field_name["plots"] = {key: Stored(make_plot()) for key, make_plot in self.plots.items()}
        values_by_field_name["bound"] = self.bound() if callable(self.bound) else self.bound
        values_by_field_name["make_methods"] = Stored(self.methods)
        if self.write_json is not None:
            values_by_field_name["write_json"] = Stored(self.write_json())
        if self.code is not None:
            values_by_field_name["code"] = replace(self.code, source=self.code.forms)
        return values_by_field_name

    def __str__(self) -> str:
        """Return the answer in up to seven lines: headline, caveat, two numbers, verdict, further ones, label."""
        numbers_line = "; ".join(f"{n.label}: {n.text} {n.note}".strip() for n in self.numbers[:2])
        range_line = f"Near-optimal: {self.near_optimal}" if self.near_optimal else ""
        verdict_line = f"Verdict: {self.verdict_sentence}" if self.relative_error else ""
        detail_sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", self.detail, maxsplit=1)[0]
        lines = (
            self.headline,
            self.caveat,
            numbers_line,
            verdict_line,
            range_line or detail_sentence,
            self.unit_text,
            self.disclosure.label,
        )
        return "\n".join(line.replace("**", "") for line in lines if line)


def build_without_numbers(
    parameters: Any, provenance: Provenance, setting: ReleaseSetting | None = None
) -> Answer:
    """Build an answer without numbers and plots, for data that have no answer; a bound can still be drawn privately."""
    detail = "The notes above say why. A bound can still be drawn, by fixed rules."
    headline = "These data have no answer of their own."
    return Answer(headline, detail, (), (), provenance, parameters=parameters, setting=setting)


def build_verdict_entries(answer: Answer) -> dict[str, object]:
    """Return the JSON entries of the relative error (None if infinite), its base and the verdict; empty without one."""
    if (relative := answer.relative_error) is None:
        return {}
    share = relative.share if math.isfinite(relative.share) else None
    return {"relative_error": share, "relative_to": relative.base_phrase, "verdict": relative.verdict.value}


def add_json_writer(
    answer: Answer,
    dataset: Dataset | None,
    release_text: str,
    make_answer_entries: Callable[[], Mapping[str, object]],
    *,
    number_keys: Collection[str] = (),
    question_entries: Mapping[str, object] | None = None,
    data_entries: Mapping[str, object] | None = None,
    omitted_parameter_names: Collection[str] = (),
    schema: str = CHOICE_SCHEMA,
    epsilon: float | None = None,
) -> Answer:
    """Return the answer with a function that writes its JSON file, and with the unit of privacy of its data.

    Args:
        answer: Its parameters and assumptions go into the file.
        dataset: The data, whose label stands at every number computed from them; None if the settings are all of
            the input, and the answer's label stands there.
        release_text: What is released, a phrase.
        make_answer_entries: Makes the numbers of the file, by key, when the file is written.
        number_keys: Numbers of the answer that stand before them, by key.
        question_entries: What the parameters mean; it replaces parameters of the same name.
        data_entries: What was computed from the data before the question came up, besides how much there is of them.
        omitted_parameter_names: Names of parameters that the answer does not depend on.
        schema: Name and version of the form of question and answer.
        epsilon: Of the release, if it is not that of the parameters.
    """
    answer = state_unit(answer, dataset, epsilon)

    def write_json() -> str:
        """Return the text of the JSON file: question, data, answer and assumptions, each with its label."""
        data_label = (answer.disclosure if dataset is None else dataset.provenance).label
        values_by_parameter = to_values(answer.parameters)
        values_by_key = {number.key: number.value for number in answer.numbers if number.key in number_keys}
        entries_by_section = {
            "question": {
                "release": release_text,
                "label": data_label if dataset is None else "public input",
                **{n: value for n, value in values_by_parameter.items() if n not in omitted_parameter_names},
                **(question_entries or {}),
            },
            "data": {}
            if dataset is None
            else {"label": data_label, **_build_data_entries(dataset), **(data_entries or {})},
            "answer": {
                "label": data_label,
                **values_by_key,
                **build_verdict_entries(answer),
                **make_answer_entries(),
            },
            "assumptions": list(answer.assumptions),
        }
        return write_document(schema, **{name: e for name, e in entries_by_section.items() if e})

    return replace(answer, write_json=write_json)


def _build_data_entries(dataset: Dataset) -> dict[str, object]:
    """Return the JSON entries of a dataset: name, source, what is counted, numbers of users and rows."""
    text_entries = {
        "name": dataset.name,
        "source": dataset.source,
        "contribution": dataset.contribution.value,
    }
    return {**text_entries, "num_users": dataset.histogram.num_users, "num_rows": dataset.histogram.num_rows}
