"""The sections of an answer as data: what a page shows in a tab, and a report, a notebook or a test reads.

A section is a generator of parts. A part that asks for something is answered through ``yield``:

    def show_users(answer: Answer, dataset: Dataset) -> Parts:
        cap = yield Choice("cap", "Under which bound", {3: "Three rows", 9: "Nine rows"})
        yield Table(tabulate_users(dataset, cap), "Users with more rows")

A page draws the parts and answers with what the person chose; `list_parts` answers with the first choice and computes
at once what a page computes beside itself. No Streamlit is imported here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcore.answer.paper_figure import PaperFigure
from dpcore.answer.plot import Plot
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Provenance
from dpcore.common.progress import Stage, never


class Element:
    """A part of a section that is more than text or a plot."""


@dataclass(frozen=True)
class Note(Element):
    """A remark in small print; with the name of an icon, a box."""

    text: str
    icon: str = ""


@dataclass(frozen=True)
class Label(Element):
    """The disclosure label of the numbers above it, with a Markdown text before; the answer's own label if None."""

    disclosure: Provenance | None = None
    preceding_text: str = ""


@dataclass(frozen=True)
class Figures(Element):
    """Plots beside each other.

    Attributes:
        plots: The plots.
        controlled_axes: Axes whose ends a person can set: "x", "y" or "xy".
        axes_with_main_limits: Axes that have the ends of the page's main figure.
        has_titles: True if each plot stands below its title.
    """

    plots: tuple[Plot, ...]
    controlled_axes: str = ""
    axes_with_main_limits: str = ""
    has_titles: bool = False


@dataclass(frozen=True)
class Live(Element):
    """A plot of work that goes on, drawn anew while it does."""

    make_plot: Callable[[], Plot]


@dataclass(frozen=True)
class Table(Element):
    """A table of a section, to be drawn on a page.

    Attributes:
        columns_or_rows: Column name to values, or a list of rows.
        alt: What it shows, for a screen reader.
        formats_by_column: How the numbers of a column are written, by its name; or that, and a help text at its head.
        titles_by_column: Head of a column, by its name, if that is another one.
        has_formulae: True for a short table of texts with formulae.
        shows_all_rows: True if it is drawn in full, however many rows it has.
        key: Unique on the page; empty for none.
    """

    columns_or_rows: Any
    alt: str
    formats_by_column: Mapping[str, str | tuple[str, str]] = field(default_factory=dict)
    titles_by_column: Mapping[str, str] = field(default_factory=dict)
    has_formulae: bool = False
    shows_all_rows: bool = False
    key: str = ""


@dataclass(frozen=True)
class Numbers(Element):
    """Numbers of an answer beside each other."""

    numbers: tuple[Any, ...]


@dataclass(frozen=True)
class File(Element):
    """A file that a section offers for download; it is written when it is asked for.

    Attributes:
        label: Text of its button.
        name: Its name.
        columns_or_writer: Its columns, for a CSV file; or a function that makes it.
        disclosure: Of the data behind it; that of the answer if None.
        help: What it is good for; empty for none.
    """

    label: str
    name: str
    columns_or_writer: Mapping[str, Any] | Callable[[], str | bytes]
    disclosure: Provenance | None = None
    help: str = ""


