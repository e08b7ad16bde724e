"""One call per question, from a person's data to an `Answer`.

    import dpcore as ss
    answer = ss.mean_bound(df, user="user_id", value="amount", epsilon=1, lower=0, upper=100)
    print(answer)

Each takes the data first (see `dpcore.counting.count.to_dataset`) and the question's settings by name: those of the
page, with the page's checks. The first call of a question loads the modules that it needs.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any

from dpcore.common.checks import InputProblem, InvalidInput, Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import (
    find_option,
    find_options_type,
    list_field_types,
    list_options,
    name_option,
    rename_former,
)

if TYPE_CHECKING:
    from dpcore.reply import Reply

COLUMNS = {
    "user": "The column that says who a row belongs to, or several that say so together.",
    "value": "The column of numbers that is released.",
    "group": "The column of groups, or several that name one together.",
    "label": "The column that is predicted: numbers, or words of which `positive` names one.",
    "features": "The columns that it is predicted from: numbers as they are, others one-hot. By default all.",
    "levels": "The public list of a column's levels, the reference level first, by column; by default off the cells.",
    "intercept": "Whether a column of ones comes first.",
    "ranges": "The public range of each column that enters as a number, lowest and highest, by column.",
    "positive": "The class of the label that counts as 1; all others are -1. By default labels are numbers.",
    "disclosure": '"private" or "public", or the facts of a DP release; the answer carries the label.',
}
"""What says how the data are read, with its help; everything else is the question's."""
LABEL_ARGUMENTS = ("label", "features", "levels", "intercept")
"""Those of a table with a label that is predicted from features."""


@dataclass(frozen=True)
class Question:
    """The function and parameters of one call.

    Attributes:
        package: Package of its mathematics, below `dpcore`.
        needs: Which of value and group it cannot do without.
        accepts: Which of them it takes.
        required: Settings that have a default on the page and must be said here, as a wrong one is not seen.
        fixed: Settings that the call itself stands for, as a field holds them.
        default_data: What stands in place of data where the settings say all: none are needed then. Empty where data
            are.
        source: What that setting is where data are given and it is not said; empty where the answer sees to it itself.
        names: What a setting is called here, where the page's parameters have another name: here to there.
        by_data: Settings that follow from the data where they are not said, as ``usual`` of the package has them; the
            page proposes the same.
        with_data: Settings that must be said where data are given, and say nothing of data that are generated.
        labelled: Module of the package whose ``read_labelled_table`` makes of a table with a label what the question
            takes; empty where the question is about how many rows users have.
    """

    package: str
    needs: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    default_data: tuple[Any, ...] = ()
    source: str = ""
    by_data: tuple[str, ...] = ()
    with_data: tuple[str, ...] = ()
    labelled: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the arguments that say how the data are read."""
        always = ("user", "disclosure", *(LABEL_ARGUMENTS if self.labelled else ()))
        return tuple(name for name in COLUMNS if name in (*always, *self.needs, *self.accepts))


QUESTIONS = {
    "mean_bound": Question(
        "mean",
        accepts=("value",),
        required=("lower", "upper"),
        by_data=("counts", "variance_source", "target", "likeness"),
    ),
    "count_bound": Question("total", fixed={"summed": "rows"}),
    "sum_bound": Question("total", needs=("value",), fixed={"summed": "values"}),
    "group_bounds": Question("per_group", needs=("group",), accepts=("value",)),
    "quantile_bound": Question(
        "quantile",
        needs=("value",),
        names={"lower": "low", "upper": "high"},
        by_data=("bound_from", "neighbours"),
    ),
    "plan_bounds": Question(
        "plan", accepts=("value", "group"), by_data=("variance_source", "target", "likeness")
    ),
    "learning_bound": Question("learning"),
    "examples_bound": Question("examples_per_user"),
    "weights_gain": Question("gap_examples"),
    "training_bound": Question(
        "training", accepts=("ranges", "positive"), default_data=(None,), labelled="training_data"
    ),
    "regression_weights": Question("regression", default_data=(None,), labelled="problem"),
    "task_weights": Question("multitask", accepts=("group",), default_data=(None,), source="data"),
    "rating_weights": Question(
        "factorisation",
        accepts=("value", "group"),
        with_data=("lower", "upper"),
        names={"lower": "lowest", "upper": "highest"},
        default_data=(None,),
    ),
    "private_bound": Question("private_choice", names={"neighbours": "relation"}, by_data=("user_share",)),
    "owners": Question("data_owners", default_data=(Disclosure.PUBLIC,), source="data"),
}
"""By the name of the call."""


SELECTABLE = "mean_bound", "count_bound", "sum_bound", "group_bounds", "quantile_bound", "learning_bound"
"""Calls of `QUESTIONS` whose bound can be drawn privately; `private_bound` has settings of its own for that."""


def command_of(name: str) -> str:
    """Return the name of a question's command in a shell, such as ``mean`` for ``mean_bound``."""
    short = re.sub(r"_bounds?$", "", name)
    return (name if short == "count" else short).replace("_", "-")


