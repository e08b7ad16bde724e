"""One program of several releases, run: each has its share of one budget, its bound, and the rows that count."""

from __future__ import annotations

import csv
import json
import math
import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from dpcore.code import LIBRARIES, Quantity, ReleasePlan, ReleaseShare, write
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, compute_gaussian_epsilon
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.plan import table
from dpcore.plan.parameters import Budget, PlanParameters
from dpcore.plan.solution import allocate_lines, make_program
from tests.dpcore.code import together
from tests.dpcore.code.files import FURTHER, NASTY
from tests.dpcore.code.specs import MODULES, PYTHON_AND_OPENDP, SURE, VALUES, make_spec, run_program

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
NOISES = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])


def events() -> dict[str, list[tuple[str, float]]]:
    """(product, amount) of each user's rows, read without any of our code."""
    rows_by_user = defaultdict(list)
    with (Path(samples.__file__).parents[2] / "sample_data" / "shop_events.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            rows_by_user[row["user_id"]].append((row["product"], float(row["amount"])))
    return rows_by_user


def near(plan: ReleasePlan, name: str, value: float, expected: float, spread: float = 0.0) -> None:
    """Within noise that is drawn with probability 1 - 1e-9, and a spread of the draw of rows."""
    share = next(release for release in plan.releases if release.name == name)
    amount = Fraction(share.num_parts) * Fraction(plan.compute_total_budget(Program.OPENDP)) / 2**20
    sensitivity = together.compute_move(share, plan.noise)
    # A library halves the share of a mean.
    noise = 2.0 * sensitivity / float(amount) * SURE
    if plan.noise is GAUSSIAN:
        noise = 2.0 * sensitivity / math.sqrt(2.0 * float(amount)) * 6.2
    assert abs(value - expected) <= noise + spread + 1.0, (name, value, expected)


def check_totals(plan: ReleasePlan, released: dict[str, Any]) -> None:
    """Of numbers that no draw of rows changes: users, rows and totals under their bounds, as they stand in the file."""
    users = events()
    near(plan, "users", released["users"], len(users))
    near(plan, "rows", released["rows"], sum(min(7, len(rows)) for rows in users.values()))
    totals = [sum(amount for _, amount in rows) for rows in users.values()]
    near(plan, "sum", released["sum"], math.fsum(min(total, 150.25) for total in totals))
    groups = Counter(group for rows in users.values() for group, _ in rows)
    for name in ("users per group", "rows per group", "sums per group"):
        assert sorted(released[name]) == sorted(groups)
    # Groups are drawn, three of each user: that many users are counted in all, with the noise of 40 groups.
    several = sum(min(3, len({group for group, _ in rows})) for rows in users.values())
    near(plan, "users per group", sum(released["users per group"].values()) / 40, several / 40)
    assert 30.0 < released["mean"] < 60.0


@pytest.mark.parametrize(("noise", "quantile"), [(LAPLACE, True), (GAUSSIAN, True), (GAUSSIAN, False)])
def test_plain_python_draws_for_its_share_and_no_more(folder: Path, noise: NoiseKind, quantile: bool) -> None:
    plan = together.make_several(noise, quantile)
    names, total = run_program(plan, Program.PYTHON), plan.compute_total_budget(Program.PYTHON)
    check_totals(plan, names["released"])
    if quantile:
        assert VALUES["lower"] <= names["released"]["quantile 0.75"] <= VALUES["upper"]
    else:
        # Without a quantile Gaussian noise is accounted for exactly: 1 / sigma^2 adds up.
        sigma = math.sqrt(0.5 / total)
        assert compute_gaussian_epsilon(sigma, together.DELTA) == pytest.approx(together.EPSILON, rel=1e-6)
    amount_spent = Fraction(0)
    for share in plan.releases:
        draw, _, loss = names["prepared"][share.name]
        amount = Fraction(share.num_parts) * Fraction(total) / 2**20
        # OpenDP's own map, at a sensitivity that is counted by hand.
        at_sensitivity = draw.map(together.compute_move(share, noise))
        if share.spec.quantity is Quantity.QUANTILE and noise is LAPLACE:
            at_sensitivity = math.sqrt(8.0 * at_sensitivity)  # of Gumbel noise it proves rho = epsilon^2 / 8
        assert at_sensitivity == pytest.approx(float(amount), rel=1e-5), share.name
        assert loss <= amount
        amount_spent += Fraction(loss)
    assert amount_spent <= Fraction(total)
    assert float(amount_spent) == pytest.approx(total * plan.num_spent_parts / 2**20, rel=1e-8)


@pytest.mark.long_but("NoiseKind.LAPLACE")
@NOISES
def test_opendp_gives_each_query_its_own_share(
    folder: Path, noise: NoiseKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opendp.extras.polars import LazyFrameQuery

    tables, release = [], LazyFrameQuery.release

    def recorded(query: Any) -> Any:
        tables.append(query.summarize())
        return release(query)

    monkeypatch.setattr(LazyFrameQuery, "release", recorded)
    plan = together.make_several(noise, quantile=True)
    # Unequal shares, of which one is more than the first: OpenDP would refuse or mix them if queries were built first.
    names = run_program(plan, Program.OPENDP)
    released = names["released"]
    check_totals(plan, released)
    assert VALUES["lower"] <= released["quantile 0.75"] <= VALUES["upper"]
    # A mean is a vector of two sums, outside the context.
    in_context = [share for share in plan.releases if share.spec.quantity is not Quantity.MEAN]
    for share, of_query in zip(in_context, tables, strict=True):
        amount = share.num_parts * plan.compute_total_budget(Program.OPENDP) / 2**20
        unit = 1.0 / amount if noise is LAPLACE else math.sqrt(0.5 / amount)
        # In whole steps a sum's bound is 2^30.
        steps = {Quantity.SUM: 2**30 / 150.25, Quantity.GROUP_SUMS: 2**30 / 133.5}
        expected = together.compute_move(share, noise) * steps.get(share.spec.quantity, 1.0)
        if share.spec.quantity is Quantity.QUANTILE:
            # Scores are whole: 4 times those of q = 3 / 4, and a pick of two scores that move apart takes twice. As for
            # its noise, so for its epsilon: exponential noise at epsilon, or Gumbel noise at epsilon^2 / 8 of rho.
            epsilon = amount if noise is LAPLACE else math.sqrt(8.0 * amount)
            assert of_query["scale"].to_list() == pytest.approx([2.0 * 4.0 * expected / epsilon], rel=1e-4)
        else:
            assert of_query["scale"].to_list() == pytest.approx([expected * unit], rel=1e-4)
            # The errors of the plan are of that noise.
            drawn = plan.find_noise(share, Program.OPENDP)
            assert drawn.unit_scale == pytest.approx(unit, rel=1e-8)
    (mean,) = (share for share in plan.releases if share.spec.quantity is Quantity.MEAN)
    pair = names["space"], {"scale": names["scale"]}
    drawn_by = names["dp"].m.make_laplace if noise is LAPLACE else names["dp"].m.make_gaussian
    loss = drawn_by(*pair[0], **pair[1]).map(together.compute_move(mean, noise))
    amount = mean.num_parts * plan.compute_total_budget(Program.OPENDP) / 2**20
    assert amount * (1.0 - 1e-5) < loss <= amount


def test_a_plan_is_written_with_its_parts_and_bounds_and_charged_at_most_epsilon(folder: Path) -> None:
    """The shares 0.1 and 0.2 of 1, which OpenDP charges as 0.30000000000000004 when they are given as they are."""
    import opendp.prelude as dp

    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)

    def composed(scales: list[float]) -> float:
        return float(dp.c.make_composition([dp.m.make_laplace(*space, scale=b) for b in scales]).map(1))

    def least_scale(share: float) -> float:
        scale = 1.0 / share
        return scale if dp.m.make_laplace(*space, scale=scale).map(1) <= share else math.nextafter(scale, 9e9)

    data = samples.load("shop-events")
    parameters = PlanParameters(1.0, lines="users; rows; sum", program=Program.OPENDP)
    lines = allocate_lines(data, parameters, table.plan_lines(data, parameters), [0.1, 0.2, 0.7])
    plan = make_program(data, parameters, lines)
    (folder / "sample_data").symlink_to(folder)
    assert [share.num_parts for share in plan.releases] == [line.num_parts for line in lines]
    assert [line.share for line in lines] == pytest.approx([0.1, 0.2, 0.7], abs=2.0**-20)
    each = [share.num_parts * parameters.budget.total / 2**20 for share in plan.releases]
    names = run_program(plan, Program.PYTHON)
    assert names["TOTAL"] == parameters.budget.total <= 1.0
    assert [item * names["TOTAL"] / 2**20 for item in names["SHARES"].values()] == each
    # What OpenDP charges: no more, added up without rounding.
    charged = run_program(plan, Program.OPENDP)["context"].current_privacy_loss()
    assert charged == pytest.approx(each, rel=1e-7)
    assert sum(map(Fraction, charged)) <= 1
    assert composed([least_scale(share) for share in each]) <= 1.0
    assert composed([least_scale(0.1), least_scale(0.2)]) > 0.3  # which is what parts are for


@pytest.mark.long
@PYTHON_AND_OPENDP
@NOISES
def test_every_release_is_told_at_once_with_its_noise(
    folder: Path,
    library: Program,
    noise: NoiseKind,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = together.make_several(noise, quantile=True)
    monkeypatch.setattr(sys, "argv", ["plan.py", "--json"])
    released = run_program(plan, library)["released"]
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {item["release"]: item["released"] for item in told} == released
    facts_by_name = {facts["release"]: facts for facts in told}
    for share in plan.releases:
        facts = facts_by_name[share.name]
        deviation, half_width = facts["noise_standard_error"], facts["noise_half_width_95"]
        if share.spec.quantity is Quantity.QUANTILE:
            assert deviation is half_width is None
            continue
        scale = together.compute_move(share, noise) * plan.find_noise(share, library).unit_scale
        real = scale * math.sqrt(noise.unit_variance)
        if share.spec.quantity is Quantity.MEAN:
            # To first order both noisy sums move the mean by at most their own size over the rows kept, about 1,229.
            assert real / 2.0 / 95.0 / 1229.0 < deviation < 1.05 * real / 1229.0
        elif library is Program.OPENDP and share.spec.quantity not in (Quantity.SUM, Quantity.GROUP_SUMS):
            assert real**2 - deviation**2 == pytest.approx(1.0 / 12.0, abs=1.0 / 12.0 + 1e-9)
        else:
            assert deviation == pytest.approx(real)
            widths = 1.959964 if noise is GAUSSIAN else math.log(20.0) / math.sqrt(2.0)
            assert half_width == pytest.approx(widths * deviation, rel=1e-6)


def test_a_program_that_would_spend_more_draws_nothing(folder: Path) -> None:
    text = write(together.make_several(), Program.PYTHON).text
    names: dict[str, Any] = {}
    with pytest.raises(SystemExit, match="no epsilon was spent"):
        exec(text.replace('"rows": 65536', '"rows": 165536'), names)
    assert not names["released"]
    text = write(together.make_several(GAUSSIAN, quantile=True), Program.PYTHON).text
    with pytest.raises(SystemExit, match="no epsilon was spent"):
        exec(text.replace("EPSILON, DELTA = 1000.0", "EPSILON, DELTA = 900.0"), {})


@pytest.mark.parametrize("library", [one for one in LIBRARIES if one is not Program.BIGQUERY])
def test_nothing_is_released_before_the_groups_of_private_data_are_written(
    folder: Path, library: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = MagicMock()
    for module in MODULES[:5]:
        monkeypatch.setitem(sys.modules, module, used)
    plan = together.make_several(disclosure=Disclosure.PRIVATE)
    with pytest.raises(SystemExit, match="list of groups"):
        run_program(plan, library)
    assert not used.method_calls


def test_each_library_says_in_one_sentence_what_it_cannot_do() -> None:
    ranked = together.make_several(quantile=True)
    by_user = ReleaseShare(
        "median", make_spec(Quantity.QUANTILE, threshold=7.3, quantiles=(0.5,), **VALUES), 1
    )
    weighted = replace(together.make_several(), releases=(*together.make_several().releases, by_user))
    program = write(replace(ranked, noise=NoiseKind.GAUSSIAN, delta=1e-6), Program.PIPELINEDP)
    assert not program.text
    (sentence,) = program.differences
    assert "with Laplace noise alone" in sentence
    for library in (Program.PIPELINEDP, Program.BIGQUERY):
        for noise in NoiseKind:
            assert write(together.make_several(noise), library).text
        for plan in (ranked, weighted):
            program = write(plan, library)
            assert any(
                sentence.startswith(f"{library.value} finds quantiles") for sentence in program.differences
            )
    assert "Metrics.PERCENTILE(75.0)" in write(ranked, Program.PIPELINEDP).text
    assert "PERCENTILE_CONT(" in write(ranked, Program.BIGQUERY).text
    assert write(ranked, Program.OPENDP).text
    assert write(ranked, Program.TUMULT).text
    assert write(weighted, Program.PYTHON).text


@pytest.mark.long
def test_opendp_bounds_rows_where_a_plan_weighs_them_by_user_and_says_so(folder: Path) -> None:
    by_user = ReleaseShare(
        "median", make_spec(Quantity.QUANTILE, threshold=7.3, quantiles=(0.5,), **VALUES), 1
    )
    weighted = replace(together.make_several(), releases=(*together.make_several().releases, by_user))
    program = write(weighted, Program.OPENDP)
    (sentence,) = (
        sentence for sentence in program.differences if "weighs those of median by user" in sentence
    )
    assert "Plain Python has the weights" in sentence
    bounded_by_rows = replace(by_user, spec=replace(by_user.spec, threshold=None, max_rows=7))
    as_asked = write(replace(weighted, releases=(*weighted.releases[:-1], bounded_by_rows)), Program.OPENDP)
    assert program.text.partition("# What differs")[0] == as_asked.text.partition("# What differs")[0]
    assert VALUES["lower"] <= run_program(weighted, Program.OPENDP)["released"]["median"] <= VALUES["upper"]


def test_shares_beyond_the_budget_are_refused() -> None:
    plan = together.make_several()
    more = (*plan.releases, ReleaseShare("again", plan.releases[0].spec, 2**17))
    for fields in ({"releases": more}, {"releases": ()}, {"epsilon": 0.0}, {"delta": 1e-6}):
        with pytest.raises(InvalidInput):
            replace(plan, **fields)


# All kinds of files are read by one template, which test_code_files.py tries on all of them.
@pytest.mark.long
@pytest.mark.parametrize("name", [*NASTY, "JSON", "Parquet", "nobody is a user"])
def test_a_file_is_read_as_the_app_reads_it(name: str, empty_folder: Path) -> None:
    nasty = {**NASTY, **FURTHER}[name]
    together.check_file(nasty, Program.PYTHON, empty_folder)
    if name in NASTY:
        together.check_file(nasty, Program.OPENDP, empty_folder)


@PYTHON_AND_OPENDP
@pytest.mark.parametrize("growth", [(1.0, 0.0, 0.0), (0.2, 0.7, 0.4)])
def test_a_mean_of_clamped_users_is_that_of_the_definition(
    library: Program, growth: tuple[float, float, float], empty_folder: Path
) -> None:
    """By hand at little noise; and leaving any user out moves both sums together by the sensitivity at most."""
    (per_row, per_user, rho), h, (lower, upper) = growth, 2.5, (10.0, 30.0)
    rows_by_user = {"a": [12.0], "b": [18.0, 35.0, 40.0], "c": [-500.0], "d": [1e6] * 6, "e": [20.0, 15.0]}
    names: dict[str, Any] = {"file": "few.csv", "privacy_unit": ("who",), "value_column": "what"}
    names |= {"weight_of_rows": per_row, "weight_of_users": per_user, "user_share": rho}
    choice = make_spec(Quantity.MEAN, threshold=h, clamps_users=True, lower=lower, upper=upper, **names)
    sums = {}
    for left_out in ("", *rows_by_user):
        lines = [f"{who},{v}" for who, values in rows_by_user.items() if who != left_out for v in values]
        (empty_folder / "few.csv").write_text("\n".join(["who,what", *lines, ""]))
        run = run_program(ReleasePlan((ReleaseShare("mean", choice, 2**20),), 1000.0), library)
        exact = run["prepared"]["mean"][1] if library is Program.PYTHON else list(run["sums"])
        sums[left_out] = exact, run["released"]["mean"]
    weights = {
        who: min(h, len(values) * (per_row + per_user / (1.0 + (len(values) - 1.0) * rho)))
        for who, values in rows_by_user.items()
    }
    limit = h * (upper - lower) / 2.0
    total = sum(
        max(-limit, min(limit, weights[who] * (sum(values) / len(values) - 20.0)))
        for who, values in rows_by_user.items()
    )
    assert sums[""][1] == pytest.approx(20.0 + total / sum(weights.values()), abs=0.2)
    moved = [sum(abs(a - b) for a, b in zip(sums[""][0], sums[who][0], strict=True)) for who in rows_by_user]
    assert max(moved) == pytest.approx(2.0 * limit)


@PYTHON_AND_OPENDP
def test_a_mean_divides_by_at_least_one_row_and_stays_in_its_range(
    library: Program, empty_folder: Path
) -> None:
    """Three rows, and noise on their number of some thousands: half count fewer than none; of nine, one does."""
    (empty_folder / "few.csv").write_text("who,what\na,30\na,40\nb,50\n")
    names: dict[str, Any] = {"file": "few.csv", "privacy_unit": ("who",), "value_column": "what", **VALUES}
    capped = make_spec(Quantity.MEAN, max_rows=2, epsilon=2.0**-10, **names)
    weighted = make_spec(Quantity.MEAN, threshold=2.5, epsilon=2.0**-10, **names)
    together_of = ReleasePlan((ReleaseShare("mean", capped, 2**20),), 2.0**-10)
    value = []
    for _ in range(3):
        value.append(run_program(together_of, library)["released"]["mean"])
        value += [run_program(choice, library)["mean"] for choice in (capped, weighted)]
    assert all(VALUES["lower"] <= item <= VALUES["upper"] for item in value), value


def test_the_whole_budget_of_gaussian_releases_is_what_opendp_converts_to_epsilon() -> None:
    import opendp.prelude as dp

    for epsilon in (0.1, 1.0, 7.0):
        rho = Budget(epsilon, GAUSSIAN, 1e-6).total
        one = dp.m.make_gaussian(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=math.sqrt(0.5 / rho)
        )
        assert (
            epsilon * (1 - 1e-6)
            < dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(one), 1e-6).map(1.0)[0]
            <= epsilon
        )


@NOISES
@PYTHON_AND_OPENDP
def test_a_standard_deviation_is_one_release_of_three_sums(
    folder: Path, library: Program, noise: NoiseKind
) -> None:
    choices = {"users": (Quantity.COUNT, 1, {}), "standard deviation": (Quantity.DEVIATION, 7, VALUES)}
    shares = [
        ReleaseShare(name, make_spec(quantity, max_rows=max_rows, **fields), 2**19)
        for name, (quantity, max_rows, fields) in choices.items()
    ]
    plan = ReleasePlan(tuple(shares), together.EPSILON, noise, None if noise is LAPLACE else together.DELTA)
    names, amount = run_program(plan, library), plan.compute_total_budget(library) / 2.0
    kept = [amount for rows in events().values() for _, amount in rows[:7]]
    clamped = [min(max(value, VALUES["lower"]), VALUES["upper"]) for value in kept]
    # Which rows are kept is drawn.
    assert names["released"]["standard deviation"] == pytest.approx(statistics.pstdev(clamped), rel=0.05)
    scale = together.compute_move(shares[1], noise) / (
        amount if noise is LAPLACE else math.sqrt(2.0 * amount)
    )
    if library is Program.OPENDP:
        assert names["scale"] == pytest.approx(scale, rel=1e-5)
    else:
        draw, sums, loss = names["prepared"]["standard deviation"]
        assert len(sums) == 3
        assert loss <= amount
        assert draw.map(together.compute_move(shares[1], noise)) == pytest.approx(amount, rel=1e-5)
