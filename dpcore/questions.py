"""One call per question, from a person's data to an `Answer`.

    import dpcore as ss
    answer = ss.mean_bound(df, user="user_id", value="amount", epsilon=1, lower=0, upper=100)
    print(answer)

Each takes the data first (see `dpcore.counting.count.to_dataset`) and the question's settings by name: those of the
page, with the page's checks. The first call of a question loads the modules that it needs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import enum
import functools
import gc
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any

from dpcore.common import text_fields
from dpcore.common.checks import InputProblem, InvalidInput, Problems, refuse
from dpcore.common.privacy import Disclosure

if TYPE_CHECKING:
    import pandas as pd

    from dpcore.reply import Reply

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
PERIOD_ARGUMENTS = ("filters", "date", "periods", "releases", "person_epsilon")
"""Those of a filter, and of a unit that is a user in a period of time."""
OF_UNITS = ("mean", "total", "per_group", "quantile", "plan", "learning", "examples_per_user")
"""Packages whose answers state the unit and the guarantee for a whole person."""
OF_RANGES = ("mean", "quantile", "plan")
"""Packages whose ``lower`` and ``upper`` are the range of a value: of yes and no it is 0 to 1."""


@dataclass(frozen=True)
class Question:
    """The package, columns and settings of one call.

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
        required_with_data: Settings that must be said where data are given, and say nothing of data that are generated.
        table_module: Module of the package whose ``read_labelled_table`` makes of a table with a label what the
            question takes; empty where the question is about how many rows users have.
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
    required_with_data: tuple[str, ...] = ()
    table_module: str = ""

    @property
    def column_arguments(self) -> tuple[str, ...]:
        """Return the names of the arguments that say how the data are read."""
        names = {"user", "disclosure", *self.needed_columns, *self.accepted_columns}
        names |= set(LABEL_ARGUMENTS if self.table_module else ("sheet", "separator"))
        names |= set(PERIOD_ARGUMENTS if self.package_name in OF_UNITS else ())
        names |= {"missing", "yes"} if "value" in names else set()
        return tuple(name for name in HELP_BY_COLUMN if name in names)

    @property
    def nullable_settings(self) -> tuple[str, ...]:
        """Return the settings whose default in the call is None, whatever default their field has."""
        return *self.derived_settings, *self.required_with_data


QUESTIONS = {
    "mean_bound": Question(
        "mean",
        accepted_columns=("value",),
        required_settings=("lower", "upper"),
        derived_settings=("counts", "variance_source", "target", "likeness"),
    ),
    "count_bound": Question("total", fixed_settings={"summed": "rows"}),
    "sum_bound": Question("total", needed_columns=("value",), fixed_settings={"summed": "values"}),
    "group_bounds": Question("per_group", needed_columns=("group",), accepted_columns=("value",)),
    "quantile_bound": Question(
        "quantile",
        needed_columns=("value",),
        field_names_by_setting={"lower": "low", "upper": "high"},
        derived_settings=("bound_from", "neighbours"),
    ),
    "variance_bound": Question(
        "plan",
        needed_columns=("value",),
        required_settings=("lower", "upper"),
        fixed_settings={
            "lines": "variance",
            "clamp": "rows",
            "objective": "least sum",
            "groups": None,
            "edges": None,
        },
        derived_settings=("variance_source", "target", "likeness"),
    ),
    "plan_bounds": Question(
        "plan",
        ("value", "group"),
        derived_settings=("variance_source", "target", "likeness"),
    ),
    "learning_bound": Question("learning"),
    "examples_bound": Question("examples_per_user"),
    "weights_gain": Question("gap_examples"),
    "training_bound": Question(
        "training", ("ranges", "positive"), default_data=(None,), table_module="training_data"
    ),
    "regression_weights": Question("regression", default_data=(None,), table_module="problem"),
    "task_weights": Question("multitask", ("group",), default_data=(None,), source_with_data="data"),
    "rating_weights": Question(
        "factorisation",
        accepted_columns=("value", "group"),
        required_with_data=("lower", "upper"),
        field_names_by_setting={"lower": "lowest", "upper": "highest"},
        default_data=(None,),
    ),
    "private_bound": Question(
        "private_choice", field_names_by_setting={"neighbours": "relation"}, derived_settings=("user_share",)
    ),
    "owners": Question("data_owners", default_data=(Disclosure.PUBLIC,), source_with_data="data"),
}
"""By the name of the call."""


