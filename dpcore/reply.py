"""The reply of a call of `dpcore`: the answer of a question, as a person in a notebook or a program reads it.

Pages and reports read the `Answer` itself. The reply adds what a person asks of it: the bound as a number, the numbers
as a table, figures, programs and files.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dpcore.answer import Answer, Plot, section
from dpcore.code import LIBRARIES, Code, read_program, write
from dpcore.common.checks import refuse, refuse_seed
from dpcore.common.extras import import_extra
from dpcore.common.privacy import Charge
from dpcore.dataset import Dataset
from dpcore.report import content
from dpcore.report.figures import Figures
from dpcore.report.markup import to_plain_text
from dpcore.report.notebook_html import write_notebook_html
from dpcore.report.script import ScriptSource, write_script
from dpcore.report.settings_file import Call, write_call

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from dpcore.answer.answer import Proof
    from dpcore.answer.methods import Methods
    from dpcore.common.privacy import Provenance


LIBRARY_BY_NAME = {library.name.lower(): library for library in LIBRARIES}


@dataclass(frozen=True, repr=False, eq=False)
class Reply:
    """The answer to one question.

    A pickle holds the call, the numbers, the plots, the programs, the label and the digest of the data, but no data,
    unless `keep_data` was called. Two replies are equal if call, data and numbers are.

    The other attributes are those of the answer: ``headline``, ``detail``, ``facts``, ``assumptions``, ``proofs``,
    ``plots``, ``methods``, ``parameters``, ``disclosure``, ``verdict_sentence``.

    Attributes:
        answer: The answer that pages and reports read.
        call: Name of the function that was called, and its arguments as a person writes them: columns, label, settings.
        package_name: Package that built the answer, such as ``dpcore.mean.answer``.
        purpose_sentence: What it answers, one sentence.
        data: The data set that it is about; None where the settings say all, or it is of another kind.
        subject: What `build_answer` took as data: the data set, a table with a label, or a stand-in if none was given.

    Examples:
        >>> import dpcore as ss
        >>> reply = ss.count_bound([3] * 100, epsilon=1, disclosure="public")
        >>> print(reply.headline, reply.bound, round(reply.error, 2))
        Keep at most 3 rows per user. 3 2.95
        >>> reply.call[0]
        'count_bound'
    """

    answer: Answer
    call: Call
    package_name: str
    purpose_sentence: str
    data: Dataset | None = None
    subject: Any = None

    if TYPE_CHECKING:  # What `__getattr__` takes from the answer.
        headline: ClassVar[str]
        detail: ClassVar[str]
        near_optimal: ClassVar[str]
        facts: ClassVar[Mapping[str, str]]
        all_assumptions: ClassVar[tuple[str, ...]]
        proofs: ClassVar[tuple[Proof, ...]]
        plots: ClassVar[Mapping[str, Callable[[], Plot]]]
        methods: ClassVar[Methods | None]
        parameters: ClassVar[Any]
        disclosure: ClassVar[Provenance]
        verdict_sentence: ClassVar[str]

    def __getattr__(self, attribute_name: str) -> Any:
        if attribute_name.startswith("_") or attribute_name == "answer":
            raise AttributeError(attribute_name)
        return getattr(self.answer, attribute_name)

    def __reduce__(self) -> tuple[Any, ...]:
        stored_facts = {"data_digest": self.data_digest, "notes": self.notes, "_has_data": self._has_data}
        reply_fields = (self.answer, self.call, self.package_name, self.purpose_sentence)
        return _restore, (type(self), reply_fields, stored_facts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reply) or type(self) is not type(other):
            return NotImplemented
        return (self.call, self.data_digest, self.answer.numbers, self.disclosure) == (
            (other.call, other.data_digest, other.answer.numbers, other.disclosure)
        )

    def __hash__(self) -> int:
        return hash((self.call[0], self.data_digest))

    def keep_data(self) -> Reply:
        """Return a copy of this reply whose pickle holds the data and, when it is loaded, computes the answer again.

        Who reads the pickle then reads the data.

        Raises:
            InvalidInput: The data are gone, as this reply comes from a pickle or was drawn privately.
        """
        if self.data is None and self.subject is None:
            raise refuse("this reply has no data to keep; ask the question again")
        return ReplyWithData(
            self.answer, self.call, self.package_name, self.purpose_sentence, self.data, self.subject
        )

    @cached_property
    def data_digest(self) -> str:
        """Return the SHA-256 hash of the data set, in hexadecimal digits; empty if the reply has no data set."""
        return "" if self.data is None else self.data.digest

    @property
    def relative_error(self) -> float | None:
        """Return the error over the size of what is released; None where there is no such size."""
        relative_error = self.answer.relative_error
        return None if relative_error is None else relative_error.share

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.answer.__dataclass_fields__})

    def __str__(self) -> str:
        """Return lines of plain text: headline, numbers, near-optimal range, own bound, notes on the data, label."""
        *lines, label_line = map(to_plain_text, str(self.answer).splitlines())
        own_lines = [
            f"{fact_name}: {to_plain_text(fact_text)}"
            for fact_name, fact_text in self.facts.items()
            if fact_name.startswith("Your own")
        ]
        return "\n".join([*lines, *own_lines, *self.notes, label_line])

    __repr__ = __str__

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Return the sentences on the data that a person should know, such as how many rows were left out."""
        return () if self.data is None else tuple(map(to_plain_text, self.data.notes))

    @property
    def bound(self) -> Any:
        """Return the bound: a number, several numbers by name, or a table of weights.

        Without a bound of its own, the answer's first number stands for it; None if that has no value.
        """
        answer = self.answer
        if answer.bound is not None:
            return answer.bound() if callable(answer.bound) else answer.bound
        value = answer.numbers[0].value if answer.numbers else None
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @property
    def error(self) -> float | None:
        """Return the error at the bound, the answer's own or else its second number; None if there is neither.

        Its unit is the one that ``numbers`` states.
        """
        if self.answer.error is not None:
            return self.answer.error
        error_numbers = self.answer.numbers[1:2] if self.bound is not None else ()
        return None if not error_numbers or error_numbers[0].value is None else float(error_numbers[0].value)

    @property
    def numbers(self) -> pd.DataFrame:
        """Return a table of all numbers, one row each, with the name as index.

        The columns are the text, the value with all digits (None if there is none), the unit and a note.
        """
        import pandas as pd

        rows = [(n.label, n.text, n.value, n.unit, n.note) for n in self.answer.numbers]
        return pd.DataFrame(rows, columns=["number", "text", "value", "unit", "note"]).set_index("number")

    @property
    def figures(self) -> Figures:
        """Return all figures by key, as Plotly draws them, on white; private data are labelled in them."""
        return Figures(self.answer)

    def figure(self, key: str = "") -> Any:
        """Draw one figure of the answer with Plotly.

        Args:
            key: One of ``figures``; the main one by default.

        Raises:
            InvalidInput: There is none of that key.
        """
        figures = self.figures
        if not figures:
            raise refuse("there is no figure of this")
        if key and key not in figures:
            raise refuse(f"there is no figure {key!r}; there are {', '.join(figures)}")
        return figures[key or next(iter(figures))]

    def code(self, library: str = "", form: str = "") -> str:
        """Write the program that releases with this bound, for one library.

        It reads the file of the data by its name: run it in their folder. Write a table in memory to a file first, with
        ``table.to_parquet("data.parquet")``.

        Args:
            library: One of opendp, pipelinedp, tumult, bigquery, python; by default the program of the question.
            form: Which of ``forms``; by default the first that the library can express.

        Raises:
            InvalidInput: There is no such program; the sentence says why.
        """
        library = library or self._default_library()
        text, written_form = self.program(library, form)
        wanted_form = form or next(iter(self.forms))
        if written_form == wanted_form:
            return text
        comment_mark = "--" if library.lower() == "bigquery" else "#"
        return f"{comment_mark} {library} has no program for {wanted_form!r}. This one is for {written_form!r}.\n{text}"

    def _default_library(self) -> str:
        """Return the name of the library that opens the question's program, in lower case; opendp if none does."""
        program_library = None if self.answer.code is None else self.answer.code.library
        return "opendp" if program_library is None else program_library.name.lower()

    def program(self, library: str = "", form: str = "") -> tuple[str, str]:
        """Write the program as `code` does, without the comment on another form.

        Returns the program's text and the name of the form that it is for.
        """
        library = library or self._default_library()
        if str(library).lower() not in LIBRARY_BY_NAME:
            raise refuse(f"library must be one of {', '.join(LIBRARY_BY_NAME)}, got {library!r}")
        releases_by_form = dict(self.forms)
        if not releases_by_form:
            raise refuse("there is no program for this answer")
        if form and form not in releases_by_form:
            raise refuse(f"form must be one of {', '.join(map(repr, releases_by_form))}, got {form!r}")
        wanted_form = form or next(iter(releases_by_form))
        code_by_form = {
            form_name: choice if isinstance(choice, Code) else write(choice, LIBRARY_BY_NAME[library.lower()])
            for form_name, choice in releases_by_form.items()
            if form_name == wanted_form or not form
        }
        written_form = next((form_name for form_name in code_by_form if code_by_form[form_name].text), None)
        if written_form is None:
            raise refuse(" ".join(code_by_form[wanted_form].differences).rstrip("."))
        return code_by_form[written_form].text, written_form

    def parameters_for(self, library: str, form: str = "") -> dict[str, dict[str, Any]]:
        """Read from the program of `code` which arguments it passes to PipelineDP or Tumult.

        Args:
            library: pipelinedp or tumult.
            form: As for `code`.

        Returns:
            The arguments of each call by its name, such as those of ``AggregateParams``.

        Raises:
            InvalidInput: It is another library, or there is no such program.
        """
        return read_program.read_parameters(self.program(library, form)[0], library.lower())

    def to_opendp(self, context: Any, form: str = "") -> Any:
        """Run the program of `code` for OpenDP on a context of your own, up to its query.

        Args:
            context: A context of OpenDP's whose table is that of the program, with its columns: ``privacy_unit``, and
                for a sum or a mean the whole numbers of steps ``total``.
            form: As for `code`.

        Raises:
            InvalidInput: The program makes no query of a context, or there is none.
        """
        return read_program.build_query(self.program("opendp", form)[0], context)

    @property
    def forms(self) -> Mapping[str, Any]:
        """Return the choices that ``code`` can be written for, by name: for example the cap and the smooth weights."""
        return {} if self.answer.code is None else dict(self.answer.code.forms)

    def draw(
        self,
        epsilon: float | None = None,
        *,
        total_epsilon: float | None = None,
        largest: int = 10_000,
        margin: float = 0.0,
        unit: float | None = None,
        highest_amount: float | None = None,
        charge: Charge | None = None,
        **further_options: Any,
    ) -> DrawnReply:
        """Draw the bound from these data with an epsilon of its own: a DP release, fresh at every call.

        The bound of this reply is read off the data; one that was drawn may be published, and a release that uses it
        has the epsilon of both. This object keeps no account: keep your own. The draw takes the data and the settings
        of this reply, and nothing that was computed: see `dpcore.select_privately`, which needs no reply. It takes no
        seed: whoever knows the seed can take the noise off.

        Args:
            epsilon: Of the draw, on top of that of the release; by default 0.1. For `private_bound` its own settings
                hold.
            total_epsilon: Of the draw and the release together, in place of both epsilons: the release gets what the
                draw leaves.
            largest: Public maximum of rows per user; no bound above it is drawn.
            margin: Of sums and counts: how many users more than 1/epsilon to leave above the bound.
            unit: Of sums per group: what amounts are rounded to, public.
            highest_amount: Of sums per group: public maximum of one user's amount in a group.
            charge: Told what the draw guarantees before anything is drawn.
            further_options: None; a seed is refused by a sentence.

        Returns:
            What was drawn, with its label and its program, and with nothing else of the data.

        Raises:
            InvalidInput: Nothing needs to be drawn, or a public number is missing; the sentence says which.
        """
        # That module asks questions, whose replies are of this one. It refuses calls that nothing is drawn for.
        selection_module = importlib.import_module("dpcore.private_selection")
        refuse_seed("draw", further_options)
        call_name, call_settings = self.call
        if self.data is None and call_name in selection_module.SELECTABLE_CALLS:
            remedy = "Ask the question again, or pickle the reply of its keep_data()"
            raise refuse("this reply comes from a pickle, which holds no data", remedy=remedy)
        options: dict[str, Any] = {"total_epsilon": total_epsilon, "largest": largest, "margin": margin}
        options |= {"unit": unit, "highest_amount": highest_amount, "charge": charge}
        select_privately: Callable[..., DrawnReply] = selection_module.select_privately
        return select_privately(call_name, self.data, call_settings, epsilon, **options)

    def report(self, path: str | Path) -> Path:
        """Write the whole answer as one HTML file, which needs no network, and return its path.

        Args:
            path: Of the file.

        Raises:
            OSError: It cannot be written.
        """
        import_extra("plotly")
        from dpcore.report import report_html

        html_text = report_html.write_report_html(self._report(), datetime.now(UTC))
        Path(path).write_text(html_text, encoding="utf-8")
        return Path(path)

    @property
    def tabs(self) -> tuple[str, ...]:
        """Return the names of the tabs that the page of this question has."""
        return tuple(section.flatten_sections(self.answer.sections))

    def tab(self, name: str, search: bool = False) -> list[Any]:
        """Compute what a tab shows at first: texts, tables (pandas) and figures (Plotly), in order.

        Args:
            name: One of ``tabs``.
            search: Compute also what the page searches for beside itself, which may take long.

        Raises:
            InvalidInput: There is no such tab, or these data have nothing for it.
        """
        import pandas as pd

        import_extra("plotly")
        from dpcore.report import plotly_figures

        sections_by_name = section.flatten_sections(self.answer.sections)
        if name not in sections_by_name:
            raise refuse(f"there is no tab {name!r}; there are {', '.join(map(repr, sections_by_name))}")
        shown_parts: list[Any] = []
        for section_part in section.list_parts(sections_by_name[name](self.answer, self.data), search):
            match section_part:
                case str() | section.Note():
                    shown_parts.append(section_part if isinstance(section_part, str) else section_part.text)
                case section.Table():
                    shown_parts.append(pd.DataFrame(section_part.columns_or_rows))
                case Plot():
                    shown_parts.append(plotly_figures.draw_on_white(section_part))
                case section.Figures():
                    shown_parts += map(plotly_figures.draw_on_white, section_part.plots)
        return shown_parts

    def to_json(self) -> str:
        """Write the whole answer as JSON, every number beside its label (``docs/report.md``)."""
        return content.write_report_json(self._report(), datetime.now(UTC))

    def script(self) -> str:
        """Write a Python script in cells that computes the answer again; it holds no number of private data."""
        if self.data is None:
            raise refuse("a script is written of a data set, and this reply holds none")
        source = ScriptSource(self.data, needs_rows=True, disclosure=self.answer.disclosure)
        made_at, parameters = datetime.now(UTC), self.answer.parameters
        return write_script(
            self._title, parameters, source, self.package_name, made_at, False, self._call_without_columns
        )

    @property
    def call_text(self) -> str:
        """Return the call in Python, with `dpcore` as ``ss`` and the data, if it has some, under the name ``data``."""
        return write_call(self.call, has_data=self._has_data)

    @cached_property
    def _has_data(self) -> bool:
        """Return True if the call has data, and no default that stands for none."""
        question = importlib.import_module("dpcore.questions").QUESTIONS.get(self.call[0])
        # `select_range` is none of them, and has data.
        return question is None or not any(self.subject is default for default in question.default_data)

    @property
    def _call_without_columns(self) -> Call:
        """Return the call without what says how data are read, for data that were read already."""
        call_name, arguments = self.call
        question = importlib.import_module("dpcore.questions").QUESTIONS[call_name]
        return call_name, {
            name: arguments[name] for name in arguments if name not in question.column_arguments
        }

    @property
    def _title(self) -> str:
        """Return the title of reports and scripts, from the name of the call."""
        return self.call[0].replace("_", " ").capitalize()

    def _report(self) -> content.Report:
        """Build the report of the answer as data, for HTML and JSON."""
        return content.build_report(self.answer, self._title, self.purpose_sentence, self.data)

    def _repr_html_(self) -> str:
        """Write headline, detail, numbers, notes, folded assumptions and label as HTML, with every text escaped."""
        return write_notebook_html(self.answer, self.notes)

    def _ipython_display_(self) -> None:
        """Show the HTML and the main figure in the notebook that runs this, without a request to another computer."""
        notebook = importlib.import_module("IPython.display")  # Where this is called, it is there.
        notebook.display(notebook.HTML(self._repr_html_()))
        if self.answer.plots:
            from dpcore.report.report_html import build_notebook_content

            notebook.display(build_notebook_content(self.figure()), raw=True)


