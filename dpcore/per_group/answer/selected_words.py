"""What is said of groups that are selected privately. Pure: what was found in, sentences out."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.per_group.answer.found import PerGroupFound
from dpcore.per_group.answer.selected import SelectedFound, parts_of
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.whole_vector import VectorRule
from dpcore.per_group.words import error_words


def released(found: SelectedFound, groups: int) -> str:
    """Return how many groups are released on average, a sentence; empty where none is."""
    shown = [
        (name, wording.number(of.expected_groups))
        for name, of in (("the pair", found.pair), ("scaling", found.of_vector))
        if of is not None
    ]
    if not shown:
        return ""
    ways = ", ".join(f"{number} with {name}" for name, number in shown)
    return f"Released on average, of {wording.counted(groups, 'group')}: {ways}."


def _budget(parameters: PerGroupParameters) -> str:
    """Say how epsilon and delta are split, a sentence."""
    noise = f"ε = {wording.entered(parameters.amount_epsilon)}"
    if parameters.delta is not None:
        noise += f" and δ = {wording.entered(parameters.delta)}"
    assert parameters.selection_delta is not None
    return (
        f"ε = {wording.entered(parameters.selection_epsilon)} and δ = {wording.entered(parameters.selection_delta)} "
        f"select groups ({parameters.selection.value}), {noise} {'are' if parameters.delta else 'is'} for the noise."
    )


def facts(view: PerGroupFound, found: SelectedFound) -> dict[str, str]:
    """Say how the budget is split, what the error consists of, and what other ways keep, by name."""
    facts = {"Budget": _budget(view.parameters)}
    if found.pair is not None:
        kept, lost = parts_of(view.problem, found.pair)
        facts["What the error consists of"] = (
            f"groups that are not released {wording.percent(lost / (kept + lost))}, released ones "
            f"{wording.percent(kept / (kept + lost))}."
        )
    if found.vector is not None:
        rule = "one level for each user's vector" if found.vector.rule is VectorRule.CAP else "scaling"
        facts["Without sampling amounts"] = (
            f"{rule} errs by {error_words(view.parameters, found.vector.error)}, "
            f"the best pair by {error_words(view.parameters, view.pair_error)}. "
            f"Only the selection keeps {wording.counted(found.vector.max_groups, 'group')} of each user. Best of "
            f"{wording.number(found.vector.looked_at)} settings; nothing proves that there is no better one."
        )
    if found.of_tuner is not None:
        facts["What PipelineDP's rule keeps"] = (
            f"it keeps {wording.number(found.of_tuner.expected_groups)} of "
            f"{wording.counted(view.num_groups, 'group')} on average: groups that are not released cost it "
            "nothing."
        )
    facts["Programs"] = "are written for public lists of groups; there is none for private groups yet."
    return facts


def survival_sentences(view: PerGroupFound) -> list[str]:
    """Return how many groups are released, and which, in words."""
    assert view.selected is not None
    selected = view.selected
    ways = (
        ("With the best pair", selected.pair),
        ("With users scaled", selected.of_vector),
        ("With the pair of PipelineDP's rule", selected.of_tuner),
    )
    sentences = []
    for name, groups_of in ways:
        if groups_of is None:
            continue
        likely = selected.users[groups_of.kept >= 0.5]
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
