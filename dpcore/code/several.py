"""Several releases of one table from one budget, as one program with one accountant.

Each release takes an integer number of parts of the budget. The budget has 32 binary digits and there are 2^20 parts.
So a part and all sums of parts are exact in float64, and no library's arithmetic exceeds the budget.

OpenDP 0.16.0, run by the tests: ``Context.compositor(split_by_weights=...)`` divides the budget by the map of its own
composition (``Context.d_mids``); a query is given its share when it is built, so each is released before the next is
built. PipelineDP 0.3.1: ``NaiveBudgetAccountant(aggregation_weights=...)`` with the same ``budget_weight`` in every
aggregation; a mean halves its own. With Gaussian noise ``PLDBudgetAccountant``, whose weights are reciprocals of
sigma: roots of shares. Tumult 0.21.0: one session, one ``evaluate`` with a budget per query. BigQuery: a query per
release, with its share of epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcore.code import (
    common,
    release_noise,
    with_bigquery,
    with_opendp,
    with_pipelinedp,
    with_python,
    with_tumult,
)
from dpcore.code.release_spec import (
    GROUP_QUANTITIES,
    SPREAD_QUANTITIES,
    VALUE_QUANTITIES,
    Code,
    Quantity,
    ReleaseSpec,
)
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours, Provenance
from dpcore.common.programs import DrawnNoise, Program, find_share_noise, find_total_budget
from dpcore.common.wording import format_count

NUM_PARTS = 2**20
SHARED_COUNT_NAME = "rows of the means"
"""Name of a count of rows that only the means need."""
PLAN_QUANTITIES = (
    Quantity.COUNT,
    Quantity.SUM,
    Quantity.MEAN,
    *SPREAD_QUANTITIES,
    Quantity.QUANTILE,
    *GROUP_QUANTITIES[:-1],
)
"""Quantities that may be among several releases; a count of users is a count of rows with a bound of one."""

VECTOR_QUANTITIES = (Quantity.MEAN, *SPREAD_QUANTITIES)
"""Quantities of several sums, which OpenDP's context would split a budget between."""


@dataclass(frozen=True)
class ReleaseShare:
    """One of several releases, with its share of the budget.

    Attributes:
        name: Unique name among the results.
        spec: The release and its bound; its own noise and epsilon are ignored.
        num_parts: Its share of the budget in parts of 2^20, at least 1.
        rows_release: Name of the release of rows, under the same bound, that a mean divides its sum by; empty if the
            mean releases a pair of sums. Plain Python and OpenDP have it; other libraries release the mean by itself.
    """

    name: str
    spec: ReleaseSpec
    num_parts: int
    rows_release: str = ""