SELECTABLE = "mean_bound", "count_bound", "sum_bound", "group_bounds", "quantile_bound", "learning_bound"
"""Calls of `QUESTIONS` whose bound can be drawn privately; `private_bound` has settings of its own for that."""


def command_of(call_name: str) -> str:
    """Return the name of a question's command in a shell, such as ``mean`` for ``mean_bound``."""
    short_name = re.sub(r"_bounds?$", "", call_name)
    return (call_name if short_name == "count" else short_name).replace("_", "-")


def call_of(call_name: str) -> Callable[..., Reply | pd.DataFrame]:
    """Build the function that asks a question.

    Args:
        call_name: One of `QUESTIONS`.

    Returns:
        The function, with the signature and the docstring that `help` shows.
    """
    question = QUESTIONS[call_name]
    build_answer, parameters_type, _ = _answer_types(question)

    def call(data: Any = None, **settings: Any) -> Reply | pd.DataFrame:
        """Answer the question, with columns and settings by name.

        The result is a `Reply`, or a table with one row per epsilon if ``epsilon`` is a list.
        """
        epsilon = settings.get("epsilon")
        if isinstance(epsilon, Iterable) and not isinstance(epsilon, str | bytes | Mapping):
            from dpcore.epsilon_table import tabulate_replies

            ask = functools.partial(reply_of, call_name)
            return tabulate_replies(ask, question.column_arguments, data, settings, list(epsilon))
        return reply_of(call_name, data, settings)

    call.__name__ = call.__qualname__ = call_name
    call.__signature__ = _build_signature(question, parameters_type)  # type: ignore[attr-defined]
    call.__doc__ = _write_docstring(question, parameters_type, build_answer)
    return call


def reply_of(call_name: str, data: Any, settings: Mapping[str, Any]) -> Reply:
    """Answer one question about data.

    Args:
        call_name: One of `QUESTIONS`.
        data: As the call takes it.
        settings: Likewise, the columns among them.

    Raises:
        InvalidInput: All that is wrong with data and settings.
    """
    from dpcore.dataset import Dataset
    from dpcore.reply import Reply

    question = QUESTIONS[call_name]
    build_answer, parameters_type, data_type = _answer_types(question)
    settings = text_fields.rename_former(call_name, parameters_type, settings)
    column_settings = {key: settings[key] for key in question.column_arguments if key in settings}
    # What the question takes beside a data set.
    is_native = isinstance(data, data_type) and not isinstance(data, Dataset)
    has_source = question.source_with_data and data is not None and not is_native
    parameters: Any = None
    input_problems: list[InputProblem] = []
    try:
        own_settings: dict[str, Any] = {"source": question.source_with_data} if has_source else {}
        has_range = question.package_name in OF_RANGES or "mean" in str(settings.get("statistic")).lower()
        if settings.get("yes") is not None and has_range:  # The mean of 0 and 1 is a share.
            own_settings |= {"lower": 0.0, "upper": 1.0}
        own_settings |= {key: settings[key] for key in settings if key not in column_settings}
        parameters = _build_parameters(call_name, question, parameters_type, own_settings, data is not None)
    except InvalidInput as refused:
        input_problems += refused.problems
    try:
        if question.default_data and data is None:
            subject = question.default_data[0]
        elif is_native:
            subject = data
        else:
            if isinstance(data, Dataset) and not issubclass(Dataset, data_type):
                raise refuse(
                    f"a model needs a table with features and labels; {call_name} got counts without them",
                    remedy="Pass the table itself, and name its columns",
                )
            further_columns = getattr(parameters, "value_columns", ())
            subject = _read_data(question, data, column_settings, further_columns)
    except InvalidInput as refused:
        input_problems += refused.problems
    if input_problems:
        raise InvalidInput(input_problems)
    if question.derived_settings:
        package = importlib.import_module(f"dpcore.{question.package_name}")
        defaults = package.choose_defaults(subject)
        unset_keys = [key for key in question.derived_settings if settings.get(key) is None]
        parameters = dataclasses.replace(parameters, **{key: defaults[key] for key in unset_keys})
    answer = build_answer(subject, parameters)
    dataset = subject if isinstance(subject, Dataset) else None
    call_and_settings = call_with(question.package_name, answer.parameters)
    assert call_and_settings is not None
    purpose_sentence = (inspect.getdoc(build_answer) or "").partition("\n")[0]
    package_name = f"dpcore.{question.package_name}.answer"
    return Reply(answer, (call_name, call_and_settings[1]), package_name, purpose_sentence, dataset, subject)


