"""What a browser session holds: the loaded data set, and how a link may name it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from dpcore import mean, samples, synthetic
from dpcore.checks import VALUE_BOUND_RANGE
from dpcore.dataset import Dataset
from dpcore.errors import InvalidInput
from dpcore.parameters import from_fields, to_fields
from pages.parts import keys, registry

# Values in [0, 1], as shares and answers of yes or no are.
DEFAULT_VALUE_BOUNDS = (0.0, 1.0)
# What a person compares with on one set of data says nothing of the next.
DATA_BOUND = (
    keys.MEAN_OWN_CAP,
    keys.TOTAL_OWN_BOUND,
    keys.TOTAL_GROUPS,
    keys.TOTAL_OWN_GROUPS,
    keys.LEARNING_OWN_CAP,
)
DEFAULT_SAMPLE = "online-retail-lines"
UPLOADED = "upload"


@dataclass(frozen=True)
class Origin:
    """How a link names the data: a sample, a generator with its parameters, or an upload (not carried).

    Attributes:
        kind: Key of a sample, kind of a generator, or `UPLOADED`.
        fields: The generator's parameters as text.
    """

    kind: str
    fields: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> Dataset:
        """The data set that it names.

        Raises:
            InvalidInput: No such sample or generator, bad parameters, or an upload.
        """
        if self.kind in samples.SAMPLES:
            if self.fields:
                raise InvalidInput([f"{name[:40]} is not a parameter of a sample" for name in self.fields])
            return samples.load(self.kind)
        if self.kind in synthetic.GENERATORS:
            generator = from_fields(synthetic.GENERATORS[self.kind], self.fields)
            return synthetic.dataset(generator)
        if self.kind == UPLOADED:
            raise InvalidInput(
                ["this link was made on uploaded data, which a link does not carry. Load them in Your data"]
            )
        raise InvalidInput([f"no sample or generator is called {self.kind[:40]!r}"])


@dataclass(frozen=True)
class Loaded:
    """A data set with its origin."""

    dataset: Dataset
    origin: Origin


def loaded() -> Loaded:
    """The session's data; the default sample before anything was chosen."""
    if keys.LOADED not in st.session_state:
        use(Origin(DEFAULT_SAMPLE).load(), Origin(DEFAULT_SAMPLE))
    found: Loaded = st.session_state[keys.LOADED]
    return found


def dataset() -> Dataset:
    """The session's data set."""
    return loaded().dataset


def use(data: Dataset, origin: Origin) -> None:
    """Make ``data`` the session's data; widgets that depend on it start afresh.

    Value bounds are proposed only for public data: bounds read off private values would leak through a
    link or a release. Bounds that the person entered stay, and so does a source of the variance that differs
    from the one proposed: the values where there are some, else the worst case.
    """
    state = st.session_state
    state[keys.LOADED] = Loaded(data, origin)
    state[keys.DATA_VERSION] = data_version() + 1
    state[keys.LINK_PROBLEMS] = ()
    for key in DATA_BOUND:
        state[key] = None
    if state.get(keys.MEAN_NOISE) == state.get(keys.MEAN_NOISE_PROPOSED):
        usual = mean.NoiseSource.WORST_CASE if data.values is None else mean.NoiseSource.FROM_VALUES
        state[keys.MEAN_NOISE] = state[keys.MEAN_NOISE_PROPOSED] = usual
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
    use(synthetic.dataset(generator), origin)  # type: ignore[arg-type]


def data_version() -> int:
    """How many times data were loaded in this session."""
    return int(st.session_state.get(keys.DATA_VERSION, 0))


def page_file(title: str) -> str:
    """File of the page with this title, for links inside the app."""
    return registry.page(title).path


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
