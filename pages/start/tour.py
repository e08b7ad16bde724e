"""The tour's step on Home: what keeping all rows of one heavy user costs everybody."""

from __future__ import annotations

from dpcore.common.wording import format_count, format_number, format_percent
from dpcore.dataset import Dataset
from dpcore.start.answer import solve
from dpcore.start.parameters import StartParameters, UserPreset
from pages.shared.session import session
from pages.shared.session.tour import Step


def write_answer(dataset: Dataset, parameters: StartParameters) -> str:
    """Write the noise at the bound that is set and at the best one, and the rows that the best one loses."""
    tradeoff = solve(dataset, parameters)
    bound, best_bound = parameters.bound or 1, tradeoff.best_choice.max_total
    errors_at_bound, errors_at_best = tradeoff.evaluate(bound), tradeoff.evaluate(best_bound)
    noise_text, best_noise_text, best_loss_text = (
        format_percent(float(row_error) / tradeoff.num_rows)
        for row_error in (errors_at_bound.mean_noise, errors_at_best.mean_noise, errors_at_best.bias)
    )
    cut_users_text = format_count(tradeoff.histogram.count_users_above(best_bound), "user")
    noises_text = f"{noise_text} of the count, at {format_number(best_bound)} only {best_noise_text}"
    losses_text = f"That bound loses {best_loss_text} of the rows, all of them rows of {cut_users_text}"
    return f"At {format_number(bound)} rows the noise is {noises_text}. {losses_text}."


_FIRST_PARAMETERS = StartParameters(0.1, bound=20, users=UserPreset.ONE_HEAVY)
STEP = Step(
    origin=session.Origin(session.DEFAULT_SAMPLE),
    parameters=_FIRST_PARAMETERS,
    field_name="bound",
    goal_value=20_000,
    question_sentence="One invented user has 20,000 rows, 2,000 have 20 each. How costly is it to keep all rows?",
    instruction="Drag the ring to 20,000 rows or beyond",
    is_far_enough=lambda bound: bound >= 10_000,
    write_answer=write_answer,
)
