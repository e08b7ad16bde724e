"""The page of a question whose answer is data: inputs, answer, figure, and the sections of the answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from dpcore.answer import section
from dpcore.answer.answer import Answer
from dpcore.answer.plot import Plot
from dpcore.answer.section import BEHIND, DOWNLOADS, Cached, SearchResult, Solver
from dpcore.common.checks import InvalidInput
from dpcore.common.progress import Stage
from dpcore.dataset import Dataset
from dpcore.report import content as dpcore_report_content
from dpcore.report.content import Line
from dpcore.report.script import Source
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.data import uploads
from pages.shared.fields import fields, jobs, setting
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.screen import inputs, layout, plots
from pages.shared.session import session


def contents(renderer: Renderer, sections: Mapping[str, Any], tabs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tabs of a page: those that it draws itself, and those that show the sections of an answer."""

    def content(name: str, entry: Any) -> Any:
        if isinstance(entry, Mapping):
            return contents(renderer, entry, {}) | tabs.get(name, {})
        return lambda: renderer.show(entry)

    return {**tabs, **{name: content(name, entry) for name, entry in sections.items()}}


@dataclass(frozen=True)
class Renderer:
    """Draws the sections of one answer.

    Attributes:
        question: The question of the page.
        answer: The answer.
        data: What it is about.
        main: The main figure as it is drawn; None if there is none.
        label: What stands above the figures; empty for nothing.
        is_final: False if another answer will replace this one.
        for_all: True if everybody has these data, so that all sessions share the results.
    """

    question: Question
    answer: Answer
    data: Any
    main: Plot | None = None
    label: str = ""
    is_final: bool = True
    for_all: bool = False

    def show(self, content: section.Section) -> None:
        """Draw a section."""
        try:
            section.walk(content(self.answer, self.data), self._draw)
        except InvalidInput as refused:
            fields.show_problems(refused.problems)

    def _draw(self, item: section.Part) -> Any:
        """Draw a part; return what the section asks for."""
        match item:
            case str():
                st.markdown(item)
            case section.Note(text, icon):
                st.info(text, icon=f":material/{icon}:") if icon else st.caption(text)
            case section.Label(disclosure, after):
                cards.label(self.answer.disclosure if disclosure is None else disclosure, prefix=after)
            case Plot():
                figures.draw(item, self.label)
            case section.Live(draw):
                st.fragment(lambda: figures.draw(draw(), self.label), run_every=jobs.POLL_SECONDS)()
            case section.Figures():
                self._draw_figures(item)
            case section.Table():
                self._draw_table(item)
            case section.Numbers(numbers):
                with st.container(horizontal=True):
                    for number in numbers:
                        st.metric(
                            number.label,
                            number.text,
                            number.note,
                            delta_color="off",
                            delta_arrow="off",
                            help=number.help or None,
                        )
            case section.File():
                self._draw_file(item)
            case section.Fields(names, shares):
                if shares:
                    fields.columns(self.question, shares, *names)
                else:
                    fields.draw_row(self.question, *names)
            case section.Choice():
                key = self.question.key(item.key)
                if st.session_state.get(key) not in item.options:
                    st.session_state[key] = item.first
                return fields.choice(item.label, item.options, key)
            case section.Integer(key, label, limits, initial, step, help):
                st.session_state.setdefault(self.question.key(key), initial)
                return fields.whole_number(label, self.question.key(key), *limits, step, help)
            case section.Window():
                return self._draw_window(item)
            case section.Missing(needed, remedy):
                st.info(session.explain_missing(self.data, needed), icon=":material/info:")
                session.draw_data_link(remedy)
            case section.Proposal(label, icon, settings):
                key = f"{self.question.name}_{'_'.join(settings)}_use"
                fields.button(label, key, icon, setting.enter, settings)
            case section.PrivateRange():
                inputs.offer_draw(self.data)
            case section.ItemNames(noun):
                uploads.show_upload(self.question, self.data, f"{noun}s")
                return uploads.list_task_names(self.data, noun)
            case section.Row(parts):
                with st.container(horizontal=True, vertical_alignment="center"):
                    section.walk(parts, self._draw)
            case section.Link(page, label, icon):
                st.page_link(session.page_file(page), label=label, icon=f":material/{icon}:")
            case section.Columns(columns):
                for container, column in zip(st.columns(len(columns), gap="large"), columns, strict=True):
                    with container:
                        section.walk(column, self._draw)
            case section.PaperFigures(paper_figures):
                st.divider()
                state_key = self.question.key("paper_figure") if len(paper_figures) > 1 else ""
                plots.show_paper_figure(paper_figures, state_key)
            case section.Cached():
                return jobs.compute(item)
            case section.Search():
                return self._draw_search(item)
        return None

    def _draw_window(self, item: section.Window) -> tuple[float, float]:
        with plots.place_controls(item.key, item.button, "") as (chart, button_slot):
            low, high = st.slider(
                item.label,
                *item.widest,
                value=item.initial,
                step=(item.widest[1] - item.widest[0]) / 1000.0,
                format="%.4g",
                key=f"{item.key}_{session.data_version()}_{item.widest}",
            )
        limits = (low, high) if low < high else item.initial
        figures.draw(item.draw(limits), self.label, button_place=button_slot, figure_place=chart)
        return limits

    def _draw_figures(self, item: section.Figures) -> None:
        ends = {axis: getattr(self.main, axis).limits for axis in item.main_axes}
        several = [plot.with_limits(**ends) for plot in item.plots]
        if len(several) == 1 and item.controls:
            plots.show(several[0], "x" not in item.controls, self.label, keeps_y="y" not in item.controls)
            return
        containers = st.columns(len(several))
        if item.controls:
            key = several[0].key.replace("-", "_")
            with st.popover("Axis ranges", icon=":material/straighten:", key=f"{key}_ranges"):
                across = plots.choose_limits(several[0].x, f"{key}_x")  # All have one horizontal axis.
                several = [
                    p.with_limits(across, plots.choose_limits(p.y, f"{p.key}_y".replace("-", "_")))
                    for p in several
                ]
        for container, plot in zip(containers, several, strict=True):
            with container:
                if item.titled:
                    st.markdown(f"**{plot.title}**")
                figures.draw(plot, self.label)

    def _draw_table(self, item: section.Table) -> None:
        if item.plain:
            st.table(pd.DataFrame(item.columns), hide_index=True)
            return
        columns = pd.DataFrame(item.columns)
        figures.show_table(columns, item.alt, item.key or None, item.formats, item.titles)

    def _draw_file(self, item: section.File) -> None:
        disclosure, content = item.disclosure or self.answer.disclosure, item.content
        key, help, is_table = (item.name.replace(".", "_"), item.help or None, isinstance(content, Mapping))
        if isinstance(content, Mapping):
            notes = figures.question_notes()  # Read now: the file is made when its button is pressed.
            content = functools.partial(dpcore_report_content.write_columns, content, disclosure, notes)
        cards.file_button(item.label, item.name, disclosure, content, key=key, quiet=is_table, help=help)

    def _draw_search(self, item: section.Search) -> Any:
        run = jobs.Run(self.question, item, self.data, self.for_all)
        key = run.key.replace(".", "_")
        if item.button:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                fields.draw_all(self.question, *item.fields)
                if fields.button(item.button, f"{key}_start", item.icon, is_main=item.is_main):
                    run.start()
                    if run.get_state().stage is Stage.FINAL:
                        st.rerun()  # The answer above may read the result.
        elif not self.is_final:
            st.caption("The figure follows the exact answer.")
            return None
        else:
            run.ask()
        is_running = jobs.watch(run.key, item.doing, item.measured)
        state = run.get_state()
        if state.value is None or (is_running and state.stage is not Stage.FIRST):
            if item.idle and not is_running:
                st.caption(item.idle)
            return None
        if state.stage is Stage.EARLIER:
            st.caption(item.outdated)
            return state.value if item.shows_outdated else None
        if not is_running and (stopped := item.describe_stop(state.value)):
            st.warning(stopped, icon=":material/stop_circle:")
            fields.button("Compute again", f"{key}_again", "refresh", run.forget)
        return state.value


