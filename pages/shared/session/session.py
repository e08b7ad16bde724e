"""The state of a browser session: data in use, demonstrations, and what a tour puts aside.

Ledgers of releases stay where they are: they only grow, before, during and after a tour.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from dpcore.common.checks import InputProblem, InvalidInput, refuse
from dpcore.common.parameters import FieldOrigin
from dpcore.common.privacy import Ledger, ReleaseFacts
from dpcore.common.text_fields import from_fields
from dpcore.data import samples
from dpcore.dataset import Dataset
from pages.shared.base import cache, catalogue, keys
from pages.shared.base.cache import cache_for_everybody
from pages.shared.base.question import Question
from pages.shared.fields import jobs, setting
from pages.shared.figures import figures


@dataclass(frozen=True)
class SavedState:
    """What the person had in the session before the tour, and gets back at its end.

    Attributes:
        loaded_data: The data in use, a `pages.shared.session.session.LoadedData`.
        epsilon: The shared epsilon; None if its field was empty.
        settings_by_key: Values of fields, and choices beside them, by session key.
        pins: Pins.
        is_named_only: True if only an address named the data: the settings from before, and data of a file, are lost.
    """

    loaded_data: Any
    epsilon: float | None
    settings_by_key: Mapping[str, Any] = field(default_factory=dict)
    pins: tuple[figures.Pin, ...] = ()
    is_named_only: bool = False


@dataclass(frozen=True)
class Tour:
    """The state of the tour.

    Attributes:
        step_number: Number of its step, from 1.
        saved_state: What returns at its end.
        is_answer_requested: True if a person asked for the answer without moving anything.
    """

    step_number: int
    saved_state: SavedState
    is_answer_requested: bool = False


def get_tour() -> Tour | None:
    """Return the tour that is on; None without one."""
    tour: Tour | None = st.session_state.get(keys.TOUR)
    return tour


def put_session_aside(loaded_data: Any) -> SavedState:
    """Reset every question, drop all pins, and return what was there. The caller changes the data in use.

    Args:
        loaded_data: The data in use.
    """
    state = st.session_state
    values_by_key = {
        entry_key: state[entry_key]
        for question in catalogue.QUESTION_BY_NAME.values()
        for entry_key in list_entered_keys(question, state)
    }
    values_by_key[setting.ENTRIES_KEY] = state.get(setting.ENTRIES_KEY, {})
    saved_state = SavedState(loaded_data, state.get(keys.EPSILON), values_by_key, figures.list_all_pins())
    _clear_all_questions()
    figures.store_pins(())
    return saved_state


def restore_session(saved_state: SavedState) -> None:
    """Restore everything but the data in use; pins made meanwhile stay, too.

    Call it before any widget that it sets.
    """
    state = st.session_state
    _clear_all_questions()
    state.update(saved_state.settings_by_key)
    setting.note_proposed_values()
    state[keys.EPSILON] = saved_state.epsilon
    state[keys.EPSILON_PAGE] = None  # The widgets of the page where ε stood last take it up, too.
    figures.store_pins(figures.merge_pins(saved_state.pins, figures.list_all_pins()))


def clear_question(question: Question) -> None:
    """Set a question's fields to their initial values, and remove what else was entered or chosen on its page.

    A page with data of its own keeps all of it.
    """
    for entry_key in list(list_entered_keys(question, st.session_state)):
        entry_name = entry_key.partition(".")[2]
        if entry_name in question.fields:
            st.session_state[entry_key] = question.get_initial_value(entry_name)
        else:
            del st.session_state[entry_key]


def _clear_all_questions() -> None:
    """Reset every question, and forget the shared setting."""
    setting.forget_entries()
    for question in catalogue.QUESTION_BY_NAME.values():
        clear_question(question)


def list_entered_keys(question: Question, state: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the session keys of what a person entered or chose, and of what was proposed to them.

    It leaves out data or files that a page has for itself, which no tour touches, and work beside the page, which knows
    the data that it is about.
    """
    if question.has_own_data or question.parameters_type is None:
        return
    for entry_name in (*question.fields, *question.origins_by_entry):
        entry_key = question.get_key(entry_name)
        if entry_key not in state or question.get_origin(entry_name) is FieldOrigin.OWN_DATA:
            continue
        if entry_name in question.fields or isinstance(state[entry_key], str | float | tuple | enum.Enum):
            yield entry_key