def call_of(name: str) -> Callable[..., Reply]:
    """Build the function that asks a question.

    Args:
        name: One of `QUESTIONS`.

    Returns:
        The function, with the signature and the docstring that `help` shows.
    """
    question = QUESTIONS[name]
    build_answer, parameters_type, _ = _answer_types(question)

    def call(data: Any = None, **settings: Any) -> Reply:
        """Ask the question of data, with these settings."""
        return reply_of(name, data, settings)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = _build_signature(question, parameters_type)  # type: ignore[attr-defined]
    call.__doc__ = _write_docstring(question, parameters_type, build_answer)
    return call


def reply_of(name: str, data: Any, settings: Mapping[str, Any]) -> Reply:
    """Answer a question about data, and return the answer as a person reads it.

    Args:
        name: One of `QUESTIONS`.
        data: As the call takes it.
        settings: Likewise, the columns among them.

    Raises:
        InvalidInput: All that is wrong with data and settings.
    """
    from dpcore.dataset import Dataset
    from dpcore.reply import Reply

    question = QUESTIONS[name]
    build_answer, parameters_type, data_type = _answer_types(question)
    settings = rename_former(name, parameters_type, settings)
    columns = {key: settings[key] for key in question.columns if key in settings}
    # What the question takes beside a data set.
    is_native = isinstance(data, data_type) and not isinstance(data, Dataset)
    has_source = question.source and data is not None and not is_native
    parameters: Any = None
    problems: list[InputProblem] = []
    try:
        own_settings = {"source": question.source} if has_source else {}
        own_settings |= {key: settings[key] for key in settings if key not in columns}
        parameters = _build_parameters(name, question, parameters_type, own_settings, data is not None)
    except InvalidInput as refused:
        problems += refused.problems
    try:
        if question.default_data and data is None:
            subject = question.default_data[0]
        elif is_native:
            subject = data
        else:
            if isinstance(data, Dataset) and not issubclass(Dataset, data_type):
                raise refuse(
                    f"a model needs a table with features and labels; {name} got counts without them",
                    remedy="Pass the table itself, and name its columns",
                )
            subject = _read_data(question, data, columns)
    except InvalidInput as refused:
        problems += refused.problems
    if problems:
        raise InvalidInput(problems)
    if question.by_data:
        defaults = importlib.import_module(f"dpcore.{question.package}").choose_defaults(subject)
        unset_defaults = {key: defaults[key] for key in question.by_data if settings.get(key) is None}
        parameters = dataclasses.replace(parameters, **unset_defaults)
    answer = build_answer(subject, parameters)
    data_set = subject if isinstance(subject, Dataset) else None
    call = call_with(question.package, answer.parameters)
    assert call is not None
    purpose = (inspect.getdoc(build_answer) or "").partition("\n")[0]
    return Reply(answer, (name, call[1]), f"dpcore.{question.package}.answer", purpose, data_set, subject)


def _read_data(question: Question, data: Any, columns: Mapping[str, Any]) -> Any:
    """Convert the data to the type that the question takes: a dataset, or a table with a label.

    Raises:
        InvalidInput: It cannot be read so, or a column that the question needs is not named; all at once.
    """
    from dpcore.counting.count import to_dataset
    from dpcore.counting.frames import read_labelled
    from dpcore.dataset import Dataset

    if question.labelled and not isinstance(data, Dataset):
        module = importlib.import_module(f"dpcore.{question.package}.{question.labelled}")
        return read_labelled(module.read_labelled_table, data, **columns)
    column_settings = {key: columns[key] for key in columns if key not in LABEL_ARGUMENTS}
    return to_dataset(data, **column_settings, needs=question.needs)


