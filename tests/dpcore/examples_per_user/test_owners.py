"""Records of several owners: brute force on small tables, proofs that hold, and noise where contents are replaced."""

import contextlib
import io
import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from dpcore.common.checks import InvalidInput
from dpcore.examples_per_user import noise
from dpcore.examples_per_user.answer.answer import tabulate_owners
from dpcore.examples_per_user.candidates import write_owners_program
from dpcore.examples_per_user.owners import (
    PRICE_UNIT,
    Ownership,
    RecordSelection,
    bound_selection,
    generate_ownership,
    select_most_records,
)


def count_by_brute_force(ownership: Ownership, bound: int) -> int:
    """The most records, by all choices."""
    lists = [
        ownership.user_codes[ownership.record_codes == record].tolist()
        for record in range(ownership.num_records)
    ]
    for size in range(ownership.num_records, 0, -1):
        for combination in itertools.combinations(lists, size):
            if np.bincount(np.concatenate([np.array(item) for item in combination])).max() <= bound:
                return size
    return 0


def draw_small_ownership(rng: np.random.Generator) -> Ownership:
    records, users = int(rng.integers(2, 10)), int(rng.integers(2, 6))
    owners = [
        rng.choice(users, size=int(rng.integers(1, min(users, 4) + 1)), replace=False) for _ in range(records)
    ]
    return Ownership.from_pairs(
        np.repeat(np.arange(records), [len(owner) for owner in owners]), np.concatenate(owners)
    )


def count_heaviest(selection: RecordSelection) -> int:
    """Records kept of the user who has most."""
    ownership = selection.ownership
    return int(
        np.bincount(ownership.user_codes[selection.kept_mask[ownership.record_codes]], minlength=1).max()
    )


def test_small_tables_by_brute_force() -> None:
    rng = np.random.default_rng(11)
    reached = 0
    for _ in range(60):
        ownership, bound = draw_small_ownership(rng), int(rng.integers(1, 4))
        selection, most = select_most_records(ownership, bound), count_by_brute_force(ownership, bound)
        assert count_heaviest(selection) <= bound
        assert selection.num_kept <= most <= selection.max_records
        reached += selection.num_kept == most
    assert reached >= 55


def test_any_prices_prove_no_less_than_there_is() -> None:
    rng = np.random.default_rng(12)
    for _ in range(40):
        ownership, bound = draw_small_ownership(rng), int(rng.integers(1, 4))
        most = count_by_brute_force(ownership, bound)
        for prices in (
            np.zeros(ownership.num_users),
            rng.random(ownership.num_users),
            np.ones(ownership.num_users),
        ):
            assert bound_selection(ownership, bound, np.rint(prices * PRICE_UNIT).astype(np.int64)) >= most
    with pytest.raises(InvalidInput, match="at least 0"):
        bound_selection(ownership, 1, np.full(ownership.num_users, -1))


@pytest.mark.long
def test_a_hundred_thousand_records_are_within_half_a_per_cent_of_the_proved_most() -> None:
    ownership = generate_ownership(100_000, 19_000, seed=3)
    selection = select_most_records(ownership, 5)
    assert count_heaviest(selection) <= 5
    assert 0.0 <= selection.gap <= 5e-3
    columns = tabulate_owners(selection)
    assert sum(columns["Records"]) == 100_000
    assert sum(columns["Kept"]) == selection.num_kept
    assert max(columns["Share kept"]) <= 1.0


def test_one_owner_each_is_a_sum_of_minima() -> None:
    users = np.array([0, 0, 0, 1, 1, 2])
    selection = select_most_records(Ownership.from_pairs(np.arange(6), users), 2)
    assert selection.num_kept == selection.max_records == 2 + 2 + 1
    assert selection.gap == 0.0


