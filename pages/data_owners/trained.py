"""What training has found, for the report: its figure and its sentences, with the label of the records behind them."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.data_owners.study import Records, StudyResult
from pages.data_owners import training
from pages.data_owners.question import QUESTION
from pages.shared import jobs
from pages.shared.figures import Picture

TITLE = "Accuracy by training"


@dataclass(frozen=True, eq=False)
class Trained:
    """A training that has ended.

    Attributes:
        found: Its accuracies, with the settings that they are for.
        disclosure: Of the records behind them.
        paper: Whether the paper's figures stand beside; not for records of one's own.
    """

    found: StudyResult
    disclosure: Provenance
    paper: bool

    @property
    def is_private(self) -> bool:
        """Whether the accuracies must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def picture(self) -> Picture:
        """Test accuracy against the number of owners."""
        return training.picture(self.found, self.disclosure, self.paper)

    @property
    def card(self) -> Answer:
        """What was trained, and what is seen by direction."""
        study = self.found.study
        epsilons = ", ".join(wording.entered(epsilon) for epsilon in study.epsilons)
        owners = ", ".join(wording.number(n) for n in study.owners)
        ended = (
            ""
            if self.found.done == 1.0
            else f" It was stopped after {wording.percent(self.found.done)} of the fits."
        )
        unit = training.unit_words(study)
        facts: dict[str, str] = {}
        for sentence in training.directions(self.found, self.paper):
            name, _, rest = sentence.removeprefix("**").partition("**")
            facts[name.rstrip(":")] = rest.strip()
        return Answer(
            headline=f"Trained on {self.found.name} for n = {owners} owners at ε = {epsilons}.",
            detail=f"{unit[:1].upper()}{unit[1:]} is protected, at δ = {wording.entered(study.delta)}.{ended} "
            f"{training.settings_words(self.found, self.paper)} The script computes the bounds; it does not train.",
            numbers=(),
            facts=facts,
            assumptions=(
                "Neighbouring data sets of the training differ in one unit of protection, whose records are zeroed; "
                "how many records and units there are is public",
            ),
            disclosure=self.disclosure,
        )


def finished() -> Trained | None:
    """The training that this session has run last; None while one runs, or where nothing was found."""
    done = jobs.result_of(QUESTION.key("training_job"))
    if done is None or done[1].done == 0.0:
        return None
    (records, _, _, disclosure), found = done
    return Trained(found, disclosure, records is not Records.UPLOAD)
