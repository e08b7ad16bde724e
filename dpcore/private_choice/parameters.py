"""The settings of a private choice: everything but the data, all of it public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpcore.answer.answer import MAX_VARIANCE_SHARE, ReleaseSetting
from dpcore.code.release_spec import Quantity
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import ASSUMED_USER_SHARE, DEFAULT_DELTA, Measure, NoiseKind
from dpcore.common.parameters import LINE, Option, Parameters, of_data, program_choice, public
from dpcore.common.privacy import Ledger, Neighbours
from dpcore.common.programs import Program, find_noise
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.mean.private_counts import compute_relative_noise
from dpcore.private_choice.budget import (
    SELECTION_SHARE_OF_MEAN,
    SELECTION_SHARE_OF_RANGE,
    SELECTION_SHARE_OF_SUM,
    EpsilonShares,
    divide_budget,
)
from dpcore.private_choice.choice import FACTOR_RANGE, ChoiceProblem, Prior, SmallFirst
from dpcore.private_choice.private_histogram import HistogramNoise, HistogramParameters, PublicBins
from dpcore.private_choice.scores import CapMean, RankedSum, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import PRIOR_POWER_OF_TABLE, Condition, TableCap, TableSmooth

DELTA_RANGE = (1e-15, 0.5)
DEFAULT_LARGEST_BOUND = 10_000
DEFAULT_EXACT_UP_TO = 10


class BoundPurpose(Option):
    """The number that is to be chosen."""

    SMOOTH = "smooth", "Mean, smooth weights"
    CAP = "cap", "Mean"
    SUM = "sum", "Count of rows"
    QUANTILE = "quantile", "Quantile of rows per user"


class OtherBound(Option):
    """A bound that is selected on the page that asks for it, and there alone; with its name in sentences."""

    QUANTILE_SMOOTH = "quantile-smooth", "bound of a quantile's smooth weights"
    QUANTILE_CAP = "quantile-cap", "bound on rows per user for a quantile"
    MODEL = "model", "bound on rows per user for a learner"
    TOTAL = "total", "bound on a user's total"


QUANTILE_NUMBER_KINDS = (OtherBound.QUANTILE_SMOOTH, OtherBound.QUANTILE_CAP)


class NumberPair(Option):
    """Two numbers that are selected with one epsilon; with their name in sentences."""

    PAIR = "pair", "pair of bounds per group"
    RANGE = "range", "range of a value, L and U"


NumberKind = BoundPurpose | OtherBound | NumberPair
"""What can be selected privately."""
NAME_BY_NUMBER: dict[NumberKind, str] = {
    **{number: number.label for number in (*OtherBound, *NumberPair)},
    BoundPurpose.SMOOTH: "bound of the smooth weights",
    BoundPurpose.CAP: "bound on rows per user",
    BoundPurpose.SUM: "bound on rows per user",
    BoundPurpose.QUANTILE: "quantile of rows per user",
}


class Relation(Option):
    """The neighbouring relation, in a word that links can carry."""

    ADD_OR_REMOVE = "add-or-remove", "Add or remove one user"
    REPLACE = "replace", "Replace one user"

    @property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation that the option stands for."""
        return Neighbours.REPLACE_USER if self is Relation.REPLACE else Neighbours.ADD_OR_REMOVE_USER


def choose_defaults(dataset: Dataset) -> Mapping[str, Any]:
    """Return the default of ``user_share`` by its name; it is the same for all data."""
    return {"user_share": ASSUMED_USER_SHARE}


MEAN_PURPOSES = (BoundPurpose.SMOOTH, BoundPurpose.CAP)


def find_share(number_kind: NumberKind) -> float:
    """Return the share of a total epsilon that a selection takes."""
    if number_kind is NumberPair.RANGE:
        return SELECTION_SHARE_OF_RANGE
    return (
        SELECTION_SHARE_OF_SUM
        if number_kind in (BoundPurpose.SUM, OtherBound.TOTAL, NumberPair.PAIR)
        else SELECTION_SHARE_OF_MEAN
    )


FOR_MEAN, FOR_SUM = ("purpose", MEAN_PURPOSES), ("purpose", (BoundPurpose.SUM,))
IF_RELEASE = ("purpose", (*MEAN_PURPOSES, BoundPurpose.SUM))
LABEL_BY_HISTOGRAM_NOISE = {HistogramNoise.LAPLACE: "Laplace", HistogramNoise.GAUSSIAN: "Gaussian"}