DEFAULT_SAMPLE = "online-retail-lines"
UPLOADED, DP_RELEASE = "upload", "dp-release"
"""Names of the origins of data that a person brought, and of a DP release."""
NOT_IN_LINKS = {UPLOADED: "uploaded data", DP_RELEASE: "a DP release"}


@dataclass(frozen=True)
class Origin:
    """How a link names the data: a sample, a generator with its parameters, or an upload, which no link carries.

    Attributes:
        name: Key of a sample or of a generator, `UPLOADED` or `DP_RELEASE`.
        generator_texts: The generator's parameters as text.
    """

    name: str
    generator_texts: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> Dataset:
        """Return the dataset of the sample or of the generator.

        Raises:
            InvalidInput: No such sample or generator, bad parameters, an upload or a release.
        """
        if self.name in samples.SAMPLES:
            problem_texts = [f"{name[:40]} is not a parameter of a sample" for name in self.generator_texts]
            if problem_texts:
                raise InvalidInput(problem_texts)
            return samples.load(self.name)
        if self.name in samples.GENERATORS:
            return samples.generate_dataset(from_fields(samples.GENERATORS[self.name], self.generator_texts))
        if self.name in NOT_IN_LINKS:
            refusal_text = f"this link was made on {NOT_IN_LINKS[self.name]}, which a link does not carry"
            raise refuse(refusal_text, remedy="Load the file in Data")
        raise refuse(f"no sample or generator is called {self.name[:40]!r}")


@dataclass(frozen=True)
class LoadedData:
    """A data set with its origin; for a DP release, also the data that it was made of.

    Attributes:
        dataset: The data.
        origin: How a link names them.
        original: The data behind a release that was drawn in this session; None for other data and a loaded release.
        values_set_aside: Contents of fields while ``original`` was in use, by session key; they return with those data.
    """

    dataset: Dataset
    origin: Origin
    original: LoadedData | None = None
    values_set_aside: Mapping[str, Any] = field(default_factory=dict)


def get_loaded() -> LoadedData:
    """Return the session's data with their origin; if nothing was chosen yet, first put the default sample in use."""
    if keys.LOADED_DATA not in st.session_state:
        use_data(LoadedData(Origin(DEFAULT_SAMPLE).load(), Origin(DEFAULT_SAMPLE)))
    loaded_data: LoadedData = st.session_state[keys.LOADED_DATA]
    return loaded_data


def get_dataset() -> Dataset:
    """Return the session's data set."""
    return get_loaded().dataset


def use_data(loaded_data: LoadedData) -> None:
    """Make these the session's data, and reset the fields that depended on the data before.

    Data that a person brings end the tour: the settings from before the tour return first.
    """
    if (tour := get_tour()) is not None:
        del st.session_state[keys.TOUR]
        restore_session(tour.saved_state)
    put_in_use(loaded_data)


def end_tour() -> bool:
    """Restore the data and the settings from before the tour; return False if there is no tour."""
    if (tour := get_tour()) is not None:
        del st.session_state[keys.TOUR]
        put_in_use(tour.saved_state.loaded_data)
        restore_session(tour.saved_state)  # Last: new data renew fields.
    return tour is not None


