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
import functools
import gc
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any

from dpcore.call_description import (
    LABEL_ARGUMENTS,
    RANGE_PACKAGES,
    CallSpec,
    build_signature,
    is_required,
    list_settings,
    to_text,
    write_docstring,
)
from dpcore.common import text_fields
from dpcore.common.checks import InputProblem, InvalidInput, Problems, quote, refuse
from dpcore.common.privacy import Disclosure

if TYPE_CHECKING:
    import pandas as pd

    from dpcore.reply import Reply

QUESTIONS = {
    "mean_bound": CallSpec(
        "mean",
        accepted_columns=("value",),
        required_settings=("lower", "upper"),
        derived_settings=("counts", "variance_source", "target", "likeness"),
    ),
    "count_bound": CallSpec(
        "total",
        fixed_settings={"summed": "rows"},
        purpose_sentence="Find the best bound on rows per user for a count of rows.",
    ),
    "sum_bound": CallSpec(
        "total",
        needed_columns=("value",),
        fixed_settings={"summed": "values"},
        purpose_sentence="Find the best bound on what one user adds to a sum.",
    ),
    "group_bounds": CallSpec("per_group", needed_columns=("group",), accepted_columns=("value",)),
    "quantile_bound": CallSpec(
        "quantile",
        needed_columns=("value",),
        field_names_by_setting={"lower": "low", "upper": "high"},
        derived_settings=("bound_from", "neighbours"),
        program_settings=("weighting",),
    ),
    "variance_bound": CallSpec(
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
        purpose_sentence="Find the best bound on rows per user for a variance.",
    ),
    "plan_bounds": CallSpec(
        "plan", ("value", "group"), derived_settings=("variance_source", "target", "likeness")
    ),
    "learning_bound": CallSpec("learning"),
    "examples_bound": CallSpec("examples_per_user"),
    "weights_gain": CallSpec("gap_examples"),
    "training_bound": CallSpec(
        "training", ("ranges", "positive"), default_data=(None,), table_module="training_data"
    ),
    "regression_weights": CallSpec("regression", default_data=(None,), table_module="problem"),
    "task_weights": CallSpec("multitask", ("group",), default_data=(None,), source_with_data="data"),
    "rating_weights": CallSpec(
        "factorisation",
        accepted_columns=("value", "group"),
        required_with_data=("lower", "upper"),
        field_names_by_setting={"lower": "lowest", "upper": "highest"},
        default_data=(None,),
    ),
    "private_bound": CallSpec(
        "private_choice", field_names_by_setting={"neighbours": "relation"}, derived_settings=("user_share",)
    ),
    "owners": CallSpec("data_owners", default_data=(Disclosure.PUBLIC,), source_with_data="data"),
}
"""By the name of the call."""


SELECTABLE_CALLS = (
    "mean_bound",
    "count_bound",
    "sum_bound",
    "group_bounds",
    "quantile_bound",
    "learning_bound",
)
"""Calls of `QUESTIONS` whose bound can be drawn privately; `private_bound` has settings of its own for that."""


def name_command(call_name: str) -> str:
    """Return the name of a question's command in a shell, such as ``mean`` for ``mean_bound``."""
    short_name = re.sub(r"_bounds?$", "", call_name)
    return (call_name if short_name == "count" else short_name).replace("_", "-")


def build_call(call_name: str) -> Callable[..., Reply | pd.DataFrame]:
    """Build the function that asks a question.

    Args:
        call_name: One of `QUESTIONS`.

    Returns:
        The function, with the signature and the docstring that `help` shows.
    """
    call_question = QUESTIONS[call_name]
    build_answer, parameters_type, _ = _load_answer_types(call_question)

    def answer_question(data: Any = None, **settings: Any) -> Reply | pd.DataFrame:
        """Answer the question, columns and settings by name; if ``epsilon`` is a list, with a table, a row for each."""
        epsilon = settings.get("epsilon")
        if isinstance(epsilon, Iterable) and not isinstance(epsilon, str | bytes | Mapping):
            from dpcore.epsilon_table import tabulate_replies

            answer_at_epsilon = functools.partial(build_reply, call_name)
            return tabulate_replies(
                answer_at_epsilon, call_question.column_arguments, data, settings, list(epsilon)
            )
        return build_reply(call_name, data, settings)

    answer_question.__name__ = answer_question.__qualname__ = call_name
    answer_question.__signature__ = build_signature(call_question, parameters_type)  # type: ignore[attr-defined]
    answer_question.__doc__ = write_docstring(call_question, parameters_type, build_answer)
    return answer_question


