"""The examples in the docstrings of all calls and of the central classes: each runs, and prints what it says."""

import doctest
import sys

import pytest

import dpcore as ss
from dpcore import questions
from dpcore.answer.answer import Answer
from dpcore.answer.plot import Curve, Plot
from dpcore.answer.section import list_parts
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Ledger
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.reply import Reply

CENTRAL = Answer, Reply, Dataset, ContributionHistogram, Amounts, Plot, Curve, list_parts, Certificate, Ledger


def run_examples(docstring: str, name: str, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(docstring, names, name, None, None)
    assert test.examples, f"{name} has no example"
    output: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=output.append)
    assert not output, "".join(output)


@pytest.mark.parametrize("name", questions.QUESTIONS)
def test_every_call_has_an_example_that_is_true(name):
    docstring = getattr(ss, name).__doc__
    assert docstring.count("\nExamples:\n") == 1
    assert f"ss.{name}(" in docstring.partition("\nExamples:\n")[2], f"{name} has no example"
    run_examples(docstring, name, {})


@pytest.mark.parametrize("described", CENTRAL, ids=lambda described: described.__name__)
def test_what_is_central_has_an_example_that_is_true(described):
    # As `pytest --doctest-modules` runs it: an example knows the names of its module.
    run_examples(described.__doc__, described.__name__, dict(vars(sys.modules[described.__module__])))