@dataclass(frozen=True)
class ReleasePlan:
    """Releases of one table from one budget; neighbours add or remove one user.

    Attributes:
        releases: At least one, all of the same table, columns and value bounds.
        epsilon: Epsilon of all releases together.
        noise: Noise of all releases; a quantile uses the exponential mechanism.
        delta: In (0, 1) with Gaussian noise; None with Laplace noise.
        zero_names: Names of releases that are published as 0 without using the data.

    Raises:
        InvalidInput: All problems at once.
    """

    releases: tuple[ReleaseShare, ...]
    epsilon: float
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    zero_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        with Problems() as problems:
            if not self.releases:
                problems.add("there is nothing to release")
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if (self.noise is NoiseKind.GAUSSIAN) != (self.delta is not None):
                problems.add("Gaussian noise, and no other, has a delta")
            if any(release.num_parts < 1 for release in self.releases) or self.num_spent_parts > NUM_PARTS:
                problems.add(f"shares are whole parts, at least 1 each and at most {NUM_PARTS} in all")
            release_names = [release.name for release in self.releases]
            if len(set(release_names)) < len(release_names):
                problems.add("two releases have one name")
            max_rows_by_name = {release.name: release.spec.max_rows for release in self.releases}
            for release in self.releases:
                spec, rows_name = release.spec, release.rows_release
                if rows_name and max_rows_by_name.get(rows_name) != spec.max_rows:
                    problems.add(f"{release.name} divides by rows that have another bound")
                if spec.quantity not in PLAN_QUANTITIES or spec.max_norm is not None:
                    problems.add(f"{release.name} is no release of several")
                if spec.neighbours is not Neighbours.ADD_OR_REMOVE_USER:
                    problems.add(f"{release.name} is not for neighbours that add or remove one user")

    @property
    def num_spent_parts(self) -> int:
        """Return the number of parts of the budget that are spent."""
        return sum(release.num_parts for release in self.releases)

    @property
    def quantities(self) -> frozenset[Quantity]:
        """Return the released quantities."""
        return frozenset(release.spec.quantity for release in self.releases)

    @property
    def has_quantile(self) -> bool:
        """Return True if a quantile is released."""
        return Quantity.QUANTILE in self.quantities

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Return the columns of values, first the one that quantiles and sums per group are of."""
        specs = [release.spec for release in self.releases if release.spec.quantity in VALUE_QUANTITIES]
        specs.sort(key=lambda spec: spec.quantity in (Quantity.SUM, *VECTOR_QUANTITIES))
        return tuple(dict.fromkeys(spec.value_column for spec in specs))

    def compute_total_budget(self, program: Program) -> float:
        """Compute the budget that a program divides: epsilon, or rho with Gaussian noise, in 32 binary digits."""
        noise_arguments = (program, self.noise, self.epsilon, self.delta)
        return find_total_budget(*noise_arguments, has_quantile=self.has_quantile)

    def find_noise(self, release: ReleaseShare, program: Program) -> DrawnNoise:
        """Find the noise of one release by a program, at sensitivity 1."""
        return find_share_noise(
            program,
            self.noise,
            self.epsilon,
            self.delta,
            release.num_parts / NUM_PARTS,
            has_quantile=self.has_quantile,
            is_of_counts=release_noise.has_whole_numbers(release.spec),
            num_aggregates=release_noise.count_aggregates(release.spec),
        )

    @property
    def has_known_columns(self) -> bool:
        """Return True if the names are the data's own, as in `ReleaseSpec`."""
        return self.releases[0].spec.has_known_columns

    @property
    def disclosure(self) -> Provenance:
        """Return the provenance of bounds and shares, as in `ReleaseSpec`."""
        return self.releases[0].spec.disclosure

    @property
    def reading_spec(self) -> ReleaseSpec:
        """Return a made-up spec that reads all columns that the releases need.

        Its quantity and bounds are dummies.
        """
        first_spec = self.releases[0].spec
        specs = [release.spec for release in self.releases]
        group_spec = next((spec for spec in specs if spec.quantity in GROUP_QUANTITIES), None)
        value_specs = [spec for spec in specs if spec.quantity in VALUE_QUANTITIES]
        value_specs = [spec for spec in value_specs if spec.value_column == self.value_columns[0]]
        range_spec = next((spec for spec in value_specs if spec.lower is not None), None)
        has_values, has_groups = bool(value_specs), group_spec is not None
        quantity_pairs = (Quantity.COUNT, Quantity.GROUP_COUNTS), (Quantity.SUM, Quantity.GROUP_SUMS)
        return replace(
            first_spec,
            # It determines the columns that are read; its bounds are dummies, as a spec must have some.
            quantity=quantity_pairs[has_values][has_groups],
            max_rows=None if has_values or has_groups else 1,
            max_total=1.0 if has_values else None,
            max_groups=1 if has_groups else None,
            epsilon=self.epsilon,
            noise=self.noise,
            delta=self.delta,
            threshold=None,
            clamps_users=False,
            weight_of_rows=1.0,
            weight_of_users=0.0,
            user_share=0.0,
            quantiles=(),
            min_total=0.0,
            value_column=(*value_specs, first_spec)[0].value_column,
            group_column=(group_spec or first_spec).group_column,
            groups=() if group_spec is None else group_spec.groups,
            edges=() if group_spec is None else group_spec.edges,
            lower=None if range_spec is None else range_spec.lower,
            upper=None if range_spec is None else range_spec.upper,
        )

    @property
    def description(self) -> str:
        """Return a phrase with the number of releases, the budget, and each release's name and bound."""
        delta_text = "" if self.delta is None else f" and delta = {self.delta!r}"
        releases_text = "; ".join(f"{release.name}, {release.spec.bound_text}" for release in self.releases)
        count_text = format_count(len(self.releases), "release")
        return f"{count_text} from one budget of epsilon = {self.epsilon!r}{delta_text}: {releases_text}"


