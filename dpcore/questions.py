"""One call per question, from a person's data to an `Answer`.

    import dpcore as ss
    answer = ss.mean_bound(df, user="user_id", value="amount", epsilon=1, lower=0, upper=100)
    print(answer)

Each takes the data first (see `dpcore.counting.frames.to_dataset`) and the question's settings by name: those of the
page, with the page's checks. What is loaded for a question is loaded with its first call.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, InvalidInput, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import list_field_types

if TYPE_CHECKING:
    from dpcore.reply import Reply

COLUMNS = (
    "user",
    "value",
    "group",
    "label",
    "features",
    "levels",
    "intercept",
    "ranges",
    "positive",
    "disclosure",
)
"""What says how the data are read; everything else is the question's."""
OF_LABELS = ("label", "features", "levels", "intercept")
"""Those of a table with a label that is predicted from features."""
MOST_LETTERS = 20
"""Longest name of an option that is written in full."""


@dataclass(frozen=True)
class Question:
    """What one call asks.

    Attributes:
        of: Package of its mathematics, below `dpcore`.
        needs: Which of value and group it cannot do without.
        takes: Which of them it takes.
        stated: Settings that have a default on the page and must be said here, as a wrong one is not seen.
        fixed: Settings that the call itself stands for, as a field holds them.
        alone: What stands in place of data where the settings say all: none are needed then. Empty where data are.
        source: What that setting is where data are given and it is not said; empty where the answer sees to it itself.
        names: What a setting is called here, where the page's parameters have another name: here to there.
        by_data: Settings that follow from the data where they are not said, as ``usual`` of the package has them; the
            page proposes the same.
        with_data: Settings that must be said where data are given, and say nothing of data that are generated.
        labelled: Module of the package whose ``read_labelled_table`` makes of a table with a label what the question
            takes; empty where the question is about how many rows users have.
    """

    of: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    alone: tuple[Any, ...] = ()
    source: str = ""
    by_data: tuple[str, ...] = ()
    with_data: tuple[str, ...] = ()
    labelled: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the arguments that say how the data are read."""
        always = ("user", "disclosure", *(OF_LABELS if self.labelled else ()))
        return tuple(name for name in COLUMNS if name in (*always, *self.needs, *self.takes))


ALONE = " None where the settings below name what is asked about."
ASKED = {
    "mean_bound": Question(
        "mean",
        takes=("value",),
        stated=("lower", "upper"),
        by_data=("counts", "variance_source", "target", "likeness"),
    ),
    "count_bound": Question("total", fixed={"summed": "rows"}),
    "sum_bound": Question("total", needs=("value",), fixed={"summed": "values"}),
    "group_bounds": Question("per_group", needs=("group",), takes=("value",)),
    "quantile_bound": Question(
        "quantile",
        needs=("value",),
        names={"lower": "low", "upper": "high"},
        by_data=("bound_from", "neighbours"),
    ),
    "plan_bounds": Question(
        "plan", takes=("value", "group"), by_data=("variance_source", "target", "likeness")
    ),
    "learning_bound": Question("learning"),
    "examples_bound": Question("examples_per_user"),
    "weights_gain": Question("gap_examples"),
    "training_bound": Question(
        "training", takes=("ranges", "positive"), alone=(None,), labelled="training_data"
    ),
    "regression_weights": Question("regression", alone=(None,), labelled="design_matrix"),
    "task_weights": Question("multitask", takes=("group",), alone=(None,), source="data"),
    "rating_weights": Question(
        "factorisation",
        takes=("value", "group"),
        with_data=("lower", "upper"),
        names={"lower": "lowest", "upper": "highest"},
        alone=(None,),
    ),
    "private_bound": Question("private_choice", names={"neighbours": "relation"}, by_data=("user_share",)),
    "owners": Question("data_owners", alone=(Disclosure.PUBLIC,), source="data"),
}
"""By the name of the call."""


SELECTABLE = "mean_bound", "count_bound", "sum_bound", "group_bounds", "quantile_bound", "learning_bound"
"""Calls of `ASKED` whose bound can be drawn privately; `private_bound` has settings of its own for that."""


def command_of(name: str) -> str:
    """Return the name of a question in a shell: its call without ``_bound``, but for ``count_bound``."""
    short = re.sub(r"_bounds?$", "", name)
    return (name if short == "count" else short).replace("_", "-")


def call_of(name: str) -> Callable[..., Reply]:
    """Build the function that asks a question.

    Args:
        name: One of `ASKED`.

    Returns:
        The function, with the signature and the docstring that `help` shows.
    """
    asked = ASKED[name]
    build_answer, kind, _ = _parts(asked)

    def call(data: Any = None, **settings: Any) -> Reply:
        return reply_of(name, data, settings)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = _signature(asked, kind)  # type: ignore[attr-defined]
    call.__doc__ = _docstring(asked, kind, build_answer)
    return call


def reply_of(name: str, data: Any, settings: Mapping[str, Any]) -> Reply:
    """Answer a question about data, and return the answer as a person reads it.

    Args:
        name: One of `ASKED`.
        data: As the call takes it.
        settings: Likewise, the columns among them.

    Raises:
        InvalidInput: All that is wrong with data and settings.
    """
    from dpcore.dataset import Dataset
    from dpcore.reply import Reply

    asked = ASKED[name]
    build_answer, kind, own = _parts(asked)
    columns = {key: settings[key] for key in asked.columns if key in settings}
    # What the question takes beside a data set.
    beside = isinstance(data, own) and not isinstance(data, Dataset)
    given = {"source": asked.source} if asked.source and data is not None and not beside else {}
    parameters: Any = None
    problems: list[InputProblem] = []
    try:
        said = given | {key: settings[key] for key in settings if key not in columns}
        parameters = _parameters(name, asked, kind, said, data is not None)
    except InvalidInput as refused:
        problems += refused.problems
    try:
        if asked.alone and data is None:
            brought = asked.alone[0]
        elif beside:
            brought = data
        else:
            brought = _brought(asked, data, columns)
    except InvalidInput as refused:
        problems += refused.problems
    if problems:
        raise InvalidInput(problems)
    if asked.by_data:
        usual = importlib.import_module(f"dpcore.{asked.of}").choose_defaults(brought)
        unsaid = {key: usual[key] for key in asked.by_data if settings.get(key) is None}
        parameters = dataclasses.replace(parameters, **unsaid)
    answer = build_answer(brought, parameters)
    call, data_set = call_with(asked.of, answer.parameters), brought if isinstance(brought, Dataset) else None
    assert call is not None
    asks = (inspect.getdoc(build_answer) or "").partition("\n")[0]
    return Reply(answer, (name, call[1]), f"dpcore.{asked.of}.answer", asks, data_set, brought)


def _brought(asked: Question, data: Any, columns: Mapping[str, Any]) -> Any:
    """Convert the data to the type that the question takes.

    Raises:
        InvalidInput: It cannot be read so, or a column that the question needs is not named; all at once.
    """
    from dpcore.counting.frames import to_dataset
    from dpcore.counting.labelled import read_labelled
    from dpcore.dataset import Dataset

    if asked.labelled and not isinstance(data, Dataset):
        made = importlib.import_module(f"dpcore.{asked.of}.{asked.labelled}").read_labelled_table
        return read_labelled(made, data, **columns)
    named = {key: columns[key] for key in columns if key not in OF_LABELS}
    return to_dataset(data, **named, needs=asked.needs)


def types_of(name: str) -> dict[str, Any]:
    """Return the type of every setting of a call but the columns, by name."""
    asked = ASKED[name]
    _, kind, _ = _parts(asked)
    hints = list_field_types(kind)
    own = {here: hints[of.name] for here, of in _settings(asked, kind).items()}
    return {"intercept": bool} | own if "intercept" in asked.columns else own


def _parts(asked: Question) -> tuple[Callable[..., Any], Any, Any]:
    """Return the function that answers, and the types of its parameters and of its data."""
    build_answer = importlib.import_module(f"dpcore.{asked.of}.answer").build_answer
    hints = typing.get_type_hints(build_answer)
    return build_answer, hints["parameters"], next(iter(hints.values()))


def call_with(of: str, parameters: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the call that asks this question, and its settings as a person writes them, without defaults.

    Args:
        of: Package of the question's mathematics, below `dpcore`.
        parameters: As the page has them.

    Returns:
        Name and settings; None where no call asks this question.
    """
    written = {
        f.name: _written(getattr(parameters, f.name)) for f in dataclasses.fields(parameters) if f.init
    }
    for name, asked in ASKED.items():
        if asked.of == of and all(written[there] == text for there, text in asked.fixed.items()):
            own = _settings(asked, type(parameters))
            return name, {
                here: written[f.name]
                for here, f in own.items()
                if _must_be_said(asked, here, f)
                or here in (*asked.by_data, *asked.with_data)
                or getattr(parameters, f.name) != f.default
            }
    return None


