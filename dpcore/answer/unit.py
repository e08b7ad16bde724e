"""The unit of privacy of an answer, where it is a user in a period of time, and the price for the whole person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpcore.answer.methods import Methods
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset

SHARE_TEXT = (
    "a mean is here the {phrase}, and an error of 0.01 is one percentage point. A share says little if it lies "
    "nearer to 0 or 1 than its error."
)


def state_unit(
    answer: Any,
    dataset: Dataset | None,
    epsilon: float | None = None,
    selections: Sequence[ReleaseFacts] = (),
) -> Any:
    """Return the answer with the unit of privacy and the guarantee for a whole person stated, and what a share is.

    They stand in its badge, facts, assumptions and methods.

    Args:
        answer: The answer; without an epsilon among its parameters it gets no unit.
        dataset: Its data, whose periods make the unit; None for none.
        epsilon: Of the release, if it is not that of the parameters.
        selections: What the private selections of its bound and range guarantee; they add to the release.
    """
    if dataset is None:
        return answer
    if dataset.share_phrase:
        share_text = SHARE_TEXT.format(phrase=dataset.share_phrase)
        answer = replace(answer, facts={**answer.facts, "Share": share_text})
    parameters, make_methods = answer.parameters, answer.make_methods
    layout = dataset.layout
    if layout is None or not (layout.periods or layout.filters) or not hasattr(parameters, "epsilon"):
        return answer
    selections = [*selections, *filter(None, [dataset.release])]
    rows_sentences = [f"Only rows with {row_filter.text} count" for row_filter in layout.filters]
    unit_badge_text = guarantee_text = person_advice_text = ""
    if (periods := layout.periods) is not None:
        deltas = [getattr(parameters, field_name, None) or 0.0 for field_name in ("delta", "selection_delta")]
        is_gaussian = getattr(parameters, "mechanism", None) is NoiseKind.GAUSSIAN
        is_gaussian &= not (deltas[1] or selections)
        total_epsilon = (epsilon or parameters.epsilon) + sum(facts.epsilon for facts in selections)
        total_delta = sum(deltas) + sum(facts.delta for facts in selections)
        person_price = periods.price_person(total_epsilon, total_delta, is_gaussian)
        unit_badge_text, guarantee_text, person_advice_text = periods.describe_price(person_price)
        if selections and guarantee_text:
            guarantee_text += " That covers the choice of the bound, too."
        rows_sentences.append(periods.rows_sentence)

    def build_methods() -> Methods | None:
        """Build the methods text with the person's guarantee and the rows that count; None without one."""
        methods: Methods | None = None if make_methods is None else make_methods()
        if methods is None:
            return None
        sentences = methods.guarantee_text, guarantee_text, *(f"{sentence}." for sentence in rows_sentences)
        return replace(methods, guarantee_text=" ".join(filter(None, sentences)))

    person_facts = {"Whole person": guarantee_text + person_advice_text} if guarantee_text else {}
    return replace(
        answer,
        unit_text=unit_badge_text,
        facts=person_facts | dict(answer.facts),
        assumptions=(*answer.assumptions, *rows_sentences),
        make_methods=build_methods,
    )