def write_for_python(plan: ReleasePlan) -> Code:
    """Write the program in plain Python."""
    difference_sentences = _list_common_differences(plan, uses_rho=plan.has_quantile)
    return _write_program(plan, Program.PYTHON, difference_sentences)


def write_for_opendp(plan: ReleasePlan) -> Code:
    """Write the program for OpenDP's context.

    Weights by user, which OpenDP lacks, are replaced by bounds on rows.
    """
    plan, weight_sentences = _bound_rows_of_quantiles(plan, "OpenDP")
    # Means draw outside the context, after its queries, whose shares come first.
    sorted_releases = sorted(plan.releases, key=lambda release: release.spec.quantity in VECTOR_QUANTITIES)
    plan = replace(plan, releases=tuple(sorted_releases))
    difference_sentences = [*_list_common_differences(plan), *weight_sentences]
    if plan.has_quantile:
        law_text = (
            "" if plan.noise is NoiseKind.GAUSSIAN else " by permute-and-flip (McKenna and Sheldon 2020)"
        )
        difference_sentences.append(
            f"OpenDP picks a quantile{law_text} from {with_opendp.NUM_CANDIDATES:,} values laid evenly over the range."
        )
    if plan.quantities & set(VECTOR_QUANTITIES):
        difference_sentences.append(with_opendp.PAIRED_SUMS_SENTENCE)
    return _write_program(plan, Program.OPENDP, difference_sentences)


def write_for_pipelinedp(plan: ReleasePlan) -> Code:
    """Write the program for PipelineDP, or only the sentences on why there is none."""
    plan, weight_sentences = _bound_rows_of_quantiles(_drop_shared_count(plan), "PipelineDP")
    difference_sentences = [*_list_common_differences(plan, uses_rho=False), *weight_sentences]
    if plan.has_quantile:
        difference_sentences.append(_TREE_SENTENCE.format(library="PipelineDP"))
    if plan.noise is NoiseKind.GAUSSIAN:
        difference_sentences.append(
            "PipelineDP composes the privacy losses of all releases: its noise is that of the exact Gaussian "
            "mechanism, or up to 0.1 % more. Its documentation calls this accountant experimental."
        )
    elif Quantity.MEAN in plan.quantities:
        difference_sentences.append(_SPLIT_MEAN_SENTENCE.format(library="PipelineDP"))
    refusal_sentences = _list_refusals(plan, "PipelineDP")
    if plan.has_quantile and plan.noise is NoiseKind.GAUSSIAN:
        refusal_sentences.append(
            "The error of a quantile in PipelineDP's tree is known with Laplace noise alone: OpenDP, Tumult and plain "
            "Python have a program with Gaussian noise."
        )
    return _write_program(plan, Program.PIPELINEDP, difference_sentences, refusal_sentences)


