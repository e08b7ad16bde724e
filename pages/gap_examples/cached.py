"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore import gap_examples, mean
from dpcore.dataset import Dataset
from pages.gap_examples import answer as gap_view
from pages.shared.cache import cached, cached_for_all


@cached(max_entries=16)
def gap_answer(digest: str, parameters: mean.MeanParameters, _dataset: Dataset) -> gap_view.GapView:
    """The answer on the person's data of the page on the largest gap."""
    return gap_view.compute(_dataset.histogram, parameters)


@cached(max_entries=16)
def gap_comparison(
    parameters: gap_examples.GapParameters, kind: gap_examples.InstanceKind
) -> gap_examples.Comparison:
    """Both optima of an instance that does not depend on data."""
    return gap_view.compare_instance(parameters, kind)


@cached_for_all(max_entries=4)
def gap_growth(example: int) -> gap_view.Growth:
    """How the gap of a regression example grows; it depends on no data."""
    return gap_view.growth(example)


@cached_for_all(max_entries=32)
def gap_regression(example: int, g: int) -> gap_view.RegressionStep:
    """A regression example at one g; it depends on no data."""
    return gap_view.regression_step(example, g)
