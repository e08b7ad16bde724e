"""Quantile: the exact distribution of a private median or quantile, and the bound that serves it best."""

from dpcore.quantile.answer import build_answer, words
from dpcore.quantile.answer.search import solve
from pages.quantile import inputs
from pages.quantile.question import QUESTION
from pages.shared.render.question_page import Needs, Page

Page(
    QUESTION,
    solve,
    build_answer,
    main="quantile-error",
    read=inputs.read,
    describe_inputs=lambda answer, data: inputs.what_is_used(data, answer.parameters),
    describe_files=lambda answer: (
        "**Weights** hold one line per number of rows a user can have: the weight of each "
        "row of such a user. **Choice** holds the question and the answer. Label in both: "
        f"*{answer.disclosure.label}*."
    ),
    needs=Needs(
        lambda data: data.values is None,
        "values, one per row",
        "Bring data with values",
        lambda solution, data: words.detail(solution, data, brief=True),
    ),
).show()