def write_for_tumult(plan: ReleasePlan) -> Code:
    """Write the program for Tumult Analytics, or only the sentences on why there is none."""
    plan, weight_sentences = _bound_rows_of_quantiles(_drop_shared_count(plan), "Tumult")
    difference_sentences = [*_list_common_differences(plan), *weight_sentences]
    if plan.quantities & {Quantity.SUM, Quantity.GROUP_SUMS}:
        difference_sentences.append(
            "Tumult has no clamp for a user's total. Totals are added up before the session and stand in every row of "
            "the user; the session counts one of these rows and bounds what stands in it."
        )
    if Quantity.MEAN in plan.quantities and plan.noise is NoiseKind.LAPLACE:
        difference_sentences.append(_SPLIT_MEAN_SENTENCE.format(library="Tumult"))
    return _write_program(plan, Program.TUMULT, difference_sentences, _list_refusals(plan, "Tumult"))


def write_for_bigquery(plan: ReleasePlan) -> Code:
    """Write a BigQuery query for each release, or only the sentences on why there are none."""
    plan, weight_sentences = _bound_rows_of_quantiles(_drop_shared_count(plan), "BigQuery")
    spec, refusal_sentences = plan.reading_spec, _list_refusals(plan, "BigQuery")
    difference_sentences = [
        "BigQuery has no accountant: nothing but these shares holds the sum of the epsilons.",
        "BigQuery draws Laplace noise whatever noise is chosen.",
        *weight_sentences,
        *([_TREE_SENTENCE.format(library="BigQuery")] if plan.has_quantile else []),
    ]
    if any(map(with_bigquery.makes_bins, (release.spec for release in plan.releases))):
        refusal_sentences.append(with_bigquery.NO_BINS_SENTENCE)
    query_texts = []
    for release in plan.releases if not refusal_sentences else ():
        release_epsilon = plan.compute_total_budget(Program.BIGQUERY) * release.num_parts / NUM_PARTS
        if release_epsilon < EPSILON_RANGE[0]:
            refusal_sentences.append(f"The share of {release.name} is too small for a query of its own.")
            break
        single_spec = replace(release.spec, epsilon=release_epsilon, noise=NoiseKind.LAPLACE, delta=None)
        query_texts.append(f"-- {release.name}\n{with_bigquery.write_statements(single_spec)}")
        difference_sentences += with_bigquery.list_differences(single_spec)
    return common.assemble_code(
        spec,
        with_bigquery.LIBRARY_NAME,
        with_bigquery.RELATION_SENTENCE,
        refusal_sentences or list(dict.fromkeys(difference_sentences)),
        "" if refusal_sentences else "\n\n".join(query_texts),
        language="sql",
        subject_text=plan.description,
        file_stem="plan",
    )


_TREE_SENTENCE = (
    "{library} finds quantiles in a tree with noise on every node, which errs more than OpenDP. Where this library is "
    "chosen on the page, shares and errors are for it."
)
_NO_SPREAD_SENTENCE = (
    "For {library} there is no program with a variance: plain Python and OpenDP release three sums at one share, which "
    "{library} would split between them."
)
_SPLIT_MEAN_SENTENCE = (
    "{library} gives half of the mean's share to the sum and half to the number of rows. OpenDP and plain Python "
    "release a pair of sums at one share, with less noise; where this library is chosen on the page, shares and errors "
    "are for it."
)


def _drop_shared_count(plan: ReleasePlan) -> ReleasePlan:
    """Return the releases without a count that only means need, for libraries that release each mean by itself."""
    kept_releases = tuple(release for release in plan.releases if release.name != SHARED_COUNT_NAME)
    return replace(plan, releases=tuple(replace(release, rows_release="") for release in kept_releases))


def _has_row_weights(spec: ReleaseSpec) -> bool:
    """Return True if a release has smooth weights and does not clamp users."""
    return spec.threshold is not None and not spec.clamps_users