def put_in_use(loaded_data: LoadedData, has_same_rows: bool = False) -> None:
    """Make these the session's data, and reset the fields that depended on the data before; a tour goes on.

    Every question may propose values of its fields for these data. It proposes only what is public: value bounds read
    off private values, for example, would leak through a link or a release.

    Args:
        loaded_data: The new data.
        has_same_rows: True if they are the data that were in use before, or a release of them: settings stay.
    """
    state = st.session_state
    if not has_same_rows and keys.LOADED_DATA in state:
        _clear_settings(state.get(keys.AWAITED_VALUES, {}))
    state[keys.AWAITED_VALUES] = {}
    state[keys.SHOWN_RELEASES] = {}
    state[keys.LOADED_DATA] = loaded_data
    state[keys.DATA_VERSION] = state.get(keys.DATA_VERSION, 0) + 1
    state[keys.LINK_PROBLEMS] = ()
    link_problems: list[InputProblem] = []
    for question in catalogue.QUESTION_BY_NAME.values():
        for entry_name, declaration in question.fields.items():
            if (
                declaration.is_renewed
                and not has_same_rows
                and declaration.origin is not FieldOrigin.OWN_DATA
            ):
                state[question.get_key(entry_name)] = question.get_initial_value(entry_name)
        if question.propose_values is not None:
            entry_names = (*question.fields, *question.origins_by_entry)
            values_by_entry = {
                entry_name: state.get(question.get_key(entry_name)) for entry_name in entry_names
            }
            for entry_name, proposed_value in question.propose_values(
                loaded_data.dataset, values_by_entry
            ).items():
                link_problems += _check_link_choice(question, entry_name, proposed_value)
                state[question.get_key(entry_name)] = proposed_value
    state[keys.LINK_PROBLEMS] = tuple(link_problems)
    setting.note_proposed_values()


def _clear_settings(awaited_by_key: Mapping[str, Any]) -> None:
    """Empty the fields that may depend on the data in use; public fields, and those about a page's own data, stay.

    Args:
        awaited_by_key: Values, by session key, that a link or a session file set for data that it did not bring: these
            stay.
    """
    state = st.session_state
    cleared_pieces = set()
    for question in catalogue.QUESTION_BY_NAME.values():
        for entry_name in (*question.fields, *question.origins_by_entry):
            if question.get_origin(entry_name) not in (FieldOrigin.DATA, FieldOrigin.VALUES):
                continue
            entry_key, is_field = question.get_key(entry_name), entry_name in question.fields
            if is_field:
                cleared_pieces.add(question.fields[entry_name].shared)
            if entry_key not in state or (
                entry_key in awaited_by_key and awaited_by_key[entry_key] == state[entry_key]
            ):
                continue
            if is_field:
                state[entry_key] = question.get_emptied_value(entry_name)
            elif _can_return(state[entry_key]):
                del state[entry_key]
    setting.forget_entries(cleared_pieces)


def _check_link_choice(question: Question, field_name: str, proposed_value: Any) -> list[InputProblem]:
    """Return one problem if new data propose another option than the link has set; else an empty list."""
    field_key = question.get_key(field_name)
    link_value = st.session_state.get(keys.LINK_CHOICES, {}).get(field_key, proposed_value)
    if link_value == proposed_value or link_value != st.session_state.get(field_key):
        return []
    field = question.fields[field_name]
    assert field.options is not None
    link_text, proposed_text = (field.options.get(option, option) for option in (link_value, proposed_value))
    field_label = field.report_label or field.label
    problem_text = f"of {field_label} the link says *{link_text}*; "
    problem_text += f"for these data {question.title} begins with *{proposed_text}*"
    return [InputProblem(problem_text, remedy="Choose it there again if it holds for these data, too")]


def get_original() -> LoadedData:
    """Return the data that releases are made of: those behind the release in use, else those in use."""
    loaded_data = get_loaded()
    return loaded_data.original or loaded_data


def came_from_file(loaded_data: LoadedData | None = None) -> bool:
    """Return True if the data (those in use by default) came from a file: an upload, or a release that was loaded."""
    loaded_data = loaded_data or get_loaded()
    return loaded_data.origin.name in (UPLOADED, DP_RELEASE) and loaded_data.original is None


