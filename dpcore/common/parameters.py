"""The fields of a question, each declared once on the question's parameters class.

    @dataclass(frozen=True)
    class LearningParameters(Parameters):
        loss_variance: float = of_data.number(0.25, "Users differ, Var(H)", (0.0, 0.25), name="Var(H)", place=LINE)
        \"\"\"The variance of the expected loss between users.\"\"\"

The docstring below a field is its help text. Validation, widget, session key, link, session file, command option,
docstring of the call, report line and cache key follow from the declaration.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import itertools
import sys
import typing
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import NoneType
from typing import Any, Self, TypeVar

from dpcore.common.checks import EPSILON_RANGE, Problems, quote
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.common.programs import Program
from dpcore.common.text_fields import DECLARATION_KEY, LONGEST_KEY, MAX_TEXT, list_field_types
from dpcore.common.wording import capitalise, format_entered

P = TypeVar("P", bound="Parameters")

UNSET = object()
"""Stands for a missing value where None is a value."""
REQUIRED: Any = MISSING
"""The default of a field that has none."""


class FieldOrigin(enum.Enum):
    """The possible origin of the value of a field, which decides what happens to it when the data change.

    A value that was entered for one file or column is no answer for another. A DP histogram replaces the data that it
    was drawn from; a value that may have been read off those data could then reach a link or a release. So a field
    keeps its value only if it is declared public.
    """

    PUBLIC = "public: it is never read off data"
    OWN_DATA = "it belongs to data or a file that the page has for itself"
    VALUES = "it may have been read off values, where there were some"
    DATA = "it may have been read off the data"

    def each(self, *names: str) -> dict[str, FieldOrigin]:
        """Return a dictionary from each of these names to this origin."""
        return dict.fromkeys(names, self)


class Option(enum.Enum):
    """Values of a choice, each with the label that the page shows: ``PUBLIC = "public", "Everybody knows them"``."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        """Return a member with its value and its label."""
        member = object.__new__(cls)
        member._value_, member.label = value, label
        return member


class Place(enum.Enum):
    """The place of a field on its page."""

    LINE = "in the line above the figure"
    MORE = "under More settings"
    OWN = "under the answer, for a bound of the user's own"
    CARD = "in the answer's private selection"
    TAB = "in a tab"
    SOURCE = "beside the data that the page has for itself"


LINE, MORE, OWN, CARD, TAB, SOURCE = Place


@dataclass(frozen=True)
class Field:
    """One field of a parameters class.

    Type and default are those of the dataclass field.

    Attributes:
        label: Label of the widget.
        help: Text shown at the label.
        origin: Where the value may have come from; data unless declared otherwise. On a page with data of its own,
            "data" means these.
        is_renewed: True if new data set the field back to the value that it begins with.
        name: Phrase by which sentences name the field: "the VC dimension d".
        is_required: True if the field must not be empty while it is used. By default a number must not be empty if
            its type excludes None, or if a ``name`` is given.
        report_label: Name of the field in a report; the label if empty.
        initial: Value that the widget begins with; the default if not given.
        options: Text of each value, for fields with few values.
        uses_select_box: True if the options stand in a select box instead of on buttons.
        slider: (from, to, step) of a field that is set by a slider.
        stops: The only values that a slider has; empty if it has all.
        format: How the slider writes its number; Streamlit's own way if empty.
        max_length: Largest number of characters that the widget of a text takes. Links and session files may hold
            more: `dpcore.common.text_fields.MAX_TEXT`.
        value_type: bool or str; float for all numbers.
        is_integer: True if the buttons beside the field count by 1.
        step: Step of these buttons if it is not 1.
        is_published: True if every release states the value, as it does the ends of a range. It is chosen from what the
            quantity is, never from the data. It stays in the browser's address beside private data, too.
        shared: Name of the value that all pages share, such as ``delta``; empty if only this page has it.
        placeholder: Text shown while the field is empty.
        width: Width in pixels; None for all the room there is.
        limits: Smallest and largest number; None if the class checks the value itself.
        place: Where the page draws the field; the answer for the data depends on fields in LINE, MORE and SOURCE only.
        only_with: (other field, values): the field applies only while the other has one of these values. A field
            that is None by default must be None otherwise.
        enabled_with: The same, for a field that can only be read otherwise.
        former_name: Name of the field in the version before; links, session files and calls may still have it.
    """

    label: str = ""
    help: str = ""
    origin: FieldOrigin = FieldOrigin.DATA
    is_renewed: bool = False
    name: str = ""
    is_required: bool | None = None
    report_label: str = ""
    initial: Any = UNSET
    options: Mapping[Any, str] | None = None
    uses_select_box: bool = False
    slider: tuple[float, float, float] | None = None
    stops: tuple[int, ...] = ()
    format: str = ""
    max_length: int | None = None
    value_type: type = float
    is_integer: bool = False
    step: float | None = None
    is_published: bool = False
    shared: str = ""
    placeholder: str = ""
    width: int | None = None
    limits: tuple[float, float] | None = None
    place: Place = Place.MORE
    only_with: tuple[str, Collection[Any]] | None = None
    enabled_with: tuple[str, Collection[Any]] | None = None
    former_name: str = ""

    @property
    def subject(self) -> str:
        """Return the field's name in sentences about its value."""
        return self.name or self.report_label or self.label

    def complete(self, type_hint: Any, default: Any) -> Field:
        """Return the field with the attributes that follow from the dataclass field's type and default filled in."""
        allowed_types = typing.get_args(type_hint) or (type_hint,)
        accepts_numbers = int in allowed_types or float in allowed_types
        is_required = self.is_required
        if is_required is None:
            is_required = bool(self.name) or (accepts_numbers and NoneType not in allowed_types)
        return replace(
            self,
            name=self.name or (self.label if is_required else ""),
            is_required=is_required,
            initial=(None if default is MISSING else default) if self.initial is UNSET else self.initial,
            value_type=next((t for t in (bool, str) if t in allowed_types), float),
            is_integer=self.is_integer or int in allowed_types,
        )

    def check(self, problems: Problems, field_value: Any, type_hint: Any) -> None:
        """Add a problem if a value is missing, not an option, or outside the limits.

        It is for a field that applies with the choices made.
        """
        allowed_values = self.stops or tuple(self.options or ())
        if allowed_values and field_value not in allowed_values:
            options_text = ", ".join(
                f"{allowed_value:,}" if isinstance(allowed_value, int) else str(allowed_value.value)
                for allowed_value in allowed_values
            )
            problems.add(f"{self.name} must be one of {options_text}; got {quote(field_value)}")
        elif field_value is None and self.only_with is not None and self.is_required:
            problems.add(f"{self.name} is missing", remedy="Enter a number")
        elif self.limits is not None and (field_value is not None or self.is_required):
            if int in (typing.get_args(type_hint) or (type_hint,)):
                problems.whole(int(self.limits[0]), int(self.limits[1]), **{self.name: field_value})
            else:
                problems.between(*self.limits, **{self.name: field_value})


