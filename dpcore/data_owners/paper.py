"""Table 1, figure 1 and table 4 of Huang et al. 2023: accuracy of a model that data owners train together."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpcore.answer import Axis, Style, share_axis
from dpcore.answer.paper_figure import Claim, Line, PaperFigure, all_hold, is_falling, is_ordered
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.network_parts import PersonalPart
from dpcore.data_owners.study import Form, Study, run_study
from dpcore.data_owners.training import LabelledRecords, TrainingOptions, generate_records, split_records

DELTA = 1e-4
"""The paper's δ = 1/N."""
NUMBERS_OF_OWNERS = (4.0, 16.0, 64.0, 128.0, 256.0, 512.0)
EPSILONS = (1.0, 2.0, 5.0, 10.0, 100.0)
TABLE_4_OWNERS = (4, 256)
RECORDS_PER_USER = (1.0, 2.0, 5.0, 10.0, 20.0)
FIGURE_OWNERS = 128
FIGURE_COLUMN = NUMBERS_OF_OWNERS.index(FIGURE_OWNERS)
"""Position of the figure's number of owners in table 1."""
SETTING_TEXT = (
    "The paper trains a convolutional network on 10,000 records of MNIST, which may not be passed on. Here a linear "
    "model learns from 4,000 generated records. δ = 1e-4; every owner lacks two of ten classes."
)
DIFFERENCES_NOTE = (
    "This linear model is the quick one, and its order is reversed: from 128 owners on, full privacy is ahead of joint "
    "privacy. In the paper joint privacy is ahead up to ε = 10. The model has 310 parameters; the paper's network has "
    "47,744, which need more noise. With few owners the paper's private models fail, and ours do not."
)
NETWORK_NOTE = (
    "`make paper-runs DATA=folder` trains the paper's network on MNIST; `docs/papers.md` has its accuracies. They are "
    "nearest to the paper's if ε holds for each round of training alone: all rounds together cost more."
)
OWNER_DIFFERENCES = (
    "The paper's private accuracies rise up to 128 owners: its noise on an owner's steps averages out over owners. The "
    "dashed line hides a whole owner instead of one record."
)
GROUP_DIFFERENCES = (
    "Ours clips a user's records together. With m/r times the noise, as in group privacy, its accuracies fall as the "
    "paper's do: on MNIST, with full privacy and 256 owners, from 72 to 36 % at m/r = 2, the paper's from 74 to 26 %."
)
STYLE_BY_FORM = {
    Form.SEPARATE: ("Alone", Style.ENTERED, "square"),
    Form.JOINT: ("Joint privacy", Style.CAP, "triangle-up"),
    Form.FULL: ("Full privacy", Style.PRIVACY, "triangle-up"),
    Form.NON_PRIVATE: ("No privacy", Style.SAMPLING, "circle"),
    Form.NON_PRIVATE_PERSONAL: ("No privacy, with a personal part", Style.CUSTOMARY, "cross"),
}
"""Name, style and symbol of each form."""
PUBLIC_FORMS, PRIVATE_FORMS = (Form.SEPARATE, Form.NON_PRIVATE), (Form.FULL, Form.JOINT)
"""Those of the paper."""
ACCURACIES_1_BY_FORM = {
    Form.SEPARATE: (0.9445, 0.9457, 0.9209, 0.8639, 0.7678, 0.7240),
    Form.NON_PRIVATE: (0.9602, 0.9468, 0.9402, 0.9376, 0.9196, 0.9326),
    Form.FULL: (0.4444, 0.2926, 0.6982, 0.8081, 0.7399, 0.6023),
    Form.JOINT: (0.4658, 0.3207, 0.7651, 0.8169, 0.7835, 0.7423),
}
"""MNIST, ε = 1, means as printed."""
SPREADS_1_BY_FORM = {
    Form.SEPARATE: (0.0069, 0.0038, 0.0010, 0.0010, 0.0015, 0.0001),
    Form.NON_PRIVATE: (0.0017, 0.0014, 0.0037, 0.0043, 0.0028, 0.0093),
    Form.FULL: (0.0844, 0.0239, 0.0314, 0.0240, 0.0324, 0.0621),
    Form.JOINT: (0.0307, 0.0690, 0.0401, 0.0160, 0.0136, 0.0832),
}
"""Behind ± in the paper."""
ACCURACY_2_BY_PART = {
    PersonalPart.NOTHING: 0.7399,
    PersonalPart.FIRST: 0.7240,
    PersonalPart.SECOND: 0.7090,
    PersonalPart.FIRST_TWO: 0.1863,
    PersonalPart.LAST: 0.7835,
    PersonalPart.FIRST_AND_LAST: 0.6606,
    PersonalPart.SECOND_AND_LAST: 0.7291,
    PersonalPart.ALL_BUT_ONE: 0.1727,
}
"""Table 2: MNIST, joint privacy, ε = 1, as printed; its caption says n = 128, two values are those of n = 256."""
ACCURACIES_4_BY_LINE = {
    (4, Form.FULL): (0.4444, 0.2867, 0.1986, 0.1526, 0.1517),
    (4, Form.JOINT): (0.4658, 0.3297, 0.2064, 0.1708, 0.1691),
    (256, Form.FULL): (0.7399, 0.2606, 0.1700, 0.1450, 0.1089),
    (256, Form.JOINT): (0.7835, 0.3930, 0.2517, 0.1603, 0.1297),
}
"""MNIST, ε = 1, as printed."""
SPREADS_4_BY_LINE = {
    (4, Form.FULL): (0.0844, 0.0387, 0.0479, 0.0022, 0.0438),
    (4, Form.JOINT): (0.0307, 0.0256, 0.0470, 0.0262, 0.0628),
    (256, Form.FULL): (0.0324, 0.0259, 0.0154, 0.0227, 0.0264),
    (256, Form.JOINT): (0.0136, 0.0622, 0.0355, 0.0204, 0.0082),
}
"""Behind ± in the paper."""


