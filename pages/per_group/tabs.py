"""The tabs below the answer of Per group."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.dataset import Dataset
from pages.per_group import answer, cached, figures, methods, report
from pages.shared import figures as shared_figures
from pages.shared import take_away


def what_is_used(view: answer.PerGroupView, data: Dataset) -> str:
    """What the answer was computed from, and what is not proved."""
    pairs = view.problem.pairs
    told = [
        f"{wording.counted(pairs.num_pairs, 'pair')} of a user and a group; "
        f"{wording.counted(pairs.num_groups, 'group')} of {plain(view.column)} "
        f"{'released' if view.selected is None else 'in the data'}."
    ]
    assert data.pairs is not None
    if data.pairs.rows_without_group:
        told.append(f"{wording.counted(data.pairs.rows_without_group, 'row')} without a group stay out.")
    if not view.is_mean and view.choice.certificate is None:
        told.append("Nothing proves that the pair is the best.")
    if view.is_mean:
        told.append(view.choice.ended)
    return " ".join(told)


def scaling(view: answer.PerGroupView, data: Dataset) -> None:
    """The error against the bound on a user's whole vector."""
    if view.cap is None or view.radial is None:
        what = (
            "A mean is a ratio of two sums"
            if view.is_mean
            else "With sums of any sign, clipping can cancel bias"
        )
        st.info(
            f"{what}. That for every pair there is a cap on whole vectors which errs no more holds only for rows, "
            "distinct users and sums of amounts of at least 0.",
            icon=":material/info:",
        )
        return
    st.markdown(
        "Instead of dropping groups at random, bring each user's whole vector to a norm of at most T: by one *cap* for "
        "all of their groups, or by *scaling* all of them alike. For every pair there is a cap that errs no more in "
        "any group, so that the best cap errs no more over all groups than the best pair. Scaling often errs least "
        "over all groups."
    )
    curves = cached.norm_curves(data.digest, view.parameters, view)
    shared_figures.show_picture(figures.norm_picture(view, curves, data.provenance))


def survival(view: answer.PerGroupView, data: Dataset) -> None:
    """Which groups are released, and what they and the lost ones add to the error."""
    assert view.selected is not None
    found = view.selected
    st.markdown("\n".join(f"- {sentence}" for sentence in survival_sentences(view)))
    if found.pair is None and found.vector is None:
        return
    shared_figures.show_picture(figures.survival_picture(view, data.provenance))
    if view.problem.pairs.num_entries > figures.MOST_POINTS:
        st.caption(f"{figures.MOST_POINTS:,} groups are drawn, evenly spread over their users.")
    if found.over_epsilon is None and found.vector_over_epsilon is None:
        return
    pictures = figures.epsilon_pictures(view, data.provenance)
    for place, picture in zip(st.columns(2, gap="medium"), pictures, strict=True):
        with place:
            shared_figures.show_picture(picture)


def survival_sentences(view: answer.PerGroupView) -> list[str]:
    """How many groups are released, and which, in words."""
    assert view.selected is not None
    found = view.selected
    ways = (
        ("With the best pair", found.pair),
        ("With users scaled", found.of_vector),
        ("With the pair of PipelineDP's rule", found.of_tuner),
    )
    sentences = []
    for name, groups_of in ways:
        if groups_of is None:
            continue
        likely = found.users[groups_of.kept >= 0.5]
        which = (
            f"the smallest that is released more often than not has {wording.counted(int(likely.min()), 'user')}"
            if likely.size
            else "none is released more often than not"
        )
        sentences.append(
            f"**{name}:** {wording.number(groups_of.expected_groups)} of "
            f"{wording.counted(view.num_groups, 'group')} are released on average; {which}."
        )
    if not sentences:
        nothing = "No bounds that were looked at err less than releasing no group."
        sentences.append("Releasing no group errs least." if view.choice.settled else nothing)
    return sentences


def groups(view: answer.PerGroupView, data: Dataset) -> None:
    """Every group's error against its size."""
    st.markdown("\n".join(f"- {sentence}" for sentence in group_sentences(view)))
    shared_figures.show_picture(figures.group_picture(view, data.provenance))
    if view.problem.pairs.num_entries > figures.MOST_POINTS:
        st.caption(f"{figures.MOST_POINTS:,} groups are drawn, evenly spread over their sizes.")


def group_sentences(view: answer.PerGroupView) -> list[str]:
    """Which groups' numbers are of use, in words."""
    if view.is_mean:
        if view.mean_size is None:
            return ["One mean for all groups errs less than their own means."]
        return [
            f"Over the groups of at least {wording.counted(view.mean_size, 'row')} their own means err less than one "
            "mean for all; below that size they do not."
        ]
    found = []
    ways = [("With the best pair" if view.pair is not None else "Publishing 0", view.errors)]
    if view.errors_scaled is not None:
        ways.append(("With every row kept and users scaled", view.errors_scaled))
    if view.selected is not None:
        found.append("A group that is not released counts as 0: it errs by its whole size.")
    for name, errors in ways:
        useless, size = view.useless(errors), view.useful_from(errors)
        ten = f"10{wording.PERCENT}"
        useful = (
            f"from a size of {wording.number(size)} on, every group's error is below {ten}"
            if size is not None
            else f"the largest group's error is above {ten}"
        )
        found.append(
            f"**{name}:** {useful}; {wording.number(useless)} of {wording.counted(view.num_groups, 'group')} "
            f"{wording.agreeing(useless, 'errs', 'err')} by their whole size or more."
        )
    return found


def show_files(view: answer.PerGroupView, data: Dataset) -> None:
    """The whole answer, and the choice as a file."""
    source = take_away.source_of(data)
    take_away.draw(
        "per_group",
        data.provenance,
        lambda: report.per_group_report(view, data, source),
        methods.methods(view, data),
        "**Choice** holds the question, the best pair, the best bounds on whole vectors, and the proofs. Label: "
        f"*{data.provenance.label}*.",
    )
