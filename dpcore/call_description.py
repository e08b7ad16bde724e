"""What a call takes: its columns and settings, with their help, and the signature and docstring made of them."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any

from dpcore.common import text_fields

HELP_BY_COLUMN = {
    "user": "The column that says who a row belongs to, or several that say so together.",
    "value": "The column of numbers that is released.",
    "group": "The column of groups, or several that name one together.",
    "missing": 'If a value is missing or no number: "drop" leaves the row out, a public number replaces the value. '
    "By default such data are refused. A rule that is chosen because a blank was seen is a look at the data.",
    "yes": "The text of the value that counts as 1, such as Y; every other filled cell counts as 0. A mean is a share.",
    "filters": "Public conditions, such as quantity > 0; country = France. Rows that do not satisfy all are left out.",
    "date": "The column of dates, for `periods`. A date counts as it is written; rows without one are left out.",
    "periods": "Public periods, such as 2025-01-01 to 2026-01-01 by month (day, week, year). A unit is then a user in "
    "one of them, and rows outside are left out. It says little of a person with rows in most of them.",
    "releases": "How often such a release is made, each of the next period, which then is the only one. Default 1.",
    "person_epsilon": "The largest epsilon for a whole person; the answer says what remains.",
    "sheet": "The sheet of a workbook; by default the first.",
    "separator": "The character between fields of text, such as ; or tab or blank; by default it is detected.",
    "label": "The column that is predicted: numbers, or words of which `positive` names one.",
    "features": "The columns that it is predicted from: numbers as they are, others one-hot. By default all.",
    "levels": "The public list of a column's levels, the reference level first, by column; by default off the cells.",
    "intercept": "True to put a column of ones first.",
    "ranges": "The public range of each column that enters as a number, lowest and highest, by column.",
    "positive": "The class of the label that counts as 1; all others are -1. By default labels are numbers.",
    "disclosure": '"private" or "public", or the facts of a DP release; the answer carries the label.',
}
"""Arguments that say how to read the data, with their help; all others belong to the question."""
LABEL_ARGUMENTS = ("label", "features", "levels", "intercept")
"""Those of a table with a label that is predicted from features."""
COLUMN_ARGUMENTS = ("user", "value", "group", *LABEL_ARGUMENTS, "ranges", "positive")
"""Those that name the columns, and say how they enter."""
PRIVACY_ARGUMENTS = ("epsilon", "delta", "mechanism", "neighbours", "disclosure")
PERIOD_ARGUMENTS = ("filters", "date", "periods", "releases", "person_epsilon")
"""Those of a filter, and of a unit that is a user in a period of time."""
UNIT_PACKAGES = ("mean", "total", "per_group", "quantile", "plan", "learning", "examples_per_user")
"""Packages whose answers state the unit and the guarantee for a whole person."""
RANGE_PACKAGES = ("mean", "quantile", "plan")
"""Packages whose ``lower`` and ``upper`` are the range of a value: of yes and no it is 0 to 1."""


@dataclass(frozen=True)
class CallSpec:
    """One call as it is declared: its package, and the columns and settings that it takes, without their values.

    Attributes:
        package_name: Package of its mathematics, below `dpcore`.
        accepted_columns: Which of value and group it takes; of tables with a label, of ranges and positive.
        needed_columns: Which of them it cannot do without.
        required_settings: Settings that have a default on the page and must be said here, as a wrong one is not seen.
        fixed_settings: Settings that the call itself stands for, as a field holds them.
        default_data: One entry, in place of data that are not given because the settings say all; empty where data are
            needed.
        source_with_data: The setting ``source`` where data are given and it is not said; empty where the answer sees to
            it itself.
        field_names_by_setting: The field of the page's parameters behind a setting, where it has another name than the
            setting of the call.
        derived_settings: Settings that follow from the data where they are not said, as ``choose_defaults`` of the
            package has them; the page proposes the same.
        program_settings: Settings whose default is what the program can do.
        required_with_data: Settings that must be said where data are given, and say nothing of data that are generated.
        table_module: Module of the package whose ``read_labelled_table`` makes of a table with a label what the
            question takes; empty where the question is about how many rows users have.
        purpose_sentence: What it answers, if the package answers several calls; else the first line of ``build_answer``
            says it.
    """

    package_name: str
    accepted_columns: tuple[str, ...] = ()
    needed_columns: tuple[str, ...] = ()
    required_settings: tuple[str, ...] = ()
    fixed_settings: Mapping[str, str | None] = field(default_factory=dict)
    field_names_by_setting: Mapping[str, str] = field(default_factory=dict)
    default_data: tuple[Any, ...] = ()
    source_with_data: str = ""
    derived_settings: tuple[str, ...] = ()
    program_settings: tuple[str, ...] = ()
    required_with_data: tuple[str, ...] = ()
    table_module: str = ""
    purpose_sentence: str = ""

    @property
    def column_arguments(self) -> tuple[str, ...]:
        """Return the names of the arguments that say how the data are read."""
        accepted_names = {"user", "disclosure", *self.needed_columns, *self.accepted_columns}
        accepted_names |= set(LABEL_ARGUMENTS if self.table_module else ("sheet", "separator"))
        accepted_names |= set(PERIOD_ARGUMENTS if self.package_name in UNIT_PACKAGES else ())
        accepted_names |= {"missing", "yes"} if "value" in accepted_names else set()
        return tuple(argument_name for argument_name in HELP_BY_COLUMN if argument_name in accepted_names)

    @property
    def nullable_settings(self) -> tuple[str, ...]:
        """Return the settings whose default in the call is None, whatever default their field has."""
        return *self.derived_settings, *self.program_settings, *self.required_with_data


def to_text(setting_value: Any) -> Any:
    """Return an option as the text that names it in a call; other values unchanged."""
    return text_fields.name_option(setting_value) if isinstance(setting_value, enum.Enum) else setting_value


def list_settings(question: CallSpec, parameters_type: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of the question's own settings by their names in the call, those without a default first."""
    setting_by_field = {
        field_name: setting_name for setting_name, field_name in question.field_names_by_setting.items()
    }
    fields_by_setting = {
        setting_by_field.get(f.name, f.name): f
        for f in dataclasses.fields(parameters_type)
        if f.name not in question.fixed_settings
    }
    return dict(sorted(fields_by_setting.items(), key=lambda item: not is_required(question, *item)))