@dataclass(frozen=True)
class AccuracyStudy:
    """Accuracies of trained models, each trained once.

    Attributes:
        draw_records: Returns the records of a run by its seed.
        training_options: How models are fitted.
    """

    draw_records: Callable[[int], LabelledRecords] = generate_records
    training_options: TrainingOptions = field(default_factory=TrainingOptions)

    def compute_accuracies(self, num_owners: int, epsilon: float, seed: int) -> dict[str, float]:
        """Train all four forms of the paper once, with one record protected.

        Return the test accuracy of each, by the key of its line in the figure.
        """
        # Models without privacy do not depend on ε: many points of a figure share them.
        public_accuracy_by_form = _train_once(self, PUBLIC_FORMS, num_owners, seed)
        accuracy_by_form = {
            **public_accuracy_by_form,
            **_train_once(self, PRIVATE_FORMS, num_owners, seed, epsilon),
        }
        return {form.value: form_accuracy for form, form_accuracy in accuracy_by_form.items()}

    def run_table_1(self, num_owners: float, seed: int) -> dict[str, float]:
        """Train once at ε = 1; return the test accuracy of every line of table 1 by its key.

        To the four forms of the paper it adds joint privacy with a whole owner protected.
        """
        owner_accuracy_by_form = _train_once(self, (Form.JOINT,), int(num_owners), seed, 1.0, Unit.OWNER)
        accuracy_by_key = self.compute_accuracies(int(num_owners), 1.0, seed)
        return accuracy_by_key | {OWNERS_LINE_KEY: owner_accuracy_by_form[Form.JOINT]}

    def run_figure_1(self, epsilon: float, seed: int) -> dict[str, float]:
        """Train once at this ε with `FIGURE_OWNERS` owners; return the test accuracy of every form by its key."""
        return self.compute_accuracies(FIGURE_OWNERS, epsilon, seed)

    def run_table_4(self, records_per_user: float, seed: int) -> dict[str, float]:
        """Train both private forms once at ε = 1, with users protected and with 4 and with 256 owners.

        Return the test accuracy of each line by its key; NaN where an owner has fewer records than a user would have.
        """
        privacy_args = (1.0, Unit.USER, int(records_per_user))
        return {
            f"{form.value}_{num_owners}": accuracy
            for num_owners in TABLE_4_OWNERS
            for form, accuracy in _train_once(self, PRIVATE_FORMS, num_owners, seed, *privacy_args).items()
        }


@functools.cache
def _train_once(
    accuracy_study: AccuracyStudy,
    forms: tuple[Form, ...],
    num_owners: int,
    seed: int,
    epsilon: float = 1.0,
    unit: Unit = Unit.RECORD,
    records_per_user: int = 1,
) -> Mapping[Form, float]:
    """Train and test some forms once; return the test accuracy by form.

    Accuracies are NaN if an owner would have fewer training records than a user. Results are cached.
    """
    drawn_records = accuracy_study.draw_records(seed)
    if records_per_user > split_records(drawn_records, seed)[0].labels.size // num_owners:
        return dict.fromkeys(forms, math.nan)
    study = Study((num_owners,), (epsilon,), (seed,), DELTA, unit, records_per_user)
    study = replace(study, training_options=accuracy_study.training_options, forms=forms)
    return {form: float(x.item()) for form, x in run_study(study, drawn_records).accuracies_by_form.items()}


OWNERS_LINE_KEY = "joint_owner"
GENERATED_STUDY = AccuracyStudy()


