"""What a browser session holds: the loaded data set, how a link may name it, and what was released of it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from dpcore import mean
from dpcore.common.checks import VALUE_BOUND_RANGE
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.text_fields import from_fields, to_fields
from dpcore.data import generators, samples
from dpcore.dataset import Dataset
from dpcore.private_choice.ledger import Ledger
from dpcore.private_choice.private_histogram import PrivateCopy, PrivateCopyParameters, release_histogram
from pages.shared import catalogue, jobs, keys

# Values in [0, 1], as shares and answers of yes or no are.
DEFAULT_VALUE_BOUNDS = (0.0, 1.0)
# What a person compares with on one set of data says nothing of the next, and where the slider of Start stands at
# first is read off the data.
DATA_BOUND = (
    keys.START_CAP,
    keys.MEAN_OWN_CAP,
    keys.TOTAL_OWN_BOUND,
    keys.TOTAL_GROUPS,
    keys.TOTAL_OWN_GROUPS,
    keys.LEARNING_OWN_CAP,
)
DEFAULT_SAMPLE = "online-retail-lines"
UPLOADED = "upload"
RELEASED = "dp-release"
# What a person may have read off values while they were in sight; entered anew once a release is in use.
READ_OFF_VALUES = (
    keys.MEAN_LOWER,
    keys.MEAN_UPPER,
    keys.MEAN_VARIANCE,
    keys.MEAN_SIMULATED_MEAN,
    keys.GAP_VARIANCE,
    keys.TOTAL_LOWER,
    keys.TOTAL_UPPER,
    keys.QUANTILE_LOW,
    keys.QUANTILE_HIGH,
    keys.QUANTILE_OWN_BOUND,
)
# Work on data of its own, which a release of the session's data does not concern.
OTHER_WORK = (keys.UPLOAD_JOB, "regression_")
CACHES = ("pages.shared.cached", "pages.multitask.cached")


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
        """The data set that it names.

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
            raise InvalidInput(
                ["this link was made on uploaded data, which a link does not carry. Load them in Your data"]
            )
        if self.kind == RELEASED:
            raise InvalidInput(
                [
                    "this link was made on a DP release, which a link does not carry. Ask for the released histogram "
                    "as a file, and load it in Your data"
                ]
            )
        raise InvalidInput([f"no sample or generator is called {self.kind[:40]!r}"])


@dataclass(frozen=True)
class Loaded:
    """A data set with its origin; for a DP release, also the data that it was made of."""

    dataset: Dataset
    origin: Origin
    made_of: Loaded | None = None


def loaded() -> Loaded:
    """The session's data; the default sample before anything was chosen."""
    if keys.LOADED not in st.session_state:
        use(Origin(DEFAULT_SAMPLE).load(), Origin(DEFAULT_SAMPLE))
    found: Loaded = st.session_state[keys.LOADED]
    return found


def dataset() -> Dataset:
    """The session's data set."""
    return loaded().dataset


def use(data: Dataset, origin: Origin, made_of: Loaded | None = None) -> None:
    """Make ``data`` the session's data; widgets that depend on it start afresh.

    Value bounds are proposed only for public data: bounds read off private values would leak through a
    link or a release. Bounds that the person entered stay, and so does a source of the variance that differs
    from the one proposed: the values where there are some, else the worst case.
    """
    state = st.session_state
    state[keys.LOADED] = Loaded(data, origin, made_of)
    state[keys.DATA_VERSION] = data_version() + 1
    state[keys.LINK_PROBLEMS] = ()
    for key in DATA_BOUND:
        state[key] = None
    if state.get(keys.MEAN_NOISE) == state.get(keys.MEAN_NOISE_PROPOSED):
        usual = mean.NoiseSource.WORST_CASE if data.values is None else mean.NoiseSource.FROM_VALUES
        state[keys.MEAN_NOISE] = state[keys.MEAN_NOISE_PROPOSED] = usual
    if made_of is not None:
        return  # A release proposes no bounds: they are as entered, or cleared.
    ours = state.get(keys.MEAN_PROPOSED, DEFAULT_VALUE_BOUNDS)
    if (state.get(keys.MEAN_LOWER), state.get(keys.MEAN_UPPER)) not in (ours, (None, None)):
        return  # Entered by the person: kept.
    proposed = DEFAULT_VALUE_BOUNDS
    if data.values is not None and not data.is_private:
        proposed = rounded_out(float(data.values.values.min()), float(data.values.values.max()))
    state[keys.MEAN_LOWER], state[keys.MEAN_UPPER] = state[keys.MEAN_PROPOSED] = proposed


