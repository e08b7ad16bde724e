"""The bias of a cap, bounded four ways, each with what it needs to know.

Keep at most tau = tau_0 n rows of each user. With p_j = n_j / n, the shares become
q_j = min(n_j, tau) / n_tau, and a hypothesis whose risk on user j is L_j is judged wrongly by
|sum_j (q_j - p_j) L_j|: the bias of Amin et al. 2019, theorem 1, which carries it twice.

Derivations, losses in [0, 1], x = 1 - n_tau / n and u = tau / n_tau:

(i) sum_j (q_j - p_j) L_j is largest at L_j = 1 where q_j > p_j and 0 elsewhere, so over all losses the bias
    is the total variation distance TV(p, q) = sum_j (p_j - q_j)_+. A user below the cap has
    q_j = n_j / n_tau >= p_j; one above has q_j = u. Hence TV = sum_j (p_j - u)_+. As q_j is at least
    min(n_j, tau) / n, TV is at most sum_j (p_j - min(n_j, tau) / n) = x.
(ii) Pinsker: TV <= sqrt(KL(q || p) / 2), and q_j / p_j <= n / n_tau gives KL(q || p) <= log(n / n_tau). The
    paper's proof bounds the L1 distance, 2 TV, by sqrt(KL / 2), which Pinsker does not give (and it writes
    KL(r || q') for what it computes as KL(q' || r)). The result stands because losses lie in [0, 1], where
    the sum is at most TV. For losses in [-1, 1], which the proposition's |L| <= 1 would admit, it does not. The bias
    then reaches 2 TV, and everything here that uses TV has to be doubled. x <= (ii) since -log(1 - x) >= 2 x^2 on [0,
    1).
(iii) sum_j (q_j - p_j) L_j = sum_j sqrt(p_j) (L_j - L) (q_j - p_j) / sqrt(p_j) for L = sum_j p_j L_j, so that
    Cauchy-Schwarz gives sqrt(Var chi^2) with chi^2 = sum_j (q_j - p_j)^2 / p_j = sum_j q_j^2 / p_j - 1. The
    paper pairs all users first and bounds sum_j q_j^2 / p_j <= n / n_tau: sqrt(2 Var n / n_tau), which does
    not vanish where nobody is capped. Definition 6 centres Var(h) at the population's risk; any centre other
    than L makes it larger, so the bound holds with either. At Var = 1/4, the largest that losses in [0, 1]
    allow, sqrt(chi^2) / 2 >= TV: knowing nothing about Var, (i) is at least as good.
(iv) n_tau >= tau where tau <= n (appendix C, proposition 4, which writes ">"; one user alone has equality),
    so n / n_tau <= 1 / tau_0. The text says the bound falls to zero as tau_0 -> 0; it does as tau_0 -> 1.
Corollary 1 puts log(1 / (1 - x)) <= 2 x, valid for x <= 3/4, into (ii): sqrt(x). As 2 x <= 2 sqrt(x), twice
    the cut share beats its 2 sqrt(x) everywhere, and needs nothing more.

Every bound falls as tau rises: n_tau grows; u = tau / (S + q tau) grows (S rows at or below tau, q users
above), so TV falls; and the derivative of chi^2 + 1 = n (S + tau^2 I) / n_tau^2, with I the sum of 1 / n_j
above tau, has the sign of S (tau I - q) <= 0.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from dpcore.contributions import FloatArray, SumsAtBounds

ROUNDING_BY_FIELD = {"cut_share": 1e-14, "total_variation": 3e-14, "chi_squared": 1e-13}
RELATIVE_ROUNDING = 1e-10
"""Allowed for rounding of differences of sums: in parts of the rows of users above the cap
(`CapStatistics.capped_row_share`), and of the difference itself. Measured against fractions and, for 1e6 distinct
sizes, long double: total variation 7e-15, chi-squared 5e-14 up to 1 and 1e-15 of itself above."""

COROLLARY_KEPT_SHARE = 0.25
"""Corollary 1 speaks of no smaller n_tau / n."""


_NEEDS_SHARES_TEXT = "Every user's share of the rows"
_NEEDS_KEPT_SHARE_TEXT = "The share of rows kept"
_AND_VARIANCE_TEXT = ", and Var(H)"
_WORST_CASE_LATEX = r"\sum_j (n_j/n - \tau/n_\tau)_+"
_LOG_KEPT_LATEX = r"\sqrt{\tfrac12 \log(n/n_\tau)}"
_VARIANCE_LATEX = r"\sqrt{2\,(n/n_\tau) \operatorname{Var}(H)}"
_CHI_SQUARED_LATEX = r"\sqrt{\operatorname{Var}(H)\,\chi^2}"
_FRACTION_LATEX = r"\sqrt{2 \operatorname{Var}(H)/\tau_0}"
_LEAST_KEPT_LATEX = rf"\min\{{{_LOG_KEPT_LATEX},\; {_VARIANCE_LATEX}\}}"
_LEAST_LATEX = rf"\min\{{{_WORST_CASE_LATEX},\; {_CHI_SQUARED_LATEX}\}}"


class BiasTerm(enum.Enum):
    """A bound on the bias, and what it needs to know.

    Only WORST_CASE <= CUT_SHARE <= LOG_KEPT is an order that always holds; the variance forms compare with
    none of these.

    Attributes:
        way_numerals: The ways to which it belongs, of i to iv; two where it is the smaller of two bounds.
        title: A short name.
        formula: The bound in symbols, LaTeX.
        needs_text: The knowledge that it takes to state it, a sentence without its full stop.
    """

    way_numerals: str
    title: str
    formula: str
    needs_text: str

    def __new__(cls, value: str, ways: str, title: str, formula: str, needs: str) -> Self:
        """Create a member with this value and these four texts as its attributes."""
        member = object.__new__(cls)
        member._value_ = value
        member.way_numerals = ways
        member.title = title
        member.formula = formula
        member.needs_text = needs
        return member

    # Total variation distance of the shares, and an upper bound on it.
    WORST_CASE = "worst_case", "i", "Worst case, exact", _WORST_CASE_LATEX, _NEEDS_SHARES_TEXT
    CUT_SHARE = "cut_share", "i", "Share of rows cut", r"1 - n_\tau/n", _NEEDS_KEPT_SHARE_TEXT
    # Amin et al. 2019, proposition 1; the third is proposition 3 with a tighter Cauchy-Schwarz step.
    LOG_KEPT = "log_kept", "ii", "Log of the share kept", _LOG_KEPT_LATEX, _NEEDS_KEPT_SHARE_TEXT
    VARIANCE_KEPT = (
        "variance_kept",
        "iii",
        "Variance between users",
        _VARIANCE_LATEX,
        _NEEDS_KEPT_SHARE_TEXT + _AND_VARIANCE_TEXT,
    )
    CHI_SQUARED = (
        "chi_squared",
        "iii",
        "Variance between users, sharper",
        _CHI_SQUARED_LATEX,
        _NEEDS_SHARES_TEXT + _AND_VARIANCE_TEXT,
    )
    # Proposition 1, second line.
    LOG_FRACTION = "log_fraction", "iv", "Log of τ₀", r"\sqrt{\tfrac12 \log(1/\tau_0)}", "Nothing but τ₀"
    VARIANCE_FRACTION = (
        "variance_fraction",
        "iv",
        "Variance over τ₀",
        _FRACTION_LATEX,
        "τ₀" + _AND_VARIANCE_TEXT,
    )
    COROLLARY_1 = (
        "corollary_1",
        "iv",
        "Corollary 1",
        r"\sqrt{1 - n_\tau/n}",
        _NEEDS_KEPT_SHARE_TEXT + ", at least 25 %",
    )
    PROPOSITION_1 = (
        "proposition_1",
        "ii, iii",
        "Proposition 1",
        _LEAST_KEPT_LATEX,
        _NEEDS_KEPT_SHARE_TEXT + _AND_VARIANCE_TEXT,
    )
    TIGHTEST = "tightest", "i, iii", "Tightest here", _LEAST_LATEX, _NEEDS_SHARES_TEXT + _AND_VARIANCE_TEXT

    @property
    def needs_shares(self) -> bool:
        """Return True if every user's share is needed, not only the share of rows kept."""
        return self.needs_text.startswith(_NEEDS_SHARES_TEXT)

    @property
    def needs_variance(self) -> bool:
        """Return True if the bound uses Var(H), possibly with other facts on the loss."""
        return self.needs_text.endswith(_AND_VARIANCE_TEXT)

    @property
    def needs_only_the_fraction(self) -> bool:
        """Return True for the two bounds computed without data, from tau_0 and in one case Var(H)."""
        return self in (BiasTerm.LOG_FRACTION, BiasTerm.VARIANCE_FRACTION)