def is_same_for_all() -> bool:
    """Return True if the data in use are the same for everybody: a sample, or generated data."""
    return get_loaded().origin.name not in (UPLOADED, DP_RELEASE)


def is_cleared(field_key: str) -> bool:
    """Return True if the field under this session key is empty because a release came into use.

    The data behind the release had values or totals, which a person may have seen.
    """
    loaded_data = get_loaded()
    is_empty = st.session_state.get(field_key) is None
    return is_empty and field_key in loaded_data.values_set_aside and _had_values(loaded_data)


def _had_values(loaded_data: LoadedData) -> bool:
    """Return True if the data behind a release had values or totals that a person may have seen."""
    original_data = None if loaded_data.original is None else loaded_data.original.dataset
    return original_data is not None and (
        original_data.values is not None or original_data.totals is not None
    )


def get_ledger() -> Ledger:
    """Return the releases of this session from the original data; an empty ledger for other data.

    Data are identified by how many users have how many rows: the same file loaded again keeps its ledger.
    """
    ledgers_by_digest: dict[str, Ledger] = st.session_state.get(keys.LEDGERS, {})
    return ledgers_by_digest.get(get_original().dataset.histogram.digest, Ledger())


def record_release(facts: ReleaseFacts) -> None:
    """Add a release of the original data to their ledger; every draw from these data gets this as ``charge``."""
    digest = get_original().dataset.histogram.digest
    ledgers_by_digest: dict[str, Ledger] = st.session_state.get(keys.LEDGERS, {})
    st.session_state[keys.LEDGERS] = ledgers_by_digest | {digest: get_ledger().add(facts)}


def use_release(dataset: Dataset) -> None:
    """Make a DP release of the original data the session's data; set aside what the original may have revealed.

    It fails closed: only what a question or the shell declares public stays in the session.

    Args:
        dataset: The release.
    """
    original_data, earlier_aside = get_original(), get_loaded().values_set_aside
    release_data = LoadedData(dataset, Origin(DP_RELEASE), original_data)
    forgotten_by_key = _forget_private(forgets_values=_had_values(release_data))
    # After a second release what stood beside the original still returns, not what was entered beside the first.
    pins = _list_pins(earlier_aside, forgotten_by_key)
    removed_by_key = {**forgotten_by_key, **earlier_aside, keys.PINS: pins}
    public_values = _read_public_fields()
    # Last: the run may be cut short anywhere before.
    put_in_use(replace(release_data, values_set_aside=removed_by_key), has_same_rows=True)
    changed_by_key = {k: value for k, value in public_values.items() if st.session_state.get(k) != value}
    # Fields for which a release proposes something else, such as private counts, return too.
    if changed_by_key:
        removed_by_key = {**changed_by_key, **removed_by_key}
        st.session_state[keys.LOADED_DATA] = replace(get_loaded(), values_set_aside=removed_by_key)


def use_original() -> None:
    """Put the data behind the release in use again, with their fields as before; the ledger stays as it is."""
    removed_by_key, original_data = get_loaded().values_set_aside, get_original()
    forgotten_by_key = _forget_private(forgets_values=False)
    public_values = _read_public_fields()
    put_in_use(original_data, has_same_rows=True)
    returned_by_key = {**public_values, **removed_by_key}
    st.session_state.update({key: value for key, value in returned_by_key.items() if key != keys.PINS})
    figures.store_pins(_list_pins(removed_by_key, forgotten_by_key, {keys.PINS: figures.list_all_pins()}))


def _list_pins(*value_mappings: Mapping[str, Any]) -> tuple[figures.Pin, ...]:
    """Return the pins in several states of the session, each once."""
    return figures.merge_pins((), (pin for state in value_mappings for pin in state.get(keys.PINS, ())))


def _read_public_fields() -> dict[str, Any]:
    """Return the values of all public fields, by session key."""
    state = st.session_state
    return {
        field_key: state[field_key]
        for question in catalogue.QUESTION_BY_NAME.values()
        for field_name, declaration in question.fields.items()
        if declaration.origin is FieldOrigin.PUBLIC and (field_key := question.get_key(field_name)) in state
    }