def build_reply(call_name: str, data: Any, settings: Mapping[str, Any]) -> Reply:
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
    build_answer, parameters_type, data_type = _load_answer_types(question)
    settings = text_fields.rename_former(call_name, parameters_type, settings)
    columns_by_argument = {name: settings[name] for name in question.column_arguments if name in settings}
    # What the question takes beside a data set.
    is_native = isinstance(data, data_type) and not isinstance(data, Dataset)
    has_source = question.source_with_data and data is not None and not is_native
    parameters: Any = None
    input_problems: list[InputProblem] = []
    try:
        own_settings: dict[str, Any] = {"source": question.source_with_data} if has_source else {}
        has_range = (
            question.package_name in RANGE_PACKAGES or "mean" in str(settings.get("statistic")).lower()
        )
        if settings.get("yes") is not None and has_range:  # The mean of 0 and 1 is a share.
            own_settings |= {"lower": 0.0, "upper": 1.0}
        own_settings |= {name: settings[name] for name in settings if name not in columns_by_argument}
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
            subject = _read_data(question, data, columns_by_argument, further_columns)
    except InvalidInput as refused:
        input_problems += refused.problems
    if input_problems:
        raise InvalidInput(input_problems)
    if question.derived_settings:
        question_package = importlib.import_module(f"dpcore.{question.package_name}")
        default_settings = question_package.choose_defaults(subject)
        unset_names = [name for name in question.derived_settings if settings.get(name) is None]
        parameters = dataclasses.replace(parameters, **{name: default_settings[name] for name in unset_names})
    answer = build_answer(subject, parameters)
    dataset = subject if isinstance(subject, Dataset) else None
    purpose_sentence = question.purpose_sentence or (inspect.getdoc(build_answer) or "").partition("\n")[0]
    arguments = {name: to_text(value) for name, value in columns_by_argument.items() if value is not None}
    if not (is_native or data is None or isinstance(data, Dataset)):
        arguments.setdefault("disclosure", "private")
    arguments |= list_call_settings(question, answer.parameters)
    package_name = f"dpcore.{question.package_name}.answer"
    return Reply(answer, (call_name, arguments), package_name, purpose_sentence, dataset, subject)


@contextlib.contextmanager
def _pause_collector() -> Iterator[None]:
    """Switch off garbage collection in a block or function, and restore it afterwards.

    Loading 900 modules at a first call takes 0.1 s longer with it.
    """
    was_enabled = gc.isenabled()
    num_modules = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # Only where modules were loaded: to count a million frozen objects takes 25 ms.
            if len(sys.modules) > num_modules and not gc.get_freeze_count():
                # Both together call what has loaded old, which is walked through rarely.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@_pause_collector()
def _read_data(
    question: CallSpec, data: Any, columns: Mapping[str, Any], further_columns: Sequence[str] = ()
) -> Any:
    """Convert the data to the type that the question takes: a dataset, or a table with a label.

    Raises:
        InvalidInput: It cannot be read so, or a column that the question needs is not named; all at once.
    """
    from dpcore.counting.count import to_dataset
    from dpcore.counting.frames import read_labelled
    from dpcore.dataset import Dataset

    if question.table_module and not isinstance(data, Dataset):
        table_module = importlib.import_module(f"dpcore.{question.package_name}.{question.table_module}")
        return read_labelled(table_module.read_labelled_table, data, **columns)
    kept_columns = {
        argument_name: columns[argument_name]
        for argument_name in columns
        if argument_name not in LABEL_ARGUMENTS
    }
    return to_dataset(data, **kept_columns, needs=question.needed_columns, further_values=further_columns)


def find_parameters_type(call_name: str) -> type[Any]:
    """Return the parameters class of a call."""
    _, parameters_type, _ = _load_answer_types(QUESTIONS[call_name])
    return parameters_type  # type: ignore[no-any-return]


def find_setting_types(call_name: str) -> dict[str, Any]:
    """Return the types of a call's settings by name.

    Of the arguments for columns, only those that are no column name are among them, such as ``intercept`` and
    ``releases``.
    """
    call_question = QUESTIONS[call_name]
    _, parameters_type, _ = _load_answer_types(call_question)
    types_by_field = text_fields.list_field_types(parameters_type)
    fields_by_setting = list_settings(call_question, parameters_type)
    types_by_setting = {setting_name: types_by_field[f.name] for setting_name, f in fields_by_setting.items()}
    types_by_argument: dict[str, Any] = {
        "intercept": bool,
        "missing": str | float,
        "yes": str,
        "periods": str,
    }
    types_by_argument |= {"filters": str, "releases": int, "person_epsilon": float}
    return types_by_setting | {
        name: hint for name, hint in types_by_argument.items() if name in call_question.column_arguments
    }