def test_lines_that_stand_twice_count_once_and_a_record_of_nobody_is_refused() -> None:
    ownership = Ownership.from_pairs(["a", "a", "b", "a"], ["x", "x", "x", "y"])
    assert ownership.owner_counts.tolist() == [2, 1]
    with pytest.raises(InvalidInput, match="owners are empty"):
        Ownership.from_pairs(["a", "b"], ["x", " "])
    with pytest.raises(InvalidInput, match="same length"):
        Ownership.from_pairs(["a"], [])
    with pytest.raises(InvalidInput, match="whole number"):
        select_most_records(ownership, 0)


@pytest.mark.parametrize(("examples", "sigma"), [(1, 0.74), (4, 1.361), (4, 30.0)])
def test_the_divergence_of_replaced_contents_is_that_of_an_integral(examples: int, sigma: float) -> None:
    rate, order = 0.02, 3.0
    x = np.linspace(-40.0 * sigma, 40.0 * sigma + 60.0, 400_001)
    k = np.arange(examples + 1)
    logs = [
        np.logaddexp.reduce(
            binom.logpmf(k, examples, rate) - 0.5 * ((x[:, None] - side * k) / sigma) ** 2, axis=1
        )
        for side in (1.0, -1.0)
    ]
    integrand = np.exp(order * logs[0] + (1.0 - order) * logs[1]) / (sigma * math.sqrt(2.0 * math.pi))
    by_hand = math.log(float(integrand.sum()) * (x[1] - x[0])) / (order - 1.0)
    ratio = noise.DensityRatio(noise.compute_log_weights(examples, rate), sigma)
    assert noise.compute_replaced_divergences(ratio, np.array([order]))[0] == pytest.approx(by_hand, rel=1e-6)


def test_replaced_contents_spend_more_than_zeroed_ones() -> None:
    # By privacy losses 4.4, 6.2 and 8.2 in place of 4; Rényi accounting has each some per cent higher.
    for examples, sigma, spent in ((1, 0.74, 4.4), (4, 1.361, 6.2), (16, 4.089, 8.2)):
        weights, orders = (noise.compute_log_weights(examples, 0.02), noise.choose_orders(spent, 1e-6))
        epsilon_spent = noise.compute_epsilon(weights, sigma, 100, 1e-6, orders, replaces_user=True)
        assert spent <= epsilon_spent <= 1.25 * spent
    zeroed, replaced = (
        noise.bound_multiplier(4, 0.02, 4.0, 1e-6, 100, replaces_user=number) for number in (False, True)
    )
    assert replaced > 1.2 * zeroed
    assert noise.bound_multiplier(4, 1.0, 4.0, 1e-6, 100, replaces_user=True) == pytest.approx(
        2.0 * noise.bound_multiplier(4, 1.0, 4.0, 1e-6, 100)
    )


def test_the_program_keeps_as_many_of_a_nasty_file_as_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blanks around names, names that look like nothing, lines that stand twice, a quoted comma."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    names = ["NA", "null", '"a, b"', "007", "7", "é"]
    lines = [
        f"r{record},{names[user]}" for record in range(40) for user in rng.choice(6, size=rng.integers(1, 4))
    ]
    text = "\n".join(["record,user", *lines, f" {lines[0].replace(',', ' , ', 1)} "])
    (tmp_path / "owners.csv").write_text(text, encoding="utf-8")
    selection = select_most_records(
        Ownership.from_pairs(*zip(*(line.split(",", 1) for line in lines), strict=True)), 3
    )
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(write_owners_program(3).text, "keep.py", "exec"), {"__name__": "__main__"})
    kept = pd.read_csv(tmp_path / "kept_records.csv")["record"].tolist()
    assert len(set(kept)) == len(kept)
    assert (
        f"of 40 records kept, at most 3 of a user; no choice keeps more than {selection.max_records}"
        in printed.getvalue()
    )
    held = [line.split(",", 1)[1] for line in set(lines) if line.split(",", 1)[0] in kept]
    assert max(held.count(name) for name in names) <= 3
    # Ties are drawn anew each time.
    assert abs(len(kept) - selection.num_kept) <= 1
    (tmp_path / "owners.csv").write_text("record,user\nr1,  \n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no owner"):
        exec(compile(write_owners_program(3).text, "keep.py", "exec"), {"__name__": "__main__"})