@dataclass(frozen=True)
class CapStatistics:
    """The users' shares under caps; every field has the shape of the caps.

    Attributes:
        fraction: tau_0, in (0, 1].
        kept_share: n_tau / n; 0 where the cap is below one row.
        cut_share: 1 - n_tau / n, without cancellation.
        users_capped: Users with more rows than the cap; all where it is below one row.
        max_share: min(tau, max n_j) / n_tau, the largest share of what is kept that one user holds; nan where
            nothing is kept.
        total_variation: sum_j (n_j / n - tau / n_tau)_+; nan where unknown.
        chi_squared: sum_j q_j^2 / p_j - 1; nan where unknown.
        capped_row_share: Share of all rows that users above the cap hold, uncut; 1, which promises nothing, where the
            sums behind the differences run over everybody.
    """

    fraction: FloatArray
    kept_share: FloatArray
    cut_share: FloatArray
    users_capped: FloatArray
    max_share: FloatArray
    total_variation: FloatArray
    chi_squared: FloatArray
    capped_row_share: FloatArray | float = 1.0

    def round_down(self) -> CapStatistics:
        """Return a copy with cut share, total variation and chi-squared lowered by the most that rounding adds."""
        rounded_fields = {
            field_name: np.maximum(
                getattr(self, field_name) * (1.0 - RELATIVE_ROUNDING)
                - rounding_allowance * self.capped_row_share,
                0.0,
            )
            for field_name, rounding_allowance in ROUNDING_BY_FIELD.items()
        }
        return replace(self, **rounded_fields)