def sort_arguments(question: CallSpec, setting_names: Iterable[str]) -> list[str]:
    """Sort the names of arguments for help: columns, the question's own settings, privacy, how data are read."""

    def rank(name: str) -> int:
        """Return the place of the argument's group."""
        if name in PRIVACY_ARGUMENTS:
            return 2
        return (0 if name in COLUMN_ARGUMENTS else 3) if name in HELP_BY_COLUMN else 1

    return sorted([*setting_names, *question.column_arguments], key=rank)


def is_required(question: CallSpec, setting_name: str, parameter_field: dataclasses.Field[Any]) -> bool:
    """Return True if a call must name this setting: it has no default, or one that is meant for the page alone."""
    return parameter_field.default is MISSING or setting_name in question.required_settings


def build_signature(question: CallSpec, parameters_type: Any) -> inspect.Signature:
    """Build the signature of a call: the data (None by default if settings can replace them), columns, settings."""
    from dpcore.reply import Reply

    fields_by_setting = list_settings(question, parameters_type)
    no_default = inspect.Parameter.empty
    defaults_by_column = {"disclosure": "private", "intercept": True, "releases": 1}
    defaults_by_column |= dict.fromkeys(question.needed_columns, no_default)
    defaults_by_name = {name: defaults_by_column.get(name) for name in question.column_arguments}
    for name, f in fields_by_setting.items():  # Those without a default come first.
        argument_default = None if name in question.nullable_settings else f.default
        defaults_by_name[name] = no_default if is_required(question, name, f) else argument_default
    data_argument = inspect.Parameter(
        "data", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if question.default_data else no_default
    )
    keyword_arguments = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=to_text(defaults_by_name[name]))
        for name in sort_arguments(question, fields_by_setting)
    ]
    return inspect.Signature([data_argument, *keyword_arguments], return_annotation=Reply)


def write_docstring(question: CallSpec, parameters_type: Any, build_answer: Any) -> str:
    """Write the docstring of a call from that of ``build_answer`` and the help of its settings."""
    # Here, as NumPy comes with it, and help on all commands needs none.
    from dpcore.common.parameters import describe

    help_by_field = describe(parameters_type)
    types_by_field = text_fields.list_field_types(parameters_type)
    first_paragraph, _, docstring_remainder = (inspect.getdoc(build_answer) or "").partition("\n\nArgs:")
    ending_match = re.search(r"^(Examples|Source):.*", docstring_remainder, flags=re.MULTILINE | re.DOTALL)
    counts_phrase = "" if question.table_module else "rows per user as a list, a dict or a Counter; "
    no_data_sentence = (
        " You need no data if the settings below define the example." if question.default_data else ""
    )
    if question.purpose_sentence:
        first_paragraph = question.purpose_sentence + first_paragraph.removeprefix(
            first_paragraph.split("\n")[0]
        )
    docstring_lines = [
        first_paragraph,
        "",
        "Args:",
        "    data: A table in memory (pandas, Polars, Arrow, a DuckDB relation), one row per contribution; the path of "
        f"a file, a folder or a pattern of names; {counts_phrase}or a `Dataset`.{no_data_sentence}",
    ]
    fields_by_setting = list_settings(question, parameters_type)
    for argument_name in sort_arguments(question, fields_by_setting):
        if argument_name in HELP_BY_COLUMN:
            docstring_lines.append(f"    {argument_name}: {HELP_BY_COLUMN[argument_name]}")
            continue
        f = fields_by_setting[argument_name]
        options_type = text_fields.find_options_type(types_by_field[f.name])
        value_sentences = f" One of {text_fields.list_options(options_type)}." if options_type else ""
        if argument_name == "epsilon":
            value_sentences = " A list of several gives a table, with the reply of each."
        if argument_name == "own_bound":
            value_sentences = " Its error is the last of `numbers`; `facts` compare it."
        if argument_name == "source" and question.source_with_data:
            value_sentences += f" Where data are given it is {question.source_with_data!r} by default."
        if argument_name in question.derived_settings:
            value_sentences += " By default it follows from the data: see `choose_defaults`."
        if argument_name in question.program_settings:
            value_sentences += " By default it is the best that the program can do."
        if argument_name in question.required_with_data:
            value_sentences += " It must be said where data are given."
        docstring_lines.append(f"    {argument_name}: {help_by_field[f.name]}{value_sentences}")
    docstring_lines += [
        "",
        "Returns:",
        "    A `Reply`; of several epsilons, a table. `print` it, or read its `bound`, `error`, `numbers`, `figure()`,",
        '    `code("opendp")`, `report("file.html")`, `script()`, `to_json()`; `help(dpcore.reply.Reply)` lists all.',
        "",
        "Raises:",
        "    InvalidInput: The page's sentences on bad input, all at once; a `ValueError`.",
        *(["", ending_match.group().rstrip()] if ending_match else []),
    ]
    return "\n".join(docstring_lines)
