"""What a browser session holds: the loaded data set, how a link may name it, and what was released of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from dpcore.common.errors import InputProblem, InvalidInput, refuse
from dpcore.common.ledger import Ledger
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.text_fields import from_fields, to_fields
from dpcore.data import generators, samples
from dpcore.dataset import Dataset
from pages.shared.base import cache, catalogue, keys
from pages.shared.base.question import From, Question
from pages.shared.fields import jobs, setting
from pages.shared.figures import pins
from pages.shared.session import shelf

DEFAULT_SAMPLE = "online-retail-lines"
UPLOADED, RELEASED = "upload", "dp-release"
"""What the session calls data that a person brought, and those that are a release."""
NOTHING_RELEASED = Ledger()


@dataclass(frozen=True)
class Origin:
    """How a link names the data: a sample, a generator with its parameters, or an upload (not carried).

    Attributes:
        kind: Key of a sample, kind of a generator, `UPLOADED` or `RELEASED`.
        fields: The generator's parameters as text.
    """

    kind: str
    fields: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> Dataset:
        """Return the data set that it names.

        Raises:
            InvalidInput: No such sample or generator, bad parameters, an upload or a release.
        """
        if self.kind in samples.SAMPLES:
            if self.fields:
                raise InvalidInput([f"{name[:40]} is not a parameter of a sample" for name in self.fields])
            return samples.load(self.kind)
        if self.kind in generators.GENERATORS:
            generator = from_fields(generators.GENERATORS[self.kind], self.fields)
            return generators.dataset(generator)
        if self.kind == UPLOADED:
            raise refuse(
                "this link was made on uploaded data, which a link does not carry. Load them in Your data"
            )
        if self.kind == RELEASED:
            raise refuse(
                "this link was made on a DP release, which a link does not carry. Ask for the released histogram "
                "as a file, and load it in Your data"
            )
        raise refuse(f"no sample or generator is called {self.kind[:40]!r}")


@dataclass(frozen=True)
class Loaded:
    """A data set with its origin; for a DP release, also the data that it was made of.

    Attributes:
        dataset: The data.
        origin: How a link names them.
        made_of: The data behind a release that was drawn in this session.
        set_aside: What stood in fields while ``made_of`` was in sight, by session key: it returns with those data.
    """

    dataset: Dataset
    origin: Origin
    made_of: Loaded | None = None
    set_aside: Mapping[str, Any] = field(default_factory=dict)


def loaded() -> Loaded:
    """Return the session's data; the default sample before anything was chosen."""
    if keys.LOADED not in st.session_state:
        use(Origin(DEFAULT_SAMPLE).load(), Origin(DEFAULT_SAMPLE))
    in_use: Loaded = st.session_state[keys.LOADED]
    return in_use


def dataset() -> Dataset:
    """Return the session's data set."""
    return loaded().dataset


def use(
    data: Dataset, origin: Origin, made_of: Loaded | None = None, set_aside: Mapping[str, Any] | None = None
) -> None:
    """Make ``data`` the session's data; fields that say nothing of other data start afresh.

    Data that a person brings end the tour: what they had entered before it returns first.
    """
    if (tour := shelf.tour()) is not None:
        del st.session_state[keys.TOUR]
        shelf.put_back(tour.saved_state)
    put_in_use(data, origin, made_of, set_aside)


def end_tour() -> bool:
    """Put back the data and the settings from before the tour. Returns whether there was one."""
    tour = shelf.tour()
    if tour is None:
        return False
    behind: Loaded = tour.saved_state.loaded
    del st.session_state[keys.TOUR]
    put_in_use(behind.dataset, behind.origin, behind.made_of, behind.set_aside)
    shelf.put_back(tour.saved_state)  # Last: new data renew fields.
    return True