def _forget_private(forgets_values: bool) -> dict[str, Any]:
    """Remove what may have been read off the data in use, cached answers and jobs too; return what may come back.

    Args:
        forgets_values: True if values or totals were in use: if not, nothing can have been read off them.

    Returns:
        What a person had entered or chosen, by session key.
    """
    cache.forget_session_results()
    state = st.session_state
    removed_by_key: dict[str, Any] = {}
    kept_origins = {FieldOrigin.PUBLIC, FieldOrigin.OWN_DATA}
    kept_origins |= set() if forgets_values else {FieldOrigin.VALUES}
    for entry_key in map(str, list(state)):
        if entry_key in keys.PRESERVED_KEYS:
            continue
        question_name, _, field_name = entry_key.partition(".")
        question = catalogue.QUESTION_BY_NAME.get(question_name)
        origin = FieldOrigin.DATA if question is None else question.get_origin(field_name)
        if origin in kept_origins:
            continue
        entry_value = state[entry_key]
        if entry_key == keys.PINS:
            # Those of private data are read off data; what the others show may be seen beside a release.
            removed_by_key[entry_key], state[entry_key] = figures.split_private_pins(entry_value)
            continue
        if question is not None and field_name in question.fields:
            removed_by_key[entry_key] = entry_value
            state[entry_key] = question.get_emptied_value(field_name)
            continue
        if isinstance(entry_value, jobs.Job):
            entry_value.stop()
        elif question is not None and field_name in question.origins_by_entry and _can_return(entry_value):
            removed_by_key[entry_key] = entry_value
        del state[entry_key]
    return removed_by_key


def _can_return(value: Any) -> bool:
    """Return True if a value beside the fields was typed or picked by a person: a text, or a number of a number field.

    The rest is counted or made by the page itself, and Streamlit lets nobody set a button or an editor of a table.
    """
    return isinstance(value, float | str)


DEMONSTRATION_LABEL = "Demonstration: invented shop purchases, not your data"
INVENTED_BADGE = "Invented data"
"""Stand on figure and card where invented data show what a page does with data that have what it needs."""
SAMPLE_WITH_EVERYTHING = "shop-events"


@cache_for_everybody(max_entries=1)
def load_demonstration() -> Dataset:
    """Return invented data with values and groups, for pages that need what the data in use lack."""
    return samples.load(SAMPLE_WITH_EVERYTHING)


def explain_missing(dataset: Dataset, needed_text: str, subject_text: str = "This") -> str:
    """Write that ``subject_text`` needs ``needed_text``, a plural noun phrase, which the data do not hold."""
    holder_text = "The data in use hold" if dataset.release is None else "A DP release holds"
    return f"{subject_text} needs {needed_text}. {holder_text} only how many rows each user has."


BRING_FIELD = "bring"
"""In the address of *Data*: a person comes to upload a file."""


def draw_data_link(link_label: str) -> None:
    """Draw a link to the uploader on *Data*."""
    page_path = catalogue.find_page("Data").page_path
    st.page_link(page_path, label=link_label, icon=":material/upload:", query_params={BRING_FIELD: "file"})


def explain_cleared(name_by_field_key: Mapping[str, str]) -> None:
    """Show why a release has emptied fields and what to do; nothing if no field is empty for this reason.

    Args:
        name_by_field_key: What each field is called in a sentence, by session key.
    """
    if empty_names := [
        field_name for field_key, field_name in name_by_field_key.items() if is_cleared(field_key)
    ]:
        names_text = " and ".join(filter(None, (", ".join(empty_names[:-1]), empty_names[-1])))
        st.caption(
            f"{names_text} {'is' if len(empty_names) == 1 else 'are'} empty because the release in use holds no "
            "values, and what was entered may have been read off them. Enter what the quantity can be, not what the "
            "data hold."
        )