@contextlib.contextmanager
def _pause_collector() -> Iterator[None]:
    """Switch off garbage collection in a block or function, and restore it afterwards.

    Loading 900 modules at a first call takes 0.1 s longer with it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                # Both together call what has loaded old, which is walked through rarely.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@_pause_collector()
def _read_data(
    question: Question, data: Any, columns: Mapping[str, Any], further_columns: Sequence[str] = ()
) -> Any:
    """Convert the data to the type that the question takes: a dataset, or a table with a label.

    Raises:
        InvalidInput: It cannot be read so, or a column that the question needs is not named; all at once.
    """
    from dpcore.counting.count import to_dataset
    from dpcore.counting.frames import read_labelled
    from dpcore.dataset import Dataset

    if question.table_module and not isinstance(data, Dataset):
        module = importlib.import_module(f"dpcore.{question.package_name}.{question.table_module}")
        return read_labelled(module.read_labelled_table, data, **columns)
    column_settings = {key: columns[key] for key in columns if key not in LABEL_ARGUMENTS}
    return to_dataset(data, **column_settings, needs=question.needed_columns, further_values=further_columns)


def parameters_of(call_name: str) -> type[Any]:
    """Return the parameters class of a call."""
    _, parameters_type, _ = _answer_types(QUESTIONS[call_name])
    return parameters_type  # type: ignore[no-any-return]


def types_of(call_name: str) -> dict[str, Any]:
    """Return the types of a call's settings by name.

    Of the arguments for columns, only those that are no column name are among them, such as ``intercept`` and
    ``releases``.
    """
    question = QUESTIONS[call_name]
    _, parameters_type, _ = _answer_types(question)
    types_by_field = text_fields.list_field_types(parameters_type)
    fields_by_setting = _list_settings(question, parameters_type)
    types_by_setting = {name: types_by_field[f.name] for name, f in fields_by_setting.items()}
    column_types: dict[str, Any] = {"intercept": bool, "missing": str | float, "yes": str, "periods": str}
    column_types |= {"filters": str, "releases": int, "person_epsilon": float}
    return types_by_setting | {k: t for k, t in column_types.items() if k in question.column_arguments}


@_pause_collector()
def _answer_types(question: Question) -> tuple[Callable[..., Any], Any, Any]:
    """Return a question's ``build_answer`` function, the class of its parameters and the type of its data."""
    build_answer = importlib.import_module(f"dpcore.{question.package_name}.answer").build_answer
    hints = typing.get_type_hints(build_answer)
    return build_answer, hints["parameters"], next(iter(hints.values()))


