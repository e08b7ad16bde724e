"""Several releases of one table from one budget, as one program with one accountant.

Each release takes whole parts of the budget. The budget has 32 binary digits and there are 2^20 parts, so that a part
and all sums of parts are exact in float64, and no library's arithmetic charges more than the budget.

OpenDP 0.16.0, run by the tests: ``Context.compositor(split_by_weights=...)`` divides the budget by the map of its own
composition (``Context.d_mids``); a query is given its share when it is built, so each is released before the next is
built. PipelineDP 0.3.1: ``NaiveBudgetAccountant(aggregation_weights=...)`` with the same ``budget_weight`` in every
aggregation; a mean halves its own. Tumult 0.21.0: one session, one ``evaluate`` with a budget per query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcore.code import common, templates, with_opendp, with_pipelinedp, with_python, with_tumult
from dpcore.code.choice import OF_VALUES, PER_GROUP, Choice, Code, Released
from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours, Provenance

PARTS = 2**20
RELEASED = (
    Released.COUNT,
    Released.SUM,
    Released.MEAN,
    Released.QUANTILE,
    Released.GROUP_COUNTS,
    Released.GROUP_ROWS,
    Released.GROUP_SUMS,
)
"""What may be among several releases; a count of users is a count of rows, at most one of each user."""


@dataclass(frozen=True)
class Part:
    """One release of several.

    Attributes:
        name: What it is called among the results, unlike all others.
        choice: What is released under which bound; its noise and its epsilon are those of all, whatever it says.
        parts: Its share of the budget in parts of 2^20, at least 1.
    """

    name: str
    choice: Choice
    parts: int


@dataclass(frozen=True)
class Several:
    """Releases of one table from one budget; neighbours add or remove one user.

    Attributes:
        releases: At least one, all of the same table, columns and value bounds.
        epsilon: Of all together.
        total: What adds up: epsilon, or rho of zero-concentrated DP with Gaussian noise, in 32 binary digits.
        noise: On all of them; a quantile is picked by the exponential mechanism.
        delta: In (0, 1) with Gaussian noise; None with Laplace noise.
        nothing: Names of releases that are 0 without looking at the data.

    Raises:
        InvalidInput: All problems at once.
    """

    releases: tuple[Part, ...]
    epsilon: float
    total: float
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    nothing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        with Problems() as problems:
            if not self.releases:
                problems.add("there is nothing to release")
            problems.positive(total=self.total)
            if (self.noise is NoiseKind.GAUSSIAN) != (self.delta is not None):
                problems.add("Gaussian noise, and no other, has a delta")
            if self.noise is NoiseKind.LAPLACE and self.total > self.epsilon:
                problems.add("the releases would spend more than epsilon")
            if any(part.parts < 1 for part in self.releases) or self.parts > PARTS:
                problems.add(f"shares are whole parts, at least 1 each and at most {PARTS} in all")
            if float(self.total).as_integer_ratio()[0].bit_length() > 32:
                problems.add("the budget has more than 32 binary digits")
            names = [part.name for part in self.releases]
            if len(set(names)) < len(names):
                problems.add("two releases have one name")
            for part in self.releases:
                if part.choice.released not in RELEASED or part.choice.max_norm is not None:
                    problems.add(f"{part.name} is no release of several")
                if part.choice.neighbours is not Neighbours.ADD_OR_REMOVE_USER:
                    problems.add(f"{part.name} is not for neighbours that add or remove one user")

    @property
    def parts(self) -> int:
        """Return how many parts of the budget are spent."""
        return sum(part.parts for part in self.releases)

    @property
    def kinds(self) -> frozenset[Released]:
        """Return what is released."""
        return frozenset(part.choice.released for part in self.releases)

    @property
    def known_columns(self) -> bool:
        """As in `Choice`."""
        return self.releases[0].choice.known_columns

    @property
    def disclosure(self) -> Provenance:
        """Where bounds and shares come from, as in `Choice`."""
        return self.releases[0].choice.disclosure

    @property
    def read(self) -> Choice:
        """Return what reads the table as all releases need it."""
        first = self.releases[0].choice
        groups = next((p.choice for p in self.releases if p.choice.released in PER_GROUP), None)
        values = next((p.choice for p in self.releases if p.choice.released in OF_VALUES), None)
        ranged = next((p.choice for p in self.releases if p.choice.lower is not None), None)
        # It says which columns are read; its bounds are there only because a choice has some.
        kind = Released.COUNT
        bound: dict[str, Any] = {"max_rows": 1, "max_total": None, "max_groups": None}
        if values is not None:
            kind, bound = Released.SUM, {"max_rows": None, "max_total": 1.0, "max_groups": None}
        if groups is not None and values is None:
            kind, bound = Released.GROUP_COUNTS, {"max_rows": None, "max_total": None, "max_groups": 1}
        elif groups is not None:
            kind, bound = Released.GROUP_SUMS, {"max_rows": None, "max_total": 1.0, "max_groups": 1}
        return replace(
            first,
            released=kind,
            epsilon=self.epsilon,
            noise=self.noise,
            delta=self.delta,
            threshold=None,
            quantiles=(),
            min_total=0.0,
            value_column=first.value_column if values is None else values.value_column,
            group_column=first.group_column if groups is None else groups.group_column,
            lower=None if ranged is None else ranged.lower,
            upper=None if ranged is None else ranged.upper,
            **bound,
        )

    @property
    def words(self) -> str:
        """Return what is released, as a phrase."""
        delta = "" if self.delta is None else f" and delta = {self.delta!r}"
        each = "; ".join(f"{part.name}, {part.choice.bound_words}" for part in self.releases)
        many = wording.counted(len(self.releases), "release")
        return f"{many} from one budget of epsilon = {self.epsilon!r}{delta}: {each}"


def for_python(several: Several) -> Code:
    """Return the program in plain Python."""
    return _written(several, "several_python.py", with_python.LIBRARY, with_python.NEEDS, _common(several))


def for_opendp(several: Several) -> Code:
    """The program for OpenDP's context, with a bound on rows in place of weights by user, which OpenDP lacks."""
    by_user = [part.name for part in several.releases if part.choice.threshold is not None]
    several = replace(several, releases=tuple(map(_rows_for_weights, several.releases)))
    told = _common(several)
    if by_user:
        told.append(
            "OpenDP counts all rows of a quantile alike, and the plan weighs those of "
            f"{' and '.join(by_user)} by user. This program keeps at most as many rows of each user as the plan lets a "
            "user weigh. Plain Python has the weights; a plan made for OpenDP states the errors of this program."
        )
    if Released.QUANTILE in several.kinds:
        told.append(
            f"OpenDP picks a quantile from {with_opendp.CANDIDATES:,} values laid evenly over the range, the page from "
            "the whole range."
        )
        if several.noise is NoiseKind.LAPLACE:
            told.append(with_opendp.PERMUTE_AND_FLIP)
    if Released.MEAN in several.kinds and several.noise is NoiseKind.LAPLACE:
        told.append(_SPLIT_MEAN.format(library="OpenDP"))
    return _written(
        several,
        "several_opendp.py",
        with_opendp.LIBRARY,
        with_opendp.NEEDS,
        told,
        with_opendp.RELATION,
    )