def parameters_of(name: str) -> type[Any]:
    """Return the parameters class of a call."""
    _, parameters_type, _ = _answer_types(QUESTIONS[name])
    return parameters_type  # type: ignore[no-any-return]


def types_of(name: str) -> dict[str, Any]:
    """Return the types of a call's own settings, and of ``intercept`` if it has that, by name."""
    question = QUESTIONS[name]
    _, parameters_type, _ = _answer_types(question)
    hints = list_field_types(parameters_type)
    own_types = {setting: hints[f.name] for setting, f in _list_settings(question, parameters_type).items()}
    return {"intercept": bool} | own_types if "intercept" in question.columns else own_types


def _answer_types(question: Question) -> tuple[Callable[..., Any], Any, Any]:
    """Return the function that builds the answer, and the types of its parameters and of its data."""
    build_answer = importlib.import_module(f"dpcore.{question.package}.answer").build_answer
    hints = typing.get_type_hints(build_answer)
    return build_answer, hints["parameters"], next(iter(hints.values()))


def call_with(package: str, parameters: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the call that asks with these parameters: its name and its settings without defaults; None for none.

    Args:
        package: Package of the question's mathematics, below `dpcore`.
        parameters: As the page has them.

    Returns:
        Name and settings; None where no call asks this question.
    """
    texts_by_field = {
        f.name: _to_text(getattr(parameters, f.name)) for f in dataclasses.fields(parameters) if f.init
    }
    for name, question in QUESTIONS.items():
        if question.package == package and question.fixed.items() <= texts_by_field.items():
            always_included = *question.required, *question.by_data, *question.with_data
            settings = _list_settings(question, type(parameters)).items()
            return name, {
                setting: texts_by_field[f.name]
                for setting, f in settings
                if setting in always_included
                or f.default is MISSING
                or getattr(parameters, f.name) != f.default
            }
    return None


def _to_text(value: Any) -> Any:
    """Return an option as the text that names it in a call; other values unchanged."""
    return name_option(value) if isinstance(value, enum.Enum) else value


def _list_settings(question: Question, parameters_type: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of the question's own settings by their names in the call, those without a default first."""
    names_here = {field_name: setting for setting, field_name in question.names.items()}
    settings = {
        names_here.get(f.name, f.name): f
        for f in dataclasses.fields(parameters_type)
        if f.name not in question.fixed
    }
    return dict(sorted(settings.items(), key=lambda item: not _is_required(question, *item)))


def _is_required(question: Question, name: str, f: dataclasses.Field[Any]) -> bool:
    """Return True if a setting has no default, or must be entered although it has one."""
    return f.default is MISSING or name in question.required


def _build_parameters(
    name: str, question: Question, parameters_type: Any, settings: Mapping[str, Any], of_data: bool = False
) -> Any:
    """Build the parameters from settings as a person writes them; raise InvalidInput for all that is wrong."""
    known_settings, types_by_field = (
        _list_settings(question, parameters_type),
        list_field_types(parameters_type),
    )
    values: dict[str, Any] = {
        field_name: _parse_setting(types_by_field[field_name], field_name, text)
        for field_name, text in question.fixed.items()
    }
    with Problems() as problems:
        for setting, value in settings.items():
            if value is None and setting in (*question.by_data, *question.with_data):
                continue
            if setting not in known_settings:
                near_names = difflib.get_close_matches(setting, [*known_settings, *question.columns], 1)
                proposal = f"; is {near_names[0]} meant?" if near_names else ""
                problems.add(f"there is no setting {setting[:40]!r} of {name}{proposal}")
                continue
            field_name = known_settings[setting].name
            with problems.collecting():
                values[field_name] = _parse_setting(types_by_field[field_name], setting, value)
        for setting, f in known_settings.items():
            is_required = _is_required(question, setting, f) or (of_data and setting in question.with_data)
            if is_required and settings.get(setting) is None:
                problems.add(f"{setting} is missing")
                values[f.name] = None
        if problems.entries:
            try:
                parameters_type(**values)
            except InvalidInput as refused:  # What is missing is said already.
                problems.extend(p for p in refused.problems if not p.message.endswith("got None"))
    parameters = parameters_type(**values)
    # Parameters replace a choice that does not go with another one; a call says that it cannot hold.
    # Imported late: the command's help needs no NumPy.
    from dpcore.common.parameters import declared_fields, describe_misplaced

    declared = declared_fields(parameters_type)
    with problems:
        for field_name in parameters.unused_names:
            if values.get(field_name, getattr(parameters, field_name)) != getattr(parameters, field_name):
                problems.add(describe_misplaced(declared[field_name], declared))
    return parameters


def _parse_setting(hint: Any, name: str, value: Any) -> Any:
    """Convert a setting to the type of the parameters; an option is given by its value in links, or by its name."""
    options = find_options_type(hint)
    if options is None or isinstance(value, options) or value is None:
        if hasattr(value, "tolist"):  # numbers of NumPy
            value = value.tolist()
        if hint in (str, str | None):
            if isinstance(value, list | tuple):  # Lines of a plan, or quantiles, one by one.
                return "; ".join(map(str, value))
            if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
        return value

    if option := find_option(options, value):
        return option
    raise refuse(f"{name} must be one of {list_options(options)}; got {str(value)[:40]!r}")


def _build_signature(question: Question, parameters_type: Any) -> inspect.Signature:
    """Build the signature of a call: the data, then columns and settings by keyword."""
    from dpcore.reply import Reply

    def build_keyword(name: str, default: Any) -> inspect.Parameter:
        """Build a keyword argument with this default."""
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_to_text(default))

    settings = _list_settings(question, parameters_type)
    empty = inspect.Parameter.empty
    required = [build_keyword(name, empty) for name, f in settings.items() if _is_required(question, name, f)]
    defaults = {"disclosure": "private", "intercept": True} | dict.fromkeys(question.needs, empty)
    columns = [build_keyword(name, defaults.get(name)) for name in question.columns]
    optional = [
        build_keyword(name, None if name in (*question.by_data, *question.with_data) else f.default)
        for name, f in settings.items()
        if not _is_required(question, name, f)
    ]
    data = inspect.Parameter(
        "data", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if question.default_data else empty
    )
    return inspect.Signature([data, *columns, *required, *optional], return_annotation=Reply)


