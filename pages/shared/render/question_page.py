"""The page of a question whose answer is data: inputs, answer, figure, and the sections of the answer."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpcore.answer import selected_bound
from dpcore.answer.answer import Answer
from dpcore.answer.axes import RANGE_SOURCE_PHRASE
from dpcore.answer.plot import Band, Plot
from dpcore.answer.section import BEHIND, DOWNLOADS, Cached, SearchResult, Solver
from dpcore.common.checks import InvalidInput
from dpcore.common.parameters import FieldOrigin, Place, list_unused
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.progress import Stage
from dpcore.dataset import Dataset
from dpcore.report.content import Line
from dpcore.report.script import ScriptSource
from pages.shared.base import cache, catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields, jobs, searches
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.screen import layout, other_bounds
from pages.shared.screen import sections as screen_sections
from pages.shared.screen.sections import Renderer, list_contents
from pages.shared.session import session


def ask_for_range(dataset: Dataset, end_name_by_key: Mapping[str, str], value_noun: str = "value") -> bool:
    """Ask for a range and return True if an end is empty, for private data or a release that did not empty it.

    In all other cases draw nothing and return False.

    A range read off private values would leak, and one that nobody chose would clamp them silently and stand in
    programs. A release may have emptied the fields: `session.explain_cleared` then says why.

    Args:
        dataset: The data in use.
        end_name_by_key: What each end is called in a sentence, by session key.
        value_noun: The word for a value in the sentence.
    """
    empty_names = [end_name_by_key[key] for key in end_name_by_key if st.session_state.get(key) is None]
    asks_for_release = dataset.release is not None and not any(map(session.is_cleared, end_name_by_key))
    if not empty_names or not (dataset.is_private or asks_for_release):
        return False
    st.info(
        f"**What range can a {value_noun} have?** Enter {' and '.join(empty_names)}, {RANGE_SOURCE_PHRASE} "
        "Never read a range off private data. The answer follows.",
        icon=":material/straighten:",
    )
    cards.draw_range_button(dataset)
    return True


def read_inputs(
    question: Question,
    slots: layout.PageSlots,
    *,
    options_by_field: Mapping[str, Sequence[Any]] | None = None,
    is_hidden: Callable[[str], bool] = lambda name: False,
    widgets_by_field: Mapping[str, Callable[[], object]] | None = None,
    draw_more: Callable[[], object] = lambda: None,
    ask_first: Callable[[Collection[str]], bool] = lambda unused: False,
    shares_settings: bool = True,
    num_columns: int = 1,
) -> Any | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused.

    Args:
        question: The question, whose parameters class declares its fields.
        slots: The containers of the page.
        options_by_field: The options that a field offers for these data; the first replaces one that is not offered.
        is_hidden: Returns True for a field that is not drawn here. It is left out if it is empty, or None by default.
        widgets_by_field: Functions that draw a field in place of its own widget, by name.
        draw_more: Draws what stands below the fields of *More settings*.
        ask_first: Given the fields that do not apply, returns True if it asks for something that the answer needs.
        shares_settings: False if the page shows other data than those in use, so that it does not take up their
            settings.
        num_columns: How many fields of *More settings* stand beside each other.
    """
    assert question.parameters_type is not None
    options_by_field, widgets_by_field = options_by_field or {}, widgets_by_field or {}
    unused_names = start_fields(question, options_by_field, shares_settings)
    hidden_names = {field_name for field_name in question.fields if is_hidden(field_name)}
    absent_names = hidden_names.union(unused_names)
    line_fields, more_fields = (
        [n for n in question.list_fields(field_place) if n not in absent_names]
        for field_place in (Place.LINE, Place.MORE)
    )
    with slots.line:
        fields.draw_fields(
            question, *line_fields, options_by_field=options_by_field, widgets_by_field=widgets_by_field
        )
    if question.list_fields(Place.MORE):
        with slots.line.popover("More settings", icon=":material/tune:", key=f"{question.name}_more"):
            with st.grid(num_columns) if num_columns > 1 else st.container():
                fields.draw_fields(
                    question,
                    *more_fields,
                    options_by_field=options_by_field,
                    widgets_by_field=widgets_by_field,
                )
            draw_more()
    with slots.notes:
        if ask_first(unused_names):
            return None
        # A refused field that stands elsewhere leaves the answer standing.
        optional_names = question.list_fields(Place.OWN, Place.CARD, Place.TAB)
        unused_names += [
            f.name
            for f in dataclasses.fields(question.parameters_type)
            if f.name in hidden_names and None in (f.default, st.session_state[question.widget_keys[f.name]])
        ]
        # Not the default, which may be another value than the field begins with.
        overrides = {
            f.name: question.get_initial_value(f.name)
            for f in dataclasses.fields(question.parameters_type)
            if f.name in unused_names and f.default is not None
        }
        return fields.build_page_parameters(question, unused_names, overrides, optional_names)