def _bound_rows_of_quantiles(plan: ReleasePlan, library_name: str) -> tuple[ReleasePlan, list[str]]:
    """Return (releases with bounds on rows in place of smooth weights, sentences on it).

    There are no sentences if no release has such weights.
    """
    weighted_names = [release.name for release in plan.releases if _has_row_weights(release.spec)]
    if not weighted_names:
        return plan, []
    row_bound_sentence = (
        f"{library_name} counts all rows of a quantile alike, and the plan weighs those of "
        f"{' and '.join(weighted_names)} by user. This program keeps at most as many rows per user as the plan "
        f"lets a user weigh. Plain Python has the weights; a plan made for {library_name} states the errors of this "
        "program."
    )
    return replace(plan, releases=tuple(map(_replace_weights_by_rows, plan.releases))), [row_bound_sentence]


def _replace_weights_by_rows(release: ReleaseShare) -> ReleaseShare:
    """Return a release with a bound on rows in place of smooth weights; others are returned unchanged."""
    threshold = release.spec.threshold
    if threshold is None or not _has_row_weights(release.spec):
        return release
    return replace(release, spec=replace(release.spec, threshold=None, max_rows=max(round(threshold), 1)))


def _list_refusals(plan: ReleasePlan, library_name: str) -> list[str]:
    """List the sentences on why a library has no program; none if it has one."""
    clamps_users = any(release.spec.clamps_users for release in plan.releases)
    refusal_sentences = [common.CLAMPS_ROWS_SENTENCE.format(library=library_name)] if clamps_users else []
    if plan.quantities & set(SPREAD_QUANTITIES):
        refusal_sentences.append(_NO_SPREAD_SENTENCE.format(library=library_name))
    if len(plan.value_columns) > 1 and library_name != Program.BIGQUERY.value:
        refusal_sentences.append(
            f"For {library_name} there is no program of several value columns: plain Python and OpenDP have it."
        )
    return refusal_sentences


def _list_common_differences(plan: ReleasePlan, uses_rho: bool = True) -> list[str]:
    """List the sentences for every library.

    ``uses_rho`` is True if Gaussian noise is accounted for by rho.
    """
    sentences = []
    if plan.noise is NoiseKind.GAUSSIAN and uses_rho:
        sentences.append(
            "Gaussian releases add up in rho of zero-concentrated DP; the epsilons of single releases do not add up. "
            "The total rho is the largest that OpenDP converts to epsilon at delta."
        )
    if plan.zero_names:
        zero_names_text = " and ".join(plan.zero_names)
        sentences.append(f"Published as 0, as any noise would be more than it is worth: {zero_names_text}.")
    if plan.quantities & set(GROUP_QUANTITIES):
        sentences.append(common.PUBLIC_GROUPS_SENTENCE)
    if Quantity.MEAN in plan.quantities:
        sentences.append(common.AT_LEAST_ONE_SENTENCE)
    shares_source_text = "come from where the bounds come from, and say as much about the data"
    return [*sentences, f"Shares of the budget {shares_source_text}."]


_MODULES_BY_PROGRAM: dict[Program, tuple[str, Any, str]] = {
    Program.PYTHON: ("several_python.py", with_python, common.ADD_OR_REMOVE_SENTENCE),
    Program.OPENDP: ("several_opendp.py", with_opendp, with_opendp.RELATION_SENTENCE),
    Program.PIPELINEDP: ("several_pipelinedp.py", with_pipelinedp, common.ADD_OR_REMOVE_SENTENCE),
    Program.TUMULT: ("several_tumult.py", with_tumult, with_tumult.RELATION_SENTENCE),
}
"""Template, module with name and requirements, and relation of neighbours."""


