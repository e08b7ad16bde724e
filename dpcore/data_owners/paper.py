"""Table 1, figure 1 and table 4 of Huang et al. 2023: accuracy of a model that data owners train together."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from dpcore.answer import Axis, Style, share_axis
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.labelled import LabelledRecords, split_records
from dpcore.data_owners.study import Form, Records, Study, run_study
from dpcore.data_owners.training import TrainingOptions

PAPER = "Huang et al. 2023"
DELTA = 1e-4
"""The paper's δ = 1/N."""
OWNERS = (4.0, 16.0, 64.0, 128.0, 256.0, 512.0)
EPSILONS = (1.0, 2.0, 5.0, 10.0, 100.0)
RECORDS_PER_USER = (1.0, 2.0, 5.0, 10.0, 20.0)
FIGURE_OWNERS = 128
"""Owners of figure 1 as it is drawn here."""
ROUNDS = 5
"""Runs: the paper's number."""
SETTING = (
    "The paper trains a convolutional network in federated rounds on 10,000 records of MNIST, of which every "
    "owner lacks two of ten classes; δ = 1e-4. Its data may not be passed on: these are 4,000 generated records of "
    "ten classes, of which every owner lacks a fifth too, and the model is linear."
)
DIFFERENCES = (
    "Other data and another model, so that only directions can be compared. A linear model has 310 parameters "
    "where the network has some 30,000, and needs far less noise: where the paper's private models fail with few "
    "owners, ours do not. Without collaboration both lose accuracy as owners hold fewer records."
)
OWNER_DIFFERENCES = (
    "Its private accuracies are low with few owners and rise up to 128 of them, as if its noise hid an owner's whole "
    "update, which it clips at norm 15, and not one record. The dashed line hides a whole owner: on MNIST, in "
    "one run, it has 25, 39, 70, 74, 75 and 79 %, the paper 47, 32, 77, 82, 78 and 74 %."
)
GROUP_DIFFERENCES = (
    "Ours clips what a user's records say together, and hides no more. Where it hides a whole owner with m/r "
    "times the noise, as group privacy has it, its accuracies fall as well: on MNIST, with full privacy and 256 "
    "owners, 70, 52, 28, 22 and 19 %, the paper's 74, 26, 17, 15 and 11 %."
)
FORM_STYLES = {
    Form.SEPARATE: ("Alone", Style.ENTERED, "square"),
    Form.NON_PRIVATE: ("No privacy", Style.SAMPLING, "circle"),
    Form.FULL: ("Full privacy", Style.PRIVACY, "triangle-up"),
    Form.JOINT: ("Joint privacy", Style.CAP, "diamond"),
}
PRIVATE_FORMS = (Form.FULL, Form.JOINT)
TABLE_1 = {
    Form.SEPARATE: (0.9445, 0.9457, 0.9209, 0.8639, 0.7678, 0.7240),
    Form.NON_PRIVATE: (0.9602, 0.9468, 0.9402, 0.9376, 0.9196, 0.9326),
    Form.FULL: (0.4444, 0.2926, 0.6982, 0.8081, 0.7399, 0.6023),
    Form.JOINT: (0.4658, 0.3207, 0.7651, 0.8169, 0.7835, 0.7423),
}
"""MNIST, ε = 1, mean over the paper's 5 runs, as printed."""
SPREAD_1 = {
    Form.SEPARATE: (0.0069, 0.0038, 0.0010, 0.0010, 0.0015, 0.0001),
    Form.NON_PRIVATE: (0.0017, 0.0014, 0.0037, 0.0043, 0.0028, 0.0093),
    Form.FULL: (0.0844, 0.0239, 0.0314, 0.0240, 0.0324, 0.0621),
    Form.JOINT: (0.0307, 0.0690, 0.0401, 0.0160, 0.0136, 0.0832),
}
"""What stands behind ± there."""
TABLE_4 = {
    (4, Form.FULL): (0.4444, 0.2867, 0.1986, 0.1526, 0.1517),
    (4, Form.JOINT): (0.4658, 0.3297, 0.2064, 0.1708, 0.1691),
    (256, Form.FULL): (0.7399, 0.2606, 0.1700, 0.1450, 0.1089),
    (256, Form.JOINT): (0.7835, 0.3930, 0.2517, 0.1603, 0.1297),
}
"""MNIST, ε = 1, by owners and form, as printed."""
SPREAD_4 = {
    (4, Form.FULL): (0.0844, 0.0387, 0.0479, 0.0022, 0.0438),
    (4, Form.JOINT): (0.0307, 0.0256, 0.0470, 0.0262, 0.0628),
    (256, Form.FULL): (0.0324, 0.0259, 0.0154, 0.0227, 0.0264),
    (256, Form.JOINT): (0.0136, 0.0622, 0.0355, 0.0204, 0.0082),
}
"""What stands behind ± there."""


@functools.lru_cache(maxsize=4)
def _draw_records(seed: int) -> LabelledRecords:
    """Generate the records of a seed, once."""
    return Records.GENERATED.load(seed)


