"""Options of the two optimisers, and how a search reports and stops."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, measure_progress
from dpcore.multitask.problem import Allocation


@dataclass(frozen=True)
class SearchOptions:
    """Options that change only the time taken, and how tight the certificate is.

    Attributes:
        tolerance: Relative gap between value and lower bound at which the search ends, in [1e-9, 0.5].
        max_steps: Largest number of steps in all, at least 1.

    Raises:
        InvalidInput: Out of range; both problems at once.
    """

    tolerance: float = 1e-6
    max_steps: int = 20_000

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(1e-9, 0.5, tolerance=self.tolerance)
            problems.whole(1, 10**9, max_steps=self.max_steps)


class Watch:
    """A counter of steps that reports progress on a logarithmic scale of the gap, and asks whether to stop."""

    def __init__(self, options: SearchOptions, progress: Progress, should_stop: ShouldStop) -> None:
        self.options = options
        self.steps = 0
        self.cancelled = False
        self._progress = progress
        self._should_stop = should_stop
        self._progress_shown = 0.0

    def take_step(self, gap: float) -> bool:
        """Count one step; return False at the step limit or if a person stopped the search."""
        self.cancelled = self.cancelled or self._should_stop()
        if self.cancelled or self.steps >= self.options.max_steps:
            return False
        self.steps += 1
        self._progress_shown = max(self._progress_shown, measure_progress(gap, self.options.tolerance))
        self._progress(self._progress_shown)
        return True

    def certify(self, allocation: Allocation, lower_bound: float, argument: str) -> Allocation:
        """Add a certificate to an allocation that read the graph, and the reason why the search ended."""
        certificate = Certificate(allocation.total_bound, lower_bound, argument)
        return replace(
            allocation,
            reads_graph=True,
            certificate=certificate,
            stop_reason=self.write_stop_reason(certificate.relative_gap),
            finished=not self.cancelled,
        )

    def write_stop_reason(self, gap: float) -> str:
        """Write why the search ended."""
        steps = wording.counted(self.steps, "step")
        if gap <= self.options.tolerance:
            return f"Reached the gap asked for after {steps}."
        if self.cancelled:
            return f"Stopped after {steps}, before the gap asked for; the weights are valid."
        if self.steps >= self.options.max_steps:
            return f"Ended at the limit of {steps}, before the gap asked for."
        return f"Ended after {steps}: no further progress in float64."