class AboveSums(NamedTuple):
    """Two functions that sum over the users above each bound alone, without the rounding of a difference of totals.

    Attributes:
        sum_rows: Sum of what the users above each bound hold.
        sum_excess: Sum of what they hold beyond the bound.
    """

    sum_rows: Callable[[FloatArray], FloatArray]
    sum_excess: Callable[[FloatArray], FloatArray]


def compute_cap_statistics(
    sum_pieces: Callable[[FloatArray], SumsAtBounds],
    caps: FloatArray,
    *,
    total_rows: float,
    largest_size: float,
    above_sums: AboveSums | None = None,
) -> CapStatistics:
    """Compute `CapStatistics` of each cap from sums over the users below and above it.

    Rows may be counted, or measured as shares of all.

    Args:
        sum_pieces: Sums over users at or below and above each bound (rows, or shares of the whole).
        caps: The caps, above 0, any shape, in the unit of the sums.
        total_rows: n, or 1 where the unit is a share.
        largest_size: The heaviest user's size.
        above_sums: Sums over the users above alone; where not given, they are the total less the others', whose
            rounding is that of the total.
    """
    rows_below, num_users_above, inverse_size_sums = sum_pieces(caps)
    kept_rows = rows_below + caps * num_users_above
    u = caps / kept_rows
    # n u: users above it lose share. It is at least the cap; rounded below it, it would count everybody at the cap.
    losing_sizes = np.maximum(total_rows * u, caps)
    rows_below_losing, num_users_losing, _ = sum_pieces(losing_sizes)
    caps_nobody = num_users_above == 0.0
    if above_sums is None:
        rows_share_of_capped_users = (total_rows - rows_below) / total_rows
        rounding_shares = np.ones(np.shape(caps))
        # The sum of p_j - u over the users above n u.
        total_variations = np.maximum(
            (total_rows - rows_below_losing) / total_rows - u * num_users_losing, 0.0
        )
        cut_shares = np.maximum((total_rows - rows_below - caps * num_users_above) / total_rows, 0.0)
    else:
        rows_share_of_capped_users = rounding_shares = above_sums.sum_rows(caps) / total_rows
        total_variations = above_sums.sum_excess(losing_sizes) / total_rows
        cut_shares = above_sums.sum_excess(caps) / total_rows
    total_variations = np.where(caps_nobody, 0.0, total_variations)
    cut_shares = np.where(caps_nobody, 0.0, cut_shares)
    # chi^2 = sum (q_j - p_j)^2 / p_j, users below and above the cap apart, so that only the second cancels.
    # Below it q_j = p_j n / n_tau, above it q_j = u.
    chi_squared_below = (rows_below / total_rows) * (cut_shares * total_rows / kept_rows) ** 2
    chi_squared_above = (
        (total_rows * u * inverse_size_sums) * u - 2.0 * u * num_users_above + rows_share_of_capped_users
    )
    chi_squared = np.maximum(chi_squared_below + np.maximum(chi_squared_above, 0.0), 0.0)
    return CapStatistics(
        fraction=np.asarray(caps / total_rows),
        kept_share=np.asarray(kept_rows / total_rows),
        cut_share=np.asarray(cut_shares),
        users_capped=np.asarray(num_users_above),
        max_share=np.asarray(np.minimum(caps, largest_size) / kept_rows),
        total_variation=np.asarray(total_variations),
        chi_squared=np.where(caps_nobody, 0.0, chi_squared),
        capped_row_share=np.asarray(rounding_shares),
    )