EPSILON = Field("Privacy budget ε", "", FieldOrigin.PUBLIC, name="ε", is_required=True, initial=1.0)
"""The field that all questions share."""


def _declare(default: Any, label: str, name: str = "", unit: str = "", **attributes: Any) -> Any:
    """Build a dataclass field with its declaration, whose report label follows from name, label and unit."""
    report_name = capitalise(name.removeprefix("the ")) if name else label
    label_in_sentence = label[:1].lower() + label[1:] if label[1:2].islower() else label
    report_label = f"{report_name}, {unit}" if unit else report_name
    name = name or f"the {label_in_sentence}"
    field_declaration = Field(label, name=name, report_label=report_label, **attributes)
    # A link or a session file may hold a longer text than the widget takes.
    max_length = field_declaration.max_length or 0
    length_metadata = {LONGEST_KEY: max_length} if max_length > MAX_TEXT else {}
    return field(default=default, metadata={DECLARATION_KEY: field_declaration, **length_metadata})


@dataclass(frozen=True)
class Declarer:
    """Declares fields of one origin, as defaults of a parameters class.

    Attributes:
        origin: Where the values of the fields may have come from.
    """

    origin: FieldOrigin

    def number(
        self, default: float | None, label: str, limits: tuple[float, float] | None = None, **attributes: Any
    ) -> Any:
        """Declare a number; it is whole if the annotation says int.

        Args:
            default: The default; None for a field that may be empty, `REQUIRED` for one that has none.
            label: Label of the widget.
            limits: Smallest and largest value; None if the class checks the value itself.
            **attributes: Name in sentences, unit, and further attributes of `Field`.
        """
        is_required = attributes.pop("is_required", default is not None or "only_with" in attributes)
        attributes |= {"limits": limits, "is_required": is_required}
        return _declare(default, label, origin=self.origin, **attributes)

    def choice(
        self, default: Any, label: str, options: Mapping[Any, str] | None = None, **attributes: Any
    ) -> Any:
        """Declare one of several values; ``options`` gives the label of each, by default those of the enum."""
        if options is None:
            options = {option: getattr(option, "label", option.value) for option in type(default)}
        return _declare(default, label, origin=self.origin, options=options, is_required=False, **attributes)

    def text(self, default: str | None, label: str, **attributes: Any) -> Any:
        """Declare a field of text; it may be empty if the default is None."""
        return _declare(default, label, origin=self.origin, is_required=False, **attributes)

    def flag(self, default: bool, label: str, **attributes: Any) -> Any:
        """Declare a field that is True or False."""
        return _declare(default, label, origin=self.origin, is_required=False, **attributes)


