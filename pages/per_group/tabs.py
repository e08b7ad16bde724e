"""The tabs below the answer of Per group."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from dpcore.data import pair_distribution
from dpcore.dataset import Dataset
from dpcore.per_group.answer import selected_words, words
from dpcore.per_group.answer.plots import MOST_POINTS
from dpcore.report.literals import Code
from dpcore.report.script import Source
from pages.per_group.question import QUESTION
from pages.shared.card import cards
from pages.shared.figures import figures
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots


def scaling(answer: Answer) -> None:
    """The error against the bound on a user's whole vector."""
    if "per-group-norm" not in answer.plots:
        what = (
            "A mean is a ratio of two sums"
            if answer.solution.is_mean
            else "With sums of any sign, clipping can cancel bias"
        )
        st.info(
            f"{what}. Only for rows, distinct users and sums of amounts of at least 0 does a bound on whole vectors "
            "exist, for every pair, that errs no more.",
            icon=":material/info:",
        )
        return
    st.markdown(
        "Instead of dropping groups at random, bound the norm of each user's whole vector: by cutting all of their "
        "groups at *one level*, or by *scaling* all of them alike. For every pair there is a level that errs no more "
        "in any group, so that the best level errs no more over all groups than the best pair. Scaling often errs "
        "least over all groups."
    )
    plots.draw(answer.plots["per-group-norm"]())


def survival(answer: Answer) -> None:
    """Which groups are released, and what they and the lost ones add to the error."""
    st.markdown("\n".join(f"- {sentence}" for sentence in selected_words.survival_sentences(answer.solution)))
    if "per-group-survival" not in answer.plots:
        return
    plots.draw(answer.plots["per-group-survival"]())
    _say_drawn(answer, "users")
    over = [plot for key, plot in answer.plots.items() if key.endswith("over-epsilon")]
    for place, plot in zip(st.columns(2, gap="medium") if over else [], over, strict=True):
        with place:
            plots.draw(plot())


def groups(answer: Answer) -> None:
    """Every group's error against its size."""
    st.markdown("\n".join(f"- {sentence}" for sentence in words.group_sentences(answer.solution)))
    plots.draw(answer.plots["per-group-sizes"]())
    _say_drawn(answer, "sizes")


def _say_drawn(answer: Answer, over: str) -> None:
    if answer.solution.problem.pairs.num_entries > MOST_POINTS:
        st.caption(f"{MOST_POINTS:,} groups are drawn, evenly spread over their {over}.")


def show_files(answer: Answer, data: Dataset) -> None:
    """The whole answer, and the choice as a file."""
    source = take_away.source_of(data)
    take_away.draw(
        "per_group",
        data.provenance,
        lambda: report_content.of_answer(QUESTION, answer, source),
        answer.methods,
        "**Choice** holds the question, the best pair, the best bounds on whole vectors, and the proofs. Label: "
        f"*{data.provenance.label}*.",
    )


def data_cell(code: Code, source: Source, public_only: bool) -> str:
    """Return the cell that reads the distribution's file into ``data``; its name holds nothing of the
    person's.
    """
    code.import_name("pair_distribution", "dpcore.data")
    name = f"{figures.write_file_name('pair_distribution', source.dataset.provenance)}.json"
    code.import_name("Path", "pathlib")
    return (
        "# From the page Per group, Downloads, button Distribution of pairs (JSON).\n"
        f"FILE = Path({name!r})\n"
        f"data = pair_distribution.read(FILE.read_bytes(), FILE.name, {code.write(source.dataset.disclosure)})"
    )


def show_files_of_distribution(answer: Answer, data: Dataset) -> None:
    """The whole answer, the choice, and the distribution that the script reads."""
    assert answer.choice is not None
    sizes = answer.solution.problem.sizes
    held = pair_distribution.fits_in_file(sizes)
    if held:
        source = Source(data, needs_rows=True, write_cell=data_cell)
        take_away.draw(
            "per_group",
            data.provenance,
            lambda: report_content.of_answer(QUESTION, answer, source),
            answer.methods,
        )
    st.markdown(
        "**Choice** holds the question, the best pair found, and what is approximate. The **distribution of pairs** is "
        "what the script reads and *Your data* opens: it names no user and no group. Label of both: "
        f"*{data.provenance.label}*."
    )
    parts: list[take_away.Part] = [
        ("Choice (JSON)", "per_group_choice.json", answer.choice),
        ("Distribution of pairs (JSON)", "pair_distribution.json", lambda: pair_distribution.to_text(data)),
    ]
    cards.file_buttons(parts if held else parts[:1], data.provenance)
    if not held:
        st.caption(
            f"The distribution has {sizes.pairs.size:,} sizes and {sizes.task_rows.size:,} groups, more than a file "
            "holds; so there is no script to read it."
        )