@_pause_collector()
def _load_answer_types(question: CallSpec) -> tuple[Callable[..., Any], Any, Any]:
    """Return a question's ``build_answer`` function, the class of its parameters and the type of its data."""
    build_answer = importlib.import_module(f"dpcore.{question.package_name}.answer").build_answer
    types_by_argument = typing.get_type_hints(build_answer)
    return build_answer, types_by_argument["parameters"], next(iter(types_by_argument.values()))


def find_call(package_name: str, parameters: Any) -> tuple[str, dict[str, Any]] | None:
    """Find the call that asks a question with these parameters.

    Args:
        package_name: Package of the question's mathematics, below `dpcore`.
        parameters: As the page has them.

    Returns:
        Name and settings; None where no call asks this question.
    """
    values_by_field = _list_values(parameters)
    for call_name, call_question in QUESTIONS.items():
        has_fixed_settings = call_question.fixed_settings.items() <= values_by_field.items()
        if call_question.package_name == package_name and has_fixed_settings:
            return call_name, list_call_settings(call_question, parameters)
    return None


def list_call_settings(question: CallSpec, parameters: Any) -> dict[str, Any]:
    """Return the settings, by name, with which a call asks for these parameters."""
    named_settings = *question.required_settings, *question.nullable_settings
    values_by_field = _list_values(parameters)
    return {
        setting_name: values_by_field[f.name]
        for setting_name, f in list_settings(question, type(parameters)).items()
        if setting_name in named_settings or f.default is MISSING or getattr(parameters, f.name) != f.default
    }


def _list_values(parameters: Any) -> dict[str, Any]:
    """Return the values of the parameters by field, options as texts."""
    return {f.name: to_text(getattr(parameters, f.name)) for f in dataclasses.fields(parameters) if f.init}


def _build_parameters(
    call_name: str, question: CallSpec, parameters_type: Any, settings: Mapping[str, Any], has_data: bool
) -> Any:
    """Build the parameters from settings as a person writes them; raise InvalidInput for all that is wrong.

    With data, settings in ``required_with_data`` must be among them. A setting that does not go with another one is
    refused.
    """
    fields_by_setting = list_settings(question, parameters_type)
    types_by_field = text_fields.list_field_types(parameters_type)
    values_by_field: dict[str, Any] = {
        field_name: _parse_setting(types_by_field[field_name], field_name, option_text)
        for field_name, option_text in question.fixed_settings.items()
    }
    with Problems() as problems:
        for setting_name, setting_value in settings.items():
            if setting_value is None and setting_name in question.nullable_settings:
                continue
            if setting_name not in fields_by_setting:
                known_names = *fields_by_setting, *question.column_arguments
                near_names = difflib.get_close_matches(setting_name, known_names, 1)
                proposal_text = f"; is {near_names[0]} meant?" if near_names else ""
                problems.add(f"there is no setting {setting_name[:40]!r} of {call_name}{proposal_text}")
                continue
            field_name = fields_by_setting[setting_name].name
            with problems.collecting():
                values_by_field[field_name] = _parse_setting(
                    types_by_field[field_name], setting_name, setting_value
                )
        for setting_name, f in fields_by_setting.items():
            is_required_now = has_data and setting_name in question.required_with_data
            is_required_now |= is_required(question, setting_name, f)
            if is_required_now and settings.get(setting_name) is None:
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
            setting_value = getattr(parameters, field_name)
            if values_by_field.get(field_name, setting_value) != setting_value:
                problems.add(describe_misplaced(declared_fields_by_name[field_name], declared_fields_by_name))
    return parameters


def _parse_setting(type_hint: Any, setting_name: str, setting_value: Any) -> Any:
    """Convert a setting to the type of its field: an option from its name or its value in links, a text from a list.

    Other values are returned as they are, for the parameters to check; an unknown option raises InvalidInput.
    """
    options_type = text_fields.find_options_type(type_hint)
    if options_type is None or isinstance(setting_value, options_type) or setting_value is None:
        if hasattr(setting_value, "tolist"):  # numbers of NumPy
            setting_value = setting_value.tolist()
        if setting_name == "groups":
            from dpcore.data.group_list import write_groups

            return write_groups(setting_value)
        if type_hint in (str, str | None):
            if isinstance(setting_value, list | tuple):  # Lines of a plan, or quantiles, one by one.
                return "; ".join(map(str, setting_value))
            if isinstance(setting_value, int | float) and not isinstance(setting_value, bool):
                return str(setting_value)
        return setting_value
    if option := text_fields.find_option(options_type, setting_value):
        return option
    options_text = text_fields.list_options(options_type)
    raise refuse(f"{setting_name} must be one of {options_text}; got {quote(setting_value)}")