def _written(value: Any) -> Any:
    return _called(value) if isinstance(value, enum.Enum) else value


def _settings(asked: Question, kind: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the question's own settings by the name that they have here, those without a default first."""
    called = {there: here for here, there in asked.names.items()}
    known = {called.get(f.name, f.name): f for f in dataclasses.fields(kind) if f.name not in asked.fixed}
    return dict(sorted(known.items(), key=lambda one: not _must_be_said(asked, *one)))


def _must_be_said(asked: Question, name: str, of: dataclasses.Field[Any]) -> bool:
    return of.default is MISSING or name in asked.stated


def _parameters(
    name: str, asked: Question, kind: Any, settings: Mapping[str, Any], of_data: bool = False
) -> Any:
    known, types_of = _settings(asked, kind), list_field_types(kind)
    values: dict[str, Any] = {
        there: _read(types_of[there], there, text) for there, text in asked.fixed.items()
    }
    with Problems() as problems:
        for here, given in settings.items():
            if given is None and here in (*asked.by_data, *asked.with_data):
                continue
            if here not in known:
                near = difflib.get_close_matches(here, [*known, *asked.columns], 1)
                problems.add(
                    f"there is no setting {here[:40]!r} of {name}"
                    + (f"; is {near[0]} meant?" if near else "")
                )
                continue
            try:
                values[known[here].name] = _read(types_of[known[here].name], here, given)
            except InvalidInput as refused:
                problems.extend(refused.problems)
        for here, of in known.items():
            must = _must_be_said(asked, here, of) or (of_data and here in asked.with_data)
            if must and settings.get(here) is None:
                problems.add(f"{here} is missing")
                values[of.name] = None
        if problems.entries:
            try:
                kind(**values)
            except InvalidInput as refused:  # What is missing is said already.
                problems.extend(p for p in refused.problems if not p.message.endswith("got None"))
    return kind(**values)


def _options(hint: Any) -> type[enum.Enum] | None:
    """Return the enumeration of which a setting is a member; None where it is of another type."""
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    return hint if isinstance(hint, type) and issubclass(hint, enum.Enum) else None


def _read(hint: Any, name: str, given: Any) -> Any:
    """Convert a setting to the type of the parameters; an option is given by its value in links, or by its name."""
    options = _options(hint)
    if options is None or isinstance(given, options) or given is None:
        if hasattr(given, "tolist"):  # numbers of NumPy
            given = given.tolist()
        if hint in (str, str | None):
            if isinstance(given, list | tuple):  # Lines of a plan, or quantiles, one by one.
                return "; ".join(map(str, given))
            if isinstance(given, int | float) and not isinstance(given, bool):
                return str(given)
        return given

    def plain(text: object) -> str:
        return str(text).lower().replace("-", "_")

    for option in options:
        if plain(given) in (plain(option.value), plain(option.name)):
            return option
    raise refuse(f"{name} must be one of {_listed(options)}; got {str(given)[:40]!r}")


def _called(option: enum.Enum) -> str:
    """Return the text by which a person names an option: its value in links where that is short, else its name."""
    return str(option.value) if len(str(option.value)) <= MOST_LETTERS else option.name.lower()


def _listed(options: type[enum.Enum]) -> str:
    return ", ".join(repr(_called(one)) for one in options)


def _signature(asked: Question, kind: Any) -> inspect.Signature:
    from dpcore.reply import Reply

    def named(name: str, default: Any) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_written(default))

    own = _settings(asked, kind)
    empty = inspect.Parameter.empty
    said = [named(name, empty) for name, of in own.items() if _must_be_said(asked, name, of)]
    columns = [named(name, empty if name in asked.needs else _UNSAID.get(name)) for name in asked.columns]
    rest = [
        named(name, None if name in (*asked.by_data, *asked.with_data) else of.default)
        for name, of in own.items()
        if not _must_be_said(asked, name, of)
    ]
    data = inspect.Parameter(
        "data", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if asked.alone else empty
    )
    return inspect.Signature([data, *columns, *said, *rest], return_annotation=Reply)