def put_in_use(
    data: Dataset,
    origin: Origin,
    made_of: Loaded | None = None,
    set_aside: Mapping[str, Any] | None = None,
    same_rows: bool = False,
) -> None:
    """The same as `use`, and the tour goes on.

    Every question may propose what its fields hold for these data. A question proposes only what is public:
    value bounds read off private values, say, would leak through a link or a release.

    Args:
        data: What is put in use.
        origin: How a link names them.
        made_of: See `Loaded`.
        set_aside: See `Loaded`.
        same_rows: Whether they are the data that were in use before, or a release of them: settings stay.
    """
    state = st.session_state
    if not same_rows and keys.LOADED in state:
        clear_settings(state.get(keys.AWAITED, {}))
    state[keys.AWAITED] = {}
    state[keys.LOADED] = Loaded(data, origin, made_of, set_aside or {})
    state[keys.DATA_VERSION] = data_version() + 1
    state[keys.LINK_PROBLEMS] = ()
    changed: list[InputProblem] = []
    for question in catalogue.PAGES:
        for name, declared in question.fields.items():
            if declared.renewed and not same_rows and declared.origin is not From.OWN_DATA:
                state[question.key(name)] = question.first(name)
        if question.propose is not None:
            current_values = {
                name: state.get(question.key(name)) for name in (*question.fields, *question.also)
            }
            for name, value in question.propose(data, current_values).items():
                changed += _link_said_otherwise(question, name, value)
                state[question.key(name)] = value
    state[keys.LINK_PROBLEMS] = tuple(changed)
    setting.begin()


def clear_settings(awaited: Mapping[str, Any]) -> None:
    """Empty what may have been entered for the data in use: what is not declared public answers for no other data.

    Args:
        awaited: What a link or a session file said of data that it did not bring, by session key: it stays.
    """
    state = st.session_state
    pieces = set()
    for question in catalogue.PAGES:
        for name in (*question.fields, *question.also):
            if question.comes_from(name) not in (From.DATA, From.VALUES):
                continue
            key = question.key(name)
            if name in question.fields:
                pieces.add(question.fields[name].shared)
            if key not in state or (key in awaited and awaited[key] == state[key]):
                continue
            if name in question.fields:
                state[key] = question.forgotten(name)
            elif _can_return(state[key]):
                del state[key]
    setting.forget(pieces)


def _link_said_otherwise(question: Question, name: str, value: Any) -> list[InputProblem]:
    """That a choice of the link that was followed does not hold for data that came after it; empty where it does."""
    key, link_values = question.key(name), st.session_state.get(keys.LINK_SAID, {})
    if key not in link_values or link_values[key] != st.session_state.get(key) or link_values[key] == value:
        return []
    field = question.fields[name]
    assert field.options is not None
    return [
        InputProblem(
            f"of {field.report_label or field.label} the link says *{field.options[link_values[key]]}*, of data "
            f"that it did not bring; for these {question.title} begins with *{field.options.get(value, value)}*",
            remedy="Choose it there again if it holds for these data, too",
        )
    ]


def use_generator(generator: object) -> None:
    """Generate and load."""
    origin = Origin(generator.key, to_fields(generator))  # type: ignore[attr-defined]
    use(generators.dataset(generator), origin)  # type: ignore[arg-type]


def original() -> Loaded:
    """Return what releases are made of: the data behind the release in use, else the data in use."""
    current = loaded()
    return current.made_of or current


def is_file(data: Loaded | None = None) -> bool:
    """Return whether data, by default those in use, came from a file: an upload, or a release that was loaded
    again.
    """
    data = data or loaded()
    return data.origin.kind in (UPLOADED, RELEASED) and data.made_of is None


def same_for_all() -> bool:
    """Return whether the data in use are the same for everybody by themselves: a sample, or generated."""
    return loaded().origin.kind not in (UPLOADED, RELEASED)


def cleared(key: str) -> bool:
    """Return whether a field is empty since a release of data with values or totals came into use."""
    current = loaded()
    return key in current.set_aside and _held_values(current) and st.session_state.get(key) is None


def _held_values(loaded: Loaded) -> bool:
    """Return whether the data behind a release had values or totals that a person may have seen."""
    behind = loaded.made_of
    return behind is not None and (behind.dataset.values is not None or behind.dataset.totals is not None)


def ledger() -> Ledger:
    """Return what was released in this session of the data behind what is in use; empty for other data.

    Data are told apart by how many users have how many rows: the same file loaded again keeps its ledger.
    """
    ledgers: dict[str, Ledger] = st.session_state.get(keys.LEDGERS, {})
    return ledgers.get(original().dataset.histogram.digest, NOTHING_RELEASED)


