"""The answer for a plan: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dpcore.answer import Answer
from dpcore.code.forms import CodeChoice
from dpcore.common.errors import InvalidInput
from dpcore.dataset import Dataset
from dpcore.plan import files
from dpcore.plan.answer import noises, plots, words
from dpcore.plan.answer.found import PlanFound, find
from dpcore.plan.answer.methods import methods
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.programs import program_of

if TYPE_CHECKING:
    import pandas as pd


def build_answer(data: Dataset, parameters: PlanParameters, found: PlanFound | None = None) -> Answer:
    """How several numbers about one table share one privacy budget, each under the bound that is best for its share.

    Args:
        data: How many rows users have; values and groups where lines need them.
        parameters: The question.
        found: What `find` found for both; computed here by default, and then both noises are compared, too.

    Returns:
        The answer; its ``found`` is a `PlanFound`, and ``bound`` a table with a row per line.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all wanted errors.
    """
    of = find(data, parameters) if found is None else found
    proofs, assumed = words.proofs(of, parameters), words.assumptions(of)
    numbers = words.numbers(of, parameters)
    facts = words.facts(of, parameters)
    if said := words.best_found(of, parameters):
        facts = {"How sure": said, **facts}
    answer = Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=numbers,
        assumptions=assumed,
        disclosure=data.provenance,
        facts=facts,
        proofs=proofs,
        code=_code(of, data, parameters),
        parameters=parameters,
        found=of,
        plots={"plan-errors": lambda: plots.errors(of, data), "plan-shares": lambda: plots.shares(of, data)},
        written=lambda: methods(of, data, parameters),
        choice=lambda: files.choice_json(
            data,
            parameters,
            of.budget.epsilon,
            of.lines,
            of.needed.tolist(),
            proofs[0][1] if proofs else None,
            assumed,
        ),
        bound=lambda: _table(of),
        error=numbers[1].value,
    )
    return with_noises(answer, data) if found is None else answer


def with_noises(answer: Answer, data: Dataset) -> Answer:
    """The answer with the sentence that compares both noises: a second plan, for which a moved slider does not wait.

    Args:
        answer: Of a plan.
        data: What it is about.
    """

    def said() -> str:
        both = noises.both(data, answer.parameters, answer.found)
        return noises.sentence(both, answer.found, answer.parameters)

    return replace(answer, facts=noises.LaterFacts(answer.facts, "Laplace or Gaussian", said))


def _code(of: PlanFound, data: Dataset, parameters: PlanParameters) -> CodeChoice | None:
    try:
        program = program_of(data, parameters, of.lines, of.budget)
    except InvalidInput:  # A bound that no program could apply.
        return None
    return None if program is None else CodeChoice((("Plan", program),))


def _table(of: PlanFound) -> pd.DataFrame:
    import pandas as pd

    rows = [
        (
            line.planned.line.what,
            line.share,
            line.amount,
            line.bound,
            line.second,
            line.error,
            line.planned.unit,
        )
        for line in of.lines
    ]
    names = ["release", "share", "budget", "bound", "second_bound", "error", "unit"]
    return (
        pd.DataFrame(rows, columns=names)
        .set_index("release")
        .assign(wanted=[line.planned.wanted for line in of.lines], reached_at=of.reached_at)
    )