def call_with(package_name: str, parameters: Any) -> tuple[str, dict[str, Any]] | None:
    """Find the call that asks a question with these parameters.

    Args:
        package_name: Package of the question's mathematics, below `dpcore`.
        parameters: As the page has them.

    Returns:
        Name and settings; None where no call asks this question.
    """
    field_names = [f.name for f in dataclasses.fields(parameters) if f.init]
    values_by_field = {name: _to_text(getattr(parameters, name)) for name in field_names}
    for call_name, question in QUESTIONS.items():
        has_fixed_settings = question.fixed_settings.items() <= values_by_field.items()
        if question.package_name == package_name and has_fixed_settings:
            named_settings = *question.required_settings, *question.nullable_settings
            return call_name, {
                setting_name: values_by_field[f.name]
                for setting_name, f in _list_settings(question, type(parameters)).items()
                if setting_name in named_settings
                or f.default is MISSING
                or getattr(parameters, f.name) != f.default
            }
    return None


def _to_text(value: Any) -> Any:
    """Return an option as the text that names it in a call; other values unchanged."""
    return text_fields.name_option(value) if isinstance(value, enum.Enum) else value


def _list_settings(question: Question, parameters_type: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of the question's own settings by their names in the call, those without a default first."""
    settings_by_field = {field_name: key for key, field_name in question.field_names_by_setting.items()}
    fields_by_setting = {
        settings_by_field.get(f.name, f.name): f
        for f in dataclasses.fields(parameters_type)
        if f.name not in question.fixed_settings
    }
    return dict(sorted(fields_by_setting.items(), key=lambda item: not _is_required(question, *item)))


def _is_required(question: Question, setting_name: str, parameter_field: dataclasses.Field[Any]) -> bool:
    """Return True if a call must name this setting: it has no default, or one that is meant for the page alone."""
    return parameter_field.default is MISSING or setting_name in question.required_settings


def _build_parameters(
    call_name: str, question: Question, parameters_type: Any, settings: Mapping[str, Any], has_data: bool
) -> Any:
    """Build the parameters from settings as a person writes them; raise InvalidInput for all that is wrong.

    With data, settings in ``required_with_data`` must be among them. A setting that does not go with another one is
    refused.
    """
    fields_by_setting = _list_settings(question, parameters_type)
    types_by_field = text_fields.list_field_types(parameters_type)
    values_by_field: dict[str, Any] = {
        field_name: _parse_setting(types_by_field[field_name], field_name, option_text)
        for field_name, option_text in question.fixed_settings.items()
    }
    with Problems() as problems:
        for setting_name, value in settings.items():
            if value is None and setting_name in question.nullable_settings:
                continue
            if setting_name not in fields_by_setting:
                known_names = *fields_by_setting, *question.column_arguments
                near_names = difflib.get_close_matches(setting_name, known_names, 1)
                proposal_text = f"; is {near_names[0]} meant?" if near_names else ""
                problems.add(f"there is no setting {setting_name[:40]!r} of {call_name}{proposal_text}")
                continue
            field_name = fields_by_setting[setting_name].name
            with problems.collecting():
                values_by_field[field_name] = _parse_setting(types_by_field[field_name], setting_name, value)
        for setting_name, f in fields_by_setting.items():
            must_be_given = has_data and setting_name in question.required_with_data
            must_be_given |= _is_required(question, setting_name, f)
            if must_be_given and settings.get(setting_name) is None:
                problems.add(f"{setting_name} is missing")
                values_by_field[f.name] = None
        if problems.entries:
            try:
                parameters_type(**values_by_field)
            except InvalidInput as refused:  # What is missing is said already.
                problems.extend(p for p in refused.problems if not p.message.endswith("got None"))
    parameters = parameters_type(**values_by_field)
    # Parameters replace a choice that does not go with another one; a call says that it cannot hold.
    # Imported late: the command's help needs no NumPy.
    from dpcore.common.parameters import declared_fields, describe_misplaced

    declared_fields_by_name = declared_fields(parameters_type)
    with problems:
        for field_name in parameters.unused_names:
            value = getattr(parameters, field_name)
            if values_by_field.get(field_name, value) != value:
                problems.add(describe_misplaced(declared_fields_by_name[field_name], declared_fields_by_name))
    return parameters


def _parse_setting(annotation: Any, setting_name: str, value: Any) -> Any:
    """Convert a setting to the type of its field: an option from its name or its value in links, a text from a list.

    Other values are returned as they are, for the parameters to check; an unknown option raises InvalidInput.
    """
    options_type = text_fields.find_options_type(annotation)
    if options_type is None or isinstance(value, options_type) or value is None:
        if hasattr(value, "tolist"):  # numbers of NumPy
            value = value.tolist()
        if setting_name == "groups":
            from dpcore.data.group_list import write_groups

            return write_groups(value)
        if annotation in (str, str | None):
            if isinstance(value, list | tuple):  # Lines of a plan, or quantiles, one by one.
                return "; ".join(map(str, value))
            if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
        return value
    if option := text_fields.find_option(options_type, value):
        return option
    options_text = text_fields.list_options(options_type)
    raise refuse(f"{setting_name} must be one of {options_text}; got {str(value)[:40]!r}")


def _build_signature(question: Question, parameters_type: Any) -> inspect.Signature:
    """Build the signature of a call: the data (None by default if settings can replace them), columns, settings."""
    from dpcore.reply import Reply

    fields_by_setting = _list_settings(question, parameters_type)
    no_default = inspect.Parameter.empty
    column_defaults = {"disclosure": "private", "intercept": True, "releases": 1}
    column_defaults |= dict.fromkeys(question.needed_columns, no_default)
    defaults_by_name = {name: column_defaults.get(name) for name in question.column_arguments}
    for name, f in fields_by_setting.items():  # Those without a default come first.
        default = None if name in question.nullable_settings else f.default
        defaults_by_name[name] = no_default if _is_required(question, name, f) else default
    data_argument = inspect.Parameter(
        "data", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if question.default_data else no_default
    )
    keyword_arguments = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_to_text(default))
        for name, default in defaults_by_name.items()
    ]
    return inspect.Signature([data_argument, *keyword_arguments], return_annotation=Reply)