def _write_docstring(question: Question, parameters_type: Any, build_answer: Any) -> str:
    """Write the docstring of a call from that of ``build_answer`` and the help of its settings."""
    # Here, as NumPy comes with it, and help on all commands needs none.
    from dpcore.common.parameters import describe

    texts = describe(parameters_type)
    types_of = list_field_types(parameters_type)
    first, _, remainder = (inspect.getdoc(build_answer) or "").partition("\n\nArgs:")
    ending = re.search(r"^(Examples|Source):.*", remainder, flags=re.MULTILINE | re.DOTALL)
    counts = "" if question.labelled else "rows per user as a list; a `ContributionHistogram`; "
    no_data = " None where the settings below name what is asked about." if question.default_data else ""
    lines = [
        first,
        "",
        "Args:",
        "    data: A table in memory (pandas, Polars, Arrow), one row per contribution; the path of a file; "
        f"{counts}or a `Dataset`.{no_data}",
        *(f"    {name}: {COLUMNS[name]}" for name in question.columns),
    ]
    for name, f in _list_settings(question, parameters_type).items():
        options = find_options_type(types_of[f.name])
        which = f" One of {list_options(options)}." if options else ""
        if name == "source" and question.source:
            which += f" Where data are given it is {question.source!r} by default."
        if name in question.by_data:
            which += " By default it follows from the data: see `choose_defaults`."
        if name in question.with_data:
            which += " It must be said where data are given."
        lines.append(f"    {name}: {texts[f.name]}{which}")
    lines += [
        "",
        "Returns:",
        '    The answer: `print` it, or read its `bound`, `error`, `numbers`, `figure()`, `code("opendp")`,',
        '    `report("file.html")`, `script()`, `to_json()`.',
        "",
        "Raises:",
        "    InvalidInput: The page's sentences on bad input, all at once; a `ValueError`.",
        *(["", ending.group().rstrip()] if ending else []),
    ]
    return "\n".join(lines)