def use_generator(generator: object) -> None:
    """Generate and load."""
    origin = Origin(generator.kind, to_fields(generator))  # type: ignore[attr-defined]
    use(generators.dataset(generator), origin)  # type: ignore[arg-type]


def original() -> Loaded:
    """What releases are made of: the data behind the release in use, else the data in use."""
    now = loaded()
    return now.made_of or now


def is_file(data: Loaded | None = None) -> bool:
    """Whether data, by default those in use, came from a file: an upload, or a release that was loaded again."""
    data = data or loaded()
    return data.origin.kind in (UPLOADED, RELEASED) and data.made_of is None


def cleared(key: str) -> bool:
    """Whether a field of `READ_OFF_VALUES` is empty since a release of data with values or totals came into use."""
    now = loaded()
    return now.made_of is not None and _held_values(now.made_of.dataset) and st.session_state.get(key) is None


def _held_values(data: Dataset) -> bool:
    return data.values is not None or data.totals is not None


def ledger() -> Ledger:
    """What was released in this session of the data behind what is in use; empty for other data.

    Data are told apart by how many users have how many rows: the same file loaded again keeps its ledger.
    """
    ledgers: dict[str, Ledger] = st.session_state.get(keys.LEDGERS, {})
    return ledgers.get(original().dataset.histogram.digest, Ledger())


def record(facts: ReleaseFacts) -> None:
    """Note one more release of the original data. To be called in the same run in which it is drawn."""
    of = original().dataset.histogram.digest
    st.session_state[keys.LEDGERS] = {
        **st.session_state.get(keys.LEDGERS, {}),
        of: ledger().after(facts),
    }


def release(parameters: PrivateCopyParameters) -> PrivateCopy:
    """Draw a private copy of the original data, note what it costs, and make it the session's data.

    A copy in which no user is left is noted too, since it was drawn, but the data in use stay.
    """
    copy = release_histogram(original().dataset.histogram, parameters)
    record(copy.facts)
    st.session_state[keys.RELEASED] = copy
    if copy.histogram is not None:
        use_release(copy)
    return copy


def use_release(copy: PrivateCopy) -> None:
    """Make a release of the original data the session's data; what was computed from the original is forgotten.

    Raises:
        InvalidInput: No user is left in it.
    """
    state, aside = st.session_state, original()
    data = copy.dataset(aside.dataset.name, aside.dataset.contribution)
    _forget_work()
    if state.get(keys.MEAN_NOISE) is mean.NoiseSource.FROM_VALUES:
        state[keys.MEAN_NOISE] = mean.NoiseSource.WORST_CASE
    if _held_values(aside.dataset):
        for key in READ_OFF_VALUES:
            state[key] = None
    state[keys.RELEASED] = copy
    use(data, Origin(RELEASED), made_of=aside)  # Last: the run may be cut short anywhere before.


def use_original() -> None:
    """Back from a release to the data it was made of. Nothing is given back to the ledger."""
    _forget_work()
    aside = original()
    use(aside.dataset, aside.origin)


def _forget_work() -> None:
    """Drop results of background work and cached answers: they were computed from the other data."""
    state = st.session_state
    for key in list(state):
        found = state[key]
        if isinstance(found, jobs.Job) and not str(key).startswith(OTHER_WORK):
            found.stop()
            del state[key]
    for name in CACHES:  # Imported here: they draw on modules that build on this one.
        for function in vars(importlib.import_module(name)).values():
            if hasattr(function, "clear") and hasattr(function, "__wrapped__"):
                function.clear()


def data_version() -> int:
    """How many times data were loaded in this session."""
    return int(st.session_state.get(keys.DATA_VERSION, 0))


def page_file(title: str) -> str:
    """File of the page with this title, for links inside the app."""
    return catalogue.page(title).path


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Round bounds that contain [low, high]: 0 where they fit, else 1, 2 or 5 times a power of ten."""
    tiny, huge = VALUE_BOUND_RANGE
    lower = 0.0 if low > -tiny else -next_round(min(-low, huge / 2.0))
    upper = 0.0 if high < tiny else next_round(min(high, huge / 2.0))
    return (lower, upper) if lower < upper else (lower, lower + 1.0)


def next_round(value: float) -> float:
    """Smallest number of the form 1, 2 or 5 times a power of ten that is at least ``value`` > 0."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((power * step for step in (1.0, 2.0, 5.0) if power * step >= value), 10.0 * power)
