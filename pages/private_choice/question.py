"""Choose privately: what it asks, and what a person enters."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common.alike import ASSUMED_SHARE
from dpcore.common.noise_error import DEFAULT_DELTA
from dpcore.private_choice.parameters import DEFAULT_LARGEST, Relation, Wanted
from dpcore.private_choice.private_histogram import CopyNoise
from pages.private_choice.forms import Known, PageParameters
from pages.shared.base.question import DELTA, Facet, Field, From, Question, public

_PUBLIC = "Public: from what the quantity is, not from the data."
QUESTION = Question(
    name="private_choice",
    title="Choose privately",
    icon=":material/shield_lock:",
    url_path="choose-privately",
    group="Privacy",
    step="{wanted}",
    lead="A bound chosen on private data tells something about them. **What does it cost to choose it with an ε of its "
    "own?**",
    sentence="My data are private: how do I choose the bound without leaking, and what does that cost?",
    answers_from=(Facet.ROWS,),
    parameters=PageParameters,
    fields={
        "wanted": public(
            "What the bound is for",
            "The private choice aims at what is best for this question. A private copy serves all of them. The pair of "
            "bounds per group has a tab below, and *Per group* a button.",
            report_label="Number to choose",
            options={
                Wanted.SMOOTH: "Mean, smooth weights",
                Wanted.CAP: "Mean",
                Wanted.SUM: "Count of rows",
                Wanted.QUANTILE: "Quantile of rows per user",
            },
            as_list=True,
            width=194,
        ),
        "epsilon_choice": public(
            "ε of the choice",
            "Comes on top of the privacy budget beside it, which is that of the release that will use the bound.",
            width=118,
        ),
        "relation": public(
            "Neighbouring data sets",
            "Under both, who has how many rows is private. Replace: the number of users is public, and a copy "
            "needs twice the noise.",
            report_label="Neighbouring data: one user",
            options={Relation.ADD_OR_REMOVE: "Add or remove one user", Relation.REPLACE: "Replace one user"},
            as_list=True,
        ),
        "noise": public(
            "Noise of the private copy",
            "Discrete Laplace noise for ε-DP, discrete Gaussian noise for (ε, δ)-DP, drawn by OpenDP.",
            report_label="Noise of a private copy",
            options={CopyNoise.LAPLACE: "Laplace", CopyNoise.GAUSSIAN: "Gaussian"},
        ),
        "delta": replace(DELTA, report_label="δ of a private copy", initial=DEFAULT_DELTA, width=None),
        # What the mechanism takes for public is public: nobody may read these off private data.
        "largest": public(
            "Public maximum of rows per user",
            "From what the quantity is or how it was collected, not from the data. No bound above it is chosen; "
            "users with more count as having this many in a copy.",
            name="The public maximum",
            initial=float(DEFAULT_LARGEST),
            renewed=True,
        ),
        "variance_share": Field(
            "Variance of a value / (highest − lowest)²",
            "The best bound depends on the values through this number alone. The worst case is 0.25: half of the "
            "values at either end. Take it from what the quantity is, not from the data.",
            name="The variance of a value",
            report_label="Variance of a value, share of (U − L)²",
        ),
        "user_share": Field(
            "Share ρ of the variance between users",
            "How alike rows of one user are, for the mean of this table. An assumption, as on *Mean*; not read off "
            "private data. 0: rows are independent, as in the paper.",
            name="The share between users",
            report_label="Share of the variance between users, assumed",
            initial=ASSUMED_SHARE,
            step=0.05,
        ),
        "share": public(
            "Quantile, as a share",
            "0.95: the smallest number that at least 95 % of the users do not exceed.",
            name="The quantile",
            report_label="Quantile of rows per user",
        ),
        "margin": public(
            "Margin, in users",
            "The best bound has 1/ε users above it. These are few: a draw easily lands above them all, where "
            "more noise is all that it brings. Aiming at this many users more costs a little bias instead. A draw adds "
            "2/ε users by itself, at most as many again.",
            name="The margin",
            report_label="Margin, users",
        ),
        "release_delta": public(
            "δ of the release, if Gaussian",
            "Empty for a count with Laplace noise. With Gaussian noise another bound is best, by its δ.",
            report_label="δ of a release with Gaussian noise",
            placeholder="Laplace",
        ),
        "guess": Field(
            "Public guess of the number",
            "Optional, for the direct choice: what you expect from other data or from experience. It steers the "
            "draw where the data say little, as for a sum. It must not come from these data.",
            report_label="Public guess, rows per user",
            placeholder="none",
        ),
        "factor": public(
            "Right within a factor of",
            "The answer lies within this factor of the guess with a chance of about two in three.",
            name="The factor of the guess",
            report_label="The guess is good to a factor of",
            initial=2.0,
        ),
        "pair_unit": public(
            "Unit of an amount",
            "What amounts are rounded to: cents, or whole euros. Public: from what the quantity is, not from the data.",
            report_label="Unit of an amount",
            width=170,
            renewed=True,
        ),
        "pair_largest": public(
            "Highest amount",
            f"No L∞ above it is drawn. {_PUBLIC}",
            report_label="Highest amount",
            width=170,
            renewed=True,
        ),
        "range_known": public(
            "You know",
            report_label="Known of the values",
            options={
                Known.TYPICAL: "A typical value",
                Known.LOWEST: "The lowest, L",
                Known.NEITHER: "Neither",
            },
        ),
        "range_centre": public(
            "Typical value",
            f"Near the middle. {_PUBLIC}",
            report_label="Typical value",
            width=130,
            renewed=True,
        ),
        "range_lower": public(
            "Lowest value L",
            f"Then U alone is drawn. {_PUBLIC}",
            report_label="Lowest value",
            width=130,
            renewed=True,
        ),
        "range_unit": public(
            "Smallest distance",
            f"No end is drawn closer to the value that you know. {_PUBLIC}",
            report_label="Smallest distance of an end",
            width=150,
            renewed=True,
        ),
        "range_largest": public(
            "Largest distance",
            f"No end is drawn farther from it. {_PUBLIC}",
            report_label="Largest distance of an end",
            width=150,
            renewed=True,
        ),
        "range_users": public(
            "Users, about",
            "From what you know. Whether a draw is of use depends on it; the number in the data is private.",
            report_label="Users, about",
            width=260,
            renewed=True,
        ),
        "range_bound": public(
            "Public bound, rows",
            "A bound on rows per user that you know or that was published, not one read off the data. A user counts as "
            "having at most so many rows beyond an end. Empty: the bound that was drawn before, or 1.",
            report_label="Public bound on rows per user",
            placeholder="optional",
            width=150,
            renewed=True,
        ),
        "range_epsilon": public(
            "ε of the range", "Comes on top of all others.", report_label="ε of the range", width=110
        ),
    },
    also=From.PUBLIC.each("tabs", "choices", "empty_copy", "drew", "variance_followed", "users_followed")
    | From.DATA.each("curves_job", "curves_job_earlier", "users_job", "refused"),
    draws=True,
    range_on=lambda asked: "Mean" if asked.wanted in (Wanted.SMOOTH, Wanted.CAP) else "",
)