@dataclass(frozen=True)
class Row(Element):
    """Parts beside each other, as many as fit in a line."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Link(Element):
    """A link to the page of this title."""

    page_title: str
    label: str
    icon: str


@dataclass(frozen=True)
class Fields(Element):
    """Fields of the question in a row, by name; with ``width_shares``, in columns of these widths."""

    names: tuple[str, ...]
    width_shares: tuple[int, ...] = ()


@dataclass(frozen=True)
class Choice(Element):
    """One of several values, each with its text; answered by the value that is chosen, at first the first one."""

    key: str
    label: str
    texts_by_value: Mapping[Any, str]

    @property
    def first_value(self) -> Any:
        """Return the value that is chosen at first, the first of `texts_by_value`."""
        return next(iter(self.texts_by_value))


@dataclass(frozen=True)
class Integer(Element):
    """A whole number that belongs to no parameters; answered by it, or None if it is not one, first ``initial``."""

    key: str
    label: str
    limits: tuple[int, int]
    initial: int
    step: int = 1
    help: str = ""


@dataclass(frozen=True)
class Window(Element):
    """A plot over an interval that a person chooses on a linear axis; answered by the interval.

    Attributes:
        make_plot: Returns the plot over an interval.
        initial_interval: The interval at first.
        widest_interval: The widest interval.
        key: Unique on the page; it must change with what sets the widest interval.
        button_text: Text of the button that offers the choice.
        label: What the interval is of, with its unit.
    """

    make_plot: Callable[[tuple[float, float]], Plot]
    initial_interval: tuple[float, float]
    widest_interval: tuple[float, float]
    key: str
    button_text: str
    label: str


@dataclass(frozen=True)
class Missing(Element):
    """The missing data that this section needs, as a plural noun phrase, and the text of a link to other data."""

    needed_text: str
    remedy: str


@dataclass(frozen=True)
class Proposal(Element):
    """Settings that a person can take over, by name; they hold for all pages."""

    label: str
    icon: str
    settings: Mapping[str, Any]


class PrivateRange(Element):
    """An offer to choose the range of private values privately."""


@dataclass(frozen=True)
class ItemNames(Element):
    """An offer to bring a public list of names; answered by the name of each item, or nothing if the data have none.

    An item that stands in private rows alone is named by the noun and its number.
    """

    noun: str


@dataclass(frozen=True)
class Columns(Element):
    """Parts in columns of one width."""

    columns: tuple[Iterable[Part], ...]


@dataclass(frozen=True)
class PaperFigures(Element):
    """Figures of a paper at its own setting."""

    figures: tuple[PaperFigure, ...]


@dataclass(frozen=True)
class Cached(Element):
    """A call that a page repeats; answered by its result.

    The result is kept by the arguments, so that only a function of a module may be called: it can depend on nothing
    else. `Parameters.without` leaves out the fields that it does not depend on.

    Attributes:
        function: The function.
        arguments: Its arguments; of data, the digest is compared.
        num_kept: How many results are kept.
        name: The name under which results are kept.
        question: The key of the result.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    num_kept: int = 16
    name: str = field(init=False)
    question: Hashable = field(init=False)

    def __post_init__(self) -> None:
        """Set the name, module and function, and the key: the arguments, or their digests.

        Raise ValueError for a function inside another or a lambda.
        """
        qualified_name = self.function.__qualname__
        if "<" in qualified_name:
            raise ValueError(f"{qualified_name} may depend on more than its arguments")
        object.__setattr__(self, "name", f"{self.function.__module__}.{qualified_name}")
        object.__setattr__(self, "question", tuple(getattr(a, "digest", a) for a in self.arguments))

    def compute(self) -> Any:
        """Call the function and return its result."""
        return self.function(*self.arguments)


@dataclass(frozen=True)
class Search(Element):
    """Work beside the page; answered by its result, or None while there is none.

    Work that reports a result before it ends is answered by that until then.

    Attributes:
        key: Under which the session keeps it.
        question: What it works on; any other question makes its result void. What cannot change the result is left
            out by `Parameters.without`. The digest of the data always belongs to the question.
        work: Called with a callback for progress and one that says whether to stop.
        progress_text: What is said beside the progress.
        button_text: Text of the button that starts it, in a section; it starts by itself if empty.
        icon: Icon of the button.
        field_names: Fields that stand beside the button.
        is_main: True if the button is the main one of its page.
        idle_text: What is said while there is no result.
        outdated_text: What is said of a result for earlier settings.
        shows_outdated: True if such a result is shown nevertheless.
        describe_stop: Returns what is said of a result that was cut short; empty if it is complete.
        depends_on_data: False if the result depends on no data.
        preceding_search: Work whose result this work begins with, as the first argument of ``work`` and
            ``compute_first``.
        compute_first: Returns a first answer, which stands until there is a result; None if there is none. Its
            argument is None if the work before has no result yet.
        is_complete: Returns False for a result that was cut short.
        settings: What the result is shown with, and what it stays with while it stands in for a later one: settings
            that do not change it.
        resumes: True if the work goes on from its result when it was stopped, here or in another session that
            shares its results: its first argument, None at first.
        num_kept: How many complete results are kept for when they are asked for again; of work that resumes, all
            results.
        first_wait_seconds: How long a page waits for the first result of all, even if the work goes on after it.
        later_wait_seconds: How long it waits for later ones.
        is_measured: True if the work says how far it is.
        progress_texts_by_stage: What is said beside the progress while another answer stands in for the result, by the
            stage of that answer.
        is_heavy: True if it must not run beside other heavy work.
        follows_slider: True if a moved slider starts it, so that it takes turns with the searches of others.
    """

    key: str
    question: Hashable
    work: Callable[..., Any]
    progress_text: str
    button_text: str = ""
    icon: str = "play_arrow"
    field_names: tuple[str, ...] = ()
    is_main: bool = False
    idle_text: str = ""
    outdated_text: str = (
        ":material/history: These results are for earlier settings; start again for the new ones."
    )
    shows_outdated: bool = False
    describe_stop: Callable[[Any], str] = lambda result: ""
    depends_on_data: bool = True
    preceding_search: Search | None = None
    compute_first: Callable[..., Any] | None = None
    is_complete: Callable[[Any], bool] = lambda result: True
    settings: Any = None
    resumes: bool = False
    num_kept: int = 0
    first_wait_seconds: float = 0.4
    later_wait_seconds: float = 0.4
    is_measured: bool = True
    progress_texts_by_stage: Mapping[Stage, str] = field(default_factory=dict)
    is_heavy: bool = False
    follows_slider: bool = False


