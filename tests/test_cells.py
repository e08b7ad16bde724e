"""What `make test` leaves to `make test-long`: nothing that no other cell tells."""

from __future__ import annotations

import itertools

import pytest

from tests.cells import choose_telling, leave_named, spread_evenly
from tests.dpcore.code.specs import SPEC_BY_NAME
from tests.dpcore.code.test_program_audit import AUDITED, RELEASES


@pytest.mark.parametrize("sizes", [(5,), (3, 4), (2, 3, 4), (2, 2, 2, 2, 5)])
def test_telling_cells_hold_every_value_of_two_lists_and_every_pair_of_more(sizes: tuple[int, ...]) -> None:
    cells = [*itertools.product(*([f"{place}" for place in range(size)] for size in sizes))]
    chosen = choose_telling(cells)
    size = 2 if len(sizes) > 2 else 1
    for places in itertools.combinations(range(len(sizes)), size):
        values = {tuple(cell[place] for place in places) for cell in cells}
        assert {tuple(cell[place] for place in places) for cell in chosen} == values
    assert chosen <= {*cells}
    assert len(chosen) < len(cells) or len(sizes) == 1


def test_a_release_of_every_kind_and_library_is_audited_by_make_test() -> None:
    audited = [cell.values for cell in AUDITED if not cell.marks]
    kinds = [
        {(SPEC_BY_NAME[name].quantity, SPEC_BY_NAME[name].noise, library) for name, library in cells}
        for cells in (RELEASES, audited)
    ]
    assert kinds[0] == kinds[1]
    assert len(audited) < len(RELEASES) == len(AUDITED)


def test_cells_are_long_by_their_ids() -> None:
    assert leave_named(["a-1", "a-2", "b-1"], {"long_but": {"a-2"}}) == {"a-1", "b-1"}
    assert leave_named(["a", "b", "c"], {"long_for": {"a", "c"}}) == {"a", "c"}
    assert leave_named(["a", "b"], {}) == set()


def test_a_few_cells_are_spread_from_the_first_to_the_last():
    assert spread_evenly(list(range(10)), 4) == [0, 3, 6, 9]
    assert spread_evenly(list(range(5)), 2) == [0, 4]
    assert spread_evenly([1, 2], 3) == [1, 2]