def _write_docstring(question: Question, parameters_type: Any, build_answer: Any) -> str:
    """Write the docstring of a call from that of ``build_answer`` and the help of its settings."""
    # Here, as NumPy comes with it, and help on all commands needs none.
    from dpcore.common.parameters import describe

    help_by_field = describe(parameters_type)
    types_by_field = text_fields.list_field_types(parameters_type)
    first_paragraph, _, remainder = (inspect.getdoc(build_answer) or "").partition("\n\nArgs:")
    ending_match = re.search(r"^(Examples|Source):.*", remainder, flags=re.MULTILINE | re.DOTALL)
    counts_phrase = "" if question.table_module else "rows per user as a list; a `ContributionHistogram`; "
    none_sentence = (
        " You need no data if the settings below define the example." if question.default_data else ""
    )
    docstring_lines = [
        first_paragraph,
        "",
        "Args:",
        "    data: A table in memory (pandas, Polars, Arrow), one row per contribution; the path of a file; "
        f"{counts_phrase}or a `Dataset`.{none_sentence}",
        *(f"    {name}: {HELP_BY_COLUMN[name]}" for name in question.column_arguments),
    ]
    for name, f in _list_settings(question, parameters_type).items():
        options_type = text_fields.find_options_type(types_by_field[f.name])
        value_sentences = f" One of {text_fields.list_options(options_type)}." if options_type else ""
        if name == "source" and question.source_with_data:
            value_sentences += f" Where data are given it is {question.source_with_data!r} by default."
        if name in question.derived_settings:
            value_sentences += " By default it follows from the data: see `choose_defaults`."
        if name in question.required_with_data:
            value_sentences += " It must be said where data are given."
        docstring_lines.append(f"    {name}: {help_by_field[f.name]}{value_sentences}")
    docstring_lines += [
        "",
        "Returns:",
        '    The answer: `print` it, or read its `bound`, `error`, `numbers`, `figure()`, `code("opendp")`,',
        '    `report("file.html")`, `script()`, `to_json()`.',
        "",
        "Raises:",
        "    InvalidInput: The page's sentences on bad input, all at once; a `ValueError`.",
        *(["", ending_match.group().rstrip()] if ending_match else []),
    ]
    return "\n".join(docstring_lines)