public, of_values, of_data = map(Declarer, (FieldOrigin.PUBLIC, FieldOrigin.VALUES, FieldOrigin.DATA))


def range_end(default: float | None, label: str, name: str = "", **attributes: Any) -> Any:
    """Declare one end of the range that values are clamped to; every release states it."""
    name = name or label[:1].lower() + label[1:]
    return of_values.number(default, label, name=name, is_published=True, **attributes)


def own_bound(unit: str = "", label: str = "Compare your own bound", **attributes: Any) -> Any:
    """Declare a field for a bound that a person enters to compare it with the best one; None if empty."""
    attributes |= {"name": "your own bound", "unit": unit, "is_renewed": True, "place": OWN}
    return of_data.number(None, label, **attributes)


def noise_kind(label: str = "Noise", **attributes: Any) -> Any:
    """Declare the noise of a release."""
    return public.choice(NoiseKind.LAPLACE, label, shared="noise", **attributes)


def program_choice(options: Mapping[Program, str] | None = None, **attributes: Any) -> Any:
    """Declare the choice of the program whose noise the errors are computed for."""
    attributes |= {"shared": "program", "uses_select_box": True}
    return public.choice(Program.OPENDP, "Program", options, **attributes)


def gaussian_delta(limits: tuple[float, float] | None, noise_field: str, **attributes: Any) -> Any:
    """Declare the δ that Gaussian noise needs; ``noise_field`` is the name of the field with the noise."""
    only_with = (noise_field, (NoiseKind.GAUSSIAN,))
    attributes |= {"initial": DEFAULT_DELTA, "width": 110, "shared": "delta", "only_with": only_with}
    return public.number(None, "δ", limits, name="δ", **attributes)


def redeclare(parameters_type: Any, field_name: str, default: Any = UNSET, **changes: Any) -> Any:
    """Declare a field as another class does, but with these attributes of `Field`, and with the default if given."""
    dataclass_field = fields_by_name(parameters_type)[field_name]
    help_text = declared_fields(parameters_type)[field_name].help
    field_metadata = {
        **dataclass_field.metadata,
        DECLARATION_KEY: replace(dataclass_field.metadata[DECLARATION_KEY], help=help_text, **changes),
    }
    return field(default=dataclass_field.default if default is UNSET else default, metadata=field_metadata)


def fields_by_name(parameters_type: Any) -> Mapping[str, Any]:
    """Return the dataclass fields of a class by their names."""
    return {f.name: f for f in fields(parameters_type)}


@functools.cache
def _declared_fields(parameters_type: Any) -> Mapping[str, Field]:
    """Return the declarations of a parameters class by field name; the shared epsilon is not among them."""
    type_hints, help_by_field = list_field_types(parameters_type), _field_docstrings(parameters_type)
    declarations_by_field: dict[str, Field] = {}
    for f in fields(parameters_type):
        if DECLARATION_KEY in f.metadata:
            declaration = replace(f.metadata[DECLARATION_KEY], help=help_by_field.get(f.name, ""))
            declarations_by_field[f.name] = declaration.complete(type_hints[f.name], f.default)
    return declarations_by_field


# The type is written out: mypy takes the class of a dataclass for one that cannot be hashed.
declared_fields: typing.Callable[[Any], Mapping[str, Field]] = _declared_fields


def _field_docstrings(parameters_type: Any) -> dict[str, str]:
    """Return the docstrings below the fields of a class and its bases, each on one line."""
    docstrings_by_field: dict[str, str] = {}
    for base_class in reversed(parameters_type.__mro__[:-1]):
        module_tree = ast.parse(inspect.getsource(sys.modules[base_class.__module__]))
        class_nodes = [node for node in module_tree.body if isinstance(node, ast.ClassDef)]
        (class_bodies,) = (node.body for node in class_nodes if node.name == base_class.__name__)
        docstrings_by_field |= {
            field_node.target.id: " ".join(str(next_node.value.value).split())
            for field_node, next_node in itertools.pairwise(class_bodies)
            if isinstance(field_node, ast.AnnAssign) and isinstance(field_node.target, ast.Name)
            if isinstance(next_node, ast.Expr) and isinstance(next_node.value, ast.Constant)
        }
    return docstrings_by_field


