"""What Choose privately contributes to its report: the costs, and what was drawn so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpcore.common import wording
from dpcore.common.documents import CHOICE_SCHEMA, document
from dpcore.common.ledger import Ledger
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.report.content import Line
from dpcore.report.script import Source
from pages.private_choice import answer, figures
from pages.private_choice.answer import Copies
from pages.private_choice.card import NUMBER_NAMES, capital, card
from pages.private_choice.inputs import OF_ONE_QUESTION
from pages.private_choice.question import QUESTION
from pages.shared.card.expenditure import spent_lines
from pages.shared.report.report_content import ReportContent, distribution


def private_report(
    view: answer.PrivateView,
    data: Dataset,
    copies: Copies,
    drawn: Sequence[tuple[Wanted, PrivateChoice]],
    ledger: Ledger,
    source: Source,
) -> ReportContent:
    """Of the page Choose privately.

    Args:
        view: Its answer.
        data: The data in use.
        copies: Simulated costs of copies, as far as they are done; at the budget of the choice they are made up for.
        drawn: Numbers drawn so far from the data behind them.
        ledger: What all draws on these cost.
        source: Where a script gets the data.
    """
    parameters, kind, histogram = view.parameters, data.provenance, data.histogram
    at = copies.at or comparison.copy_cost(parameters, histogram)
    curves = replace(copies, over_epsilon=()) if copies.earlier else copies
    pictures = [
        figures.over_epsilon_picture(view, curves, kind),
        figures.over_users_picture(view, comparison.direct_over_users(parameters, histogram), curves, kind),
        figures.leak_picture(answer.leak(histogram, parameters), kind, data.release is not None),
    ]
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=_asked(parameters),
        cards=[("", card(view, data, at))],
        pictures=[*pictures, distribution(data)],
        source=source,
        releases=_released(drawn, ledger),
    )


def _asked(parameters: PrivateParameters) -> dict[str, str]:
    """What was asked, in words; of the fields for one kind of number those that apply."""
    asked = QUESTION.asked(
        "wanted",
        "epsilon_choice",
        "relation",
        "noise",
        "delta",
        "largest",
        *(name for name, wanted in OF_ONE_QUESTION.items() if parameters.wanted in wanted),
        "guess",
        "factor",
    )
    return asked | {"epsilon": "ε of the release that will use it"}


def _released(drawn: Sequence[tuple[Wanted, PrivateChoice]], ledger: Ledger) -> tuple[Line, ...]:
    """What was drawn, and what everything drawn cost: the person's own doing, which tells nothing of the data."""
    lines = [
        Line(
            capital(NUMBER_NAMES[wanted]),
            wording.counted(one.value, "row") if one.value == 1.0 else f"{choice.shown(one)} rows",
            one.facts,
            number=one.value,
        )
        for wanted, one in drawn
    ]
    return (*lines, *spent_lines(ledger))


def choice_json(choice: PrivateChoice, wanted: Wanted) -> str:
    """The chosen number with its guarantee; nothing in it depends on the data but the number drawn."""
    problem = choice.problem
    return document(
        CHOICE_SCHEMA,
        question={
            "label": "public input",
            "number": NUMBER_NAMES[wanted],
            "condition": to_values(problem.condition),
            "largest": problem.largest,
            "prior": to_values(problem.prior) if problem.prior is not None else None,
        },
        answer={
            "label": choice.facts.label,
            "value": choice.value,
            "unit": "rows per user",
            "epsilon": choice.facts.epsilon,
            "delta": choice.facts.delta,
            "neighbours": choice.facts.neighbours.value,
            "mechanism": choice.facts.mechanism,
        },
    )