def _build_axis(name: str, limits: tuple[float, float], ticks: tuple[float, ...], **options: Any) -> Axis:
    """Build the axis of the quantity that is varied, with a tick at each of its values."""
    return Axis(name, "", limits, named_ticks=tuple((tick, f"{tick:,.0f}") for tick in ticks), **options)


LINE_BY_FORM = {form: Line(form.value, *STYLE_BY_FORM[form]) for form in (*PUBLIC_FORMS, *PRIVATE_FORMS)}
TABLE_1_FIGURE = PaperFigure(
    "huang-table-1",
    "Huang et al. 2023",
    "Table 1",
    "accuracy over the number of owners",
    f"ε = 1. {SETTING_TEXT}",
    "Join or train alone",
    "Accuracy",
    _build_axis("owners, n", (3.5, 590.0), NUMBERS_OF_OWNERS, number_format=","),
    share_axis("test accuracy", (0.0, 1.0), number_format=".1%"),
    NUMBERS_OF_OWNERS,
    (
        Line(OWNERS_LINE_KEY, "Joint privacy of a whole owner", Style.CAP, "triangle-up", "dash"),
        *(
            replace(line, paper_values=ACCURACIES_1_BY_FORM[form], paper_spreads=SPREADS_1_BY_FORM[form])
            for form, line in LINE_BY_FORM.items()
        ),
    ),
    GENERATED_STUDY.run_table_1,
    5,  # As many as in the paper.
    f"{DIFFERENCES_NOTE} {OWNER_DIFFERENCES} {NETWORK_NOTE}",
    claims=(
        Claim(
            "With more than 128 owners joint privacy is better than training alone and full privacy",
            "caption of table 1",
            lambda c: all(np.all(c["joint"][4:] > c[key][4:]) for key in ("alone", "full")),
        ),
    ),
)
FIGURE_1 = replace(
    TABLE_1_FIGURE,
    key="huang-figure-1",
    item_name="Figure 1",
    title=f"accuracy over ε, {FIGURE_OWNERS} owners",
    setting_text=SETTING_TEXT,
    x=_build_axis("privacy budget ε", (0.9, 110.0), EPSILONS),
    x_values=EPSILONS,
    lines=tuple(
        replace(line, paper_values=(ACCURACIES_1_BY_FORM[form][FIGURE_COLUMN], *[None] * 4))
        for form, line in LINE_BY_FORM.items()
    ),
    run_once=GENERATED_STUDY.run_figure_1,
    difference_note=f"{DIFFERENCES_NOTE} The paper prints numbers at ε = 1 only. {NETWORK_NOTE}",
    claims=(
        Claim(
            "At ε ≤ 10 joint privacy is consistently better than full privacy",
            "section 4.1.2",
            lambda c: bool(np.all(c["joint"][:4] > c["full"][:4])),
        ),
        Claim(
            "As ε increases, full privacy achieves a higher accuracy (ε = 100)",
            "section 4.1.2",
            lambda c: bool(c["full"][4] > c["joint"][4]),
        ),
    ),
)
TABLE_4_FIGURE = replace(
    TABLE_1_FIGURE,
    key="huang-table-4",
    item_name="Table 4",
    title="accuracy over the records of one user, who is protected",
    setting_text=f"ε = 1, 4 and 256 owners. {SETTING_TEXT} With 256 owners each holds 12 records.",
    x=_build_axis("records per user, m/r", (0.9, 22.0), RECORDS_PER_USER),
    x_values=RECORDS_PER_USER,
    lines=tuple(
        replace(
            LINE_BY_FORM[form],
            key=f"{form.value}_{owners}",
            name=f"{LINE_BY_FORM[form].name}, {owners} owners",
            dash=dash,
            paper_values=ACCURACIES_4_BY_LINE[owners, form],
            paper_spreads=SPREADS_4_BY_LINE[owners, form],
        )
        for owners, dash in zip(TABLE_4_OWNERS, ("solid", "dash"), strict=True)
        for form in PRIVATE_FORMS
    ),
    run_once=GENERATED_STUDY.run_table_4,
    difference_note=f"{DIFFERENCES_NOTE} {GROUP_DIFFERENCES} {NETWORK_NOTE}",
    claims=(
        Claim(
            "As m/r increases, full and joint privacy decline",
            "appendix C",
            is_falling("full_4", "full_256", "joint_4", "joint_256"),
        ),
        Claim(
            "Joint privacy consistently outperforms full privacy",
            "appendix C",
            all_hold(is_ordered("full_4", "joint_4"), is_ordered("full_256", "joint_256")),
        ),
    ),
)
FIGURES = (TABLE_1_FIGURE, FIGURE_1, TABLE_4_FIGURE)
