"""A page's question: its fields as widgets, and the parameters object that they make.

No field has limits of its own. With limits, Streamlit changes what was typed without a word (1.5 becomes 1, and so does
1e13), or refuses it in words of its own while the answer to the question before still stands. So what is typed stays,
and the parameters object says in a sentence what is wrong with it.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import InputProblem, InvalidInput
from dpcore.common.text_fields import list_field_types
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import setting

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

P = TypeVar("P")
Width = int | typing.Literal["stretch"]


def wide(width: Width) -> Width:
    """Return the width of a field in pixels, wider on a projector: `page_run.is_presented` came first in this
    run.
    """
    if isinstance(width, int) and st.session_state.get(keys.PRESENTING):
        return width * page_run.TYPE_SIZE // page_run.USUAL_SIZE
    return width


def number(
    label: str,
    key: str,
    help: str = "",
    *,
    whole: bool = False,
    step: float | None = None,
    placeholder: str = "",
    width: Width = "stretch",
) -> float | None:
    """Return a field for a number, with what is wrong with it below where the page goes on without it.

    Args:
        label: Its label.
        key: Session key; holds a float once something was typed, and None where the field is empty.
        help: Shown at the label.
        whole: Whether the buttons beside it count by 1; the parameters object judges.
        step: What the buttons count by where that is not 1.
        placeholder: Shown while it is empty.
        width: In pixels.
    """
    entered: float | None = st.number_input(
        label,
        value=None,  # else a cleared field would silently become 0
        key=key,
        # A float even for whole numbers: an integer field cuts off what follows the first digits.
        step=1.0 if whole else step,
        format="%g",
        persist_state="session",
        placeholder=placeholder or None,
        help=help or None,
        width=wide(width),
    )
    for problem in st.session_state.get(keys.ASIDE, {}).get(key, ()):
        st.caption(f":material/error: {wording.plain(InputProblem(problem.message).sentence, 300)}")
    return entered


def draw(
    of: Question, name: str, label: str = "", options: Collection[Any] | None = None, disabled: bool = False
) -> Any:
    """Return the widget of a declared field; which one follows from what is declared.

    Args:
        of: The question.
        name: The field.
        label: In place of the declared label, where a page says it shorter.
        options: Of a field with names: those that are offered now; all where None.
        disabled: Of a slider or a text: whether it can be read only.

    Returns:
        What the widget holds.
    """
    field, key = of.declared[name], of.widgets[name]
    st.session_state.setdefault(key, field.initial)
    label = label or field.label
    if field.options is not None:
        offered = {
            value: words for value, words in field.options.items() if options is None or value in options
        }
        if field.as_list:
            return pick(label, offered, key, field.help, field.width or "stretch")
        return choice(label, offered, key, field.help)
    if field.value_type is float and field.slider is None and not field.stops:
        return number(
            label,
            key,
            field.help,
            whole=field.is_integer,
            step=field.step,
            placeholder=field.placeholder,
            width=field.width or "stretch",
        )
    more: dict[str, Any] = {"key": key, "persist_state": "session", "help": field.help or None}
    width = wide(field.width or "stretch")
    if field.slider is not None:
        low, high, step = field.slider
        written = field.format or None
        return st.slider(label, low, high, step=step, format=written, width=width, disabled=disabled, **more)
    if field.stops:
        return st.select_slider(label, field.stops, format_func="{:,}".format, **more)
    if field.value_type is bool:
        return st.toggle(label, **more)
    placeholder = field.placeholder or None
    return st.text_input(
        label, max_chars=field.max_length, placeholder=placeholder, width=width, disabled=disabled, **more
    )


def draw_all(of: Question, *names: str) -> None:
    """The widgets of several fields, one after another."""
    for name in names:
        draw(of, name)


def draw_row(of: Question, *names: str) -> None:
    """The widgets of several fields in a `row`."""
    with row():
        draw_all(of, *names)


def columns(of: Question, shares: Sequence[int], *names: str) -> list[DeltaGenerator]:
    """Columns with a field in each, as far as there are names; returns them, for what stands beside the fields."""
    places = st.columns(shares, vertical_alignment="bottom")
    for column, name in zip(places, names, strict=False):
        with column:
            draw(of, name)
    return places


def start(of: Question, shares: bool = True) -> None:
    """Set what the question's fields begin with, where they hold nothing yet, and take up the release's setting.

    Args:
        of: The question.
        shares: Whether the page shows the data in use; what stands beside a demonstration is about that alone.
    """
    state = st.session_state
    for name, field in of.fields.items():
        state.setdefault(of.widgets[name], field.initial)
    if not shares:
        return
    entered, seen = state.get(setting.ENTERED, {}), state.get(setting.SEEN, {})
    held = [(field.shared, of.widgets[name]) for name, field in of.fields.items() if field.shared]
    # In most runs nothing was entered, here or elsewhere, since they were looked at.
    moved = [
        key not in seen or seen[key] != state[key] or entered.get(piece, state[key]) != state[key]
        for piece, key in held
    ]
    if any(moved):
        setting.follow(of)


def refill(of: Question, *names: str) -> None:
    """Set fields to what they begin with that a link of another choice has left empty."""
    for name in names:
        if st.session_state[of.key(name)] is None:
            st.session_state[of.key(name)] = of.first(name)


def choice(label: str, names: Mapping[Any, str], key: str, help: str = "") -> Any:
    """Buttons of which one is pressed; ``names`` says what is written on them.

    What the session holds is the default, too. Else Streamlit 1.67 tells the browser, in each run until that has drawn
    the widget, to set it to what the session holds, and the browser draws what lies in a popover when it is opened: a
    run that was under way then took back what was pressed before its end.
    """
    held = st.session_state.get(key)
    return st.segmented_control(
        label,
        list(names),
        default=held if held in names else None,
        key=key,
        format_func=names.__getitem__,
        required=True,
        persist_state="session",
        help=help or None,
    )


def pick(
    label: str,
    names: Mapping[Any, str],
    key: str,
    help: str = "",
    width: Width = "stretch",
) -> Any:
    """Return a list of which one entry is picked; ``names`` says how they are written, and `choice` why it
    has an index.
    """
    held, options = st.session_state.get(key), list(names)
    return st.selectbox(
        label,
        options,
        index=options.index(held) if held in options else 0,
        key=key,
        format_func=names.__getitem__,
        persist_state="session",
        help=help or None,
        width=wide(width),
    )


def radio(
    label: str,
    names: Mapping[Any, str],
    key: str,
    help: str = "",
    horizontal: bool = False,
    captions: Mapping[Any, str] | None = None,
) -> Any:
    """Return a list of which one entry is marked; ``names`` says how they are written, ``captions`` what
    follows from each.
    """
    return st.radio(
        label,
        list(names),
        key=key,
        format_func=names.__getitem__,
        captions=None if captions is None else [captions[entry] for entry in names],
        persist_state="session",
        help=help or None,
        horizontal=horizontal,
    )


def row() -> DeltaGenerator:
    """Fields side by side, as many as fit in a line.

    In columns, buttons of a choice are cut where they are wider than theirs. Fields in a row have a fixed width, wide
    enough for their labels: where labels of one line wrap, fields do not stand on one height.
    """
    return st.container(horizontal=True)


def main_button() -> typing.Literal["primary", "secondary"]:
    """Return the type of a page's main button: filled. `pages/shared/screen/address.js` gives it a label that
    can be read.
    """
    return "primary"


def button(
    label: str,
    key: str,
    icon: str,
    do: Callable[..., None] | None = None,
    *of: Any,
    main: bool = False,
    **more: Any,
) -> bool:
    """Return a button with an icon; returns whether it was pressed.

    Args:
        label: Its label.
        key: Unique on the page.
        icon: Name of a Material icon.
        do: Called with ``of`` where it is pressed, before the page runs again.
        of: What that is called with.
        main: Whether it is the main button of what it stands in.
        more: Further arguments of `st.button`.
    """
    if main:
        more["type"] = main_button()
    return st.button(label, key=key, icon=f":material/{icon}:", on_click=do, args=of, **more)


def say(problems: Iterable[InputProblem]) -> None:
    """What is wrong, a sentence each; on a question's page with the page's names, whoever found it."""
    run = page_run.now()
    names = {} if run is None else run.question.called
    sentences = [wording.plain(_named(p, names).sentence, 300) for p in problems]
    mark = "- " if len(sentences) > 1 else ""
    st.error("\n".join(mark + sentence for sentence in sentences), icon=":material/error:")


def build(
    of: Question,
    *,
    unused: Collection[str] = (),
    instead: Mapping[str, Any] | None = None,
    aside: Collection[str] = (),
) -> Any | None:
    """Return the parameters object of a page from the session. None, with all sentences on the page, where it
    is refused.

    Args:
        of: The question; its declarations say which field has which session key, and which must not be empty.
        unused: Fields that do not apply now: the object is made without them.
        instead: Values that take the place of what the session has.
        aside: Fields that the main answer can do without, mostly because they stand in a tab, which a refused
            question does not draw. A bad one is named, and its default stands in for it.
    """
    assert of.parameters is not None
    labels = {name: field.name for name, field in of.declared.items() if field.is_required}
    state = st.session_state
    used = {name: key for name, key in of.widgets.items() if name not in unused}
    values = {name: state[key] for name, key in used.items()} | dict(instead or {})
    state[keys.ASIDE] = {}
    names = of.called
    # All at once first: two that go together, of one's own pair, are no good one by one.
    whole, refused = made(of.parameters, values, labels, names=names)
    if whole is not None:
        return whole
    parameters, _ = made(
        of.parameters, {n: v for n, v in values.items() if n not in aside}, labels, names=names
    )
    if parameters is None:
        say(refused)
        return None
    for name in aside:
        if name not in values:
            continue
        usual = getattr(parameters, name)
        changed, problems = made(of.parameters, {name: values[name]}, labels, onto=parameters, names=names)
        if changed is not None:
            parameters = changed
        else:
            shown = usual if isinstance(usual, str) else wording.number(usual) if usual is not None else ""
            until = f"{shown} is used" if shown else "it is left out"
            state[keys.ASIDE][of.widgets[name]] = [
                replace(p, remedy=f"{p.remedy}. Until then {until}" if p.remedy else f"Until then {until}")
                for p in problems
            ]
    if state[keys.ASIDE]:
        say(p for problems in state[keys.ASIDE].values() for p in problems)
    return parameters


def made(
    kind: type[P],
    values: Mapping[str, Any],
    labels: Mapping[str, str],
    onto: P | None = None,
    names: Mapping[str, str] | None = None,
) -> tuple[P | None, list[InputProblem]]:
    """Return the parameters object, or None and every problem: empty fields and refused ones at once.

    Args:
        kind: Its class.
        values: By field; whole floats become int where the field holds an int.
        labels: Fields that must not be empty, by how a sentence begins that names them.
        onto: An object in which these fields are changed; None for a new one.
        names: How sentences name fields; those of ``labels`` by default.
    """
    hints = list_field_types(kind)
    typed = {name: _typed(hints[name], value) for name, value in values.items()}
    empty = [name for name in labels if name in values and values[name] is None]
    problems = [InputProblem(f"{labels[name]} is empty", remedy="Enter a number") for name in empty]
    # NaN in the place of what is empty: no check passes it, and none that compares two fields goes by it.
    typed |= dict.fromkeys(empty, math.nan)
    try:
        parameters = kind(**typed) if onto is None else replace(onto, **typed)  # type: ignore[type-var]
    except InvalidInput as refused:
        problems += [
            _named(p, names or labels) for p in refused.problems if not p.message.endswith("got nan")
        ]
        if problems:
            return None, problems
        raise
    return (None, problems) if problems else (parameters, [])


def _named(problem: InputProblem, labels: Mapping[str, str]) -> InputProblem:
    """Return the problem with the field's name on the page in the place of its name in Python, where it
    begins with that.

    So too a second field, of one that must lie below another, or that is taken from it.
    """
    name, found, rest = problem.message.partition(" must ")
    first, minus, second = name.partition(" − ")
    if not labels.get(first) or (minus and not labels.get(second)):
        return problem
    for other, label in labels.items():
        if label:
            place = rf"\b(below|above|at least) {re.escape(other)}\b"
            rest = re.sub(place, rf"\1 {_inside(label)}", rest)
    subject = f"{labels[first]} − {_inside(labels[second])}" if minus else labels[first]
    return replace(problem, message=f"{subject}{found}{rest}")


def _inside(label: str) -> str:
    """Return a name within a sentence."""
    return f"{label[0].lower()}{label[1:]}" if label[1:2].islower() else label


def _typed(hint: Any, value: Any) -> Any:
    """Return a whole float as int where the field holds an int."""
    takes_int = hint is int or int in typing.get_args(hint)
    return int(value) if takes_int and isinstance(value, float) and value.is_integer() else value


def whole_number(label: str, key: str, low: int, high: int, step: int, help: str = "") -> int | None:
    """Return a field for a whole number that belongs to no parameters object; None, with a sentence, where it
    is none.
    """
    value = number(label, key, help, step=float(step))
    problems = Problems()
    if value is None:
        problems.add(f"{label} is empty", remedy="Enter a number")
    elif problems.whole(low, high, **{label: value}):
        return int(value)
    say(problems.entries)
    return None


def epsilon_problems(epsilon: float | None) -> list[InputProblem]:
    """Return what is wrong with the shared epsilon; empty where nothing is."""
    problems = Problems()
    if epsilon is None:
        problems.add("the field of ε is empty", remedy="Enter a number")
    else:
        problems.between(*EPSILON_RANGE, ε=epsilon)
    return problems.entries