def for_pipelinedp(several: Several) -> Code:
    """Return the program for PipelineDP."""
    refused = _no_quantile(several, "PipelineDP")
    if several.noise is NoiseKind.GAUSSIAN:
        refused.append(
            "PipelineDP's accountant divides epsilon and delta among Gaussian releases, which takes about twice the "
            "noise of this plan; its tighter accountant does not work with its engine yet. OpenDP, Tumult and plain "
            "Python draw the noise of this plan, and PipelineDP that of a plan with Laplace noise."
        )
    told = _common(several, ratio=False)
    if Released.MEAN in several.kinds:
        told.append(_SPLIT_MEAN.format(library="PipelineDP"))
    return _written(
        several,
        "several_pipelinedp.py",
        with_pipelinedp.LIBRARY,
        with_pipelinedp.NEEDS,
        told,
        refused=refused,
    )


def for_tumult(several: Several) -> Code:
    """Return the program for Tumult Analytics."""
    refused = _no_quantile(several, "Tumult")
    told = _common(several)
    if several.kinds & {Released.SUM, Released.GROUP_SUMS}:
        told.append(
            "Tumult has no clamp for a user's total. Totals are added up before the session and stand in every row of "
            "the user; the session counts one of these rows and bounds what stands in it."
        )
    if Released.MEAN in several.kinds and several.noise is NoiseKind.LAPLACE:
        told.append(_SPLIT_MEAN.format(library="Tumult"))
    return _written(
        several,
        "several_tumult.py",
        with_tumult.LIBRARY,
        with_tumult.NEEDS,
        told,
        with_tumult.RELATION,
        refused,
    )