@dataclass(frozen=True)
class AccuracyStudy:
    """Accuracies of trained models, each trained once.

    Attributes:
        records: By the seed of a run.
        options: How they are fitted.
    """

    records: Callable[[int], LabelledRecords] = _draw_records
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def compute_accuracies(
        self,
        owners: int,
        epsilon: float,
        seed: int,
        unit: Unit = Unit.RECORD,
        records_per_user: int = 1,
        forms: tuple[Form, ...] = tuple(FORM_STYLES),
    ) -> dict[Form, float]:
        """Return the test accuracy of some forms; nothing where an owner has fewer records than a user would."""
        data = self.records(seed)
        if records_per_user > split_records(data, seed)[0].labels.size // owners:
            return {}
        # Models without privacy do not depend on ε and the unit: many points of a figure share them.
        settings = {
            form: (form, owners, seed, *((epsilon, unit, records_per_user) if form.is_private else ()))
            for form in forms
        }
        missing = tuple(form for form in forms if settings[form] not in self._cache)
        if missing:
            study = Study(
                (owners,),
                (epsilon,),
                (seed,),
                DELTA,
                unit,
                records_per_user,
                options=self.options,
                forms=missing,
            )
            accuracy = run_study(study, data).accuracy
            self._cache.update({settings[form]: float(accuracy[form].ravel()[0]) for form in missing})
        return {form: self._cache[settings[form]] for form in forms}

    @functools.cached_property
    def _cache(self) -> dict[tuple[object, ...], float]:
        return {}

    def run_table_1(self, owners: float, seed: int) -> dict[str, float]:
        """Run table 1: every form, and joint privacy with a whole owner protected."""
        accuracies = {form.value: x for form, x in self.compute_accuracies(int(owners), 1.0, seed).items()}
        owner = self.compute_accuracies(int(owners), 1.0, seed, Unit.OWNER, forms=(Form.JOINT,))
        return accuracies | {OWNERS_LINE: owner[Form.JOINT]}

    def run_figure_1(self, epsilon: float, seed: int) -> dict[str, float]:
        """Run figure 1."""
        return {form.value: x for form, x in self.compute_accuracies(FIGURE_OWNERS, epsilon, seed).items()}

    def run_table_4(self, records: float, seed: int) -> dict[str, float]:
        """Run table 4, whose users are protected."""
        accuracies: dict[str, float] = {}
        for owners in (4, 256):
            by_form = self.compute_accuracies(owners, 1.0, seed, Unit.USER, int(records), PRIVATE_FORMS)
            accuracies |= {f"{form.value}_{owners}": by_form.get(form, math.nan) for form in PRIVATE_FORMS}
        return accuracies


OWNERS_LINE = "joint_owner"
ACCURACY = share_axis("test accuracy", (0.0, 1.0), number_format=".1%")


def _label_ticks(values: tuple[float, ...]) -> tuple[tuple[float, str], ...]:
    """Label the ticks of an axis."""
    return tuple((value, f"{value:,.0f}") for value in values)


GENERATED = AccuracyStudy()
FIGURES = (
    PaperFigure(
        "huang-table-1",
        PAPER,
        "Table 1",
        "accuracy over the number of owners",
        f"ε = 1. {SETTING}",
        "Data owners",
        "Accuracy",
        Axis("owners, n", "", (3.5, 590.0), number_format=",", named_ticks=_label_ticks(OWNERS)),
        ACCURACY,
        OWNERS,
        (
            Line(OWNERS_LINE, "Joint privacy of a whole owner", Style.CAP, "diamond", "dash"),
            *(
                Line(
                    form.value, name, style, symbol, paper_values=TABLE_1[form], paper_spreads=SPREAD_1[form]
                )
                for form, (name, style, symbol) in FORM_STYLES.items()
            ),
        ),
        GENERATED.run_table_1,
        ROUNDS,
        f"{DIFFERENCES} {OWNER_DIFFERENCES}",
    ),
    PaperFigure(
        "huang-figure-1",
        PAPER,
        "Figure 1",
        f"accuracy over ε, {FIGURE_OWNERS} owners",
        SETTING,
        "Data owners",
        "Accuracy",
        Axis("privacy budget ε", "", (0.9, 110.0), named_ticks=_label_ticks(EPSILONS)),
        ACCURACY,
        EPSILONS,
        tuple(
            Line(
                form.value,
                name,
                style,
                symbol,
                paper_values=(TABLE_1[form][OWNERS.index(FIGURE_OWNERS)], None, None, None, None),
            )
            for form, (name, style, symbol) in FORM_STYLES.items()
        ),
        GENERATED.run_figure_1,
        ROUNDS,
        f"{DIFFERENCES} The paper prints numbers at ε = 1 only (its table 1).",
    ),
    PaperFigure(
        "huang-table-4",
        PAPER,
        "Table 4",
        "accuracy over the records of one user, who is protected",
        f"ε = 1, 4 and 256 owners. {SETTING} With 256 owners each holds 12 records, so that a user cannot have 20.",
        "Data owners",
        "Accuracy",
        Axis("records per user, m/r", "", (0.9, 22.0), named_ticks=_label_ticks(RECORDS_PER_USER)),
        ACCURACY,
        RECORDS_PER_USER,
        tuple(
            Line(
                f"{form.value}_{owners}",
                f"{FORM_STYLES[form][0]}, {owners} owners",
                FORM_STYLES[form][1],
                FORM_STYLES[form][2],
                "solid" if owners == 4 else "dash",
                TABLE_4[owners, form],
                SPREAD_4[owners, form],
            )
            for owners in (4, 256)
            for form in PRIVATE_FORMS
        ),
        GENERATED.run_table_4,
        ROUNDS,
        f"{DIFFERENCES} {GROUP_DIFFERENCES}",
    ),
)
