"""Learning under a bound: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.learning import LearningParameters, PrivacyForm
from dpcore.learning.bias_bounds import BiasTerm
from pages.shared.base.question import Facet, Field, From, Question, public

TERMS = (BiasTerm.TIGHTEST, *(term for term in BiasTerm if term is not BiasTerm.TIGHTEST))
"""The bounds on the bias in the order of the list: the one that most people want comes first."""
POPULATION = ("alpha", "population_rows", "draws")
"""Fields of the figures on a population, which stand in tabs and do not change the answer for the data."""

# Of the public fields, bias, privacy term and constants describe the learner and the theorem, which are fixed before
# the data are seen. The others can hold what a person measured on the data: how much users differ, a cap, how
# uneven the users are, how many rows there are.
QUESTION = Question(
    name="learning",
    title="Learning under a bound",
    icon=":material/model_training:",
    url_path="learning",
    group="Models",
    lead="You train a model with an ε-differentially private learner. "
    "**How many rows may one user contribute?**",
    step="a model",
    sentence="I train a model with a private learner: how many rows of one user may it see?",
    release="A model (trained with a private learner)",
    answers_from=(Facet.ROWS,),
    parameters=LearningParameters,
    own=("own_cap",),
    fields={
        "bias": public(
            "Limit on the bias",
            "The limit that stands in for the bias that a bound on rows causes. The tab *All bounds on the bias* "
            "says what each needs to know.",
            names={term: f"{term.title} ({term.group})" for term in TERMS},
            as_list=True,
        ),
        "loss_variance": Field(
            "Users differ, Var(H)",
            "The variance of the expected loss between users. At 0 every user meets the same risk, and a bound "
            "causes no bias. 1/4 is the most that losses in [0, 1] allow: choose it where nothing is known. Only "
            "limits with Var(H) use it.",
            asked="Var(H), variance of users' losses",
            slider=(0.0, 0.25, 0.005),
            format="%.3f",
            width=150,
        ),
        "vc_dimension": public(
            "VC dimension d",
            "The VC dimension of the models that the learner chooses from. 0 leaves the finite-sample term out.",
            sentence="The VC dimension d",
        ),
        "failure_probability": public(
            "Failure probability δ",
            "The limit holds with probability 1 − δ. This is not the δ of (ε, δ)-differential privacy.",
            sentence="The failure probability δ",
        ),
        "privacy_form": public(
            "Privacy term F",
            "How the learner's error grows with the largest share of a user. Quadratic is the form of output "
            "perturbation (Chaudhuri et al. 2011).",
            asked="Shape of the privacy term",
            names={
                PrivacyForm.QUADRATIC: "Quadratic",
                PrivacyForm.LINEAR: "Linear",
                PrivacyForm.OWN: "Power",
            },
        ),
        "privacy_constant": public(
            "Noise factor C",
            "How much noise the learner needs; it multiplies the privacy term. In output perturbation it grows "
            "with the squared dimension of the model: 100 is that of 10 numbers, other constants at 1.",
            sentence="The noise factor C",
            asked="Noise factor, constant of the privacy term",
            width=146,
        ),
        "privacy_power": public(
            "Power of F",
            "F = C (largest share / ε) to this power.",
            sentence="The power of F",
            asked="Power of the privacy term",
            first=1.5,
        ),
        "finite_sample_constant": public(
            "Finite-sample constant",
            "The constant that O(·) hides in the finite-sample term. Leave it at 1 unless you know better.",
            sentence="The finite-sample constant",
            asked="Constant of the finite-sample term",
        ),
        "own_cap": Field(
            "Compare your own bound",
            "Optional: a bound that you use today, in rows per user.",
            renewed=True,
            asked="Your own bound, rows per user",
            placeholder="rows",
        ),
        # Public by what it is: the sentence beside it says so, and a guess will do.
        "public_rows": public(
            "Rows in all, about",
            "A number of rows that may be public, for the private draw alone. Not from these data.",
            renewed=True,
            asked="Rows in all, about, for a private draw",
            width=230,
        ),
        "alpha": Field(
            "α of the population",
            "User $j$ contributes a share $p_j \\propto j^{-(1+\\alpha)}$. The larger α, the more a few users "
            "hold.",
            sentence="The α of the population",
            step=0.25,
        ),
        "population_rows": Field(
            "Rows n in a sample",
            "From 10 to 10,000,000. Each row comes from user $j$ with probability $p_j$.",
            sentence="The number of rows n",
        ),
        "draws": public(
            "Samples to draw", "The paper averages 100.", sentence="The number of samples to draw"
        ),
    },
    also=From.DATA.each("whose_cap", "draws_job", "cost_job", "cost_again") | From.PUBLIC.each("tabs"),
)