def for_bigquery(several: Several) -> Code:
    """Return the sentences: there is no program."""
    told = (
        "BigQuery has no accountant: each query spends an epsilon of its own, and nothing holds their sum. Write one "
        "query per release, with its bound and its share of epsilon, or take another library's program."
    )
    return Code("", "sql", "several_bigquery.sql", (told,))


_SPLIT_MEAN = (
    "{library} gives half of the mean's share to the sum and half to the number of rows. Plain Python releases a pair "
    "of sums at one share, with less noise; where this library is chosen on the page, shares and errors are for it."
)


def _rows_for_weights(part: Part) -> Part:
    """Return the part with a bound on rows of the same size where it weighs rows by user."""
    if (threshold := part.choice.threshold) is None:
        return part
    return replace(part, choice=replace(part.choice, threshold=None, max_rows=max(round(threshold), 1)))


def _no_quantile(several: Several, library: str) -> list[str]:
    if Released.QUANTILE not in several.kinds:
        return []
    return [
        f"{library} finds quantiles in a way of its own, of which this plan knows no error: OpenDP and plain Python "
        "draw those of the plan. Without them there is a program for this library, too."
    ]


def _common(several: Several, ratio: bool = True) -> list[str]:
    """Return what holds in every library; ``ratio``: whether the program divides noisy numbers itself."""
    told = []
    if several.noise is NoiseKind.GAUSSIAN:
        told.append(
            "What adds up over Gaussian releases is rho of zero-concentrated DP; the epsilons of single releases do "
            "not. The whole rho is the largest that OpenDP converts to epsilon at delta."
        )
    if several.nothing:
        names = " and ".join(several.nothing)
        told.append(f"Published as 0, as any noise would be more than it is worth: {names}.")
    if several.kinds & set(PER_GROUP):
        told.append(common.PUBLIC_GROUPS)
    if Released.MEAN in several.kinds and ratio:
        told.append(common.AT_LEAST_ONE)
    told.append("Shares of the budget come from where the bounds come from, and say as much about the data.")
    return told


def _written(
    several: Several,
    template: str,
    library: str,
    needs: str,
    told: Sequence[str],
    relation: str = common.ADD_OR_REMOVE,
    refused: Sequence[str] = (),
) -> Code:
    choice = several.read
    body = ""
    if not refused:
        body = templates.program(
            template,
            choice,
            several=several,
            releases=[_line(part) for part in several.releases],
            names=sorted(kind.name for kind in several.kinds),
            candidates=with_opendp.CANDIDATES if library == with_opendp.LIBRARY else with_python.CANDIDATES,
        )
    return common.put_together(
        choice,
        library,
        relation,
        refused or told,
        body,
        common.with_readers(needs, choice),
        what=several.words,
        called="plan",
    )


def _line(part: Part) -> dict[str, Any]:
    """Return what a template says of a release."""
    chosen = part.choice
    low, high = chosen.min_total, chosen.max_total
    return {
        "name": part.name,
        "kind": chosen.released.name,
        "parts": part.parts,
        "max_rows": chosen.max_rows,
        "max_groups": chosen.max_groups,
        "threshold": chosen.threshold,
        "q": chosen.quantiles[0] if chosen.quantiles else None,
        "low": low,
        "high": high,
        "most": None if high is None else max(abs(low), abs(high)),
    }