def _write_program(
    plan: ReleasePlan, program: Program, sentences: Sequence[str], refusal_sentences: Sequence[str] = ()
) -> Code:
    """Build the program of several releases; without text, but with the sentences, if it is refused."""
    template_name, library_module, relation_sentence = _MODULES_BY_PROGRAM[program]
    spec, body_text = plan.reading_spec, ""
    uses_loss_accountant = program is Program.PIPELINEDP and plan.noise is NoiseKind.GAUSSIAN
    value_columns = plan.value_columns
    is_short = program is Program.OPENDP and with_opendp.has_short_program(spec) and len(value_columns) < 2
    if not refusal_sentences:
        body_text = common.render_program(
            template_name,
            spec,
            plan=plan,
            total=None if uses_loss_accountant else plan.compute_total_budget(program),
            by_rho=plan.has_quantile or program is not Program.PYTHON,
            releases=[_list_template_values(plan, release, program) for release in plan.releases],
            parts_by_name={release.name: release.num_parts for release in plan.releases},
            names=sorted(quantity.name for quantity in plan.quantities),
            candidates=getattr(library_module, "NUM_CANDIDATES", 0),
            tidy=is_short,
            further=value_columns[1:],
            replacement_by_column=_find_replacements(plan),
        )
    requirements_text = with_opendp.POLARS_REQUIREMENTS if is_short else library_module.REQUIREMENTS
    requirements_text += " dp-accounting" if uses_loss_accountant else ""
    return common.assemble_code(
        spec,
        library_module.LIBRARY_NAME,
        relation_sentence,
        refusal_sentences or sentences,
        body_text,
        common.add_readers(requirements_text, spec),
        subject_text=plan.description,
        file_stem="plan",
    )


def _find_noise(
    plan: ReleasePlan, release: ReleaseShare, program: Program
) -> release_noise.ReleaseNoise | None:
    """Find the noise that the program of a release reports."""
    release_noise_law, rows_noise = plan.find_noise(release, program), None
    if release.rows_release and program in (Program.PYTHON, Program.OPENDP):
        (count_releases,) = (other for other in plan.releases if other.name == release.rows_release)
        rows_noise = plan.find_noise(count_releases, program)
    return release_noise.find_release_noise(release.spec, program, release_noise_law, rows_noise)


def _find_replacements(plan: ReleasePlan) -> dict[str, float]:
    """Find for each column of values what stands for a cell without a number: the lower end of a range, or 0."""
    specs = [release.spec for release in plan.releases if release.spec.quantity in VALUE_QUANTITIES]
    replacement_by_column = dict.fromkeys(plan.value_columns, 0.0)
    return replacement_by_column | {spec.value_column: spec.lower for spec in specs if spec.lower is not None}


def _list_template_values(plan: ReleasePlan, release: ReleaseShare, program: Program) -> dict[str, Any]:
    """Return the values that the template uses for one release, by name."""
    spec = release.spec
    min_total, max_total = spec.min_total, spec.max_total
    column_index = plan.value_columns.index(spec.value_column) if spec.quantity in VALUE_QUANTITIES else 0
    specs = [release.spec for release in plan.releases]
    distinct_ranges = {(spec.lower, spec.upper) for spec in specs if spec.lower is not None}
    has_own_range = len(distinct_ranges) > 1 and spec.lower is not None
    return {
        # The column in pandas, its name in Polars, and what names of that column end in.
        "value": common.write_python_literal(spec.value_column) if column_index else "VALUE",
        "suffix": f"_{column_index + 1}" if column_index else "",
        "range": (spec.lower, spec.upper) if has_own_range else None,
        "name": release.name,
        "kind": spec.quantity.name,
        "parts": release.num_parts,
        "max_rows": spec.max_rows,
        "max_groups": spec.max_groups,
        "threshold": spec.threshold,
        "clamps_users": spec.clamps_users,
        "grows": spec.reweights_rows,
        "user_share": spec.user_share,
        "weight_of_rows": spec.weight_of_rows,
        "weight_of_users": spec.weight_of_users,
        # That of a user with one row.
        "least_weight": min(spec.threshold or 1.0, spec.weight_of_rows + spec.weight_of_users),
        "q": spec.quantiles[0] if spec.quantiles else None,
        "percents": with_pipelinedp.list_percents(spec),
        "low": min_total,
        "high": max_total,
        "most": None if max_total is None else max(abs(min_total), abs(max_total)),
        "rows_release": release.rows_release,
        "noise": _find_noise(plan, release, program),
    }
