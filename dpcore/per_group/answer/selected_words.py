"""Sentences about privately selected groups, built from the solution."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.per_group.answer.found import PerGroupSolution
from dpcore.per_group.answer.selected import SelectionSolution, split_error
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.whole_vector import VectorRule
from dpcore.per_group.words import error_words


def describe_released(selected: SelectionSolution, groups: int) -> str:
    """Describe the expected number of released groups; empty if nothing is released."""
    counts = [
        (name, wording.number(outcome.expected_groups))
        for name, outcome in (("the pair", selected.pair), ("scaling", selected.vector_groups))
        if outcome is not None
    ]
    if not counts:
        return ""
    text = ", ".join(f"{number} with {name}" for name, number in counts)
    return f"Released on average, of {wording.counted(groups, 'group')}: {text}."


def _budget(parameters: PerGroupParameters) -> str:
    """Describe how epsilon and delta are split between selection and noise."""
    noise = f"ε = {wording.entered(parameters.amount_epsilon)}"
    if parameters.delta is not None:
        noise += f" and δ = {wording.entered(parameters.delta)}"
    assert parameters.selection_delta is not None
    return (
        f"ε = {wording.entered(parameters.selection_epsilon)} and δ = {wording.entered(parameters.selection_delta)} "
        f"select groups ({parameters.selection.value}), {noise} {'are' if parameters.delta else 'is'} for the noise."
    )


def facts(solution: PerGroupSolution, selected: SelectionSolution) -> dict[str, str]:
    """Build the facts: the split of the budget, the parts of the error, and other bounds."""
    facts = {"Budget": _budget(solution.parameters)}
    if selected.pair is not None:
        kept_part, lost_part = split_error(solution.problem, selected.pair)
        facts["What the error consists of"] = (
            f"groups that are not released {wording.percent(lost_part / (kept_part + lost_part))}, released ones "
            f"{wording.percent(kept_part / (kept_part + lost_part))}."
        )
    if selected.vector is not None:
        rule = "one level for each user's vector" if selected.vector.rule is VectorRule.CAP else "scaling"
        facts["Without sampling amounts"] = (
            f"{rule} errs by {error_words(solution.parameters, selected.vector.error)}, "
            f"the best pair by {error_words(solution.parameters, solution.pair_error)}. "
            f"Only the selection keeps {wording.counted(selected.vector.max_groups, 'group')} of each user. Best of "
            f"{wording.number(selected.vector.evaluations)} settings; nothing proves that there is no better one."
        )
    if selected.tuner_groups is not None:
        facts["What PipelineDP's rule keeps"] = (
            f"it keeps {wording.number(selected.tuner_groups.expected_groups)} of "
            f"{wording.counted(solution.num_groups, 'group')} on average: groups that are not released cost it "
            "nothing."
        )
    facts["Programs"] = "are written for public lists of groups; there is none for private groups yet."
    return facts


def survival_sentences(solution: PerGroupSolution) -> list[str]:
    """Describe the expected number of released groups and their size, for each choice of bounds."""
    assert solution.selected is not None
    selected = solution.selected
    choices = (
        ("With the best pair", selected.pair),
        ("With users scaled", selected.vector_groups),
        ("With the pair of PipelineDP's rule", selected.tuner_groups),
    )
    sentences = []
    for name, groups in choices:
        if groups is None:
            continue
        likely = selected.users[groups.keep_probability >= 0.5]
        size_text = (
            f"the smallest that is released more often than not has {wording.counted(int(likely.min()), 'user')}"
            if likely.size
            else "none is released more often than not"
        )
        sentences.append(
            f"**{name}:** {wording.number(groups.expected_groups)} of "
            f"{wording.counted(solution.num_groups, 'group')} are released on average; {size_text}."
        )
    if not sentences:
        sentence = "No bounds that were looked at err less than releasing no group."
        sentences.append("Releasing no group errs least." if solution.choice.settled else sentence)
    return sentences
