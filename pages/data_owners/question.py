"""Data owners: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.common.privacy import Disclosure, Provenance
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.data_owners.regimes import AXIS_TITLES
from dpcore.data_owners.study import Records
from dpcore.dataset import Dataset
from pages.shared.base.question import Field, From, Question, public
from pages.shared.data import table_upload

CONSTANT = "What O(·) hides; the paper leaves it open. 1 by default."

QUESTION = Question(
    name="data_owners",
    title="Data owners",
    icon=":material/hub:",
    url_path="data-owners",
    group="Models",
    lead="Hospitals, phones or shops could share a model. **Should they, and what does joint privacy buy?**",
    sentence="Data owners could train a model together: should they, and what does joint privacy buy?",
    release="A model trained across several data owners",
    own_file="loaded",
    parameters=OwnersParameters,
    fields={
        # Whoever reads owners off private data and enters them has read them off the data.
        "owners": Field(
            "Owners, n", "Owners who would train together.", name="The number of owners", width=92
        ),
        "records": Field(
            "Records, m",
            "Records of every owner, all alike. *More settings* reads unequal owners from your data.",
            name="The number of records per owner",
            report_label="Records per owner, m",
            width=100,
        ),
        "shared": public(
            "Shared, ℓ",
            "Parameters that all owners share. 7,850 are those of a linear model of MNIST: 785 × 10.",
            name="The number of shared parameters",
            report_label="Shared parameters, ℓ",
            width=96,
        ),
        "personal": public(
            "Personal, k",
            "Parameters of each owner's own part. Under joint privacy they stay with the owner and get no noise.",
            name="The number of personal parameters",
            report_label="Personal parameters per owner, k",
            width=110,
        ),
        "source": public(
            "Owners",
            "As entered, all alike; or those of the data in use, where each *user* is an owner.",
            report_label="Whose owners",
            options={OwnersSource.ENTERED: "As entered", OwnersSource.DATA: "Of the data in use"},
        ),
        "unit": public(
            "What is protected as one",
            "One record; all records of one of an owner's users; or everything that an owner has.",
            report_label="Unit of protection",
            options={Unit.RECORD: "One record", Unit.USER: "A user", Unit.OWNER: "A whole owner"},
        ),
        "records_per_user": Field(
            "Records per user, m/r",
            "Every owner has r users with m/r records each.",
            name="The number of records per user",
            initial=5.0,
            is_integer=True,
            width=150,
        ),
        "delta": public("δ", "The theorem asks for δ below 1/n, and well below.", width=110),
        "personal_diameter": public(
            "Diameter D_X",
            "How far apart two personal parts can lie; 0 for no personal part.",
            name="The personal diameter D_X",
            report_label="Diameter of the personal part, D_X",
            width=120,
        ),
        "shared_diameter": public(
            "Diameter D_U",
            "How far apart two shared parts can lie.",
            name="The shared diameter D_U",
            report_label="Diameter of the shared part, D_U",
            width=120,
        ),
        "lipschitz": public(
            "Lipschitz L",
            "It scales every bound alike and moves no crossing.",
            name="The Lipschitz constant L",
            width=150,
        ),
        "alone_constant": public(
            "Constant, alone",
            CONSTANT,
            name="The constant alone",
            report_label="Constant of the bound alone",
            width=130,
        ),
        "sampling_constant": public(
            "Constant of 1/√(mn)", CONSTANT, name="The constant of 1/√(mn)", width=150
        ),
        "privacy_constant": public("Constant of 1/ε", CONSTANT, name="The constant of 1/ε", width=130),
        "own_cap": Field(
            "Your own cap",
            "Records per owner that you keep today, to compare with the best cap.",
            renewed=True,
            report_label="Your own cap per owner",
            placeholder="optional",
            width=130,
        ),
        "x_axis": public("Map, across", options=AXIS_TITLES, as_list=True, width=210),
        "y_axis": public("Map, upwards", options=AXIS_TITLES, as_list=True, width=210),
        "train_on": public(
            "Records",
            "1,797 handwritten digits of 8 × 8 grey values (UCI, CC BY 4.0); 4,000 generated records of two "
            "populations of owners; or a table of your own, whose users are the owners.",
            options={
                Records.DIGITS: "Digits",
                Records.GENERATED: "Generated",
                Records.UPLOAD: "Upload a table",
            },
        ),
        "train_owners": public(
            "Owners",
            "One to six numbers, separated by commas: 2 to 64 for digits, to 256 for generated records.",
            report_label="Owners trained with",
            max_length=60,
        ),
        "train_epsilons": public(
            "Privacy budgets ε",
            "One to six numbers, separated by commas.",
            report_label="Budgets ε trained with",
            max_length=60,
        ),
        "train_runs": public(
            "Runs", "1 to 5, each with other splits, owners and noise.", name="The number of runs"
        ),
        "train_seed": public("Seed", "The same seed gives the same figure.", name="The seed of the training"),
    },
    also=table_upload.ENTRIES | From.PUBLIC.each("tabs", "paper_figure") | From.DATA.each("training_job"),
)


def disclosure_of(parameters: OwnersParameters, data: Dataset, own: Dataset | None = None) -> Provenance:
    """What the answer rests on.

    Owners that are entered beside private data may have been read off them: what such a field does not hold from the
    start is as private as they are. A private copy empties these fields (see `pages.shared.base.question.From`).

    Args:
        parameters: What was asked.
        data: The data in use.
        own: The page's own table, where there is one.
    """
    if parameters.source is OwnersSource.DATA:
        return data.provenance
    entered = any(
        getattr(parameters, name) not in (None, QUESTION.first(name))
        for name, field in QUESTION.fields.items()
        if field.origin is not From.PUBLIC
    )
    private = data.is_private or (own is not None and own.is_private)
    return Disclosure.PRIVATE if entered and private else Disclosure.PUBLIC