@dataclass(frozen=True)
class PrivateParameters(Parameters):
    """The parameters of the page, everything but the data; all of them are public."""

    purpose: BoundPurpose = public.choice(
        BoundPurpose.SMOOTH,
        "What the bound is for",
        name="the number to choose",
        uses_select_box=True,
        width=194,
        place=LINE,
        former_name="wanted",
    )
    """The direct choice aims at this; a DP histogram serves all."""
    selection_epsilon: float = public.number(
        0.1,
        "ε of the choice",
        EPSILON_RANGE,
        width=118,
        place=LINE,
        only_with=("is_total_epsilon", (False,)),
        former_name="epsilon_choice",
    )
    """Comes on top of the privacy budget of the release that will use the bound."""
    is_total_epsilon: bool = public.flag(False, "ε in all", name="that ε is the total", place=LINE)
    """ε is the total: it covers choosing the bound, too. A mean's bound takes 15 %, a sum's 30 %, a range 20 %. The
    release takes the rest."""
    largest: int = public.number(
        DEFAULT_LARGEST_BOUND, "Public maximum of rows per user", (1, MAX_SIZE), is_renewed=True
    )
    """From what the quantity is, not from the data. No bound above it is chosen."""
    variance_share: float = of_data.number(
        MAX_VARIANCE_SHARE,
        "Variance of a value / (highest − lowest)²",
        (0.0, MAX_VARIANCE_SHARE),
        name="the variance of a value",
        unit="share of (U − L)²",
        only_with=FOR_MEAN,
    )
    """From what the quantity is, not from the data; 0.25 is the worst case, half of the values at either end."""
    user_share: float = of_data.number(
        0.0,
        "Share ρ of the variance between users",
        (0.0, 1.0),
        unit="assumed",
        initial=ASSUMED_USER_SHARE,
        step=0.05,
        only_with=FOR_MEAN,
    )
    """How alike rows of one user are, an assumption as on *Mean*. 0: rows are independent, as in the paper."""
    margin: float = public.number(
        0.0, "Margin, in users", (0.0, 1e12), name="the margin", unit="users", only_with=FOR_SUM
    )
    """How many users more than 1/ε to leave above the bound: a little bias against draws that land above all users. A
    draw adds 2/ε users by itself, at most as many again."""
    release_delta: float | None = public.number(
        None,
        "δ of the release, if Gaussian",
        DELTA_RANGE,
        name="δ of a release with Gaussian noise",
        is_required=False,
        placeholder="Laplace",
        only_with=IF_RELEASE,
    )
    """Empty for Laplace noise."""
    program: Program = program_choice(width=200, only_with=IF_RELEASE)
    """The choice aims at the least error under its noise."""
    quantile: float = public.number(
        0.95,
        "Quantile, as a share",
        name="the quantile of rows per user",
        former_name="share",
        only_with=("purpose", (BoundPurpose.QUANTILE,)),
    )
    """0.95: the smallest number that at least 95 % of the users do not exceed."""
    guess: float | None = of_data.number(
        None, "Public guess of the number", (1, MAX_SIZE), unit="rows per user", placeholder="none"
    )
    """Optional, for the direct choice: what you expect from other data or experience, never from these data."""
    guess_factor: float | None = public.number(
        None, "Factor of the guess", FACTOR_RANGE, initial=2.0, former_name="factor"
    )
    """The answer lies within it with a chance of about two in three."""
    relation: Relation = public.choice(
        Relation.ADD_OR_REMOVE,
        "Neighbouring data sets",
        name="neighbouring data: one user",
        uses_select_box=True,
    )
    """Replace: the number of users is public, and a histogram needs twice the noise."""
    mechanism: HistogramNoise = public.choice(
        HistogramNoise.LAPLACE, "Noise of the DP histogram", LABEL_BY_HISTOGRAM_NOISE, former_name="noise"
    )
    """Discrete Laplace for ε-DP, discrete Gaussian for (ε, δ)-DP, by OpenDP."""
    delta: float | None = public.number(
        None,
        "δ",
        DELTA_RANGE,
        name="δ of a DP histogram",
        initial=DEFAULT_DELTA,
        width=110,
        only_with=("mechanism", (HistogramNoise.GAUSSIAN,)),
    )
    """The probability that ε does not hold. Well below 1 / (number of users)."""

    def _check_together(self, problems: Problems) -> None:
        """Add problems of fields that do not go together: a guess without its factor, a mean without variance."""
        problems.inside(0.0, 1.0, **{"the quantile of rows per user": self.quantile})
        if (self.guess is None) != (self.guess_factor is None):
            problems.add("a guess goes with a factor that says how good it is")
        if self.purpose in MEAN_PURPOSES and self.variance_share == 0.0:
            problems.positive(**{"the variance of a value": self.variance_share})
        if self.purpose in MEAN_PURPOSES and not problems.entries:
            with problems.collecting():
                CapMean(self.trade_off)

    def divide(self, ledger: Ledger | None = None) -> PrivateParameters:
        """Return the parameters with the total epsilon divided between choice and release.

        Unchanged if epsilon is no total.

        Args:
            ledger: What was released from the data before; it takes from the total.

        Raises:
            InvalidInput: Too little is left of the total.
        """
        epsilon_shares = self.find_shares(ledger)
        if epsilon_shares is None:
            return self
        divided_parameters = replace(self, epsilon=epsilon_shares.release_epsilon, is_total_epsilon=False)
        return replace(divided_parameters, selection_epsilon=epsilon_shares.selection_epsilon)

    def find_shares(self, ledger: Ledger | None = None) -> EpsilonShares | None:
        """Divide the total epsilon after these releases; None if epsilon is no total."""
        if not self.is_total_epsilon:
            return None
        selection_share, neighbours = find_share(self.purpose), self.relation.neighbours
        return divide_budget(self.epsilon, selection_share, neighbours, ledger or Ledger())

    @property
    def trade_off(self) -> float:
        """Return A = sigma^2 / (variance of the program's noise), for the mean with the largest error.

        With Laplace noise whose budget is not split it is sigma^2 / (2 (B / epsilon)^2).
        """
        return self.variance_share / compute_relative_noise(self.epsilon, self.program, self.release_delta)

    @property
    def release_noise(self) -> NoiseKind:
        """Return the noise of the release that the bound is for."""
        return NoiseKind.LAPLACE if self.release_delta is None else NoiseKind.GAUSSIAN

    @property
    def price(self) -> float:
        """Return the mean magnitude of a sum's noise per unit of its bound.

        It is a number of users: so many lie above the best bound.
        """
        drawn_noise = find_noise(self.program, self.release_noise, self.epsilon, self.release_delta)
        return float(drawn_noise.compute_mean_magnitude(1.0))

    @property
    def condition(self) -> Condition:
        """Build the condition that the best number fulfils."""
        if self.purpose is BoundPurpose.SUM:
            return RankedSum(self.price, self.margin)
        if self.purpose is BoundPurpose.QUANTILE:
            return SizeQuantile(self.quantile)
        is_smooth = self.purpose is BoundPurpose.SMOOTH
        if self.user_share:
            return (TableSmooth if is_smooth else TableCap)(self.trade_off, self.user_share)
        return (SmoothMean if is_smooth else CapMean)(self.trade_off)

    @property
    def setting(self) -> ReleaseSetting | None:
        """Return the setting of the release that the number is for; None for a quantile of rows per user."""
        neighbours, user_share_of_mean = self.relation.neighbours, self.user_share
        if self.purpose is BoundPurpose.QUANTILE:
            return None
        if self.purpose in MEAN_PURPOSES:
            setting = ReleaseSetting(Quantity.MEAN, self.epsilon, neighbours, user_share=user_share_of_mean)
            setting = replace(
                setting, variance_share=self.variance_share, targets_table_mean=user_share_of_mean > 0.0
            )
        else:
            setting = ReleaseSetting(Quantity.COUNT, self.epsilon, neighbours, measure=Measure.BOUND)
            setting = replace(setting, margin_users=self.margin)
        return replace(setting, noise=self.release_noise, delta=self.release_delta, program=self.program)

    @classmethod
    def from_release(cls, setting: ReleaseSetting, **choice_fields: Any) -> PrivateParameters | None:
        """Build the parameters of a draw of the bound of a release; None if no draw aims at that bound.

        Numbers that were read off values do not enter: the worst case of their variance takes their place, and what is
        usually assumed of users. Users who differ count for the mean of a table, not for that of a population. If
        counts are public, a bound needs no draw.

        Args:
            setting: Of the release.
            choice_fields: Further fields: ``selection_epsilon``, ``largest``, ``margin``.
        """
        if setting.neighbours is not Relation.ADD_OR_REMOVE.neighbours:
            return None
        choice_fields |= {"release_delta": setting.delta, "program": setting.program}
        if setting.statistic is Quantity.COUNT:
            return cls(setting.epsilon, BoundPurpose.SUM, **choice_fields)
        if setting.statistic is not Quantity.MEAN:
            return None
        variance_share, user_share = setting.variance_share, setting.user_share
        if setting.uses_values or variance_share is None:
            variance_share = MAX_VARIANCE_SHARE
        if setting.uses_values:
            user_share = ASSUMED_USER_SHARE
        rho = user_share if setting.targets_table_mean else 0.0
        return cls(
            setting.epsilon, BoundPurpose.CAP, variance_share=variance_share, user_share=rho, **choice_fields
        )

    @property
    def choice(self) -> ChoiceProblem:
        """Build the problem of the direct choice, with its prior."""
        prior: Prior | SmallFirst | None = None
        if self.guess is not None and self.guess_factor is not None:
            prior = Prior(self.guess, self.guess_factor)
        elif self.purpose is not BoundPurpose.QUANTILE:
            # A quantile too high misses by as many users as one too low, and needs no such prior.
            prior = (
                SmallFirst(PRIOR_POWER_OF_TABLE)
                if self.user_share and self.purpose in MEAN_PURPOSES
                else SmallFirst()
            )
        largest, neighbours = int(self.largest), self.relation.neighbours
        return ChoiceProblem(self.condition, self.selection_epsilon, largest, neighbours, prior)

    @property
    def histogram_parameters(self) -> HistogramParameters:
        """Build the settings of the DP histogram."""
        largest = int(self.largest)
        bins = PublicBins(exact_up_to=min(DEFAULT_EXACT_UP_TO, largest), largest=largest)
        return HistogramParameters(
            self.selection_epsilon, bins, self.mechanism, self.delta, self.relation.neighbours
        )