@dataclass(frozen=True)
class SearchResult:
    """The result of a search as it stands.

    Attributes:
        value: The result, or what stands in for it; None if there is nothing.
        stage: How the value relates to the question.
        settings: The ``settings`` of the search when it had this result.
    """

    value: Any
    stage: Stage = Stage.FINAL
    settings: Any = None


Part = str | Plot | Element
Parts = Generator[Part, Any, None]
Section = Callable[[Any, Any], Parts]
"""A section, from an answer and what it is about."""
BEHIND, DOWNLOADS = "Behind the answer", "Downloads"
"""Names of sections that go on from what the tabs of these names have for every answer."""
Sections = Mapping[str, Section | Mapping[str, Section]]
"""Sections by name; a mapping of sections is a tab that holds tabs."""
Solver = Generator[Cached | Search, Any, SearchResult]
"""A solution that a page searches for: `Cached` is answered by its result, `Search` by a `SearchResult`.

A search with a button starts in the section that yields it, too.
"""


def list_parts(parts: Iterable[Part], runs_searches: bool = False) -> list[Part]:
    """Run a section and list its parts; every choice is answered by its first value.

    A search is answered by None, or by its result if ``runs_searches``.

    Examples:
        >>> def show_users() -> Generator[Part, int]:
        ...     cap = yield Choice("cap", "Under which bound", {3: "Three rows", 9: "Nine rows"})
        ...     yield Note(f"At most {cap} rows per user.")
        >>> list_parts(show_users())[-1].text
        'At most 3 rows per user.'
    """

    def record_and_reply(part: Part) -> Any:
        """Append a part, and a window's plot, and return what the section gets for it."""
        read_parts.append(part)
        match part:
            case Choice():
                return part.first_value
            case Integer():
                return part.initial
            case Window():
                read_parts.append(part.make_plot(part.initial_interval))
                return part.initial_interval
            case Cached():
                return part.compute()
            case Search() if runs_searches:
                return part.work(lambda share, partial_result=None: None, never)
            case Row():
                walk_parts(part.parts, record_and_reply)
            case Columns():
                for column_parts in part.columns:
                    walk_parts(column_parts, record_and_reply)
        return None

    read_parts: list[Part] = []
    walk_parts(parts, record_and_reply)
    return read_parts


def walk_parts(parts: Iterable[Part], reply_to_part: Callable[[Part], Any]) -> None:
    """Call ``reply_to_part`` on each part; send its result into the generator of parts, or throw its `InvalidInput`."""
    if not isinstance(parts, Generator):
        for part in parts:
            reply_to_part(part)
        return
    resume, reply_or_error = parts.send, None
    with contextlib.suppress(StopIteration):
        while True:
            part = resume(reply_or_error)
            try:
                resume, reply_or_error = parts.send, reply_to_part(part)
            except InvalidInput as error:  # The section may go on without the reply.
                resume, reply_or_error = parts.throw, error


def flatten_sections(sections: Sections) -> dict[str, Section]:
    """Return all sections by name; a tab that holds sections is replaced by these."""
    sections_by_name: dict[str, Section] = {}
    for section_name, section in sections.items():
        sections_by_name |= (
            flatten_sections(section) if isinstance(section, Mapping) else {section_name: section}
        )
    return sections_by_name


def list_plots(answer: Any, dataset: Any) -> list[Plot]:
    """List the plots of an answer, the main one first, and those of its sections with first choices.

    A plot whose disclosure differs from the answer's is left out, as its settings may have been read off the data.
    """
    plots_by_key = {plot_key: make_plot() for plot_key, make_plot in answer.plots.items()}
    for section in flatten_sections(answer.sections).values():
        with contextlib.suppress(InvalidInput):  # It says why it has no plots.
            for part in list_parts(section(answer, dataset)):
                part_plots = (
                    part.plots if isinstance(part, Figures) else (part,) if isinstance(part, Plot) else ()
                )
                for part_plot in part_plots:
                    if part_plot.disclosure == answer.disclosure:
                        plots_by_key.setdefault(part_plot.key, part_plot)
    return list(plots_by_key.values())
