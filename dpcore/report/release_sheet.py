"""The release sheet: what to state with released numbers, from what was entered, public or released."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpcore.answer.answer import Answer
from dpcore.answer.methods import ChoiceSource, Methods
from dpcore.code import LIBRARIES, protect_replaced_user, write
from dpcore.code.release_noise import find_release_noise
from dpcore.code.release_spec import Code, Quantity, ReleaseSpec
from dpcore.code.several import ReleasePlan, ReleaseShare
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts, format_rounded_up
from dpcore.common.programs import Program
from dpcore.common.text_fields import parse_numbers
from dpcore.common.wording import format_digits, format_number
from dpcore.report.markup import render_block

NOT_STATED = "not stated"
PRINTED_BY_PROGRAM = "as the program prints it"
"""In place of the standard error of a mean: it depends on a released number of rows."""


@dataclass(frozen=True)
class ReleaseSheet:
    """What to state with released numbers: statistics as (name, standard error, bound), guarantee, methods and code.

    Attributes:
        title: The title of the page that chose the bound.
        statistics: Name, standard error of the noise, and bound of each released statistic, texts.
        facts: The guarantee and the source of the bound, texts by name.
        methods: Sentences for a methods section.
        code: The program that releases; None if the bound is not stated or no library has one.
    """

    title: str
    statistics: tuple[tuple[str, str, str], ...]
    facts: Mapping[str, str]
    methods: Methods
    code: Code | None = None

    def write_tables(self, released_texts: Mapping[str, str]) -> str:
        """Return the tables of statistics and of the guarantee as Markdown.

        Args:
            released_texts: Released numbers as pasted, by name of the statistic; under ``± name`` the standard errors
                that programs printed.
        """
        table_rows = [
            (name, released_texts.get(name) or "…", released_texts.get(f"± {name}") or noise_text, bound_text)
            for name, noise_text, bound_text in self.statistics
        ]
        table_rows = [("Statistic", "Released", "± (noise)", "Bound"), *table_rows]
        table_lines = ["| " + " | ".join(map(_escape, table_row)) + " |" for table_row in table_rows]
        fact_lines = [f"| {name} | {_escape(fact_text)} |" for name, fact_text in self.facts.items()]
        note_sentence = "± is the standard error of the noise, bias not included."
        table_lines = [table_lines[0], "|-|-|-|-|", *table_lines[1:], "", note_sentence, ""]
        return "\n".join((*table_lines, "| Guarantee | Statement |", "|-|-|", *fact_lines))

    def write_markdown(self, released_texts: Mapping[str, str]) -> str:
        """Return the whole sheet as Markdown; the argument is that of `write_tables`."""
        section_texts = [f"# Release sheet: {self.title}", self.write_tables(released_texts), "## Methods"]
        section_texts.append(_escape(self.methods.text))
        if self.code is not None:
            section_texts.append(f"## Code\n\n```{self.code.language}\n{self.code.text.rstrip()}\n```")
        return "\n\n".join((*section_texts, f"## Citation\n\n```\n{self.methods.bibtex.rstrip()}\n```\n"))

    def write_html(self, released_texts: Mapping[str, str]) -> str:
        """Return the whole sheet as the text of an HTML file that loads nothing.

        The argument is that of `write_tables`.
        """
        from dpcore.report.report_html import CONTENT_SECURITY_POLICY, read_file  # It loads Plotly.

        css_text = read_file("report.css").replace("FOOT", "Made with Sweet Spot")
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Release sheet</title>'
            f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{css_text} th {{ width: 22%; }}</style></head><body><main class='methods'>"
            f"{render_block(self.write_markdown(released_texts))}</main></body></html>\n"
        )


def build_sheet(
    sheet_title: str, answer: Answer, card: Answer, ledger: Ledger, form_index: int = 0
) -> ReleaseSheet | None:
    """Build the sheet of an answer; None if it has no release that may be stated.

    Args:
        sheet_title: The title of the page.
        answer: The answer.
        card: The same with a privately selected bound in place of its own, if there is one.
        ledger: What was spent on the data before.
        form_index: Which form of the bound is applied.
    """
    methods, parameters, is_private = answer.methods, answer.parameters, card.disclosure is Disclosure.PRIVATE
    form = None
    if card.code is not None and not is_private:
        form_index = form_index if form_index < len(card.code.forms) else 0  # It may be of an earlier answer.
        form = card.code.forms[form_index][1]
    if methods is None or not (is_private or isinstance(form, ReleaseSpec | ReleasePlan)):
        return None
    neighbours = Neighbours.ADD_OR_REMOVE_USER if answer.setting is None else answer.setting.neighbours
    epsilon = form.epsilon if isinstance(form, ReleasePlan) else parameters.epsilon
    delta = (getattr(parameters, "delta", None) or 0.0) + (
        getattr(parameters, "selection_delta", None) or 0.0
    )
    bound_facts = [card.disclosure] if isinstance(card.disclosure, ReleaseFacts) else []
    range_facts = [form.range_facts] if isinstance(form, ReleaseSpec) and form.range_facts is not None else []
    new_facts = [facts for facts in (*bound_facts, *range_facts) if facts not in ledger.releases]
    spent_facts = [*ledger.releases, *new_facts]
    total_facts = Ledger((*spent_facts, ReleaseFacts(epsilon, delta, neighbours, "this release"))).total
    assert total_facts is not None
    input_text = "from public data"
    if is_private:
        input_text = f"from the private data: {NOT_STATED}. Choose it with DP, or without these data"
    elif bound_facts:
        input_text = f"with DP ({bound_facts[0].guarantee}; {bound_facts[0].mechanism})"
    this_release_text = f" ({format_rounded_up(epsilon)} for this release)" if spent_facts else ""
    facts_by_name = {
        "ε in all": f"{format_rounded_up(total_facts.epsilon)}{this_release_text}",
        "δ in all": format_rounded_up(total_facts.delta),
        "Relation": total_facts.neighbours.value,
        "Unit of protection": "a user's values"
        if total_facts.neighbours is Neighbours.REPLACE_VALUES
        else "a user with all their rows",
        "Bound chosen": input_text,
    }
    if unit_text := card.unit_text or answer.unit_text:
        facts_by_name["Unit of protection"] = f"{unit_text} (this release)"
    if not isinstance(form, ReleaseSpec | ReleasePlan):
        statistics = tuple((statistic_name, NOT_STATED, NOT_STATED) for statistic_name in _list_names(answer))
        return ReleaseSheet(sheet_title, statistics, facts_by_name, methods)
    if card.disclosure is not Disclosure.PUBLIC:
        form = _replace_names_by_placeholders(form)
    library = (card.code and card.code.library) or Program.OPENDP
    program_codes = ((program, write(form, program)) for program in (library, *LIBRARIES))
    library, code = next(((program, code) for program, code in program_codes if code.text), (library, None))
    statistics = _describe_statistics(form, library)
    bounds_text = "; ".join(f"{statistic_name}: {bound_text}" for statistic_name, _, bound_text in statistics)
    has_own_bound = card.disclosure == answer.disclosure
    methods = replace(
        methods,
        procedure=f"{methods.public_procedure} Bound of {bounds_text}.",
        rule_sentence=methods.rule_sentence if has_own_bound and not form_index else "",
        disclosure=card.disclosure,
        choice_source=methods.choice_source if has_own_bound else ChoiceSource.DRAWN,
    )
    return ReleaseSheet(sheet_title, statistics, facts_by_name, methods, code)


def _escape(text: str) -> str:
    """Escape the marks of Markdown in a sentence or a table cell, and put it on one line."""
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", " ".join(text.split()))


def _list_names(answer: Answer) -> list[str]:
    """List the names of the released statistics: lines of a plan, quantiles, or the one statistic."""
    if answer.setting is None:
        return [line.label for line in answer.parameters.parsed_lines]
    if answer.setting.statistic is Quantity.QUANTILE:
        return [_name_quantile(q) for q in parse_numbers(answer.parameters.quantiles)]
    return [answer.setting.statistic.value]


def _name_quantile(q: float) -> str:
    """Return the name of a quantile, such as "quantile 0.5"."""
    return f"quantile {format_digits(q)}"


def _describe_statistics(
    form: ReleaseSpec | ReleasePlan, library: Program
) -> tuple[tuple[str, str, str], ...]:
    """Return (name, standard error of the library's noise, bound) of each statistic of a form, as texts."""
    if isinstance(form, ReleasePlan):
        zero_statistics = [(zero_name, "0", "none: 0 is published") for zero_name in form.zero_names]
        return (*(_describe_statistic(release, library, form) for release in form.releases), *zero_statistics)
    if form.quantity is Quantity.QUANTILE:
        return tuple((_name_quantile(q), "none", form.bound_text) for q in form.quantiles)
    return (_describe_statistic(ReleaseShare(form.quantity.value, form, 1), library),)


def _describe_statistic(
    release: ReleaseShare, library: Program, several_releases: ReleasePlan | None = None
) -> tuple[str, str, str]:
    """Return (name, standard error of the noise, bound) of a release, alone or one of several, as texts."""
    shared_noise = None if several_releases is None else several_releases.find_noise(release, library)
    release_noise = find_release_noise(protect_replaced_user(release.spec, library), library, shared_noise)
    noise_text = "none" if release_noise is None else format_number(release_noise.deviation, 4)
    if release.spec.quantity in (Quantity.MEAN, Quantity.GROUP_MEANS):
        noise_text = PRINTED_BY_PROGRAM
    return release.name, noise_text, release.spec.bound_text


def _replace_names_by_placeholders(form: ReleaseSpec | ReleasePlan) -> ReleaseSpec | ReleasePlan:
    """Return the form with placeholders for the names of file and columns."""
    if isinstance(form, ReleasePlan):
        releases = (replace(release, spec=_replace_column_names(release.spec)) for release in form.releases)
        return replace(form, releases=tuple(releases))
    return _replace_column_names(form)


def _replace_column_names(choice: ReleaseSpec) -> ReleaseSpec:
    """Return a choice with placeholders for the names of file and columns."""
    placeholders: dict[str, Any] = {
        "privacy_unit": ("user_id",),
        "value_column": "value",
        "group_column": "group",
    }
    return replace(choice, file="events.csv", layout=None, has_known_columns=False, **placeholders)
