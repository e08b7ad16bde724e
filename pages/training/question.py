"""Training: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.common.privacy import Neighbours
from dpcore.training.experiment import MAX_RUNS
from dpcore.training.generator import MAX_GENERATED_USERS, MAX_INFORMATIVE_FEATURES
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import MAX_STEPS, Average, Pace
from dpcore.training.parameters import MAX_SPLITS, DataSource, TrainingParameters
from dpcore.training.weighting import Method
from pages.shared.base.question import DELTA, Field, From, Question, public
from pages.shared.data import table_upload

# As on Regression: everything belongs to data that this page has for itself.

QUESTION = Question(
    name="training",
    title="Training",
    icon=":material/school:",
    url_path="training",
    group="Models",
    lead="You train a private classifier on rows of users who bring many. **By which method, and with which bound?**",
    sentence="I train a private classifier: by which method, and how much may one user bring?",
    release="A private classifier",
    own_data=True,
    own_file="loaded",
    parameters=TrainingParameters,
    fields={
        "delta": DELTA,
        "neighbours": public(
            "Neighbouring data",
            "With one user more or less, or one replaced, nobody's number of rows is public, and the sum of "
            "weights gets noise, too. With one user's values changed, all counts are public.",
            options={
                Neighbours.ADD_OR_REMOVE_USER: "Add or remove a user",
                Neighbours.REPLACE_USER: "Replace a user",
                Neighbours.REPLACE_VALUES: "Change a user's values",
            },
            as_list=True,
            width=190,
        ),
        "loss": public(
            "Loss",
            options={
                LossKind.LOGISTIC: "Logistic",
                LossKind.HINGE: "Smoothed hinge",
                LossKind.SQUARED: "Squared",
            },
            as_list=True,
        ),
        "positive_above": Field(
            "A label is 1 above",
            "A public threshold; any other label counts as −1.",
            name="The threshold of the label",
            renewed=True,
        ),
        "bounded_by": Field(
            "A release bounds users by",
            "A clipped sum shortens what a user's rows say together; where the bound follows the users, ε covers it. "
            "Smooth weights keep every row and let it weigh less. A cap draws at most h rows of each user at random, "
            "once. Output perturbation minimises with a penalty and adds noise once.",
            name="What a release bounds users by",
            report_label="A release bounds users by",
            options={
                Method.FOLLOWED: "Clipped sums, bound follows the users",
                Method.CLIPPED_SUM: "Clipped sums",
                Method.SMOOTH: "Smooth weights",
                Method.CAP: "A cap, rows drawn at random",
                Method.OUTPUT: "Output perturbation",
            },
            as_list=True,
        ),
        "bound": Field(
            "Bound h of a release",
            "What a user weighs at most in the model that the tab Release draws, in rows; not asked where the bound "
            "follows the users. Choose it without a look at the curves: 1, the average of each user's rows, needs "
            "none. Below 1, weights and caps shorten the gradients of rows.",
            name="The bound h of a release",
        ),
        "pace": public(
            "Steps and step size",
            "The rule follows from ε, δ, the number of features and the number of users as it is released. What is "
            "entered goes for all methods but the bound that follows the users.",
            options={Pace.RULE: "By a rule that looks at no data", Pace.ENTERED: "As entered"},
            as_list=True,
        ),
        "steps": public(
            "Steps T",
            f"1 to {MAX_STEPS:,}, public, where steps are entered. The noise of all steps together is that of one "
            "release.",
            name="The number of steps",
            report_label="Steps",
        ),
        "step_size": public(
            "Step size",
            "In units of 1 / (smoothness of the loss), above 0 and below 2, public.",
            name="The step size",
            step=0.1,
        ),
        "average": public(
            "The model is the mean of",
            report_label="Iterates averaged",
            options={
                Average.ALL: "All iterates",
                Average.LAST_HALF: "The last half",
                Average.LAST: "The last alone",
            },
            as_list=True,
        ),
        "radius": public(
            "Radius of the ball", "θ is kept in this ball around 0.", name="The radius of the ball"
        ),
        "sampled": public(
            "Share of users in a step",
            "1: everybody in every step. Below 1, each user takes part by a draw of their own; it may pay where "
            "users are many. Accounted where a user is added or removed.",
            name="The share of users in a step",
            step=0.1,
        ),
        "runs": public(
            "Runs",
            f"How often each method is trained at each bound, 2 to {MAX_RUNS:,}.",
            name="The number of runs",
        ),
        "splits": public(
            "Splits of the users",
            f"Into those trained on and those held out, 1 to {MAX_SPLITS}; runs go round them.",
            name="The number of splits",
        ),
        "held_out": public(
            "Share of users held out",
            "Models are judged on them. 0.05 to 0.9.",
            name="The share of users held out",
            step=0.05,
        ),
        "seed": public(
            "Seed of splits and runs",
            "The same seed gives the same numbers.",
            name="The seed of splits and runs",
        ),
        "source": Field(
            "Data of this page",
            report_label="Data",
            options={
                DataSource.SAMPLE: "Sample",
                DataSource.GENERATED: "Generate",
                DataSource.UPLOAD: "Upload a table",
            },
        ),
        "num_users": Field("Users m", f"10 to {MAX_GENERATED_USERS:,}.", report_label="Users generated"),
        "exponent": Field(
            "Exponent α of rows per user",
            "A user has more than $k$ rows with probability $(k + 1)^{-\\alpha}$. Smaller is more uneven.",
            report_label="Exponent of rows per user",
        ),
        "max_rows": Field("Rows of a user, at most", "1 to 10,000."),
        "informative": Field("Features", f"1 to {MAX_INFORMATIVE_FEATURES}, beside an intercept."),
        "signal": Field("Size of each coefficient", "For features scaled to norm 1. Larger is easier."),
        "user_effect": Field(
            "Spread between users",
            "Above 0, heavy users differ from light ones, and weights change what is learned.",
        ),
        "data_seed": Field("Seed of the data"),
    },
    also=table_upload.ENTRIES
    | From.OWN_DATA.each(
        "range_",
        "proposed",
        "runs_job",
        "paper_job",
        "release_job",
        "found",
        "shown",
        "draws",
        "spent",
        "refused",
    )
    | From.PUBLIC.each("measure", "over", "tabs", "paper_epsilon", "paper_steps"),
    # Until a release could be bounded in several ways, it was by smooth weights, with steps as entered, on one split.
    formerly={"others": {"bounded_by": Method.SMOOTH, "pace": Pace.ENTERED, "splits": 1}},
)