def start_fields(
    question: Question,
    options_by_field: Mapping[str, Sequence[Any]] | None = None,
    shares_settings: bool = True,
) -> list[str]:
    """Fill new fields, unused empty ones and those whose option is not offered; return the names of unused fields.

    Fields that a link of another choice left empty are filled, and so are sliders, which cannot be empty. A value
    that may have been read off values stays empty: a default would look like a choice that somebody made. The arguments
    are those of `read_inputs`.
    """
    fields.initialise_fields(question, shares_settings)
    for field_name, offered_options in (options_by_field or {}).items():
        widget_key = question.widget_keys[field_name]
        if st.session_state[widget_key] not in offered_options:
            st.session_state[widget_key] = offered_options[0]
    unused_names = list_unused_fields(question)
    for field_name, field in question.fields.items():
        may_be_empty = field.origin is FieldOrigin.VALUES or not (field_name in unused_names or field.slider)
        if not may_be_empty and st.session_state[question.widget_keys[field_name]] is None:
            st.session_state[question.widget_keys[field_name]] = field.initial
    return unused_names


def list_unused_fields(question: Question) -> list[str]:
    """Return the names of fields that do not apply with the present choices; an unused choice has its default."""
    values_by_field = {
        field_name: st.session_state[question.widget_keys[field_name]] for field_name in question.fields
    }
    return list_unused(question.declarations, values_by_field, question.get_initial_value)


INVENTED_NAME = "invented shop purchases"
"""Names the demonstration in the sidebar."""
PROGRESS_HEIGHT, STATE_HEIGHT = 44, 56
"""In pixels: kept free for a line of progress below the figure or the answer, so that nothing moves when it comes."""


@dataclass(frozen=True)
class Needs:
    """The data that a question needs; without them the page shows invented data.

    Attributes:
        is_missing: Returns True if data lack it.
        needed_phrase: What it is, as a plural noun phrase: "values, one per row"; empty if the page says it elsewhere.
        link_label: Text of the link to *Data*.
        write_detail: Returns what the answer says below its label, from solution and invented data; None if it says no
            more than usual.
    """

    is_missing: Callable[[Dataset], bool]
    needed_phrase: str
    link_label: str
    write_detail: Callable[[Any, Dataset], str] | None = None