@dataclass(frozen=True)
class Parameters:
    """The settings of a question: everything that a user enters but the data.

    Attributes:
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with the problems of every field, of misplaced ones and of several together."""
        type_hints = list_field_types(type(self))
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            has_wrong_kinds = False
            for field_name, declaration in declared_fields(type(self)).items():
                field_value = getattr(self, field_name)
                is_enum = isinstance(type_hints[field_name], type) and issubclass(
                    type_hints[field_name], enum.Enum
                )
                if is_enum and not isinstance(field_value, type_hints[field_name]):
                    problems.of_kind(type_hints[field_name], **{field_name: field_value})
                    has_wrong_kinds = True
                    continue
                if applies(declaration.only_with, self.__getattribute__):
                    declaration.check(problems, field_value, type_hints[field_name])
                elif field_value is not None and fields_by_name(self)[field_name].default is None:
                    problems.add(describe_misplaced(declaration, declared_fields(type(self))))
            if not has_wrong_kinds:
                self._check_together(problems)

    def _check_together(self, problems: Problems) -> None:
        """Add problems of several fields together, each of which has the right class; here there are none."""

    def without(self: P, *field_names: str) -> P:
        """Return the parameters with the defaults of these fields: the key of an answer that ignores them."""
        named_fields = [f for f in fields(self) if f.name in field_names]
        defaults_by_field: dict[str, Any] = {
            f.name: f.default for f in named_fields if getattr(self, f.name) != f.default
        }
        return replace(self, **defaults_by_field) if defaults_by_field else self

    @property
    def unused_names(self) -> tuple[str, ...]:
        """Return the names of the fields that do not apply with the choices made."""
        declared_items = declared_fields(type(self)).items()
        get_value = self.__getattribute__
        return tuple(
            field_name for field_name, field in declared_items if not applies(field.only_with, get_value)
        )

    @property
    def about_data(self: P) -> P:
        """Return the parameters with defaults in the fields that do not change the answer for the data."""
        return self.without(*list_fields_beside_data(type(self)))


def applies(only_with: tuple[str, Collection[Any]] | None, get_value: typing.Callable[[str], Any]) -> bool:
    """Return True if a rule of `Field` holds or is None.

    ``get_value`` returns the value of a field by name.
    """
    return only_with is None or get_value(only_with[0]) in only_with[1]


def list_unused(
    declarations: Mapping[str, Field],
    values_by_field: Mapping[str, Any],
    get_default: typing.Callable[[str], Any],
) -> list[str]:
    """List the names in ``values_by_field`` whose field does not apply.

    A choice that does not apply itself counts with its default.
    """

    def get_choice(field_name: str) -> Any:
        """Return the value of a choice, its default if it does not apply."""
        does_apply = applies(declarations[field_name].only_with, get_choice)
        return values_by_field[field_name] if does_apply else get_default(field_name)

    return [name for name in values_by_field if not applies(declarations[name].only_with, get_choice)]


def describe_misplaced(declaration: Field, declarations: Mapping[str, Field]) -> str:
    """Return the sentence on a value that was given where its field does not apply."""
    assert declaration.only_with is not None
    other_declaration, needed_values = declarations[declaration.only_with[0]], declaration.only_with[1]
    labels_by_value = other_declaration.options or {}
    values_text = " or ".join(
        f'"{labels_by_value.get(needed_value, needed_value)}"' for needed_value in needed_values
    )
    return f"{declaration.name} can be set only with {values_text} as {other_declaration.name}"


def check_shared(problems: Problems, parameters_type: Any, settings: Any) -> None:
    """Add problems of the fields that an object has in common with a parameters class, by its declarations."""
    type_hints = list_field_types(parameters_type)
    for field_name, declaration in declared_fields(parameters_type).items():
        if hasattr(settings, field_name):
            declaration.check(problems, getattr(settings, field_name), type_hints[field_name])


def list_fields_beside_data(parameters_type: Any) -> tuple[str, ...]:
    """Return the names of the fields that do not change the answer for the data."""
    places_of_data = (LINE, MORE, SOURCE)
    declared_items = declared_fields(parameters_type).items()
    return tuple(
        field_name for field_name, declaration in declared_items if declaration.place not in places_of_data
    )


def describe(parameters_type: Any) -> dict[str, str]:
    """Return the help text of each field by name, with the range of its values."""
    lowest_text, highest_text = map(format_entered, EPSILON_RANGE)
    help_by_field = {"epsilon": f"Privacy budget, from {lowest_text} to {highest_text}."}
    for field_name, declaration in declared_fields(parameters_type).items():
        help_text = f"{declaration.label}. {declaration.help}".rstrip()
        if declaration.stops:
            help_text += f" One of {', '.join(map(format_entered, declaration.stops))}."
        elif declaration.limits is not None:
            lowest_text, highest_text = map(format_entered, declaration.limits)
            range_text = f"From {lowest_text} to {highest_text}."
            help_text += "" if range_text in help_text else f" {range_text}"
        help_by_field[field_name] = help_text
    return help_by_field
