"""The page of a question whose answer is data: inputs, answer, main figure, tabs and downloads follow from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.answer.section import BEHIND, DOWNLOADS, Cached, Found, Solver
from dpcore.answer.stage import Stage
from dpcore.common.checks import InvalidInput
from dpcore.dataset import Dataset
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.data import own_data
from pages.shared.fields import fields, jobs, runner
from pages.shared.render.sections import Renderer, contents
from pages.shared.report import report_content, take_away
from pages.shared.screen import answer_tabs, inputs, layout, plots
from pages.shared.session import session, stand_ins

PROGRESS_HEIGHT = 44
"""In pixels: kept free for a line of progress, so that nothing moves when it comes and goes."""


@dataclass(frozen=True)
class Needs:
    """What a question needs of the data; without it the page shows invented data.

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
    solve: Callable[[Dataset, Any], Any]
    build_answer: Callable[[Dataset, Any, Any], Answer]
    glossary: str = ""
    needs: Needs | None = None
    stem: str = ""
    has_axis_controls: bool = True
    progress_below: bool = False

    def read(self, places: layout.Places, data: Dataset) -> Any | None:
        """Draw the inputs; return the parameters, or None if they are refused."""
        more = self.glossary
        return inputs.read(self.question, places, more=lambda: st.caption(more) if more else None)

    def refuse(self, places: layout.Places, data: Dataset, parameters: Any) -> bool:
        """Return True, with the reason on the page, if there is no answer to the question on these data."""
        return False

    def draw_main(self, answer: Answer, label: str) -> Plot:
        """Draw the main figure, and return it as it is drawn."""
        main = plots.main_plot(answer, next(iter(answer.plots)))
        if self.has_axis_controls:
            return plots.show(main, label=label, key_of=self.question.key)
        plots.draw(main, label, key_of=self.question.key)
        return main

    def draw_behind(self, answer: Answer) -> None:
        """Draw how sure the answer is, and what it assumes."""
        cards.behind(answer)

    def formula(self, answer: Answer) -> str:
        """Return the name of the file that says how the answer is computed."""
        return "formula"

    def tabs(self, answer: Answer) -> Mapping[str, answer_tabs.Content]:
        """Return tabs that the page draws itself; a group of tabs joins the sections of its name."""
        return {}

    def describe_files(self, answer: Answer) -> str:
        """Return what the files of the answer hold."""
        return ""

    def fields_in_report(self, answer: Answer) -> Sequence[str]:
        """Return the fields that matter for the answer."""
        return tuple(self.question.fields)

    def reads_rows(self, answer: Answer) -> bool:
        """Return True if the answer needs more of the data than rows per user."""
        return self.needs is not None

    def variant(self, answer: Answer) -> str:
        """Return the variant of the answer that has tabs and files of its own; empty for the only one."""
        return ""

    def draw_refused(self, places: layout.Places, data: Dataset, parameters: Any) -> None:
        """Draw what is left to do if the data refuse the question."""

    def draw_progress(self, found: Found, runs: Sequence[runner.Run]) -> None:
        """Draw how far the searches are."""
        for run in runs:
            doing = run.search.doing_at.get(found.stage) if found.value is not None else None
            jobs.watch(run.key, doing or run.search.doing, run.search.measured)

    def file_label(self, name: str) -> str:
        """Return the text of the button of a file: "Curves (CSV)" of learning_curves.csv."""
        stem, _, ending = name.removeprefix(f"{self.question.name}_").rpartition(".")
        return f"{stem.replace('_', ' ').capitalize()} ({ending.upper()})"

    def draw_last(self, places: layout.Places, answer: Answer) -> None:
        """Draw what stands below everything else."""

    def show(self) -> None:
        """Draw the page."""
        in_use = session.dataset()
        is_demonstration = self.needs is not None and self.needs.is_missing(in_use)
        data = stand_ins.load_demonstration() if is_demonstration else in_use
        layout.show(self.question, lambda places: self._body(places, in_use, data))

    def _body(self, places: layout.Places, in_use: Dataset, data: Dataset) -> None:
        is_demonstration = data is not in_use
        if self.needs is not None and is_demonstration:
            page_run.answers_on_invented_data()
            if self.needs.sentence:
                missing = stand_ins.explain_missing(in_use, self.needs.sentence, "This page")
                places.notes.markdown(f":small[{missing}]")
        parameters = self.read(places, data)
        if parameters is None:
            return
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        if self.refuse(places, data, parameters):
            return
        try:
            found, runs = self._solve(data, parameters, is_demonstration or session.is_same_for_all())
        except InvalidInput as refused:
            with places.notes:
                fields.say(refused.problems)
            self.draw_refused(places, data, parameters)
            return
        label = stand_ins.DEMONSTRATION if is_demonstration else ""
        if found.value is not None:
            answered = getattr(found.value, "parameters", parameters) if runs else parameters
            page_run.answers(answered)
            answer = self.build_answer(data, answered, found.value)
            if self.needs is not None and self.needs.describe is not None and is_demonstration:
                answer = replace(answer, detail=f"**{label}.** {self.needs.describe(found.value, data)}")
        with places.figure:  # First: the browser draws it while the rest is still on its way.
            if found.value is not None:
                main = self.draw_main(answer, label)
            if runs and not self.progress_below:
                with st.container(height=PROGRESS_HEIGHT, border=False):
                    self.draw_progress(found, runs)
        if runs and self.progress_below:
            with own_data.state_line(places.below, self.question):
                self.draw_progress(found, runs)
        if found.value is None:
            return
        renderer = Renderer(self.question, answer, data, main, label, found.stage is Stage.FINAL)
        sections = dict(answer.sections)
        behind: Any = sections.pop(BEHIND, None)
        downloads: Any = sections.pop(DOWNLOADS, None)

        def show_files() -> None:
            self.show_files(answer, data, label)
            if downloads is not None:
                renderer.show(downloads)

        answer_tabs.show(
            places,
            self.question,
            answer,
            contents(renderer, sections, self.tabs(answer)),
            show_files,
            describe_basis=None if behind is None else lambda: renderer.show(behind),
            draw_behind=self.draw_behind,
            key=f"{self.stem or self.question.name}_card",
            formula=self.formula(answer),
            tabs_name="_".join(filter(None, (self.variant(answer), "tabs"))),
        )
        with places.answer:
            if self.needs is not None and is_demonstration:
                stand_ins.draw_data_link(self.needs.remedy)
            for run in runs:
                result = run.found()
                ended = result.stage is Stage.FINAL and result.value is not None
                if ended and not run.search.is_complete(result.value):
                    fields.button("Search again", f"{self.question.name}_again", "refresh", run.forget)
        self.draw_last(places, answer)

    def _solve(self, data: Dataset, parameters: Any, for_all: bool) -> tuple[Found, Sequence[runner.Run]]:
        """Return the solution as it stands, and the searches for it."""
        if inspect.isgeneratorfunction(self.solve):
            solver: Solver = self.solve(data, parameters)
            return runner.solve(solver, self.question, data, for_all)
        return Found(runner.compute(Cached(self.solve, (data, parameters.about_data), 32))), ()

    def show_files(self, answer: Answer, data: Dataset, label: str) -> None:
        """Offer the answer, and its files."""
        question = self.question
        source = take_away.source_of(data) if self.reads_rows(answer) else take_away.source()
        formula, asked = self.formula(answer), question.asked(*self.fields_in_report(answer))
        take_away.draw(
            "_".join(filter(None, (self.stem or question.name, self.variant(answer)))),
            answer.disclosure,
            lambda: report_content.of_answer(question, answer, source, formula, asked, label),
            answer.methods,
            self.describe_files(answer),
            [(self.file_label(name), name, make) for name, make in answer.files.items()],
            None,
            answer.choice,
        )