_UNSAID = {"disclosure": "private", "intercept": True}
_OF_COLUMNS = {
    "user": "The column that says who a row belongs to, or several that say so together.",
    "value": "The column of numbers that is released.",
    "group": "The column of groups, or several that name one together.",
    "label": "The column that is predicted: numbers, or words where `positive` is taken and names one of them.",
    "features": "The columns that it is predicted from: numbers as they are, others one-hot. By default all that can "
    "be used.",
    "levels": "The public list of a column's levels, the reference level first, by column. By default they are read "
    "off the cells.",
    "intercept": "Whether a column of ones comes first.",
    "ranges": "The public range of each column that enters as a number, lowest and highest, by column.",
    "positive": "The class of the label that counts as 1, as its cells have it; all others are -1. By default labels "
    "are numbers.",
    "disclosure": '"private" or "public", or the facts of a DP release; the answer carries the label.',
}


def _docstring(asked: Question, kind: Any, build_answer: Any) -> str:
    told = _attributes(inspect.getdoc(kind) or "")
    # Here, as NumPy comes with them, and help on all commands needs none.
    from dpcore.common.parameters import Parameters, describe

    if issubclass(kind, Parameters):
        told = _attributes(inspect.getdoc(Parameters) or "") | describe(kind)
    types_of = list_field_types(kind)
    first, _, rest = (inspect.getdoc(build_answer) or "").partition("\n\nArgs:")
    source = re.search(r"^Source: .*", rest, flags=re.MULTILINE | re.DOTALL)
    lines = [
        first,
        "",
        "Args:",
        "    data: A table in memory (pandas, Polars, Arrow), one row per contribution; the path of a file; "
        + ("" if asked.labelled else "rows per user as a list; a `ContributionHistogram`; ")
        + f"or a `Dataset`.{ALONE if asked.alone else ''}",
        *(f"    {name}: {_OF_COLUMNS[name]}" for name in asked.columns),
    ]
    for name, of in _settings(asked, kind).items():
        options = _options(types_of[of.name])
        which = f" One of {_listed(options)}." if options else ""
        if name == "source" and asked.source:
            which += f" Where data are given it is {asked.source!r} by default."
        if name in asked.by_data:
            which += " By default it follows from the data: see `choose_defaults`."
        if name in asked.with_data:
            which += " It must be said where data are given."
        lines.append(f"    {name}: {_with_numbers(told.get(of.name, ''), kind)}{which}")
    lines += [
        "",
        "Returns:",
        '    The answer: `print` it, or read its `bound`, `error`, `numbers`, `figure()`, `code("opendp")`,',
        '    `report("file.html")`, `script()`, `to_json()`, `open()`.',
        "",
        "Raises:",
        "    InvalidInput: The page's sentences on bad input, all at once; a `ValueError`.",
        *(["", source.group().rstrip()] if source else []),
    ]
    return "\n".join(lines)


def _attributes(doc: str) -> dict[str, str]:
    """Return the descriptions of a class's attributes in its docstring, by name."""
    _, _, section = doc.partition("Attributes:\n")
    section, *_ = re.split(r"\n(?=\S)", section)
    sections = re.findall(r"^    (\w+): (.*(?:\n {6,}.*)*)", section, flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in sections}


def _with_numbers(text: str, kind: Any) -> str:
    """Replace the names of constants in the text by their numbers."""

    def numbers(found: re.Match[str]) -> str:
        module, _, name = found[2].rpartition(".")
        places = [kind.__module__, f"{kind.__module__.rpartition('.')[0]}.{module}", module]
        for place in places if name.isupper() else ():
            held = getattr(sys.modules.get(place), name, None)
            if isinstance(held, tuple | list) and all(isinstance(one, int | float) for one in held):
                said = [wording.entered(one) for one in held]
                return f"from {said[0]} to {said[1]}" if found[1] == "in " else found[1] + ", ".join(said)
            if isinstance(held, int | float):
                return found[1] + wording.entered(held)
        return found[0]

    return re.sub(r"((?:in )?)`([\w.]+)`", numbers, text)