def record(facts: ReleaseFacts) -> None:
    """Note one more release of the original data: the ``charge`` of whatever draws from them."""
    digest = original().dataset.histogram.digest
    st.session_state[keys.LEDGERS] = {**st.session_state.get(keys.LEDGERS, {}), digest: ledger().add(facts)}


def use_release(data: Dataset) -> None:
    """Make a DP release of the original data the session's data; what the original may have told is set aside.

    It fails closed: of what the session holds only that stays which a question or the shell declares public.

    Args:
        data: The release.
    """
    behind, set_aside = original(), loaded().set_aside
    forgotten = _forget(with_values=_held_values(Loaded(data, Origin(RELEASED), behind)))
    # After a second release what stood beside the original still returns, not what was entered beside the first.
    aside = {**forgotten, **set_aside, keys.PINS: _pins_of(set_aside, forgotten)}
    stayed = _fields_held()
    put_in_use(
        data, Origin(RELEASED), behind, aside, same_rows=True
    )  # Last: the run may be cut short anywhere before.
    changed = {key: value for key, value in stayed.items() if st.session_state.get(key) != value}
    if changed:  # Fields for which a release proposes something else, such as private counts, return too.
        st.session_state[keys.LOADED] = replace(loaded(), set_aside={**changed, **aside})


def use_original() -> None:
    """Back from a release to the data it was made of, with the fields as they were. The ledger stays as it is."""
    aside, behind = loaded().set_aside, original()
    forgotten = _forget(with_values=False)
    stayed = _fields_held()
    put_in_use(behind.dataset, behind.origin, same_rows=True)
    for key, value in {**stayed, **aside}.items():
        if key != keys.PINS:
            st.session_state[key] = value
    pins.keep(pins.joined(_pins_of(aside, forgotten), pins.all_pins()))


def _fields_held() -> dict[str, Any]:
    """Return what the fields hold that are public, by session key."""
    state = st.session_state
    return {
        key: state[key]
        for question in catalogue.PAGES
        for name, declared in question.fields.items()
        if declared.origin is From.PUBLIC and (key := question.key(name)) in state
    }


def _pins_of(*aside: Mapping[str, Any]) -> tuple[pins.Pin, ...]:
    """Return the pins among what was set aside, at one time and another."""
    together: tuple[pins.Pin, ...] = ()
    for values in aside:
        together = pins.joined(together, values.get(keys.PINS, ()))
    return together


def _forget(with_values: bool) -> dict[str, Any]:
    """Drop what may have been read off the data in use, cached answers and background work among it.

    Args:
        with_values: Whether values or totals were in sight: if not, nothing can have been read off them.

    Returns:
        What a person had entered or chosen, by session key.
    """
    cache.forget()
    state = st.session_state
    aside: dict[str, Any] = {}
    for key in map(str, list(state)):
        if key in keys.KEPT:
            continue
        name, _, entry = key.partition(".")
        question = catalogue.named(name)
        comes_from = From.DATA if question is None else question.comes_from(entry)
        if comes_from in (From.PUBLIC, From.OWN_DATA) or (comes_from is From.VALUES and not with_values):
            continue
        value = state[key]
        if key == keys.PINS:
            # Those of private data are read off data; what the others show may be seen beside a release.
            aside[key], state[key] = pins.parted(value)
            continue
        if question is not None and entry in question.fields:
            aside[key] = value
            state[key] = question.forgotten(entry)
            continue
        if isinstance(value, jobs.Job):
            value.stop()
        elif question is not None and entry in question.also and _can_return(value):
            aside[key] = value
        del state[key]
    return aside


def _can_return(value: Any) -> bool:
    """Return whether what a page keeps beside its fields was typed or picked by a person: a number field
    holds a float.

    The rest is counted or made by the page itself, and Streamlit lets nobody set a button or an editor of a table.
    """
    return isinstance(value, float | str)


def data_version() -> int:
    """Return how many times data were loaded in this session."""
    return int(st.session_state.get(keys.DATA_VERSION, 0))


def page_file(title: str) -> str:
    """File of the page with this title, for links inside the app."""
    return catalogue.page(title).path