class ReplyWithData(Reply):
    """A reply whose pickle holds the data."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _ask_again, (self.subject, self._call_without_columns, self.call)


def _ask_again(subject: Any, call_without_columns: Call, call: Call) -> Reply:
    """Answer the question of a pickle again about the data in it."""
    call_name, settings = call_without_columns
    reply: Reply = importlib.import_module("dpcore.questions").build_reply(call_name, subject, settings)
    return replace(reply, call=call)


def _restore(
    reply_type: type[Reply], reply_fields: tuple[Any, ...], stored_facts: Mapping[str, Any]
) -> Reply:
    """Build a reply without data from the contents of its pickle."""
    reply = reply_type(*reply_fields)
    vars(reply).update(stored_facts)
    return reply


class DrawnReply(Reply):
    """A bound that was drawn privately: a release, which may be published under its label.

    It holds none of the data that it was drawn from, so that it has no figures and cannot be computed again.
    """

    def to_json(self) -> str:
        """Write the released number, its request and its guarantee as JSON, and no other entries."""
        assert self.answer.write_json is not None
        return self.answer.write_json()

    def report(self, path: str | Path) -> Path:
        """Refuse to write a report, as a report shows the data.

        Raises:
            InvalidInput: Always.
        """
        raise refuse("a report is of the data, which a drawn bound does not hold; print it, or take its JSON")

    def draw(self, *arguments: Any, **keywords: Any) -> DrawnReply:
        """Refuse another draw, which the reply that this one was drawn from makes.

        Raises:
            InvalidInput: Always.
        """
        raise refuse("this was drawn already", remedy="Draw another from the first reply; it costs again")