@dataclass(frozen=True)
class Page:
    """A question's page, with functions that solve (or yield the steps of a search) and answer it.

    A page with more to it overrides the methods without an underscore.

    Attributes:
        question: The question.
        solve_or_search: Returns the solution, from data and parameters; on most pages a generator function, whose steps
            `searches.run_solver` runs.
        build_answer: Builds the answer from data, parameters and solution.
        glossary: Stands below *More settings*.
        needs: What the data must have besides rows per user; None for nothing.
        stem: Beginning of the names of files and of some keys; the name of the question if empty.
        has_axis_controls: True if a person can set the ends of the axes of the main figure.
        shows_progress_below: True if the progress of searches stands below the answer, not below the figure.
    """

    question: Question
    solve_or_search: Callable[[Any, Any], Solver | Any]
    build_answer: Callable[[Any, Any, Any], Answer]
    glossary: str = ""
    needs: Needs | None = None
    stem: str = ""
    has_axis_controls: bool = True
    shows_progress_below: bool = False

    def read_own_data(self) -> Any | None:
        """Draw which data a page with data of its own uses; return them, or None if there are none yet."""
        raise NotImplementedError

    def name_data(self, data: Any, parameters: Any) -> str:
        """Return the name of the data that the page shows, for the sidebar; empty for the data in use."""
        return str(getattr(data, "dataset", data).name) if self.question.has_own_data else ""

    def is_same_for_all(self, data: Any, parameters: Any) -> bool:
        """Return True if everybody has these data: no upload is ever shared with another session."""
        return not self.question.has_own_data and session.is_same_for_all()

    def read_inputs(self, slots: layout.PageSlots, data: Any) -> Any | None:
        """Draw the inputs; return the parameters, or None if they are refused."""
        glossary = self.glossary
        return read_inputs(self.question, slots, draw_more=lambda: st.caption(glossary) if glossary else None)

    def refuse(self, slots: layout.PageSlots, dataset: Dataset, parameters: Any) -> bool:
        """Draw the reason and return True if these data have no answer to the question; else return False."""
        return False

    def draw_main(self, answer: Answer, label_text: str) -> Plot:
        """Draw the main figure, with the privately selected bound if there is one, and return it as it is drawn."""
        main_plot = next(iter(answer.plots.values()))()
        bound_selection = cards.get_private_selection(answer)
        if bound_selection is not None and bound_selection.card is not None:
            selected_x, curve_name = bound_selection.plot_position
            main_plot = selected_bound.mark_selected_bound(main_plot, selected_x, curve_name)
            run = page_run.CURRENT_RUN.get()
            assert run is not None
            run.selected_bound_excess = selected_bound.find_selected_excess(main_plot, curve_name)
        if self.has_axis_controls:
            return screen_sections.show_plot(
                main_plot, label_text=label_text, get_field_key=self.question.get_key
            )
        figures.draw_plot(main_plot, label_text, get_field_key=self.question.get_key)
        return main_plot

    def draw_behind(self, answer: Answer) -> None:
        """Draw how sure the answer is, and what it assumes."""
        cards.draw_behind(answer)

    def choose_formula_file(self, answer: Answer) -> str:
        """Return the name, without its ending, of the Markdown file that explains how the answer is computed."""
        return "formula"

    def draw_method(self, answer: Answer) -> None:
        """Draw how the answer is computed, and how its bound is chosen with DP if the data are private."""
        st.markdown(self.question.read_formula(self.choose_formula_file(answer)))
        if cards.get_private_selection(answer) is not None and catalogue.PRIVATE_SELECTION_STEP is not None:
            with st.expander("How a bound is chosen with DP", icon=":material/casino:"):
                st.markdown(catalogue.PRIVATE_SELECTION_STEP.read_formula())

    def list_tabs(self, answer: Answer) -> Mapping[str, layout.Content]:
        """Return tabs that the page draws itself, by name; none by default. A group joins the sections of its name."""
        return {}

    def describe_files(self, answer: Answer) -> str:
        """Return Markdown on the content of the answer's files; empty for nothing to say."""
        return ""

    def list_report_fields(self, answer: Answer) -> Sequence[str]:
        """Return the names of the fields that matter for the answer."""
        return tuple(self.question.fields)

    def reads_rows(self, answer: Answer) -> bool:
        """Return True if the answer depends on more of the data than how many users have how many rows."""
        return self.needs is not None

    def build_source(self, answer: Answer, data: Any) -> ScriptSource:
        """Build the source of the report's script: the page's data if the answer reads rows, else the session's."""
        if self.reads_rows(answer):
            return report_content.build_source(data)
        return report_content.build_session_source()

    def summarise(self, answer: Answer, data: Any) -> tuple[Line, ...] | None:
        """Return what the answer is about for the report; None if that is the data in use alone."""
        return None

    def list_releases(self, answer: Answer, data: Any) -> tuple[Line, ...]:
        """List what was released and spent on these data, as lines of the report; none if the page chooses no bound."""
        selection_module = cards.import_selection_module() if self.question.chooses_bound else None
        return () if selection_module is None else selection_module.list_selection_lines()

    def name_variant(self, answer: Answer) -> str:
        """Return the name of the answer's variant, which gets tabs and files of its own; empty for the only one."""
        return ""

    def draw_refused(self, slots: layout.PageSlots, dataset: Dataset, parameters: Any) -> None:
        """Draw what is left to do if the data refuse the question; nothing by default."""

    def draw_progress(self, result: SearchResult, runs: Sequence[searches.SearchRun]) -> None:
        """Draw how far the searches of these runs are, in one line with one Stop button."""

        def describe_work() -> str:
            """Write what the first running search does; some searches have another text by the stage of the result."""
            search = next((run.search for run in runs if jobs.list_running_jobs(run.job_key)), runs[0].search)
            work_text = search.progress_texts_by_stage.get(result.stage) if result.value is not None else None
            return work_text or search.progress_text

        jobs.show_progress(
            [run.job_key for run in runs], describe_work, all(run.search.is_measured for run in runs)
        )

    def write_file_label(self, file_name: str) -> str:
        """Return the text of the button of a file: "Curves (CSV)" of learning_curves.csv."""
        file_stem, _, ending = file_name.removeprefix(f"{self.question.name}_").rpartition(".")
        return f"{file_stem.replace('_', ' ').capitalize()} ({ending.upper()})"

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw what the page adds last, after everything else is drawn; nothing by default."""

    def show(self) -> None:
        """Draw the page."""
        dataset = session.get_dataset()

        def draw_content(slots: layout.PageSlots) -> None:
            """Draw the page's content into its containers, on the data in use, invented ones, or its own."""
            if not self.question.has_own_data:
                is_demonstration = self.needs is not None and self.needs.is_missing(dataset)
                self._draw_body(slots, dataset, session.load_demonstration() if is_demonstration else dataset)
                return
            fields.initialise_fields(self.question)
            with slots.notes:
                data = self.read_own_data()
            if data is not None:
                self._draw_body(slots, data, data)

        layout.show_page(self.question, draw_content)

    def _draw_body(self, slots: layout.PageSlots, dataset_in_use: Any, data: Any) -> None:
        """Draw inputs, figure, answer and tabs for these data; only the first if refused or without an answer."""
        run, question = page_run.CURRENT_RUN.get(), self.question
        is_demonstration = data is not dataset_in_use
        assert run is not None
        run.own_data = data if question.has_own_data else None
        needs = self.needs if is_demonstration else None
        if needs is not None and needs.needed_phrase:
            missing_sentence = session.explain_missing(dataset_in_use, needs.needed_phrase, "This page")
            slots.notes.markdown(f":small[{missing_sentence}]")
        parameters = self.read_inputs(slots, data)
        if parameters is None:
            return
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        run.shown_data_name = INVENTED_NAME if is_demonstration else self.name_data(data, parameters)
        if self.refuse(slots, data, parameters):
            return
        is_shared = is_demonstration or self.is_same_for_all(data, parameters)
        try:
            parameters, total_sentence = cards.divide_total(self.question, data, parameters)
            if inspect.isgeneratorfunction(self.solve_or_search):
                solver: Solver = self.solve_or_search(data, parameters)
                result, runs = searches.run_solver(solver, question, data, is_shared)
            else:
                solution = cache.compute_cached(
                    Cached(self.solve_or_search, (data, parameters.about_data), 32)
                )
                result, runs = SearchResult(solution), []
        except InvalidInput as error:
            with slots.notes:
                fields.show_problems(error.problems)
            self.draw_refused(slots, data, parameters)
            return
        demo_label = session.DEMONSTRATION_LABEL if is_demonstration else ""
        if result.value is not None:
            # Files and pins name the settings of the answer in sight, and not those that were entered since.
            run.answered_parameters = getattr(result.value, "parameters", parameters) if runs else parameters
            answer = self.build_answer(data, run.answered_parameters, result.value)
            answer = replace(answer, detail=f"{answer.detail} {total_sentence}".strip())
            if needs is not None and needs.write_detail is not None:
                answer = replace(answer, detail=f"**{demo_label}.** {needs.write_detail(result.value, data)}")
        with slots.figure:  # First: the browser draws it while the rest is still on its way.
            if result.value is not None:
                main_plot = self.draw_main(answer, demo_label)
            if runs and not self.shows_progress_below:
                with st.container(height=PROGRESS_HEIGHT, border=False):
                    self.draw_progress(result, runs)
        if runs and self.shows_progress_below:
            container_options: dict[str, Any] = {
                "horizontal": True,
                "vertical_alignment": "center",
                "border": False,
            }
            with slots.bottom.container(
                height=STATE_HEIGHT, key=f"{question.name}_state", **container_options
            ):
                self.draw_progress(result, runs)
        if result.value is None:
            return
        is_final = result.stage is Stage.FINAL
        renderer = Renderer(question, answer, data, main_plot, demo_label, is_final, is_shared)
        card_key = f"{self.stem or question.name}_card"
        tabs_name = "_".join(filter(None, (self.name_variant(answer), "tabs")))
        sections_by_tab = dict(answer.sections)
        behind_section: Any = sections_by_tab.pop(BEHIND, None)
        downloads_section: Any = sections_by_tab.pop(DOWNLOADS, None)

        def show_behind() -> None:
            """Draw the tab behind the answer, with the offer of a plan and the answer's own section."""
            card, plan_page = run.shown_card or answer, catalogue.PLAN_PAGE
            if isinstance(card.disclosure, ReleaseFacts) and answer.disclosure != card.disclosure:
                st.markdown(
                    "**This tab is about the bound read off the private data**, not about the one that was drawn. Do "
                    "not publish it."
                )
            self.draw_behind(answer)
            if (
                plan_page is not None
                and question is not plan_page
                and question.navigation_group == plan_page.navigation_group
            ):
                importlib.import_module(f"pages.{plan_page.name}.on_card").draw_plan_button(answer, card_key)
            if behind_section is not None:
                renderer.show(behind_section)

        def show_files() -> None:
            """Draw the tab of downloads, with the answer's own section."""
            sheet_page = catalogue.SHEET_PAGE
            if sheet_page is not None and question.name in st.session_state.get(keys.SHOWN_RELEASES, {}):
                label = "Release sheet: what to state with the number"
                st.page_link(sheet_page.page_path, label=label, icon=sheet_page.icon)
            self.show_files(answer, data, demo_label)
            if downloads_section is not None:
                renderer.show(downloads_section)

        content_by_tab = {
            BEHIND: show_behind,
            **list_contents(renderer, sections_by_tab, self.list_tabs(answer)),
            DOWNLOADS: show_files,
            layout.COMPUTED: lambda: self.draw_method(answer),
        }
        with slots.answer:
            badge_text = session.INVENTED_BADGE if is_demonstration else ""
            # Invented data need no range, and what is below it would move with its length.
            has_band = is_demonstration or any(isinstance(item, Band) for item in main_plot.items)
            card_container = cards.draw_answer(answer, card_key, is_final, badge_text, has_band)
            if needs is not None:
                with card_container:
                    session.draw_data_link(needs.link_label)
            if question.chooses_bound and not is_demonstration:
                other_bounds.draw_other_bounds(question, run.shown_card or answer)
            if is_final and not is_demonstration and catalogue.SHEET_PAGE is not None:
                cards.keep_release(question, answer, run.shown_card or answer, card_key)
            # Right below the card: what a bound of the person's own costs.
            if own_fields := question.list_fields(Place.OWN):
                fields.draw_field_row(question, *own_fields)
                for heading, sentence in answer.facts.items():
                    if heading.startswith("Your "):
                        st.caption(f"{heading}: {sentence}")
        with slots.bottom:
            layout.draw_tabs(content_by_tab, question.get_key(tabs_name))
        with slots.answer:
            if any(run.is_cut_short for run in runs):
                button_label = "Go on" if runs[0].search.resumes else "Search again"
                fields.draw_button(
                    button_label, f"{question.name}_again", "refresh", searches.forget_results, runs
                )
        self.draw_last(slots, answer)

    def show_files(self, answer: Answer, data: Any, demo_label: str) -> None:
        """Draw the downloads: the whole answer, sentences for a methods section, and the answer's files."""
        question, variant = self.question, self.name_variant(answer)
        file_stem = "_".join(filter(None, (self.stem or question.name, variant)))
        source, release_lines = self.build_source(answer, data), self.list_releases(answer, data)
        summary_lines, formula_file = self.summarise(answer, data), self.choose_formula_file(answer)
        labels_by_field = question.get_report_labels(*self.list_report_fields(answer))
        file_specs = [(self.write_file_label(name), name, write) for name, write in answer.files.items()]
        if answer.write_json is not None:
            file_specs.append(("Choice (JSON)", f"{file_stem}_choice.json", answer.write_json))
        report_content.draw_downloads(
            file_stem,
            answer.disclosure,
            lambda: report_content.build_page_report(
                question,
                answer,
                source,
                formula_file,
                labels_by_field,
                demo_label,
                summary_lines,
                release_lines,
            ),
            answer.methods,
            self.describe_files(answer),
            file_specs,
        )