PROGRESS_HEIGHT, STATE_HEIGHT = 44, 56
"""In pixels: kept free for a line of progress below the figure or the answer, so that nothing moves when it comes."""


@dataclass(frozen=True)
class Needs:
    """The data that a question needs; without them the page shows invented data.

    Attributes:
        is_missing: Returns True if data lack it.
        sentence: What it is, as a plural noun phrase: "values, one per row".
        remedy: Text of the link to *Your data*.
        describe: Returns what the answer says below its label, from solution and invented data; None if it says no
            more than usual.
    """

    is_missing: Callable[[Dataset], bool]
    sentence: str
    remedy: str
    describe: Callable[[Any, Dataset], str] | None = None


@dataclass(frozen=True)
class Page:
    """A question's page; a page with more to it overrides the methods without an underscore.

    Attributes:
        question: The question.
        solve: Solves it, from data and parameters; a generator function if the solution is searched for.
        build_answer: Builds the answer from data, parameters and solution.
        glossary: Stands below *More settings*.
        needs: What the data must have besides rows per user; None for nothing.
        stem: Beginning of the names of files and of some keys; the name of the question if empty.
        has_axis_controls: True if a person can set the ends of the axes of the main figure.
        progress_below: True if the progress of searches stands below the answer, not below the figure.
    """

    question: Question
    solve: Callable[[Any, Any], Any]
    build_answer: Callable[[Any, Any, Any], Answer]
    glossary: str = ""
    needs: Needs | None = None
    stem: str = ""
    has_axis_controls: bool = True
    progress_below: bool = False

    def read_own_data(self) -> Any | None:
        """Draw which data a page with data of its own uses; return them, or None if there are none yet."""
        raise NotImplementedError

    def is_same_for_all(self, data: Any, parameters: Any) -> bool:
        """Return True if everybody has these data: no upload is ever shared with another session."""
        return not self.question.own_data and session.is_same_for_all()

    def read_inputs(self, slots: layout.PageSlots, data: Any) -> Any | None:
        """Draw the inputs; return the parameters, or None if they are refused."""
        text = self.glossary
        return inputs.read_inputs(self.question, slots, draw_more=lambda: st.caption(text) if text else None)

    def refuse(self, slots: layout.PageSlots, dataset: Dataset, parameters: Any) -> bool:
        """Return True, with the reason on the page, if there is no answer to the question on these data."""
        return False

    def draw_main(self, answer: Answer, label: str) -> Plot:
        """Draw the main figure, and return it as it is drawn."""
        main = plots.main_plot(answer, next(iter(answer.plots)))
        if self.has_axis_controls:
            return plots.show(main, label=label, key_of=self.question.key)
        figures.draw(main, label, key_of=self.question.key)
        return main

    def draw_behind(self, answer: Answer) -> None:
        """Draw how sure the answer is, and what it assumes."""
        cards.behind(answer)

    def formula(self, answer: Answer) -> str:
        """Return the name of the file that says how the answer is computed."""
        return "formula"

    def tabs(self, answer: Answer) -> Mapping[str, layout.Content]:
        """Return tabs that the page draws itself; a group of tabs joins the sections of its name."""
        return {}

    def describe_files(self, answer: Answer) -> str:
        """Return Markdown on the content of the answer's files; empty for nothing to say."""
        return ""

    def fields_in_report(self, answer: Answer) -> Sequence[str]:
        """Return the fields that matter for the answer."""
        return tuple(self.question.fields)

    def reads_rows(self, answer: Answer) -> bool:
        """Return True if the answer needs more of the data than rows per user."""
        return self.needs is not None

    def build_source(self, answer: Answer, data: Any) -> Source:
        """Build the source of the script in the report."""
        return report_content.source_of(data) if self.reads_rows(answer) else report_content.source()

    def summarise(self, answer: Answer, data: Any) -> tuple[Line, ...] | None:
        """Return what the answer is about for the report; None if that is the data in use alone."""
        return None

    def list_releases(self, answer: Answer, data: Any) -> tuple[Line, ...]:
        """List what this page has released and spent, as lines of the report."""
        return ()

    def variant(self, answer: Answer) -> str:
        """Return the variant of the answer that has tabs and files of its own; empty for the only one."""
        return ""

    def draw_refused(self, slots: layout.PageSlots, dataset: Dataset, parameters: Any) -> None:
        """Draw what is left to do if the data refuse the question."""

    def draw_progress(self, state: SearchResult, runs: Sequence[jobs.Run]) -> None:
        """Draw how far the searches are, in one line with one Stop button."""

        def describe_work() -> str:
            search = next((run.search for run in runs if jobs.working(run.key)), runs[0].search)
            doing = search.doing_at.get(state.stage) if state.value is not None else None
            return doing or search.doing

        jobs.watch([run.key for run in runs], describe_work, all(run.search.measured for run in runs))

    def file_label(self, name: str) -> str:
        """Return the text of the button of a file: "Curves (CSV)" of learning_curves.csv."""
        stem, _, ending = name.removeprefix(f"{self.question.name}_").rpartition(".")
        return f"{stem.replace('_', ' ').capitalize()} ({ending.upper()})"

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw what stands below everything else."""

    def show(self) -> None:
        """Draw the page."""
        if self.question.own_data:
            layout.show(self.question, self._show_own_data)
            return
        in_use = session.dataset()
        is_demonstration = self.needs is not None and self.needs.is_missing(in_use)
        data = session.load_demonstration() if is_demonstration else in_use
        layout.show(self.question, lambda slots: self._body(slots, in_use, data))

    def _show_own_data(self, slots: layout.PageSlots) -> None:
        fields.start(self.question)
        with slots.notes:
            data = self.read_own_data()
        if data is not None:
            self._body(slots, data, data)

    def _body(self, slots: layout.PageSlots, in_use: Any, data: Any) -> None:
        run, is_demonstration = page_run.CURRENT_RUN.get(), data is not in_use
        assert run is not None
        run.own_data = data if self.question.own_data else None
        if self.needs is not None and is_demonstration:
            run.invented = True
            if self.needs.sentence:
                missing = session.explain_missing(in_use, self.needs.sentence, "This page")
                slots.notes.markdown(f":small[{missing}]")
        parameters = self.read_inputs(slots, data)
        if parameters is None:
            return
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        if self.refuse(slots, data, parameters):
            return
        for_all = is_demonstration or self.is_same_for_all(data, parameters)
        try:
            state, runs = self._solve(data, parameters, for_all)
        except InvalidInput as refused:
            with slots.notes:
                fields.show_problems(refused.problems)
            self.draw_refused(slots, data, parameters)
            return
        label = session.DEMONSTRATION if is_demonstration else ""
        if state.value is not None:
            # Files and pins name the settings of the answer in sight, and not those that were entered since.
            run.answered_parameters = getattr(state.value, "parameters", parameters) if runs else parameters
            answer = self.build_answer(data, run.answered_parameters, state.value)
            if self.needs is not None and self.needs.describe is not None and is_demonstration:
                answer = replace(answer, detail=f"**{label}.** {self.needs.describe(state.value, data)}")
        with slots.figure:  # First: the browser draws it while the rest is still on its way.
            if state.value is not None:
                main = self.draw_main(answer, label)
            if runs and not self.progress_below:
                with st.container(height=PROGRESS_HEIGHT, border=False):
                    self.draw_progress(state, runs)
        if runs and self.progress_below:
            key = f"{self.question.name}_state"
            with slots.bottom.container(
                horizontal=True, vertical_alignment="center", height=STATE_HEIGHT, border=False, key=key
            ):
                self.draw_progress(state, runs)
        if state.value is None:
            return
        renderer = Renderer(self.question, answer, data, main, label, state.stage is Stage.FINAL, for_all)
        sections = dict(answer.sections)
        behind: Any = sections.pop(BEHIND, None)
        downloads: Any = sections.pop(DOWNLOADS, None)

        def show_files() -> None:
            self.show_files(answer, data, label)
            if downloads is not None:
                renderer.show(downloads)

        layout.show_answer(
            slots,
            self.question,
            answer,
            contents(renderer, sections, self.tabs(answer)),
            show_files,
            draw_basis=lambda: None if behind is None else renderer.show(behind),
            draw_behind=self.draw_behind,
            key=f"{self.stem or self.question.name}_card",
            tabs_name="_".join(filter(None, (self.variant(answer), "tabs"))),
            formula=self.formula(answer),
        )
        with slots.answer:
            if self.needs is not None and is_demonstration:
                session.draw_data_link(self.needs.remedy)
            if any(run.is_cut_short for run in runs):
                button_label = "Go on" if runs[0].search.resumes else "Search again"
                fields.button(button_label, f"{self.question.name}_again", "refresh", jobs.forget, runs)
        self.draw_last(slots, answer)

    def _solve(self, data: Any, parameters: Any, for_all: bool) -> tuple[SearchResult, Sequence[jobs.Run]]:
        """Return the solution as it stands, and the searches for it."""
        if inspect.isgeneratorfunction(self.solve):
            solver: Solver = self.solve(data, parameters)
            return jobs.solve(solver, self.question, data, for_all)
        return SearchResult(jobs.compute(Cached(self.solve, (data, parameters.about_data), 32))), ()

    def show_files(self, answer: Answer, data: Any, label: str) -> None:
        """Offer the answer, and its files."""
        question, source, releases = (
            self.question,
            self.build_source(answer, data),
            self.list_releases(answer, data),
        )
        summary = self.summarise(answer, data)
        formula, labels = (self.formula(answer), question.get_labels(*self.fields_in_report(answer)))
        report_content.draw(
            "_".join(filter(None, (self.stem or question.name, self.variant(answer)))),
            answer.disclosure,
            lambda: replace(
                report_content.of_answer(question, answer, source, formula, labels, label, summary),
                releases=releases,
            ),
            answer.methods,
            self.describe_files(answer),
            [(self.file_label(name), name, make) for name, make in answer.files.items()],
            None,
            answer.choice,
        )