def bound_bias(term: BiasTerm, statistics: CapStatistics, loss_variance: float) -> FloatArray:
    """Compute one bound on the bias (once, not twice) for each cap; infinite where it does not apply.

    Args:
        term: Which.
        statistics: What the caps do.
        loss_variance: Var(H) in [0, 1/4]: the largest variance over users of a hypothesis's risk.

    Returns:
        Bounds of the shape of the statistics; infinite where nothing is kept and, for Corollary 1, where less
        than a quarter is kept. Some exceed 1, which no bias in [0, 1] does: they say nothing there.

    Source: the module's docstring.
    """
    s, keeps_rows = statistics, statistics.kept_share > 0.0
    compared_terms_by_minimum = {
        BiasTerm.PROPOSITION_1: (BiasTerm.LOG_KEPT, BiasTerm.VARIANCE_KEPT),
        BiasTerm.TIGHTEST: (BiasTerm.WORST_CASE, BiasTerm.CHI_SQUARED),
    }
    if term in compared_terms_by_minimum:
        return np.minimum(
            *(
                bound_bias(compared_term, s, loss_variance)
                for compared_term in compared_terms_by_minimum[term]
            )
        )
    match term:
        case BiasTerm.WORST_CASE:
            bias_bounds = s.total_variation
        case BiasTerm.CUT_SHARE:
            bias_bounds = s.cut_share
        case BiasTerm.LOG_KEPT:
            # log(n / n_tau), through the cut share where little is cut.
            positive_kept_share = np.where(keeps_rows, s.kept_share, 1.0)
            log_of_small_cuts = -np.log1p(-np.minimum(s.cut_share, 0.5))
            bias_bounds = np.sqrt(
                0.5 * np.where(s.cut_share < 0.5, log_of_small_cuts, -np.log(positive_kept_share))
            )
        case BiasTerm.VARIANCE_KEPT:
            bias_bounds = np.sqrt(2.0 * loss_variance / np.where(keeps_rows, s.kept_share, 1.0))
        case BiasTerm.CHI_SQUARED:
            bias_bounds = np.sqrt(loss_variance * s.chi_squared)
        case BiasTerm.LOG_FRACTION:
            bias_bounds = np.sqrt(0.5 * np.maximum(-np.log(s.fraction), 0.0))
        case BiasTerm.VARIANCE_FRACTION:
            bias_bounds = np.sqrt(2.0 * loss_variance / s.fraction)
        case _:
            bias_bounds = np.where(s.kept_share >= COROLLARY_KEPT_SHARE, np.sqrt(s.cut_share), np.inf)
    return np.asarray(np.where(keeps_rows, bias_bounds, np.inf))
